// One tuning database: a SQLite file that holds trials and compiled kernels. Opening checks that the file is ours and
// whole before anything is believed. Non-goals: choosing between databases (layers.h), signing, exchange.
//
// S1 A file is only used where its application id, its user_version and its complete schema are ours.
// S2 A read-only open creates no file and changes none but the shared index ("-shm") of a log that is already there.
// S3 A file that someone else can write to is refused: what is in it runs as code in the process that reads it.
// S4 At rest a database is a single file in rollback mode, which any read-only folder or medium can hold; it is in WAL
//    mode only while it is open for writing on a local file system, or after a writer died.
//
// Threads: caller serialises per handle. A handle does not survive fork: in the child only rssm_db_close is allowed.
#ifndef RSSM_DB_STORE_H
#define RSSM_DB_STORE_H

#include <stdbool.h>

#include "base/status.h"

typedef struct rssm_db rssm_db;

// Opens for reading. Refuses a symbolic link, an owner who is neither this user nor root, and a file that others may
// write. Returns RSSM_E_NOT_FOUND (absent, or nothing in it yet), RSSM_E_PERMISSION (also for the refusals),
// RSSM_E_FOREIGN (not a database of ours), RSSM_E_TOO_NEW, RSSM_E_CORRUPT (cut short, or a schema that is not exactly
// ours), RSSM_E_READ_ONLY (a writer died and this folder does not allow its journal to be undone), RSSM_E_BUSY,
// RSSM_E_IO, RSSM_E_NO_MEMORY. A log left by a dead writer is read, so that what it acknowledged is seen.
rssm_status rssm_db_open_read(const char *path, rssm_db **out_db, rssm_diag *diag);

// Opens for reading and writing; makes the folder (0700) and the file (0600) where missing, brings an older schema up
// to date, runs rssm_db_check. Further returns RSSM_E_READ_ONLY for a read-only file system.
rssm_status rssm_db_open_write(const char *path, rssm_db **out_db, rssm_diag *diag);

// Takes NULL. Statements in progress are undone.
void rssm_db_close(rssm_db *db);

// Reads the whole file and looks for damage (SQLite's quick_check). RSSM_E_CORRUPT with the first finding.
rssm_status rssm_db_check(rssm_db *db, rssm_diag *diag);

// The path as resolved at opening, owned by the handle; whether it may be written; "wal", "delete" or "immutable".
const char *rssm_db_path(const rssm_db *db);
bool        rssm_db_is_writable(const rssm_db *db);
const char *rssm_db_journal(const rssm_db *db);

#endif
