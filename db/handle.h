// The inside of rssm_db, for the files of this folder.
#ifndef RSSM_DB_HANDLE_H
#define RSSM_DB_HANDLE_H

#include <sys/stat.h>
#include <sys/types.h>

#include "base/hash.h"
#include "db/sqlite.h"
#include "db/store.h"

struct rssm_db {
    rssm_sql   *sql;
    char       *path;    // resolved
    const char *journal; // "wal", "delete", "immutable"; static
    bool        is_writable;
    pid_t       pid;  // that opened it
    struct stat file; // immutable: as it was at opening
};

// Starts a write transaction, waiting for other writers with a bound. RSSM_E_READ_ONLY on a reading handle.
rssm_status rssm_db_begin(rssm_db *db, rssm_diag *diag);
rssm_status rssm_db_commit(rssm_db *db, rssm_diag *diag); // on failure the transaction is undone
void        rssm_db_rollback(rssm_db *db);                // harmless where none is open

// After a query without locks: RSSM_E_BUSY if a writer changed the file meanwhile, so that the rows may be torn.
rssm_status rssm_db_unchanged(const rssm_db *db, rssm_diag *diag);

// Sleeps for a random part of `limit_ms`, so that waiting processes do not meet again.
void rssm_db_pause(unsigned limit_ms);

#endif
