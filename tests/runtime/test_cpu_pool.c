// The thread pool of the CPU backend: every task exactly once, whatever the helpers are doing.
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/cpu_pool.h"

enum { N = 1000 };

typedef struct counts {
    atomic_int runs[N];
} counts;

static void count_task(const void *args, rssm_i64 task)
{
    counts *c = (counts *)args;
    atomic_fetch_add(&c->runs[task], 1);
}

static void check_runs(rssm_cpu_pool *pool, int n_jobs)
{
    for (int job = 0; job < n_jobs; job++) {
        static counts c;
        const int     n = job % N + 1;
        memset(&c, 0, sizeof c);
        rssm_cpu_pool_run(pool, count_task, &c, n);
        for (int i = 0; i < N; i++) cr_assert_eq(atomic_load(&c.runs[i]), i < n, "job %d task %d", job, i);
    }
}

Test(cpu_pool, runs_every_task_exactly_once)
{
    for (int threads = 1; threads <= 5; threads++) {
        rssm_cpu_pool *pool;
        cr_assert_eq(rssm_cpu_pool_create(threads, &pool, NULL), RSSM_OK);
        check_runs(pool, 2000);
        rssm_cpu_pool_destroy(pool);
    }
}

Test(cpu_pool, runs_after_helpers_have_gone_to_sleep)
{
    rssm_cpu_pool *pool;
    cr_assert_eq(rssm_cpu_pool_create(3, &pool, NULL), RSSM_OK);
    for (int round = 0; round < 5; round++) {
        check_runs(pool, 20);
        rssm_sleep_ns(round * 15000000u);   // spinning, short naps, long naps
        if (round % 2) rssm_cpu_pool_wake(pool);
    }
    rssm_cpu_pool_destroy(pool);
}

Test(cpu_pool, uses_its_helpers)
{
    rssm_cpu_pool *pool;
    cr_assert_eq(rssm_cpu_pool_create(2, &pool, NULL), RSSM_OK);
    cr_assert_eq(rssm_cpu_pool_threads(pool), 2);
    rssm_cpu_pool_destroy(pool);
}

typedef struct caller {
    rssm_cpu_pool *pool;
    int            failures;
} caller;

static void *run_many(void *argument)
{
    caller *c = argument;
    for (int job = 0; job < 500; job++) {
        counts mine = {0};
        rssm_cpu_pool_run(c->pool, count_task, &mine, 64);
        for (int i = 0; i < 64; i++) c->failures += atomic_load(&mine.runs[i]) != 1;
    }
    return NULL;
}

Test(cpu_pool, serves_two_callers_at_once)
{
    rssm_cpu_pool *pool;
    pthread_t      threads[3];
    caller         callers[3];
    cr_assert_eq(rssm_cpu_pool_create(2, &pool, NULL), RSSM_OK);
    for (int i = 0; i < 3; i++) {
        callers[i] = (caller){pool, 0};
        cr_assert_eq(pthread_create(&threads[i], NULL, run_many, &callers[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        cr_expect_eq(callers[i].failures, 0);
    }
    rssm_cpu_pool_destroy(pool);
}

Test(cpu_pool, works_alone_in_a_forked_child)
{
    rssm_cpu_pool *pool;
    int            status;
    cr_assert_eq(rssm_cpu_pool_create(2, &pool, NULL), RSSM_OK);
    check_runs(pool, 10);
    const pid_t child = fork();
    if (child == 0) {
        counts c = {0};
        rssm_cpu_pool_run(pool, count_task, &c, N);
        int wrong = 0;
        for (int i = 0; i < N; i++) wrong += atomic_load(&c.runs[i]) != 1;
        rssm_cpu_pool_destroy(pool);
        _exit(wrong ? 1 : 0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
    rssm_cpu_pool_destroy(pool);
}
