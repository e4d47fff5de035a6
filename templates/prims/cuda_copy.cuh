// Asynchronous copies from global to shared memory in groups (cp.async), of 4, 8 or 16 bytes per lane.
//
// A thread's copies since its last commit form a group. A wait is for the own copies only: other threads see them
// behind a barrier that follows the wait.
#ifndef RSSM_PRIMS_CUDA_COPY_CUH
#define RSSM_PRIMS_CUDA_COPY_CUH

#include "prims/cuda_threads.cuh"

template <int BYTES> GPU_FN void gpu_copy_async(void *to, const void *from)
{
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "sizes the instruction has");
    const rssm_u32 address = (rssm_u32)__cvta_generic_to_shared(to);
    if constexpr (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from), "n"(BYTES) : "memory");
    }
}

// Zeros where `exists` is false; `from` is then not read.
template <int BYTES> GPU_FN void gpu_copy_async_or_zeros(void *to, const void *from, bool exists)
{
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "sizes the instruction has");
    const rssm_u32 address = (rssm_u32)__cvta_generic_to_shared(to);
    const rssm_u32 n_bytes = exists ? BYTES : 0;
    if constexpr (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(n_bytes)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address), "l"(from), "n"(BYTES),
                     "r"(n_bytes)
                     : "memory");
    }
}

GPU_FN void gpu_copy_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Returns when at most GROUPS of the own committed groups are under way.
template <int GROUPS> GPU_FN void gpu_copy_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
}

#endif
