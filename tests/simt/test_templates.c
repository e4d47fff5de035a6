// Every CUDA template, executed: its default and corner configurations on small shapes, in all formats, against the
// float64 oracle, refereed, under AddressSanitizer and UndefinedBehaviorSanitizer.
//
// One Criterion test per format pair, so that they run side by side. A template of another op or recurrence than these
// cases know fails the last test: nobody may add one that is not executed.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/problem.h"
#include "tests/simt/suite_cases.h"

// $SIMT_TEMPLATES: another folder of templates, as the mutation script has them.
static const char *root(void)
{
    const char *chosen = getenv("SIMT_TEMPLATES");
    return chosen ? chosen : RSSM_SOURCE_DIR "/templates";
}

static rssm_template_set *open_set(void)
{
    rssm_template_set *set = NULL;
    rssm_diag          diag = {0};
    cr_assert_eq(rssm_template_set_open(root(), &set, &diag), RSSM_OK, "%s", diag.text);
    return set;
}

static void expect_clean(const simt_case *c)
{
    simt_outcome outcome;
    rssm_str     text = {0};
    simt_case_text(c, &text);
    cr_expect(simt_run_case(root(), c, &outcome), "%s\n    %s", rssm_str_c(&text), outcome.text);
    rssm_str_free(&text);
}

static const rssm_manifest *next_step(const rssm_template_set *set, const rssm_manifest *after)
{
    return rssm_template_set_next(set, RSSM_OP_STEP, RSSM_MAMBA2, RSSM_CUDA, after);
}

static const rssm_manifest *the_advance(const rssm_template_set *set)
{
    const rssm_manifest *m = rssm_template_set_next(set, RSSM_OP_ADVANCE, RSSM_MAMBA2, RSSM_CUDA, NULL);
    cr_assert(m, "there is no CUDA template of advance");
    return m;
}

static bool serves(const rssm_manifest *manifest, const simt_case *c)
{
    rssm_problem problem;
    cr_assert_eq(rssm_problem_normalise(&c->problem, &problem, NULL), RSSM_OK);
    const rssm_facts facts = simt_facts(&problem);
    return rssm_manifest_serves(manifest, &problem, NULL) == RSSM_OK &&
           rssm_config_check(&c->step, &facts, NULL) == RSSM_OK;
}

// Every shape that the default configuration serves.
static int run_shapes(const rssm_template_set *set, const rssm_manifest *step, size_t formats)
{
    int n = 0;
    for (size_t i = 0; i < simt_shape_count(); i++) {
        // Two shapes in all formats; of the others each format takes its share.
        if (i >= 2 && (i + formats) % 3 != 0) continue;
        const simt_case c = simt_case_of(simt_shape_at(i), formats, step, the_advance(set), 11 * i + formats);
        if (!serves(step, &c)) continue;
        expect_clean(&c);
        n++;
    }
    return n;
}

// Every corner configuration of a shape; each format pair takes its share.
static int run_corners(const rssm_template_set *set, const rssm_manifest *step, size_t formats)
{
    rssm_config  configs[SIMT_CONFIGS_MAX];
    simt_case    c = simt_case_of(simt_shape_at(0), formats, step, the_advance(set), 100 + formats);
    rssm_problem problem;
    int          n = 0;

    cr_assert_eq(rssm_problem_normalise(&c.problem, &problem, NULL), RSSM_OK);
    const size_t n_configs = simt_corner_configs(step, &problem, configs);
    for (size_t i = 1; i < n_configs; i++) {
        if ((i + formats) % 2 != 0) continue;
        c.step = configs[i];
        if (!serves(step, &c)) continue;
        expect_clean(&c);
        n++;
    }
    return n;
}

static void run_formats(size_t formats)
{
    rssm_template_set *set = open_set();
    int                n = 0;
    for (const rssm_manifest *step = next_step(set, NULL); step; step = next_step(set, step))
        n += run_shapes(set, step, formats) + run_corners(set, step, formats);
    cr_expect(n >= 4, "only %d cases were run", n);
    rssm_template_set_close(set);
}

Test(templates, step_f32_bf16, .timeout = 500)
{
    run_formats(0);
}

Test(templates, step_bf16_bf16, .timeout = 500)
{
    run_formats(1);
}

Test(templates, step_f32_f16, .timeout = 500)
{
    run_formats(2);
}

Test(templates, step_bf16_f16, .timeout = 500)
{
    run_formats(3);
}

Test(templates, step_f32_f32, .timeout = 500)
{
    run_formats(4);
}

Test(templates, step_bf16_f32, .timeout = 500)
{
    run_formats(5);
}

// More rows than threads, so that advance works in chunks; the step's shape is the least.
Test(templates, advance_in_chunks_and_at_its_corners, .timeout = 300)
{
    rssm_template_set   *set = open_set();
    const rssm_manifest *advance = the_advance(set), *step = next_step(set, NULL);
    rssm_config          configs[SIMT_CONFIGS_MAX];
    simt_shape           shape = *simt_shape_at(2);
    rssm_problem         problem;

    shape.window = 3, shape.ring_length = 3, shape.n_rows = 150, shape.n_slots = 160, shape.n_steps = 4;
    simt_case c = simt_case_of(&shape, 1, step, advance, 5);
    cr_assert_eq(rssm_problem_normalise(&c.problem, &problem, NULL), RSSM_OK);
    const size_t n = simt_corner_configs(advance, &problem, configs);
    for (size_t i = 0; i < n; i++) {
        c.advance = configs[i];
        c.flags = i % 2 ? RSSM_VERIFY_ALL_TENSORS | RSSM_VERIFY_PACKED : RSSM_VERIFY_ALL_TENSORS | RSSM_VERIFY_PAD_ZERO;
        expect_clean(&c);
    }
    cr_expect_geq(n, 2);
    rssm_template_set_close(set);
}

Test(templates, of_every_kind_are_executed)
{
    rssm_template_set *set = open_set();
    for (size_t i = 0; i < rssm_template_set_count(set); i++) {
        const rssm_manifest *m = rssm_template_set_at(set, i);
        if (m->backend != RSSM_CUDA) continue;
        const bool known = (m->op == RSSM_OP_STEP && m->recurrence == RSSM_MAMBA2) || m->op == RSSM_OP_ADVANCE ||
                           m->op == RSSM_OP_PROBE;
        cr_expect(known, "%s is a CUDA template that these tests do not execute", m->name);
    }
    rssm_template_set_close(set);
}
