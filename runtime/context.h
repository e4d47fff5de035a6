// A context: the devices, templates, compilers and threads that groups share. The one place that reads the
// environment on behalf of the library.
//
// Threads: everything but `toolchains` is immutable after opening; toolchains are opened on first use under `lock`.
#ifndef RSSM_RUNTIME_CONTEXT_H
#define RSSM_RUNTIME_CONTEXT_H

#include <pthread.h>

#include "base/log.h"
#include "gen/source.h"
#include "gen/toolchain.h"
#include "runtime/cpu_pool.h"
#include "runtime/device.h"

// X(variable, meaning). Also printed by `replayssm-tune --help`.
#define RSSM_ENVIRONMENT_LIST(X)                                                                     \
    X(RSSM_DATABASE, "user database file (default: $XDG_DATA_HOME/replayssm/tuned.db)")              \
    X(RSSM_TEMPLATE_DIR, "folder of kernel templates that replaces the ones inside the library")     \
    X(RSSM_CLANG, "clang that compiles CPU kernels (default: the newest on $PATH)")                  \
    X(RSSM_NVRTC, "path of libnvrtc.so that compiles GPU kernels")                                   \
    X(CUDA_HOME, "CUDA toolkit; its lib64 is searched for NVRTC")                                    \
    X(RSSM_THREADS, "threads of the CPU backend, the caller included (default: all usable cores)")   \
    X(RSSM_DEVICE, "\"cpu\" hides GPUs")

typedef enum rssm_environment_variable {
#define RSSM_ENVIRONMENT_ENUM(name, meaning) RSSM_ENVIRONMENT_##name,
    RSSM_ENVIRONMENT_LIST(RSSM_ENVIRONMENT_ENUM)
#undef RSSM_ENVIRONMENT_ENUM
    RSSM_ENVIRONMENT_COUNT
} rssm_environment_variable;

// The value, or NULL where unset or empty.
const char *rssm_environment(rssm_environment_variable variable);

struct rssm_context {
    rssm_log           log;
    rssm_miss_policy   miss_policy;
    char              *database;        // user database file; NULL: the default place
    rssm_device        devices[RSSM_MAX_DEVICES];
    uint32_t           n_devices;
    rssm_template_set *templates;
    rssm_cpu_pool     *pool;
    pthread_mutex_t    lock;            // guards what follows
    rssm_toolchain    *toolchains[2];   // by rssm_backend; NULL: not opened, or none found
    rssm_diag          toolchain_diags[2];   // why there is none
};

// The compiler of a backend, or its reason for missing. The toolchain lives as long as the context.
rssm_status rssm_context_toolchain(rssm_context *context, rssm_backend backend, const rssm_toolchain **out_toolchain,
                                   rssm_diag *diag);

#endif
