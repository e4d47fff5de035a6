// advance: commits the pending step of every row's slot, opens the next one and writes descriptors, folding rows first.
//
// Flow      one block; the rows in chunks of THREADS, a row per thread. Per chunk:
//           1 each warp brings its rows' cursors to shared memory, eight bytes per lane, so that neighbouring lanes
//             share a cursor (a lane that reads its own 40 bytes touches 32 lines per instruction and warp)
//           2 the transition, on the copy   3 rank among the folding or the other rows by ballots and warp counts
//           4 descriptors to their places, cursors back as they came
//           With more than one chunk a first pass over all of them counts the folding rows, writing nothing.
// Order     folding rows in row order, then the others in row order: stable, the same on every run
// Traffic   a slot number, a cursor and a descriptor per row, cursors of later chunks twice; latency is all
// Issues    bits of all rows, OR-ed into one word by atomics, and only where there are any
// Invariant the transitions are abi/cursor.h's; no row of the batch names another's slot, so that passes do not
//           disturb each other. A packed row of length 0 gets token -1, so that step leaves its
//           neighbour's output alone.
#include "rssm_config.h"

#include "abi/advance.h"
#include "prims/cuda_memory.cuh"
#include "prims/cuda_shared.cuh"
#include "prims/cuda_shuffle.cuh"

enum {
    WARPS = CFG_THREADS / GPU_WARP,
    CURSOR_WORDS = sizeof(rssm_cursor) / sizeof(rssm_u64),
};

struct Shared {
    union {
        rssm_cursor cursor;
        rssm_u64    words[CURSOR_WORDS];
    } rows[CFG_THREADS];             // cursors of the chunk's rows; each warp reads and writes its own rows' only
    rssm_i32 folds[2][WARPS];        // folding rows of each warp; two buffers, so that one barrier per chunk is enough
};

// Contract with advance.json
static_assert(CFG_THREADS % GPU_WARP == 0 && WARPS >= 1 && WARPS <= 32, "whole warps of one block");
static_assert(sizeof(Shared) == CFG_SHARED_BYTES, "derived SHARED_BYTES and struct Shared disagree");

// What a row's transition gives, besides its cursor.
struct Outcome {
    rssm_descriptor descriptor;
    rssm_u32        issues;
    bool            fold;
};

GPU_FN bool is_live(const rssm_advance_kernel_args &args, rssm_i32 slot)
{
    return slot != args.pad_slot && slot >= 0 && slot < args.n_slots;
}

// Debug only, O(n) per row: an earlier row names the same slot.
GPU_FN bool is_duplicate(const rssm_advance_kernel_args &args, rssm_i32 row)
{
    if (!(args.flags & RSSM_ADVANCE_CHECK_SLOTS)) return false;
    for (rssm_i32 i = 0; i < row; i++) {
        if (args.slots[i] == args.slots[row]) return true;
    }
    return false;
}

// The slot whose cursor the row moves; -1 where there is none.
GPU_FN rssm_i32 find_slot(const rssm_advance_kernel_args &args, rssm_i32 row)
{
    if (row >= args.n_rows || !is_live(args, args.slots[row]) || is_duplicate(args, row)) return -1;
    return args.slots[row];
}

// Word i of this lane's share of the warp's cursors: which row of the warp, and which word of its cursor.
GPU_FN rssm_i32 share_row(int i)
{
    return (i * GPU_WARP + gpu_lane()) / CURSOR_WORDS;
}

GPU_FN rssm_i32 share_word(int i)
{
    return (i * GPU_WARP + gpu_lane()) % CURSOR_WORDS;
}

// The cursors of the warp's rows to shared memory. On return the warp may read them.
GPU_FN void load_cursors(const rssm_advance_kernel_args &args, Shared &shared, rssm_i32 slot)
{
    gpu_vec2 v[CURSOR_WORDS];
#pragma unroll
    for (int i = 0; i < CURSOR_WORDS; i++) {
        const rssm_i32 from = (rssm_i32)gpu_shuffle_from((rssm_u32)slot, share_row(i));
        v[i] = gpu_load8_if((const rssm_u64 *)args.cursors + (rssm_i64)from * CURSOR_WORDS + share_word(i), from >= 0);
    }
    gpu_warp_barrier();   // cursors: used by the warp in the chunk before -> written
#pragma unroll
    for (int i = 0; i < CURSOR_WORDS; i++) {
        shared.rows[gpu_warp() * GPU_WARP + share_row(i)].words[share_word(i)] = v[i].w[0] | (rssm_u64)v[i].w[1] << 32;
    }
    gpu_warp_barrier();   // cursors: written by each lane -> read by the warp
}

// The cursors of the warp's rows back to their slots.
GPU_FN void store_cursors(const rssm_advance_kernel_args &args, const Shared &shared, rssm_i32 slot)
{
    gpu_warp_barrier();   // cursors: changed by their rows' lanes -> read by the warp
#pragma unroll
    for (int i = 0; i < CURSOR_WORDS; i++) {
        const rssm_i32 to = (rssm_i32)gpu_shuffle_from((rssm_u32)slot, share_row(i));
        const rssm_u64 bits = shared.rows[gpu_warp() * GPU_WARP + share_row(i)].words[share_word(i)];
        gpu_vec2       v;
        v.w[0] = (rssm_u32)bits;
        v.w[1] = (rssm_u32)(bits >> 32);
        if (to >= 0) gpu_store8((rssm_u64 *)args.cursors + (rssm_i64)to * CURSOR_WORDS + share_word(i), v);
    }
}

