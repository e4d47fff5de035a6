// Launches on a workload and their times. See workload.h.
#include <math.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "runtime/cuda_memory.h"
#include "runtime/memory.h"
#include "tuner/statistics.h"
#include "tuner/workload_parts.h"

enum {
    SAMPLE_MIN_NS = 10000000,      // of timed work in one sample on the CPU
    GRAPH_SAMPLE_MIN_NS = 3000000, // on a GPU, whose times are steadier
    GRAPH_MIN_LAUNCHES = 20,       // per graph, so that event resolution does not matter
    SPEC_SAMPLE_MIN_ROWS = 512,    // T > 1: that the share of folds in a sample is the long run's
    MAX_PASSES = 4096,
    TRAFFIC_SEED = 17,
};

struct rssm_run {
    rssm_workload    *workload;
    const rssm_group *group;
    const rssm_plan  *plan;
    uint32_t          n_rows, n_sets;    // a pass is n_sets launches of n_rows
    uint32_t          passes_per_sample; // for a production share of folds
    uint32_t          repeats;           // passes timed per pass that counts, for short ones; 0: not known yet
    uint64_t          random;            // of the traffic: the same for every run
    rssm_cuda_graph  *graph;             // GPU only
    uint32_t          graph_launches;
};

static rssm_step_args step_args(const rssm_run *run, uint32_t set)
{
    const rssm_workload *w = run->workload;
    const rssm_problem  *p = &w->problem;
    const rssm_layout   *l = &w->layout;
    const int64_t        H = p->n_heads, P = p->head_dim, G = p->n_groups, N = p->state_size;
    rssm_step_args       a = RSSM_STEP_ARGS_INIT;

    a.n_rows = run->n_rows;
    a.descriptors = (rssm_descriptor *)w->buffers[RSSM_WORKLOAD_DESCRIPTORS] + (size_t)set * run->n_rows;
    a.x = (rssm_token_tensor){w->buffers[RSSM_WORKLOAD_X], H * P, P};
    a.B = (rssm_token_tensor){w->buffers[RSSM_WORKLOAD_B], G * N, N};
    a.C = (rssm_token_tensor){w->buffers[RSSM_WORKLOAD_C], G * N, N};
    a.dt = (rssm_token_tensor){w->buffers[RSSM_WORKLOAD_DT], H, 1};
    a.out = (rssm_token_tensor){w->buffers[RSSM_WORKLOAD_OUT], H * P, P};
    a.A = w->buffers[RSSM_WORKLOAD_A];
    a.D = w->buffers[RSSM_WORKLOAD_D];
    a.dt_bias = w->buffers[RSSM_WORKLOAD_BIAS];
    a.state = (rssm_state_tensor){w->buffers[RSSM_WORKLOAD_STATE], l->state_slot_stride};
    a.x_ring =
        (rssm_ring_tensor){w->buffers[RSSM_WORKLOAD_X_RING], l->x_slot_stride, l->x_head_stride, l->x_record_stride};
    a.B_ring =
        (rssm_ring_tensor){w->buffers[RSSM_WORKLOAD_B_RING], l->B_slot_stride, l->B_head_stride, l->B_record_stride};
    a.dt_ring = (rssm_ring_tensor){w->buffers[RSSM_WORKLOAD_DT_RING], l->dt_slot_stride, l->dt_head_stride,
                                   l->dt_record_stride};
    return a;
}

static rssm_status advance_set(const rssm_run *run, uint32_t set, void *stream)
{
    const rssm_workload *w = run->workload;
    rssm_advance_args    a = RSSM_ADVANCE_ARGS_INIT;
    a.n_rows = run->n_rows;
    if (w->problem.max_tokens > 1)
        a.accepted = (int32_t *)w->buffers[RSSM_WORKLOAD_ACCEPTED] + (size_t)set * run->n_rows;
    a.slots = (int32_t *)w->buffers[RSSM_WORKLOAD_SLOTS] + (size_t)set * run->n_rows;
    a.descriptors = (rssm_descriptor *)w->buffers[RSSM_WORKLOAD_DESCRIPTORS] + (size_t)set * run->n_rows;
    return rssm_advance(run->group, &a, stream);
}

static rssm_status launch_failed(rssm_status st, rssm_diag *diag)
{
    return RSSM_FAIL(diag, st, "a launch failed while timing: %s", rssm_status_text(st));
}

static rssm_status capture(rssm_run *run, rssm_diag *diag)
{
    rssm_status st;
    void       *stream;

    st = rssm_cuda_graph_begin(run->workload->device, &run->graph, &stream, diag);
    if (st != RSSM_OK) return st;
    run->graph_launches = (GRAPH_MIN_LAUNCHES + run->n_sets - 1) / run->n_sets * run->n_sets;
    for (uint32_t i = 0; i < run->graph_launches; i++) {
        const rssm_step_args args = step_args(run, i % run->n_sets);
        if ((st = rssm_step(run->plan, &args, stream)) != RSSM_OK) return launch_failed(st, diag);
    }
    return rssm_cuda_graph_end(run->graph, diag);
}

// Passes over n slots that hold the production share of folds.
static uint32_t passes_per_sample(const rssm_problem *problem, uint32_t n, int eager)
{
    if (problem->max_tokens > 1) return (SPEC_SAMPLE_MIN_ROWS + n - 1) / n;
    return eager || n % problem->window == 0 ? 1 : problem->window;
}

