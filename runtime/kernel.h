// A loaded kernel: an entry point on a device plus its launch geometry. Immutable after loading.
//
// A host object is loaded from a sealed memfd whose descriptor stays open as long as the handle: the loader knows
// /proc/self/fd/N by its name, and a reused number would give back the older library.
#ifndef RSSM_RUNTIME_KERNEL_H
#define RSSM_RUNTIME_KERNEL_H

#include "base/status.h"
#include "runtime/cpu_pool.h"
#include "runtime/device.h"

// grid[i] = constant + per_row * rows.
typedef struct rssm_geometry {
    struct {
        int64_t constant, per_row;
    } grid[3];
    uint32_t block[3];
    uint32_t shared_bytes;
    uint64_t scratch_bytes_per_row;
    uint32_t align_state, align_rings, align_activations;   // bytes, of pointers and strides
} rssm_geometry;

typedef struct rssm_kernel {
    rssm_geometry     geometry;
    size_t            args_bytes;
    rssm_cpu_kernel  *host_entry;       // CPU
    void             *host_handle;      // of dlopen; NULL for a built-in kernel
    int               host_fd;
    void             *cuda_library;     // CUDA: CUlibrary and CUfunction of the device's context
    void             *cuda_function;
    uint32_t          registers, local_bytes;
} rssm_kernel;

// Loads a host shared object. RSSM_E_CORRUPT if it is not one or has no such entry.
rssm_status rssm_kernel_load_host(const void *bytes, size_t n, const char *entry, rssm_kernel *out_kernel,
                                  rssm_diag *diag);

// Wraps a kernel that is compiled into the library.
void rssm_kernel_wrap_builtin(rssm_cpu_kernel *entry, rssm_kernel *out_kernel);

void rssm_kernel_unload_host(rssm_kernel *kernel);   // accepts a zeroed or built-in kernel

#endif
