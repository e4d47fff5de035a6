// The wrapper of sqlite.h. The only file that includes SQLite.
#include "db/sqlite.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "db/binaries.h"
#include "db/failure.h"
#include "db/location.h"

enum {
    HEADER_BYTES = 100,
    BUSY_TIMEOUT_MS = 2000,
    // A statement may take this many virtual machine instructions: half a second of work and far more than a database
    // of ours needs, so that a file whose pages point in circles ends in a status.
    WORK_UNIT = 100000,
    WORK_UNITS = 100,
};

struct rssm_sql_statement {
    rssm_sql     *sql;
    sqlite3_stmt *stmt;
    const char   *name;
    int           bind_rc; // first failed bind
    bool          is_sound;
};

struct rssm_sql {
    sqlite3           *db;
    char              *path;
    int                n_work; // units since the statement started
    bool               is_work_bounded;
    rssm_sql_statement statements[RSSM_SQL_COUNT];
};

static const struct {
    const char *name, *text;
} TEXTS[RSSM_SQL_COUNT] = {
#define ENTRY(name, text) {"statement " #name, text},
    RSSM_SQL_LIST(ENTRY)
#undef ENTRY
};

// ---------------------------------------------------------------------------------------------------- error injection

static atomic_long fail_countdown; // 0: disarmed
static atomic_int  fail_fired;

int rssm_sql_fail_after(long n)
{
    int fired = atomic_exchange(&fail_fired, 0);
    atomic_store(&fail_countdown, n);
    return fired;
}

static bool must_fail(void)
{
    if (atomic_load(&fail_countdown) == 0 || atomic_fetch_sub(&fail_countdown, 1) != 1) {
        return false;
    }
    atomic_store(&fail_fired, 1);
    return true;
}

// ----------------------------------------------------------------------------------------------------------- statuses

// The one place where result codes become causes. Anything else is damage: SQLITE_CORRUPT, and SQLITE_ERROR where a
// schema does not even parse.
static const struct {
    int          code; // primary, or extended where that says more; the first match counts
    rssm_failure cause;
} CAUSES[] = {
    {SQLITE_READONLY_ROLLBACK, RSSM_FAILURE_DIED},
    {SQLITE_READONLY_RECOVERY, RSSM_FAILURE_DIED},
    {SQLITE_READONLY_CANTLOCK, RSSM_FAILURE_DIED},
    {SQLITE_READONLY_DIRECTORY, RSSM_FAILURE_PERMISSION},
    {SQLITE_READONLY, RSSM_FAILURE_READ_ONLY},
    {SQLITE_NOMEM, RSSM_FAILURE_MEMORY},
    {SQLITE_BUSY, RSSM_FAILURE_BUSY},
    {SQLITE_LOCKED, RSSM_FAILURE_BUSY},
    {SQLITE_FULL, RSSM_FAILURE_FULL},
    {SQLITE_PERM, RSSM_FAILURE_PERMISSION},
    {SQLITE_NOTADB, RSSM_FAILURE_NO_DATABASE},
    {SQLITE_INTERRUPT, RSSM_FAILURE_ENDLESS},
    {SQLITE_CONSTRAINT, RSSM_FAILURE_REFUSED},
    {SQLITE_TOOBIG, RSSM_FAILURE_REFUSED},
};

static rssm_status fail_sql(const rssm_sql *sql, int rc, const char *doing, rssm_diag *diag)
{
    bool         is_last = (sqlite3_extended_errcode(sql->db) & 0xff) == (rc & 0xff);
    int          extended = is_last ? sqlite3_extended_errcode(sql->db) : rc;
    int          primary = rc & 0xff;
    rssm_failure cause = RSSM_FAILURE_DAMAGED;
    if (primary == SQLITE_CANTOPEN || primary == SQLITE_IOERR) {
        return rssm_failure_errno(is_last ? sqlite3_system_errno(sql->db) : 0, sql->path, doing, diag);
    }
    for (size_t i = 0; i < sizeof(CAUSES) / sizeof(CAUSES[0]); i++) {
        if (CAUSES[i].code == extended || CAUSES[i].code == primary) {
            cause = CAUSES[i].cause;
            break;
        }
    }
    bool says_more = cause == RSSM_FAILURE_DAMAGED || cause == RSSM_FAILURE_REFUSED;
    return rssm_failure_report(cause, sql->path, doing, says_more ? sqlite3_errmsg(sql->db) : NULL, diag);
}

