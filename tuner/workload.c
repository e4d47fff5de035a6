// See workload.h.
#include "tuner/workload.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/dtype.h"
#include "base/problem.h"
#include "runtime/context.h"
#include "runtime/cuda_memory.h"
#include "runtime/memory.h"
#include "templates/abi/cursor.h"
#include "tuner/oracle/number_format.h"
#include "tuner/statistics.h"

enum {
    COLD_FACTOR = 2,          // slots hold at least this many times the last-level cache
    SAMPLE_MIN_NS = 10000000,        // of timed work in one sample on the CPU
    GRAPH_SAMPLE_MIN_NS = 3000000,   // on a GPU, whose times are steadier
    GRAPH_MIN_LAUNCHES = 20,  // per graph, so that event resolution does not matter
    PATTERN_VALUES = 1 << 18, // random values that fill the big buffers again and again
    MAX_PASSES = 4096,
};

// What fills a buffer.
typedef enum fill { FILL_NORMAL, FILL_DT, FILL_A, FILL_UNIT, FILL_ZERO } fill;

enum { STATE, X_RING, B_RING, DT_RING, CURSORS, DESCRIPTORS, SLOTS, X, B, C, DT, OUT, A, D, BIAS, N_BUFFERS };

struct rssm_workload {
    rssm_context      *context;
    const rssm_device *device;
    uint32_t           device_index;
    rssm_problem       problem;
    rssm_layout        layout;
    uint32_t           n_slots, max_rows;
    uint64_t           random;
    int32_t           *slots;              // [n_slots] host copy of the order of slots
    void              *buffers[N_BUFFERS]; // on the device
};

struct rssm_run {
    rssm_workload    *workload;
    const rssm_group *group;
    const rssm_plan  *plan;
    uint32_t          n_rows, n_sets;    // a pass is n_sets launches of n_rows
    uint32_t          passes_per_sample; // for a production share of folds
    uint32_t          repeats;           // passes timed per pass that counts, for short ones; 0: not known yet
    rssm_cuda_graph  *graph;             // GPU only
    uint32_t          graph_launches;
};

static uint64_t next_random(rssm_workload *w)
{
    w->random += 0x9e3779b97f4a7c15u; // splitmix64
    uint64_t z = w->random;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double uniform(rssm_workload *w)
{
    return ((double)(next_random(w) >> 11) + 0.5) * 0x1p-53;
}

static double draw(rssm_workload *w, fill kind)
{
    switch (kind) {
    case FILL_NORMAL:
        return sqrt(-2.0 * log(uniform(w))) * cos(6.283185307179586 * uniform(w));
    case FILL_DT:
        return 0.001 + 0.1 * uniform(w);
    case FILL_A:
        return -(1.0 + 15.0 * uniform(w));
    case FILL_UNIT:
        return uniform(w);
    case FILL_ZERO:
        return 0.0;
    }
    return 0.0;
}

// Fills a device buffer with random values of a dtype, repeating one pattern.
static rssm_status fill_buffer(rssm_workload *w, void *to, uint64_t n_bytes, uint32_t dtype, fill kind, rssm_diag *diag)
{
    const size_t width = rssm_dtype_bytes(dtype);
    size_t       n = (size_t)(n_bytes / width) < PATTERN_VALUES ? (size_t)(n_bytes / width) : PATTERN_VALUES;
    rssm_status  st = RSSM_OK;
    uint8_t     *pattern = rssm_alloc(n * width + width);

    if (pattern == NULL) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a workload");
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = rssm_oracle_bits(dtype, draw(w, kind));
        memcpy(pattern + i * width, &bits, width);
    }
    for (uint64_t at = 0; at < n_bytes; at += n * width) {
        const uint64_t left = n_bytes - at;
        RSSM_TRY(rssm_memory_upload(w->context, w->device_index, (uint8_t *)to + at, pattern,
                                    left < n * width ? (size_t)left : n * width, diag));
    }
done:
    rssm_free(pattern);
    return st;
}

