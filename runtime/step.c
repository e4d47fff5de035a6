// rssm_step: the launch path. No allocation, lock, file, log or system call beyond the driver's launch.
#include <stdint.h>

#include "runtime/group.h"
#include "runtime/step_args.h"

// Whether pointer and strides (in elements of `bytes`) are multiples of a power of two.
static inline uint64_t misaligned(const void *data, int64_t a, int64_t b, int64_t c, int64_t bytes, uint32_t align)
{
    return ((uintptr_t)data | (uint64_t)((a | b | c) * bytes)) & (align - 1);
}

static inline int64_t bytes_of_16_or_32(uint32_t dtype)
{
    return dtype == RSSM_F32 ? 4 : 2;
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
        misaligned_tokens(&a->C, act, g->align_activations) |
        misaligned_tokens(&a->z, act, (uint32_t)act) | misaligned_tokens(&a->out, act, (uint32_t)act))   // read by element
        return RSSM_E_INVALID_ARGUMENT;
    return RSSM_OK;
}

rssm_status rssm_step(const rssm_plan *plan, const rssm_step_args *a, void *stream)
{
    const rssm_group *group = plan->group;
    rssm_status       st;

    if (a->struct_size != sizeof *a) return RSSM_E_STRUCT_SIZE;
    if (a->n_rows > group->max_rows) return RSSM_E_INVALID_ARGUMENT;
    if (a->n_rows == 0) return RSSM_OK;
    const rssm_kernel *kernel = plan->buckets[rssm_bucket_index(a->n_rows)].kernel;
    if ((st = check(plan, &kernel->geometry, a, stream)) != RSSM_OK) return st;
    const rssm_mamba2_step_kernel_args args = rssm_step_kernel_args(&plan->problem, a);
    return rssm_group_launch(group, kernel, &args, a->n_rows, stream);
}
