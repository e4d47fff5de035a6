// Cursors: every transition of a slot's window, in one place.
//
// Valid as C11, C++17 and device code; the device kernels, the CPU backend, the host mirror and the tests all include
// this file, so that they cannot disagree. It holds no tensor and does no arithmetic on numbers of the model.
//
// A slot holds a checkpoint and a ring of R records, of which the h records behind `start` are committed. A step of
// t tokens (0 <= t <= T) runs in one of three modes (SEMANTICS: "windows and folds"):
//   APPEND        reads checkpoint and h records; writes t records behind them
//   FOLD_HISTORY  checkpoint' = fold of the h committed records; writes t records behind them
//   FOLD_ALL      checkpoint' = fold of the h records and the current token; writes no record       (T = 1 only)
// `open` chooses the mode and leaves it pending; `commit`, once the accepted count is known, moves the cursor.
//
// Invariants (the property test in tests/templates/test_cursor.c proves each):
//   C1  0 <= h <= R and 0 <= start < R, always; an append never reaches a live record: h + t <= R.
//   C2  Every accepted token is folded exactly once or is a live record: pos + h = tokens accepted since the reset.
//   C3  A commit without a pending step changes nothing, so committing twice equals committing once.
//   C4  With t = T = 1 and nothing forced, a fold happens every L steps; h visits 0 .. L-1.
//   C5  A row that is refused (issue != 0 from open) leaves the cursor as it was and yields a null descriptor.
//
// Threads: a cursor has one writer at a time; two rows of one batch must not name the same slot.
#ifndef RSSM_ABI_CURSOR_H
#define RSSM_ABI_CURSOR_H

#include "abi/types.h"

// Mode of a row. Zero means "does nothing", so that zeroed memory is a valid idle cursor and a null descriptor.
enum {
    RSSM_MODE_NONE = 0,
    RSSM_MODE_APPEND = 1,
    RSSM_MODE_FOLD_HISTORY = 2,
    RSSM_MODE_FOLD_ALL = 3,
};

// What went wrong with a row: bits, collected over a batch.
enum {
    RSSM_ISSUE_SLOT_RANGE = 1 << 0,       // slot is neither the pad value nor below the number of slots
    RSSM_ISSUE_TOKENS = 1 << 1,           // t is negative or more than the window's T
    RSSM_ISSUE_CAPACITY = 1 << 2,         // h + t > R: an append would overwrite a live record
    RSSM_ISSUE_UNCOMMITTED = 1 << 3,      // opened while an earlier step still waits for its accepted count
    RSSM_ISSUE_LOST_TOKEN = 1 << 4,       // nothing accepted after FOLD_ALL: the token is in the checkpoint already
    RSSM_ISSUE_INVALID_SLOT = 1 << 5,     // the slot was marked invalid and not reset or imported since
    RSSM_ISSUE_DUPLICATE_SLOT = 1 << 6,   // two rows of one batch name the same slot (checked in debug mode)
    RSSM_ISSUE_RECORDS = 1 << 7,          // more records asked for than are committed, or than the ring holds
    RSSM_ISSUE_POSITION = 1 << 8,         // a position that is neither the checkpoint's nor one of a record behind it
};

// A slot's cursor, in device memory, one per slot and group. Zeroed memory is a fresh slot of epoch 0.
typedef struct rssm_cursor {
    rssm_i32 start;          // ring index of the oldest committed record, 0 <= start < R
    rssm_i32 h;              // committed records behind start
    rssm_i32 pending_t;      // tokens of the step whose accepted count is not known yet
    rssm_i32 pending_mode;   // its mode; RSSM_MODE_NONE when nothing is pending
    rssm_u32 epoch;          // changes when another sequence takes the slot over
    rssm_i32 invalid;        // not 0: contents are not a state (abandoned step, aborted import)
    rssm_u64 pos;            // tokens folded into the checkpoint so far
    rssm_u64 nonce;          // the sequence's own number, part of the stochastic rounding counter
} rssm_cursor;

// What a step is told about one row. 32 bytes; step reads this array and never a cursor. Hosts with cursors of their
// own fill it themselves. Descriptors may come in any order (advance puts flush rows first): `token` names the row.
typedef struct rssm_descriptor {
    rssm_i32 slot;    // < 0: null row, nothing is read or written but zeros to its outputs
    rssm_i32 token;   // index of the row's first token in the activations and outputs; < 0: it has none there. A row that
                      // computes nothing gets zeros to `t` outputs from here on, or to T of them where t is 0 (dense)
    rssm_i16 start;   // as in the cursor, before this step
    rssm_i16 h;
    rssm_i16 t;       // tokens of this row, 0 <= t <= T; of a null row in a packed batch: outputs it owns
    rssm_i16 mode;    // RSSM_MODE_*
    rssm_u64 pos;     // tokens folded before this step
    rssm_u64 nonce;
} rssm_descriptor;

