// One build on its way: what is keyed and what is compiled. Private to build.c and the backends' builders.
#ifndef RSSM_GEN_BUILD_PARTS_H
#define RSSM_GEN_BUILD_PARTS_H

#include "gen/build.h"
#include "gen/toolchain_parts.h"

enum { RSSM_BUILD_OPTIONS_MAX = 32 };

typedef struct rssm_build_job {
    const rssm_build_input *input;
    const rssm_manifest    *manifest;
    rssm_closure            closure;
    rssm_str                header;                          // rendered rssm_config.h
    const char             *options[RSSM_BUILD_OPTIONS_MAX]; // in order; keyed
    size_t                  n_options;
    char                    arch_option[96]; // one of the options
    rssm_build_identity     identity;
} rssm_build_job;

void rssm_build_add_option(rssm_build_job *job, const char *option);

// The options of a backend.
void rssm_build_host_options(rssm_build_job *job);
void rssm_build_cuda_options(rssm_build_job *job);

// Compile. Append to `log` in any case.
rssm_status rssm_build_host(const rssm_build_job *job, const rssm_toolchain *toolchain, rssm_object *object,
                            rssm_str *log, rssm_diag *diag);
rssm_status rssm_build_cuda(const rssm_build_job *job, const rssm_toolchain *toolchain, rssm_object *object,
                            rssm_str *log, rssm_diag *diag);

#endif
