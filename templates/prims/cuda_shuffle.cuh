// Exchange between the lanes of one full warp. Every lane of the warp must call.
#ifndef RSSM_PRIMS_CUDA_SHUFFLE_CUH
#define RSSM_PRIMS_CUDA_SHUFFLE_CUH

#include "numerics/convert.h"
#include "prims/cuda_threads.cuh"

// The value of lane (own lane ^ mask).
GPU_FN rssm_u32 gpu_shuffle_xor(rssm_u32 value, rssm_i32 mask)
{
    rssm_u32 other;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(other) : "r"(value), "r"(mask));
    return other;
}

GPU_FN float gpu_shuffle_xor(float value, rssm_i32 mask)
{
    return rssm_bits_float(gpu_shuffle_xor(rssm_float_bits(value), mask));
}

// The value of lane (own lane + distance); the own value where there is no such lane.
GPU_FN float gpu_shuffle_down(float value, rssm_i32 distance)
{
    rssm_u32 other;
    asm volatile("shfl.sync.down.b32 %0, %1, %2, 0x1f, 0xffffffff;"
                 : "=r"(other)
                 : "r"(rssm_float_bits(value)), "r"(distance));
    return rssm_bits_float(other);
}

// The value of lane (own lane - distance); the own value where there is no such lane.
GPU_FN float gpu_shuffle_up(float value, rssm_i32 distance)
{
    rssm_u32 other;
    asm volatile("shfl.sync.up.b32 %0, %1, %2, 0x0, 0xffffffff;"
                 : "=r"(other)
                 : "r"(rssm_float_bits(value)), "r"(distance));
    return rssm_bits_float(other);
}

// The value of lane `source`.
GPU_FN rssm_u32 gpu_shuffle_from(rssm_u32 value, rssm_i32 source)
{
    rssm_u32 other;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(other) : "r"(value), "r"(source));
    return other;
}

GPU_FN float gpu_shuffle_from(float value, rssm_i32 source)
{
    return rssm_bits_float(gpu_shuffle_from(rssm_float_bits(value), source));
}

// Bit i: lane i's predicate.
GPU_FN rssm_u32 gpu_ballot(bool predicate)
{
    rssm_u32 lanes;
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %1, 0;\n\tvote.sync.ballot.b32 %0, p, 0xffffffff;\n\t}"
                 : "=r"(lanes)
                 : "r"((rssm_u32)predicate));
    return lanes;
}

GPU_FN rssm_i32 gpu_count_bits(rssm_u32 bits)
{
    rssm_i32 n;
    asm("popc.b32 %0, %1;" : "=r"(n) : "r"(bits));
    return n;
}

#endif
