// Atomics that give the old value, in shared and global memory. They order nothing but themselves.
#ifndef RSSM_PRIMS_CUDA_ATOMIC_CUH
#define RSSM_PRIMS_CUDA_ATOMIC_CUH

#include "numerics/convert.h"
#include "prims/cuda_threads.cuh"

GPU_FN rssm_u32 gpu_atomic_add(rssm_u32 *word, rssm_u32 value, GPU_HERE)
{
    return simt_atomic_word(SIMT_ATOMIC_ADD, word, value, 0, at);
}

GPU_FN float gpu_atomic_add(float *word, float value, GPU_HERE)
{
    return rssm_bits_float(simt_atomic_word(SIMT_ATOMIC_ADD_F32, word, rssm_float_bits(value), 0, at));
}

GPU_FN rssm_u32 gpu_atomic_and(rssm_u32 *word, rssm_u32 bits, GPU_HERE)
{
    return simt_atomic_word(SIMT_ATOMIC_AND, word, bits, 0, at);
}

GPU_FN rssm_u32 gpu_atomic_min(rssm_u32 *word, rssm_u32 value, GPU_HERE)
{
    return simt_atomic_word(SIMT_ATOMIC_MIN, word, value, 0, at);
}

GPU_FN rssm_u32 gpu_atomic_max(rssm_u32 *word, rssm_u32 value, GPU_HERE)
{
    return simt_atomic_word(SIMT_ATOMIC_MAX, word, value, 0, at);
}

GPU_FN rssm_u32 gpu_atomic_exchange(rssm_u32 *word, rssm_u32 value, GPU_HERE)
{
    return simt_atomic_word(SIMT_ATOMIC_EXCHANGE, word, value, 0, at);
}

GPU_FN rssm_u32 gpu_atomic_compare(rssm_u32 *word, rssm_u32 expected, rssm_u32 value, GPU_HERE)
{
    return simt_atomic_word(SIMT_ATOMIC_COMPARE, word, value, expected, at);
}

#endif
