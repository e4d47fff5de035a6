// What the records of a window weigh, from their processed dt (times), in one warp. The order of every sum is fixed by
// the records alone, counted from the oldest: a fold has the same bits whichever kernel, batch or ring place it has.
#ifndef RSSM_CUDA_MAMBA2_STEP_WINDOW_CUH
#define RSSM_CUDA_MAMBA2_STEP_WINDOW_CUH

#include "cuda/mamba2_step/sizes.cuh"
#include "numerics/softplus.h"
#include "prims/cuda_shuffle.cuh"

enum {
    SCAN_RECORDS = quotient_up(CFG_RING_LENGTH + 1, GPU_WARP),   // of one lane: a full ring and the current token
    SCAN_LANES = power_of_two_above(quotient_up(CFG_RING_LENGTH + 1, SCAN_RECORDS)),
};

// The record of a lane's `i`-th time.
GPU_FN rssm_i32 scan_record(int i)
{
    return gpu_lane() * SCAN_RECORDS + i;
}

// later[i]: the sum of the times of all newer records. Returns the sum of all. Zeros behind the newest record.
GPU_FN float sum_later(const float times[SCAN_RECORDS], float later[SCAN_RECORDS])
{
    float own = 0.0f;
#pragma unroll
    for (int i = SCAN_RECORDS - 1; i >= 0; i--) own += times[i];
    float inclusive = own;   // of this lane and all behind it
#pragma unroll
    for (int distance = 1; distance < SCAN_LANES; distance *= 2) {
        const float next = gpu_shuffle_down(inclusive, distance);
        if (gpu_lane() + distance < GPU_WARP) inclusive += next;
    }
    const float total = gpu_shuffle_from(inclusive, 0);
    const float next = gpu_shuffle_down(inclusive, 1);
    float       sum = gpu_lane() + 1 < GPU_WARP ? next : 0.0f;
#pragma unroll
    for (int i = SCAN_RECORDS - 1; i >= 0; i--) {
        later[i] = sum;
        sum += times[i];
    }
    return total;
}

// The weight of a record in a state that is `later` younger.
GPU_FN float record_weight(float A, float time, float later)
{
    return time * rssm_exp(A * later);
}

#endif
