// The inside of a template set. Private to source.c and source_folder.c.
#ifndef RSSM_GEN_SOURCE_SET_H
#define RSSM_GEN_SOURCE_SET_H

#include "gen/source.h"

enum {
    RSSM_SET_FILES_MAX = 1024,
    RSSM_SET_DEPTH_MAX = 8, // folders
    RSSM_SET_FILE_BYTES_MAX = 1024 * 1024,
    RSSM_SET_BYTES_MAX = 16 * 1024 * 1024,
};

struct rssm_template_set {
    rssm_arena            arena; // names, bytes of a folder's files, manifests
    const char           *origin;
    rssm_template_file   *files; // ordered by name
    size_t                n_files, capacity;
    const rssm_manifest **manifests; // ordered by name
    size_t                n_manifests;
    size_t                n_bytes; // of all files
};

// Adds a file; copies the name, and the bytes where asked (else they must outlive the set).
rssm_status rssm_set_add_file(rssm_template_set *set, const char *name, const char *bytes, size_t n, bool must_copy,
                              rssm_diag *diag);

// Adds every template file under `folder`.
rssm_status rssm_set_add_folder(rssm_template_set *set, const char *folder, rssm_diag *diag);

// Whether a file of this name belongs to a set: by its suffix.
bool rssm_set_takes(const char *name);

#endif
