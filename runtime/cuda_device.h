// NVIDIA GPUs as devices: found through the driver, which is loaded at run time. Without a driver there are none.
//
// Finding only describes: a GPU's primary context is retained when it is first used (runtime/cuda_context.h).
// GPUs that cannot serve (compute capability below 8.0, a failing one) are skipped with a reason.
#ifndef RSSM_RUNTIME_CUDA_DEVICE_H
#define RSSM_RUNTIME_CUDA_DEVICE_H

#include "runtime/device.h"

// Appends up to `room` devices. RSSM_E_DRIVER (no driver, too old), RSSM_E_NO_DEVICE, with the reason and the remedy.
// On success `diag` is untouched, unless GPUs were skipped: then it holds RSSM_OK and the reasons.
rssm_status rssm_cuda_find_devices(rssm_device *devices, uint32_t room, uint32_t *inout_count, rssm_diag *diag);

// Gives back what find_devices and later use hold (primary contexts). Accepts devices of any backend.
void rssm_cuda_release_devices(rssm_device *devices, uint32_t count);

#endif
