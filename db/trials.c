// Lists of trials, and whether one is known.
#include "db/trials.h"

#include "db/handle.h"
#include "db/rows.h"

rssm_status rssm_db_trials(rssm_db *db, const rssm_db_query *query, rssm_db_rows *out_rows, rssm_diag *diag)
{
    rssm_db_rows    rows = {0};
    rssm_row_source source = {.db = db, .layer = ""};
    rssm_status     st = rssm_rows_collect(&source, query, NULL, NULL, &rows, diag);
    if (st != RSSM_OK) {
        rssm_db_rows_free(&rows);
        return st;
    }
    *out_rows = rows;
    return RSSM_OK;
}

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

rssm_status rssm_db_trial_known(rssm_db *db, const rssm_db_trial *t, rssm_db_known *out_known, rssm_diag *diag)
{
    rssm_status         st;
    rssm_sql_statement *s = NULL;
    rssm_db_known       known = {.status = RSSM_OK};

    RSSM_TRY(rssm_sql_start(db->sql, RSSM_SQL_TRIAL_KNOWN, &s, diag));
    rssm_sql_bind_blob(s, 1, t->problem.key.bytes, sizeof(t->problem.key.bytes));
    rssm_sql_bind_blob(s, 2, t->device.key.bytes, sizeof(t->device.key.bytes));
    rssm_sql_bind_integer(s, 3, t->bucket);
    rssm_sql_bind_text(s, 4, rssm_db_mode_name(t->mode));
    rssm_sql_bind_text(s, 5, or_empty(t->template_name));
    rssm_sql_bind_integer(s, 6, t->template_version);
    rssm_sql_bind_text(s, 7, or_empty(t->config));
    rssm_sql_bind_text(s, 8, or_empty(t->policy));
    rssm_sql_bind_text(s, 9, or_empty(t->env.driver));
    rssm_sql_bind_text(s, 10, or_empty(t->env.compiler));
    rssm_sql_bind_text(s, 11, or_empty(t->env.tool));
    rssm_sql_bind_blob(s, 12, t->source_hash.bytes, sizeof(t->source_hash.bytes));
    rssm_sql_bind_blob(s, 13, t->build_key.bytes, sizeof(t->build_key.bytes));
    RSSM_TRY(rssm_sql_step(s, &known.is_known, diag));
    if (known.is_known) {
        known.status = (rssm_status)rssm_sql_integer(s, 0);
        known.tainted = rssm_sql_integer(s, 1) != 0;
        known.median_ns = rssm_sql_real(s, 2);
        known.is_known = rssm_sql_row_is_sound(s); // a damaged row is as good as none
    }
    RSSM_TRY(rssm_db_unchanged(db, diag));
    *out_known = known;
done:
    rssm_sql_reset(s);
    return st;
}
