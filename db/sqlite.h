// A thin layer over SQLite: no other file includes its header. Connections are opened hardened (defensive, untrusted
// schema, no extensions, low limits), statements come from db/statements.h and are prepared once, result codes become
// statuses with a sentence. Knows nothing about our tables.
// Threads: caller serialises per connection.
#ifndef RSSM_DB_SQLITE_H
#define RSSM_DB_SQLITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "db/statements.h"

typedef enum rssm_sql_id {
#define RSSM_SQL_ENUM(name, text) RSSM_SQL_##name,
    RSSM_SQL_LIST(RSSM_SQL_ENUM)
#undef RSSM_SQL_ENUM
        RSSM_SQL_COUNT,
} rssm_sql_id;

typedef enum rssm_sql_access {
    RSSM_SQL_READ,      // with locks, as beside a living writer
    RSSM_SQL_IMMUTABLE, // no locks, no log: the file is taken as it is
    RSSM_SQL_LOG_ALONE, // no locks; the log is indexed in memory. For a log without its shared index
    RSSM_SQL_WRITE,     // the file must exist
    RSSM_SQL_MEMORY,    // a private empty database
} rssm_sql_access;

typedef struct rssm_sql           rssm_sql;
typedef struct rssm_sql_statement rssm_sql_statement;

// `path` must be absolute and free of symbolic links. Reads no more than the first 100 bytes, makes no file.
rssm_status rssm_sql_open(const char *path, rssm_sql_access access, rssm_sql **out_sql, rssm_diag *diag);
void        rssm_sql_close(rssm_sql *sql);   // takes NULL
void        rssm_sql_abandon(rssm_sql *sql); // after fork: forgets it without touching the file

// The beginning of the main file, past locks and log. (Opening it beside SQLite would drop this process's locks.)
typedef struct rssm_sql_header {
    int64_t  file_bytes;
    bool     is_sqlite, is_wal;
    uint32_t application_id;
} rssm_sql_header;

rssm_status rssm_sql_header_read(rssm_sql *sql, rssm_sql_header *out_header, rssm_diag *diag);

// Runs all statements of a script; result rows are dropped.
rssm_status rssm_sql_script(rssm_sql *sql, const char *script, rssm_diag *diag);

void rssm_sql_busy_timeout(rssm_sql *sql, int timeout_ms); // 2000 at opening

// Sets *out_statement to the statement, ready for binding. One use of an id at a time.
rssm_status rssm_sql_start(rssm_sql *sql, rssm_sql_id id, rssm_sql_statement **out_statement, rssm_diag *diag);

// Parameters count from 1; text and blobs are borrowed until the statement is reset; NULL pointers bind NULL. A failure
// shows in the next step.
void rssm_sql_bind_integer(rssm_sql_statement *statement, int index, int64_t value);
void rssm_sql_bind_real(rssm_sql_statement *statement, int index, double value);
void rssm_sql_bind_text(rssm_sql_statement *statement, int index, const char *text);
void rssm_sql_bind_blob(rssm_sql_statement *statement, int index, const void *bytes, size_t n);

rssm_status rssm_sql_step(rssm_sql_statement *statement, bool *out_has_row, rssm_diag *diag);
rssm_status rssm_sql_run(rssm_sql_statement *statement, rssm_diag *diag); // to its end, then resets
void        rssm_sql_reset(rssm_sql_statement *statement);                // takes NULL

// Columns count from 0. A value of another type reads as 0, "" or NULL and makes the row unsound; so does text with a
// NUL inside. Pointers live until the next step.
int64_t     rssm_sql_integer(rssm_sql_statement *statement, int column);
double      rssm_sql_real(rssm_sql_statement *statement, int column);
const char *rssm_sql_text(rssm_sql_statement *statement, int column);
const void *rssm_sql_blob(rssm_sql_statement *statement, int column, size_t *out_n);
bool        rssm_sql_row_is_sound(const rssm_sql_statement *statement); // of the columns read since the step

// Tests: the nth step from now (1 = the next), of any connection, fails with RSSM_E_IO before doing anything; 0
// disarms. Returns whether the last armed failure fired.
int rssm_sql_fail_after(long n);

#endif
