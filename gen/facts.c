// See facts.h.
#include "gen/facts.h"

#include <assert.h>
#include <string.h>

#include "base/dtype.h"

#define FACT_NAME(name) #name,
static const char *const problem_names[] = {RSSM_PROBLEM_FACT_LIST(FACT_NAME) NULL};

// One list per backend: the X-macro holds both, and a name of the other backend becomes nothing.
#define DEVICE_NAME_RSSM_CPU(name, backend) CPU_##backend(name)
#define CPU_RSSM_CPU(name) "dev." #name,
#define CPU_RSSM_CUDA(name)
static const char *const cpu_names[] = {RSSM_DEVICE_FACT_LIST(DEVICE_NAME_RSSM_CPU) NULL};

#define DEVICE_NAME_RSSM_CUDA(name, backend) CUDA_##backend(name)
#define CUDA_RSSM_CPU(name)
#define CUDA_RSSM_CUDA(name) "dev." #name,
static const char *const cuda_names[] = {RSSM_DEVICE_FACT_LIST(DEVICE_NAME_RSSM_CUDA) NULL};

static rssm_fact *find_fact(const rssm_facts *facts, const char *name)
{
    for (size_t i = 0; i < facts->n; ++i) {
        if (strcmp(facts->items[i].name, name) == 0) return (rssm_fact *)&facts->items[i];
    }
    return NULL;
}

void rssm_facts_set(rssm_facts *facts, const char *name, int64_t value)
{
    rssm_fact *fact = find_fact(facts, name);

    if (fact) {
        fact->value = value;
        return;
    }
    assert(facts->n < RSSM_FACTS_MAX);
    if (facts->n < RSSM_FACTS_MAX) facts->items[facts->n++] = (rssm_fact){name, value};
}

bool rssm_facts_get(const rssm_facts *facts, const char *name, int64_t *out_value)
{
    const rssm_fact *fact = find_fact(facts, name);

    if (!fact) return false;
    *out_value = fact->value;
    return true;
}

void rssm_facts_add_problem(rssm_facts *facts, const rssm_problem *p)
{
    rssm_facts_set(facts, "head_dim", p->head_dim);
    rssm_facts_set(facts, "state_size", p->state_size);
    rssm_facts_set(facts, "group_size", p->n_groups ? p->n_heads / p->n_groups : 0);
    rssm_facts_set(facts, "heads", p->n_heads);
    rssm_facts_set(facts, "groups", p->n_groups);
    rssm_facts_set(facts, "window", p->window);
    rssm_facts_set(facts, "ring_length", p->ring_length);
    rssm_facts_set(facts, "max_tokens", p->max_tokens);
    rssm_facts_set(facts, "activation_bytes", rssm_dtype_bytes(p->activation_dtype));
    rssm_facts_set(facts, "state_bytes", rssm_dtype_bytes(p->checkpoint_dtype));
}

const char *const *rssm_problem_fact_names(void)
{
    return problem_names;
}

const char *const *rssm_device_fact_names(rssm_backend backend)
{
    return backend == RSSM_CUDA ? cuda_names : cpu_names;
}
