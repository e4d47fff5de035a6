// The Mamba-2 reference: one head, in double, straight from the formulas.
//
//     d  = softplus(dt + bias)          softplus and bias optional; softplus(v) = log(1 + e^v), without a threshold
//     S' = e^(A d) S + d x B^T
//     y  = S' C + D x                   then y * z * sigmoid(z) where there is a gate
//
// Two views of it. rssm_oracle_sequence runs the recurrence token by token. rssm_oracle_step answers what one step of
// one row must produce from what lies in memory: the stored checkpoint (which a 16-bit format has rounded at every
// fold, so an unrounded history of the sequence would not do), the live records of the ring, and the new tokens. In
// exact arithmetic the two agree; the tests hold them to that.
//
// Bounds. Next to each value, the step returns how far a correct fp32 kernel may be from it *before* the one rounding
// to the stored type (rssm_oracle_error adds that). A bound is a multiple of u = 2^-24 times the sum of the absolute
// values of the terms, never a multiple of a large constant or of another row's magnitude, so that a dropped or stale
// record cannot hide in it. n is the number of records and tokens that take part, N the state size:
//
//   processed dt   d 16 u + |v| sigmoid(v) 2 u, v = dt + bias: e^v to 2 ulp and with an argument rounded once or
//                  twice (an exp2 multiplies by log2 e), log1p to a few ulp. So 1e-6 relative around v = 0, and at
//                  most (16 + 2 |v|) u; a log(1 + e^v) without log1p is outside for v < -4. Without softplus |v| 2 u.
//   decay e^E      relative ((n/2 + 6) sum |A d| + 2 n + 8) u, and |A| times the errors of the dt processed in this
//                  step: a kernel may take differences of prefix sums, whose error is that of the longest sum, and may
//                  multiply n per-record decays.
//   weights s      d e^E: as the decay, and the error of d.
//   state          per term |e^E S|, |s x B|: its weight's error and (n/2 + 8) u for products and sums in any order.
//   y              per term |e^E S C|, |s x B C|, |D x|: its weight's error and (N/8 + n/2 + 12) u; |D x| 8 u.
//   gate           relative (12 + 2 |z|) u, as exp(-z).
//   16-bit fold    256 u = 2^-16 more per term |s x B|, |s x B C| of a step that folds into a 16-bit checkpoint, whose
//                  own rounding is 2^-9 at best: its weights may be split in two bf16 parts. Not rounded to one.
//
// The factors of n and N are several times what roundings that do not conspire add up to (a random walk of N = 128
// roundings is 4 u of the sum of magnitudes), yet a fraction of the worst case. For N = 128, n = 16 and slow decay the
// whole is 76 u = 5e-6 of the sum of absolute terms for y and 56 u for the state. fp32 in any order, 3xTF32 and
// three-way split bf16 pass; one pass of TF32, a weight rounded to 16 bits (2^-11 and more) or split in two bf16 parts
// (2^-17) in an fp32 checkpoint do not. Everything has a floor of 2^-125 per factor, since subnormal decays may be
// flushed to zero.
//
// Non-goals: strides, batches, memory formats (the caller decodes), speed beyond simple loops of O(n (P + N) + P N).
// Shares nothing with templates/. Threads: reentrant.
#ifndef RSSM_TUNER_ORACLE_MAMBA2_REFERENCE_H
#define RSSM_TUNER_ORACLE_MAMBA2_REFERENCE_H

#include <stdbool.h>

#include "base/status.h"

// One head's shape and parameters.
typedef struct rssm_oracle_head {
    int    head_dim, state_size; // P, N
    bool   softplus;
    bool   narrow_checkpoint; // stored in 16 bits: only widens the bounds of folds
    double A;
    double D, dt_bias; // 0 where the model has none: the formulas are the same
} rssm_oracle_head;

// Tokens in order: row-major arrays with one row per token.
typedef struct rssm_oracle_tokens {
    int           n;
    const double *x;     // [n][P]
    const double *z;     // [n][P]; NULL: no gate
    const double *B, *C; // [n][N]
    const double *dt;    // [n] raw
} rssm_oracle_tokens;

// The ring as it lies in memory; only the n_records rows from `start` on, wrapping at `length`, are read.
typedef struct rssm_oracle_ring {
    int           length, start, n_records;
    const double *x;  // [length][P]
    const double *B;  // [length][N]
    const double *dt; // [length] processed
} rssm_oracle_ring;

// How many of the records and tokens, oldest first, go into the new checkpoint.
typedef enum rssm_oracle_fold {
    RSSM_ORACLE_FOLD_NOTHING = 0,
    RSSM_ORACLE_FOLD_RECORDS = 1, // those of the ring
    RSSM_ORACLE_FOLD_ALL = 2,     // and the step's tokens
} rssm_oracle_fold;

// Arrays of the caller. Every value comes with the bound described above.
typedef struct rssm_oracle_answer {
    double *dt, *dt_bound;       // [n] processed
    double *y, *y_bound;         // [n][P]
    double *state, *state_bound; // [P][N]; NULL where nothing is folded. Left alone if there is nothing to fold
} rssm_oracle_answer;

double rssm_oracle_softplus(double v);

// Advances `state` [P][N] over the tokens and writes y [n][P].
void rssm_oracle_sequence(const rssm_oracle_head *head, const rssm_oracle_tokens *tokens, double *state, double *out_y);

// One step of one row. Returns RSSM_OK or RSSM_E_NO_MEMORY.
rssm_status rssm_oracle_step(const rssm_oracle_head *head, const double *checkpoint, const rssm_oracle_ring *ring,
                             const rssm_oracle_tokens *tokens, rssm_oracle_fold fold, const rssm_oracle_answer *answer,
                             rssm_diag *diag);

#endif
