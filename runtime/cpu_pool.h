// Threads that run the tasks of a CPU kernel.
//
// The calling thread always works, and never waits for a helper that has not begun a task: `run` makes no system
// call, takes no lock and allocates nothing. Helpers look for work by spinning for a moment after the last job and
// then by napping for growing but bounded times (50 us up to 20 ms), so an idle pool costs next to nothing and a job
// that begins after a pause gets its helpers a little late. `wake` ends naps early, for one futex call at most.
//
// Invariants
//   W1  A task index is claimed by exactly one thread: one compare-exchange on {job number, tasks left}.
//   W2  Kernel, arguments and count are written only while no task can be claimed, and read only after a claim.
//   W3  `run` returns when every task of the job has finished.
//   W4  After fork the child has no helpers and runs every task itself.
//
// Threads: `run` from any thread; a second caller at the same time runs its tasks alone. Create and destroy: one.
#ifndef RSSM_RUNTIME_CPU_POOL_H
#define RSSM_RUNTIME_CPU_POOL_H

#include "base/status.h"
#include "templates/abi/types.h"

typedef struct rssm_cpu_pool rssm_cpu_pool;
typedef void rssm_cpu_kernel(const void *args, rssm_i64 task);

// n_threads counts the caller; at least 1. Fewer helpers than asked for start where the system refuses threads.
rssm_status rssm_cpu_pool_create(int n_threads, rssm_cpu_pool **out_pool, rssm_diag *diag);
void        rssm_cpu_pool_destroy(rssm_cpu_pool *pool);
int         rssm_cpu_pool_threads(const rssm_cpu_pool *pool);

// Calls kernel(args, i) for i in [0, n_tasks), n_tasks < 2^32, in any order on any thread of the pool.
void rssm_cpu_pool_run(rssm_cpu_pool *pool, rssm_cpu_kernel *kernel, const void *args, rssm_i64 n_tasks);

// Work is about to come: ends long naps.
void rssm_cpu_pool_wake(rssm_cpu_pool *pool);

#endif
