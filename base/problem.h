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

// Batch buckets, function 1: powers of two. The bucket of n rows is the smallest power of two >= n.
enum { RSSM_BUCKET_FUNCTION = 1 };
uint32_t rssm_batch_bucket(uint32_t n_rows);

// Bytes that one step of one sequence must move (SEMANTICS section 10), window averages over L steps at T = 1:
// `replay` the mean over h = 0 .. L-1 with one fold, `eager` the conventional step. For ratios to bandwidth.
double rssm_problem_replay_bytes(const rssm_problem *problem);
double rssm_problem_eager_bytes(const rssm_problem *problem);

#endif
