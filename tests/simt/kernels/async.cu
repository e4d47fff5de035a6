// Cases of asynchronous copies and mbarriers. See cases.h.
#include "abi/types.h"
#include "prims/cuda_bulk.cuh"
#include "prims/cuda_copy.cuh"
#include "prims/cuda_masked.cuh"
#include "prims/cuda_memory.cuh"
#include "prims/cuda_shared.cuh"
#include "tests/simt/kernels/cases.h"

static __device__ unsigned *shared_words()
{
    return (unsigned *)gpu_shared_memory() + 32;   // behind mbarriers
}

static __device__ rssm_u64 *mbarrier(int i)
{
    return (rssm_u64 *)gpu_shared_memory() + i;
}

static __device__ void copy_read_early(const case_args &args)
{
    unsigned *words = shared_words() + gpu_lane();
    gpu_copy_async<4>(words, args.in + gpu_lane());
    gpu_copy_commit();
    if (!args.broken) gpu_copy_wait<0>();
    const unsigned word = *words;   // reported: copy_read_early
    gpu_copy_wait<0>();
    args.out[gpu_lane()] = word + 1;
}

// Two groups; the second is used, too.
static __device__ void copy_waits_for_older(const case_args &args)
{
    unsigned *words = shared_words() + gpu_lane() * 2;
    gpu_copy_async<4>(words, args.in + gpu_lane());
    gpu_copy_commit();
    gpu_copy_async_or_zeros<4>(words + 1, args.in, false);
    gpu_copy_commit();
    gpu_copy_wait<1>();
    unsigned word = words[0];
    if (!args.broken) gpu_copy_wait<0>();
    word += words[1];   // reported: copy_waits_for_older
    gpu_copy_wait<0>();
    args.out[gpu_lane()] = word + 1;
}

static __device__ void copy_not_committed(const case_args &args)
{
    unsigned *words = shared_words() + gpu_lane();
    gpu_copy_async<4>(words, args.in + gpu_lane());
    if (!args.broken) gpu_copy_commit();
    gpu_copy_wait<0>();
    args.out[gpu_lane()] = *words + 1;   // reported: copy_not_committed
}

static __device__ void copy_seen_by_others(const case_args &args)
{
    unsigned *words = shared_words();
    words[gpu_thread()] = 0;
    gpu_barrier_block();
    gpu_copy_async<4>(words + gpu_thread(), args.in + gpu_thread());   // reported: copy_seen_by_others
    gpu_copy_commit();
    gpu_copy_wait<0>();
    if (!args.broken) gpu_barrier_block();
    args.out[gpu_thread() ^ 32] = words[gpu_thread() ^ 32] + 1;   // reported: copy_seen_by_others
}

// out is copied to shared memory and then written.
static __device__ void copy_source_changes(const case_args &args)
{
    unsigned *words = shared_words() + gpu_lane();
    args.out[gpu_lane()] = args.in[gpu_lane()];
    gpu_copy_async<4>(words, args.out + gpu_lane());
    gpu_copy_commit();
    if (!args.broken) gpu_copy_wait<0>();
    args.out[gpu_lane()] = args.in[gpu_lane()] + 1;   // reported: copy_source_changes
    gpu_copy_wait<0>();
}

static __device__ void copy_over_readers(const case_args &args)
{
    unsigned *words = shared_words();
    words[gpu_thread()] = 1;
    gpu_barrier_block();
    const unsigned one = words[gpu_thread() ^ 32];   // reported: copy_over_readers
    if (!args.broken) gpu_barrier_block();
    gpu_copy_async<4>(words + gpu_thread(), args.in + gpu_thread());   // reported: copy_over_readers
    gpu_copy_commit();
    gpu_copy_wait<0>();
    args.out[gpu_thread()] = words[gpu_thread()] + one;
}

static __device__ void copy_left_behind(const case_args &args)
{
    gpu_copy_async<4>(shared_words() + gpu_lane(), args.in + gpu_lane());   // reported: copy_left_behind
    gpu_copy_commit();
    if (!args.broken) gpu_copy_wait<0>();
    args.out[gpu_lane()] = args.in[gpu_lane()] + 1;
}

