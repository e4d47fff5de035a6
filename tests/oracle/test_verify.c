// Tests of tuner/verify.c: a correct kernel passes under every option, and every faulty one is named.
#include "tuner/verify.h"

#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/problem.h"
#include "tests/oracle/fake_kernels.h"

enum { N_ROWS = 5, N_SLOTS = 9, N_STEPS = 40 };

// A shape with nothing round about it.
static rssm_problem small_problem(uint32_t activation, uint32_t checkpoint, uint32_t max_tokens)
{
    rssm_problem p = RSSM_PROBLEM_INIT, normalised;
    p.n_heads = 4;
    p.n_groups = 2;
    p.head_dim = 6;
    p.state_size = 20;
    p.window = 5;
    p.max_tokens = max_tokens;
    p.activation_dtype = activation;
    p.dt_dtype = activation;
    p.checkpoint_dtype = checkpoint;
    cr_assert_eq(rssm_problem_normalise(&p, &normalised, NULL), RSSM_OK);
    return normalised;
}

typedef struct run {
    rssm_verify_request request;
    rssm_verify_report  report;
    rssm_diag           diag;
    fake_kernels        kernels;
    rssm_cursor         cursors[N_SLOTS];
} run;

static void prepare(run *r, const rssm_problem *problem, uint32_t flags, fake_fault fault)
{
    memset(r, 0, sizeof *r);
    r->kernels = (fake_kernels){*problem, r->cursors, N_SLOTS, 0, (int)flags, fault};
    r->request.group = (const rssm_group *)(const void *)&r->kernels;
    r->request.plan = (const rssm_plan *)(const void *)&r->kernels;
    r->request.problem = &r->kernels.problem;
    r->request.cursors = r->cursors;
    r->request.n_slots = N_SLOTS;
    r->request.n_rows = N_ROWS;
    r->request.n_steps = N_STEPS;
    r->request.flags = flags;
    r->request.seed = 7;
    r->request.calls = &fake_calls;
}

static rssm_status go(run *r)
{
    return rssm_verify_run(&r->request, &r->report, &r->diag);
}

static void expect_pass(run *r, const char *what)
{
    const rssm_status st = go(r);
    cr_assert_eq(st, RSSM_OK, "%s: %s", what, r->diag.text);
    cr_assert(r->report.n_steps == r->request.n_steps && r->report.failure[0] == '\0', "%s", what);
    cr_assert(r->report.max_out > 0 && r->report.max_out <= 1, "%s: %g", what, r->report.max_out);
    cr_assert(r->report.max_state > 0 && r->report.max_state <= 1, "%s: %g", what, r->report.max_state);
    cr_assert(r->report.max_dt > 0 && r->report.max_dt <= 1, "%s: %g", what, r->report.max_dt);
}

static const uint32_t activations[] = {RSSM_F32, RSSM_BF16, RSSM_F16};
static const uint32_t checkpoints[] = {RSSM_F32, RSSM_BF16};

Test(verify, accepts_a_correct_kernel_in_every_number_format)
{
    static run r;
    for (int a = 0; a < 3; a++) {
        for (int c = 0; c < 2; c++) {
            const rssm_problem p = small_problem(activations[a], checkpoints[c], 1);
            prepare(&r, &p, RSSM_VERIFY_ALL_TENSORS, FAULT_NONE);
            expect_pass(&r, "correct kernel");
            // The bounds are not slack: fp32 outputs of a correct kernel come within a factor of fifty of them.
            if (activations[a] == RSSM_F32) cr_assert_gt(r.report.max_out, 0.02, "%g", r.report.max_out);
        }
    }
}

Test(verify, accepts_a_correct_kernel_under_every_option)
{
    static run         r;
    const rssm_problem p = small_problem(RSSM_BF16, RSSM_F32, 1);
    for (uint32_t flags = 0; flags <= (RSSM_VERIFY_DENSE | (RSSM_VERIFY_DENSE - 1)); flags++) {
        char what[32];
        snprintf(what, sizeof what, "flags %#x", flags);
        prepare(&r, &p, flags, FAULT_NONE);
        r.request.seed = flags;
        r.request.n_steps = 13;
        expect_pass(&r, what);
    }
}

