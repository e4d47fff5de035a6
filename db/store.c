// Opening, checking and closing; transactions.
#include "db/store.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "db/failure.h"
#include "db/handle.h"
#include "db/location.h"
#include "db/schema.h"

enum {
    BUSY_ATTEMPTS = 5, // each waits for SQLite's busy timeout of 2 s
    BUSY_PAUSE_MS = 100,
};

// ------------------------------------------------------------------------------------------------------- transactions

void rssm_db_pause(unsigned limit_ms)
{
    uint64_t x = rssm_now_ns() ^ ((uint64_t)getpid() << 32);
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL; // splitmix64's mixer
    x ^= x >> 31;
    rssm_sleep_ns((1 + x % limit_ms) * 1000000ULL);
}

static rssm_status run(rssm_db *db, rssm_sql_id id, rssm_diag *diag)
{
    rssm_sql_statement *s = NULL;
    rssm_status         st = rssm_sql_start(db->sql, id, &s, diag);
    return st == RSSM_OK ? rssm_sql_run(s, diag) : st;
}

rssm_status rssm_db_begin(rssm_db *db, rssm_diag *diag)
{
    rssm_status st = RSSM_E_BUSY;
    if (!db->is_writable) {
        return RSSM_FAIL(diag, RSSM_E_READ_ONLY, "'%s' is open for reading only; open it for writing", db->path);
    }
    for (int i = 0; i < BUSY_ATTEMPTS && st == RSSM_E_BUSY; i++) {
        if (i > 0) {
            rssm_db_pause(BUSY_PAUSE_MS);
        }
        st = run(db, RSSM_SQL_BEGIN_WRITE, diag);
    }
    return st;
}

rssm_status rssm_db_commit(rssm_db *db, rssm_diag *diag)
{
    rssm_status st = run(db, RSSM_SQL_COMMIT, diag);
    if (st != RSSM_OK) {
        rssm_db_rollback(db);
    }
    return st;
}

void rssm_db_rollback(rssm_db *db)
{
    run(db, RSSM_SQL_ROLLBACK, NULL); // fails where SQLite has rolled back by itself already
}

rssm_status rssm_db_unchanged(const rssm_db *db, rssm_diag *diag)
{
    struct stat now;
    if (strcmp(db->journal, "immutable") != 0) {
        return RSSM_OK;
    }
    if (lstat(db->path, &now) != 0 || now.st_ino != db->file.st_ino || now.st_size != db->file.st_size ||
        now.st_mtim.tv_sec != db->file.st_mtim.tv_sec || now.st_mtim.tv_nsec != db->file.st_mtim.tv_nsec) {
        return RSSM_FAIL(diag, RSSM_E_BUSY, "'%s' was changed while it was read; open it again", db->path);
    }
    return RSSM_OK;
}

// ------------------------------------------------------------------------------------------------------------- checks

static rssm_status read_integer(rssm_db *db, rssm_sql_id id, int64_t *out_value, rssm_diag *diag)
{
    rssm_status         st;
    bool                has_row = false;
    rssm_sql_statement *s = NULL;
    RSSM_TRY(rssm_sql_start(db->sql, id, &s, diag));
    RSSM_TRY(rssm_sql_step(s, &has_row, diag));
    *out_value = has_row ? rssm_sql_integer(s, 0) : 0;
done:
    rssm_sql_reset(s);
    return st;
}

