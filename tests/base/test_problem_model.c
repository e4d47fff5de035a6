// The traffic model against the table of SEMANTICS section 10: MiB per token and layer, L = 16, 16-bit activations.
#include <criterion/criterion.h>
#include <math.h>

#include "base/problem.h"
#include "templates/abi/cursor.h"

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

// Steps of T tokens on a real cursor, counted by the formulas of the model by hand.
typedef struct counted {
    double fold_share, records, bytes;
} counted;

// The first `n_steps` from an empty ring, behind `n_before` that are not counted. `accepted` 0: 1 .. T at random.
static counted count_steps(const rssm_problem *p, int accepted, int n_before, int n_steps)
{
    const rssm_window w = {(int)p->window, (int)p->ring_length, (int)p->max_tokens, 0};
    const double H = p->n_heads, G = p->n_groups, P = p->head_dim, N = p->state_size, T = p->max_tokens, act = 2;
    const double state = 4 * H * P * N, record = H * (P * act + 4) + G * N * act;
    const double token = 2 * H * P * act + H * act + 2 * G * N * act;
    rssm_cursor     c = {0};
    rssm_descriptor d;
    counted         sum = {0};
    uint64_t        random = 5;

    for (int step = 0; step < n_before + n_steps; step++) {
        cr_assert_eq(rssm_cursor_open(&c, &w, 0, 0, w.T, 0, 0, &d), 0u);
        const bool folds = d.mode == RSSM_MODE_FOLD_HISTORY || d.mode == RSSM_MODE_FOLD_ALL;
        if (step >= n_before) {
            sum.fold_share += folds;
            sum.records += d.h;
            sum.bytes += state * (folds ? 2 : 1) + record * (d.h + T) + token * T;
        }
        random = random * 6364136223846793005u + 1442695040888963407u;
        cr_assert_eq(rssm_cursor_commit(&c, &w, accepted ? accepted : 1 + (int)((random >> 33) % p->max_tokens)), 0u);
    }
    return (counted){sum.fold_share / n_steps, sum.records / n_steps, sum.bytes / n_steps};
}

static rssm_problem super(uint32_t window, uint32_t max_tokens)
{
    rssm_problem p = problem_of(&rows[1]);

    p.window = window;
    p.max_tokens = max_tokens;
    normalise(&p);
    return p;
}

typedef struct spec_row {
    uint32_t T, accepted;
    double   per_token, per_step, fold_share, native; // MiB, MiB, share, MiB per token
    int      share_digits, native_digits;             // as printed
} spec_row;

static const spec_row spec_rows[] = {
    {1, 1, 4.456, 4.456, .0625, 8.035, 4, 3}, {2, 1, 4.517, 4.517, .067, 12.07, 3, 2},
    {2, 2, 2.384, 4.768, .125, 6.04, 3, 2},   {4, 1, 4.647, 4.647, .077, 20.1, 3, 1},
    {4, 2, 2.465, 4.929, .143, 10.1, 3, 1},   {4, 4, 1.348, 5.393, .25, 5.04, 2, 2},
    {6, 3, 1.818, 5.455, .25, 9.4, 2, 1},     {6, 6, 1.080, 6.482, .5, 4.7, 1, 1},
    {8, 1, 4.962, 4.962, .111, 36.3, 3, 1},   {8, 4, 1.476, 5.905, .333, 9.07, 3, 2},
    {8, 8, .830, 6.643, .5, 4.54, 1, 2},
};

static void check_digits(const spec_row *row, const char *column, double expected, double value, int digits)
{
    cr_assert_lt(fabs(value - expected), 0.5001 * pow(10, -digits), "T = %u, %u accepted, %s: %.6f instead of %.*f",
                 row->T, row->accepted, column, value, digits, expected);
}

