// The problem as the rest of the project uses it: checked, with R resolved, canonical text and key.
#ifndef RSSM_BASE_PROBLEM_H
#define RSSM_BASE_PROBLEM_H

#include "base/hash.h"
#include "base/status.h"
#include "base/str.h"

// Checks *in and fills *out: struct_size normalised, ring_length and philox_rounds resolved.
rssm_status rssm_problem_normalise(const rssm_problem *in, rssm_problem *out, rssm_diag *diag);

// "mamba2 H=96 G=8 P=80 N=128 L=16 T=1 R=16 act=bf16 dt=bf16 param=f32 checkpoint=f32 round=nearest softplus=1 …":
// every field, fixed order; two problems are the same if and only if their texts are. Takes a normalised problem.
void      rssm_problem_text(const rssm_problem *problem, rssm_str *out);
rssm_hash rssm_problem_key(const rssm_problem *problem);   // SHA-256 over numbered fields

enum { RSSM_PROBLEM_MAX_WINDOW = 4096, RSSM_PROBLEM_MAX_TOKENS = 16 };

// Batch buckets, function 1: powers of two. The bucket of n rows is the smallest power of two >= n.
enum { RSSM_BUCKET_FUNCTION = 1 };
uint32_t rssm_batch_bucket(uint32_t n_rows);

// Bytes that one step of one sequence must move (SEMANTICS section 10), for ratios to bandwidth. `replay`: at T = 1 the
// mean over h = 0 .. L-1 with one fold; at T > 1 the mean under uniform acceptance. `eager`: the conventional step.
double rssm_problem_replay_bytes(const rssm_problem *problem);
double rssm_problem_eager_bytes(const rssm_problem *problem);

// Steps of T tokens of which `accepted` are kept each time (1 .. T), or 1 .. T with equal probability (0), in the long
// run. Folds take history only, also at T = 1, where kernels do better.
typedef struct rssm_spec_traffic {
    double fold_share; // of the steps
    double records;    // mean h before a step
    double committed;  // mean tokens kept
    double bytes;      // per step of one sequence
} rssm_spec_traffic;
rssm_spec_traffic rssm_problem_spec_traffic(const rssm_problem *problem, uint32_t accepted);

// Share of such steps that begin with h records, for h = 0 .. L; they sum to 1.
void rssm_problem_spec_phases(const rssm_problem *problem, uint32_t accepted, double *out_shares);

// Bytes of a step of T tokens that stores the state after each of them, as engines without a ring do.
double rssm_problem_snapshot_bytes(const rssm_problem *problem);

// Tokens that a step keeps on average under uniform acceptance: 1 at T = 1.
double rssm_problem_committed_tokens(const rssm_problem *problem);

#endif
