// slots: what becomes of slots between steps: reset, copy, materialize, truncate, invalidate. Cursors only.
//
// Flow      one block; the places of the request list in chunks of THREADS, a place per thread. Per chunk:
//           1 the request, if the list has not ended   2 where it ends in this chunk: ballots, then a word per warp
//           3 requests before the end: the transition (abi/slots_request.h)   4 a move to every place, where wanted
// Order     any: no request's destination is among another's slots
// Traffic   per request its numbers, two cursors and a move; latency is all
// Issues    bits of all requests, OR-ed into one word by atomics, and only where there are any
// Invariant nothing that stands behind the list's first negative entry is acted on
#include "rssm_config.h"

#include "abi/slots_request.h"
#include "prims/cuda_memory.cuh"
#include "prims/cuda_shared.cuh"
#include "prims/cuda_shuffle.cuh"

enum { WARPS = CFG_THREADS / GPU_WARP };

struct Shared {
    rssm_u32 ends[2][WARPS];   // which lanes of each warp hold a negative request; two buffers: one barrier per chunk
};

// Contract with slots.json
static_assert(CFG_THREADS % GPU_WARP == 0 && WARPS >= 1 && WARPS <= 32, "whole warps of one block");
static_assert(sizeof(Shared) == CFG_SHARED_BYTES, "derived SHARED_BYTES and struct Shared disagree");

// Whether the list goes on up to and with this thread's place; `has_ended` is set where it ends in this chunk. All
// threads call. `parity` alternates.
GPU_FN bool is_before_end(Shared &shared, bool ends_here, rssm_i32 &parity, bool &has_ended)
{
    const rssm_u32  lanes = gpu_ballot(ends_here);
    rssm_u32 *const ends = shared.ends[parity];
    const rssm_u32  up_to_mine = 0xffffffffu >> (GPU_WARP - 1 - gpu_lane());
    bool            is_before = (lanes & up_to_mine) == 0;
    if (gpu_lane() == 0) ends[gpu_warp()] = lanes;
    gpu_barrier<WARPS>();   // ends: written by each warp -> read by all
#pragma unroll
    for (int warp = 0; warp < WARPS; warp++) {
        if (ends[warp] == 0) continue;
        if (warp < gpu_warp()) is_before = false;
        has_ended = true;
    }
    parity ^= 1;
    return is_before;
}

extern "C" __global__ void __launch_bounds__(CFG_THREADS, 1)
    slots(const __grid_constant__ rssm_slots_kernel_args args)
{
    Shared  &shared = *(Shared *)gpu_shared_memory();
    rssm_i32 parity = 0;
    rssm_u32 issues = 0;
    bool     has_ended = false;   // in a chunk before this one

    for (rssm_i32 first = 0; first < args.n_rows; first += CFG_THREADS) {
        const rssm_i32 place = first + gpu_thread();
        const bool     is_listed = place < args.n_rows && !has_ended;
        rssm_i32       request = place;
        bool           is_live = is_listed;
        rssm_slot_move move = rssm_slots_no_move();
        if (args.requests) {
            if (is_listed) request = args.requests[place];
            is_live = is_before_end(shared, is_listed && request < 0, parity, has_ended) && is_listed;
        }
        if (is_live) issues |= rssm_slots_run(&args, request, &move);
        if (place < args.n_rows && args.moves) args.moves[place] = move;
    }
    if (issues && args.issues) gpu_atomic_or(args.issues, issues);
}
