// Usual problems and devices. See check.h.
#include "base/problem.h"
#include "gen/check/parts.h"

// The number nearest to `usual` within a range.
static uint32_t clamp(int64_t usual, rssm_range range)
{
    if (usual < range.low) return (uint32_t)range.low;
    return (uint32_t)(usual > range.high ? range.high : usual);
}

// `usual` if it is in the mask, else the first value that is.
static uint32_t choose(uint32_t usual, uint32_t mask)
{
    return mask & 1u << usual ? usual : (uint32_t)__builtin_ctz(mask);
}

void rssm_check_add_device(rssm_facts *facts, rssm_backend backend)
{
    static const rssm_fact cpu[] = {{"dev.cores", 8}, {"dev.vector_bytes", 32}, {"dev.cache_bytes", 32 << 20}};
    // A GPU of the sm_90 kind.
    static const rssm_fact gpu[] = {{"dev.multiprocessors", 132},
                                    {"dev.shared_optin", 232448},
                                    {"dev.shared_per_multiprocessor", 233472},
                                    {"dev.registers", 65536},
                                    {"dev.arch", 900},
                                    {"dev.l2_bytes", 50 << 20}};

    if (backend == RSSM_CUDA) {
        for (size_t i = 0; i < sizeof gpu / sizeof gpu[0]; ++i)
            rssm_facts_set(facts, gpu[i].name, gpu[i].value);
    } else {
        for (size_t i = 0; i < sizeof cpu / sizeof cpu[0]; ++i)
            rssm_facts_set(facts, cpu[i].name, cpu[i].value);
    }
}

rssm_status rssm_check_sample(const rssm_manifest *manifest, rssm_problem *out_problem, rssm_facts *out_facts,
                              rssm_diag *diag)
{
    const rssm_serves *serves = &manifest->serves;
    rssm_status        st;
    rssm_problem       problem = RSSM_PROBLEM_INIT, normalised;
    rssm_facts         facts = {0};

    problem.recurrence = manifest->recurrence == RSSM_RECURRENCE_ANY ? RSSM_MAMBA2 : manifest->recurrence;
    problem.n_groups = 2;
    problem.n_heads = 2 * clamp(8, serves->group_size);
    problem.head_dim = clamp(64, serves->head_dim);
    problem.state_size = clamp(128, serves->state_size);
    problem.max_tokens = clamp(1, serves->max_tokens);
    problem.window = clamp(16, serves->window);
    problem.activation_dtype = choose(RSSM_BF16, serves->activation_dtypes);
    problem.dt_dtype = RSSM_F32;
    problem.parameter_dtype = RSSM_F32;
    problem.checkpoint_mode = choose(RSSM_CHECKPOINT_SHARED, serves->checkpoint_modes);
    problem.checkpoint_dtype = choose(RSSM_F32, serves->checkpoint_dtypes);
    problem.rounding = choose(RSSM_NEAREST, serves->roundings);
    st = rssm_problem_normalise(&problem, &normalised, diag);
    if (st != RSSM_OK) {
        rssm_diag_prefix(diag, "%s serves nothing that is a problem", manifest->name);
        return RSSM_E_MISMATCH;
    }
    RSSM_TRY(rssm_manifest_serves(manifest, &normalised, diag));
    rssm_facts_add_problem(&facts, &normalised);
    rssm_check_add_device(&facts, manifest->backend);
    *out_problem = normalised;
    *out_facts = facts;
done:
    return st;
}
