// The traffic that steps are timed on, seen by a step kernel that only takes notes: what the timed launches meet must
// be the long run of the traffic model, in every sample.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/problem.h"
#include "runtime/builtin.h"
#include "runtime/cuda_kernel.h"
#include "runtime/group.h"
#include "templates/abi/advance.h"
#include "templates/abi/mamba2_step.h"
#include "tests/support/fake_cuda.h"
#include "tuner/workload.h"

enum { MOST_SLOTS = 1 << 16, MOST_T = 16, MOST_R = 128, ADVANCE_NS = 700000, STEP_NS = 5000 };

// What the recording kernel noted.
static struct {
    uint64_t n_launches, n_rows, n_folds, n_records, n_wrong;
    uint64_t n_pairs[MOST_T + 1][MOST_T + 1]; // by the last count and the one before; 0: not known
    uint64_t n_starts[MOST_R];
    uint64_t last[MOST_SLOTS]; // pos + h of the slot when it was met last, and 1; 0: not met yet
    uint8_t  kept[MOST_SLOTS]; // since the time before
} notes;

static void record_step(const void *args, rssm_i64 task)
{
    const rssm_mamba2_step_kernel_args *a = args;
    (void)task;
    notes.n_launches++;
    for (rssm_i32 i = 0; i < a->n_rows; i++) {
        const rssm_descriptor *d = &a->descriptors[i];
        if (d->slot < 0 || d->slot >= MOST_SLOTS || d->t != a->max_tokens || d->token % a->max_tokens != 0) {
            notes.n_wrong++;
            continue;
        }
        const uint64_t kept = notes.last[d->slot] ? d->pos + (uint64_t)d->h + 1 - notes.last[d->slot] : 0;
        notes.n_rows++;
        notes.n_folds += d->mode == RSSM_MODE_FOLD_HISTORY || d->mode == RSSM_MODE_FOLD_ALL;
        notes.n_records += (uint64_t)d->h;
        notes.n_wrong += kept > (uint64_t)a->max_tokens;
        notes.n_starts[d->start]++;
        notes.last[d->slot] = d->pos + (uint64_t)d->h + 1;
        if (kept == 0 || kept > MOST_T) continue; // the launch was repeated
        notes.n_pairs[kept][notes.kept[d->slot]]++;
        notes.kept[d->slot] = (uint8_t)kept;
    }
}

static rssm_problem small_problem(uint32_t window, uint32_t max_tokens)
{
    rssm_problem p = RSSM_PROBLEM_INIT, normal;

    p.n_heads = 8;
    p.n_groups = 2;
    p.head_dim = 32;
    p.state_size = 64;
    p.window = window;
    p.max_tokens = max_tokens;
    cr_assert_eq(rssm_problem_normalise(&p, &normal, NULL), RSSM_OK);
    return normal;
}

static void record_twin(const void *args, const fake_cuda_launch *launch, void *user)
{
    (void)launch, (void)user;
    record_step(args, 0);
}

static void advance_twin(const void *args, const fake_cuda_launch *launch, void *user)
{
    (void)launch, (void)user;
    rssm_builtin_find("advance", RSSM_F32, RSSM_F32)(args, 0);
}

// A group on a workload's cursors whose step takes notes.
typedef struct bench {
    rssm_context  *context;
    rssm_workload *workload;
    rssm_kernel    advance, step;
    rssm_plan     *plan;
    rssm_group     group;
} bench;

static void load_on_cpu(bench *b)
{
    rssm_kernel_wrap_builtin(rssm_builtin_find("advance", RSSM_F32, RSSM_F32), &b->advance);
    rssm_kernel_wrap_builtin(record_step, &b->step);
    b->advance.geometry.grid[0].constant = b->step.geometry.grid[0].constant = 1;
    b->step.geometry.align_state = b->step.geometry.align_rings = b->step.geometry.align_activations = 1;
}

static void load_on_gpu(bench *b)
{
    const rssm_geometry geometry = {.grid = {{1, 0}, {1, 0}, {1, 0}},
                                    .block = {32, 1, 1},
                                    .align_state = 1,
                                    .align_rings = 1,
                                    .align_activations = 1};
    char                cubin[1024];
    rssm_diag           diag = {0};
    const size_t        n = fake_cuda_cubin("sm_90a", "advance,record", cubin, sizeof cubin);

    fake_cuda_register(&(fake_cuda_kernel){
        .entry = "advance", .args_bytes = sizeof(rssm_advance_kernel_args), .run = advance_twin, .ns = ADVANCE_NS});
    fake_cuda_register(&(fake_cuda_kernel){
        .entry = "record", .args_bytes = sizeof(rssm_mamba2_step_kernel_args), .run = record_twin, .ns = STEP_NS});
    cr_assert_eq(rssm_cuda_kernel_load(b->group.device, cubin, n, "advance", &geometry,
                                       sizeof(rssm_advance_kernel_args), &b->advance, &diag),
                 RSSM_OK, "%s", diag.text);
    cr_assert_eq(rssm_cuda_kernel_load(b->group.device, cubin, n, "record", &geometry,
                                       sizeof(rssm_mamba2_step_kernel_args), &b->step, &diag),
                 RSSM_OK, "%s", diag.text);
}

