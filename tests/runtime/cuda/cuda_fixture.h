// What the CUDA tests share: a fake H200 as a device, and two kernels with their cubin.
#ifndef CUDA_FIXTURE_H
#define CUDA_FIXTURE_H

#include "runtime/cuda_device.h"
#include "runtime/cuda_kernel.h"
#include "runtime/cuda_memory.h"
#include "tests/support/fake_cuda.h"

// scale: x[i] *= factor for the n elements of x; its geometry is two blocks of 128 threads per row.
typedef struct scale_args {
    float *x;
    int    n;
    float  factor;
} scale_args;

typedef struct fixture {
    rssm_device devices[4];
    uint32_t    n_devices;
    char        cubin[1024]; // sm_90a, entries "scale" and "other"
    size_t      n_cubin;
} fixture;

extern const rssm_geometry scale_geometry;

void fixture_open(fixture *f, int n_gpus); // that many H200s; asserts that they are found
void fixture_close(fixture *f);            // asserts that nothing is held and no rule was broken

// Loads "scale" on the first device; asserts success.
rssm_kernel fixture_load(fixture *f);

#endif
