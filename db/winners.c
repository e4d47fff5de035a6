// Choosing the best trial of each group, and counting the others.
#include "db/winners.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "db/handle.h"
#include "db/rows.h"

#define RSSM_ORDER(a, b) (((a) > (b)) - ((a) < (b)))

int rssm_rows_compare_group(const rssm_db_row *a, const rssm_db_row *b)
{
    int order = memcmp(a->trial.problem.key.bytes, b->trial.problem.key.bytes, sizeof(a->trial.problem.key.bytes));
    if (order == 0) {
        order = memcmp(a->trial.device.key.bytes, b->trial.device.key.bytes, sizeof(a->trial.device.key.bytes));
    }
    if (order == 0) {
        order = RSSM_ORDER(a->trial.bucket, b->trial.bucket);
    }
    return order != 0 ? order : RSSM_ORDER(a->trial.mode, b->trial.mode);
}

// Within a group: the more local layer first, in it the newest trial, whose policy decides (W3).
static int compare_rows(const void *pa, const void *pb)
{
    const rssm_db_row *a = pa, *b = pb;
    int                order = rssm_rows_compare_group(a, b);
    if (order == 0) {
        order = RSSM_ORDER(a->layer_index, b->layer_index);
    }
    return order != 0 ? order : RSSM_ORDER(b->id, a->id);
}

static int compare_times(const rssm_db_row *a, const rssm_db_row *b)
{
    int order = RSSM_ORDER(a->trial.median_ns, b->trial.median_ns);
    if (order == 0) {
        order = RSSM_ORDER(a->trial.mad_ns, b->trial.mad_ns);
    }
    return order != 0 ? order : RSSM_ORDER(a->id, b->id);
}

static int compare_names(const rssm_db_row *a, const rssm_db_row *b)
{
    int order = strcmp(a->trial.template_name, b->trial.template_name);
    if (order == 0) {
        order = strcmp(a->trial.config, b->trial.config);
    }
    if (order == 0) {
        order = RSSM_ORDER(a->trial.template_version, b->trial.template_version);
    }
    return order != 0 ? order : RSSM_ORDER(b->id, a->id);
}

static bool is_rival(const rssm_db_row *row, const rssm_db_row *newest)
{
    return row->layer_index == newest->layer_index && strcmp(row->trial.policy, newest->trial.policy) == 0;
}

// The best of rows [0, n) of one group, sorted by compare_rows (W2, W3).
static rssm_db_row choose(const rssm_db_row *rows, size_t n)
{
    const rssm_db_row *fastest = NULL, *best = NULL;
    uint32_t           n_rivals = 0;
    for (size_t i = 0; i < n; i++) {
        if (is_rival(&rows[i], &rows[0])) {
            n_rivals++;
            fastest = fastest == NULL || compare_times(&rows[i], fastest) < 0 ? &rows[i] : fastest;
        }
    }
    double reach_ns = fastest->trial.median_ns + fastest->trial.mad_ns;
    for (size_t i = 0; i < n; i++) {
        if (is_rival(&rows[i], &rows[0]) && rows[i].trial.median_ns - rows[i].trial.mad_ns <= reach_ns) {
            best = best == NULL || compare_names(&rows[i], best) < 0 ? &rows[i] : best;
        }
    }
    rssm_db_row row = *best;
    row.n_trials = n_rivals;
    return row;
}

void rssm_rows_select(rssm_db_rows *rows)
{
    size_t n_groups = 0;
    if (rows->n > 0) {
        qsort(rows->rows, rows->n, sizeof(*rows->rows), compare_rows);
    }
    for (size_t first = 0, end; first < rows->n; first = end) {
        for (end = first + 1; end < rows->n && rssm_rows_compare_group(&rows->rows[first], &rows->rows[end]) == 0;
             end++) {
        }
        rows->rows[n_groups++] = choose(rows->rows + first, end - first);
    }
    rows->n = n_groups;
}

rssm_status rssm_db_winners(rssm_db *db, const rssm_db_query *query, rssm_db_usable_fn *usable, void *user,
                            rssm_db_rows *out_rows, rssm_diag *diag)
{
    rssm_db_rows    rows = {0};
    rssm_row_source source = {.db = db, .layer = "", .eligible_only = true};
    rssm_status     st = rssm_rows_collect(&source, query, usable, user, &rows, diag);
    if (st != RSSM_OK) {
        rssm_db_rows_free(&rows);
        return st;
    }
    rssm_rows_select(&rows);
    *out_rows = rows;
    return RSSM_OK;
}

