// mamba2_decode: checkpoints in stored form to fp32, exactly; of one layer. The inverse of mamba2_encode.
//
// What     every element widened; rows whose slot is the pad value or out of range are skipped, their values untouched.
// Layout   abi/mamba2_layers.h; the checkpoint's pointer and stride and those of `values` are multiples of 16 bytes.
// Blocks   One head of one row; a thread reads one vector of 16 stored bytes at a time.
#include "rssm_config.h"

#include "abi/mamba2_layers.h"
#include "prims/cuda_convert.cuh"
#include "prims/cuda_memory.cuh"

enum {
    PER_VECTOR = 16 / sizeof(T_state),   // elements
    N_STORES = PER_VECTOR / 4,           // vectors of floats that one makes
    HEAD_ELEMENTS = CFG_HEAD_DIM * CFG_STATE_SIZE,
};

// Contract with decode.json
static_assert(CFG_HEAD_DIM % 16 == 0 && CFG_STATE_SIZE % 16 == 0, "a head is whole vectors");

extern "C" __global__ void __launch_bounds__(CFG_THREADS)
    mamba2_decode(const __grid_constant__ rssm_mamba2_state_kernel_args args)
{
    const rssm_i32 row = gpu_block_x() / args.n_heads;
    const rssm_i64 first = (rssm_i64)(gpu_block_x() % args.n_heads) * HEAD_ELEMENTS;
    const rssm_i32 slot = args.slots[row];

    if (slot == args.pad_slot || slot < 0 || slot >= args.n_slots) return;
    const T_state *from = (const T_state *)args.state.data + slot * args.state.slot_stride + first;
    float         *to = args.values + row * args.value_stride + first;
    for (rssm_i32 i = gpu_thread() * PER_VECTOR; i < HEAD_ELEMENTS; i += CFG_THREADS * PER_VECTOR) {
        const gpu_vec4 v = gpu_load16(from + i);
        float          floats[PER_VECTOR];
        gpu_unpack<T_state, 4>(v.w, floats);
#pragma unroll
        for (int k = 0; k < N_STORES; k++) {
            gpu_vec4 words;
#pragma unroll
            for (int j = 0; j < 4; j++) words.w[j] = rssm_float_bits(floats[4 * k + j]);
            gpu_store16(to + i + 4 * k, words);
        }
    }
}
