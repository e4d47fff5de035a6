// How many threads this process may use, and a parallel loop for work that is not on the launch path (compilation).
#ifndef RSSM_BASE_THREAD_H
#define RSSM_BASE_THREAD_H

// Cores this process may run on: the affinity mask, cut by a cgroup v1 or v2 CPU quota (rounded up); at least 1.
int rssm_usable_cores(void);

// Calls fn(context, i) for i in [0, n) on up to n_threads threads; returns when all are done. Work is claimed in order.
void rssm_parallel_for(int n_threads, int n, void (*fn)(void *context, int i), void *context);

#endif
