// Facts: the named integers that manifest expressions are evaluated over.
//
// A plain value of bounded size: copy it, fill it on the stack. Names are borrowed (literals, or owned by the template
// set), so a facts value must not outlive them. Not for general maps: lookup is linear over a few dozen entries.
// Threads: no shared state.
#ifndef RSSM_GEN_FACTS_H
#define RSSM_GEN_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// X(name): the fields of a problem. Types appear as bytes per element (state_bytes: of the checkpoint; 0 below a byte).
// clang-format off
#define RSSM_PROBLEM_FACT_LIST(X) \
    X(head_dim)                   \
    X(state_size)                 \
    X(group_size)                 \
    X(heads)                      \
    X(groups)                     \
    X(window)                     \
    X(ring_length)                \
    X(max_tokens)                 \
    X(activation_bytes)           \
    X(state_bytes)

// X(name after "dev.", backend): what the caller adds about the device: rssm_facts_set(f, "dev.cores", n).
#define RSSM_DEVICE_FACT_LIST(X)                                                                  \
    X(cores, RSSM_CPU)                       /* usable cores */                                   \
    X(vector_bytes, RSSM_CPU)                /* width of a vector register */                     \
    X(cache_bytes, RSSM_CPU)                 /* last-level cache */                               \
    X(multiprocessors, RSSM_CUDA)                                                                 \
    X(shared_optin, RSSM_CUDA)               /* bytes of shared memory a block can opt in to */   \
    X(shared_per_multiprocessor, RSSM_CUDA)  /* bytes */                                          \
    X(registers, RSSM_CUDA)                  /* 32-bit registers per multiprocessor */            \
    X(arch, RSSM_CUDA)                       /* 900 for sm_90 and sm_90a */                       \
    X(l2_bytes, RSSM_CUDA)
// clang-format on

enum { RSSM_FACTS_MAX = 64 }; // above all names a manifest can see: 10 + 9 + 1 + tunables + derived

typedef struct rssm_fact {
    const char *name;
    int64_t     value;
} rssm_fact;

typedef struct rssm_facts {
    size_t    n;
    rssm_fact items[RSSM_FACTS_MAX];
} rssm_facts; // zero-initialise

// Adds a fact or replaces its value. More than RSSM_FACTS_MAX names are a programming error.
void rssm_facts_set(rssm_facts *facts, const char *name, int64_t value);
bool rssm_facts_get(const rssm_facts *facts, const char *name, int64_t *out_value);

// Adds the facts of a normalised problem.
void rssm_facts_add_problem(rssm_facts *facts, const rssm_problem *problem);

// NULL-terminated lists of every name above; device names carry their "dev.".
const char *const *rssm_problem_fact_names(void);
const char *const *rssm_device_fact_names(rssm_backend backend);

#endif
