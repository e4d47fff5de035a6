// Arguments of the `probe` op: reads memory as fast as the device can, to learn its bandwidth.
#ifndef RSSM_ABI_PROBE_H
#define RSSM_ABI_PROBE_H

#include "abi/types.h"

typedef struct rssm_probe_kernel_args {
    const void *data;        // 16-byte aligned
    rssm_i64    n_vectors;   // of 16 bytes
    rssm_u32   *sink;        // one word; written only for a pattern that the data must not hold, so that reads count
} rssm_probe_kernel_args;

RSSM_ASSERT(sizeof(rssm_probe_kernel_args) == 24, "probe argument layout");

#endif
