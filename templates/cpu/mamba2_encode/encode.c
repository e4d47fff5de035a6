// mamba2_encode: states in fp32, such as a prefill leaves, to the stored form of checkpoints; of one layer.
//
// What     every element rounded once, to nearest even; a NaN stays one. `values` NULL: zeros. Rows whose slot is the
//          pad value or out of range are skipped. Cursors and rings are not touched.
// Layout   abi/mamba2_layers.h; any strides, head_dim and state_size.
// Tasks    One head of one row.
#include "rssm_config.h"

#include "abi/mamba2_layers.h"
#include "numerics/convert.h"

void mamba2_encode(const rssm_mamba2_state_kernel_args *args, rssm_i64 task);

void mamba2_encode(const rssm_mamba2_state_kernel_args *args, rssm_i64 task)
{
    const rssm_i64 row = task / args->n_heads;
    const rssm_i64 n = (rssm_i64)args->head_dim * args->state_size;
    const rssm_i64 first = task % args->n_heads * n;
    const rssm_i32 slot = args->slots[row];

    if (slot == args->pad_slot || slot < 0 || slot >= args->n_slots) return;
    T_state *to = (T_state *)args->state.data + slot * args->state.slot_stride + first;
    if (args->values) {
        const float *from = args->values + row * args->value_stride + first;
        for (rssm_i64 i = 0; i < n; i++)
            rssm_store_float(to + i, from[i]);
    } else {
        for (rssm_i64 i = 0; i < n; i++)
            rssm_store_float(to + i, 0.0f);
    }
}