static __device__ void copy_misaligned(const case_args &args)
{
    unsigned *words = shared_words();
    const unsigned *from = args.in + gpu_lane() * 4 + (args.broken ? 1 : 0);
    if (gpu_lane() < 8) gpu_copy_async<16>(words + gpu_lane() * 4, from);   // reported: copy_misaligned
    gpu_copy_commit();
    gpu_copy_wait<0>();
    gpu_barrier<1>();
    args.out[gpu_lane()] = words[gpu_lane()] + 1;
}

// --------------------------------------------------------------------------------------------------------- bulk copies

// Every word is written once, so that what is wrong with a later access is not that nothing was there.
static __device__ void clear()
{
    shared_words()[gpu_thread()] = 0;
    gpu_bulk_fence();
    gpu_barrier_block();
}

// Thread 0 sets mbarrier 0 up for one arrival.
static __device__ void begin(bool fence)
{
    if (gpu_thread() == 0) {
        gpu_mbarrier_init(mbarrier(0), 1);
        if (fence) gpu_mbarrier_fence_init();
    }
    gpu_barrier_block();
}

static __device__ void load_words(const case_args &args, unsigned n_expected)
{
    if (gpu_thread() != 0) return;
    gpu_mbarrier_arrive_expect(mbarrier(0), n_expected);   // reported: mbarrier_not_initialised
    gpu_bulk_load(shared_words(), args.in, 256, mbarrier(0));
}

static __device__ void bulk_read_early(const case_args &args)
{
    clear();
    begin(true);
    load_words(args, 256);
    gpu_barrier_block();   // the copy is under way before anybody reads
    if (!args.broken || gpu_warp() == 0) gpu_mbarrier_wait(mbarrier(0), 0);
    args.out[gpu_thread()] = shared_words()[gpu_thread()] + 1;   // reported: bulk_read_early
}

// Two arrivals: the second comes behind the read of the broken kernel, so its phase is still open there.
static __device__ void bulk_wrong_parity(const case_args &args)
{
    clear();
    if (gpu_thread() == 0) {
        gpu_mbarrier_init(mbarrier(0), 2);
        gpu_mbarrier_fence_init();
    }
    gpu_barrier_block();
    load_words(args, 256);
    gpu_barrier_block();
    if (!args.broken && gpu_thread() == 63) gpu_mbarrier_arrive(mbarrier(0));
    gpu_mbarrier_wait(mbarrier(0), args.broken ? 1 : 0);
    const unsigned word = shared_words()[gpu_thread()];   // reported: bulk_wrong_parity
    if (args.broken && gpu_thread() == 63) gpu_mbarrier_arrive(mbarrier(0));
    args.out[gpu_thread()] = word + 1;
}

// Two rounds over one buffer; the second wait names the first one's phase again.
static __device__ void bulk_second_parity(const case_args &args)
{
    begin(true);
    load_words(args, 256);
    gpu_mbarrier_wait(mbarrier(0), 0);
    const unsigned word = shared_words()[gpu_thread()];
    gpu_barrier_block();
    load_words(args, 256);
    gpu_mbarrier_wait(mbarrier(0), args.broken ? 0 : 1);   // reported: bulk_second_parity
    args.out[gpu_thread()] = shared_words()[gpu_thread()] - word + args.in[gpu_thread()] + 1;
}

static __device__ void bulk_few_bytes(const case_args &args)
{
    clear();
    begin(true);
    if (gpu_thread() == 0) {
        gpu_mbarrier_arrive_expect(mbarrier(0), args.broken ? 128 : 256);
        gpu_bulk_load(shared_words(), args.in, 128, mbarrier(0));
        gpu_bulk_load(shared_words() + 32, args.in + 32, 128, mbarrier(0));
    }
    gpu_barrier_block();
    gpu_mbarrier_wait(mbarrier(0), 0);
    args.out[gpu_thread()] = shared_words()[gpu_thread()] + 1;   // reported: bulk_few_bytes
}

