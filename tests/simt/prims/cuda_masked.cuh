// Exchange among the lanes of a membership mask, and what a whole warp can vote on. The lanes of the mask must all
// call, with the same mask.
#ifndef RSSM_PRIMS_CUDA_MASKED_CUH
#define RSSM_PRIMS_CUDA_MASKED_CUH

#include "numerics/convert.h"
#include "prims/cuda_threads.cuh"

GPU_FN void gpu_barrier_lanes(rssm_u32 mask, GPU_HERE)
{
    simt_ask_lanes(SIMT_WARP_SYNC, mask, 0, 0, at);
}

GPU_FN rssm_u32 gpu_shuffle_xor_lanes(rssm_u32 mask, rssm_u32 value, rssm_i32 distance, GPU_HERE)
{
    return simt_ask_lanes(SIMT_SHUFFLE_XOR, mask, value, distance, at).out[0];
}

GPU_FN rssm_u32 gpu_shuffle_up_lanes(rssm_u32 mask, rssm_u32 value, rssm_i32 distance, GPU_HERE)
{
    return simt_ask_lanes(SIMT_SHUFFLE_UP, mask, value, distance, at).out[0];
}

GPU_FN rssm_u32 gpu_shuffle_down_lanes(rssm_u32 mask, rssm_u32 value, rssm_i32 distance, GPU_HERE)
{
    return simt_ask_lanes(SIMT_SHUFFLE_DOWN, mask, value, distance, at).out[0];
}

GPU_FN rssm_u32 gpu_shuffle_from_lanes(rssm_u32 mask, rssm_u32 value, rssm_i32 source, GPU_HERE)
{
    return simt_ask_lanes(SIMT_SHUFFLE_FROM, mask, value, source, at).out[0];
}

GPU_FN rssm_u32 gpu_ballot_lanes(rssm_u32 mask, bool predicate, GPU_HERE)
{
    return simt_ask_lanes(SIMT_BALLOT, mask, predicate, 0, at).out[0];
}

GPU_FN bool gpu_any_lane(rssm_u32 mask, bool predicate, GPU_HERE)
{
    return simt_ask_lanes(SIMT_ANY_OF, mask, predicate, 0, at).out[0] != 0;
}

GPU_FN bool gpu_all_lanes(rssm_u32 mask, bool predicate, GPU_HERE)
{
    return simt_ask_lanes(SIMT_ALL_OF, mask, predicate, 0, at).out[0] != 0;
}

// Lanes with the same value; all lanes if every value is the same, else none.
GPU_FN rssm_u32 gpu_match_any(rssm_u32 mask, rssm_u32 value, GPU_HERE)
{
    return simt_ask_lanes(SIMT_MATCH_ANY, mask, value, 0, at).out[0];
}

GPU_FN rssm_u32 gpu_match_all(rssm_u32 mask, rssm_u32 value, GPU_HERE)
{
    return simt_ask_lanes(SIMT_MATCH_ALL, mask, value, 0, at).out[0];
}

GPU_FN rssm_u32 gpu_reduce_add(rssm_u32 mask, rssm_u32 value, GPU_HERE)
{
    return simt_ask_lanes(SIMT_REDUCE_ADD, mask, value, 0, at).out[0];
}

GPU_FN rssm_u32 gpu_reduce_max(rssm_u32 mask, rssm_u32 value, GPU_HERE)
{
    return simt_ask_lanes(SIMT_REDUCE_MAX, mask, value, 0, at).out[0];
}

GPU_FN rssm_u32 gpu_reduce_min(rssm_u32 mask, rssm_u32 value, GPU_HERE)
{
    return simt_ask_lanes(SIMT_REDUCE_MIN, mask, value, 0, at).out[0];
}

GPU_FN rssm_u32 gpu_reduce_or(rssm_u32 mask, rssm_u32 value, GPU_HERE)
{
    return simt_ask_lanes(SIMT_REDUCE_OR, mask, value, 0, at).out[0];
}

GPU_FN rssm_u32 gpu_reduce_and(rssm_u32 mask, rssm_u32 value, GPU_HERE)
{
    return simt_ask_lanes(SIMT_REDUCE_AND, mask, value, 0, at).out[0];
}

// All threads of a block, however many warps it has.
GPU_FN void gpu_barrier_block(GPU_HERE)
{
    simt_barrier(0, 0, at);
}

// Barriers 1 .. 15 for some warps of a block: n_threads of them wait, or arrive without waiting.
GPU_FN void gpu_barrier_named(rssm_i32 id, rssm_i32 n_threads, GPU_HERE)
{
    simt_barrier((rssm_u32)id, (rssm_u32)n_threads, at);
}

GPU_FN void gpu_barrier_named_arrive(rssm_i32 id, rssm_i32 n_threads, GPU_HERE)
{
    simt_arrive((rssm_u32)id, (rssm_u32)n_threads, at);
}

#endif
