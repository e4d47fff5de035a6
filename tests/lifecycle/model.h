// What the test knows of a sequence, in float64 and without the library: which tokens it accepted, which of them are in
// the checkpoint, and the state that an uninterrupted run over all of them has at that point.
//
// The state advances token by token, once per accepted token, in the life of a sequence, over forks, transfers and
// slots; nothing of it is ever read back from the device. Next to each value stands how far the stored checkpoint may
// be from it: what every fold may add (the oracle's bound and one rounding), carried on by the same decay. So a token
// that is lost, doubled or misplaced shows at the next fold, however small each single error must be.
//
// The count of accepted tokens is kept apart from the cursors: position and records of a cursor must add up to it.
// Threads: none.
#ifndef RSSM_TESTS_LIFECYCLE_MODEL_H
#define RSSM_TESTS_LIFECYCLE_MODEL_H

#include "tests/lifecycle/world.h"
#include "tuner/oracle/mamba2_reference.h"

// A token behind the checkpoint, with its processed dt as it lies in the ring.
typedef struct life_record {
    uint64_t token;
    bool     is_prefilled; // its dt is the host's, not a kernel's
    float    dt[LIFE_LAYERS][LIFE_HEADS];
} life_record;

typedef struct life_sequence {
    uint64_t    position;  // tokens in the checkpoint
    uint64_t    accepted;  // tokens since the admission, and what it began with
    int32_t     n_records; // accepted tokens behind the checkpoint
    int32_t     pending_t; // tokens of the last step, of which nobody said yet how many are accepted
    int32_t     pending_mode;
    life_record records[LIFE_RING_MAX + LIFE_T_MAX]; // the accepted ones, then the pending ones that are records
    double     *state, *error;                       // [n_model], see life_layer.model_at
} life_sequence;

rssm_status life_sequence_create(const life_world *w, life_sequence *s, rssm_diag *diag);
void        life_sequence_destroy(life_sequence *s);
void        life_sequence_assign(const life_world *w, life_sequence *to, const life_sequence *from);

// A new sequence whose checkpoint is the encoded state of number `seed`, or zeros for seed 0, with `position` tokens.
void life_sequence_begin(const life_world *w, life_sequence *s, uint64_t seed, uint64_t position);

// Place of layer `layer`'s encoded state in the pool.
size_t life_state_place(const life_world *w, uint64_t seed, uint32_t layer);

// Inputs of a token.
enum { LIFE_X, LIFE_Z, LIFE_B, LIFE_C, LIFE_DT };
const double        *life_token_values(const life_world *w, uint64_t token, uint32_t layer, int which);
const unsigned char *life_token_bits(const life_world *w, uint64_t token, uint32_t layer, int which);

// Advances one head's state and error over a token. `stored_dt` NULL: the token has no record.
void life_apply(const life_world *w, uint32_t layer, uint32_t head, uint64_t token, const float *stored_dt,
                double *state, double *error);
// Processed dt of a token, exactly.
double life_exact_dt(const life_world *w, uint32_t layer, uint32_t head, uint64_t token);

// The first n records are in the checkpoint now (the arrays have been advanced by life_apply).
void life_sequence_folded(life_sequence *s, int32_t n);

// Of the pending step, `accepted` tokens are kept.
void life_sequence_commit(life_sequence *s, int32_t accepted);

// Checks what cursor and sequence must agree on; false with a sentence.
bool life_sequence_agrees(const life_sequence *s, const rssm_cursor *c, char *out_text, size_t n);

#endif
