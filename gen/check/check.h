// Compares a manifest with its template through libclang, so that the two cannot drift apart.
//
// Refused: an entry that is missing, is not what the backend calls (CPU: void NAME(const ARGS *, rssm_i64); CUDA:
// extern "C" __global__ void NAME(ARGS)) or takes another struct; a CFG_ name that the manifest does not define; a
// tunable or derived value that nothing uses; a template that does not parse, which includes every static_assert, with
// the header of a real config and, for a built-in template, with the one that has no shape.
// Non-goals: compiling, and errors that only the back end of a compiler can find.
// For the CLI and the tests; not part of the library. Threads: no shared state.
#ifndef RSSM_GEN_CHECK_CHECK_H
#define RSSM_GEN_CHECK_CHECK_H

#include "gen/source.h"
#include "gen/space.h"

typedef struct rssm_check_input {
    const rssm_template_set *set;
    const rssm_manifest     *manifest; // of the set
    const rssm_problem      *problem;  // normalised; NULL: a usual one within what the manifest serves
    const rssm_facts        *facts;    // of problem and device; NULL: those of the problem and a usual device
    const rssm_config       *config;   // NULL: the default, or the first valid one where that is not valid
} rssm_check_input;

// RSSM_OK; RSSM_E_MISMATCH where manifest and template disagree; RSSM_E_COMPILE where the template does not parse, with
// the first error; RSSM_E_NOT_FOUND, RSSM_E_UNSUPPORTED, RSSM_E_NO_MEMORY.
rssm_status rssm_check_template(const rssm_check_input *input, rssm_diag *diag);

// A usual problem within what a manifest serves, normalised, and the facts of that problem on a usual device.
// RSSM_E_MISMATCH where the manifest serves nothing that is a problem.
rssm_status rssm_check_sample(const rssm_manifest *manifest, rssm_problem *out_problem, rssm_facts *out_facts,
                              rssm_diag *diag);

#endif
