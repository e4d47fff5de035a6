// The traffic model against the table of SEMANTICS section 10: MiB per token and layer, L = 16, 16-bit activations.
#include <criterion/criterion.h>
#include <math.h>

#include "base/problem.h"

typedef struct model_row {
    const char *name;
    uint32_t    recurrence, H, P, N, G;
    double      eager_f32, replay_f32, eager_16, replay_16, shared_fp8, separate_fp8, separate_nvfp4; // 0: not given
} model_row;

static const model_row rows[] = {
    {"Nano-4B", RSSM_MAMBA2, 96, 80, 128, 8, 7.533, 4.161, 3.783, 2.169, 1.204, 1.378, .938},
    {"Super TP1", RSSM_MAMBA2, 128, 64, 128, 8, 8.035, 4.438, 4.035, 2.313, 1.284, 1.469, 1.000},
    {"Super TP4", RSSM_MAMBA2, 32, 64, 128, 2, 2.009, 1.109, 1.009, .578, .321, .367, .250},
    {"Super TP8", RSSM_MAMBA2, 16, 64, 128, 1, 1.004, .555, .504, .289, .160, .184, .125},
    {"Ultra TP8", RSSM_MAMBA2, 32, 64, 128, 1, 2.008, 1.107, 1.008, .576, .318, .365, .248},
    {"Nano-30B", RSSM_MAMBA2, 64, 64, 128, 8, 4.020, 2.229, 2.020, 1.167, .652, .745, .510},
    {"Falcon-H1-7B", RSSM_MAMBA2, 24, 128, 256, 1, 6.013, 3.255, 3.013, 1.661, .876, 1.016, .676},
    {"Falcon-H1-34B", RSSM_MAMBA2, 32, 128, 256, 2, 8.018, 4.343, 4.018, 2.218, 1.172, 1.358, .905},
    {"Granite-H-tiny", RSSM_MAMBA2, 48, 64, 128, 1, 3.012, 1.659, 1.512, .862, .476, .546, .370},
    {"Zamba2-7B", RSSM_MAMBA2, 112, 64, 64, 2, 3.528, 2.008, 1.778, 1.079, .643, .723, .505},
    {"Qwen3.5-4B", RSSM_GDN, 32, 128, 128, 16, 4.024, 2.248, 2.024, 1.186, 0, 0, 0},
    {"Qwen3.5-122B", RSSM_GDN, 64, 128, 128, 16, 8.039, 4.456, 4.039, 2.331, 0, 0, 0},
    {"Kimi-Linear", RSSM_KDA, 32, 128, 128, 32, 4.039, 2.428, 2.039, 1.365, 0, 0, 0},
};

static rssm_problem problem_of(const model_row *row)
{
    rssm_problem p = RSSM_PROBLEM_INIT;

    p.recurrence = row->recurrence;
    p.n_heads = row->H;
    p.n_groups = row->G;
    p.head_dim = row->P;
    p.state_size = row->N;
    return p;
}

// The table is rounded to three decimals, and leaves out the outer scales of NVFP4.
static void check(const model_row *row, const char *column, double expected_mib, double tolerance, double bytes)
{
    if (expected_mib == 0) return;
    cr_assert_lt(fabs(bytes / (1 << 20) - expected_mib), tolerance, "%s %s: %.5f instead of %.3f MiB", row->name,
                 column, bytes / (1 << 20), expected_mib);
}

static void normalise(rssm_problem *p)
{
    cr_assert_eq(rssm_problem_normalise(p, p, NULL), RSSM_OK);
}

Test(problem_model, the_table_of_models)
{
    const double rounding = 0.00051;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const model_row *row = &rows[i];
        rssm_problem     p = problem_of(row);

        normalise(&p);
        check(row, "eager f32", row->eager_f32, rounding, rssm_problem_eager_bytes(&p));
        check(row, "replay f32", row->replay_f32, rounding, rssm_problem_replay_bytes(&p));
        p.checkpoint_dtype = RSSM_BF16;
        normalise(&p);
        check(row, "eager 16", row->eager_16, rounding, rssm_problem_eager_bytes(&p));
        check(row, "replay 16", row->replay_16, rounding, rssm_problem_replay_bytes(&p));
        p.checkpoint_dtype = RSSM_FP8_E4M3;
        normalise(&p);
        check(row, "shared fp8", row->shared_fp8, rounding, rssm_problem_replay_bytes(&p));
        p.checkpoint_mode = RSSM_CHECKPOINT_SEPARATE;
        p.checkpoint_dtype = RSSM_F16;
        p.read_dtype = RSSM_FP8_E4M3;
        normalise(&p);
        check(row, "separate fp8", row->separate_fp8, rounding, rssm_problem_replay_bytes(&p));
        p.read_dtype = RSSM_NVFP4;
        normalise(&p);
        check(row, "separate nvfp4", row->separate_nvfp4, 0.0025, rssm_problem_replay_bytes(&p));
    }
}

// Every byte of one small problem by hand: H=2 G=1 P=3 N=5 L=4, f32 state, bf16 activations, f32 dt.
Test(problem_model, by_hand)
{
    rssm_problem p = RSSM_PROBLEM_INIT;

    p.n_heads = 2;
    p.head_dim = 3;
    p.state_size = 5;
    p.window = 4;
    p.dt_dtype = RSSM_F32;
    normalise(&p);
    const double state = 2 * 3 * 5 * 4, record = 2 * (3 * 2 + 4) + 5 * 2, token = 2 * 2 * 3 * 2 + 2 * 4 + 2 * 5 * 2;
    cr_assert_float_eq(rssm_problem_eager_bytes(&p), 2 * state + token, 1e-9);
    // Four steps: records 0 + 1 + 2 + 3 read, 3 appended, the state read 4 times and written once.
    cr_assert_float_eq(rssm_problem_replay_bytes(&p), (5 * state + 9 * record + 4 * token) / 4, 1e-9);
}

Test(problem_model, a_window_of_one_is_the_conventional_step)
{
    rssm_problem p = problem_of(&rows[0]);

    p.window = 1;
    normalise(&p);
    cr_assert_float_eq(rssm_problem_replay_bytes(&p), rssm_problem_eager_bytes(&p), 1e-6);
}
