// Shared memory of a block: where it begins, and the loads that deal matrices out to the lanes of a warp.
#ifndef RSSM_PRIMS_CUDA_SHARED_CUH
#define RSSM_PRIMS_CUDA_SHARED_CUH

#include "prims/cuda_threads.cuh"

// First byte of the block's dynamic shared memory, 16-byte aligned; the launch gives its size.
GPU_FN void *gpu_shared_memory()
{
    extern __shared__ __align__(16) unsigned char gpu_shared_bytes[];
    return gpu_shared_bytes;
}

// The 32-bit address of an object in shared memory, as gpu_load_matrix4_transposed takes it.
GPU_FN rssm_u32 gpu_shared_address(const void *object)
{
    return (rssm_u32)__cvta_generic_to_shared(object);
}

// Four 8x8 matrices of 16-bit elements: lane l gives the address of row l % 8 (16 bytes) of matrix l / 8; word i of lane
// l then holds elements [l / 4][2(l % 4)] and [l / 4][2(l % 4) + 1] of matrix i.
GPU_FN void gpu_load_matrix4(rssm_u32 words[4], rssm_u32 address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address)
                 : "memory");
}

// Four 8x8 matrices of 16-bit elements, each transposed: lane l gives the address of row l % 8 (16 bytes) of matrix
// l / 8; word i of lane l then holds elements [2(l % 4)][l / 4] and [2(l % 4) + 1][l / 4] of matrix i.
GPU_FN void gpu_load_matrix4_transposed(rssm_u32 words[4], rssm_u32 address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address)
                 : "memory");
}

#endif
