// Trials: one measured or rejected candidate each, inserted once and never changed.
// Threads: as the rssm_db.
#ifndef RSSM_DB_TRIALS_H
#define RSSM_DB_TRIALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/status.h"
#include "db/binaries.h"
#include "db/store.h"

typedef struct rssm_db_device {
    rssm_hash   key;  // of everything that makes two devices the same kind
    const char *text; // what the key was made of, readable
    const char *name; // "NVIDIA H200"
    const char *arch; // "sm_90a", "x86-64-v4": what kernels are compiled for
} rssm_db_device;

typedef struct rssm_db_env {
    const char *driver;   // "" on the CPU
    const char *compiler; // version text of the toolchain
    const char *tool;     // version of replayssm-tune
} rssm_db_env;

typedef struct rssm_db_problem {
    rssm_hash   key;
    const char *text; // canonical, rssm_problem_text
} rssm_db_problem;

typedef enum rssm_db_mode { RSSM_DB_REPLAY = 0, RSSM_DB_EAGER = 1 } rssm_db_mode;

const char *rssm_db_mode_name(rssm_db_mode mode); // "replay", "eager"

// Strings are borrowed where a trial is recorded and owned by the result where it is read. Unused strings: NULL is "".
typedef struct rssm_db_trial {
    // identity: what rssm_db_trial_known compares
    rssm_db_device  device;
    rssm_db_env     env;
    rssm_db_problem problem;
    const char     *policy; // how it was measured, text
    uint32_t        bucket; // batch bucket, >= 1
    rssm_db_mode    mode;
    const char     *template_name;
    uint32_t        template_version;
    const char     *config;      // canonical text, "ROWS=16 VEC=16"; "" where there is nothing to tune
    rssm_hash       source_hash; // zero where the build did not get that far, as is build_key
    rssm_hash       build_key;

    // outcome
    rssm_status status;                    // RSSM_OK: measured; else why it was rejected
    const char *reason;                    // one sentence where rejected
    bool        tainted;                   // measured under throttling or contention: never a winner
    double      median_ns, mad_ns, min_ns; // of one step; above 0 (mad: at least 0) where status is RSSM_OK
    uint32_t    n_samples;
    double      bytes_per_step;
    double      max_error; // largest error found, as a fraction of the bound
    uint32_t    registers, shared_bytes, spill_bytes;
    int64_t     created_s; // Unix time; 0: now
} rssm_db_trial;

// Writes the trial, whatever it refers to, and its binary (NULL: none) in one transaction: after RSSM_OK a kill loses
// nothing, after anything else nothing was written. The binary is stored under trial->build_key, once: a sound one that
// is there already is kept, a damaged one is replaced. Returns RSSM_E_INVALID_ARGUMENT, RSSM_E_READ_ONLY, RSSM_E_BUSY
// (another writer held the file for about ten seconds), RSSM_E_IO (also: the disk is full), RSSM_E_CORRUPT.
rssm_status rssm_db_record(rssm_db *db, const rssm_db_trial *trial, const rssm_db_binary *binary, rssm_diag *diag);

typedef struct rssm_db_row {
    int64_t       id; // grows with time within one file
    rssm_db_trial trial;
    bool          has_binary;  // one is stored under build_key (not whether it is sound)
    uint32_t      n_trials;    // winners: eligible trials it was chosen from; else 1
    const char   *layer;       // where it was read from: "user", "fleet", "shipped"; "" outside layers.h
    uint32_t      layer_index; // 0: the most local
} rssm_db_row;

// A result and the strings in it; zero-initialise, free with rssm_db_rows_free (also after a failure: harmless).
typedef struct rssm_db_rows {
    rssm_db_row *rows;
    size_t       n;
    uint32_t     n_damaged; // rows left out because a field was not what it must be
    rssm_arena   arena;
} rssm_db_rows;

void rssm_db_rows_free(rssm_db_rows *rows);

typedef enum rssm_db_outcome { RSSM_DB_ANY = 0, RSSM_DB_MEASURED = 1, RSSM_DB_REJECTED = 2 } rssm_db_outcome;

// What to look for; a zero field matches everything.
typedef struct rssm_db_query {
    const rssm_hash *problem;
    const rssm_hash *device;
    const char      *arch;
    const char      *policy;
    uint32_t         bucket;
    rssm_db_outcome  outcome; // rssm_db_trials only
} rssm_db_query;

// All matching trials in the order in which they were recorded, e.g. rejected ones with their reasons.
rssm_status rssm_db_trials(rssm_db *db, const rssm_db_query *query, rssm_db_rows *out_rows, rssm_diag *diag);

typedef struct rssm_db_known {
    bool        is_known;
    bool        tainted; // the newest untainted trial is reported if there is one
    rssm_status status;
    double      median_ns;
} rssm_db_known;

// Whether a trial with these identity fields is recorded, for resuming. The outcome fields are not read.
rssm_status rssm_db_trial_known(rssm_db *db, const rssm_db_trial *identity, rssm_db_known *out_known, rssm_diag *diag);

#endif
