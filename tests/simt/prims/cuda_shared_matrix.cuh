// The other forms of ldmatrix and stmatrix: 1, 2 or 4 matrices, as they lie or transposed.
#ifndef RSSM_PRIMS_CUDA_SHARED_MATRIX_CUH
#define RSSM_PRIMS_CUDA_SHARED_MATRIX_CUH

#include "prims/cuda_shared.cuh"

GPU_FN void gpu_load_matrix2(rssm_u32 words[2], rssm_u32 address, GPU_HERE)
{
    simt_move_matrices(SIMT_LOAD_MATRIX, 2, false, words, address, at);
}

GPU_FN void gpu_load_matrix2_transposed(rssm_u32 words[2], rssm_u32 address, GPU_HERE)
{
    simt_move_matrices(SIMT_LOAD_MATRIX, 2, true, words, address, at);
}

GPU_FN void gpu_load_matrix1(rssm_u32 words[1], rssm_u32 address, GPU_HERE)
{
    simt_move_matrices(SIMT_LOAD_MATRIX, 1, false, words, address, at);
}

GPU_FN void gpu_store_matrix4(rssm_u32 words[4], rssm_u32 address, GPU_HERE)
{
    simt_move_matrices(SIMT_STORE_MATRIX, 4, false, words, address, at);
}

GPU_FN void gpu_store_matrix4_transposed(rssm_u32 words[4], rssm_u32 address, GPU_HERE)
{
    simt_move_matrices(SIMT_STORE_MATRIX, 4, true, words, address, at);
}

#endif
