// Conversions to and from eight bits and less, by one instruction each: to nearest even, saturating.
#ifndef RSSM_PRIMS_CUDA_CONVERT_MORE_CUH
#define RSSM_PRIMS_CUDA_CONVERT_MORE_CUH

#include "prims/cuda_convert.cuh"

// Two floats to two bytes of E4M3 (largest 448), of E5M2 (57344), or two nibbles of E2M1 (6), `lower` in the lower
// half.
GPU_FN rssm_u32 gpu_pack_e4m3(float lower, float upper)
{
    return simt_encode(SIMT_E4M3, lower, 1) | simt_encode(SIMT_E4M3, upper, 1) << 8;
}

GPU_FN rssm_u32 gpu_pack_e5m2(float lower, float upper)
{
    return simt_encode(SIMT_E5M2, lower, 1) | simt_encode(SIMT_E5M2, upper, 1) << 8;
}

GPU_FN rssm_u32 gpu_pack_e2m1(float lower, float upper)
{
    return simt_encode(SIMT_E2M1, lower, 1) | simt_encode(SIMT_E2M1, upper, 1) << 4;
}

GPU_FN float gpu_unpack_e4m3(rssm_u32 byte)
{
    return simt_decode(SIMT_E4M3, byte & 0xffu);
}

GPU_FN float gpu_unpack_e5m2(rssm_u32 byte)
{
    return simt_decode(SIMT_E5M2, byte & 0xffu);
}

GPU_FN float gpu_unpack_e2m1(rssm_u32 nibble)
{
    return simt_decode(SIMT_E2M1, nibble & 0xfu);
}

// To the nearest integer of eight bits, saturating; NaN gives 0.
GPU_FN rssm_i32 gpu_to_int8(float value)
{
    return simt_to_int(value, -128, 127, 1);
}

#endif