// Structure and types only: values out of range are noticed where rows are read, and cost just their row.
rssm_status rssm_db_check(rssm_db *db, rssm_diag *diag)
{
    rssm_status         st;
    bool                has_row = false;
    rssm_sql_statement *s = NULL;
    RSSM_TRY(run(db, RSSM_SQL_CHECKS_OFF, diag));
    RSSM_TRY(rssm_sql_start(db->sql, RSSM_SQL_QUICK_CHECK, &s, diag));
    RSSM_TRY(rssm_sql_step(s, &has_row, diag));
    if (!has_row || strcmp(rssm_sql_text(s, 0), "ok") != 0) {
        st = RSSM_FAIL(diag, RSSM_E_CORRUPT, "'%s' is damaged (%s); move it away and tune again", db->path,
                       has_row ? rssm_sql_text(s, 0) : "no answer");
        goto done;
    }
    rssm_sql_reset(s);
    s = NULL;
    RSSM_TRY(run(db, RSSM_SQL_CHECKS_ON, diag));
done:
    rssm_sql_reset(s);
    return st;
}

static rssm_status check_header(const rssm_db *db, const rssm_sql_header *header, rssm_diag *diag)
{
    if (header->is_sqlite && header->application_id == RSSM_SCHEMA_APPLICATION_ID) {
        return RSSM_OK;
    }
    return RSSM_FAIL(diag, RSSM_E_FOREIGN, "'%s' is %s, not a replayssm database; choose another path", db->path,
                     header->is_sqlite ? "another program's SQLite database" : "not a SQLite file");
}

static rssm_status check_version(const rssm_db *db, int64_t application_id, int64_t version, rssm_diag *diag)
{
    if (application_id != RSSM_SCHEMA_APPLICATION_ID) {
        return RSSM_FAIL(diag, RSSM_E_FOREIGN,
                         "'%s' is another program's SQLite database, not a replayssm database; choose another path",
                         db->path);
    }
    if (version > (int64_t)rssm_schema_version) {
        return RSSM_FAIL(diag, RSSM_E_TOO_NEW,
                         "'%s' has schema %lld and this version knows schemas up to %u; use the newer replayssm",
                         db->path, (long long)version, rssm_schema_version);
    }
    if (version < 1) {
        return RSSM_FAIL(diag, RSSM_E_CORRUPT, "'%s' has no valid schema number (%lld); move it away and tune again",
                         db->path, (long long)version);
    }
    if (version < (int64_t)rssm_schema_version && !db->is_writable) {
        return RSSM_FAIL(diag, RSSM_E_READ_ONLY,
                         "'%s' has the older schema %lld; open it once with replayssm-tune to bring it up to date",
                         db->path, (long long)version);
    }
    return RSSM_OK;
}

// SQLite itself does not mind a last page that is partly missing. A log may hold what the file does not, so there the
// check must be left to SQLite.
static rssm_status check_length(rssm_db *db, rssm_diag *diag)
{
    rssm_status     st;
    int64_t         n_pages = 0, page_bytes = 0;
    rssm_sql_header header;
    RSSM_TRY(read_integer(db, RSSM_SQL_PAGE_COUNT, &n_pages, diag));
    RSSM_TRY(read_integer(db, RSSM_SQL_PAGE_SIZE, &page_bytes, diag));
    RSSM_TRY(rssm_sql_header_read(db->sql, &header, diag));
    if (header.file_bytes < n_pages * page_bytes && (!header.is_wal || strcmp(db->journal, "immutable") == 0)) {
        st = RSSM_FAIL(diag, RSSM_E_CORRUPT,
                       "'%s' is cut short (%lld of %lld bytes); restore it, or move it away and tune again", db->path,
                       (long long)header.file_bytes, (long long)(n_pages * page_bytes));
    }
done:
    return st;
}

// Rule S1, in one read transaction.
static rssm_status check_identity(rssm_db *db, int64_t *out_version, rssm_diag *diag)
{
    rssm_status st;
    int64_t     application_id = 0, version = 0;
    RSSM_TRY(run(db, RSSM_SQL_BEGIN_READ, diag));
    RSSM_TRY(read_integer(db, RSSM_SQL_APPLICATION_ID, &application_id, diag));
    RSSM_TRY(read_integer(db, RSSM_SQL_USER_VERSION, &version, diag));
    RSSM_TRY(check_version(db, application_id, version, diag));
    RSSM_TRY(check_length(db, diag));
    if ((st = rssm_schema_check(db->sql, (uint32_t)version, diag)) != RSSM_OK) {
        rssm_diag_prefix(diag, "'%s'", db->path);
        goto done;
    }
    RSSM_TRY(run(db, RSSM_SQL_COMMIT, diag));
    *out_version = version;
done:
    if (st != RSSM_OK) {
        rssm_db_rollback(db);
    }
    return st;
}