static uint32_t greatest_common_divisor(uint32_t a, uint32_t b)
{
    while (b != 0) {
        const uint32_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

static uint64_t slot_bytes(const rssm_layout *l)
{
    return l->state_bytes + l->x_ring_bytes + l->B_ring_bytes + l->dt_ring_bytes;
}

// Slots a run of n_rows uses: cold, a multiple of n_rows, and of L too where that is not much more.
static uint32_t slots_for(const rssm_workload *w, uint32_t n_rows, uint64_t limit)
{
    const uint64_t bytes = slot_bytes(&w->layout);
    const uint64_t cold = COLD_FACTOR * w->device->info.cache_bytes / bytes + 1;
    const uint64_t L = w->problem.window;
    const uint64_t even = n_rows / greatest_common_divisor(n_rows, (uint32_t)L) * L; // least common multiple
    const uint64_t with_phases = (cold + even - 1) / even * even;
    const uint64_t without = (cold + n_rows - 1) / n_rows * n_rows;
    return (uint32_t)(with_phases * bytes <= limit ? with_phases : without * bytes <= limit ? without : n_rows);
}

static rssm_status size_workload(rssm_workload *w, uint64_t limit, rssm_diag *diag)
{
    const uint64_t bytes = slot_bytes(&w->layout);
    if (w->max_rows * bytes > limit)
        return RSSM_FAIL(diag, RSSM_E_UNSUPPORTED,
                         "a batch of %u needs %.1f GiB for its states and rings, and %.1f GiB may be "
                         "used here; ask for smaller batches",
                         w->max_rows, (double)(w->max_rows * bytes) / 0x1p30, (double)limit / 0x1p30);
    for (uint32_t rows = 1; rows < 2 * w->max_rows; rows *= 2) {
        const uint32_t n = slots_for(w, rows < w->max_rows ? rows : w->max_rows, limit);
        if (n > w->n_slots) w->n_slots = n;
    }
    return RSSM_OK;
}

static rssm_status allocate(rssm_workload *w, rssm_diag *diag)
{
    const rssm_problem *p = &w->problem;
    const rssm_layout  *l = &w->layout;
    const uint64_t      n = w->n_slots, rows = w->max_rows, act = rssm_dtype_bytes(p->activation_dtype);
    const uint32_t      f32 = RSSM_F32;
    const struct {
        uint64_t bytes;
        uint32_t dtype;
        fill     kind;
    } sizes[N_BUFFERS] = {
        [STATE] = {n * l->state_bytes, p->checkpoint_dtype, FILL_NORMAL},
        [X_RING] = {n * l->x_ring_bytes, p->activation_dtype, FILL_NORMAL},
        [B_RING] = {n * l->B_ring_bytes, p->activation_dtype, FILL_NORMAL},
        [DT_RING] = {n * l->dt_ring_bytes, f32, FILL_DT},
        [CURSORS] = {n * sizeof(rssm_cursor), f32, FILL_ZERO},
        [DESCRIPTORS] = {n * sizeof(rssm_descriptor), f32, FILL_ZERO},
        [SLOTS] = {n * sizeof(int32_t), f32, FILL_ZERO},
        [X] = {rows * p->n_heads * p->head_dim * act, p->activation_dtype, FILL_NORMAL},
        [B] = {rows * p->n_groups * p->state_size * act, p->activation_dtype, FILL_NORMAL},
        [C] = {rows * p->n_groups * p->state_size * act, p->activation_dtype, FILL_NORMAL},
        [DT] = {rows * p->n_heads * rssm_dtype_bytes(p->dt_dtype), p->dt_dtype, FILL_UNIT},
        [OUT] = {rows * p->n_heads * p->head_dim * act, p->activation_dtype, FILL_ZERO},
        [A] = {p->n_heads * sizeof(float), f32, FILL_A},
        [D] = {p->n_heads * rssm_dtype_bytes(p->parameter_dtype), p->parameter_dtype, FILL_NORMAL},
        [BIAS] = {p->n_heads * rssm_dtype_bytes(p->parameter_dtype), p->parameter_dtype, FILL_NORMAL},
    };
    rssm_status st;
    for (int i = 0; i < N_BUFFERS; i++) {
        st = rssm_memory_alloc(w->context, w->device_index, (size_t)sizes[i].bytes, &w->buffers[i], diag);
        if (st == RSSM_OK) st = fill_buffer(w, w->buffers[i], sizes[i].bytes, sizes[i].dtype, sizes[i].kind, diag);
        if (st != RSSM_OK) return st;
    }
    return RSSM_OK;
}

// A random order of slots, so that neighbouring rows are not neighbours in memory.
static rssm_status shuffle_slots(rssm_workload *w, rssm_diag *diag)
{
    w->slots = rssm_calloc(w->n_slots, sizeof *w->slots);
    if (w->slots == NULL) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a workload");
    for (uint32_t i = 0; i < w->n_slots; i++)
        w->slots[i] = (int32_t)i;
    for (uint32_t i = w->n_slots - 1; i > 0; i--) {
        const uint32_t j = (uint32_t)(next_random(w) % (i + 1));
        const int32_t  t = w->slots[i];
        w->slots[i] = w->slots[j];
        w->slots[j] = t;
    }
    return rssm_memory_upload(w->context, w->device_index, w->buffers[SLOTS], w->slots, w->n_slots * sizeof *w->slots,
                              diag);
}

rssm_status rssm_workload_create(rssm_context *context, uint32_t device, const rssm_problem *problem, uint32_t max_rows,
                                 uint64_t memory_limit, rssm_workload **out_workload, rssm_diag *diag)
{
    rssm_status    st = RSSM_OK;
    rssm_workload *w = rssm_calloc(1, sizeof *w);

    if (w == NULL) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a workload");
    w->context = context;
    w->device = &context->devices[device];
    w->device_index = device;
    w->max_rows = max_rows;
    w->random = 20261129;
    w->layout = (rssm_layout)RSSM_LAYOUT_INIT;
    RSSM_TRY(rssm_problem_normalise(problem, &w->problem, diag));
    RSSM_TRY(rssm_layout_get(&w->problem, &w->layout, diag));
    RSSM_TRY(size_workload(w, memory_limit ? memory_limit : w->device->info.memory_bytes / 2, diag));
    RSSM_TRY(allocate(w, diag));
    RSSM_TRY(shuffle_slots(w, diag));
    *out_workload = w;
    w = NULL;
done:
    rssm_workload_destroy(w);
    return st;
}

void rssm_workload_destroy(rssm_workload *workload)
{
    if (workload == NULL) return;
    for (int i = 0; i < N_BUFFERS; i++)
        rssm_memory_free(workload->context, workload->device_index, workload->buffers[i]);
    rssm_free(workload->slots);
    rssm_free(workload);
}

const rssm_problem *rssm_workload_problem(const rssm_workload *workload)
{
    return &workload->problem;
}

uint64_t rssm_workload_bytes(const rssm_workload *workload)
{
    return workload->n_slots * slot_bytes(&workload->layout);
}

rssm_group_options rssm_workload_group_options(const rssm_workload *workload)
{
    rssm_group_options o = RSSM_GROUP_OPTIONS_INIT;
    o.device = workload->device_index;
    o.problems = &workload->problem;
    o.n_problems = 1;
    o.n_slots = workload->n_slots;
    o.max_rows = workload->max_rows;
    o.cursors = workload->buffers[CURSORS];
    return o;
}

static rssm_step_args step_args(const rssm_run *run, uint32_t set)
{
    const rssm_workload *w = run->workload;
    const rssm_problem  *p = &w->problem;
    const rssm_layout   *l = &w->layout;
    const int64_t        H = p->n_heads, P = p->head_dim, G = p->n_groups, N = p->state_size;
    rssm_step_args       a = RSSM_STEP_ARGS_INIT;

    a.n_rows = run->n_rows;
    a.descriptors = (rssm_descriptor *)w->buffers[DESCRIPTORS] + (size_t)set * run->n_rows;
    a.x = (rssm_token_tensor){w->buffers[X], H * P, P};
    a.B = (rssm_token_tensor){w->buffers[B], G * N, N};
    a.C = (rssm_token_tensor){w->buffers[C], G * N, N};
    a.dt = (rssm_token_tensor){w->buffers[DT], H, 1};
    a.out = (rssm_token_tensor){w->buffers[OUT], H * P, P};
    a.A = w->buffers[A];
    a.D = w->buffers[D];
    a.dt_bias = w->buffers[BIAS];
    a.state = (rssm_state_tensor){w->buffers[STATE], l->state_slot_stride};
    a.x_ring = (rssm_ring_tensor){w->buffers[X_RING], l->x_slot_stride, l->x_head_stride, l->x_record_stride};
    a.B_ring = (rssm_ring_tensor){w->buffers[B_RING], l->B_slot_stride, l->B_head_stride, l->B_record_stride};
    a.dt_ring = (rssm_ring_tensor){w->buffers[DT_RING], l->dt_slot_stride, l->dt_head_stride, l->dt_record_stride};
    return a;
}

static rssm_status advance_set(const rssm_run *run, uint32_t set, void *stream)
{
    const rssm_workload *w = run->workload;
    rssm_advance_args    a = RSSM_ADVANCE_ARGS_INIT;
    a.n_rows = run->n_rows;
    a.slots = (int32_t *)w->buffers[SLOTS] + (size_t)set * run->n_rows;
    a.descriptors = (rssm_descriptor *)w->buffers[DESCRIPTORS] + (size_t)set * run->n_rows;
    return rssm_advance(run->group, &a, stream);
}

// Cursor of the i-th slot of the order: i mod L records, so that any L neighbours hold every phase.
static rssm_status set_phases(const rssm_run *run, int eager, rssm_diag *diag)
{
    const rssm_workload *w = run->workload;
    rssm_cursor         *cursors = rssm_calloc(w->n_slots, sizeof *cursors);
    if (cursors == NULL) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a workload");
    for (uint32_t i = 0; i < w->n_slots; i++)
        cursors[w->slots[i]].h = eager ? 0 : (rssm_i32)(i % w->problem.window);
    const rssm_status st = rssm_memory_upload(w->context, w->device_index, w->buffers[CURSORS], cursors,
                                              w->n_slots * sizeof *cursors, diag);
    rssm_free(cursors);
    return st;
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

rssm_status rssm_run_create(rssm_workload *workload, const rssm_group *group, uint32_t n_rows, int eager,
                            rssm_run **out_run, rssm_diag *diag)
{
    const uint64_t limit = workload->n_slots * slot_bytes(&workload->layout);
    rssm_status    st = RSSM_OK;
    rssm_run      *run = rssm_calloc(1, sizeof *run);

    if (run == NULL) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a run");
    run->workload = workload;
    run->group = group;
    run->plan = rssm_group_plan(group, 0);
    run->n_rows = n_rows;
    run->n_sets = slots_for(workload, n_rows, limit) / n_rows;
    run->passes_per_sample =
        eager || run->n_sets * n_rows % workload->problem.window == 0 ? 1 : workload->problem.window;
    RSSM_TRY(set_phases(run, eager, diag));
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

static rssm_status advance_all(rssm_run *run, rssm_diag *diag)
{
    rssm_status st;
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
            for (uint32_t i = 0; i < LAUNCHES && st == RSSM_OK; i++) st = advance_set(run, i % run->n_sets, NULL);
            samples[s] = (double)(rssm_now_ns() - begin);
        }
        samples[s] /= LAUNCHES;
    }
    *out_ns = rssm_statistics_of(samples, SAMPLES).median;
done:
    rssm_cuda_graph_destroy(graph);
    return st;
}
