// The GPU half of bandwidth.h: the `probe` template, compiled for the device and timed in a graph.
#ifndef RSSM_TUNER_BANDWIDTH_CUDA_H
#define RSSM_TUNER_BANDWIDTH_CUDA_H

#include "tuner/bandwidth.h"

rssm_status rssm_bandwidth_measure_cuda(rssm_context *context, uint32_t device, rssm_bandwidth *out_bandwidth,
                                        rssm_diag *diag);

#endif