// RSSM_CUDA needs a fake that is installed.
static void bench_open(bench *b, rssm_backend backend, const rssm_problem *problem, uint32_t max_rows,
                       uint64_t memory_limit)
{
    rssm_context_options o = RSSM_CONTEXT_OPTIONS_INIT;
    rssm_diag            diag = {0};

    memset(b, 0, sizeof *b);
    o.database = "/nonexistent/replayssm/tuned.db";
    cr_assert_eq(rssm_context_open(&o, &b->context, &diag), RSSM_OK, "%s", diag.text);
    const uint32_t device = backend == RSSM_CUDA ? 0 : b->context->n_devices - 1;
    cr_assert_eq(b->context->devices[device].info.backend, (uint32_t)backend);
    cr_assert_eq(rssm_workload_create(b->context, device, problem, max_rows, memory_limit, &b->workload, &diag),
                 RSSM_OK, "%s", diag.text);
    const rssm_group_options options = rssm_workload_group_options(b->workload);
    b->plan = rssm_calloc(1, sizeof *b->plan);
    b->group = (rssm_group){
        .context = b->context,
        .device = &b->context->devices[device],
        .backend = backend,
        .pool = b->context->pool,
        .window = {(rssm_i32)problem->window, (rssm_i32)problem->ring_length, (rssm_i32)problem->max_tokens, 0},
        .n_buckets = rssm_bucket_index(max_rows) + 1,
        .max_rows = max_rows,
        .n_slots = options.n_slots,
        .cursors = options.cursors,
        .advance = &b->advance,
        .n_plans = 1,
        .plans = b->plan,
    };
    cr_assert_leq(options.n_slots, MOST_SLOTS);
    b->plan->group = &b->group;
    b->plan->problem = *problem;
    for (uint32_t i = 0; i < b->group.n_buckets; i++)
        b->plan->buckets[i].kernel = &b->step;
    if (backend == RSSM_CUDA) {
        load_on_gpu(b);
    } else {
        load_on_cpu(b);
    }
}

static void bench_close(bench *b)
{
    if (b->group.backend == RSSM_CUDA) {
        rssm_cuda_kernel_unload(b->group.device, &b->advance);
        rssm_cuda_kernel_unload(b->group.device, &b->step);
    }
    rssm_free(b->plan);
    rssm_workload_destroy(b->workload);
    rssm_context_close(b->context);
}

// A fresh run's first samples.
static void take_samples(bench *b, uint32_t n_rows, int n_samples)
{
    rssm_run *run;
    rssm_diag diag = {0};
    double    ns;

    memset(&notes, 0, sizeof notes);
    cr_assert_eq(rssm_run_create(b->workload, &b->group, n_rows, 0, &run, &diag), RSSM_OK, "%s", diag.text);
    for (int i = 0; i < n_samples; i++) {
        cr_assert_eq(rssm_run_sample(run, &ns, &diag), RSSM_OK, "%s", diag.text);
        cr_assert(ns > 0 && isfinite(ns));
    }
    rssm_run_destroy(run);
    cr_assert_eq(notes.n_wrong, 0u);
}

// The model's traffic within `share_tolerance` of the folds, and a quarter of a record.
static void expect_traffic(const rssm_problem *p, uint32_t n_rows, double share_tolerance)
{
    const rssm_spec_traffic t = rssm_problem_spec_traffic(p, 0);
    const double            n = (double)notes.n_rows, folds = (double)notes.n_folds / n;
    const double            records = (double)notes.n_records / n;

    cr_expect(fabs(folds / t.fold_share - 1) < share_tolerance, "L %u T %u batch %u: %.4f of the steps fold, not %.4f",
              p->window, p->max_tokens, n_rows, folds, t.fold_share);
    cr_expect(fabs(records - t.records) < 0.25, "L %u T %u batch %u: %.3f records, not %.3f", p->window, p->max_tokens,
              n_rows, records, t.records);
}

Test(workload, one_token_per_step_folds_once_per_window)
{
    const rssm_problem p = small_problem(16, 1);
    bench              b;

    bench_open(&b, RSSM_CPU, &p, 8, 0);
    take_samples(&b, 8, 3);
    cr_expect_eq(notes.n_folds * 16, notes.n_rows, "%llu of %llu", (unsigned long long)notes.n_folds,
                 (unsigned long long)notes.n_rows);
    cr_expect_eq(notes.n_records * 2, notes.n_rows * 15);
    bench_close(&b);
}

