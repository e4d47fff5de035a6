// From SQL rows to rssm_db_row. A row whose fields are not what they must be is counted and left out.
#include "db/rows.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "db/handle.h"

static const char *const MODES[] = {[RSSM_DB_REPLAY] = "replay", [RSSM_DB_EAGER] = "eager"};

const char *rssm_db_mode_name(rssm_db_mode mode)
{
    return (unsigned)mode <= RSSM_DB_EAGER ? MODES[mode] : "?";
}

bool rssm_rows_mode(const char *name, rssm_db_mode *out_mode)
{
    for (size_t i = 0; i < sizeof(MODES) / sizeof(MODES[0]); i++) {
        if (strcmp(MODES[i], name) == 0) {
            *out_mode = (rssm_db_mode)i;
            return true;
        }
    }
    return false;
}

void rssm_db_rows_free(rssm_db_rows *rows)
{
    rssm_free(rows->rows);
    rssm_arena_free(&rows->arena);
    *rows = (rssm_db_rows){0};
}

void rssm_rows_bind_filter(rssm_sql_statement *s, const rssm_db_query *query)
{
    if (query->problem != NULL) {
        rssm_sql_bind_blob(s, 1, query->problem->bytes, sizeof(query->problem->bytes));
    }
    if (query->device != NULL) {
        rssm_sql_bind_blob(s, 2, query->device->bytes, sizeof(query->device->bytes));
    }
    rssm_sql_bind_text(s, 3, query->arch);
    rssm_sql_bind_text(s, 4, query->policy);
    rssm_sql_bind_integer(s, 5, query->bucket);
}

const char *rssm_rows_text(rssm_arena *arena, rssm_sql_statement *s, int column, const char *previous)
{
    const char *text = rssm_sql_text(s, column);
    return previous != NULL && strcmp(previous, text) == 0 ? previous : rssm_arena_strndup(arena, text, strlen(text));
}

bool rssm_rows_hash(rssm_sql_statement *s, int column, rssm_hash *out_hash)
{
    size_t      n = 0;
    const void *bytes = rssm_sql_blob(s, column, &n);
    if (n != sizeof(out_hash->bytes)) {
        return false;
    }
    memcpy(out_hash->bytes, bytes, n);
    return true;
}

// An integer that must fit; `ok` is cleared where it does not.
static uint32_t read_u32(rssm_sql_statement *s, int column, bool *ok)
{
    int64_t value = rssm_sql_integer(s, column);
    *ok = *ok && value >= 0 && value <= (int64_t)UINT32_MAX;
    return (uint32_t)value;
}

static rssm_status read_texts(rssm_arena *arena, rssm_sql_statement *s, const rssm_db_trial *previous, rssm_db_trial *t,
                              rssm_diag *diag)
{
    const struct {
        int          column;
        const char **out;
        const char  *previous;
    } texts[] = {
        {2, &t->device.text, previous->device.text},
        {3, &t->device.name, previous->device.name},
        {4, &t->device.arch, previous->device.arch},
        {5, &t->env.driver, previous->env.driver},
        {6, &t->env.compiler, previous->env.compiler},
        {7, &t->env.tool, previous->env.tool},
        {9, &t->problem.text, previous->problem.text},
        {10, &t->policy, previous->policy},
        {13, &t->template_name, previous->template_name},
        {15, &t->config, previous->config},
        {19, &t->reason, previous->reason},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        *texts[i].out = rssm_rows_text(arena, s, texts[i].column, texts[i].previous);
        if (*texts[i].out == NULL) {
            return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "reading trials ran out of memory");
        }
    }
    return RSSM_OK;
}

