// See suite.h. The verifier's calls end here: memory is the emulator's arena, launches are emulated.
#include "tests/simt/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "abi/advance.h"
#include "base/problem.h"
#include "gen/render.h"
#include "runtime/step_args.h"

enum { DEVICE_ARCH = 900 };

// Takes the place of the group and of the plan.
typedef struct session {
    const simt_case *c;
    rssm_problem     problem; // normalised
    simt_kernel     *advance, *step;
    rssm_launch      advance_launch, step_launch;
    void            *cursors;
    uint64_t         launches, n_advances;
    simt_outcome    *outcome;
} session;

const char *simt_clang(void)
{
    const char *chosen = getenv("SIMT_CLANG");
    return chosen ? chosen : SIMT_CLANG;
}

const char *simt_template_root(void)
{
    const char *chosen = getenv("SIMT_TEMPLATES");
    return chosen ? chosen : RSSM_SOURCE_DIR "/templates";
}

rssm_template_set *simt_open_templates(void)
{
    rssm_template_set *set = NULL;
    rssm_diag          diag = {0};
    if (rssm_template_set_open(simt_template_root(), &set, &diag) == RSSM_OK) return set;
    fprintf(stderr, "%s\n", diag.text);
    abort();
}

rssm_facts simt_facts(const rssm_problem *problem)
{
    rssm_facts facts = {0};
    rssm_facts_add_problem(&facts, problem);
    rssm_facts_set(&facts, "dev.multiprocessors", 132);
    rssm_facts_set(&facts, "dev.shared_optin", 227 << 10);
    rssm_facts_set(&facts, "dev.shared_per_multiprocessor", 228 << 10);
    rssm_facts_set(&facts, "dev.registers", 65536);
    rssm_facts_set(&facts, "dev.arch", DEVICE_ARCH);
    rssm_facts_set(&facts, "dev.l2_bytes", 50 << 20);
    return facts;
}

// -------------------------------------------------------------------------------------------------------------- calls

static rssm_status take_memory(rssm_context *context, uint32_t device, size_t n_bytes, void **out_pointer,
                               rssm_diag *diag)
{
    (void)context, (void)device;
    return simt_alloc(n_bytes, out_pointer, diag);
}

static void give_memory(rssm_context *context, uint32_t device, void *pointer)
{
    (void)context, (void)device;
    simt_free(pointer);
}

static rssm_status put_memory(rssm_context *context, uint32_t device, void *to, const void *from, size_t n_bytes,
                              rssm_diag *diag)
{
    (void)context, (void)device, (void)diag;
    simt_upload(to, from, n_bytes, true);
    return RSSM_OK;
}

static rssm_status get_memory(rssm_context *context, uint32_t device, void *to, const void *from, size_t n_bytes,
                              rssm_diag *diag)
{
    (void)context, (void)device, (void)diag;
    simt_download(to, from, n_bytes);
    return RSSM_OK;
}

static rssm_status wait_for_nothing(rssm_context *context, uint32_t device, rssm_diag *diag)
{
    (void)context, (void)device, (void)diag;
    return RSSM_OK;
}

static rssm_status launch(session *s, const simt_kernel *kernel, const rssm_launch *l, uint32_t n_rows,
                          const void *args)
{
    simt_launch_options options = {.shared_bytes = l->shared_bytes, .seed = s->c->seed * 1000003 + s->launches++};
    for (int i = 0; i < 3; i++) {
        options.grid[i] = (uint32_t)(l->grid[i].constant + l->grid[i].per_row * n_rows);
        options.block[i] = l->block[i];
    }
    return simt_launch(kernel, &options, args, &s->outcome->report) ? RSSM_OK : RSSM_E_DEVICE;
}

