// Sizes that the CUDA kernels of a Mamba-2 layer share, and the arithmetic for them.
#ifndef RSSM_CUDA_MAMBA2_STEP_SIZES_CUH
#define RSSM_CUDA_MAMBA2_STEP_SIZES_CUH

#include "abi/types.h"
#include "numerics/types.h"

RSSM_FN constexpr int power_of_two_above(int n)
{
    int power = 1;
    while (power < n) power *= 2;
    return power;
}

RSSM_FN constexpr int least(int a, int b)
{
    return a < b ? a : b;
}

RSSM_FN constexpr int most(int a, int b)
{
    return a > b ? a : b;
}

RSSM_FN constexpr int quotient_up(int a, int b)
{
    return (a + b - 1) / b;
}

template <class A, class B> struct same_type {
    enum { value = 0 };
};
template <class A> struct same_type<A, A> {
    enum { value = 1 };
};

enum {
    PIECE = 16 / (int)sizeof(T_state),         // checkpoint elements of one access
    CHUNK = 16 / (int)sizeof(T_act),           // elements of an activation or record in one access
    CHUNKS = CFG_STATE_SIZE / CHUNK,           // of a record B_j
    BLOCK_RECORDS = 16,                        // records one matrix instruction folds
    TILE_ROWS = 16,                            // rows of a checkpoint that a warp treats together
    ROW_BYTES = CFG_STATE_SIZE * (int)sizeof(T_state),
    USE_BF16 = same_type<T_act, rssm_bf16>::value,   // matrix instructions on bf16, otherwise on tf32
};

#endif
