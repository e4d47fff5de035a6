// Twin of templates/prims/cuda_shared.cuh for the emulator.
#ifndef RSSM_PRIMS_CUDA_SHARED_CUH
#define RSSM_PRIMS_CUDA_SHARED_CUH

#include "prims/cuda_threads.cuh"

GPU_FN void *gpu_shared_memory()
{
    return simt_shared_memory();
}

GPU_FN rssm_u32 gpu_shared_address(const void *object, GPU_HERE)
{
    return simt_shared_address(object, at);
}

// N matrices from rows at `address`, or to them.
GPU_FN void simt_move_matrices(simt_warp_kind kind, int n, bool transposed, rssm_u32 *words, rssm_u32 address,
                               simt_place at)
{
    simt_warp_op op = {kind, 0xffffffffu, n, {address, transposed, 0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, at};
    for (int i = 0; kind == SIMT_STORE_MATRIX && i < n; i++)
        op.in[2 + i] = words[i];
    simt_warp(&op);
    for (int i = 0; kind == SIMT_LOAD_MATRIX && i < n; i++)
        words[i] = op.out[i];
}

GPU_FN void gpu_load_matrix4(rssm_u32 words[4], rssm_u32 address, GPU_HERE)
{
    simt_move_matrices(SIMT_LOAD_MATRIX, 4, false, words, address, at);
}

GPU_FN void gpu_load_matrix4_transposed(rssm_u32 words[4], rssm_u32 address, GPU_HERE)
{
    simt_move_matrices(SIMT_LOAD_MATRIX, 4, true, words, address, at);
}

#endif
