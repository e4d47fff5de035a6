// The best candidate per device, batch bucket and mode, derived from trials by query and never stored.
//
// W1 Of a candidate that was tried more than once (same device, problem, policy, bucket, mode, config and build), the
//    newest untainted trial speaks: a later rejection takes the candidate out.
// W2 The best has the smallest median. All whose median - mad reaches down to the best's median + mad are its equals;
//    the first of them by template name, config text and template version, as bytes, wins. The newest trial among
//    those.
// W3 Medians of different policies are not compared: of a device, bucket and mode, the policy recorded last is used.
//
// The view `winner` in the file says the same (per policy) to people with a SQL shell.
// Threads: as the rssm_db.
#ifndef RSSM_DB_WINNERS_H
#define RSSM_DB_WINNERS_H

#include "db/trials.h"

// Whether this build can use a row: template and version known, source hash equal, constraints hold. Rows refused are
// treated as if they were not there, so that a stale one does not hide a good one. Called once per eligible row.
typedef bool rssm_db_usable_fn(void *user, const rssm_db_row *row);

// One row per device, bucket and mode; sorted by device key, bucket, mode. Give query->device for this kind of device
// only, query->arch for all that share an architecture. `usable` NULL: all are. No row is not an error: n is 0.
rssm_status rssm_db_winners(rssm_db *db, const rssm_db_query *query, rssm_db_usable_fn *usable, void *user,
                            rssm_db_rows *out_rows, rssm_diag *diag);

// For `show`: one entry per problem, device, bucket and mode that has any trial.
typedef struct rssm_db_summary {
    rssm_db_problem    problem;
    rssm_db_device     device;
    uint32_t           bucket;
    rssm_db_mode       mode;
    uint32_t           n_trials, n_rejected, n_tainted;
    const rssm_db_row *best; // NULL: none; owned by the result
} rssm_db_summary;

typedef struct rssm_db_summaries {
    rssm_db_summary *entries; // sorted by problem text, device name, device key, bucket, mode
    size_t           n;
    rssm_db_rows     rows; // owns everything the entries point to
} rssm_db_summaries;

rssm_status rssm_db_summarise(rssm_db *db, const rssm_db_query *query, rssm_db_summaries *out_summaries,
                              rssm_diag *diag);
void        rssm_db_summaries_free(rssm_db_summaries *summaries);

#endif
