// Core count and a parallel loop.
//
// The loop hands out indices by one atomic counter. Where a thread or its memory cannot be had, the loop runs with
// fewer threads: it always completes, and has no error to report. Threads: thread-safe; loops may nest.
#define _GNU_SOURCE
#include "base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cgroup.h"

enum { MOST_CPUS = 1 << 20 }; // where growing the affinity mask gives up

// CPUs in the affinity mask. The kernel refuses masks smaller than its own with EINVAL.
static int affinity_cores(void)
{
    for (int n = CPU_SETSIZE; n <= MOST_CPUS; n *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)n);
        if (!set) break;
        const int rc = sched_getaffinity(0, CPU_ALLOC_SIZE((size_t)n), set);
        const int error = errno;
        const int cores = rc == 0 ? CPU_COUNT_S(CPU_ALLOC_SIZE((size_t)n), set) : 0;
        CPU_FREE(set);
        if (rc == 0) return cores;
        if (error != EINVAL) break;
    }
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

int rssm_usable_cores(void)
{
    int       cores = affinity_cores();
    const int quota = rssm_cgroup_cpus("");

    if (quota > 0 && quota < cores) cores = quota;
    return cores > 0 ? cores : 1;
}

typedef struct loop {
    atomic_int next;
    int        n;
    void (*fn)(void *context, int i);
    void *context;
} loop;

static void *work(void *argument)
{
    loop *l = argument;

    // Compare first: the counter stays below n + threads, so it cannot overflow.
    while (atomic_load_explicit(&l->next, memory_order_relaxed) < l->n) {
        const int i = atomic_fetch_add(&l->next, 1);
        if (i < l->n) l->fn(l->context, i);
    }
    return NULL;
}

void rssm_parallel_for(int n_threads, int n, void (*fn)(void *context, int i), void *context)
{
    loop       l = {.n = n, .fn = fn, .context = context};
    int        n_helpers = (n_threads < n ? n_threads : n) - 1, n_started = 0;
    pthread_t *threads = n_helpers > 0 ? rssm_calloc((size_t)n_helpers, sizeof *threads) : NULL;
    sigset_t   all, old;

    if (threads) {
        sigfillset(&all); // the host's signal handlers run on the host's threads
        const int is_masked = pthread_sigmask(SIG_SETMASK, &all, &old) == 0;
        while (n_started < n_helpers && pthread_create(&threads[n_started], NULL, work, &l) == 0)
            n_started++;
        if (is_masked) pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    work(&l);
    for (int i = 0; i < n_started; i++)
        pthread_join(threads[i], NULL);
    rssm_free(threads);
}
