// Databases in layers, read together; the more local one wins. A layer that cannot be used is reported to the log and
// skipped: it never fails the caller. Reads only; no file stays open after rssm_db_layers_close.
// Threads: caller serialises per rssm_db_layers.
#ifndef RSSM_DB_LAYERS_H
#define RSSM_DB_LAYERS_H

#include "base/log.h"
#include "db/winners.h"

typedef struct rssm_layer_path {
    const char *name; // "user", "fleet", "shipped"
    char       *path;
} rssm_layer_path;

enum { RSSM_LAYERS_MAX = 8 };

typedef struct rssm_layer_paths {
    rssm_layer_path layers[RSSM_LAYERS_MAX]; // most local first
    size_t          n;
} rssm_layer_paths;

// Where the layers are: the user's file (`user_path`; NULL: "replayssm/tuned.db" in the XDG data folder), the fleet's
// (/etc/replayssm/tuned.db), the shipped one (<prefix>/share/replayssm/tuned.db). They need not exist. Without a home
// there is no user layer. Free with rssm_layer_paths_free.
rssm_status rssm_layers_paths(const char *user_path, rssm_layer_paths *out_paths, rssm_diag *diag);
void        rssm_layer_paths_free(rssm_layer_paths *paths);

// The user's file alone, for writing: as above. Free with rssm_free. RSSM_E_NOT_FOUND where there is no home.
rssm_status rssm_layers_user_path(const char *user_path, char **out_path, rssm_diag *diag);

typedef struct rssm_db_layers rssm_db_layers;

// Opens those that exist; copies the paths. Missing ones are skipped silently, refused ones with a warning to `log`
// (may be NULL). RSSM_E_NO_MEMORY only.
rssm_status rssm_db_layers_open(const rssm_layer_paths *paths, const rssm_log *log, rssm_db_layers **out_layers,
                                rssm_diag *diag);
void        rssm_db_layers_close(rssm_db_layers *layers);       // takes NULL
size_t      rssm_db_layers_count(const rssm_db_layers *layers); // of layers that could be opened

// As rssm_db_winners over all layers: per device, bucket and mode the row of the most local layer that has one;
// row.layer names it. RSSM_E_NO_MEMORY only.
rssm_status rssm_db_layers_winners(rssm_db_layers *layers, const rssm_db_query *query, rssm_db_usable_fn *usable,
                                   void *user, rssm_db_rows *out_rows, rssm_diag *diag);

// The first sound binary of that build key. RSSM_E_NOT_FOUND where there is none; RSSM_E_CORRUPT where all are damaged.
rssm_status rssm_db_layers_binary_read(rssm_db_layers *layers, const rssm_hash *build_key, rssm_db_binary *out_binary,
                                       rssm_diag *diag);

#endif