Test(workload, several_tokens_per_step_meet_the_long_run)
{
    static const struct {
        uint32_t window, T, batch;
    } cases[] = {{16, 4, 1}, {16, 4, 64}, {16, 8, 7}, {16, 2, 32}, {16, 16, 4}, {64, 5, 16}, {7, 3, 8}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const rssm_problem p = small_problem(cases[i].window, cases[i].T);
        bench              b;
        bench_open(&b, RSSM_CPU, &p, cases[i].batch, 0);
        take_samples(&b, cases[i].batch, 4);
        expect_traffic(&p, cases[i].batch, 0.02);
        bench_close(&b);
    }
}

// Where memory allows no more than a batch, a sample makes up for it by passes.
Test(workload, few_slots_meet_the_long_run_too)
{
    const rssm_problem    p = small_problem(16, 4);
    const uint64_t        slot = 100 << 10; // more than a slot, less than two
    static const uint32_t batches[] = {1, 3, 20};

    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        bench b;
        bench_open(&b, RSSM_CPU, &p, batches[i], batches[i] * slot);
        cr_assert_eq(b.group.n_slots, batches[i]);
        take_samples(&b, batches[i], 1);
        cr_expect_geq(notes.n_rows, 512u);
        expect_traffic(&p, batches[i], 0.08);
        bench_close(&b);
    }
}

Test(workload, every_count_is_accepted_equally_often_whatever_was_before)
{
    const rssm_problem p = small_problem(16, 4);
    bench              b;
    uint64_t           n = 0;

    bench_open(&b, RSSM_CPU, &p, 16, 0);
    take_samples(&b, 16, 8);
    for (int a = 1; a <= 4; a++)
        for (int before = 1; before <= 4; before++)
            n += notes.n_pairs[a][before];
    cr_assert_gt(n, 4000u);
    for (int a = 1; a <= 4; a++)
        for (int before = 1; before <= 4; before++)
            cr_expect_float_eq((double)notes.n_pairs[a][before] / (double)n, 1.0 / 16, 0.01,
                               "%d after %d: %llu of %llu", a, before, (unsigned long long)notes.n_pairs[a][before],
                               (unsigned long long)n);
    for (uint32_t start = 0; start < p.ring_length; start++)
        cr_expect_gt(notes.n_starts[start], 0u, "no ring begins at %u", start);
    bench_close(&b);
}

// Candidates are compared on the same steps: a run depends on nothing that ran before it.
Test(workload, every_run_meets_the_same_traffic)
{
    const rssm_problem p = small_problem(16, 8);
    bench              b;
    uint64_t           first[64];

    bench_open(&b, RSSM_CPU, &p, 32, 0);
    take_samples(&b, 32, 2);
    memcpy(first, notes.last, sizeof first);
    take_samples(&b, 32, 3);
    take_samples(&b, 32, 2);
    cr_expect_arr_eq(first, notes.last, sizeof first);
    bench_close(&b);
}

// The same on a GPU, where steps are replayed from a graph: the advances, which differ each time, are not in it.
Test(workload, graphs_meet_the_long_run_and_hold_steps_only)
{
    static const struct {
        uint32_t T, batch;
    } cases[] = {{4, 1}, {4, 256}, {8, 16}, {1, 8}};
    const fake_cuda_gpu gpus[] = {FAKE_CUDA_H200};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const rssm_problem p = small_problem(16, cases[i].T);
        rssm_run          *run;
        rssm_diag          diag = {0};
        double             ns;
        bench              b;
        unsetenv("RSSM_DEVICE");
        fake_cuda_install(gpus, 1);
        bench_open(&b, RSSM_CUDA, &p, cases[i].batch, 0);
        take_samples(&b, cases[i].batch, 3);
        if (p.max_tokens > 1) {
            expect_traffic(&p, cases[i].batch, 0.02);
        } else {
            cr_expect_eq(notes.n_folds * 16, notes.n_rows);
        }
        cr_assert_eq(rssm_run_create(b.workload, &b.group, cases[i].batch, 0, &run, &diag), RSSM_OK, "%s", diag.text);
        cr_expect_eq(rssm_run_sample(run, &ns, &diag), RSSM_OK, "%s", diag.text);
        cr_expect_float_eq(ns, STEP_NS, 1, "T %u batch %u: %g ns", p.max_tokens, cases[i].batch, ns);
        cr_expect_eq(rssm_run_advance_ns(run, &ns, &diag), RSSM_OK, "%s", diag.text);
        cr_expect_float_eq(ns, ADVANCE_NS, 1, "T %u batch %u: %g ns", p.max_tokens, cases[i].batch, ns);
        rssm_run_destroy(run);
        bench_close(&b);
        cr_expect_str_eq(fake_cuda_leaks(), "");
        cr_expect_str_eq(fake_cuda_violation(), "");
        fake_cuda_remove();
    }
}