static rssm_status launch_advance(session *s, const rssm_advance_args *a, rssm_i32 flags)
{
    const rssm_problem            *p = &s->problem;
    const rssm_advance_kernel_args args = {
        .cursors = s->cursors,
        .descriptors = flags & RSSM_ADVANCE_OPEN ? a->descriptors : NULL,
        .slots = a->slots,
        .tokens = a->tokens,
        .cu_seqlens = a->cu_seqlens,
        .accepted = a->accepted,
        .forced = a->forced,
        .epochs = a->epochs,
        .issues = a->issues,
        .window = {(rssm_i32)p->window, (rssm_i32)p->ring_length, (rssm_i32)p->max_tokens, (rssm_i32)s->c->eager},
        .n_rows = (rssm_i32)a->n_rows,
        .n_slots = (rssm_i32)s->c->n_slots,
        .pad_slot = a->pad_slot,
        .flags = flags,
    };
    return launch(s, s->advance, &s->advance_launch, a->n_rows, &args);
}

// Every third time as the two halves that hosts may call apart; the debug check comes and goes.
static rssm_status emulate_advance(const rssm_group *group, const rssm_advance_args *a, void *stream)
{
    session       *s = (session *)(uintptr_t)group;
    const rssm_i32 check = s->n_advances % 2 ? RSSM_ADVANCE_CHECK_SLOTS : 0;
    rssm_status    st;

    (void)stream;
    if (s->n_advances++ % 3 != 2) return launch_advance(s, a, RSSM_ADVANCE_COMMIT | RSSM_ADVANCE_OPEN | check);
    st = launch_advance(s, a, RSSM_ADVANCE_COMMIT | check);
    return st == RSSM_OK ? launch_advance(s, a, RSSM_ADVANCE_OPEN | check) : st;
}

static rssm_status emulate_step(const rssm_plan *plan, const rssm_step_args *a, void *stream)
{
    session                           *s = (session *)(uintptr_t)plan;
    const rssm_mamba2_step_kernel_args args = rssm_step_kernel_args(&s->problem, a);
    (void)stream;
    return launch(s, s->step, &s->step_launch, a->n_rows, &args);
}

static const rssm_verify_calls calls = {
    .advance = emulate_advance,
    .step = emulate_step,
    .alloc = take_memory,
    .free = give_memory,
    .upload = put_memory,
    .download = get_memory,
    .synchronise = wait_for_nothing,
};

// --------------------------------------------------------------------------------------------------------------- cases

rssm_status simt_template_load(const char *root, const rssm_config *config, const rssm_problem *problem,
                               const rssm_facts *facts, const char *compiler_flags, simt_kernel **out_kernel,
                               rssm_launch *out_launch, rssm_diag *diag)
{
    const rssm_render_input input = {.config = config, .problem = problem, .facts = facts, .arch = DEVICE_ARCH};
    rssm_str                header = {0};
    simt_compile_options    options = {.clang = simt_clang(),
                                       .template_root = root,
                                       .source = config->manifest->source,
                                       .entry = config->manifest->entry,
                                       .args = config->manifest->args,
                                       .flags = compiler_flags};
    rssm_status             st;

    RSSM_TRY(rssm_config_check(config, facts, diag));
    RSSM_TRY(rssm_launch_plan(config, facts, out_launch, diag));
    RSSM_TRY(rssm_render_config(&input, &header, diag));
    options.config = rssm_str_c(&header);
    RSSM_TRY(simt_kernel_load(&options, out_kernel, diag));
done:
    rssm_str_free(&header);
    return st;
}

// `advance` depends on no problem: the last one that was compiled is kept, until simt_suite_end.
static struct {
    char         text[512];
    simt_kernel *kernel;
    rssm_launch  launch;
} kept;

void simt_suite_end(void)
{
    simt_kernel_unload(kept.kernel);
    kept.kernel = NULL;
    kept.text[0] = '\0';
}

