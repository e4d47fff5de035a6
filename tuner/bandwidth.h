// Bandwidth of a device's memory, measured here and now with the threads or multiprocessors that kernels use, on memory
// far larger than the last-level cache. Times are compared with it, not with a data sheet.
#ifndef RSSM_TUNER_BANDWIDTH_H
#define RSSM_TUNER_BANDWIDTH_H

#include "base/status.h"

typedef struct rssm_bandwidth {
    double read;       // bytes per second, reading
    double read_write; // bytes moved per second, reading and writing the same memory in place
} rssm_bandwidth;

rssm_status rssm_bandwidth_measure(rssm_context *context, uint32_t device, rssm_bandwidth *out_bandwidth,
                                   rssm_diag *diag);

#endif
