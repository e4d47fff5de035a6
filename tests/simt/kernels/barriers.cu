// Cases of barriers and of operations that lanes do together. See cases.h.
#include "abi/types.h"
#include "prims/cuda_masked.cuh"
#include "prims/cuda_matrix.cuh"
#include "prims/cuda_memory.cuh"
#include "prims/cuda_shared.cuh"
#include "prims/cuda_shuffle.cuh"
#include "tests/simt/kernels/cases.h"

static __device__ unsigned *shared_words()
{
    return (unsigned *)gpu_shared_memory();
}

// in[i] + 1 by way of shared memory; the barrier is between the two halves of a block.
static __device__ void warp_skips_barrier(const case_args &args)
{
    unsigned *words = shared_words();
    words[gpu_thread()] = args.in[gpu_thread()] + 1;
    if (!args.broken || gpu_warp() == 0) gpu_barrier_block();   // reported: warp_skips_barrier
    args.out[gpu_thread()] = words[gpu_thread()];
}

static __device__ void lanes_skip_barrier(const case_args &args)
{
    unsigned *words = shared_words();
    words[gpu_thread()] = args.in[gpu_thread()] + 1;
    if (args.broken && gpu_lane() == 7) return;
    gpu_barrier<2>();   // reported: lanes_skip_barrier
    args.out[gpu_thread()] = words[gpu_thread()];
}

static __device__ void lanes_at_two_barriers(const case_args &args)
{
    if (args.broken && gpu_lane() < 16) {
        args.out[gpu_thread()] = args.in[gpu_thread()];
        gpu_barrier_block();   // reported: lanes_at_two_barriers
        args.out[gpu_thread()] += 1;
    } else {
        args.out[gpu_thread()] = args.in[gpu_thread()] + 1;
        gpu_barrier_block();   // reported: lanes_at_two_barriers
    }
}

static __device__ void lane_skips_warp_barrier(const case_args &args)
{
    unsigned *words = shared_words();
    words[gpu_lane()] = args.in[gpu_lane()] + 1;
    if (args.broken && gpu_lane() == 3) {
        args.out[3] = gpu_ballot(true);
        return;
    }
    gpu_barrier<1>();   // reported: lane_skips_warp_barrier
    args.out[gpu_lane()] = words[gpu_lane()];
}

// --------------------------------------------------------------------------------------------------------------- lanes

static __device__ void shuffle_after_exit(const case_args &args)
{
    if (args.broken && gpu_lane() >= 24) return;
    const unsigned other = gpu_shuffle_xor(args.in[gpu_lane() ^ 1], 1);   // reported: shuffle_after_exit
    args.out[gpu_lane()] = other + 1;
}

static __device__ void shuffle_in_branch(const case_args &args)
{
    unsigned own = args.in[gpu_lane() ^ 1];
    if (!args.broken || own % 2 == 0) {
        own = gpu_shuffle_xor(own, 1);   // reported: shuffle_in_branch
    } else {
        gpu_barrier<1>();
    }
    args.out[gpu_lane()] = own + 1;
}

static __device__ void shuffle_from_unmasked(const case_args &args)
{
    const unsigned half = gpu_lane() < 16 ? 0x0000ffffu : 0xffff0000u;
    const int      distance = args.broken ? 16 : 8;
    const unsigned own = args.in[gpu_lane() ^ distance];
    const unsigned other = gpu_shuffle_xor_lanes(half, own, distance);   // reported: shuffle_from_unmasked
    args.out[gpu_lane()] = other + 1;
}

static __device__ void caller_not_in_mask(const case_args &args)
{
    const unsigned mask = args.broken ? 0x0000ffffu : gpu_lane() < 16 ? 0x0000ffffu : 0xffff0000u;
    const unsigned other = gpu_shuffle_xor_lanes(mask, args.in[gpu_lane() ^ 1], 1);   // reported: caller_not_in_mask
    args.out[gpu_lane()] = other + 1;
}

static __device__ void matrix_in_branches(const case_args &args)
{
    unsigned words = gpu_lane(), turned;
    if (args.broken && gpu_lane() < 4) {
        turned = gpu_matrix_transpose(words + 64);   // reported: matrix_in_branches
    } else {
        turned = gpu_matrix_transpose(words);   // reported: matrix_in_branches
    }
    args.out[gpu_lane()] = args.in[gpu_lane()] + 1 + (turned > 0xffffffu);
}

static __device__ void vote_of_too_many(const case_args &args)
{
    const unsigned mask = args.broken ? 0xffffffffu : 0x000fffffu;
    unsigned       lanes = 0x000fffffu;
    if (gpu_lane() < 20) {
        lanes = gpu_ballot_lanes(mask, true);   // reported: vote_of_too_many
    }
    args.out[gpu_lane()] = args.in[gpu_lane()] + (lanes == 0x000fffffu);
}

// ------------------------------------------------------------------------------------------------------ named barriers

// Warps 0 and 1 exchange; warp 2 goes its own way.
static __device__ void named_barrier_count(const case_args &args)
{
    unsigned *words = shared_words();
    words[gpu_thread()] = args.in[gpu_thread()] + 1;
    if (gpu_warp() == 2) {
        gpu_barrier<1>();
        args.out[gpu_thread()] = words[gpu_thread()];
        return;
    }
    gpu_barrier_named(3, args.broken && gpu_warp() == 1 ? 96 : 64);   // reported: named_barrier_count
    args.out[gpu_thread() ^ 32] = words[gpu_thread() ^ 32];
}

// Warp 0 produces, warp 1 waits for it.
static __device__ void named_barrier_alone(const case_args &args)
{
    unsigned *words = shared_words();
    if (gpu_warp() == 0) {
        words[gpu_lane()] = args.in[gpu_lane()] + 1;
        words[gpu_lane() + 32] = args.in[gpu_lane() + 32] + 1;
        if (!args.broken) gpu_barrier_named_arrive(2, 64);
        return;
    }
    gpu_barrier_named(2, 64);   // reported: named_barrier_alone
    args.out[gpu_lane()] = words[gpu_lane()];
    args.out[gpu_lane() + 32] = words[gpu_lane() + 32];
}

extern "C" __global__ void barriers(const __grid_constant__ case_args args)
{
    int i = 0;
#define CASE(name, defect, n_blocks, n_threads)                                                                        \
    if (args.which == i++) name(args);
    BARRIER_CASES(CASE)
#undef CASE
}
