// Compiled kernels, stored under their build key: zstd-compressed, SHA-256 of the uncompressed bytes checked on every
// read. A damaged one costs itself only. Threads: as the rssm_db.
#ifndef RSSM_DB_BINARIES_H
#define RSSM_DB_BINARIES_H

#include <stddef.h>

#include "base/hash.h"
#include "base/status.h"
#include "db/store.h"

enum { RSSM_DB_BINARY_LIMIT = 64 * 1024 * 1024 }; // bytes of one binary, uncompressed

typedef enum rssm_db_binary_kind { RSSM_DB_HOST = 0, RSSM_DB_CUBIN = 1 } rssm_db_binary_kind;

typedef struct rssm_db_binary {
    rssm_db_binary_kind kind;
    const char         *arch;        // what it was compiled for
    rssm_hash           layout_hash; // of the argument struct it expects
    const void         *bytes;       // 1 .. RSSM_DB_BINARY_LIMIT of them
    size_t              n_bytes;
} rssm_db_binary;

// Reads and checks the binary of a build key; free the result with rssm_db_binary_free. RSSM_E_NOT_FOUND: none stored;
// RSSM_E_CORRUPT: damaged, recorded in quarantine where the database is writable, and replaced by the next
// rssm_db_record that brings a new one. `out_binary` is not touched on failure.
rssm_status rssm_db_binary_read(rssm_db *db, const rssm_hash *build_key, rssm_db_binary *out_binary, rssm_diag *diag);
void        rssm_db_binary_free(rssm_db_binary *binary); // only of rssm_db_binary_read's; takes NULL

#endif
