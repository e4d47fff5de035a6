// See workload.h.
#include "tuner/workload.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/problem.h"
#include "runtime/memory.h"
#include "tuner/oracle/number_format.h"
#include "tuner/workload_parts.h"

enum {
    COLD_FACTOR = 2,          // slots hold at least this many times the last-level cache
    PATTERN_VALUES = 1 << 18, // random values that fill the big buffers again and again
};

// What fills a buffer.
typedef enum fill { FILL_NORMAL, FILL_DT, FILL_A, FILL_UNIT, FILL_ZERO } fill;

uint64_t rssm_workload_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double uniform(rssm_workload *w)
{
    return ((double)(rssm_workload_random(&w->random) >> 11) + 0.5) * 0x1p-53;
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

// Cold, a multiple of n_rows, and of L too where that is not much more.
uint32_t rssm_workload_slots_for(const rssm_workload *w, uint32_t n_rows, uint64_t limit)
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
        const uint32_t n = rssm_workload_slots_for(w, rows < w->max_rows ? rows : w->max_rows, limit);
        if (n > w->n_slots) w->n_slots = n;
    }
    return RSSM_OK;
}

static rssm_status allocate(rssm_workload *w, rssm_diag *diag)
{
    const rssm_problem *p = &w->problem;
    const rssm_layout  *l = &w->layout;
    const uint64_t      n = w->n_slots, tokens = (uint64_t)w->max_rows * p->max_tokens;
    const uint64_t      act = rssm_dtype_bytes(p->activation_dtype);
    const uint32_t      f32 = RSSM_F32;
    const struct {
        uint64_t bytes;
        uint32_t dtype;
        fill     kind;
    } sizes[RSSM_WORKLOAD_N_BUFFERS] = {
        [RSSM_WORKLOAD_STATE] = {n * l->state_bytes, p->checkpoint_dtype, FILL_NORMAL},
        [RSSM_WORKLOAD_X_RING] = {n * l->x_ring_bytes, p->activation_dtype, FILL_NORMAL},
        [RSSM_WORKLOAD_B_RING] = {n * l->B_ring_bytes, p->activation_dtype, FILL_NORMAL},
        [RSSM_WORKLOAD_DT_RING] = {n * l->dt_ring_bytes, f32, FILL_DT},
        [RSSM_WORKLOAD_CURSORS] = {n * sizeof(rssm_cursor), f32, FILL_ZERO},
        [RSSM_WORKLOAD_DESCRIPTORS] = {n * sizeof(rssm_descriptor), f32, FILL_ZERO},
        [RSSM_WORKLOAD_SLOTS] = {n * sizeof(int32_t), f32, FILL_ZERO},
        [RSSM_WORKLOAD_ACCEPTED] = {n * sizeof(int32_t), f32, FILL_ZERO},
        [RSSM_WORKLOAD_X] = {tokens * p->n_heads * p->head_dim * act, p->activation_dtype, FILL_NORMAL},
        [RSSM_WORKLOAD_B] = {tokens * p->n_groups * p->state_size * act, p->activation_dtype, FILL_NORMAL},
        [RSSM_WORKLOAD_C] = {tokens * p->n_groups * p->state_size * act, p->activation_dtype, FILL_NORMAL},
        [RSSM_WORKLOAD_DT] = {tokens * p->n_heads * rssm_dtype_bytes(p->dt_dtype), p->dt_dtype, FILL_UNIT},
        [RSSM_WORKLOAD_OUT] = {tokens * p->n_heads * p->head_dim * act, p->activation_dtype, FILL_ZERO},
        [RSSM_WORKLOAD_A] = {p->n_heads * sizeof(float), f32, FILL_A},
        [RSSM_WORKLOAD_D] = {p->n_heads * rssm_dtype_bytes(p->parameter_dtype), p->parameter_dtype, FILL_NORMAL},
        [RSSM_WORKLOAD_BIAS] = {p->n_heads * rssm_dtype_bytes(p->parameter_dtype), p->parameter_dtype, FILL_NORMAL},
    };
    rssm_status st;
    for (int i = 0; i < RSSM_WORKLOAD_N_BUFFERS; i++) {
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
    w->cursors = rssm_calloc(w->n_slots, sizeof *w->cursors);
    w->accepted = rssm_calloc(w->n_slots, sizeof *w->accepted);
    if (w->slots == NULL || w->cursors == NULL || w->accepted == NULL)
        return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a workload");
    for (uint32_t i = 0; i < w->n_slots; i++)
        w->slots[i] = (int32_t)i;
    for (uint32_t i = w->n_slots - 1; i > 0; i--) {
        const uint32_t j = (uint32_t)(rssm_workload_random(&w->random) % (i + 1));
        const int32_t  t = w->slots[i];
        w->slots[i] = w->slots[j];
        w->slots[j] = t;
    }
    return rssm_memory_upload(w->context, w->device_index, w->buffers[RSSM_WORKLOAD_SLOTS], w->slots,
                              w->n_slots * sizeof *w->slots, diag);
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
    for (int i = 0; i < RSSM_WORKLOAD_N_BUFFERS; i++)
        rssm_memory_free(workload->context, workload->device_index, workload->buffers[i]);
    rssm_free(workload->slots);
    rssm_free(workload->cursors);
    rssm_free(workload->accepted);
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
    o.cursors = workload->buffers[RSSM_WORKLOAD_CURSORS];
    o.steps_only = 1;
    return o;
}
