// Prefill states into stored form and back: one launch over one layer. No allocation, lock, file or log.
#include <stdint.h>

#include "runtime/layers.h"

static rssm_status launch(const rssm_layers *layers, uint32_t layer, const rssm_state_args *a, bool is_encode,
                          void *stream)
{
    const rssm_group *group = layers->group;

    if (a->struct_size != sizeof *a) return RSSM_E_STRUCT_SIZE;
    if (layer >= layers->n_layers || a->n_rows > group->max_rows || a->slots == NULL) return RSSM_E_INVALID_ARGUMENT;
    if (a->values == NULL && !is_encode) return RSSM_E_INVALID_ARGUMENT;
    if (group->backend == RSSM_CPU && stream != NULL) return RSSM_E_INVALID_ARGUMENT;
    const rssm_plan   *plan = rssm_layers_plan(layers, layer);
    const rssm_kernel *kernel = is_encode ? plan->encode : plan->decode;
    const int64_t      n = (int64_t)plan->problem.n_heads * plan->problem.head_dim * plan->problem.state_size;
    if (kernel == NULL) return RSSM_E_UNSUPPORTED;
    if (a->values != NULL) {   // "activations" of such a kernel are its values
        const uint64_t stride = a->n_rows > 1 ? (uint64_t)a->value_stride * sizeof(float) : 0;
        if (((uintptr_t)a->values | stride) & (kernel->geometry.align_activations - 1)) return RSSM_E_INVALID_ARGUMENT;
        if (a->n_rows > 1 && a->value_stride < n) return RSSM_E_INVALID_ARGUMENT;
    }
    if (!rssm_group_grid_fits(kernel, a->n_rows)) return RSSM_E_INVALID_ARGUMENT;
    if (a->n_rows == 0) return RSSM_OK;
    const rssm_mamba2_state_kernel_args args = {
        .state = {layers->layers[layer].state.data, layers->layers[layer].state.slot_stride},
        .values = a->values,
        .value_stride = a->value_stride,
        .slots = a->slots,
        .n_rows = (rssm_i32)a->n_rows,
        .n_slots = (rssm_i32)group->n_slots,
        .pad_slot = a->pad_slot,
        .n_heads = (rssm_i32)plan->problem.n_heads,
        .head_dim = (rssm_i32)plan->problem.head_dim,
        .state_size = (rssm_i32)plan->problem.state_size,
    };
    return rssm_group_launch(group, kernel, &args, a->n_rows, stream);
}

rssm_status rssm_encode(const rssm_layers *layers, uint32_t layer, const rssm_state_args *args, void *stream)
{
    return launch(layers, layer, args, true, stream);
}

rssm_status rssm_decode(const rssm_layers *layers, uint32_t layer, const rssm_state_args *args, void *stream)
{
    return launch(layers, layer, args, false, stream);
}
