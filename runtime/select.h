// The miss ladder's upper rungs: which tuned candidate serves a problem and batch bucket, as far as the databases know.
//
// Rungs, in order: this kind of device and this bucket; this kind of device and a neighbouring bucket; another device
// of the same architecture. What none of them answers is left to the loader's defaults.
// A row counts only if this build still has its template in the same version and source, the config satisfies the
// constraints for this very problem and device, and the template serves the problem: databases are not trusted.
// Threads: an rssm_answers has one user at a time.
#ifndef RSSM_RUNTIME_SELECT_H
#define RSSM_RUNTIME_SELECT_H

#include "db/layers.h"
#include "gen/space.h"
#include "runtime/context.h"

typedef struct rssm_choice {
    rssm_match  match;
    bool        is_stale;       // measured under another driver
    double      median_ns;      // of the row; 0: never measured
    uint32_t    bucket;         // the row was measured at
    rssm_config config;
    rssm_hash   build_key;      // of its binary; all zero: none is stored
    char        layer[16];      // database layer of the row; "" for a default
} rssm_choice;

// What the databases say about one problem on one device.
typedef struct rssm_answers {
    const rssm_context *context;
    const rssm_device  *device;
    const rssm_problem *problem;   // NULL: the `advance` op, which has none
    rssm_db_rows        rows;
} rssm_answers;

// Reads the rows of `problem` (normalised; NULL: advance) for devices of this architecture. RSSM_E_NO_MEMORY only.
rssm_status rssm_answers_load(rssm_db_layers *layers, const rssm_context *context, const rssm_device *device,
                              const rssm_problem *problem, rssm_answers *out_answers, rssm_diag *diag);
void        rssm_answers_free(rssm_answers *answers);

// The best row for a bucket and mode; false where the ladder's upper rungs have none.
bool rssm_answers_choose(const rssm_answers *answers, uint32_t bucket, rssm_db_mode mode, rssm_choice *out_choice);

// The manifest's default for a problem, or its first valid config where the default violates a constraint here.
// RSSM_E_UNSUPPORTED names the reason of the last template tried.
rssm_status rssm_choose_default(const rssm_context *context, const rssm_device *device, rssm_op op,
                                const rssm_problem *problem, rssm_choice *out_choice, rssm_diag *diag);

// Facts of a problem (NULL: none) on a device, for manifests.
void rssm_facts_fill(const rssm_device *device, const rssm_problem *problem, rssm_facts *out_facts);

// The key and text `advance` is filed under in place of a problem.
#define RSSM_ADVANCE_PROBLEM_TEXT "advance"

#endif
