// rssm_step: the launch path. No allocation, lock, file, log or system call beyond the driver's launch.
#include <stdint.h>

#include "base/dtype.h"
#include "runtime/group.h"
#include "templates/abi/mamba2_step.h"

// Whether pointer and strides (in elements of `bytes`) are multiples of a power of two.
static inline uint64_t misaligned(const void *data, int64_t a, int64_t b, int64_t c, int64_t bytes, uint32_t align)
{
    return ((uintptr_t)data | (uint64_t)((a | b | c) * bytes)) & (align - 1);
}

static inline int64_t bytes_of_16_or_32(uint32_t dtype)
{
    return dtype == RSSM_F32 ? 4 : 2;
}

static inline rssm_token_view token_view(const rssm_token_tensor *t)
{
    return (rssm_token_view){t->data, t->token_stride, t->head_stride};
}

static inline rssm_ring_view ring_view(const rssm_ring_tensor *t)
{
    return (rssm_ring_view){t->data, t->slot_stride, t->head_stride, t->record_stride};
}

static inline uint64_t misaligned_ring(const rssm_ring_tensor *t, int64_t bytes, uint32_t align)
{
    return misaligned(t->data, t->slot_stride, t->head_stride, t->record_stride, bytes, align);
}

static inline uint64_t misaligned_tokens(const rssm_token_tensor *t, int64_t bytes, uint32_t align)
{
    return misaligned(t->data, t->token_stride, t->head_stride, 0, bytes, align);
}

static rssm_status check(const rssm_plan *plan, const rssm_geometry *g, const rssm_step_args *a, void *stream)
{
    const int64_t act = bytes_of_16_or_32(plan->problem.activation_dtype);
    const int64_t state = bytes_of_16_or_32(plan->problem.checkpoint_dtype);

    if (!a->descriptors || !a->x.data || !a->B.data || !a->C.data || !a->dt.data || !a->out.data || !a->A ||
        !a->state.data || !a->x_ring.data || !a->B_ring.data || !a->dt_ring.data)
        return RSSM_E_INVALID_ARGUMENT;
    if (g->scratch_bytes_per_row != 0 && a->scratch == NULL) return RSSM_E_INVALID_ARGUMENT;
    if (plan->group->backend == RSSM_CPU && stream != NULL) return RSSM_E_INVALID_ARGUMENT;
    if (misaligned(a->state.data, a->state.slot_stride, 0, 0, state, g->align_state) |
        misaligned_ring(&a->x_ring, act, g->align_rings) | misaligned_ring(&a->B_ring, act, g->align_rings) |
        misaligned_tokens(&a->x, act, g->align_activations) | misaligned_tokens(&a->B, act, g->align_activations) |
        misaligned_tokens(&a->C, act, g->align_activations) | misaligned_tokens(&a->z, act, g->align_activations) |
        misaligned_tokens(&a->out, act, g->align_activations))
        return RSSM_E_INVALID_ARGUMENT;
    return RSSM_OK;
}

rssm_status rssm_step(const rssm_plan *plan, const rssm_step_args *a, void *stream)
{
    const rssm_group   *group = plan->group;
    const rssm_problem *p = &plan->problem;
    rssm_status         st;

    if (a->struct_size != sizeof *a) return RSSM_E_STRUCT_SIZE;
    if (a->n_rows > group->max_rows) return RSSM_E_INVALID_ARGUMENT;
    if (a->n_rows == 0) return RSSM_OK;
    const rssm_kernel *kernel = plan->buckets[rssm_bucket_index(a->n_rows)].kernel;
    if ((st = check(plan, &kernel->geometry, a, stream)) != RSSM_OK) return st;
    const rssm_mamba2_step_kernel_args args = {
        .descriptors = a->descriptors,
        .x = token_view(&a->x),
        .z = token_view(&a->z),
        .B = token_view(&a->B),
        .C = token_view(&a->C),
        .dt = token_view(&a->dt),
        .out = token_view(&a->out),
        .A = a->A,
        .D = a->D,
        .dt_bias = a->dt_bias,
        .state = {a->state.data, a->state.slot_stride},
        .x_ring = ring_view(&a->x_ring),
        .B_ring = ring_view(&a->B_ring),
        .dt_ring = ring_view(&a->dt_ring),
        .n_rows = (rssm_i32)a->n_rows,
        .n_heads = (rssm_i32)p->n_heads,
        .n_groups = (rssm_i32)p->n_groups,
        .head_dim = (rssm_i32)p->head_dim,
        .state_size = (rssm_i32)p->state_size,
        .ring_length = (rssm_i32)p->ring_length,
        .max_tokens = (rssm_i32)p->max_tokens,
        .dt_softplus = (rssm_i32)p->dt_softplus,
        .dt_type = (rssm_i32)p->dt_dtype,
        .parameter_type = (rssm_i32)p->parameter_dtype,
    };
    return rssm_group_launch(group, kernel, &args, a->n_rows, stream);
}
