// advance: commits the pending step of every row's slot, opens the next one and writes descriptors, folding rows first.
//
// Flow      one block; the rows in chunks of THREADS, a row per thread
//           1 transition of the rows of the first chunk, in registers   2 count the folding rows, over all chunks
//           3 per chunk: transition (again, but for the first), write the cursor, rank the row among its kind by
//             ballots, write the descriptor at its place
// Order     folding rows in row order, then the others in row order: stable, the same on every run
// Traffic   a slot number, a cursor and a descriptor per row, cursors of later chunks twice; latency is all
// Issues    bits of all rows, OR-ed into one word by atomics, and only where there are any
// Invariant the transitions are abi/cursor.h's; no row of the batch names another's slot, so passes do not disturb
//           each other. A row that owns no token gets token -1 if it takes no part, so that step leaves its neighbour's
//           output alone.
#include "rssm_config.h"

#include "abi/advance.h"
#include "prims/cuda_memory.cuh"
#include "prims/cuda_shared.cuh"
#include "prims/cuda_shuffle.cuh"

// Contract with advance.json
enum {
    WARPS = CFG_THREADS / GPU_WARP,
};
static_assert(CFG_THREADS % GPU_WARP == 0 && WARPS >= 1 && WARPS <= 32, "whole warps of one block");

struct Shared {
    rssm_i32 count[2][WARPS];   // folding rows of each warp; two buffers, so that one barrier per chunk is enough
};
static_assert(sizeof(Shared) == CFG_SHARED_BYTES, "derived SHARED_BYTES and struct Shared disagree");

// What a row's transition gives.
struct Outcome {
    rssm_cursor     cursor;
    rssm_descriptor descriptor;
    rssm_u32        issues;
    rssm_i32        slot;         // whose cursor is to be written; < 0: none
    bool            fold;
};

GPU_FN bool names_slot_twice(const rssm_advance_kernel_args &args, rssm_i32 row, rssm_i32 slot)
{
    for (rssm_i32 i = 0; i < row; i++) {
        if (args.slots[i] == slot) return true;
    }
    return false;
}

// Commit and open of one existing row on copies; nothing is written. A new epoch beats the commit.
GPU_FN void transit(const rssm_advance_kernel_args &args, rssm_i32 row, Outcome &outcome)
{
    const rssm_i32 slot = args.slots[row];
    const rssm_i32 token = args.cu_seqlens ? args.cu_seqlens[row] : row * args.window.T;
    const rssm_i32 t = args.cu_seqlens ? args.cu_seqlens[row + 1] - token
                       : args.tokens   ? args.tokens[row]
                                       : args.window.T;
    const bool opens = args.flags & RSSM_ADVANCE_OPEN;

    outcome.issues = 0;
    outcome.fold = false;
    outcome.slot = slot != args.pad_slot && slot >= 0 && slot < args.n_slots ? slot : -1;
    if (outcome.slot < 0) {
        rssm_descriptor_null(&outcome.descriptor, args.cu_seqlens && t <= 0 ? -1 : token);
        if (slot != args.pad_slot) outcome.issues = RSSM_ISSUE_SLOT_RANGE;
        return;
    }
    outcome.cursor = args.cursors[slot];
    const rssm_u32 epoch = args.epochs ? args.epochs[row] : outcome.cursor.epoch;
    if ((args.flags & RSSM_ADVANCE_COMMIT) && epoch == outcome.cursor.epoch) {
        const rssm_i32 accepted = args.accepted ? args.accepted[row] : outcome.cursor.pending_t;
        outcome.issues |= rssm_cursor_commit(&outcome.cursor, &args.window, accepted);
    }
    if (opens) {
        const rssm_i32 forced = args.forced && args.forced[row];
        outcome.issues |= rssm_cursor_open(&outcome.cursor, &args.window, slot, token, t, forced, epoch,
                                           &outcome.descriptor);
        if (outcome.descriptor.slot < 0 && args.cu_seqlens && t <= 0) outcome.descriptor.token = -1;
        outcome.fold = outcome.descriptor.mode >= RSSM_MODE_FOLD_HISTORY;
    }
    if ((args.flags & RSSM_ADVANCE_CHECK_SLOTS) && names_slot_twice(args, row, slot)) {
        outcome.issues |= RSSM_ISSUE_DUPLICATE_SLOT;
    }
}

// Folding rows in the warps before this one and in all warps, from each warp's count. One barrier; `parity` alternates.
GPU_FN rssm_i32 count_over_warps(Shared &shared, rssm_i32 parity, rssm_i32 own, rssm_i32 &total)
{
    if (gpu_lane() == 0) shared.count[parity][gpu_warp()] = own;
    gpu_barrier<WARPS>();   // counts: written by each warp -> read by all
    rssm_i32 before = 0;
    total = 0;
#pragma unroll
    for (int warp = 0; warp < WARPS; warp++) {
        const rssm_i32 n = shared.count[parity][warp];
        if (warp < gpu_warp()) before += n;
        total += n;
    }
    return before;
}

// Folding rows of the whole batch.
GPU_FN rssm_i32 count_folds(const rssm_advance_kernel_args &args, Shared &shared, bool first_folds)
{
    rssm_i32 own = gpu_count_bits(gpu_ballot(first_folds)), total;
    for (rssm_i32 row = CFG_THREADS + gpu_thread(); row - gpu_lane() < args.n_rows; row += CFG_THREADS) {
        Outcome outcome;
        outcome.fold = false;
        if (row < args.n_rows) transit(args, row, outcome);
        own += gpu_count_bits(gpu_ballot(outcome.fold));
    }
    count_over_warps(shared, 1, own, total);
    return total;
}

extern "C" __global__ void __launch_bounds__(CFG_THREADS, 1)
    advance(const __grid_constant__ rssm_advance_kernel_args args)
{
    Shared        &shared = *(Shared *)gpu_shared_memory();
    const rssm_u32 lanes_before = (1u << gpu_lane()) - 1;
    rssm_i32       folds_before = 0, parity = 0;
    rssm_u32       issues = 0;
    Outcome        outcome;

    outcome.fold = false;
    if (gpu_thread() < args.n_rows) transit(args, gpu_thread(), outcome);
    rssm_i32 others_before = args.n_rows > CFG_THREADS ? count_folds(args, shared, outcome.fold) : 0;

    for (rssm_i32 first = 0; first < args.n_rows; first += CFG_THREADS) {
        const rssm_i32 row = first + gpu_thread();
        const bool     exists = row < args.n_rows;
        rssm_i32       folds;
        if (first > 0) {
            outcome.fold = false;
            if (exists) transit(args, row, outcome);
        }
        const rssm_u32 warp_folds = gpu_ballot(outcome.fold);
        const rssm_i32 before = count_over_warps(shared, parity, gpu_count_bits(warp_folds), folds);
        if (first == 0 && args.n_rows <= CFG_THREADS) others_before = folds;
        const rssm_i32 rank = before + gpu_count_bits(warp_folds & lanes_before);
        if (exists) {
            const rssm_i32 place = outcome.fold ? folds_before + rank : others_before + gpu_thread() - rank;
            if (outcome.slot >= 0) args.cursors[outcome.slot] = outcome.cursor;
            if (args.flags & RSSM_ADVANCE_OPEN) args.descriptors[place] = outcome.descriptor;
            issues |= outcome.issues;
        }
        folds_before += folds;
        others_before += CFG_THREADS - folds;
        parity ^= 1;
    }
    if (issues && args.issues) gpu_atomic_or(args.issues, issues);
}
