// base/thread.h: every index once, in claimed order, whatever the thread count and memory.
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"

enum { MOST = 1000 };

typedef struct tally {
    atomic_int calls[MOST], n_out_of_range;
    atomic_int running, most_running;
    atomic_int n_unmasked;
    pthread_t  caller;
} tally;

static void count(void *context, int i)
{
    tally *t = context;

    if (i < 0 || i >= MOST)
        atomic_fetch_add(&t->n_out_of_range, 1);
    else
        atomic_fetch_add(&t->calls[i], 1);
}

Test(thread, every_index_runs_once)
{
    const int threads[] = {-3, 0, 1, 2, 7, 64}, sizes[] = {-1, 0, 1, 2, 63, MOST};

    for (size_t a = 0; a < sizeof threads / sizeof threads[0]; a++) {
        for (size_t b = 0; b < sizeof sizes / sizeof sizes[0]; b++) {
            static tally t;
            t = (tally){0};
            rssm_parallel_for(threads[a], sizes[b], count, &t);
            cr_assert_eq(t.n_out_of_range, 0);
            for (int i = 0; i < MOST; i++)
                cr_assert_eq(t.calls[i], i < sizes[b], "index %d of %d on %d threads", i, sizes[b], threads[a]);
        }
    }
}

static void overlap(void *context, int i)
{
    tally    *t = context;
    const int running = atomic_fetch_add(&t->running, 1) + 1;
    int       most = atomic_load(&t->most_running);
    sigset_t  mask;

    (void)i;
    while (running > most && !atomic_compare_exchange_weak(&t->most_running, &most, running)) {
    }
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    if (!pthread_equal(pthread_self(), t->caller) && !sigismember(&mask, SIGINT)) atomic_fetch_add(&t->n_unmasked, 1);
    rssm_sleep_ns(20000000);
    atomic_fetch_sub(&t->running, 1);
}

Test(thread, threads_overlap_and_take_no_signals)
{
    static tally t;
    sigset_t     before, after;

    t.caller = pthread_self();
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    rssm_parallel_for(4, 8, overlap, &t);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    cr_assert_gt(t.most_running, 1);
    cr_assert_leq(t.most_running, 4);
    cr_assert_eq(t.n_unmasked, 0);
    cr_assert_eq(sigismember(&before, SIGINT), sigismember(&after, SIGINT), "the caller's mask is restored");
}

Test(thread, without_memory_the_caller_does_it_all)
{
    static tally t;

    rssm_alloc_fail_after(1);
    rssm_parallel_for(4, 50, count, &t);
    cr_assert_eq(rssm_alloc_fail_after(0), 1);
    for (int i = 0; i < 50; i++)
        cr_assert_eq(t.calls[i], 1);
}

static void nested(void *context, int i)
{
    (void)i;
    rssm_parallel_for(2, 10, count, context);
}

Test(thread, loops_nest)
{
    static tally t;

    rssm_parallel_for(3, 5, nested, &t);
    for (int i = 0; i < 10; i++)
        cr_assert_eq(t.calls[i], 5);
}

Test(thread, usable_cores_follow_the_affinity_mask)
{
    cpu_set_t one;
    const int cores = rssm_usable_cores();

    cr_assert_geq(cores, 1);
    cr_assert_leq(cores, sysconf(_SC_NPROCESSORS_CONF));
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
    cr_assert_eq(rssm_usable_cores(), 1);
}
