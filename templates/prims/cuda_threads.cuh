// Where a thread is, and how the threads of a block wait for each other. One block is one dimension of whole warps.
#ifndef RSSM_PRIMS_CUDA_THREADS_CUH
#define RSSM_PRIMS_CUDA_THREADS_CUH

#include "abi/types.h"

#define GPU_FN static __device__ __forceinline__

enum { GPU_WARP = 32 };

GPU_FN rssm_i32 gpu_thread()
{
    return (rssm_i32)threadIdx.x;
}

GPU_FN rssm_i32 gpu_lane()
{
    return (rssm_i32)(threadIdx.x % GPU_WARP);
}

GPU_FN rssm_i32 gpu_warp()
{
    return (rssm_i32)(threadIdx.x / GPU_WARP);
}

GPU_FN rssm_i32 gpu_block_x()
{
    return (rssm_i32)blockIdx.x;
}

GPU_FN rssm_i32 gpu_block_y()
{
    return (rssm_i32)blockIdx.y;
}

// All lanes of the warp: likewise for what they wrote. Memory accesses do not move across it.
GPU_FN void gpu_warp_barrier()
{
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}

// All threads of a block of `WARPS` warps: what one wrote to shared or global memory before, all see after.
template <int WARPS> GPU_FN void gpu_barrier()
{
    if constexpr (WARPS == 1) gpu_warp_barrier();
    else asm volatile("bar.sync 0;" ::: "memory");
}

#endif
