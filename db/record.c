// rssm_db_record: one transaction per trial.
#include <math.h>
#include <time.h>

#include "db/blob.h"
#include "db/handle.h"
#include "db/trials.h"

// A row that a trial refers to: added where missing, then found by all it says. Finding nothing after that means that
// the key is there with another text.
typedef struct rssm_reference {
    rssm_sql_id      add, find;
    const rssm_hash *key;      // NULL: none
    const char      *texts[3]; // up to the first NULL
    int64_t          version;  // candidate only; else < 0
} rssm_reference;

static void bind_reference(rssm_sql_statement *s, const rssm_reference *r)
{
    int index = 1;
    if (r->key != NULL) {
        rssm_sql_bind_blob(s, index++, r->key->bytes, sizeof(r->key->bytes));
    }
    for (int i = 0; i < 3 && r->texts[i] != NULL; i++) {
        rssm_sql_bind_text(s, index++, r->texts[i]);
        if (i == 0 && r->version >= 0) {
            rssm_sql_bind_integer(s, index++, r->version);
        }
    }
}

static rssm_status refer(rssm_db *db, const rssm_reference *r, int64_t *out_id, rssm_diag *diag)
{
    rssm_status         st;
    bool                has_row = false;
    rssm_sql_statement *s = NULL;
    RSSM_TRY(rssm_sql_start(db->sql, r->add, &s, diag));
    bind_reference(s, r);
    RSSM_TRY(rssm_sql_run(s, diag));
    RSSM_TRY(rssm_sql_start(db->sql, r->find, &s, diag));
    bind_reference(s, r);
    RSSM_TRY(rssm_sql_step(s, &has_row, diag));
    if (!has_row) {
        st = RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT,
                       "'%s' holds the key of '%.200s' with another text; the text must follow from the key", db->path,
                       r->texts[0]);
        goto done;
    }
    *out_id = rssm_sql_integer(s, 0);
done:
    rssm_sql_reset(s);
    return st;
}

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static bool is_time(double ns)
{
    return isfinite(ns) && ns > 0.0; // a time of 0 is a failed measurement, and would win
}

static rssm_status check_trial(const rssm_db_trial *t, const rssm_db_binary *binary, rssm_diag *diag)
{
    static const rssm_hash ZERO = {{0}};

    const char *missing = t->device.text == NULL     ? "device text"
                          : t->device.name == NULL   ? "device name"
                          : t->device.arch == NULL   ? "device architecture"
                          : t->problem.text == NULL  ? "problem text"
                          : t->policy == NULL        ? "policy"
                          : t->template_name == NULL ? "template name"
                          : t->bucket == 0           ? "batch bucket"
                                                     : NULL;
    if (missing != NULL) {
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "a trial cannot be recorded without a %s", missing);
    }
    if ((unsigned)t->mode > RSSM_DB_EAGER) {
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "a trial's mode is replay or eager, not %d", (int)t->mode);
    }
    if (t->status == RSSM_OK &&
        !(is_time(t->median_ns) && is_time(t->min_ns) && isfinite(t->mad_ns) && t->mad_ns >= 0.0 && t->n_samples > 0)) {
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT,
                         "a measured trial of %s needs positive times from at least one sample (median %g ns, "
                         "deviation %g ns, least %g ns, %u samples)",
                         t->template_name, t->median_ns, t->mad_ns, t->min_ns, t->n_samples);
    }
    if (binary != NULL && rssm_hash_equal(&t->build_key, &ZERO)) {
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "a binary cannot be recorded without a build key");
    }
    return RSSM_OK;
}

