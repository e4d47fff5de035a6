// NVRTC's functions, declared by the project. Private to nvrtc.c and nvrtc_find.c; the one place for its prototypes.
#ifndef RSSM_GEN_NVRTC_LIBRARY_H
#define RSSM_GEN_NVRTC_LIBRARY_H

#include "gen/nvrtc.h"

typedef int rssm_nvrtc_result; // nvrtcResult: 0 is success

// X(name, parameters). A program is an opaque pointer.
#define RSSM_NVRTC_FUNCTION_LIST(X)                                                                                    \
    X(nvrtcVersion, (int *out_major, int *out_minor))                                                                  \
    X(nvrtcGetNumSupportedArchs, (int *out_n))                                                                         \
    X(nvrtcGetSupportedArchs, (int *out_archs))                                                                        \
    X(nvrtcCreateProgram, (void **out_program, const char *source, const char *name, int n_headers,                    \
                           const char *const *headers, const char *const *header_names))                               \
    X(nvrtcCompileProgram, (void *program, int n_options, const char *const *options))                                 \
    X(nvrtcGetCUBINSize, (void *program, size_t *out_n))                                                               \
    X(nvrtcGetCUBIN, (void *program, char *out_bytes))                                                                 \
    X(nvrtcGetProgramLogSize, (void *program, size_t *out_n))                                                          \
    X(nvrtcGetProgramLog, (void *program, char *out_text))                                                             \
    X(nvrtcDestroyProgram, (void **program))

enum { RSSM_NVRTC_ARCHS_MAX = 64, RSSM_NVRTC_OLDEST = 12 }; // the oldest major version that is accepted

struct rssm_nvrtc {
#define RSSM_NVRTC_POINTER(name, parameters) rssm_nvrtc_result(*name) parameters;
    RSSM_NVRTC_FUNCTION_LIST(RSSM_NVRTC_POINTER)
#undef RSSM_NVRTC_POINTER
    const char *(*nvrtcGetErrorString)(rssm_nvrtc_result result);
    char     *path;
    char      text[48];
    int       major, minor, build;
    rssm_hash hash;
    int       archs[RSSM_NVRTC_ARCHS_MAX]; // 80, 86, 90 …
    int       n_archs;
};

// Loads the library and fills the functions and `path`. RSSM_E_NO_COMPILER.
rssm_status rssm_nvrtc_load(const char *path, const char *const *folders, size_t n_folders, rssm_nvrtc *nvrtc,
                            rssm_diag *diag);

// SHA-256 of a file, remembered by device, inode, size and time of change for the life of the process.
rssm_status rssm_nvrtc_hash_file(const char *path, rssm_hash *out_hash, rssm_diag *diag);

#endif
