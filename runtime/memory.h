// Memory of a device, for the tuner, the tests and the examples. Host applications use their own allocator.
// On the CPU these are malloc, memcpy and memset. All calls are synchronous.
#ifndef RSSM_RUNTIME_MEMORY_H
#define RSSM_RUNTIME_MEMORY_H

#include "base/status.h"

// 256-byte aligned. RSSM_E_DEVICE_MEMORY (GPU) or RSSM_E_NO_MEMORY (CPU) where it does not fit.
rssm_status rssm_memory_alloc(rssm_context *context, uint32_t device, size_t n_bytes, void **out_pointer,
                              rssm_diag *diag);
void        rssm_memory_free(rssm_context *context, uint32_t device, void *pointer);
rssm_status rssm_memory_upload(rssm_context *context, uint32_t device, void *to, const void *from, size_t n_bytes,
                               rssm_diag *diag);
rssm_status rssm_memory_download(rssm_context *context, uint32_t device, void *to, const void *from, size_t n_bytes,
                                 rssm_diag *diag);

// Waits for everything launched on the device; reports what went wrong there since the last call.
rssm_status rssm_device_synchronise(rssm_context *context, uint32_t device, rssm_diag *diag);

#endif