static __device__ void bulk_many_bytes(const case_args &args)
{
    begin(true);
    load_words(args, args.broken ? 272 : 256);
    gpu_mbarrier_wait(mbarrier(0), 0);   // reported: bulk_many_bytes
    args.out[gpu_thread()] = shared_words()[gpu_thread()] + 1;
}

static __device__ void bulk_no_fence(const case_args &args)
{
    begin(!args.broken);
    if (gpu_thread() == 0) {
        gpu_mbarrier_arrive_expect(mbarrier(0), 256);
        gpu_bulk_load(shared_words(), args.in, 256, mbarrier(0));   // reported: bulk_no_fence
    }
    gpu_mbarrier_wait(mbarrier(0), 0);
    args.out[gpu_thread()] = shared_words()[gpu_thread()] + 1;
}

static __device__ void bulk_over_writes(const case_args &args)
{
    shared_words()[gpu_thread()] = 0;
    if (!args.broken) gpu_bulk_fence();
    begin(true);
    if (gpu_thread() == 0) {
        gpu_mbarrier_arrive_expect(mbarrier(0), 256);
        gpu_bulk_load(shared_words(), args.in, 256, mbarrier(0));   // reported: bulk_over_writes
    }
    gpu_mbarrier_wait(mbarrier(0), 0);
    args.out[gpu_thread()] = shared_words()[gpu_thread()] + 1;
}

static __device__ void bulk_store_no_fence(const case_args &args)
{
    shared_words()[gpu_thread()] = args.in[gpu_thread()] + 1;
    if (!args.broken) gpu_bulk_fence();
    gpu_barrier_block();
    if (gpu_thread() != 0) return;
    gpu_bulk_store(args.out, shared_words(), 256);   // reported: bulk_store_no_fence
    gpu_bulk_commit();
    gpu_bulk_wait<0>();
}

static __device__ void bulk_store_reused(const case_args &args)
{
    shared_words()[gpu_thread()] = args.in[gpu_thread()] + 1;
    gpu_bulk_fence();
    gpu_barrier_block();
    if (gpu_thread() != 0) return;
    gpu_bulk_store(args.out, shared_words(), 256);
    gpu_bulk_commit();
    if (!args.broken) gpu_bulk_wait_read<0>();
    shared_words()[0] = 0;   // reported: bulk_store_reused
    gpu_bulk_wait<0>();
}

static __device__ void bulk_odd_size(const case_args &args)
{
    begin(true);
    if (gpu_thread() == 0) {
        gpu_mbarrier_arrive_expect(mbarrier(0), 256);
        gpu_bulk_load(shared_words(), args.in, args.broken ? 252 : 256, mbarrier(0));   // reported: bulk_odd_size
    }
    gpu_mbarrier_wait(mbarrier(0), 0);
    args.out[gpu_thread()] = shared_words()[gpu_thread()] + 1;
}

// ----------------------------------------------------------------------------------------------------------- mbarriers

static __device__ void mbarrier_not_initialised(const case_args &args)
{
    if (!args.broken) begin(true);
    load_words(args, 256);
    gpu_mbarrier_wait(mbarrier(0), 0);   // reported: mbarrier_not_initialised
    args.out[gpu_thread()] = shared_words()[gpu_thread()] + 1;
}

// Warp 1 arrives for warp 0; nothing but a barrier orders the initialisation.
static __device__ void mbarrier_before_barrier(const case_args &args)
{
    if (gpu_thread() == 0) gpu_mbarrier_init(mbarrier(0), 32);
    if (!args.broken) gpu_barrier_block();
    else gpu_barrier<1>();
    if (gpu_warp() == 1) {
        shared_words()[gpu_lane()] = args.in[gpu_lane()] + 1;
        gpu_mbarrier_arrive(mbarrier(0));   // reported: mbarrier_before_barrier
    } else {
        gpu_mbarrier_wait(mbarrier(0), 0);   // reported: mbarrier_before_barrier
        args.out[gpu_lane()] = shared_words()[gpu_lane()];
    }
}

