// Every CUDA template, executed: its default and corner configurations on small shapes, in all formats, against the
// float64 oracle, refereed, under AddressSanitizer and UndefinedBehaviorSanitizer.
//
// Cut into parts, so that Criterion runs them side by side. A template of another op or recurrence than these
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

// Every PARTS-th case of every step template.
enum { PARTS = 6 };

static void run_part(size_t part)
{
    rssm_template_set *set = open_set();
    simt_case          c;
    int                n = 0;
    for (const rssm_manifest *step = next_step(set, NULL); step; step = next_step(set, step)) {
        for (size_t i = part; simt_suite_case(i, step, the_advance(set), &c); i += PARTS) {
            expect_clean(&c);
            n++;
        }
    }
    cr_expect(n >= 4, "only %d cases were run", n);
    simt_suite_end();
    rssm_template_set_close(set);
}

Test(templates, part_1_of_6, .timeout = 500)
{
    run_part(0);
}

Test(templates, part_2_of_6, .timeout = 500)
{
    run_part(1);
}

Test(templates, part_3_of_6, .timeout = 500)
{
    run_part(2);
}

Test(templates, part_4_of_6, .timeout = 500)
{
    run_part(3);
}

Test(templates, part_5_of_6, .timeout = 500)
{
    run_part(4);
}

Test(templates, part_6_of_6, .timeout = 500)
{
    run_part(5);
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
