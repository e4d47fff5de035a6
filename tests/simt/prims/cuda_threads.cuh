// Twin of templates/prims/cuda_threads.cuh for the emulator: same names, same meaning.
//
// GPU_HERE captures the caller's file and line; a twin that calls another passes its own on.
#ifndef RSSM_PRIMS_CUDA_THREADS_CUH
#define RSSM_PRIMS_CUDA_THREADS_CUH

#include "abi/types.h"
#include "tests/simt/device.h"

#define GPU_FN static inline __attribute__((always_inline))
#define GPU_HERE                                                                                                       \
    simt_place at = simt_place                                                                                         \
    {                                                                                                                  \
        __builtin_FILE(), __builtin_LINE()                                                                             \
    }

enum { GPU_WARP = 32 };

GPU_FN rssm_i32 gpu_thread()
{
    return (rssm_i32)simt_thread_index();
}

GPU_FN rssm_i32 gpu_lane()
{
    return (rssm_i32)(simt_thread_index() % GPU_WARP);
}

GPU_FN rssm_i32 gpu_warp()
{
    return (rssm_i32)(simt_thread_index() / GPU_WARP);
}

GPU_FN rssm_i32 gpu_block_x()
{
    return (rssm_i32)simt_block_index(0);
}

GPU_FN rssm_i32 gpu_block_y()
{
    return (rssm_i32)simt_block_index(1);
}

// One operation of a warp's lanes.
GPU_FN simt_warp_op simt_ask_lanes(simt_warp_kind kind, rssm_u32 mask, rssm_u32 value, rssm_i32 operand, simt_place at)
{
    simt_warp_op op = {kind, mask, operand, {value, 0, 0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, at};
    simt_warp(&op);
    return op;
}

GPU_FN void gpu_warp_barrier(GPU_HERE)
{
    simt_ask_lanes(SIMT_WARP_SYNC, 0xffffffffu, 0, 0, at);
}

template <int WARPS> GPU_FN void gpu_barrier(GPU_HERE)
{
    if constexpr (WARPS == 1)
        gpu_warp_barrier(at);
    else
        simt_barrier(0, 0, at);
}

#endif
