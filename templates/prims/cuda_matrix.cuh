// Matrix instructions of one warp. In all of them lane l has g = l / 4 and t = l % 4, and the 16x8 accumulator d holds
// d[0] = [g][2t], d[1] = [g][2t + 1], d[2] = [g + 8][2t], d[3] = [g + 8][2t + 1].
//
// The accumulation inside one instruction is not rounded to nearest: begin at zero and add the sum outside.
#ifndef RSSM_PRIMS_CUDA_MATRIX_CUH
#define RSSM_PRIMS_CUDA_MATRIX_CUH

#include "prims/cuda_threads.cuh"

// d += a b, bf16, depth 16. a[0] = [g][2t, 2t+1], a[1] = [g+8][2t, 2t+1], a[2] = [g][2t+8, 2t+9], a[3] = [g+8][...];
// b0 = [2t, 2t+1][g], b1 = [2t+8, 2t+9][g]. The lower half of a word is the smaller index.
GPU_FN void gpu_matrix_bf16(float d[4], const rssm_u32 a[4], rssm_u32 b0, rssm_u32 b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The same for fp16.
GPU_FN void gpu_matrix_f16(float d[4], const rssm_u32 a[4], rssm_u32 b0, rssm_u32 b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// d += a b, tf32 in 32-bit words, depth 8. a[0] = [g][t], a[1] = [g+8][t], a[2] = [g][t+4], a[3] = [g+8][t+4];
// b0 = [t][g], b1 = [t+4][g].
GPU_FN void gpu_matrix_tf32(float d[4], const rssm_u32 a[4], rssm_u32 b0, rssm_u32 b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Transposes an 8x8 matrix of 16-bit elements held by the warp: in, lane l has [g][2t] and [g][2t + 1]; out, it has
// [2t][g] and [2t + 1][g].
GPU_FN rssm_u32 gpu_matrix_transpose(rssm_u32 word)
{
    rssm_u32 transposed;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(transposed) : "r"(word));
    return transposed;
}

#endif