// ------------------------------------------------------------------------------------------------------------ reading

// How to read a file without making a file beside it, which SQLite would do for a database in WAL mode.
static rssm_sql_access choose_access(const rssm_db *db, const rssm_sql_header *header)
{
    long long log_bytes = rssm_location_size(db->path, "-wal");
    bool      has_index = rssm_location_size(db->path, "-shm") >= 0;
    if (!header->is_wal || (log_bytes >= 0 && has_index)) {
        return RSSM_SQL_READ;
    }
    return log_bytes > 0 ? RSSM_SQL_LOG_ALONE : RSSM_SQL_IMMUTABLE;
}

static rssm_status open_reading(rssm_db *db, rssm_diag *diag)
{
    rssm_status     st;
    int64_t         version = 0;
    rssm_sql_header header;
    RSSM_TRY(rssm_sql_open(db->path, RSSM_SQL_READ, &db->sql, diag));
    RSSM_TRY(rssm_sql_header_read(db->sql, &header, diag));
    if (rssm_location_size(db->path, "") == 0) { // SQLite takes one byte for none
        st = RSSM_FAIL(diag, RSSM_E_NOT_FOUND, "'%s' is empty; tune first", db->path);
        goto done;
    }
    RSSM_TRY(check_header(db, &header, diag));
    rssm_sql_access access = choose_access(db, &header);
    db->journal = header.is_wal ? "wal" : "delete";
    if (access != RSSM_SQL_READ) {
        rssm_sql_close(db->sql);
        db->sql = NULL;
        RSSM_TRY(rssm_sql_open(db->path, access, &db->sql, diag));
    }
    if (access == RSSM_SQL_IMMUTABLE) {
        db->journal = "immutable";
        if (lstat(db->path, &db->file) != 0) {
            st = rssm_failure_errno(errno, db->path, "looking for it", diag);
            goto done;
        }
    }
    RSSM_TRY(check_identity(db, &version, diag));
done:
    return st;
}

// ------------------------------------------------------------------------------------------------------------ writing

static rssm_status bring_up_to_date(rssm_db *db, bool is_empty, rssm_diag *diag)
{
    rssm_status st;
    int64_t     version = 0;
    if (!is_empty) {
        RSSM_TRY(check_identity(db, &version, diag));
        if (version == (int64_t)rssm_schema_version) {
            goto done;
        }
    }
    RSSM_TRY(rssm_db_begin(db, diag));
    RSSM_TRY(read_integer(db, RSSM_SQL_USER_VERSION, &version, diag)); // another process may have been first
    if (version < (int64_t)rssm_schema_version) {
        RSSM_TRY(rssm_schema_check(db->sql, (uint32_t)version, diag));
        RSSM_TRY(rssm_schema_migrate(db->sql, (uint32_t)version, rssm_schema_version, diag));
    }
    RSSM_TRY(rssm_db_commit(db, diag));
    RSSM_TRY(check_identity(db, &version, diag));
done:
    if (st != RSSM_OK) {
        rssm_db_rollback(db);
    }
    return st;
}

// A commit that changes nothing: setting WAL mode can succeed where the first write through it fails.
static rssm_status probe_write(rssm_db *db)
{
    rssm_status st;
    RSSM_TRY(rssm_db_begin(db, NULL));
    RSSM_TRY(rssm_schema_migrate(db->sql, rssm_schema_version, rssm_schema_version, NULL));
    RSSM_TRY(rssm_db_commit(db, NULL));
done:
    if (st != RSSM_OK) {
        rssm_db_rollback(db);
    }
    return st;
}

