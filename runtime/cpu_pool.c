// See cpu_pool.h for the rules. The job word holds {job number:32, tasks left:32}; task index = n_tasks - left.
#include "runtime/cpu_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

enum {
    SPIN_NS = 100000,              // look for work this long without sleeping: longer than the gap between layers' steps
    SHORT_NAP_NS = 50000,          // then nap this long at a time ...
    SHORT_NAPS_FOR_NS = 20000000,  // ... for as long as a model step may take elsewhere
    LONG_NAP_NS = 1000000,
    LONG_NAPS_FOR_NS = 1000000000,
    DEEP_NAP_NS = 20000000,        // an idle process: 50 wake-ups a second and helper
};

struct rssm_cpu_pool {
    _Alignas(64) atomic_uint_fast64_t job;   // {number, tasks left}
    _Alignas(64) atomic_uint_fast32_t done;  // tasks finished of the current job
    _Alignas(64) atomic_int busy;            // a caller is running a job
    _Atomic(rssm_cpu_kernel *) kernel;       // W2 guards these three
    _Atomic(const void *)      args;
    atomic_uint_fast32_t       n_tasks;
    _Alignas(64) atomic_uint wakes;          // futex word of naps; changes to end them
    atomic_int long_nappers;
    atomic_int stop;
    pid_t      owner;                        // process that started the helpers (W4)
    int        n_threads;                    // helpers + 1
    pthread_t  threads[];                    // [n_threads - 1]
};

static void pause_core(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// Claims and runs one task of the current job; false where none is left to claim.
static int run_one_task(rssm_cpu_pool *pool)
{
    uint_fast64_t job = atomic_load_explicit(&pool->job, memory_order_acquire);
    do {
        if ((uint32_t)job == 0) return 0;
    } while (!atomic_compare_exchange_weak_explicit(&pool->job, &job, job - 1, memory_order_acq_rel,
                                                    memory_order_acquire));
    const uint32_t   n_tasks = (uint32_t)atomic_load_explicit(&pool->n_tasks, memory_order_relaxed);
    rssm_cpu_kernel *kernel = atomic_load_explicit(&pool->kernel, memory_order_relaxed);
    const void      *args = atomic_load_explicit(&pool->args, memory_order_relaxed);
    kernel(args, (rssm_i64)n_tasks - (uint32_t)job);
    atomic_fetch_add_explicit(&pool->done, 1, memory_order_release);
    return 1;
}

// Sleeps until `wakes` moves on from `seen` or the time is over.
static void nap(rssm_cpu_pool *pool, unsigned seen, uint64_t ns)
{
    const struct timespec limit = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    syscall(SYS_futex, &pool->wakes, FUTEX_WAIT_PRIVATE, seen, &limit, NULL, 0);
}

static void *helper_main(void *pool_argument)
{
    rssm_cpu_pool *pool = pool_argument;
    uint64_t       idle_since = rssm_now_ns();

    prctl(PR_SET_NAME, "replayssm", 0, 0, 0);
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);   // naps end when they should
    while (!atomic_load_explicit(&pool->stop, memory_order_acquire)) {
        if (run_one_task(pool)) {
            while (run_one_task(pool)) {}
            idle_since = rssm_now_ns();
            continue;
        }
        const uint64_t idle = rssm_now_ns() - idle_since;
        if (idle < SPIN_NS) {
            for (int i = 0; i < 32; i++) pause_core();
            continue;
        }
        const unsigned seen = atomic_load_explicit(&pool->wakes, memory_order_acquire);
        if (idle < SPIN_NS + SHORT_NAPS_FOR_NS) {
            nap(pool, seen, SHORT_NAP_NS);
            continue;
        }
        atomic_fetch_add_explicit(&pool->long_nappers, 1, memory_order_seq_cst);
        if (!atomic_load_explicit(&pool->stop, memory_order_acquire))
            nap(pool, seen, idle < LONG_NAPS_FOR_NS ? LONG_NAP_NS : DEEP_NAP_NS);
        atomic_fetch_sub_explicit(&pool->long_nappers, 1, memory_order_seq_cst);
        if (atomic_load_explicit(&pool->wakes, memory_order_acquire) != seen) idle_since = rssm_now_ns();
    }
    return NULL;
}

rssm_status rssm_cpu_pool_create(int n_threads, rssm_cpu_pool **out_pool, rssm_diag *diag)
{
    if (n_threads < 1) n_threads = 1;
    rssm_cpu_pool *pool = NULL;
    const size_t   size = sizeof *pool + (size_t)(n_threads - 1) * sizeof(pthread_t);
    void          *memory = rssm_calloc(1, size + 64 + sizeof(void *));   // over-allocated to align to a cache line
    if (memory == NULL) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a pool of %d threads", n_threads);
    const uintptr_t aligned = ((uintptr_t)memory + sizeof(void *) + 63) & ~(uintptr_t)63;
    pool = (rssm_cpu_pool *)aligned;
    ((void **)pool)[-1] = memory;
    pool->owner = getpid();
    pool->n_threads = 1;
    for (int i = 0; i < n_threads - 1; i++) {
        if (pthread_create(&pool->threads[i], NULL, helper_main, pool) != 0) break;   // go on with those we got
        pool->n_threads++;
    }
    *out_pool = pool;
    return RSSM_OK;
}

void rssm_cpu_pool_destroy(rssm_cpu_pool *pool)
{
    if (pool == NULL) return;
    atomic_store_explicit(&pool->stop, 1, memory_order_release);
    atomic_fetch_add_explicit(&pool->wakes, 1, memory_order_seq_cst);
    syscall(SYS_futex, &pool->wakes, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
    if (pool->owner == getpid())
        for (int i = 0; i < pool->n_threads - 1; i++) pthread_join(pool->threads[i], NULL);
    rssm_free(((void **)pool)[-1]);
}

int rssm_cpu_pool_threads(const rssm_cpu_pool *pool)
{
    return pool->n_threads;
}

void rssm_cpu_pool_run(rssm_cpu_pool *pool, rssm_cpu_kernel *kernel, const void *args, rssm_i64 n_tasks)
{
    if (pool->n_threads == 1 || n_tasks <= 1 ||
        atomic_exchange_explicit(&pool->busy, 1, memory_order_acquire)) {
        for (rssm_i64 i = 0; i < n_tasks; i++) kernel(args, i);
        return;
    }
    const uint64_t number = (atomic_load_explicit(&pool->job, memory_order_relaxed) >> 32) + 1;
    atomic_store_explicit(&pool->kernel, kernel, memory_order_relaxed);
    atomic_store_explicit(&pool->args, args, memory_order_relaxed);
    atomic_store_explicit(&pool->n_tasks, (uint_fast32_t)n_tasks, memory_order_relaxed);
    atomic_store_explicit(&pool->done, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->job, number << 32 | (uint64_t)n_tasks, memory_order_release);
    while (run_one_task(pool)) {}
    while ((rssm_i64)atomic_load_explicit(&pool->done, memory_order_acquire) != n_tasks) pause_core();
    atomic_store_explicit(&pool->busy, 0, memory_order_release);
}

void rssm_cpu_pool_wake(rssm_cpu_pool *pool)
{
    if (atomic_load_explicit(&pool->long_nappers, memory_order_seq_cst) == 0) return;
    atomic_fetch_add_explicit(&pool->wakes, 1, memory_order_seq_cst);
    syscall(SYS_futex, &pool->wakes, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}
