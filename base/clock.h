// Monotonic time.
#ifndef RSSM_BASE_CLOCK_H
#define RSSM_BASE_CLOCK_H

#include <stdint.h>

uint64_t rssm_now_ns(void);          // CLOCK_MONOTONIC
void     rssm_sleep_ns(uint64_t ns);

#endif