// ---------------------------------------------------------------------------------------------------------- connection

static int count_work(void *context)
{
    rssm_sql *sql = context;
    return sql->is_work_bounded && ++sql->n_work > WORK_UNITS;
}

static void harden(sqlite3 *db)
{
    static const struct {
        int id, value;
    } LIMITS[] = {
        // zstd can grow incompressible bytes a little
        {SQLITE_LIMIT_LENGTH, RSSM_DB_BINARY_LIMIT + RSSM_DB_BINARY_LIMIT / 64},
        {SQLITE_LIMIT_SQL_LENGTH, 100000},
        {SQLITE_LIMIT_EXPR_DEPTH, 50},
        {SQLITE_LIMIT_VDBE_OP, 25000},
        {SQLITE_LIMIT_ATTACHED, 0},
        {SQLITE_LIMIT_VARIABLE_NUMBER, 32},
        {SQLITE_LIMIT_TRIGGER_DEPTH, 2},
    };
    for (size_t i = 0; i < sizeof(LIMITS) / sizeof(LIMITS[0]); i++) {
        sqlite3_limit(db, LIMITS[i].id, LIMITS[i].value);
    }
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
    sqlite3_extended_result_codes(db, 1);
}

static const char PRAGMAS[] = "PRAGMA cell_size_check = ON; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY;"
                              "PRAGMA mmap_size = 0;";

static const struct {
    int         flags;
    const char *query, *vfs, *pragmas;
} ACCESSES[] = {
    [RSSM_SQL_READ] = {SQLITE_OPEN_READONLY, "?mode=ro", NULL, "PRAGMA query_only = ON;"},
    [RSSM_SQL_IMMUTABLE] = {SQLITE_OPEN_READONLY, "?mode=ro&immutable=1", NULL, "PRAGMA query_only = ON;"},
    // exclusive mode keeps the index of the log in memory
    [RSSM_SQL_LOG_ALONE] = {SQLITE_OPEN_READONLY, "?mode=ro", "unix-none",
                            "PRAGMA query_only = ON; PRAGMA locking_mode = EXCLUSIVE;"},
    [RSSM_SQL_WRITE] = {SQLITE_OPEN_READWRITE, "?mode=rw", NULL, ""},
    [RSSM_SQL_MEMORY] = {SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "?mode=memory", NULL, ""},
};

static rssm_status open_file(rssm_sql *sql, rssm_sql_access access, rssm_diag *diag)
{
    rssm_status st;
    rssm_str    uri = {0};
    int         flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI | SQLITE_OPEN_NOFOLLOW | ACCESSES[access].flags;
    RSSM_TRY(rssm_location_uri(sql->path, ACCESSES[access].query, &uri, diag));
    int rc = sqlite3_open_v2(rssm_str_c(&uri), &sql->db, flags, ACCESSES[access].vfs);
    if (sql->db == NULL) {
        st = rssm_failure_report(RSSM_FAILURE_MEMORY, sql->path, "opening", NULL, diag);
    } else if (rc != SQLITE_OK) {
        st = fail_sql(sql, rc, "opening", diag);
    }
done:
    rssm_str_free(&uri);
    return st;
}

