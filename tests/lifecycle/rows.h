// The rows of one model step: who is in it, with how many tokens, and what else a host passes to advance.
//
// Besides sequences there are null rows, slots out of range, invalid slots, counts of tokens that a step must refuse,
// and, where the group checks for it, two rows of one slot. Threads: none.
#ifndef RSSM_TESTS_LIFECYCLE_ROWS_H
#define RSSM_TESTS_LIFECYCLE_ROWS_H

#include "tests/lifecycle/game.h"

typedef struct life_row {
    int32_t         slot, t, accepted, token, n_owned;
    uint8_t         forced;
    uint32_t        epoch;
    bool            is_live, is_duplicate; // names a slot; as an earlier row does
    uint64_t        ids[LIFE_T_MAX + 1];   // its tokens
    rssm_u32        issues;
    rssm_descriptor want;
} life_row;

typedef struct life_rows {
    const life_group *group;
    int32_t           group_index, n, pad_slot;
    bool              packed, pass_tokens, pass_accepted, pass_forced, pass_epochs;
    life_row          rows[LIFE_ROWS];
} life_rows;

// Draws a batch. The mirror has not moved yet.
void life_rows_draw(life_game *g, const life_step_options *options, life_rows *b);

// How much of the slot's last step is kept.
int32_t life_draw_accepted(life_game *g, const rssm_cursor *c);

// Which optional arrays are passed, where leaving one out can mean the same; and where rows have their tokens.
void life_rows_choose_arrays(life_game *g, life_rows *b);

// The arrays of advance, and the inputs of the rows that will be computed (their `want` is set). All else is NaN.
void life_rows_write(life_game *g, const life_rows *b);
void life_rows_write_activations(life_game *g, const life_rows *b);

// mirror.c: moves the host's cursors as the two halves of advance move the device's, all rows by the one before any by
// the other. Opens set every row's `want` and `issues`. Return the issues of the batch.
rssm_u32 life_rows_mirror_commits(life_game *g, const life_rows *b);
rssm_u32 life_rows_mirror_opens(life_game *g, life_rows *b);

rssm_advance_args life_rows_args(const life_game *g, const life_rows *b);

#endif
