// The yardstick: the conventional step as a plain float loop on one thread, as a first implementation would write it.
#ifndef RSSM_TUNER_PLAIN_LOOP_H
#define RSSM_TUNER_PLAIN_LOOP_H

#include "base/status.h"

// Nanoseconds per step of one sequence of this shape, fp32 state out of cache, on the CPU.
rssm_status rssm_plain_loop_measure(const rssm_problem *problem, uint64_t cache_bytes, double *out_ns, rssm_diag *diag);

#endif
