// Twin of templates/prims/cuda_matrix.cuh for the emulator.
#ifndef RSSM_PRIMS_CUDA_MATRIX_CUH
#define RSSM_PRIMS_CUDA_MATRIX_CUH

#include "prims/cuda_threads.cuh"

GPU_FN void simt_multiply(simt_warp_kind kind, float d[4], const rssm_u32 *a, int n_words, rssm_u32 b0, rssm_u32 b1,
                          simt_place at)
{
    simt_warp_op op = {kind, 0xffffffffu, 0, {0, 0, 0, 0, b0, b1}, {0, 0, 0, 0}, {d[0], d[1], d[2], d[3]}, at};
    for (int i = 0; i < n_words; i++)
        op.in[i] = a[i];
    simt_warp(&op);
    for (int i = 0; i < 4; i++)
        d[i] = op.d[i];
}

GPU_FN void gpu_matrix_bf16(float d[4], const rssm_u32 a[4], rssm_u32 b0, rssm_u32 b1, GPU_HERE)
{
    simt_multiply(SIMT_MATRIX_BF16, d, a, 4, b0, b1, at);
}

GPU_FN void gpu_matrix_f16(float d[4], const rssm_u32 a[4], rssm_u32 b0, rssm_u32 b1, GPU_HERE)
{
    simt_multiply(SIMT_MATRIX_F16, d, a, 4, b0, b1, at);
}

GPU_FN void gpu_matrix_tf32(float d[4], const rssm_u32 a[4], rssm_u32 b0, rssm_u32 b1, GPU_HERE)
{
    simt_multiply(SIMT_MATRIX_TF32, d, a, 4, b0, b1, at);
}

GPU_FN rssm_u32 gpu_matrix_transpose(rssm_u32 word, GPU_HERE)
{
    return simt_ask_lanes(SIMT_TRANSPOSE, 0xffffffffu, word, 0, at).out[0];
}

#endif
