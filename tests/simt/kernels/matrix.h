// Arguments of matrix.cu. Valid as C11 and C++17.
#ifndef RSSM_SIMT_KERNELS_MATRIX_H
#define RSSM_SIMT_KERNELS_MATRIX_H

enum {
    MATRIX_BF16,
    MATRIX_F16,
    MATRIX_BF16_8,
    MATRIX_F16_8,
    MATRIX_TF32,
    MATRIX_TF32_4,
    MATRIX_E4M3,
    MATRIX_E5M2,
    LOAD_MATRIX4,
    LOAD_MATRIX4_TRANSPOSED,
    LOAD_MATRIX2,
    LOAD_MATRIX2_TRANSPOSED,
    LOAD_MATRIX1,
    STORE_MATRIX4,
    STORE_MATRIX4_TRANSPOSED,
    TRANSPOSE,
    CONVERT_BF16,
    CONVERT_F16,
    CONVERT_TF32,
    CONVERT_E4M3,
    CONVERT_E5M2,
    CONVERT_E2M1,
    CONVERT_INT8,
    CONVERT_FROM_F16,
    CONVERT_FROM_E4M3,
    CONVERT_FROM_E5M2,
    EXCHANGE_XOR,
    EXCHANGE_DOWN,
    EXCHANGE_FROM,
    EXCHANGE_BALLOT,
    EXCHANGE_UP,
    EXCHANGE_MATCH,
    EXCHANGE_MATCH_ALL,
    EXCHANGE_SUM,
    EXCHANGE_MASKED,
    EXCHANGE_ATOMIC,
};

typedef struct matrix_args {
    void     *a, *b; // matrices in the instruction's format: a [16][depth], b [depth][8]
    float    *d;     // [16][8], in and out
    unsigned *words; // out
    unsigned  n;
    int       which;
} matrix_args;

#endif
