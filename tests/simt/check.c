// simt-check: one template, one configuration and one problem under the emulator; for people with a debugger and for
// the mutation script. Exit status: 0 clean, 1 a defect, 2 it could not be run.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simt/suite_cases.h"

static const char usage[] =
    "usage: simt-check [--templates FOLDER] [--step NAME] [--config TEXT] [--advance-config TEXT]\n"
    "                  [--heads N] [--groups N] [--head-dim N] [--state-size N] [--window N] [--ring N] [--tokens N]\n"
    "                  [--checkpoint f32|bf16|f16] [--activation f32|bf16|f16] [--dt f32] [--rows N] [--slots N]\n"
    "                  [--steps N] [--seed N] [--flags N] [--eager] [--suite FIRST:COUNT] [--record FILE] [--debug] "
    "[--compiler-flags "
    "TEXT]\n";

static uint32_t dtype_of(const char *text)
{
    return strcmp(text, "bf16") == 0 ? RSSM_BF16 : strcmp(text, "f16") == 0 ? RSSM_F16 : RSSM_F32;
}

typedef struct options {
    const char *templates, *step, *config, *advance_config, *suite, *record;
    simt_case   c;
} options;

static bool set_number(simt_case *c, const char *name, uint32_t value)
{
    const struct {
        const char *name;
        uint32_t   *to;
    } numbers[] = {{"--heads", &c->problem.n_heads},
                   {"--groups", &c->problem.n_groups},
                   {"--head-dim", &c->problem.head_dim},
                   {"--state-size", &c->problem.state_size},
                   {"--window", &c->problem.window},
                   {"--ring", &c->problem.ring_length},
                   {"--tokens", &c->problem.max_tokens},
                   {"--rows", &c->n_rows},
                   {"--slots", &c->n_slots},
                   {"--steps", &c->n_steps},
                   {"--flags", &c->flags}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(name, numbers[i].name) != 0) continue;
        *numbers[i].to = value;
        return true;
    }
    return false;
}

static bool parse(int argc, char **argv, options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(name, "--eager") == 0) {
            o->c.eager = 1;
            continue;
        }
        if (strcmp(name, "--debug") == 0) {
            o->c.compiler_flags = "-O0 -g";
            continue;
        }
        if (!value) return false;
        i++;
        if (strcmp(name, "--compiler-flags") == 0) {
            o->c.compiler_flags = value;
            continue;
        }
        if (strcmp(name, "--templates") == 0)
            o->templates = value;
        else if (strcmp(name, "--step") == 0)
            o->step = value;
        else if (strcmp(name, "--suite") == 0)
            o->suite = value;
        else if (strcmp(name, "--record") == 0)
            o->record = value;
        else if (strcmp(name, "--config") == 0)
            o->config = value;
        else if (strcmp(name, "--advance-config") == 0)
            o->advance_config = value;
        else if (strcmp(name, "--checkpoint") == 0)
            o->c.problem.checkpoint_dtype = dtype_of(value);
        else if (strcmp(name, "--activation") == 0)
            o->c.problem.activation_dtype = dtype_of(value);
        else if (strcmp(name, "--dt") == 0)
            o->c.problem.dt_dtype = dtype_of(value);
        else if (strcmp(name, "--seed") == 0)
            o->c.seed = strtoull(value, NULL, 0);
        else if (!set_number(&o->c, name, (uint32_t)strtoul(value, NULL, 0)))
            return false;
    }
    return true;
}

static rssm_status choose(const rssm_manifest *manifest, const char *text, rssm_config *out_config, rssm_diag *diag)
{
    if (!manifest) return RSSM_FAIL(diag, RSSM_E_NOT_FOUND, "there is no such template");
    *out_config = rssm_config_default(manifest);
    return text ? rssm_config_parse(manifest, text, out_config, diag) : RSSM_OK;
}

static void print_counts(const simt_outcome *outcome)
{
    const rssm_verify_report *v = &outcome->verify;
    printf("%u steps: %u appends, %u folds (%u of a full window, %u forced), %u wraps, %u idle, %u null, %u resets\n",
           v->n_steps, v->n_appends, v->n_folds, v->n_full_folds, v->n_forced, v->n_wraps, v->n_idle, v->n_null,
           v->n_resets);
    printf("%.2f s of processor time\n", outcome->run_seconds);
    printf("errors as fractions of their bounds: out %.3f, state %.3f, dt %.3f\n", v->max_out, v->max_state, v->max_dt);
}

// One case. Returns the exit status.
static int run_one(const options *o, const simt_case *c, bool counts)
{
    rssm_str     text = {0};
    simt_outcome outcome;
    int          code = 0;

    simt_case_text(c, &text);
    puts(rssm_str_c(&text));
    fflush(stdout);
    if (!simt_run_case(o->templates, c, &outcome)) {
        puts(outcome.text);
        code = outcome.status == RSSM_E_DEVICE || outcome.status == RSSM_E_WRONG_RESULT ? 1 : 2;
    } else if (counts) {
        print_counts(&outcome);
    }
    rssm_str_free(&text);
    return code;
}

// Cases of the suite until one fails.
static int run_suite(const options *o)
{
    unsigned  first = 0, count = 0;
    simt_case c;
    int       code = 0;
    if (sscanf(o->suite, "%u:%u", &first, &count) != 2) return 2;
    for (unsigned i = first; i < first + count && code == 0; i++) {
        if (!simt_suite_case(i, o->c.step.manifest, o->c.advance.manifest, &c)) break;
        c.compiler_flags = o->c.compiler_flags;
        code = run_one(o, &c, false);
    }
    return code;
}

int main(int argc, char **argv)
{
    options            o = {.templates = RSSM_SOURCE_DIR "/templates", .step = "mamba2_step_stream"};
    rssm_template_set *set = NULL;
    rssm_diag          diag = {0};
    int                code = 2;
    rssm_status        st;

    o.c = (simt_case){
        .problem = RSSM_PROBLEM_INIT, .n_rows = 5, .n_slots = 7, .seed = 1, .flags = RSSM_VERIFY_ALL_TENSORS};
    o.c.problem.n_heads = 4, o.c.problem.head_dim = 64, o.c.problem.state_size = 64, o.c.problem.window = 5;
    o.c.problem.ring_length = 6;
    o.c.problem.dt_dtype = RSSM_F32;
    if (!parse(argc, argv, &o)) {
        fputs(usage, stderr);
        return 2;
    }
    if (o.record) {
        RSSM_TRY(simt_record_crosscheck(o.record, &diag));
        code = 0;
        goto done;
    }
    RSSM_TRY(rssm_template_set_open(o.templates, &set, &diag));
    RSSM_TRY(choose(rssm_template_set_find(set, o.step), o.config, &o.c.step, &diag));
    RSSM_TRY(choose(rssm_template_set_find(set, "advance_cuda"), o.advance_config, &o.c.advance, &diag));
    code = o.suite ? run_suite(&o) : run_one(&o, &o.c, true);
    if (code == 0) puts("clean");
done:
    if (st != RSSM_OK) fprintf(stderr, "%s\n", diag.text);
    simt_suite_end();
    rssm_template_set_close(set);
    return code;
}
