// The primary context of a GPU: retained on first use, current only inside a scope.
//
// A process that uses one of eight GPUs must not pay for contexts on all of them (hundreds of MiB and of milliseconds
// each), so finding devices only describes them. rssm_device.native points to a rssm_cuda_context, which the copies of
// a device share.
//
// Invariants
//   C1  A context is retained at most once per rssm_cuda_context, and released by its destruction.
//   C2  A scope leaves the thread's context stack and capture mode as it found them, on every path.
//   C3  Inside a scope the thread's capture mode is relaxed: a stream capture anywhere in the process neither forbids
//       what the scope does nor is invalidated by it.
//
// Threads: thread-safe; destruction needs that no other thread uses the device.
#ifndef RSSM_RUNTIME_CUDA_CONTEXT_H
#define RSSM_RUNTIME_CUDA_CONTEXT_H

#include "runtime/cuda_api.h"
#include "runtime/device.h"

typedef struct rssm_cuda_context rssm_cuda_context;

// For the driver's device handle; calls no driver function. `label` names it in messages: "GPU 0 (NVIDIA H200)".
rssm_status rssm_cuda_context_create(int driver_device, const char *label, rssm_cuda_context **out_context,
                                     rssm_diag *diag);
void        rssm_cuda_context_destroy(rssm_cuda_context *context);

const char *rssm_cuda_label(const rssm_device *device);

typedef struct rssm_cuda_scope {
    const rssm_cuda_api *cu; // NULL: not entered
    unsigned             capture_mode;
} rssm_cuda_scope; // zero-initialise

// Makes the device's context current to this thread, retaining it on first use. E_DEVICE_MEMORY, E_DEVICE_LOST, …
rssm_status rssm_cuda_enter(const rssm_device *device, rssm_cuda_scope *out_scope, rssm_diag *diag);
void        rssm_cuda_leave(rssm_cuda_scope *scope); // accepts one that was not entered

// Only makes the context current, without diagnostics: for launches on the default stream. The caller pops it.
rssm_cuda_result rssm_cuda_push(const rssm_cuda_api *cu, const rssm_device *device);

#endif
