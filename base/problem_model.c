// The traffic model of SEMANTICS section 10: bytes that one decode step of one sequence and layer must move.
//
// A floor, not a prediction: no cache, no padding, no descriptors, every ring record read once. Windows of L steps at
// T = 1, of which one folds; at T > 1 windows as long as acceptance makes them. Threads: thread-safe.
#include "base/dtype.h"
#include "base/problem.h"

enum { SCALE_BYTES = 4, NVFP4_BLOCK = 16 }; // one fp32 scale per state row; NVFP4 scales cover 16 columns or rows

static double element_bytes(const rssm_problem *p, uint32_t dtype)
{
    const double N = p->state_size;

    switch (dtype) {
    case RSSM_FP8_E4M3:
    case RSSM_INT8:
        return 1.0 + SCALE_BYTES / N;
    case RSSM_NVFP4: { // E2M1 codes, an E4M3 scale per 16 columns, an fp32 one per 16 rows
        const uint32_t row_blocks = (p->head_dim + NVFP4_BLOCK - 1) / NVFP4_BLOCK;
        return 0.5 + 1.0 / NVFP4_BLOCK + SCALE_BYTES * (double)row_blocks / (p->head_dim * N);
    }
    default:
        return rssm_dtype_bytes(dtype);
    }
}

static double state_elements(const rssm_problem *p)
{
    return (double)p->n_heads * p->head_dim * p->state_size;
}

// One ring record of all heads.
static double record_bytes(const rssm_problem *p)
{
    const double H = p->n_heads, G = p->n_groups, P = p->head_dim, N = p->state_size;
    const double a = rssm_dtype_bytes(p->activation_dtype), gate = p->recurrence == RSSM_KDA ? 4 * N : 4;

    return H * (P * a + gate) + G * N * a;
}

// Inputs and outputs of one token, without a z gate.
static double token_bytes(const rssm_problem *p)
{
    const double H = p->n_heads, G = p->n_groups, P = p->head_dim, N = p->state_size;
    const double a = rssm_dtype_bytes(p->activation_dtype), dt = rssm_dtype_bytes(p->dt_dtype);
    const double common = 2 * H * P * a + 2 * G * N * a; // x, out, B, C; or v, out, k, q

    switch (p->recurrence) {
    case RSSM_GDN:
        return common + 2 * H * dt; // gate and beta
    case RSSM_KDA:
        return common + H * (N + 1) * dt; // a gate per column, and beta
    default:
        return common + H * dt;
    }
}

double rssm_problem_eager_bytes(const rssm_problem *p)
{
    return 2 * element_bytes(p, p->checkpoint_dtype) * state_elements(p) + token_bytes(p);
}

// The state's bytes per step where `fold_share` of the steps fold.
static double state_bytes(const rssm_problem *p, double fold_share)
{
    const double E = state_elements(p), fold = element_bytes(p, p->checkpoint_dtype);

    // A step that does not fold reads the read copy; one that folds reads and writes the recurrence copy and writes the
    // read copy.
    if (p->checkpoint_mode == RSSM_CHECKPOINT_SEPARATE)
        return element_bytes(p, p->read_dtype) * E + 2 * fold * E * fold_share;
    return fold * E * (1 + fold_share);
}

double rssm_problem_replay_bytes(const rssm_problem *p)
{
    const double L = p->window;

    if (p->max_tokens > 1) return rssm_problem_spec_traffic(p, 0).bytes;
    return state_bytes(p, 1 / L) + record_bytes(p) * ((L - 1) / 2 + (L - 1) / L) + token_bytes(p); // read, and appended
}

// After a fold h is what that step kept, whatever was before: a cycle from fold to fold begins anew each time. So the
// share of h is the expected number of its visits in a cycle, over the expected length of the cycle.
void rssm_problem_spec_phases(const rssm_problem *p, uint32_t accepted, double *out_shares)
{
    const uint32_t L = p->window, T = p->max_tokens, least = accepted ? accepted : 1, most = accepted ? accepted : T;
    const double   chance = 1.0 / (most - least + 1);
    double         length = 0;

    out_shares[0] = 0;
    for (uint32_t h = 1; h <= L; h++) {
        double visits = h >= least && h <= most ? chance : 0; // right after a fold
        for (uint32_t a = least; a <= most && a < h; a++)
            if (h - a + T <= L) visits += chance * out_shares[h - a];
        out_shares[h] = visits;
        length += visits;
    }
    for (uint32_t h = 1; h <= L; h++)
        out_shares[h] /= length;
}

rssm_spec_traffic rssm_problem_spec_traffic(const rssm_problem *p, uint32_t accepted)
{
    const uint32_t    L = p->window, T = p->max_tokens;
    rssm_spec_traffic t = {.committed = accepted ? accepted : rssm_problem_committed_tokens(p)};
    double            shares[RSSM_PROBLEM_MAX_WINDOW + 1];

    rssm_problem_spec_phases(p, accepted, shares);
    for (uint32_t h = 0; h <= L; h++) {
        t.records += h * shares[h];
        if (h + T > L) t.fold_share += shares[h];
    }
    t.bytes = state_bytes(p, t.fold_share) + record_bytes(p) * (t.records + T) + token_bytes(p) * T;
    return t;
}

double rssm_problem_snapshot_bytes(const rssm_problem *p)
{
    const double T = p->max_tokens;

    return (1 + T) * element_bytes(p, p->checkpoint_dtype) * state_elements(p) + token_bytes(p) * T;
}

double rssm_problem_committed_tokens(const rssm_problem *p)
{
    return (1.0 + p->max_tokens) / 2;
}
