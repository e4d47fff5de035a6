// The schema of a database file: its migrations, and the check that a file holds exactly what they make.
#ifndef RSSM_DB_SCHEMA_H
#define RSSM_DB_SCHEMA_H

#include <stdint.h>

#include "base/status.h"
#include "db/sqlite.h"

enum { RSSM_SCHEMA_APPLICATION_ID = 0x5253534D }; // "RSSM"

extern const char *const rssm_schema_migrations[]; // [version - 1] leads from version - 1 to version
extern const uint32_t    rssm_schema_version;      // the newest

// Runs the migrations from + 1 .. to and sets both ids. The caller has a transaction open.
rssm_status rssm_schema_migrate(rssm_sql *sql, uint32_t from, uint32_t to, rssm_diag *diag);

// Compares everything in the file's schema with what a new file of `version` would hold, comments and white space
// aside. RSSM_E_FOREIGN for something added, RSSM_E_CORRUPT for something missing or changed.
rssm_status rssm_schema_check(rssm_sql *sql, uint32_t version, rssm_diag *diag);

#endif