// Commit and open of one row, on the copy of its cursor. A new epoch beats the commit.
GPU_FN void transit(const rssm_advance_kernel_args &args, Shared &shared, rssm_i32 row, rssm_i32 slot,
                    Outcome &outcome)
{
    const rssm_i32 token = args.cu_seqlens ? args.cu_seqlens[row] : row * args.window.T;
    const rssm_i32 t = args.cu_seqlens ? args.cu_seqlens[row + 1] - token
                       : args.tokens   ? args.tokens[row]
                                       : args.window.T;
    const rssm_i32 place = args.cu_seqlens && t <= 0 ? -1 : token;   // a packed row of length 0 has no token of its own

    outcome.issues = 0;
    outcome.fold = false;
    rssm_descriptor_null(&outcome.descriptor, place);
    if (args.cu_seqlens) rssm_descriptor_own(&outcome.descriptor, t);
    if (slot < 0) {
        const rssm_i32 named = args.slots[row];
        if (is_live(args, named)) outcome.issues = args.flags & RSSM_ADVANCE_OPEN ? RSSM_ISSUE_DUPLICATE_SLOT : 0;
        else if (named != args.pad_slot) outcome.issues = RSSM_ISSUE_SLOT_RANGE;
        return;
    }
    rssm_cursor    cursor = shared.rows[gpu_thread()].cursor;
    const rssm_u32 epoch = args.epochs ? args.epochs[row] : cursor.epoch;
    if ((args.flags & RSSM_ADVANCE_COMMIT) && epoch == cursor.epoch) {
        const rssm_i32 accepted = args.accepted ? args.accepted[row] : cursor.pending_t;
        outcome.issues |= rssm_cursor_commit(&cursor, &args.window, accepted);
    }
    if (args.flags & RSSM_ADVANCE_OPEN) {
        const rssm_i32 forced = args.forced && args.forced[row];
        outcome.issues |=
            rssm_cursor_open(&cursor, &args.window, slot, place, t, forced, epoch, &outcome.descriptor);
        if (args.cu_seqlens) rssm_descriptor_own(&outcome.descriptor, t);
        outcome.fold = outcome.descriptor.mode >= RSSM_MODE_FOLD_HISTORY;
    }
    shared.rows[gpu_thread()].cursor = cursor;
}

// The transition of this thread's row, first + thread, its cursor in shared memory. Returns the row's slot.
GPU_FN rssm_i32 transit_chunk(const rssm_advance_kernel_args &args, Shared &shared, rssm_i32 first, Outcome &outcome)
{
    const rssm_i32 row = first + gpu_thread();
    const rssm_i32 slot = find_slot(args, row);
    load_cursors(args, shared, slot);
    outcome.fold = false;
    if (row < args.n_rows) transit(args, shared, row, slot, outcome);
    return slot;
}

// Folding rows of the chunk before this thread's row; `total`: of the whole chunk. `parity` alternates.
GPU_FN rssm_i32 rank_folds(Shared &shared, bool fold, rssm_i32 &parity, rssm_i32 &total)
{
    const rssm_u32  lanes = gpu_ballot(fold);
    rssm_i32 *const folds = shared.folds[parity];
    rssm_i32        before = gpu_count_bits(lanes & ((1u << gpu_lane()) - 1));
    if (gpu_lane() == 0) folds[gpu_warp()] = gpu_count_bits(lanes);
    gpu_barrier<WARPS>();   // counts: written by each warp -> read by all
    total = 0;
#pragma unroll
    for (int warp = 0; warp < WARPS; warp++) {
        before += warp < gpu_warp() ? folds[warp] : 0;
        total += folds[warp];
    }
    parity ^= 1;
    return before;
}

extern "C" __global__ void __launch_bounds__(CFG_THREADS, 1)
    advance(const __grid_constant__ rssm_advance_kernel_args args)
{
    Shared  &shared = *(Shared *)gpu_shared_memory();
    rssm_i32 folds_before = 0, others_before = 0, folds, parity = 0;
    rssm_u32 issues = 0;
    Outcome  outcome;

    if (args.n_rows > CFG_THREADS) {   // the others begin behind all folding rows
        for (rssm_i32 first = 0; first < args.n_rows; first += CFG_THREADS) {
            transit_chunk(args, shared, first, outcome);
            rank_folds(shared, outcome.fold, parity, folds);
            others_before += folds;
        }
    }
    for (rssm_i32 first = 0; first < args.n_rows; first += CFG_THREADS) {
        const rssm_i32 slot = transit_chunk(args, shared, first, outcome);
        const rssm_i32 rank = rank_folds(shared, outcome.fold, parity, folds);
        if (args.n_rows <= CFG_THREADS) others_before = folds;
        if (first + gpu_thread() < args.n_rows) {
            const rssm_i32 place = outcome.fold ? folds_before + rank : others_before + gpu_thread() - rank;
            if (args.flags & RSSM_ADVANCE_OPEN) args.descriptors[place] = outcome.descriptor;
            issues |= outcome.issues;
        }
        store_cursors(args, shared, slot);
        folds_before += folds;
        others_before += CFG_THREADS - folds;
    }
    if (issues && args.issues) gpu_atomic_or(args.issues, issues);
}
