// Heap memory over malloc, with one counter that lets a test fail the nth allocation.
//
// The counter is the only mutable global of this layer; it is atomic and off (zero) outside tests.
// Threads: all functions are thread-safe; arming is meant for one test thread.
#include "base/alloc.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static atomic_long fail_countdown; // allocations until the failure, that one included; 0: disarmed
static atomic_int  fail_fired;

static int must_fail(void)
{
    long n = atomic_load_explicit(&fail_countdown, memory_order_relaxed);

    while (n > 0) {
        if (atomic_compare_exchange_weak(&fail_countdown, &n, n - 1)) {
            if (n == 1) atomic_store(&fail_fired, 1);
            return n == 1;
        }
    }
    return 0;
}

int rssm_alloc_fail_after(long n)
{
    const int fired = atomic_exchange(&fail_fired, 0);
    atomic_store(&fail_countdown, n > 0 ? n : 0);
    return fired;
}

// A size of 0 gives one byte, so that NULL always means failure.
void *rssm_alloc(size_t size)
{
    if (must_fail()) return NULL;
    return malloc(size ? size : 1);
}

void *rssm_calloc(size_t n, size_t size)
{
    if (size && n > SIZE_MAX / size) return NULL;
    if (must_fail()) return NULL;
    return n && size ? calloc(n, size) : calloc(1, 1);
}

void *rssm_realloc(void *p, size_t size)
{
    if (must_fail()) return NULL;
    return realloc(p, size ? size : 1);
}

void rssm_free(void *p)
{
    free(p);
}

char *rssm_strdup(const char *s)
{
    const size_t n = strlen(s) + 1;
    char        *copy = rssm_alloc(n);

    if (copy) memcpy(copy, s, n);
    return copy;
}
