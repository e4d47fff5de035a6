// The traffic of a verification run: which sequence is in which row and slot at each step, and what a host mirror of
// cursor.h makes of it.
//
// There are as many sequences as rows. Sequence 0 is steady: one step per step, never forced, so that it reaches full
// windows and wraps. The others start late, pause (null rows), idle (no token), lose tokens (acceptance below the
// step's count), are replaced by new sequences in the same or another slot, and those with odd numbers are forced to
// fold now and then. Rows change places every step.
//
// Invariants: two rows of a step never name the same slot; a slot that is handed over gets an epoch it never had.
// Threads: none.
#ifndef RSSM_TUNER_VERIFY_SCHEDULE_H
#define RSSM_TUNER_VERIFY_SCHEDULE_H

#include <stdbool.h>

#include "abi/cursor.h"
#include "tuner/verify.h"
#include "tuner/verify_random.h"

typedef struct rssm_verify_row {
    int32_t         slot;     // the pad value for a null row
    int32_t         token;    // first of the tokens that are the row's
    int32_t         n_owned;  // tokens of the activations that are the row's, used or not
    int32_t         t;        // used ones
    int32_t         accepted; // of the slot's previous step
    uint8_t         forced;
    bool            is_null, is_fresh;
    uint32_t        epoch;
    rssm_descriptor want; // null rows: slot -1
} rssm_verify_row;

typedef struct rssm_verify_sequence {
    int32_t  slot;
    uint32_t epoch;
    uint32_t starts_at; // step
    bool     is_fresh;  // not opened yet
} rssm_verify_sequence;

typedef struct rssm_verify_schedule {
    const rssm_verify_request *request;
    rssm_verify_report        *report; // counts coverage here
    rssm_window                window;
    int32_t                    pad_slot;
    rssm_verify_random         random;
    rssm_cursor               *mirror;     // [n_slots]
    rssm_verify_sequence      *sequences;  // [n_rows]
    uint32_t                  *order;      // [n_rows] sequence of each row
    int32_t                   *free_slots; // [n_free]
    uint32_t                   n_free;
    uint32_t                   next_epoch;

    // The step that was drawn last.
    rssm_verify_row *rows;                                                 // [n_rows]
    bool             pass_tokens, pass_accepted, pass_forced, pass_epochs; // or NULL, where that means the same
} rssm_verify_schedule;

// `problem` is normalised.
rssm_status rssm_verify_schedule_create(rssm_verify_schedule *s, const rssm_verify_request *request,
                                        const rssm_problem *problem, rssm_verify_report *report, rssm_diag *diag);
void        rssm_verify_schedule_destroy(rssm_verify_schedule *s);

// Draws the next step and moves the mirror. Fails with RSSM_E_INVALID_ARGUMENT only if cursor.h refuses the traffic.
rssm_status rssm_verify_schedule_next(rssm_verify_schedule *s, uint32_t step, rssm_diag *diag);

// Whether a row changes its checkpoint in this step.
bool rssm_verify_row_folds(const rssm_verify_row *row);

#endif
