// Every CUDA template, executed: its default and corner configurations on small shapes, in all formats, against the
// float64 oracle, refereed, under AddressSanitizer and UndefinedBehaviorSanitizer.
//
// Cut into parts, so that Criterion runs them side by side. A template of another op or recurrence than these
// cases know fails the last test: nobody may add one that is not executed.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/probe.h"
#include "tests/simt/suite_cases.h"

static void expect_clean(const simt_case *c)
{
    simt_outcome outcome;
    rssm_str     text = {0};
    simt_case_text(c, &text);
    cr_expect(simt_run_case(simt_template_root(), c, &outcome), "%s\n    %s", rssm_str_c(&text), outcome.text);
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
    rssm_template_set *set = simt_open_templates();
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

// One launch over `n` vectors of which one, if any, was never written: a probe that reads it is reported.
static bool probe(const simt_kernel *kernel, const rssm_launch *l, size_t n, size_t unwritten, simt_report *report)
{
    static unsigned char bytes[40000];
    void                *data, *sink;
    simt_reset();
    cr_assert(n * 16 <= sizeof bytes);
    cr_assert_eq(simt_alloc(n * 16, &data, NULL), RSSM_OK);
    cr_assert_eq(simt_alloc(4, &sink, NULL), RSSM_OK);
    simt_upload(data, bytes, (unwritten < n ? unwritten : n) * 16, false);
    if (unwritten + 1 < n) simt_upload((char *)data + (unwritten + 1) * 16, bytes, (n - unwritten - 1) * 16, false);
    const rssm_probe_kernel_args args = {data, (rssm_i64)n, sink};
    simt_launch_options          options = {.shared_bytes = l->shared_bytes, .seed = n};
    for (int i = 0; i < 3; i++) {
        options.grid[i] = (uint32_t)(l->grid[i].constant + l->grid[i].per_row);
        options.block[i] = l->block[i];
    }
    return simt_launch(kernel, &options, &args, report);
}

Test(templates, probes_read_every_vector, .timeout = 120)
{
    static const size_t  sizes[] = {1, 255, 2500}, unwritten[] = {0, 254, 2499};
    rssm_template_set   *set = simt_open_templates();
    const rssm_manifest *m = rssm_template_set_next(set, RSSM_OP_PROBE, RSSM_MAMBA2, RSSM_CUDA, NULL);
    rssm_facts           facts = {0};
    for (; m; m = rssm_template_set_next(set, RSSM_OP_PROBE, RSSM_MAMBA2, RSSM_CUDA, m)) {
        const rssm_config config = rssm_config_default(m);
        simt_kernel      *kernel = NULL;
        rssm_launch       l;
        rssm_diag         diag = {0};
        simt_report       report;
        rssm_facts_set(&facts, "dev.multiprocessors", 1);
        cr_assert_eq(simt_template_load(simt_template_root(), &config, NULL, &facts, NULL, &kernel, &l, &diag), RSSM_OK,
                     "%s", diag.text);
        for (size_t i = 0; i < 3; i++) {
            cr_expect(probe(kernel, &l, sizes[i], SIZE_MAX, &report), "%s, %zu vectors: %s", m->name, sizes[i],
                      report.text);
            cr_expect(!probe(kernel, &l, sizes[i], unwritten[i], &report));
            cr_expect_eq(report.defect, SIMT_UNINITIALISED, "%s", report.text);
        }
        simt_kernel_unload(kernel);
    }
    rssm_template_set_close(set);
}

Test(templates, of_every_kind_are_executed)
{
    rssm_template_set *set = simt_open_templates();
    for (size_t i = 0; i < rssm_template_set_count(set); i++) {
        const rssm_manifest *m = rssm_template_set_at(set, i);
        if (m->backend != RSSM_CUDA) continue;
        const bool of_a_state = m->op == RSSM_OP_STEP || m->op == RSSM_OP_COPY || m->op == RSSM_OP_ENCODE ||
                                m->op == RSSM_OP_DECODE || m->op == RSSM_OP_MATERIALIZE;
        const bool known = (of_a_state && m->recurrence == RSSM_MAMBA2) || m->op == RSSM_OP_ADVANCE ||
                           m->op == RSSM_OP_SLOTS || m->op == RSSM_OP_PROBE;
        cr_expect(known, "%s is a CUDA template that these tests do not execute", m->name);
    }
    rssm_template_set_close(set);
}
