// Twin of templates/prims/cuda_shuffle.cuh for the emulator.
#ifndef RSSM_PRIMS_CUDA_SHUFFLE_CUH
#define RSSM_PRIMS_CUDA_SHUFFLE_CUH

#include "numerics/convert.h"
#include "prims/cuda_threads.cuh"

GPU_FN rssm_u32 gpu_shuffle_xor(rssm_u32 value, rssm_i32 mask, GPU_HERE)
{
    return simt_ask_lanes(SIMT_SHUFFLE_XOR, 0xffffffffu, value, mask, at).out[0];
}

GPU_FN float gpu_shuffle_xor(float value, rssm_i32 mask, GPU_HERE)
{
    return rssm_bits_float(gpu_shuffle_xor(rssm_float_bits(value), mask, at));
}

GPU_FN float gpu_shuffle_down(float value, rssm_i32 distance, GPU_HERE)
{
    return rssm_bits_float(simt_ask_lanes(SIMT_SHUFFLE_DOWN, 0xffffffffu, rssm_float_bits(value), distance, at).out[0]);
}

GPU_FN float gpu_shuffle_up(float value, rssm_i32 distance, GPU_HERE)
{
    return rssm_bits_float(simt_ask_lanes(SIMT_SHUFFLE_UP, 0xffffffffu, rssm_float_bits(value), distance, at).out[0]);
}

GPU_FN rssm_u32 gpu_shuffle_from(rssm_u32 value, rssm_i32 source, GPU_HERE)
{
    return simt_ask_lanes(SIMT_SHUFFLE_FROM, 0xffffffffu, value, source, at).out[0];
}

GPU_FN float gpu_shuffle_from(float value, rssm_i32 source, GPU_HERE)
{
    return rssm_bits_float(simt_ask_lanes(SIMT_SHUFFLE_FROM, 0xffffffffu, rssm_float_bits(value), source, at).out[0]);
}

GPU_FN rssm_u32 gpu_ballot(bool predicate, GPU_HERE)
{
    return simt_ask_lanes(SIMT_BALLOT, 0xffffffffu, predicate, 0, at).out[0];
}

GPU_FN rssm_i32 gpu_count_bits(rssm_u32 bits)
{
    return (rssm_i32)__builtin_popcount(bits);
}

#endif