RSSM_ASSERT(sizeof(rssm_cursor) == 40, "cursor layout");
RSSM_ASSERT(sizeof(rssm_descriptor) == 32, "descriptor layout");

// The window a group runs with. R belongs to the memory; L and T may be smaller than the memory allows.
typedef struct rssm_window {
    rssm_i32 L;       // flush threshold (buffer length), 1 <= L <= R
    rssm_i32 R;       // ring length, R >= L + T, or R >= L where T = 1; at most 32767
    rssm_i32 T;       // most tokens in one step
    rssm_i32 eager;   // not 0: fold every step; T = 1 only
} rssm_window;

// Ring index `offset` records after `start`; both below R, or offset == R. One conditional subtract.
RSSM_FN rssm_i32 rssm_ring_index(rssm_i32 start, rssm_i32 offset, rssm_i32 R)
{
    const rssm_i32 i = start + offset;
    return i >= R ? i - R : i;
}

// A fresh sequence in the slot: nothing recorded, nothing pending.
RSSM_FN void rssm_cursor_reset(rssm_cursor *c, rssm_u32 epoch, rssm_u64 pos, rssm_u64 nonce)
{
    c->start = 0;
    c->h = 0;
    c->pending_t = 0;
    c->pending_mode = RSSM_MODE_NONE;
    c->epoch = epoch;
    c->invalid = 0;
    c->pos = pos;
    c->nonce = nonce;
}

// Moves the cursor for the pending step of which the first `accepted` tokens are kept (the always-kept first token
// counts). Values outside 0 .. pending_t are clamped. Returns RSSM_ISSUE_* bits.
RSSM_FN rssm_u32 rssm_cursor_commit(rssm_cursor *c, const rssm_window *w, rssm_i32 accepted)
{
    rssm_u32 issues = 0;
    rssm_i32 a = accepted < c->pending_t ? accepted : c->pending_t;
    if (a < 0) a = 0;

    switch (c->pending_mode) {
    case RSSM_MODE_APPEND:
        c->h += a;
        break;
    case RSSM_MODE_FOLD_HISTORY:   // the history is retired even when a = 0: it is in the checkpoint
        c->pos += (rssm_u64)c->h;
        c->start = rssm_ring_index(c->start, c->h, w->R);
        c->h = a;
        break;
    case RSSM_MODE_FOLD_ALL:
        if (a < c->pending_t) issues |= RSSM_ISSUE_LOST_TOKEN;
        c->pos += (rssm_u64)c->h + (rssm_u64)c->pending_t;
        c->start = rssm_ring_index(c->start, c->h, w->R);
        c->h = 0;
        break;
    default:   // nothing pending (C3)
        break;
    }
    c->pending_t = 0;
    c->pending_mode = RSSM_MODE_NONE;
    return issues;
}

// The mode of a row of t tokens over h records.
RSSM_FN rssm_i32 rssm_choose_mode(const rssm_window *w, rssm_i32 h, rssm_i32 t, rssm_i32 forced)
{
    if (t == 0) return forced && h > 0 ? RSSM_MODE_FOLD_HISTORY : RSSM_MODE_NONE;
    if (w->T == 1) return forced || w->eager || h + 1 >= w->L ? RSSM_MODE_FOLD_ALL : RSSM_MODE_APPEND;
    return forced || h + t > w->L ? RSSM_MODE_FOLD_HISTORY : RSSM_MODE_APPEND;
}

// The descriptor of a row that takes no part.
RSSM_FN void rssm_descriptor_null(rssm_descriptor *d, rssm_i32 token)
{
    d->slot = -1;
    d->token = token;
    d->start = 0;
    d->h = 0;
    d->t = 0;
    d->mode = RSSM_MODE_NONE;
    d->pos = 0;
    d->nonce = 0;
}

// A row that was left null or refused in a packed batch still owns the outputs of its t tokens.
RSSM_FN void rssm_descriptor_own(rssm_descriptor *d, rssm_i32 t)
{
    if (d->slot < 0 && t > 0) d->t = (rssm_i16)(t < 32767 ? t : 32767);
}

