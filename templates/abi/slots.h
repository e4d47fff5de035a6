// Arguments of the `slots` op: the life of slots between steps. It moves cursors only, and leaves a move per request,
// which tells the layers' kernels (copy, materialize) what to do. Shared by host and kernels.
#ifndef RSSM_ABI_SLOTS_H
#define RSSM_ABI_SLOTS_H

#include "abi/cursor.h"

// What becomes of each request's slots. `source` and `destination` are slots, `count` and `position` its numbers.
enum {
    RSSM_SLOTS_RESET = 0,         // destination: a new sequence with `count` records from ring index 0 on
    RSSM_SLOTS_COPY = 1,          // destination: the source's sequence, its records from ring index 0 on
    RSSM_SLOTS_MATERIALIZE = 2,   // destination: the source's first `count` records folded, none left; in place: the rest
    RSSM_SLOTS_TRUNCATE = 3,      // destination: its newest tokens dropped, so that `position` tokens remain
    RSSM_SLOTS_INVALIDATE = 4,    // destination: not a state until it is reset, copied into or imported
};

// What a layer's kernel is told about one request. Moves are in the order of the request list.
typedef struct rssm_slot_move {
    rssm_i32 source;        // slot; < 0: nothing to do
    rssm_i32 destination;
    rssm_i32 start;         // ring index of the source's first record
    rssm_i32 n;             // records: to fold (materialize), or to copy to ring index 0 on (copy)
    rssm_u64 pos;           // tokens in the source's checkpoint
    rssm_u64 nonce;         // of the source's sequence
} rssm_slot_move;

RSSM_ASSERT(sizeof(rssm_slot_move) == 32, "slot move layout");

typedef struct rssm_slots_kernel_args {
    rssm_cursor *cursors;           // [n_slots]
    rssm_slot_move *moves;          // [n_rows] out: one per place of the list; NULL: not wanted
    const rssm_i32 *requests;       // [n_rows] indices into the arrays below, ended by a negative one or by n_rows;
                                    // NULL: 0, 1, 2, ...
    const rssm_i32 *sources;        // copy, materialize
    const rssm_i32 *destinations;
    const rssm_i32 *counts;         // materialize; reset: NULL means 0
    const rssm_u32 *epochs;         // of the destination's sequence from now on; NULL: reset and materialize keep the
                                    // destination's, copy takes the source's
    const rssm_u64 *positions;      // reset: NULL means 0; truncate
    const rssm_u64 *nonces;         // NULL: reset takes the epoch; copy and materialize the source's
    rssm_u32 *issues;               // one word, RSSM_ISSUE_* bits are OR-ed in; NULL: not wanted
    rssm_i32 kind;                  // RSSM_SLOTS_*
    rssm_i32 ring_length;           // R
    rssm_i32 n_rows;
    rssm_i32 n_slots;
    rssm_i32 pad_slot;              // a request with this slot as source or destination is skipped
    rssm_i32 reserved;
} rssm_slots_kernel_args;

RSSM_ASSERT(sizeof(rssm_slots_kernel_args) == 104, "slots argument layout");

#endif