Test(verify, accepts_correct_kernels_of_several_tokens_and_long_rings)
{
    static run r;
    for (uint32_t T = 1; T <= 4; T++) {
        rssm_problem p = small_problem(RSSM_F16, RSSM_BF16, T);
        p.ring_length = 11;
        for (int packed = 0; packed < 2; packed++) {
            prepare(&r, &p, RSSM_VERIFY_ALL_TENSORS | (packed ? RSSM_VERIFY_PACKED : 0), FAULT_NONE);
            expect_pass(&r, "several tokens");
            cr_assert(r.report.n_wraps > 0 && r.report.n_rejections > 0 && r.report.n_full_folds > 0);
        }
    }
}

Test(verify, accepts_eager_kernels_aligned_buffers_and_a_single_row)
{
    static run         r;
    const rssm_problem p = small_problem(RSSM_F32, RSSM_F32, 1);
    prepare(&r, &p, RSSM_VERIFY_ALL_TENSORS, FAULT_NONE);
    r.request.eager = r.kernels.eager = 1;
    const rssm_status st = go(&r);
    cr_assert_eq(st, RSSM_OK, "%s", r.diag.text);
    cr_assert(r.report.n_appends == 0 && r.report.n_folds > N_STEPS);

    prepare(&r, &p, RSSM_VERIFY_ALL_TENSORS | RSSM_VERIFY_TOKEN_MAJOR, FAULT_NONE);
    r.request.state_align = r.request.ring_align = r.request.activation_align = 16;
    r.request.scratch_bytes_per_row = 40;
    expect_pass(&r, "aligned");

    prepare(&r, &p, RSSM_VERIFY_ALL_TENSORS, FAULT_NONE);
    r.request.n_rows = r.request.n_slots = 1;
    r.request.n_steps = 0;
    cr_assert_eq(go(&r), RSSM_OK, "%s", r.diag.text);
    cr_assert(r.report.n_steps == 2 * p.window + 3 && r.report.n_wraps > 0 && r.report.n_full_folds > 0,
              "steps %u wraps %u folds %u", r.report.n_steps, r.report.n_wraps, r.report.n_full_folds);
}

Test(verify, accepts_a_problem_without_softplus_and_with_16_bit_parameters)
{
    static run   r;
    rssm_problem p = small_problem(RSSM_BF16, RSSM_F32, 1);
    p.dt_softplus = 0;
    p.parameter_dtype = RSSM_BF16;
    p.dt_dtype = RSSM_F32;
    prepare(&r, &p, RSSM_VERIFY_ALL_TENSORS, FAULT_NONE);
    expect_pass(&r, "no softplus");
}

// The record that is dropped is one of 3 to 15, with a head's real number of columns under 16-bit outputs.
Test(verify, finds_a_dropped_record_at_a_real_head_shape)
{
    static const fake_fault faults[] = {FAULT_NONE, FAULT_DROPS_NEWEST_RECORD, FAULT_DROPS_OLDEST_RECORD};
    static run              r;
    rssm_problem            p = small_problem(RSSM_BF16, RSSM_BF16, 1);
    p.n_heads = 2;
    p.n_groups = 1;
    p.head_dim = 16;
    p.state_size = 128;
    p.window = p.ring_length = 16;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        prepare(&r, &p, RSSM_VERIFY_ALL_TENSORS, faults[i]);
        r.request.n_rows = 3;
        r.request.n_steps = 0;
        cr_assert_eq(go(&r), faults[i] ? RSSM_E_WRONG_RESULT : RSSM_OK, "fault %d: %s", faults[i], r.diag.text);
        cr_log_info("%d: out %g state %g dt %g: %s", faults[i], r.report.max_out, r.report.max_state, r.report.max_dt,
                    r.report.failure);
    }
}

Test(verify, compares_every_kth_head_and_still_every_byte)
{
    static run         r;
    const rssm_problem p = small_problem(RSSM_F32, RSSM_F32, 1);
    uint64_t           n_out;
    prepare(&r, &p, RSSM_VERIFY_ALL_TENSORS, FAULT_NONE);
    expect_pass(&r, "all heads");
    n_out = r.report.n_out;
    prepare(&r, &p, RSSM_VERIFY_ALL_TENSORS, FAULT_NONE);
    r.request.head_stride = 2;
    expect_pass(&r, "every second head");
    cr_assert_eq(r.report.n_out * 2, n_out);
    prepare(&r, &p, RSSM_VERIFY_ALL_TENSORS, FAULT_SKIPS_LAST_HEAD);
    r.request.head_stride = 4;
    cr_assert_eq(go(&r), RSSM_E_WRONG_RESULT);
}

