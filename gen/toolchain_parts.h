// The inside of a toolchain. Private to toolchain.c, build.c and the backends' builders.
#ifndef RSSM_GEN_TOOLCHAIN_PARTS_H
#define RSSM_GEN_TOOLCHAIN_PARTS_H

#include "gen/nvrtc.h"
#include "gen/toolchain.h"

enum { RSSM_COMPILE_TIMEOUT_MS = 60000 };

struct rssm_toolchain {
    rssm_backend backend;
    char        *path;
    char        *text;
    rssm_hash    key;
    rssm_nvrtc  *nvrtc; // CUDA only
};

// Refuses what cannot name a target: other characters than letters, digits and . _ + -, and "native", which means
// something else on every machine. RSSM_E_INVALID_ARGUMENT.
rssm_status rssm_arch_check_text(rssm_backend backend, const char *arch, rssm_diag *diag);

#endif
