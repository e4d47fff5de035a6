// A group and its plans: everything a launch needs, immutable once made.
//
// Invariants
//   G1  Every bucket up to that of max_rows has a kernel; a launch never looks anything up.
//   G2  All problems of a group share L, T and R; one mode (replay or eager) per bucket serves all of them.
//   G3  A kernel for the life of a slot may be missing (NULL): steps run without it, and its calls are unsupported.
//   G4  No database and no file is open when creation returns; kernels live in `loader` until destruction.
#ifndef RSSM_RUNTIME_GROUP_H
#define RSSM_RUNTIME_GROUP_H

#include "runtime/loader.h"
#include "templates/abi/cursor.h"

enum { RSSM_BUCKETS_MAX = 24 };   // batches up to 2^23

typedef struct rssm_bucket {
    const rssm_kernel *kernel;
    rssm_plan_info     info;
} rssm_bucket;

struct rssm_plan {
    const rssm_group *group;
    rssm_problem      problem;                    // normalised
    rssm_bucket       buckets[RSSM_BUCKETS_MAX];  // [group->n_buckets]; bucket i serves up to 2^i rows
    const rssm_kernel *copy, *materialize, *encode, *decode;   // each may be NULL
};

struct rssm_group {
    rssm_context      *context;
    const rssm_device *device;
    rssm_backend       backend;
    rssm_cpu_pool     *pool;
    rssm_window        window;                    // with eager = 0
    uint8_t            eager[RSSM_BUCKETS_MAX];
    uint32_t           n_buckets, max_rows, n_slots, debug;
    rssm_cursor       *cursors;
    const rssm_kernel *advance;
    const rssm_kernel *slots;                     // may be NULL
    rssm_loader        loader;
    uint32_t           n_plans;
    rssm_plan         *plans;                     // [n_plans]
};

// Index of the bucket that serves n_rows >= 1.
static inline uint32_t rssm_bucket_index(uint32_t n_rows)
{
    return n_rows <= 1 ? 0 : 32 - (uint32_t)__builtin_clz(n_rows - 1);
}

// Index of the group's device in its context, as the memory functions take it.
static inline uint32_t rssm_group_device(const rssm_group *group)
{
    return (uint32_t)(group->device - group->context->devices);
}

// Whether a kernel's grid holds n_rows rows (grid x alone may grow with rows by more than 65535).
bool rssm_group_grid_fits(const rssm_kernel *kernel, uint64_t n_rows);

// The one launch of n_rows >= 1 rows.
rssm_status rssm_group_launch(const rssm_group *group, const rssm_kernel *kernel, const void *args, uint32_t n_rows,
                              void *stream);

// A group whose step kernel is given instead of looked up: the tuner's candidate. One problem; `object` may be freed
// afterwards.
rssm_status rssm_group_create_candidate(rssm_context *context, const rssm_group_options *options,
                                        const rssm_config *config, const void *object, size_t object_bytes,
                                        rssm_group **out_group, rssm_diag *diag);

#endif
