// Asynchronous copies from global to shared memory in groups (cp.async), of 4, 8 or 16 bytes per lane.
//
// A thread's copies since its last commit form a group. A wait is for the own copies only: other threads see them
// behind a barrier that follows the wait.
#ifndef RSSM_PRIMS_CUDA_COPY_CUH
#define RSSM_PRIMS_CUDA_COPY_CUH

#include "prims/cuda_threads.cuh"

template <int BYTES> GPU_FN void gpu_copy_async(void *to, const void *from, GPU_HERE)
{
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "sizes the instruction has");
    simt_copy_async(to, from, BYTES, BYTES, at);
}

// Zeros where `exists` is false; `from` is then not read.
template <int BYTES> GPU_FN void gpu_copy_async_or_zeros(void *to, const void *from, bool exists, GPU_HERE)
{
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "sizes the instruction has");
    simt_copy_async(to, from, BYTES, exists ? BYTES : 0, at);
}

GPU_FN void gpu_copy_commit()
{
    simt_copy_commit();
}

// Returns when at most GROUPS of the own committed groups are under way.
template <int GROUPS> GPU_FN void gpu_copy_wait(GPU_HERE)
{
    simt_copy_wait(GROUPS, at);
}

#endif
