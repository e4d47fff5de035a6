// A tune: for each layer shape of a model, every candidate is built, verified, timed and recorded, and the winners per
// batch and mode are derived from the database.
//
// State of a candidate:  listed -> built -> verified -> screened at every batch and mode -> in the finals of a few
//                        any step may end in rejected(reason), which is recorded and not tried again.
//   I1  No candidate is timed before it is verified.
//   I2  Every finished measurement is one transaction: a kill loses what was being measured, a rerun goes on from there.
//   I3  The winner is derived by query, never stored.
// Threads: one session per database and device.
#ifndef RSSM_TUNER_SESSION_H
#define RSSM_TUNER_SESSION_H

#include "db/winners.h"
#include "runtime/context.h"

// Told after each unit of work.
typedef struct rssm_progress {
    const char *phase;        // "building", "verifying", "timing", "finals"
    const char *candidate;    // config text
    uint32_t    batch;        // 0 where it does not apply
    double      done, total;  // units of work
    double      left_s;       // estimated time left; < 0: not known yet
    rssm_status status;       // of the candidate
    const char *reason;       // where it was rejected
    double      median_ns;    // where it was timed
    rssm_db_mode mode;
} rssm_progress;
typedef void rssm_progress_fn(void *user, const rssm_progress *progress);

typedef struct rssm_session_options {
    const rssm_problem *problem;        // normalised
    const uint32_t     *batches;        // [n_batches] ascending
    uint32_t            n_batches;
    double              budget_s;       // 0: none
    rssm_progress_fn   *progress;       // may be NULL
    void               *progress_user;
} rssm_session_options;

typedef struct rssm_session_result {
    uint32_t n_candidates, n_rejected;
    uint32_t n_measured;                // measurements taken now; 0: everything was known
    bool     out_of_time;               // the budget ended it
} rssm_session_result;

// Tunes one problem. RSSM_E_UNSUPPORTED (nothing serves it, or a batch that does not fit), RSSM_E_NO_COMPILER, what the
// database reports; single candidates never fail it.
rssm_status rssm_session_run(rssm_context *context, uint32_t device, rssm_db *db, const rssm_session_options *options,
                             rssm_session_result *out_result, rssm_diag *diag);

// Builds, checks and records the device's `advance` kernel, so that groups find it in the database. Nothing to do on the
// CPU, where it is built in.
rssm_status rssm_session_advance(rssm_context *context, uint32_t device, rssm_db *db, rssm_diag *diag);

// How this version measures steps of up to `max_tokens`, as filed with each trial: trials of another policy are not
// compared.
const char *rssm_session_policy(const rssm_device *device, uint32_t max_tokens);

#endif
