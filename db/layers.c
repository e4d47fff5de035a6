// The layers of databases and the questions put to all of them.
#include "db/layers.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "db/rows.h"

typedef struct rssm_db_layer {
    char    *name, *path;
    rssm_db *db; // NULL: not there, refused, or given up after damage was found
} rssm_db_layer;

struct rssm_db_layers {
    rssm_db_layer layers[RSSM_LAYERS_MAX];
    size_t     n;
    rssm_log   log;
};

rssm_status rssm_layers_user_path(const char *user_path, char **out_path, rssm_diag *diag)
{
    rssm_status st;
    char       *folder = NULL;
    rssm_str    path = {0};
    if (user_path != NULL) {
        rssm_str_puts(&path, user_path);
    } else {
        RSSM_TRY(rssm_xdg_folder("XDG_DATA_HOME", ".local/share", &folder, diag));
        rssm_str_printf(&path, "%s/tuned.db", folder);
    }
    RSSM_TRY(rssm_str_check(&path, diag));
    *out_path = path.data;
    path = (rssm_str){0};
done:
    rssm_free(folder);
    rssm_str_free(&path);
    return st;
}

static rssm_status add_path(rssm_layer_paths *paths, const char *name, const char *path, rssm_diag *diag)
{
    char *copy = rssm_strdup(path);
    if (copy == NULL) {
        return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "listing database layers ran out of memory");
    }
    paths->layers[paths->n++] = (rssm_layer_path){name, copy};
    return RSSM_OK;
}

rssm_status rssm_layers_paths(const char *user_path, rssm_layer_paths *out_paths, rssm_diag *diag)
{
    rssm_status      st;
    char            *user = NULL;
    rssm_layer_paths paths = {.n = 0};
    st = rssm_layers_user_path(user_path, &user, diag);
    if (st == RSSM_OK) {
        RSSM_TRY(add_path(&paths, "user", user, diag));
    } else if (st != RSSM_E_NOT_FOUND) {
        goto done;
    }
    RSSM_TRY(add_path(&paths, "fleet", "/etc/replayssm/tuned.db", diag));
    RSSM_TRY(add_path(&paths, "shipped", RSSM_SHARE_FOLDER "/tuned.db", diag));
    *out_paths = paths;
    paths = (rssm_layer_paths){.n = 0};
done:
    rssm_free(user);
    rssm_layer_paths_free(&paths);
    return st;
}

void rssm_layer_paths_free(rssm_layer_paths *paths)
{
    for (size_t i = 0; i < paths->n; i++) {
        rssm_free(paths->layers[i].path);
    }
    *paths = (rssm_layer_paths){.n = 0};
}

// Invalid is a miss, never an error: what is wrong with a layer goes to the log.
static rssm_status open_layer(rssm_db_layers *layers, const rssm_layer_path *from, rssm_diag *diag)
{
    rssm_db_layer *layer = &layers->layers[layers->n++];
    layer->name = rssm_strdup(from->name);
    layer->path = rssm_strdup(from->path);
    if (layer->name == NULL || layer->path == NULL) {
        return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "opening database layers ran out of memory");
    }
    rssm_diag   local = {0};
    rssm_status st = rssm_db_open_read(layer->path, &layer->db, &local);
    if (st != RSSM_OK && st != RSSM_E_NOT_FOUND) {
        rssm_log_printf(&layers->log, RSSM_LOG_WARN, "database layer '%s' is not used: %s", layer->name, local.text);
    }
    return RSSM_OK;
}

rssm_status rssm_db_layers_open(const rssm_layer_paths *paths, const rssm_log *log, rssm_db_layers **out_layers,
                                rssm_diag *diag)
{
    rssm_status  st = RSSM_OK;
    rssm_db_layers *layers = rssm_calloc(1, sizeof(*layers));
    if (layers == NULL) {
        return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "opening database layers ran out of memory");
    }
    if (log != NULL) {
        layers->log = *log;
    }
    for (size_t i = 0; i < paths->n && i < RSSM_LAYERS_MAX; i++) {
        RSSM_TRY(open_layer(layers, &paths->layers[i], diag));
    }
    *out_layers = layers;
    layers = NULL;
done:
    rssm_db_layers_close(layers);
    return st;
}

void rssm_db_layers_close(rssm_db_layers *layers)
{
    if (layers == NULL) {
        return;
    }
    for (size_t i = 0; i < layers->n; i++) {
        rssm_db_close(layers->layers[i].db);
        rssm_free(layers->layers[i].name);
        rssm_free(layers->layers[i].path);
    }
    rssm_free(layers);
}

size_t rssm_db_layers_count(const rssm_db_layers *layers)
{
    size_t n = 0;
    for (size_t i = 0; i < layers->n; i++) {
        n += layers->layers[i].db != NULL;
    }
    return n;
}

static void give_up(rssm_db_layers *layers, rssm_db_layer *layer, const rssm_diag *why)
{
    rssm_log_printf(&layers->log, RSSM_LOG_WARN, "database layer '%s' is not used any more: %s", layer->name,
                    why->text);
    rssm_db_close(layer->db);
    layer->db = NULL;
}

rssm_status rssm_db_layers_winners(rssm_db_layers *layers, const rssm_db_query *query, rssm_db_usable_fn *usable,
                                   void *user, rssm_db_rows *out_rows, rssm_diag *diag)
{
    rssm_status  st = RSSM_OK;
    rssm_db_rows rows = {0};
    for (size_t i = 0; i < layers->n; i++) {
        rssm_db_layer  *layer = &layers->layers[i];
        rssm_diag       local = {0};
        const char     *name = rssm_arena_strndup(&rows.arena, layer->name, strlen(layer->name));
        rssm_row_source source = {layer->db, name, (uint32_t)i, true};
        if (layer->db == NULL) {
            continue;
        }
        st = name != NULL ? rssm_rows_collect(&source, query, usable, user, &rows, &local) : RSSM_E_NO_MEMORY;
        if (st == RSSM_E_NO_MEMORY) {
            st = RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "reading database layers ran out of memory");
            goto done;
        }
        if (st != RSSM_OK) {
            give_up(layers, layer, &local);
            st = RSSM_OK;
        }
    }
    rssm_rows_select(&rows);
    *out_rows = rows;
    rows = (rssm_db_rows){0};
done:
    rssm_db_rows_free(&rows);
    return st;
}

rssm_status rssm_db_layers_binary_read(rssm_db_layers *layers, const rssm_hash *build_key, rssm_db_binary *out_binary,
                                       rssm_diag *diag)
{
    rssm_status st =
        RSSM_FAIL(diag, RSSM_E_NOT_FOUND, "no database layer holds the binary; tune again or allow compiling");
    for (size_t i = 0; i < layers->n; i++) {
        rssm_diag local = {0};
        if (layers->layers[i].db == NULL) {
            continue;
        }
        rssm_status found = rssm_db_binary_read(layers->layers[i].db, build_key, out_binary, &local);
        if (found == RSSM_OK || found == RSSM_E_NO_MEMORY) {
            return found;
        }
        if (found != RSSM_E_NOT_FOUND) {
            rssm_log_printf(&layers->log, RSSM_LOG_WARN, "database layer '%s': %s", layers->layers[i].name, local.text);
            if (st == RSSM_E_NOT_FOUND) {
                st = RSSM_FAIL(diag, RSSM_E_CORRUPT, "%s", local.text);
            }
        }
    }
    return st;
}
