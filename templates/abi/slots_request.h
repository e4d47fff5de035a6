// One request of the `slots` op: which slots it names, whether it can be met, and the cursors and the move it leaves.
//
// Valid as C11, C++17 and device code: the kernels of every backend run requests through this one function, in any
// order, since no request of a launch has another's destination among its slots. A request that is skipped or refused
// leaves every cursor as it was and a move with a negative source. Transitions are those of abi/cursor.h.
// Threads: a destination has one request; sources are only read.
#ifndef RSSM_ABI_SLOTS_REQUEST_H
#define RSSM_ABI_SLOTS_REQUEST_H

#include "abi/slots.h"

// The move of a request that is skipped, refused, or behind the end of the list.
RSSM_FN rssm_slot_move rssm_slots_no_move(void)
{
    rssm_slot_move move;
    move.source = -1;
    move.destination = -1;
    move.start = 0;
    move.n = 0;
    move.pos = 0;
    move.nonce = 0;
    return move;
}

RSSM_FN rssm_i32 rssm_slots_in_range(const rssm_slots_kernel_args *args, rssm_i32 slot)
{
    return slot >= 0 && slot < args->n_slots;
}

// A new sequence of `count` records. Nothing of the old one matters.
RSSM_FN rssm_u32 rssm_slots_reset(const rssm_slots_kernel_args *args, rssm_i32 request, rssm_cursor *c)
{
    const rssm_i32 count = args->counts ? args->counts[request] : 0;
    const rssm_u32 epoch = args->epochs ? args->epochs[request] : c->epoch;
    const rssm_u64 pos = args->positions ? args->positions[request] : 0;

    if (count < 0 || count > args->ring_length) return RSSM_ISSUE_RECORDS;
    rssm_cursor_reset(c, epoch, pos, args->nonces ? args->nonces[request] : epoch);
    c->h = count;
    return 0;
}

// Copy and materialize: the new cursor of the destination, which may be the source, and what its layers are to do.
RSSM_FN rssm_u32 rssm_slots_move(const rssm_slots_kernel_args *args, rssm_i32 request, rssm_i32 from, rssm_i32 to,
                                 rssm_cursor *c, rssm_slot_move *move)
{
    const rssm_i32    is_copy = args->kind == RSSM_SLOTS_COPY;
    const rssm_cursor source = args->cursors[from];
    const rssm_i32    n = is_copy ? rssm_cursor_records(&source) : args->counts[request];
    const rssm_u64    nonce = args->nonces ? args->nonces[request] : source.nonce;
    const rssm_u32    kept = is_copy ? source.epoch : c->epoch;
    const rssm_u32    epoch = args->epochs ? args->epochs[request] : kept;
    rssm_u32          issues;

    if (from != to) {
        issues = is_copy ? rssm_cursor_copy(&source, epoch, nonce, c)
                         : rssm_cursor_materialize(&source, n, epoch, nonce, c);
    } else if (is_copy) {   // its records stay where they are
        issues = source.invalid ? RSSM_ISSUE_INVALID_SLOT : 0;
    } else {
        issues = rssm_cursor_materialize_in_place(c, n, args->ring_length);
    }
    if (issues) return issues;
    c->epoch = epoch;
    c->nonce = nonce;
    if (from == to && is_copy) return 0;
    move->source = from;
    move->destination = to;
    move->start = source.start;
    move->n = n;
    move->pos = source.pos;
    move->nonce = source.nonce;
    return 0;
}

// Runs request `request` of [0, n_rows). Returns RSSM_ISSUE_* bits.
RSSM_FN rssm_u32 rssm_slots_run(const rssm_slots_kernel_args *args, rssm_i32 request, rssm_slot_move *move)
{
    const rssm_i32 has_source = args->kind == RSSM_SLOTS_COPY || args->kind == RSSM_SLOTS_MATERIALIZE;
    rssm_i32       from, to;
    rssm_cursor    c;
    rssm_u32       issues = 0;

    *move = rssm_slots_no_move();
    if (request < 0 || request >= args->n_rows) return RSSM_ISSUE_SLOT_RANGE;
    to = args->destinations[request];
    from = has_source ? args->sources[request] : to;
    if (to == args->pad_slot || from == args->pad_slot) return 0;
    if (!rssm_slots_in_range(args, to) || !rssm_slots_in_range(args, from)) return RSSM_ISSUE_SLOT_RANGE;
    c = args->cursors[to];
    switch (args->kind) {
    case RSSM_SLOTS_RESET:
        issues = rssm_slots_reset(args, request, &c);
        break;
    case RSSM_SLOTS_TRUNCATE:
        issues = rssm_cursor_truncate(&c, args->positions[request]);
        break;
    case RSSM_SLOTS_INVALIDATE:
        c.invalid = 1;
        break;
    default:
        issues = rssm_slots_move(args, request, from, to, &c, move);
        break;
    }
    if (!issues) args->cursors[to] = c;
    return issues;
}

#endif
