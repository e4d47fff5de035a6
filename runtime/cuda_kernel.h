// Kernels on NVIDIA GPUs: loading a cubin (at plan time) and launching it (at any time, also in stream capture).
//
// A kernel belongs to the context it was loaded in. A graph that captured launches of it needs it to stay loaded.
#ifndef RSSM_RUNTIME_CUDA_KERNEL_H
#define RSSM_RUNTIME_CUDA_KERNEL_H

#include "runtime/device.h"
#include "runtime/kernel.h"

// Loads a cubin, finds `entry`, makes it resident, sets its attributes from `geometry` (dynamic shared memory beyond
// the default) and reads registers and local memory back. The bytes are copied by the driver. Changes the calling
// thread's current context only for the duration; works while streams are being captured. RSSM_E_UNSUPPORTED (cubin
// for another architecture, a block that does not fit), RSSM_E_DRIVER (driver too old for it), RSSM_E_DEVICE_MEMORY,
// RSSM_E_DEVICE_LOST, RSSM_E_CORRUPT, RSSM_E_MISMATCH (its argument struct is not args_bytes long).
rssm_status rssm_cuda_kernel_load(const rssm_device *device, const void *cubin, size_t n, const char *entry,
                                  const rssm_geometry *geometry, size_t args_bytes, rssm_kernel *out_kernel,
                                  rssm_diag *diag);
void        rssm_cuda_kernel_unload(const rssm_device *device, rssm_kernel *kernel); // accepts a zeroed kernel

// One launch of n_rows >= 1 rows with one argument struct. No allocation, no lock, no log: the driver's launch call
// and nothing else. `stream` is a CUstream of the device's primary context, whatever context is current; NULL is its
// default stream. RSSM_E_INVALID_ARGUMENT (no rows, or more than a grid holds), RSSM_E_DEVICE, RSSM_E_DEVICE_LOST.
rssm_status rssm_cuda_kernel_launch(const rssm_device *device, const rssm_kernel *kernel, const void *args,
                                    uint32_t n_rows, void *stream);

#endif