rssm_status rssm_sql_open(const char *path, rssm_sql_access access, rssm_sql **out_sql, rssm_diag *diag)
{
    rssm_status st;
    rssm_sql   *sql = rssm_calloc(1, sizeof(*sql));
    if (sql == NULL || (sql->path = rssm_strdup(path)) == NULL) {
        rssm_free(sql);
        return rssm_failure_report(RSSM_FAILURE_MEMORY, path, "opening", NULL, diag);
    }
    for (int i = 0; i < RSSM_SQL_COUNT; i++) {
        sql->statements[i] = (rssm_sql_statement){.sql = sql, .name = TEXTS[i].name};
    }
    RSSM_TRY(open_file(sql, access, diag));
    harden(sql->db);
    sqlite3_db_config(sql->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, access == RSSM_SQL_LOG_ALONE, NULL);
    RSSM_TRY(rssm_sql_script(sql, PRAGMAS, diag));
    RSSM_TRY(rssm_sql_script(sql, ACCESSES[access].pragmas, diag));
    rssm_sql_busy_timeout(sql, BUSY_TIMEOUT_MS);
    sqlite3_progress_handler(sql->db, WORK_UNIT, count_work, sql);
    *out_sql = sql;
    sql = NULL;
done:
    rssm_sql_close(sql);
    return st;
}

void rssm_sql_close(rssm_sql *sql)
{
    if (sql == NULL) {
        return;
    }
    for (int i = 0; i < RSSM_SQL_COUNT; i++) {
        sqlite3_finalize(sql->statements[i].stmt);
    }
    sqlite3_close(sql->db);
    rssm_sql_abandon(sql);
}

void rssm_sql_abandon(rssm_sql *sql)
{
    if (sql != NULL) {
        rssm_free(sql->path);
        rssm_free(sql);
    }
}

void rssm_sql_busy_timeout(rssm_sql *sql, int timeout_ms)
{
    sqlite3_busy_timeout(sql->db, timeout_ms);
}

rssm_status rssm_sql_header_read(rssm_sql *sql, rssm_sql_header *out_header, rssm_diag *diag)
{
    unsigned char   bytes[HEADER_BYTES] = {0};
    sqlite3_file   *file = NULL;
    sqlite3_int64   size = 0;
    rssm_sql_header header = {0};
    int             rc = sqlite3_file_control(sql->db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (rc == SQLITE_OK) {
        rc = file->pMethods->xFileSize(file, &size);
    }
    if (rc == SQLITE_OK && size >= HEADER_BYTES) {
        rc = file->pMethods->xRead(file, bytes, HEADER_BYTES, 0);
    }
    if (rc != SQLITE_OK) {
        return fail_sql(sql, rc, "reading the header", diag);
    }
    header.file_bytes = size;
    header.is_sqlite = memcmp(bytes, "SQLite format 3", 16) == 0;
    header.is_wal = bytes[19] == 2;
    header.application_id =
        (uint32_t)bytes[68] << 24 | (uint32_t)bytes[69] << 16 | (uint32_t)bytes[70] << 8 | bytes[71];
    *out_header = header;
    return RSSM_OK;
}

// ---------------------------------------------------------------------------------------------------------- statements

static rssm_status step(rssm_sql *sql, sqlite3_stmt *stmt, const char *name, bool *out_has_row, rssm_diag *diag)
{
    if (must_fail()) {
        return RSSM_FAIL(diag, RSSM_E_IO, "'%s': %s failed because a test said so", sql->path, name);
    }
    int rc = sqlite3_step(stmt);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        return fail_sql(sql, rc, name, diag);
    }
    *out_has_row = rc == SQLITE_ROW;
    return RSSM_OK;
}

rssm_status rssm_sql_script(rssm_sql *sql, const char *script, rssm_diag *diag)
{
    rssm_status   st = RSSM_OK;
    sqlite3_stmt *stmt = NULL;
    sql->n_work = 0;
    while (*script != '\0') {
        bool has_row = true;
        int  rc = sqlite3_prepare_v2(sql->db, script, -1, &stmt, &script);
        if (rc != SQLITE_OK) {
            st = fail_sql(sql, rc, "a script", diag);
            goto done;
        }
        while (stmt != NULL && has_row) { // NULL: white space or a comment
            RSSM_TRY(step(sql, stmt, "a script", &has_row, diag));
        }
        sqlite3_finalize(stmt);
        stmt = NULL;
    }
done:
    sqlite3_finalize(stmt);
    return st;
}

