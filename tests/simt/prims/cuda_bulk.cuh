// Bulk copies (cp.async.bulk, one dimension) and the mbarriers they complete on. sm_90 and later.
//
// An mbarrier's phase ends when all arrivals came and all announced bytes arrived; phases are told apart by parity.
#ifndef RSSM_PRIMS_CUDA_BULK_CUH
#define RSSM_PRIMS_CUDA_BULK_CUH

#include "prims/cuda_threads.cuh"

// One thread initialises and fences; a block barrier before others use it.
GPU_FN void gpu_mbarrier_init(rssm_u64 *barrier, rssm_u32 n_arrivals, GPU_HERE)
{
    simt_mbarrier_init(barrier, n_arrivals, at);
}

GPU_FN void gpu_mbarrier_fence_init()
{
    simt_fence_mbarrier();
}

GPU_FN void gpu_mbarrier_arrive(rssm_u64 *barrier, GPU_HERE)
{
    simt_mbarrier_arrive(barrier, 1, 0, at);
}

// Arrives and announces bytes; announces without arriving.
GPU_FN void gpu_mbarrier_arrive_expect(rssm_u64 *barrier, rssm_u32 n_bytes, GPU_HERE)
{
    simt_mbarrier_arrive(barrier, 1, n_bytes, at);
}

GPU_FN void gpu_mbarrier_expect(rssm_u64 *barrier, rssm_u32 n_bytes, GPU_HERE)
{
    simt_mbarrier_arrive(barrier, 0, n_bytes, at);
}

// Has the phase of this parity ended?
GPU_FN bool gpu_mbarrier_test(rssm_u64 *barrier, rssm_u32 parity, GPU_HERE)
{
    return simt_mbarrier_test(barrier, parity, at) != 0;
}

GPU_FN void gpu_mbarrier_wait(rssm_u64 *barrier, rssm_u32 parity, GPU_HERE)
{
    simt_mbarrier_wait(barrier, parity, at);
}

// Own writes to shared memory, before bulk copies that follow.
GPU_FN void gpu_bulk_fence()
{
    simt_fence_async();
}

// Global to shared memory, completing on `barrier`; addresses and size are multiples of 16.
GPU_FN void gpu_bulk_load(void *to, const void *from, rssm_u32 n_bytes, rssm_u64 *barrier, GPU_HERE)
{
    simt_bulk_load(to, from, n_bytes, barrier, at);
}

GPU_FN void gpu_bulk_store(void *to, const void *from, rssm_u32 n_bytes, GPU_HERE)
{
    simt_bulk_store(to, from, n_bytes, at);
}

GPU_FN void gpu_bulk_commit()
{
    simt_bulk_commit();
}

// At most GROUPS of the own groups are under way; or may still read their source.
template <int GROUPS> GPU_FN void gpu_bulk_wait(GPU_HERE)
{
    simt_bulk_wait(GROUPS, 0, at);
}

template <int GROUPS> GPU_FN void gpu_bulk_wait_read(GPU_HERE)
{
    simt_bulk_wait(GROUPS, 1, at);
}

#endif
