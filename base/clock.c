// Monotonic time. Threads: thread-safe.
#define _GNU_SOURCE
#include "base/clock.h"

#include <errno.h>
#include <time.h>

enum { NS_PER_S = 1000000000 };

uint64_t rssm_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t); // cannot fail for this clock
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

// Sleeps to an absolute time, so that signals neither shorten nor stretch the sleep.
void rssm_sleep_ns(uint64_t ns)
{
    const uint64_t        end = rssm_now_ns() + ns;
    const struct timespec t = {.tv_sec = (time_t)(end / NS_PER_S), .tv_nsec = (long)(end % NS_PER_S)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
    }
}
