// The traffic model of SEMANTICS section 10: bytes that one decode step of one sequence and layer must move.
//
// A floor, not a prediction: no cache, no padding, no descriptors, every ring record read once. Windows of L steps at
// T = 1, of which one folds. Threads: thread-safe.
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

double rssm_problem_replay_bytes(const rssm_problem *p)
{
    const double L = p->window, E = state_elements(p), fold = element_bytes(p, p->checkpoint_dtype);
    const double records = record_bytes(p) * ((L - 1) / 2 + (L - 1) / L); // read on average, and appended
    double       state;

    if (p->checkpoint_mode == RSSM_CHECKPOINT_SEPARATE) {
        // L - 1 steps read the read copy; the fold reads and writes the recurrence copy and writes the read copy.
        state = element_bytes(p, p->read_dtype) * E + 2 * fold * E / L;
    } else {
        state = fold * E * (L + 1) / L;
    }
    return state + records + token_bytes(p);
}
