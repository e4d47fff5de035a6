// mamba2_decode: checkpoints in stored form to fp32, exactly; of one layer. The inverse of mamba2_encode.
//
// What     every element widened; rows whose slot is the pad value or out of range are skipped, their values untouched.
// Layout   abi/mamba2_layers.h; any strides, head_dim and state_size.
// Tasks    One head of one row.
#include "rssm_config.h"

#include "abi/mamba2_layers.h"
#include "numerics/convert.h"

void mamba2_decode(const rssm_mamba2_state_kernel_args *args, rssm_i64 task);

void mamba2_decode(const rssm_mamba2_state_kernel_args *args, rssm_i64 task)
{
    const rssm_i64 row = task / args->n_heads;
    const rssm_i64 n = (rssm_i64)args->head_dim * args->state_size;
    const rssm_i64 first = task % args->n_heads * n;
    const rssm_i32 slot = args->slots[row];

    if (slot == args->pad_slot || slot < 0 || slot >= args->n_slots) return;
    const T_state *from = (const T_state *)args->state.data + slot * args->state.slot_stride + first;
    float         *to = args->values + row * args->value_stride + first;
    for (rssm_i64 i = 0; i < n; i++)
        to[i] = rssm_to_float(from[i]);
}
