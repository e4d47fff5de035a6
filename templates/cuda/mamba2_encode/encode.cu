// mamba2_encode: states in fp32, such as a prefill leaves, to the stored form of checkpoints; of one layer.
//
// What     every element rounded once, to nearest even; a NaN stays the same NaN as on the CPU. `values` NULL: zeros.
//          Rows whose slot is the pad value or out of range are skipped. Cursors and rings are not touched.
// Layout   abi/mamba2_layers.h; the checkpoint's pointer and stride and those of `values` are multiples of 16 bytes.
// Blocks   One head of one row; a thread makes one vector of 16 stored bytes at a time.
#include "rssm_config.h"

#include "abi/mamba2_layers.h"
#include "numerics/convert.h"
#include "prims/cuda_memory.cuh"

enum {
    PER_VECTOR = 16 / sizeof(T_state),   // elements
    N_LOADS = PER_VECTOR / 4,            // vectors of floats that make one
    PER_WORD = 4 / sizeof(T_state),
    HEAD_ELEMENTS = CFG_HEAD_DIM * CFG_STATE_SIZE,
};

// Contract with encode.json
static_assert(CFG_HEAD_DIM % 16 == 0 && CFG_STATE_SIZE % 16 == 0, "a head is whole vectors");

// One word of the stored form: chosen by the type, which is not read.
GPU_FN rssm_u32 store_word(const float *from, const float *)
{
    return rssm_float_bits(from[0]);
}

GPU_FN rssm_u32 store_word(const float *from, const rssm_bf16 *)
{
    return rssm_float_to_bf16(from[0]).bits | (rssm_u32)rssm_float_to_bf16(from[1]).bits << 16;
}

extern "C" __global__ void __launch_bounds__(CFG_THREADS)
    mamba2_encode(const __grid_constant__ rssm_mamba2_state_kernel_args args)
{
    const rssm_i32 row = gpu_block_x() / args.n_heads;
    const rssm_i64 first = (rssm_i64)(gpu_block_x() % args.n_heads) * HEAD_ELEMENTS;
    const rssm_i32 slot = args.slots[row];

    if (slot == args.pad_slot || slot < 0 || slot >= args.n_slots) return;
    T_state     *to = (T_state *)args.state.data + slot * args.state.slot_stride + first;
    const float *from = args.values + row * args.value_stride + first;
    for (rssm_i32 i = gpu_thread() * PER_VECTOR; i < HEAD_ELEMENTS; i += CFG_THREADS * PER_VECTOR) {
        float    floats[PER_VECTOR];
        gpu_vec4 v;
#pragma unroll
        for (int k = 0; k < N_LOADS; k++) {
            const gpu_vec4 words = gpu_load16_if(from + i + 4 * k, args.values != nullptr);
#pragma unroll
            for (int j = 0; j < 4; j++) floats[4 * k + j] = rssm_bits_float(words.w[j]);
        }
#pragma unroll
        for (int j = 0; j < 4; j++) v.w[j] = store_word(floats + j * PER_WORD, (const T_state *)nullptr);
        gpu_store16(to + i, v);
    }
}
