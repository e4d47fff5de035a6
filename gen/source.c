// Template sets in memory: files and manifests, found by name. See source.h.
#include "gen/source.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "gen/embedded.h"
#include "gen/source_set.h"

static bool has_suffix(const char *name, const char *suffix)
{
    const size_t n = strlen(name), n_suffix = strlen(suffix);
    return n > n_suffix && strcmp(name + n - n_suffix, suffix) == 0;
}

bool rssm_set_takes(const char *name)
{
    static const char *const suffixes[] = {".json", ".c", ".h", ".cu", ".cuh"};

    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; ++i) {
        if (has_suffix(name, suffixes[i])) return true;
    }
    return false;
}

static rssm_status grow(rssm_template_set *set, rssm_diag *diag)
{
    const size_t        capacity = set->capacity ? 2 * set->capacity : 64;
    rssm_template_file *files;

    if (set->n_files < set->capacity) return RSSM_OK;
    files = rssm_realloc(set->files, capacity * sizeof *files);
    if (!files) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for %zu template files", capacity);
    set->files = files;
    set->capacity = capacity;
    return RSSM_OK;
}

rssm_status rssm_set_add_file(rssm_template_set *set, const char *name, const char *bytes, size_t n, bool must_copy,
                              rssm_diag *diag)
{
    rssm_status        st;
    rssm_template_file file = {.bytes = bytes, .n = n, .hash = rssm_hash_bytes(bytes, n)};

    if (memchr(bytes, '\0', n)) return RSSM_FAIL(diag, RSSM_E_CORRUPT, "%s is not a text file: it holds a NUL", name);
    RSSM_TRY(grow(set, diag));
    file.name = rssm_arena_strndup(&set->arena, name, strlen(name));
    if (must_copy) file.bytes = rssm_arena_strndup(&set->arena, bytes, n);
    if (!file.name || !file.bytes) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for the template %s", name);
    set->files[set->n_files++] = file;
    set->n_bytes += n;
done:
    return st;
}

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const rssm_template_file *)a)->name, ((const rssm_template_file *)b)->name);
}

static int compare_manifests(const void *a, const void *b)
{
    return strcmp((*(const rssm_manifest *const *)a)->name, (*(const rssm_manifest *const *)b)->name);
}

static rssm_status load_manifest(rssm_template_set *set, const rssm_template_file *file, rssm_diag *diag)
{
    rssm_status          st;
    const rssm_manifest *manifest = NULL, *other;

    RSSM_TRY(rssm_manifest_load(file->bytes, file->n, file->name, &set->arena, &manifest, diag));
    if (!rssm_template_set_file(set, manifest->source)) {
        return RSSM_FAIL(diag, RSSM_E_MANIFEST, "%s: $.source: there is no file %s beside it", file->name,
                         manifest->source);
    }
    if ((other = rssm_template_set_find(set, manifest->name))) {
        return RSSM_FAIL(diag, RSSM_E_MANIFEST, "%s: $.name: %s is the name of %s too", file->name, manifest->name,
                         other->file);
    }
    set->manifests[set->n_manifests++] = manifest;
done:
    return st;
}

static rssm_status load_manifests(rssm_template_set *set, rssm_diag *diag)
{
    rssm_status st = RSSM_OK;

    set->manifests = rssm_calloc(set->n_files + 1, sizeof *set->manifests);
    if (!set->manifests) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for %zu manifests", set->n_files);
    for (size_t i = 0; i < set->n_files; ++i) {
        if (has_suffix(set->files[i].name, ".json")) RSSM_TRY(load_manifest(set, &set->files[i], diag));
    }
    qsort(set->manifests, set->n_manifests, sizeof *set->manifests, compare_manifests);
done:
    return st;
}

static rssm_status add_embedded(rssm_template_set *set, rssm_diag *diag)
{
    rssm_status st = RSSM_OK;

    for (size_t i = 0; i < rssm_n_embedded_files; ++i) {
        const rssm_embedded_file *file = &rssm_embedded_files[i];
        RSSM_TRY(rssm_set_add_file(set, file->name, file->bytes, file->n, false, diag));
    }
done:
    return st;
}

rssm_status rssm_template_set_open(const char *folder, rssm_template_set **out_set, rssm_diag *diag)
{
    rssm_status        st;
    rssm_template_set *set = rssm_calloc(1, sizeof *set);

    if (!set) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a template set");
    if (folder) {
        set->origin = rssm_arena_strndup(&set->arena, folder, strlen(folder));
        RSSM_TRY(rssm_set_add_folder(set, folder, diag));
    } else {
        set->origin = "inside the library";
        RSSM_TRY(add_embedded(set, diag));
    }
    if (!set->origin) {
        st = RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a template set");
        goto done;
    }
    if (set->n_files) qsort(set->files, set->n_files, sizeof *set->files, compare_files);
    RSSM_TRY(load_manifests(set, diag));
    *out_set = set;
    set = NULL;
done:
    rssm_template_set_close(set);
    return st;
}

void rssm_template_set_close(rssm_template_set *set)
{
    if (!set) return;
    rssm_free(set->files);
    rssm_free(set->manifests);
    rssm_arena_free(&set->arena);
    rssm_free(set);
}

const char *rssm_template_set_origin(const rssm_template_set *set)
{
    return set->origin;
}

size_t rssm_template_set_count(const rssm_template_set *set)
{
    return set->n_manifests;
}

const rssm_manifest *rssm_template_set_at(const rssm_template_set *set, size_t index)
{
    return index < set->n_manifests ? set->manifests[index] : NULL;
}

const rssm_manifest *rssm_template_set_find(const rssm_template_set *set, const char *name)
{
    for (size_t i = 0; i < set->n_manifests; ++i) {
        if (strcmp(set->manifests[i]->name, name) == 0) return set->manifests[i];
    }
    return NULL;
}

const rssm_manifest *rssm_template_set_next(const rssm_template_set *set, rssm_op op, uint32_t recurrence,
                                            rssm_backend backend, const rssm_manifest *after)
{
    bool is_behind = after == NULL;

    for (size_t i = 0; i < set->n_manifests; ++i) {
        const rssm_manifest *m = set->manifests[i];
        const bool           is_match = m->op == op && m->backend == backend &&
                              (m->recurrence == recurrence || m->recurrence == RSSM_RECURRENCE_ANY);
        if (is_behind && is_match) return m;
        is_behind = is_behind || m == after;
    }
    return NULL;
}

size_t rssm_template_set_file_count(const rssm_template_set *set)
{
    return set->n_files;
}

const rssm_template_file *rssm_template_set_file_at(const rssm_template_set *set, size_t index)
{
    return index < set->n_files ? &set->files[index] : NULL;
}

const rssm_template_file *rssm_template_set_file(const rssm_template_set *set, const char *name)
{
    const rssm_template_file key = {.name = name};

    if (set->n_files == 0) return NULL;
    return bsearch(&key, set->files, set->n_files, sizeof *set->files, compare_files);
}
