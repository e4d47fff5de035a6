// From a choice to a loaded kernel: a stored binary, else a build if policy allows, else a built-in kernel.
// A group keeps its kernels in a loader, so that buckets and problems with the same answer share one.
// Threads: caller serialises.
#ifndef RSSM_RUNTIME_LOADER_H
#define RSSM_RUNTIME_LOADER_H

#include "runtime/kernel.h"
#include "runtime/select.h"

struct rssm_object;

typedef struct rssm_loaded_kernel {
    rssm_hash   key;           // of problem, template and config
    bool        is_builtin;
    rssm_kernel kernel;
} rssm_loaded_kernel;

typedef struct rssm_loader {
    rssm_context        *context;
    const rssm_device   *device;
    rssm_db_layers      *layers;     // open databases; NULL once the group is made
    rssm_loaded_kernel **kernels;    // [n]
    size_t               n;
} rssm_loader;

// The kernel of a choice. On success `choice->match` says which rung it came to. RSSM_E_NO_COMPILER, RSSM_E_COMPILE,
// RSSM_E_UNSUPPORTED and what loading reports; RSSM_E_MISS where policy forbids what would be needed.
rssm_status rssm_loader_get(rssm_loader *loader, const rssm_problem *problem, rssm_choice *choice,
                            const rssm_kernel **out_kernel, rssm_diag *diag);

// The same from an object in memory: the tuner's candidate.
rssm_status rssm_loader_add_object(rssm_loader *loader, const rssm_problem *problem, const rssm_config *config,
                                   const void *bytes, size_t n_bytes, const rssm_kernel **out_kernel, rssm_diag *diag);

void rssm_loader_free(rssm_loader *loader);   // unloads every kernel

#endif