// ---------------------------------------------------------------------------------------------------------- summaries

// Columns as in RSSM_SQL_SUMMARY. *out_is_sound is whether the entry may be used.
static rssm_status read_summary(rssm_sql_statement *s, rssm_arena *arena, rssm_db_summary *out, bool *out_is_sound,
                                rssm_diag *diag)
{
    rssm_db_summary e = {0};
    bool            keys = rssm_rows_hash(s, 0, &e.problem.key) && rssm_rows_hash(s, 2, &e.device.key);
    e.problem.text = rssm_rows_text(arena, s, 1, NULL);
    e.device.text = rssm_rows_text(arena, s, 3, NULL);
    e.device.name = rssm_rows_text(arena, s, 4, NULL);
    e.device.arch = rssm_rows_text(arena, s, 5, NULL);
    if (e.problem.text == NULL || e.device.text == NULL || e.device.name == NULL || e.device.arch == NULL) {
        return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "summarising trials ran out of memory");
    }
    e.bucket = (uint32_t)rssm_sql_integer(s, 6);
    bool mode = rssm_rows_mode(rssm_sql_text(s, 7), &e.mode);
    e.n_trials = (uint32_t)rssm_sql_integer(s, 8);
    e.n_rejected = (uint32_t)rssm_sql_integer(s, 9);
    e.n_tainted = (uint32_t)rssm_sql_integer(s, 10);
    *out_is_sound = keys && mode && rssm_sql_row_is_sound(s);
    *out = e;
    return RSSM_OK;
}

static const rssm_db_row *find_best(const rssm_db_rows *rows, const rssm_db_summary *e)
{
    const rssm_db_row like = {
        .trial = {.problem.key = e->problem.key, .device.key = e->device.key, .bucket = e->bucket, .mode = e->mode}};
    for (size_t i = 0; i < rows->n; i++) {
        if (rssm_rows_compare_group(&rows->rows[i], &like) == 0) {
            return &rows->rows[i];
        }
    }
    return NULL;
}

static rssm_status append_summary(rssm_db_summaries *list, size_t *capacity, rssm_sql_statement *s, rssm_diag *diag)
{
    rssm_status     st;
    bool            is_sound = false;
    rssm_db_summary entry;
    RSSM_TRY(read_summary(s, &list->rows.arena, &entry, &is_sound, diag));
    if (!is_sound) {
        list->rows.n_damaged++;
        goto done;
    }
    if (list->n == *capacity) {
        size_t           larger_n = *capacity * 2 + 8;
        rssm_db_summary *larger = rssm_realloc(list->entries, larger_n * sizeof(*larger));
        if (larger == NULL) {
            st = RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "summarising trials ran out of memory");
            goto done;
        }
        list->entries = larger;
        *capacity = larger_n;
    }
    entry.best = find_best(&list->rows, &entry);
    list->entries[list->n++] = entry;
done:
    return st;
}

rssm_status rssm_db_summarise(rssm_db *db, const rssm_db_query *query, rssm_db_summaries *out_summaries,
                              rssm_diag *diag)
{
    rssm_status         st;
    rssm_db_summaries   list = {0};
    rssm_sql_statement *s = NULL;
    size_t              capacity = 0;
    bool                has_row = true;

    RSSM_TRY(rssm_db_winners(db, query, NULL, NULL, &list.rows, diag));
    RSSM_TRY(
        rssm_sql_start(db->sql, query->problem != NULL ? RSSM_SQL_SUMMARY_OF_PROBLEM : RSSM_SQL_SUMMARY, &s, diag));
    rssm_rows_bind_filter(s, query);
    for (;;) {
        RSSM_TRY(rssm_sql_step(s, &has_row, diag));
        if (!has_row) {
            break;
        }
        RSSM_TRY(append_summary(&list, &capacity, s, diag));
    }
    RSSM_TRY(rssm_db_unchanged(db, diag));
    *out_summaries = list;
    list = (rssm_db_summaries){0};
done:
    rssm_sql_reset(s);
    rssm_db_summaries_free(&list);
    return st;
}

void rssm_db_summaries_free(rssm_db_summaries *summaries)
{
    rssm_free(summaries->entries);
    rssm_db_rows_free(&summaries->rows);
    *summaries = (rssm_db_summaries){0};
}