rssm_status rssm_run_create(rssm_workload *workload, const rssm_group *group, uint32_t n_rows, int eager,
                            rssm_run **out_run, rssm_diag *diag)
{
    rssm_status st = RSSM_OK;
    rssm_run   *run = rssm_calloc(1, sizeof *run);

    if (run == NULL) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a run");
    run->workload = workload;
    run->group = group;
    run->plan = rssm_group_plan(group, 0);
    run->n_rows = n_rows;
    run->n_sets = rssm_workload_slots_for(workload, n_rows, rssm_workload_bytes(workload)) / n_rows;
    run->passes_per_sample = passes_per_sample(&workload->problem, run->n_sets * n_rows, eager);
    run->random = TRAFFIC_SEED;
    RSSM_TRY(rssm_workload_set_phases(workload, eager, &run->random, diag));
    if (workload->problem.max_tokens > 1)
        RSSM_TRY(rssm_workload_draw_accepted(workload, run->n_sets * n_rows, &run->random, diag));
    if (workload->device->info.backend == RSSM_CUDA) RSSM_TRY(capture(run, diag));
    *out_run = run;
    run = NULL;
done:
    rssm_run_destroy(run);
    return st;
}

void rssm_run_destroy(rssm_run *run)
{
    if (run == NULL) return;
    rssm_cuda_graph_destroy(run->graph);
    rssm_free(run);
}

// Times `repeats` passes on the CPU, or graph replays on a GPU; nanoseconds of all of it and the launches in it.
static rssm_status time_pass(rssm_run *run, uint32_t repeats, double *out_ns, uint32_t *out_launches, rssm_diag *diag)
{
    rssm_status st;
    if (run->graph != NULL) {
        double ns = 0.0, one;
        for (uint32_t r = 0; r < repeats; r++) {
            if ((st = rssm_cuda_graph_time(run->graph, &one, diag)) != RSSM_OK) return st;
            ns += one;
        }
        *out_ns = ns;
        *out_launches = repeats * run->graph_launches;
        return RSSM_OK;
    }
    const uint64_t begin = rssm_now_ns();
    for (uint32_t i = 0; i < repeats * run->n_sets; i++) {
        const rssm_step_args args = step_args(run, i % run->n_sets);
        if ((st = rssm_step(run->plan, &args, NULL)) != RSSM_OK) return launch_failed(st, diag);
    }
    *out_ns = (double)(rssm_now_ns() - begin);
    *out_launches = repeats * run->n_sets;
    return RSSM_OK;
}

// The accepted counts are the next advance's: nothing is drawn while a step is timed.
static rssm_status advance_all(rssm_run *run, rssm_diag *diag)
{
    rssm_status st;
    if (run->workload->problem.max_tokens > 1) {
        st = rssm_workload_draw_accepted(run->workload, run->n_sets * run->n_rows, &run->random, diag);
        if (st != RSSM_OK) return st;
    }
    for (uint32_t set = 0; set < run->n_sets; set++)
        if ((st = advance_set(run, set, NULL)) != RSSM_OK) return launch_failed(st, diag);
    return rssm_device_synchronise(run->workload->context, run->workload->device_index, diag);
}

rssm_status rssm_run_sample(rssm_run *run, double *out_step_ns, rssm_diag *diag)
{
    double      total_ns = 0.0, ns;
    uint64_t    total_launches = 0;
    uint32_t    launches;
    rssm_status st;

    if (run->repeats == 0) { // the first pass warms up and says how long one is
        if ((st = advance_all(run, diag)) != RSSM_OK) return st;
        if ((st = time_pass(run, 1, &ns, &launches, diag)) != RSSM_OK) return st;
        const double least = run->graph != NULL ? GRAPH_SAMPLE_MIN_NS : SAMPLE_MIN_NS;
        const double wanted = least / (ns * run->passes_per_sample);
        run->repeats = wanted < 1.0 ? 1 : wanted > MAX_PASSES ? MAX_PASSES : (uint32_t)ceil(wanted);
    }
    for (uint32_t pass = 0; pass < run->passes_per_sample; pass++) {
        if ((st = advance_all(run, diag)) != RSSM_OK) return st;
        if ((st = time_pass(run, run->repeats, &ns, &launches, diag)) != RSSM_OK) return st;
        total_ns += ns;
        total_launches += launches;
    }
    *out_step_ns = total_ns / (double)total_launches;
    return RSSM_OK;
}

rssm_status rssm_run_advance_ns(rssm_run *run, double *out_ns, rssm_diag *diag)
{
    enum { SAMPLES = 31, LAUNCHES = 32 };
    const rssm_workload *w = run->workload;
    double               samples[SAMPLES];
    rssm_cuda_graph     *graph = NULL;
    void                *stream = NULL;
    rssm_status          st = RSSM_OK;

    if (w->device->info.backend == RSSM_CUDA) {
        RSSM_TRY(rssm_cuda_graph_begin(w->device, &graph, &stream, diag));
        for (uint32_t i = 0; i < LAUNCHES; i++)
            if ((st = advance_set(run, i % run->n_sets, stream)) != RSSM_OK) {
                st = launch_failed(st, diag);
                goto done;
            }
        RSSM_TRY(rssm_cuda_graph_end(graph, diag));
    }
    for (int s = 0; s < SAMPLES; s++) {
        if (graph != NULL) {
            RSSM_TRY(rssm_cuda_graph_time(graph, &samples[s], diag));
        } else {
            const uint64_t begin = rssm_now_ns();
            for (uint32_t i = 0; i < LAUNCHES && st == RSSM_OK; i++)
                st = advance_set(run, i % run->n_sets, NULL);
            samples[s] = (double)(rssm_now_ns() - begin);
        }
        samples[s] /= LAUNCHES;
    }
    *out_ns = rssm_statistics_of(samples, SAMPLES).median;
done:
    rssm_cuda_graph_destroy(graph);
    return st;
}