// Columns as in RSSM_TEXT_TRIAL_COLUMNS. Whether the row is sound.
static bool read_numbers(rssm_sql_statement *s, rssm_db_row *row)
{
    rssm_db_trial *t = &row->trial;
    bool           ok = true;
    row->id = rssm_sql_integer(s, 0);
    ok = rssm_rows_hash(s, 1, &t->device.key) && ok;
    ok = rssm_rows_hash(s, 8, &t->problem.key) && ok;
    t->bucket = read_u32(s, 11, &ok);
    ok = rssm_rows_mode(rssm_sql_text(s, 12), &t->mode) && ok && t->bucket > 0;
    t->template_version = read_u32(s, 14, &ok);
    ok = rssm_rows_hash(s, 16, &t->source_hash) && ok;
    ok = rssm_rows_hash(s, 17, &t->build_key) && ok;
    t->status = (rssm_status)read_u32(s, 18, &ok);
    t->tainted = read_u32(s, 20, &ok) != 0;
    t->median_ns = rssm_sql_real(s, 21);
    t->mad_ns = rssm_sql_real(s, 22);
    t->min_ns = rssm_sql_real(s, 23);
    t->n_samples = read_u32(s, 24, &ok);
    t->bytes_per_step = rssm_sql_real(s, 25);
    t->max_error = rssm_sql_real(s, 26);
    t->registers = read_u32(s, 27, &ok);
    t->shared_bytes = read_u32(s, 28, &ok);
    t->spill_bytes = read_u32(s, 29, &ok);
    t->created_s = rssm_sql_integer(s, 30);
    row->has_binary = rssm_sql_integer(s, 31) != 0;
    row->n_trials = 1;
    if (t->status == RSSM_OK) {
        ok = ok && isfinite(t->median_ns) && t->median_ns > 0.0 && isfinite(t->mad_ns) && t->mad_ns >= 0.0;
    }
    return ok && rssm_sql_row_is_sound(s);
}

// Room for one row more: the capacity is the power of two at or above n.
static rssm_status grow(rssm_db_rows *rows, rssm_diag *diag)
{
    if (rows->n == 0 || (rows->n & (rows->n - 1)) == 0) {
        size_t       capacity = rows->n == 0 ? 1 : rows->n * 2;
        rssm_db_row *larger = rssm_realloc(rows->rows, capacity * sizeof(*larger));
        if (larger == NULL) {
            return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "reading %zu trials ran out of memory", rows->n);
        }
        rows->rows = larger;
    }
    return RSSM_OK;
}

static rssm_status append_row(const rssm_row_source *source, rssm_sql_statement *s, rssm_db_usable_fn *usable,
                              void *user, rssm_db_rows *rows, rssm_diag *diag)
{
    static const rssm_db_trial NONE = {.bucket = 0};

    rssm_status st;
    rssm_db_row row = {.layer = source->layer, .layer_index = source->layer_index};
    RSSM_TRY(read_texts(&rows->arena, s, rows->n > 0 ? &rows->rows[rows->n - 1].trial : &NONE, &row.trial, diag));
    if (!read_numbers(s, &row)) {
        rows->n_damaged++;
    } else if (usable == NULL || usable(user, &row)) {
        RSSM_TRY(grow(rows, diag));
        rows->rows[rows->n++] = row;
    }
done:
    return st;
}

rssm_status rssm_rows_collect(const rssm_row_source *source, const rssm_db_query *query, rssm_db_usable_fn *usable,
                              void *user, rssm_db_rows *rows, rssm_diag *diag)
{
    static const rssm_sql_id IDS[2][2] = {{RSSM_SQL_TRIALS, RSSM_SQL_TRIALS_OF_PROBLEM},
                                          {RSSM_SQL_ELIGIBLE, RSSM_SQL_ELIGIBLE_OF_PROBLEM}};

    rssm_status         st;
    rssm_sql_statement *s = NULL;
    size_t              n = rows->n;
    uint32_t            n_damaged = rows->n_damaged;
    bool                has_row = true;

    RSSM_TRY(rssm_sql_start(source->db->sql, IDS[source->eligible_only][query->problem != NULL], &s, diag));
    rssm_rows_bind_filter(s, query);
    if (!source->eligible_only) {
        rssm_sql_bind_integer(s, 6, (int64_t)query->outcome);
    }
    for (;;) {
        RSSM_TRY(rssm_sql_step(s, &has_row, diag));
        if (!has_row) {
            break;
        }
        RSSM_TRY(append_row(source, s, usable, user, rows, diag));
    }
    RSSM_TRY(rssm_db_unchanged(source->db, diag));
done:
    rssm_sql_reset(s);
    if (st != RSSM_OK) {
        rows->n = n;
        rows->n_damaged = n_damaged;
    }
    return st;
}
