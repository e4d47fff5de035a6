// Template sets: the files under templates/, by name, with their manifests; and include closures.
//
// A set is what is embedded in the library, or one folder: a folder replaces the whole embedded set. Names are relative
// to templates/ with forward slashes ("abi/cursor.h"). Only *.json, *.c, *.h, *.cu and *.cuh files belong to it.
// Invariants: everything reachable from a set, manifests included, is owned by it and immutable once opened.
// Threads: thread-safe after opening.
#ifndef RSSM_GEN_SOURCE_H
#define RSSM_GEN_SOURCE_H

#include "base/hash.h"
#include "base/status.h"
#include "gen/manifest.h"

#define RSSM_CONFIG_HEADER "rssm_config.h"            // rendered, never a file of a set
#define RSSM_CONFIG_HEADER_INCLUDE "numerics/types.h" // the one file that the rendered header includes

typedef struct rssm_template_file {
    const char *name;
    const char *bytes; // NUL-terminated beyond n
    size_t      n;
    rssm_hash   hash; // SHA-256 of the bytes
} rssm_template_file;

typedef struct rssm_template_set rssm_template_set;

// `folder` NULL: the templates inside the library. Loads every manifest; the first invalid one fails the set.
// RSSM_E_MANIFEST, RSSM_E_IO, RSSM_E_NOT_FOUND, RSSM_E_PERMISSION, RSSM_E_NO_MEMORY.
rssm_status rssm_template_set_open(const char *folder, rssm_template_set **out_set, rssm_diag *diag);
void        rssm_template_set_close(rssm_template_set *set);

// "inside the library" or the folder, for messages. Borrowed from the set.
const char *rssm_template_set_origin(const rssm_template_set *set);

// Manifests, ordered by name.
size_t               rssm_template_set_count(const rssm_template_set *set);
const rssm_manifest *rssm_template_set_at(const rssm_template_set *set, size_t index);
const rssm_manifest *rssm_template_set_find(const rssm_template_set *set, const char *name); // NULL: none

// The first manifest behind `after` (NULL: from the start) for an op, recurrence and backend; NULL at the end.
// A manifest for any recurrence matches every one.
const rssm_manifest *rssm_template_set_next(const rssm_template_set *set, rssm_op op, uint32_t recurrence,
                                            rssm_backend backend, const rssm_manifest *after);

// Files, ordered by name; NULL where there is none.
size_t                    rssm_template_set_file_count(const rssm_template_set *set);
const rssm_template_file *rssm_template_set_file_at(const rssm_template_set *set, size_t index);
const rssm_template_file *rssm_template_set_file(const rssm_template_set *set, const char *name);

// A source and everything it includes with #include "…", directly or not, rssm_config.h's own include among it. Names
// are looked up from the root of the set, as the compilers are told to. RSSM_E_NOT_FOUND names file and includer.
typedef struct rssm_closure {
    const rssm_template_file **files; // [n]; files[0] is the source, the others ordered by name
    size_t                     n;
} rssm_closure; // zero-initialise; the array is owned, the files belong to the set

rssm_status rssm_closure_scan(const rssm_template_set *set, const char *source, rssm_closure *out_closure,
                              rssm_diag *diag);
void        rssm_closure_free(rssm_closure *closure);

#endif
