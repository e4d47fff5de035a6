// Arguments of the `advance` op: commit the last window of each row's slot, open the next one, leave descriptors.
// Shared by host and kernels; its layout hash is stored with every binary.
#ifndef RSSM_ABI_ADVANCE_H
#define RSSM_ABI_ADVANCE_H

#include "abi/cursor.h"

enum {
    RSSM_ADVANCE_COMMIT = 1 << 0,        // apply `accepted` to the pending steps
    RSSM_ADVANCE_OPEN = 1 << 1,          // open this step and write descriptors
    RSSM_ADVANCE_CHECK_SLOTS = 1 << 2,   // debug: report two rows that name the same slot (O(n^2) at worst)
};

typedef struct rssm_advance_kernel_args {
    rssm_cursor *cursors;             // [n_slots]
    rssm_descriptor *descriptors;     // [n_rows] out: folding rows first, then the others, each in row order
    const rssm_i32 *slots;            // [n_rows]
    const rssm_i32 *tokens;           // [n_rows] tokens of the row; NULL: T for every row
    const rssm_i32 *cu_seqlens;       // [n_rows + 1] first token of each row, packed; NULL: dense, row * T.
                                      // Where given it also gives the rows' token counts, and `tokens` is ignored;
                                      // a row of length 0 owns no token, and its descriptor's `token` is -1.
    const rssm_i32 *accepted;         // [n_rows] accepted tokens of the slot's last step; NULL: all of them
    const unsigned char *forced;      // [n_rows] not 0: fold in this step; NULL: none
    const rssm_u32 *epochs;           // [n_rows] NULL: the slot's own epoch, so nothing is reset
    rssm_u32 *issues;                 // one word; RSSM_ISSUE_* bits are OR-ed in
    rssm_window window;
    rssm_i32 n_rows;
    rssm_i32 n_slots;
    rssm_i32 pad_slot;                // slot value of a null row (often -1, vLLM: 0)
    rssm_i32 flags;                   // RSSM_ADVANCE_*
} rssm_advance_kernel_args;

RSSM_ASSERT(sizeof(rssm_advance_kernel_args) == 104, "advance argument layout");

#endif
