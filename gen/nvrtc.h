// NVRTC, loaded at run time: CUDA C++ source in memory -> cubin in memory. No toolkit header is used; no GPU is needed.
//
// The library is looked for at an explicit path (a file or a folder) alone; else in the given folders, then on the
// loader's path, by the names libnvrtc.so.13, libnvrtc.so.12 and libnvrtc.so. It is identified by version, build and
// the SHA-256 of its file, which is read once per process.
// Non-goals: keys and rendering (gen/build.c), loading cubins (runtime).
// Threads: thread-safe after opening; NVRTC serialises inside where it must. A loaded library stays loaded.
#ifndef RSSM_GEN_NVRTC_H
#define RSSM_GEN_NVRTC_H

#include "base/hash.h"
#include "base/status.h"
#include "base/str.h"

typedef struct rssm_nvrtc rssm_nvrtc;

// `path` NULL: search. RSSM_E_NO_COMPILER with what was tried and how to install it.
rssm_status rssm_nvrtc_open(const char *path, const char *const *folders, size_t n_folders, rssm_nvrtc **out_nvrtc,
                            rssm_diag *diag);
void        rssm_nvrtc_close(rssm_nvrtc *nvrtc);

const char *rssm_nvrtc_path(const rssm_nvrtc *nvrtc); // the file that was loaded
const char *rssm_nvrtc_text(const rssm_nvrtc *nvrtc); // "NVRTC 13.0.88"
rssm_hash   rssm_nvrtc_hash(const rssm_nvrtc *nvrtc); // SHA-256 of the library and of its builtins library

typedef struct rssm_nvrtc_header {
    const char *name;
    const char *bytes; // NUL-terminated
} rssm_nvrtc_header;

typedef struct rssm_nvrtc_input {
    const char              *name;  // of the source, as messages cite it
    const char              *bytes; // NUL-terminated
    const rssm_nvrtc_header *headers;
    size_t                   n_headers;
    const char *const       *options; // in order; among them --gpu-architecture=sm_XX
    size_t                   n_options;
} rssm_nvrtc_input;

typedef struct rssm_nvrtc_output {
    uint8_t *cubin; // owned: rssm_free
    size_t   n;
} rssm_nvrtc_output;

// Appends the log to `log` on success and on failure. RSSM_E_COMPILE with the first error line, RSSM_E_NO_MEMORY.
// Which architectures it compiles for: see rssm_nvrtc_knows.
rssm_status rssm_nvrtc_compile(const rssm_nvrtc *nvrtc, const rssm_nvrtc_input *input, rssm_nvrtc_output *out_output,
                               rssm_str *log, rssm_diag *diag);

// Whether it lists `arch` (900 for sm_90 and sm_90a) among its targets.
bool rssm_nvrtc_knows(const rssm_nvrtc *nvrtc, uint32_t arch);

#endif
