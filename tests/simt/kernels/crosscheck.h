// What crosscheck.cu computes, and its arguments. Valid as C11, C++17 and device code.
#ifndef RSSM_SIMT_KERNELS_CROSSCHECK_H
#define RSSM_SIMT_KERNELS_CROSSCHECK_H

// X(enumerator, exact): exact results are compared bit by bit, the others within a bound.
#define CROSSCHECK_LIST(X)                                                                                             \
    X(CROSS_PACK_BF16, 1)                                                                                              \
    X(CROSS_PACK_F16, 1)                                                                                               \
    X(CROSS_TF32, 1)                                                                                                   \
    X(CROSS_UNPACK_F16, 1)                                                                                             \
    X(CROSS_NUMERICS_BF16, 1)                                                                                          \
    X(CROSS_NUMERICS_F16, 1)                                                                                           \
    X(CROSS_FMA, 1)                                                                                                    \
    X(CROSS_HALVES, 1)                                                                                                 \
    X(CROSS_SHUFFLE_XOR, 1)                                                                                            \
    X(CROSS_SHUFFLE_DOWN, 1)                                                                                           \
    X(CROSS_SHUFFLE_FROM, 1)                                                                                           \
    X(CROSS_BALLOT, 1)                                                                                                 \
    X(CROSS_TRANSPOSE, 1)                                                                                              \
    X(CROSS_LOAD_MATRIX, 1)                                                                                            \
    X(CROSS_LOADS, 1)                                                                                                  \
    X(CROSS_MATRIX_BF16_EXACT, 1)                                                                                      \
    X(CROSS_MATRIX_TF32_EXACT, 1)                                                                                      \
    X(CROSS_MATRIX_BF16, 0)                                                                                            \
    X(CROSS_MATRIX_TF32, 0)

enum {
#define CROSSCHECK_ENUM(enumerator, exact) enumerator,
    CROSSCHECK_LIST(CROSSCHECK_ENUM)
#undef CROSSCHECK_ENUM
        N_CROSSCHECKS,
};

enum { CROSSCHECK_VALUES = 4096 }; // words in, and words out of each check

typedef struct crosscheck_args {
    const unsigned *in; // [CROSSCHECK_VALUES] bits of floats
    unsigned       *out;
    int             which;
} crosscheck_args;

#endif
