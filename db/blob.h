// Binaries inside a transaction that someone else has open; for record.c.
#ifndef RSSM_DB_BLOB_H
#define RSSM_DB_BLOB_H

#include "db/binaries.h"

// A binary, compressed and hashed, ready for storing. The binary is borrowed.
typedef struct rssm_blob {
    const rssm_db_binary *binary;
    rssm_hash             sha;
    void                 *data;
    size_t                n_data;
} rssm_blob;

rssm_status rssm_blob_make(const rssm_db_binary *binary, rssm_blob *out_blob, rssm_diag *diag);
void        rssm_blob_free(rssm_blob *blob);

// Stores the blob unless a sound one is there already; ends a quarantine of its key.
rssm_status rssm_blob_store(rssm_db *db, const rssm_hash *build_key, const rssm_blob *blob, rssm_diag *diag);

#endif
