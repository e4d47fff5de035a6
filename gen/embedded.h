// Files inside the library, as string literals. The definitions are generated at build time by gen/embed.cmake.
#ifndef RSSM_GEN_EMBEDDED_H
#define RSSM_GEN_EMBEDDED_H

#include <stddef.h>

typedef struct rssm_embedded_file {
    const char *name;  // from templates/, "abi/cursor.h"
    const char *bytes; // NUL-terminated beyond n
    size_t      n;
} rssm_embedded_file;

// Everything under templates/.
extern const rssm_embedded_file rssm_embedded_files[];
extern const size_t             rssm_n_embedded_files;

#endif