static rssm_status load_advance(session *s, const char *root, const rssm_facts *facts, rssm_diag *diag)
{
    const char *flags = s->c->compiler_flags;
    rssm_str    text = {0};
    char        key[sizeof kept.text];
    rssm_status st = RSSM_OK;

    rssm_config_text(&s->c->advance, &text);
    snprintf(key, sizeof key, "%s %s %s", root, rssm_str_c(&text), flags ? flags : "");
    rssm_str_free(&text);
    if (strcmp(key, kept.text) != 0) {
        simt_suite_end();
        st = simt_template_load(root, &s->c->advance, NULL, facts, flags, &kept.kernel, &kept.launch, diag);
        if (st == RSSM_OK) memcpy(kept.text, key, sizeof key);
    }
    s->advance = kept.kernel;
    s->advance_launch = kept.launch;
    return st;
}

bool simt_run_case(const char *root, const simt_case *c, simt_outcome *out)
{
    rssm_diag   diag = {0};
    rssm_status st;
    session     s = {.c = c, .outcome = out};

    memset(out, 0, sizeof *out);
    simt_reset();
    RSSM_TRY(rssm_problem_normalise(&c->problem, &s.problem, &diag));
    const rssm_facts facts = simt_facts(&s.problem);
    RSSM_TRY(load_advance(&s, root, &facts, &diag));
    RSSM_TRY(simt_template_load(root, &c->step, &s.problem, &facts, c->compiler_flags, &s.step, &s.step_launch, &diag));
    RSSM_TRY(simt_alloc(c->n_slots * sizeof(rssm_cursor), &s.cursors, &diag));
    const rssm_verify_request request = {
        .group = (const rssm_group *)(const void *)&s,
        .plan = (const rssm_plan *)(const void *)&s,
        .problem = &s.problem,
        .cursors = s.cursors,
        .n_slots = c->n_slots,
        .n_rows = c->n_rows,
        .n_steps = c->n_steps,
        .eager = c->eager,
        .flags = c->flags,
        .state_align = c->step.manifest->align_state,
        .ring_align = c->step.manifest->align_rings,
        .activation_align = c->step.manifest->align_activations,
        .scratch_bytes_per_row = s.step_launch.scratch_bytes_per_row,
        .seed = c->seed,
        .calls = &calls,
    };
    const clock_t began = clock();
    st = rssm_verify_run(&request, &out->verify, &diag);
    out->run_seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
done:
    out->status = st;
    if (st != RSSM_OK) snprintf(out->text, sizeof out->text, "%s", out->report.text[0] ? out->report.text : diag.text);
    simt_kernel_unload(s.step);
    return st == RSSM_OK;
}

size_t simt_corner_configs(const rssm_manifest *manifest, const rssm_problem *problem,
                           rssm_config out_configs[SIMT_CONFIGS_MAX])
{
    const rssm_facts facts = simt_facts(problem);
    size_t           n = 0;
    for (size_t i = 0; i < 1 + 2 * manifest->n_tunables; i++) {
        rssm_config config = rssm_config_default(manifest);
        if (i > 0) {
            const rssm_tunable *t = &manifest->tunables[(i - 1) / 2];
            config.values[(i - 1) / 2] = t->values[i % 2 ? 0 : t->n_values - 1];
        }
        bool known = rssm_config_check(&config, &facts, NULL) != RSSM_OK;
        for (size_t k = 0; k < n && !known; k++)
            known = rssm_config_equal(&config, &out_configs[k]);
        if (!known) out_configs[n++] = config;
    }
    return n;
}

void simt_case_text(const simt_case *c, rssm_str *out)
{
    rssm_problem problem;
    rssm_str_printf(out, "%s ", c->step.manifest->name);
    rssm_config_text(&c->step, out);
    rssm_str_puts(out, " | ");
    if (rssm_problem_normalise(&c->problem, &problem, NULL) == RSSM_OK) rssm_problem_text(&problem, out);
    rssm_str_printf(out, " rows=%u seed=%llu flags=0x%x", c->n_rows, (unsigned long long)c->seed, c->flags);
}