// The table was simulated: 4000 steps from an empty ring give its digits. So the first fold is late once, and the long
// run, which the model computes, lies a little above.
Test(problem_model, the_table_of_speculative_steps)
{
    enum { TABLE_STEPS = 4000, WHOLE_CYCLES = 8 * 9 * 5 * 7 * 13 }; // a multiple of every row's cycle
    const double MiB = 1 << 20;

    for (size_t i = 0; i < sizeof spec_rows / sizeof spec_rows[0]; i++) {
        const spec_row         *row = &spec_rows[i];
        const rssm_problem      p = super(16, row->T);
        const rssm_spec_traffic t = rssm_problem_spec_traffic(&p, row->accepted);
        // At T = 1 a real cursor folds the current token too: the row is about folds of history only.
        if (row->T > 1) {
            const counted table = count_steps(&p, (int)row->accepted, 0, TABLE_STEPS);
            const counted run = count_steps(&p, (int)row->accepted, 100, WHOLE_CYCLES);
            check_digits(row, "per token", row->per_token, table.bytes / MiB / row->accepted, 3);
            check_digits(row, "per step", row->per_step, table.bytes / MiB, 3);
            cr_assert_float_eq(t.bytes, run.bytes, 1e-3, "%.4f and %.4f", t.bytes, run.bytes);
            cr_assert_float_eq(t.fold_share, run.fold_share, 1e-12);
            cr_assert_float_eq(t.records, run.records, 1e-9);
        }
        cr_assert(t.bytes / MiB > row->per_step - 0.0005 && t.bytes / MiB < row->per_step + 0.0017,
                  "%.5f MiB instead of %.3f", t.bytes / MiB, row->per_step);
        check_digits(row, "folds", row->fold_share, t.fold_share, row->share_digits);
        check_digits(row, "native", row->native, rssm_problem_snapshot_bytes(&p) / MiB / row->accepted,
                     row->native_digits);
        cr_assert_float_eq(t.committed, row->accepted, 0);
    }
}

Test(problem_model, uniform_acceptance)
{
    static const struct {
        uint32_t window, T;
    } windows[] = {{16, 4}, {16, 8}, {16, 2}, {16, 16}, {7, 3}, {64, 5}, {4, 4}, {32, 12}};

    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        const rssm_problem      p = super(windows[i].window, windows[i].T);
        const rssm_spec_traffic t = rssm_problem_spec_traffic(&p, 0);
        const counted           run = count_steps(&p, 0, 1000, 400000);
        cr_expect_float_eq(t.fold_share, run.fold_share, 0.003, "L %u T %u: %.4f and %.4f", p.window, p.max_tokens,
                           t.fold_share, run.fold_share);
        cr_expect_float_eq(t.records, run.records, 0.02 + 0.002 * p.window, "L %u T %u: %.3f and %.3f", p.window,
                           p.max_tokens, t.records, run.records);
        cr_expect_float_eq(t.bytes / run.bytes, 1, 0.003);
        cr_expect_float_eq(t.committed, (1 + p.max_tokens) / 2.0, 0);
        cr_expect_float_eq(rssm_problem_replay_bytes(&p), t.bytes, 0);
    }
    const rssm_problem four = super(16, 4), eight = super(16, 8);
    cr_expect_float_eq(rssm_problem_spec_traffic(&four, 0).fold_share, 0.17854, 0.00001);
    cr_expect_float_eq(rssm_problem_spec_traffic(&eight, 0).fold_share, 0.38974, 0.00001);
}

Test(problem_model, phases_sum_to_one)
{
    double             shares[64 + 1];
    const rssm_problem p = super(64, 9);

    for (uint32_t accepted = 0; accepted <= 9; accepted++) {
        double sum = 0;
        rssm_problem_spec_phases(&p, accepted, shares);
        for (uint32_t h = 0; h <= p.window; h++)
            sum += shares[h];
        cr_expect_float_eq(sum, 1, 1e-12);
        cr_expect_float_eq(shares[0], 0, 0);
    }
}

// Separate copies: a step that folds moves the recurrence copy twice beside the read copy.
Test(problem_model, speculative_steps_on_separate_copies)
{
    rssm_problem p = problem_of(&rows[1]);

    p.max_tokens = 4;
    p.checkpoint_mode = RSSM_CHECKPOINT_SEPARATE;
    p.checkpoint_dtype = RSSM_F16;
    p.read_dtype = RSSM_FP8_E4M3;
    normalise(&p);
    const rssm_spec_traffic t = rssm_problem_spec_traffic(&p, 2);
    const double            E = 128 * 64 * 128, state = E * (1 + 4.0 / 128) + 2 * 2 * E / 7;
    cr_expect_float_eq(t.bytes, state + 12 * 18944 + 4 * 37120, 1e-3, "%.3f", t.bytes);
}