// Opens a step of t tokens for the sequence of `epoch` in slot `slot`: a changed epoch resets the slot first (which
// also discards a pending step). Chooses the mode, leaves it pending and writes the descriptor. Returns issue bits;
// a refused row gets a null descriptor and leaves the cursor as it was (C5).
RSSM_FN rssm_u32 rssm_cursor_open(rssm_cursor *c, const rssm_window *w, rssm_i32 slot, rssm_i32 token, rssm_i32 t,
                                  rssm_i32 forced, rssm_u32 epoch, rssm_descriptor *d)
{
    const rssm_i32 is_new = c->epoch != epoch;
    const rssm_i32 h = is_new ? 0 : c->h;
    rssm_u32 issues = 0;
    rssm_i32 mode;

    rssm_descriptor_null(d, token);
    if (t < 0 || t > w->T) return RSSM_ISSUE_TOKENS;
    mode = rssm_choose_mode(w, h, t, forced);
    if (!is_new && c->invalid) issues |= RSSM_ISSUE_INVALID_SLOT;
    if (!is_new && c->pending_mode != RSSM_MODE_NONE) issues |= RSSM_ISSUE_UNCOMMITTED;
    if (mode != RSSM_MODE_FOLD_ALL && h + t > w->R) issues |= RSSM_ISSUE_CAPACITY;
    if (issues) return issues;

    if (is_new) rssm_cursor_reset(c, epoch, 0, epoch);
    c->pending_t = t;
    c->pending_mode = mode;
    d->slot = slot;
    d->start = (rssm_i16)c->start;
    d->h = (rssm_i16)c->h;
    d->t = (rssm_i16)t;
    d->mode = (rssm_i16)mode;
    d->pos = c->pos;
    d->nonce = c->nonce;
    return 0;
}

// ------------------------------------------------------------------------------------------------- between the steps
//
// What else may move a cursor. A refusal (issue != 0) leaves every cursor as it was.

// Whether a slot's cursor tells what lies in its memory: it holds a state, and no step waits for its accepted count.
RSSM_FN rssm_u32 rssm_cursor_settled(const rssm_cursor *c)
{
    if (c->invalid) return RSSM_ISSUE_INVALID_SLOT;
    return c->pending_mode != RSSM_MODE_NONE ? RSSM_ISSUE_UNCOMMITTED : 0;
}

// The cursor of a slot whose checkpoint holds the source's first n committed records more, and no record.
RSSM_FN rssm_u32 rssm_cursor_materialize(const rssm_cursor *source, rssm_i32 n, rssm_u32 epoch, rssm_u64 nonce,
                                         rssm_cursor *destination)
{
    const rssm_u32 issues = rssm_cursor_settled(source);
    if (issues) return issues;
    if (n < 0 || n > source->h) return RSSM_ISSUE_RECORDS;
    rssm_cursor_reset(destination, epoch, source->pos + (rssm_u64)n, nonce);
    return 0;
}

// The same where the slot is its own source: the records behind the first n stay.
RSSM_FN rssm_u32 rssm_cursor_materialize_in_place(rssm_cursor *c, rssm_i32 n, rssm_i32 R)
{
    const rssm_u32 issues = rssm_cursor_settled(c);
    if (issues) return issues;
    if (n < 0 || n > c->h) return RSSM_ISSUE_RECORDS;
    c->start = rssm_ring_index(c->start, n, R);
    c->h -= n;
    c->pos += (rssm_u64)n;
    return 0;
}

// The cursor of a copy whose records, those of a pending step among them, begin at ring index 0.
RSSM_FN rssm_u32 rssm_cursor_copy(const rssm_cursor *source, rssm_u32 epoch, rssm_u64 nonce, rssm_cursor *destination)
{
    const rssm_cursor c = *source;
    if (c.invalid) return RSSM_ISSUE_INVALID_SLOT;
    rssm_cursor_reset(destination, epoch, c.pos, nonce);
    destination->h = c.h;
    destination->pending_t = c.pending_t;
    destination->pending_mode = c.pending_mode;
    return 0;
}

// Records of a slot that a copy carries: the committed ones, and those that a pending step wrote behind them.
RSSM_FN rssm_i32 rssm_cursor_records(const rssm_cursor *c)
{
    const rssm_i32 appends = c->pending_mode == RSSM_MODE_APPEND || c->pending_mode == RSSM_MODE_FOLD_HISTORY;
    return c->h + (appends ? c->pending_t : 0);
}

// Drops the newest tokens, so that `position` remain: possible down to the checkpoint's own.
RSSM_FN rssm_u32 rssm_cursor_truncate(rssm_cursor *c, rssm_u64 position)
{
    const rssm_u32 issues = rssm_cursor_settled(c);
    if (issues) return issues;
    if (position < c->pos || position > c->pos + (rssm_u64)c->h) return RSSM_ISSUE_POSITION;
    c->h = (rssm_i32)(position - c->pos);
    return 0;
}

#endif
