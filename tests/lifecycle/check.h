// Compares what a step or a fold left with the oracle, which starts from the checkpoint that lay in memory and the
// tokens that the model knows, and with the model's uninterrupted run.
//
// What agrees is adopted into the image; the model's state advances over what was folded. Threads: none.
#ifndef RSSM_TESTS_LIFECYCLE_CHECK_H
#define RSSM_TESTS_LIFECYCLE_CHECK_H

#include "tests/lifecycle/model.h"

typedef struct life_work {
    double *block; // see check.c
    // Largest errors, as fractions of the bounds: of outputs, checkpoints, dt; and against the uninterrupted run.
    double   max_out, max_state, max_drift;
    uint64_t n_values;
} life_work;

rssm_status life_work_create(life_work *k, rssm_diag *diag);
void        life_work_destroy(life_work *k);

// One row of a step, or a fold without tokens.
typedef struct life_row_check {
    life_sequence   *s;
    int32_t          from, to; // slots: where the checkpoint lies, and where the folded one goes
    int32_t          n_records;
    rssm_oracle_fold fold;
    int32_t          t;
    const uint64_t  *tokens;
    int32_t          first_output; // token index of the first
    int32_t          append_at;    // ring index of the first new record; < 0: none
    const char      *what;         // for sentences
} life_row_check;

// All layers and heads. Processed dt of appended tokens goes into s->records behind the `n_records` that are there.
rssm_status life_check_row(life_world *w, life_work *k, const life_row_check *c);

#endif
