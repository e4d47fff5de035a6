// A CUDA driver without a GPU: a table for rssm_cuda_api_install that behaves as the driver documents, keeps count, and
// fails where a test wants it to.
//
//   * Device memory is host memory between guard zones; copies outside a live allocation are refused and noted.
//   * Work is asynchronous: launches, events and graphs wait in their stream until something synchronises with it, as
//     the driver would: a test that reads too early reads old bytes.
//   * A launch calls the C function registered for its entry (its CPU twin) with a copy of the arguments.
//   * Cubins are ELF files: real ones, or those of fake_cuda_cubin. They must name the entry and fit the GPU.
//   * A virtual clock advances by each kernel's `ns`; events read it.
//   * What a host must never do (freeing twice, launching an unloaded kernel, popping an empty stack) is a violation.
//
// Non-goals: cross-stream dependencies in captures, per-thread default streams, peer access.
// Threads: thread-safe; context stacks and capture modes belong to threads, as in the driver. One fake per process.
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>

#include "runtime/cuda_error.h"

enum { FAKE_CUDA_MAX_GPUS = 8 };

typedef struct fake_cuda_gpu {
    const char *name;
    int         major, minor, multiprocessors;
    size_t      memory_bytes;
    int         l2_bytes, shared_optin, pci_model; // pci_model 0: a driver that does not tell it
} fake_cuda_gpu;
#define FAKE_CUDA_H200                                                                                                 \
    {                                                                                                                  \
        "NVIDIA H200", 9, 0, 132, (size_t)140 << 30, 62914560, 232448, 0x233510de                                      \
    }
#define FAKE_CUDA_V100                                                                                                 \
    {                                                                                                                  \
        "Tesla V100-SXM2-16GB", 7, 0, 80, (size_t)16 << 30, 6291456, 98304, 0x1db110de                                 \
    }

// Forgets everything and installs a driver (of CUDA 13.0) with these GPUs.
void fake_cuda_install(const fake_cuda_gpu *gpus, int n_gpus);
void fake_cuda_remove(void); // frees everything and takes the table away

void fake_cuda_set_driver_version(int version); // 12040 for CUDA 12.4
void fake_cuda_hide_optional(void);             // as a driver before CUDA 12.4
void fake_cuda_require_current(bool required);  // launches on a stream fail in a thread that has no context

// ------------------------------------------------------------------------------------------------------- failures

// The nth call from now (1: the next) fails, once; 0 disarms. A call that releases something releases it all the same,
// as the driver does. Error texts and the capture mode never fail.
void        fake_cuda_fail_nth(long n, rssm_cuda_result result);
void        fake_cuda_fault_after(long n, rssm_cuda_result result); // fake_cuda_fault at the nth call from now
bool        fake_cuda_fired(void);                                  // whether either happened
const char *fake_cuda_fired_name(void);                             // "cuMemAlloc"; "" if nothing fired
bool        fake_cuda_fired_late(void);                             // it was a call that releases

void fake_cuda_fail_call(const char *name, rssm_cuda_result result); // every call of this name; 0: none any more
void fake_cuda_fault(rssm_cuda_result result); // a kernel faulted: whatever touches the GPUs fails from now on
void fake_cuda_reset_device(int ordinal);      // other code called cuDevicePrimaryCtxReset

// ------------------------------------------------------------------------------------------------------ observation

long        fake_cuda_calls(const char *name); // since installation; NULL: of all
void        fake_cuda_trace_clear(void);
const char *fake_cuda_trace(void);     // "cuCtxPushCurrent cuMemAlloc cuCtxPopCurrent": since the last clear
const char *fake_cuda_leaks(void);     // "2 allocations, 1 stream"; "" if nothing is held. Of this thread's stack too
const char *fake_cuda_violation(void); // the first; "" if there was none
int         fake_cuda_retained(int ordinal);

// --------------------------------------------------------------------------------------------------------- kernels

typedef struct fake_cuda_launch {
    unsigned grid[3], block[3], shared_bytes;
} fake_cuda_launch;

typedef void fake_cuda_twin(const void *args, const fake_cuda_launch *launch, void *user);

typedef struct fake_cuda_kernel {
    const char     *entry;
    size_t          args_bytes;
    fake_cuda_twin *run; // NULL: does nothing
    void           *user;
    int             registers, local_bytes, static_shared_bytes;
    int             max_threads; // of a block; 0: 1024
    double          ns;          // of one launch; 0: 2000
} fake_cuda_kernel;

void fake_cuda_register(const fake_cuda_kernel *kernel); // entry must outlive the fake; again: replaces it

// Writes a cubin for "sm_90" or "sm_90a" with the comma-separated entries; returns its size.
size_t fake_cuda_cubin(const char *arch, const char *entries, void *out_bytes, size_t room);

#endif