Test(verify, traffic_covers_what_it_should)
{
    static run         r;
    const rssm_problem p = small_problem(RSSM_BF16, RSSM_BF16, 1);
    prepare(&r, &p, RSSM_VERIFY_ALL_TENSORS, FAULT_NONE);
    expect_pass(&r, "coverage");
    const rssm_verify_report *c = &r.report;
    cr_assert(c->n_appends > 50 && c->n_folds > 20 && c->n_full_folds > 10 && c->n_forced > 0 && c->n_wraps > 10 &&
                  c->n_idle > 0 && c->n_null > 10 && c->n_resets > 3 && c->n_rejections > 0,
              "appends %u folds %u full %u forced %u wraps %u idle %u null %u resets %u rejections %u", c->n_appends,
              c->n_folds, c->n_full_folds, c->n_forced, c->n_wraps, c->n_idle, c->n_null, c->n_resets, c->n_rejections);
}

static const struct mutant {
    fake_fault  fault;
    const char *says;            // part of the sentence
    bool        only_f32_state;  // the fault is none, or within the bound, for a 16-bit checkpoint
    bool        only_f32_output; // hidden by the rounding of 16-bit outputs
} mutants[] = {
    {FAULT_WRITES_NOTHING, "(it was not written)", false, false},
    {FAULT_SKIPS_LAST_HEAD, "head 3: out of token 0, element 0", false, false},
    {FAULT_DROPS_NEWEST_RECORD, ": out of token 0", false, false},
    {FAULT_DROPS_OLDEST_RECORD, ": out of token 0", false, false},
    {FAULT_MANY_ULPS, ": state of row", false, false},
    {FAULT_WRITES_GAP, "state was written where nothing may write: the gap after slot 0", false, false},
    {FAULT_WRITES_GUARD, "out was written where nothing may write: the guard zone 1 bytes before", false, false},
    {FAULT_WRITES_INPUT, "C was written where nothing may write: token 0", false, false},
    {FAULT_WRITES_DESCRIPTOR, "descriptors was written where nothing may write: entry 0", false, false},
    {FAULT_WRITES_STATE_OF_NULL_ROW, "slot 0", false, false},
    {FAULT_SKIPS_NULL_ROWS, "is null, but out of its token 0, head 0, element 0 is not zero (it was not", false, false},
    {FAULT_SKIPS_IDLE_ROWS, "is idle, but out of its token 0, head 0, element 0 is not zero (it was not", false, false},
    {FAULT_READS_DEAD_RECORD, "nan, want", false, false},
    {FAULT_READS_FOLDED_RECORD, "nan, want", false, false},
    {FAULT_READS_NULL_INPUT, "is null, but out of its token 0, head 0, element 0 is not zero", false, false},
    {FAULT_APPENDS_ELSEWHERE, "record 0, element 0 is ", false, false},
    {FAULT_APPENDS_AFTER_FOLD, "ring was written where nothing may write: slot", false, false},
    {FAULT_APPENDS_RAW_DT, ": processed dt of record", false, false},
    {FAULT_ROUNDS_WEIGHTS, ": state of row", false, false},
    {FAULT_ROUNDS_READOUT, ": out of token 0", true, true},
    {FAULT_READS_ROUNDED_STATE, ": out of token 0", false, true},
    {FAULT_IGNORES_SLOT_STRIDE, ": out of token 0", false, false},
    {FAULT_IGNORES_WRAP, "start 4", false, false},
    {FAULT_IGNORES_GATE, ": out of token 0", false, false},
    {FAULT_IGNORES_BIAS, ": ", false, false},
    {FAULT_LOGARITHM_OF_SUM, ": processed dt of record", false, false},
    {FAULT_STATE_STAYS, ": state of row 0, element 0", false, false},
    {FAULT_KEEPS_OLD_RECORDS, "wants {slot", false, false},
    {FAULT_IGNORES_FORCED, "mode", false, false},
    {FAULT_IGNORES_ACCEPTED, "wants {slot", false, false},
    {FAULT_FOLDS_LAST, "stands behind one that does not", false, false},
    {FAULT_LOSES_POSITION, "pos", false, false},
};

