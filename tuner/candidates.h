// Candidates of a problem: every valid config of every template that serves it, their builds and verification.
// Threads: building and verifying run on several threads inside; callers serialise.
#ifndef RSSM_TUNER_CANDIDATES_H
#define RSSM_TUNER_CANDIDATES_H

#include "gen/build.h"
#include "runtime/context.h"
#include "tuner/verify.h"

typedef struct rssm_candidate {
    rssm_config         config;
    char                config_text[192];   // canonical
    rssm_build_identity identity;
    rssm_object         object;             // bytes NULL until built
    rssm_status         status;             // RSSM_OK so far, or why it is rejected
    char                reason[1024];
    bool                is_verified;
    double              max_error;          // of the verification, as a fraction of the bound
    rssm_verify_report  report;             // of all its runs
} rssm_candidate;

typedef struct rssm_candidates {
    rssm_context         *context;
    uint32_t              device;
    const rssm_problem   *problem;     // normalised; borrowed. NULL: of `advance`
    const rssm_toolchain *toolchain;
    rssm_candidate       *items;       // [n], in the order of templates and configs
    size_t                n;
} rssm_candidates;

// Lists them. RSSM_E_UNSUPPORTED where no template serves the problem, with the reason; RSSM_E_NO_COMPILER.
rssm_status rssm_candidates_list(rssm_context *context, uint32_t device, const rssm_problem *problem,
                                 rssm_candidates *out_candidates, rssm_diag *diag);
void        rssm_candidates_free(rssm_candidates *candidates);

// Builds one; a failure sets its status and reason. Thread-safe for different candidates.
void rssm_candidate_build(const rssm_candidates *candidates, rssm_candidate *candidate);

// Verifies a built one on the device, in both ring layouts, with `n_rows` rows; a wrong result or any other failure
// sets its status and reason. Thread-safe for different candidates.
void rssm_candidate_verify(const rssm_candidates *candidates, rssm_candidate *candidate, uint32_t n_rows,
                           uint64_t seed);

// Verifies a group that is there already, at full strength (every head, all optional tensors on and off, both ring
// layouts, both pad values). `cursors` are the group's, `n_slots` > n_rows. Adds the errors to the report.
rssm_status rssm_verify_group(rssm_context *context, const rssm_group *group, const rssm_problem *problem,
                              uint32_t device, void *cursors, uint32_t n_slots, uint32_t n_rows, int eager,
                              uint64_t seed, rssm_verify_report *out_report, rssm_diag *diag);

#endif
