// Splitting fp32 factors into parts that matrix instructions read exactly, and that add up to the factor: bf16 parts beside
// bf16 activations (three carry 24 bits), otherwise tf32 parts (two carry 22).
#ifndef RSSM_CUDA_MAMBA2_STEP_PARTS_CUH
#define RSSM_CUDA_MAMBA2_STEP_PARTS_CUH

#include "cuda/mamba2_step/sizes.cuh"
#include "numerics/convert.h"
#include "prims/cuda_convert.cuh"

enum {
    EXACT_PARTS = USE_BF16 ? 3 : 2,
    PARTS = USE_BF16 && sizeof(T_state) == 4 ? 3 : 2,   // of a fold: a 16-bit checkpoint's own rounding is 2^-9
    PART_WORDS = USE_BF16 ? 2 : 4,
};

// The upper part of a float that is split in two for tf32 instructions: rounded to nearest by two integer instructions,
// where the conversion takes five. The rest, value - part, is exact, and an instruction reads its first 11 bits: together
// 2^-21 of the value. A NaN stays one in the rest.
GPU_FN rssm_u32 upper_tf32(float value)
{
    return (rssm_float_bits(value) + 0x1000u) & 0xffffe000u;
}

// Splits four factors, for records 2t, 2t + 1, 2t + 8 and 2t + 9 of a block, into parts of falling size.
template <int COUNT> GPU_FN void split(float f[4], rssm_u32 parts[COUNT][PART_WORDS])
{
#pragma unroll
    for (int part = 0; part < COUNT; part++) {
        if constexpr (USE_BF16) {
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const rssm_u32 pair = gpu_pack_bf16(f[2 * i], f[2 * i + 1]);
                parts[part][i] = pair;
                f[2 * i] -= rssm_bits_float(pair << 16);
                f[2 * i + 1] -= rssm_bits_float(pair & 0xffff0000u);
            }
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                parts[part][i] = gpu_to_tf32(f[i]);
                f[i] -= rssm_bits_float(parts[part][i]);
            }
        }
    }
}

#endif