Test(verify, rejects_every_mutant_with_a_telling_sentence)
{
    static run r;
    for (size_t m = 0; m < sizeof mutants / sizeof mutants[0]; m++) {
        for (int a = 0; a < 3; a++) {
            for (int c = 0; c < 2; c++) {
                if (mutants[m].only_f32_output && activations[a] != RSSM_F32) continue;
                if (mutants[m].only_f32_state && checkpoints[c] != RSSM_F32) continue;
                if (mutants[m].fault == FAULT_READS_ROUNDED_STATE && checkpoints[c] == RSSM_F32) continue;
                const rssm_problem p = small_problem(activations[a], checkpoints[c], 1);
                prepare(&r, &p, RSSM_VERIFY_ALL_TENSORS, mutants[m].fault);
                cr_assert_eq(go(&r), RSSM_E_WRONG_RESULT, "fault %d, types %d %d passed: out %g state %g dt %g",
                             mutants[m].fault, a, c, r.report.max_out, r.report.max_state, r.report.max_dt);
                cr_log_info("%d %d %d: %s", mutants[m].fault, a, c, r.report.failure);
                cr_expect(strstr(r.report.failure, mutants[m].says), "fault %d, types %d %d: \"%s\" lacks \"%s\"",
                          mutants[m].fault, a, c, r.report.failure, mutants[m].says);
                cr_expect(strstr(r.diag.text, r.report.failure) && r.diag.code == RSSM_E_WRONG_RESULT);
            }
        }
    }
}

// A few ulp in an fp32 checkpoint are what fp32 arithmetic in another order costs.
Test(verify, lets_a_few_ulp_of_an_fp32_checkpoint_pass)
{
    static run         r;
    const rssm_problem p = small_problem(RSSM_F32, RSSM_F32, 1);
    prepare(&r, &p, RSSM_VERIFY_ALL_TENSORS, FAULT_FEW_ULPS);
    expect_pass(&r, "4 ulp");
}

Test(verify, finds_a_write_through_slot_zero_only_where_it_is_live)
{
    static run         r;
    const rssm_problem p = small_problem(RSSM_F32, RSSM_F32, 1);
    prepare(&r, &p, RSSM_VERIFY_ALL_TENSORS | RSSM_VERIFY_PAD_ZERO, FAULT_WRITES_STATE_OF_NULL_ROW);
    cr_assert_eq(go(&r), RSSM_E_WRONG_RESULT);
    cr_assert(strstr(r.report.failure, "state was written where nothing may write: slot 0"), "%s", r.report.failure);
}

Test(verify, refuses_requests_that_make_no_sense)
{
    static run         r;
    const rssm_problem p = small_problem(RSSM_F32, RSSM_F32, 1);
    prepare(&r, &p, RSSM_VERIFY_PAD_ZERO, FAULT_NONE);
    r.request.n_slots = N_ROWS;
    cr_assert_eq(go(&r), RSSM_E_INVALID_ARGUMENT);
    cr_assert(strstr(r.diag.text, "at least 6 slots"), "%s", r.diag.text);
    prepare(&r, &p, 0, FAULT_NONE);
    r.request.cursors = NULL;
    cr_assert_eq(go(&r), RSSM_E_INVALID_ARGUMENT);
    prepare(&r, &p, 0, FAULT_NONE);
    r.request.ring_align = 24;
    cr_assert_eq(go(&r), RSSM_E_INVALID_ARGUMENT);
    prepare(&r, &p, 0, FAULT_NONE);
    r.kernels.problem.recurrence = RSSM_GDN;
    cr_assert_neq(go(&r), RSSM_OK);
}

Test(verify, survives_every_failed_allocation)
{
    static run         r;
    const rssm_problem p = small_problem(RSSM_F32, RSSM_F32, 1);
    int                n_failures = 0;
    for (long nth = 1; nth < 1000; nth++) {
        prepare(&r, &p, RSSM_VERIFY_ALL_TENSORS, FAULT_NONE);
        r.request.n_steps = 1;
        rssm_alloc_fail_after(nth);
        const rssm_status st = go(&r);
        if (!rssm_alloc_fail_after(0)) break;
        n_failures++;
        cr_assert_eq(st, RSSM_E_NO_MEMORY, "allocation %ld: %s", nth, r.diag.text);
    }
    cr_assert_gt(n_failures, 40);
}