rssm_status rssm_sql_start(rssm_sql *sql, rssm_sql_id id, rssm_sql_statement **out_statement, rssm_diag *diag)
{
    rssm_sql_statement *s = &sql->statements[id];
    sql->n_work = 0;
    sql->is_work_bounded = id != RSSM_SQL_QUICK_CHECK;
    if (s->stmt == NULL) {
        int rc = sqlite3_prepare_v3(sql->db, TEXTS[id].text, -1, SQLITE_PREPARE_PERSISTENT, &s->stmt, NULL);
        if (rc != SQLITE_OK) {
            return fail_sql(sql, rc, s->name, diag);
        }
    }
    rssm_sql_reset(s);
    s->bind_rc = SQLITE_OK;
    *out_statement = s;
    return RSSM_OK;
}

static void note_bind(rssm_sql_statement *s, int rc)
{
    if (s->bind_rc == SQLITE_OK) {
        s->bind_rc = rc;
    }
}

void rssm_sql_bind_integer(rssm_sql_statement *s, int index, int64_t value)
{
    note_bind(s, sqlite3_bind_int64(s->stmt, index, value));
}

void rssm_sql_bind_real(rssm_sql_statement *s, int index, double value)
{
    note_bind(s, sqlite3_bind_double(s->stmt, index, value));
}

void rssm_sql_bind_text(rssm_sql_statement *s, int index, const char *text)
{
    note_bind(s, sqlite3_bind_text(s->stmt, index, text, -1, SQLITE_STATIC));
}

void rssm_sql_bind_blob(rssm_sql_statement *s, int index, const void *bytes, size_t n)
{
    note_bind(s, sqlite3_bind_blob64(s->stmt, index, bytes, n, SQLITE_STATIC));
}

rssm_status rssm_sql_step(rssm_sql_statement *s, bool *out_has_row, rssm_diag *diag)
{
    s->is_sound = true;
    if (s->bind_rc != SQLITE_OK) {
        return fail_sql(s->sql, s->bind_rc, s->name, diag);
    }
    return step(s->sql, s->stmt, s->name, out_has_row, diag);
}

rssm_status rssm_sql_run(rssm_sql_statement *s, rssm_diag *diag)
{
    rssm_status st;
    bool        has_row = true;
    while (has_row) {
        RSSM_TRY(rssm_sql_step(s, &has_row, diag));
    }
done:
    rssm_sql_reset(s);
    return st;
}

void rssm_sql_reset(rssm_sql_statement *s)
{
    if (s != NULL) {
        sqlite3_reset(s->stmt);
        sqlite3_clear_bindings(s->stmt);
    }
}

static bool has_type(rssm_sql_statement *s, int column, int type)
{
    bool same = sqlite3_column_type(s->stmt, column) == type;
    s->is_sound = s->is_sound && same;
    return same;
}

int64_t rssm_sql_integer(rssm_sql_statement *s, int column)
{
    return has_type(s, column, SQLITE_INTEGER) ? sqlite3_column_int64(s->stmt, column) : 0;
}

double rssm_sql_real(rssm_sql_statement *s, int column)
{
    return has_type(s, column, SQLITE_FLOAT) ? sqlite3_column_double(s->stmt, column) : 0.0;
}

const char *rssm_sql_text(rssm_sql_statement *s, int column)
{
    const char *text = has_type(s, column, SQLITE_TEXT) ? (const char *)sqlite3_column_text(s->stmt, column) : NULL;
    if (text == NULL || strlen(text) != (size_t)sqlite3_column_bytes(s->stmt, column)) {
        s->is_sound = false;
        return "";
    }
    return text;
}

const void *rssm_sql_blob(rssm_sql_statement *s, int column, size_t *out_n)
{
    const void *bytes = has_type(s, column, SQLITE_BLOB) ? sqlite3_column_blob(s->stmt, column) : NULL;
    *out_n = bytes != NULL ? (size_t)sqlite3_column_bytes(s->stmt, column) : 0;
    return bytes;
}

bool rssm_sql_row_is_sound(const rssm_sql_statement *s)
{
    return s->is_sound;
}
