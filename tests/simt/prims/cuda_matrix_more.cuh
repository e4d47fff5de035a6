// Further matrix instructions of one warp; g, t and d as in cuda_matrix.cuh.
#ifndef RSSM_PRIMS_CUDA_MATRIX_MORE_CUH
#define RSSM_PRIMS_CUDA_MATRIX_MORE_CUH

#include "prims/cuda_matrix.cuh"

// Depth 8: a[0] = [g][2t, 2t+1], a[1] = [g+8][...]; b = [2t, 2t+1][g].
GPU_FN void gpu_matrix_bf16_8(float d[4], const rssm_u32 a[2], rssm_u32 b, GPU_HERE)
{
    simt_multiply(SIMT_MATRIX_BF16_8, d, a, 2, b, 0, at);
}

GPU_FN void gpu_matrix_f16_8(float d[4], const rssm_u32 a[2], rssm_u32 b, GPU_HERE)
{
    simt_multiply(SIMT_MATRIX_F16_8, d, a, 2, b, 0, at);
}

// tf32, depth 4: a[0] = [g][t], a[1] = [g+8][t]; b = [t][g].
GPU_FN void gpu_matrix_tf32_4(float d[4], const rssm_u32 a[2], rssm_u32 b, GPU_HERE)
{
    simt_multiply(SIMT_MATRIX_TF32_4, d, a, 2, b, 0, at);
}

// fp8, depth 32, sm_89 and later: a[0] = [g][4t .. 4t+3], a[1] = [g+8][...], a[2] = [g][4t+16 ...], a[3] = [g+8][...];
// b0 = [4t .. 4t+3][g], b1 = [4t+16 ...][g]. The lowest byte of a word is the smallest index.
GPU_FN void gpu_matrix_e4m3(float d[4], const rssm_u32 a[4], rssm_u32 b0, rssm_u32 b1, GPU_HERE)
{
    simt_multiply(SIMT_MATRIX_E4M3, d, a, 4, b0, b1, at);
}

GPU_FN void gpu_matrix_e5m2(float d[4], const rssm_u32 a[4], rssm_u32 b0, rssm_u32 b1, GPU_HERE)
{
    simt_multiply(SIMT_MATRIX_E5M2, d, a, 4, b0, b1, at);
}

#endif
