// Where a database lies and whether it may be trusted there: path, owner, permissions, kind of file system. Never opens
// the database file itself once it exists: closing it again would drop the locks that SQLite holds in this process.
// Threads: thread-safe.
#ifndef RSSM_DB_LOCATION_H
#define RSSM_DB_LOCATION_H

#include <stdbool.h>

#include "base/status.h"
#include "base/str.h"

// The path with its folder resolved, free with rssm_free. For writing, the folder (0700) and an empty file (0600) are
// made where missing, whatever the umask. Then checks rule S3 of store.h for the folder, the file and its "-wal",
// "-shm" and "-journal"; write permissions of others on the user's own file are removed in an open for writing.
// Returns RSSM_E_NOT_FOUND, RSSM_E_PERMISSION, RSSM_E_READ_ONLY, RSSM_E_IO, RSSM_E_INVALID_ARGUMENT.
rssm_status rssm_location_prepare(const char *path, bool for_writing, char **out_path, rssm_diag *diag);

// Size of path + suffix in bytes; -1 where there is no such file.
long long rssm_location_size(const char *path, const char *suffix);

// Whether processes on other machines, or behind a user-space file system, may share the file: no shared memory then.
bool rssm_location_is_local(const char *path);

// "file:" and the path with everything but unreserved characters and slashes escaped, then the query.
rssm_status rssm_location_uri(const char *path, const char *query, rssm_str *out, rssm_diag *diag);

#endif
