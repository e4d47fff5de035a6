// What the parts of a session share: session.c (known, build, verify, run) and session_timing.c (screening, finals).
#ifndef RSSM_TUNER_SESSION_PARTS_H
#define RSSM_TUNER_SESSION_PARTS_H

#include "tuner/candidates.h"
#include "tuner/session.h"
#include "tuner/workload.h"

enum {
    RSSM_SCREEN_SAMPLES = 2,
    RSSM_FINAL_SAMPLES = 9,
    RSSM_FINALISTS = 4,     // at most, of those near the best
    RSSM_MODES = 2,         // rssm_db_mode
};

// Relative cost of units of work, for the time left; corrected by what they turn out to cost.
#define RSSM_BUILD_UNIT 1.0
#define RSSM_VERIFY_UNIT 4.0
#define RSSM_SAMPLE_UNIT 0.3

// A measurement: of one candidate at one batch and mode.
typedef struct rssm_cell {
    bool     known;
    double   median_ns;
    uint32_t n_samples;
} rssm_cell;

typedef struct rssm_session {
    rssm_context               *context;
    const rssm_device          *device;
    uint32_t                    device_index;
    rssm_db                    *db;
    const rssm_session_options *options;
    rssm_candidates             candidates;
    rssm_db_problem             problem;
    rssm_str                    problem_text;
    rssm_cell                  *cells;         // [candidate][batch][mode]
    rssm_workload              *workload;
    rssm_session_result         result;
    uint64_t                    began_ns;
    double                      done, total;   // units
} rssm_session;

// The k-th candidate to work on: a fixed order that spreads over the space, so that a budget cuts no corner of it off.
size_t rssm_session_order(const rssm_session *s, size_t k);

// Modes that are measured: replay, and eager where T = 1.
int rssm_session_modes(const rssm_session *s);

rssm_cell    *rssm_session_cell(rssm_session *s, size_t candidate, uint32_t batch, int mode);
bool          rssm_session_out_of_time(rssm_session *s);
void          rssm_session_report(rssm_session *s, rssm_progress p, double units);
rssm_db_trial rssm_session_trial(const rssm_session *s, const rssm_candidate *c, uint32_t batch, int mode);
rssm_status   rssm_session_record(rssm_session *s, const rssm_candidate *c, const rssm_db_trial *trial, rssm_diag *diag);
rssm_status   rssm_session_record_rejection(rssm_session *s, const rssm_candidate *c, rssm_diag *diag);

// Whether some batch and mode of the candidate still has to be timed.
bool rssm_session_is_wanted(rssm_session *s, size_t candidate);

// Whether every candidate was timed at this batch and mode, and the fastest with the samples of a final.
bool rssm_session_is_complete(rssm_session *s, uint32_t batch, int mode);

// Screens what is wanted and runs the finals that are due.
rssm_status rssm_session_measure(rssm_session *s, rssm_diag *diag);

#endif
