// Compilers: one toolchain is the compiler of one backend, found, identified and ready to build (gen/build.h).
//
// Finding clang runs `clang --version`; finding NVRTC loads the library. Reads no environment variable: the caller
// passes what $RSSM_CLANG, $RSSM_NVRTC and $CUDA_HOME say.
// Threads: thread-safe after opening.
#ifndef RSSM_GEN_TOOLCHAIN_H
#define RSSM_GEN_TOOLCHAIN_H

#include "base/hash.h"
#include "base/status.h"

typedef struct rssm_toolchain rssm_toolchain;

typedef struct rssm_toolchain_options {
    const char        *clang;           // program or path; NULL: clang, clang-20 .. clang-14 on $PATH
    const char        *nvrtc;           // libnvrtc or its folder; NULL: search
    const char *const *nvrtc_folders;   // [n_nvrtc_folders] searched before the loader's path: "$CUDA_HOME/lib64",
    size_t             n_nvrtc_folders; // a wheel's "nvidia/cu13/lib" or "nvidia/cuda_nvrtc/lib"
} rssm_toolchain_options;               // zero-initialise

// `options` NULL: all defaults. RSSM_E_NO_COMPILER with what was looked for and how to install it.
rssm_status rssm_toolchain_open(rssm_backend backend, const rssm_toolchain_options *options,
                                rssm_toolchain **out_toolchain, rssm_diag *diag);
void        rssm_toolchain_close(rssm_toolchain *toolchain);

rssm_backend rssm_toolchain_backend(const rssm_toolchain *toolchain);
const char  *rssm_toolchain_path(const rssm_toolchain *toolchain); // of clang or libnvrtc
const char  *rssm_toolchain_text(const rssm_toolchain *toolchain); // first line of --version; "NVRTC 13.0.88"
rssm_hash    rssm_toolchain_key(const rssm_toolchain *toolchain);  // of the text and, for NVRTC, the library's bytes

// Whether it compiles for `arch` ("x86-64-v4", "sm_90a"): RSSM_OK, RSSM_E_UNSUPPORTED with the reason. Runs the
// compiler once on an empty source.
rssm_status rssm_toolchain_check_arch(const rssm_toolchain *toolchain, const char *arch, rssm_diag *diag);

#endif