static rssm_status write_references(rssm_db *db, const rssm_db_trial *t, int64_t out_ids[5], rssm_diag *diag)
{
    const rssm_reference references[5] = {
        {RSSM_SQL_DEVICE_ADD, RSSM_SQL_DEVICE_ID, &t->device.key, {t->device.text, t->device.name, t->device.arch}, -1},
        {RSSM_SQL_ENV_ADD,
         RSSM_SQL_ENV_ID,
         NULL,
         {or_empty(t->env.driver), or_empty(t->env.compiler), or_empty(t->env.tool)},
         -1},
        {RSSM_SQL_POLICY_ADD, RSSM_SQL_POLICY_ID, NULL, {t->policy}, -1},
        {RSSM_SQL_PROBLEM_ADD, RSSM_SQL_PROBLEM_ID, &t->problem.key, {t->problem.text}, -1},
        {RSSM_SQL_CANDIDATE_ADD,
         RSSM_SQL_CANDIDATE_ID,
         NULL,
         {t->template_name, or_empty(t->config)},
         t->template_version},
    };
    rssm_status st = RSSM_OK;
    for (int i = 0; i < 5; i++) {
        RSSM_TRY(refer(db, &references[i], &out_ids[i], diag));
    }
done:
    return st;
}

static double finite_or_infinity(double value)
{
    return isnan(value) ? INFINITY : value; // SQLite has no NaN
}

static rssm_status write_trial(rssm_db *db, const rssm_db_trial *t, const int64_t ids[5], rssm_diag *diag)
{
    rssm_status         st;
    rssm_sql_statement *s = NULL;
    RSSM_TRY(rssm_sql_start(db->sql, RSSM_SQL_TRIAL_ADD, &s, diag));
    for (int i = 0; i < 5; i++) {
        rssm_sql_bind_integer(s, i + 1, ids[i]);
    }
    const char *reason = or_empty(t->reason);
    rssm_sql_bind_integer(s, 6, t->bucket);
    rssm_sql_bind_text(s, 7, rssm_db_mode_name(t->mode));
    rssm_sql_bind_blob(s, 8, t->source_hash.bytes, sizeof(t->source_hash.bytes));
    rssm_sql_bind_blob(s, 9, t->build_key.bytes, sizeof(t->build_key.bytes));
    rssm_sql_bind_integer(s, 10, (int64_t)t->status);
    rssm_sql_bind_text(s, 11, t->status != RSSM_OK && reason[0] == '\0' ? rssm_status_text(t->status) : reason);
    rssm_sql_bind_integer(s, 12, t->tainted);
    rssm_sql_bind_real(s, 13, finite_or_infinity(t->median_ns));
    rssm_sql_bind_real(s, 14, finite_or_infinity(t->mad_ns));
    rssm_sql_bind_real(s, 15, finite_or_infinity(t->min_ns));
    rssm_sql_bind_integer(s, 16, t->n_samples);
    rssm_sql_bind_real(s, 17, finite_or_infinity(t->bytes_per_step));
    rssm_sql_bind_real(s, 18, finite_or_infinity(t->max_error));
    rssm_sql_bind_integer(s, 19, t->registers);
    rssm_sql_bind_integer(s, 20, t->shared_bytes);
    rssm_sql_bind_integer(s, 21, t->spill_bytes);
    rssm_sql_bind_integer(s, 22, t->created_s != 0 ? t->created_s : (int64_t)time(NULL));
    RSSM_TRY(rssm_sql_run(s, diag));
done:
    return st;
}

rssm_status rssm_db_record(rssm_db *db, const rssm_db_trial *trial, const rssm_db_binary *binary, rssm_diag *diag)
{
    rssm_status st;
    rssm_blob   blob = {0};
    int64_t     ids[5] = {0};
    bool        is_begun = false;

    RSSM_TRY(check_trial(trial, binary, diag));
    if (binary != NULL) {
        RSSM_TRY(rssm_blob_make(binary, &blob, diag)); // before the lock is taken
    }
    RSSM_TRY(rssm_db_begin(db, diag));
    is_begun = true;
    RSSM_TRY(write_references(db, trial, ids, diag));
    RSSM_TRY(write_trial(db, trial, ids, diag));
    if (binary != NULL) {
        RSSM_TRY(rssm_blob_store(db, &trial->build_key, &blob, diag));
    }
    RSSM_TRY(rssm_db_commit(db, diag));
done:
    if (st != RSSM_OK && is_begun) {
        rssm_db_rollback(db);
    }
    rssm_blob_free(&blob);
    return st;
}