static __device__ void mbarrier_extra_arrival(const case_args &args)
{
    if (gpu_thread() == 0) gpu_mbarrier_init(mbarrier(0), args.broken ? 16 : 32);
    gpu_barrier_block();
    if (gpu_warp() == 1) {
        shared_words()[gpu_lane()] = args.in[gpu_lane()] + 1;
        if (args.broken) gpu_mbarrier_expect(mbarrier(0), 16);
        gpu_mbarrier_arrive(mbarrier(0));   // reported: mbarrier_extra_arrival
    } else {
        gpu_mbarrier_wait(mbarrier(0), 0);
        args.out[gpu_lane()] = shared_words()[gpu_lane()];
    }
}

static __device__ void mbarrier_missing_arrival(const case_args &args)
{
    if (gpu_thread() == 0) gpu_mbarrier_init(mbarrier(0), 32);
    gpu_barrier_block();
    if (gpu_warp() == 1) {
        shared_words()[gpu_lane()] = args.in[gpu_lane()] + 1;
        if (!args.broken || gpu_lane() != 11) gpu_mbarrier_arrive(mbarrier(0));
    } else {
        gpu_mbarrier_wait(mbarrier(0), 0);   // reported: mbarrier_missing_arrival
        args.out[gpu_lane()] = shared_words()[gpu_lane()];
    }
}

static __device__ void mbarrier_spin(const case_args &args)
{
    if (gpu_thread() == 0) gpu_mbarrier_init(mbarrier(0), 32);
    gpu_barrier_block();
    if (gpu_warp() == 1) {
        shared_words()[gpu_lane()] = args.in[gpu_lane()] + 1;
        if (!args.broken) gpu_mbarrier_arrive(mbarrier(0));
    } else {
        while (!gpu_mbarrier_test(mbarrier(0), 0)) {}   // reported: mbarrier_spin
        args.out[gpu_lane()] = shared_words()[gpu_lane()];
    }
}

// A ring of two stages: warp 0 produces by bulk copies, warp 1 consumes; `empty` begins as passed.
static __device__ void ring_wrong_parity(const case_args &args)
{
    enum { STAGES = 2, ROUNDS = 8, PART = 8 };   // words per round
    if (gpu_thread() == 0) {
        for (int i = 0; i < STAGES; i++) {
            gpu_mbarrier_init(mbarrier(i), 1);
            gpu_mbarrier_init(mbarrier(STAGES + i), 32);
        }
        gpu_mbarrier_fence_init();
    }
    gpu_barrier_block();
    if (gpu_thread() == 0) {
        for (int round = 0; round < ROUNDS; round++) {
            const int stage = round % STAGES, parity = round / STAGES & 1;
            const int empty = args.broken ? parity : parity ^ 1;
            gpu_mbarrier_wait(mbarrier(STAGES + stage), empty);   // reported: ring_wrong_parity
            gpu_mbarrier_arrive_expect(mbarrier(stage), PART * 4);
            gpu_bulk_load(shared_words() + stage * PART, args.in + round * PART, PART * 4, mbarrier(stage));
        }
    } else if (gpu_warp() == 1) {
        for (int round = 0; round < ROUNDS; round++) {
            const int stage = round % STAGES, parity = round / STAGES & 1;
            gpu_mbarrier_wait(mbarrier(stage), parity);   // reported: ring_wrong_parity
            if (gpu_lane() < PART) args.out[round * PART + gpu_lane()] = shared_words()[stage * PART + gpu_lane()] + 1;
            gpu_mbarrier_arrive(mbarrier(STAGES + stage));
        }
    }
}

extern "C" __global__ void async(const __grid_constant__ case_args args)
{
    int i = 0;
#define CASE(name, defect, n_blocks, n_threads)                                                                        \
    if (args.which == i++) name(args);
    ASYNC_CASES(CASE)
#undef CASE
}