// Rule S4. A refusal to enter WAL mode is not an error: rollback mode serves as well, only slower.
static rssm_status choose_journal(rssm_db *db, rssm_diag *diag)
{
    db->journal = "delete";
    if (rssm_location_is_local(db->path) && run(db, RSSM_SQL_JOURNAL_WAL, NULL) == RSSM_OK &&
        probe_write(db) == RSSM_OK) {
        rssm_sql_header header;
        rssm_status     st = rssm_sql_header_read(db->sql, &header, diag);
        db->journal = st == RSSM_OK && header.is_wal ? "wal" : "delete";
        return st;
    }
    return run(db, RSSM_SQL_JOURNAL_DELETE, diag);
}

static rssm_status open_writing(rssm_db *db, rssm_diag *diag)
{
    rssm_status     st;
    rssm_sql_header header;
    bool            is_empty = rssm_location_size(db->path, "") == 0;
    RSSM_TRY(rssm_sql_open(db->path, RSSM_SQL_WRITE, &db->sql, diag));
    if (!is_empty) { // then it is refused before anything is written
        RSSM_TRY(rssm_sql_header_read(db->sql, &header, diag));
        RSSM_TRY(check_header(db, &header, diag));
    }
    RSSM_TRY(bring_up_to_date(db, is_empty, diag));
    RSSM_TRY(rssm_db_check(db, diag));
    RSSM_TRY(run(db, RSSM_SQL_SYNCHRONOUS, diag));
    RSSM_TRY(choose_journal(db, diag));
done:
    return st;
}

// ------------------------------------------------------------------------------------------------------ open and close

static rssm_status open_either(const char *path, bool for_writing, rssm_db **out_db, rssm_diag *diag)
{
    rssm_status st;
    rssm_db    *db = rssm_calloc(1, sizeof(*db));
    if (db == NULL) {
        return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "'%s' could not be opened: out of memory", path);
    }
    db->pid = getpid();
    db->journal = "delete";
    db->is_writable = for_writing;
    RSSM_TRY(rssm_location_prepare(path, for_writing, &db->path, diag));
    RSSM_TRY(for_writing ? open_writing(db, diag) : open_reading(db, diag));
    *out_db = db;
    db = NULL;
done:
    rssm_db_close(db);
    return st;
}

rssm_status rssm_db_open_read(const char *path, rssm_db **out_db, rssm_diag *diag)
{
    return open_either(path, false, out_db, diag);
}

rssm_status rssm_db_open_write(const char *path, rssm_db **out_db, rssm_diag *diag)
{
    rssm_status st = RSSM_E_BUSY;
    for (int i = 0; i < BUSY_ATTEMPTS && st == RSSM_E_BUSY; i++) {
        if (i > 0) {
            rssm_db_pause(BUSY_PAUSE_MS);
        }
        st = open_either(path, true, out_db, diag);
    }
    return st;
}

void rssm_db_close(rssm_db *db)
{
    if (db == NULL) {
        return;
    }
    if (db->pid != getpid()) {
        rssm_sql_abandon(db->sql);
    } else {
        if (db->sql != NULL && strcmp(db->journal, "wal") == 0 && db->is_writable) {
            rssm_db_rollback(db);
            rssm_sql_busy_timeout(db->sql, 0); // only the last one to close can leave WAL mode
            run(db, RSSM_SQL_JOURNAL_DELETE, NULL);
        }
        rssm_sql_close(db->sql);
    }
    rssm_free(db->path);
    rssm_free(db);
}

const char *rssm_db_path(const rssm_db *db)
{
    return db->path;
}

bool rssm_db_is_writable(const rssm_db *db)
{
    return db->is_writable;
}

const char *rssm_db_journal(const rssm_db *db)
{
    return db->journal;
}
