// Tests of tuner/oracle/mamba2_reference.c: cases worked by hand, algebraic properties, and what the bounds let pass.
#include "tuner/oracle/mamba2_reference.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { P = 5, N = 7, MAX_ITEMS = 64 };

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static int below(uint64_t *state, int n)
{
    return (int)(next_random(state) % (uint64_t)n);
}

// In (-1, 1), exact in fp32.
static double uniform(uint64_t *state)
{
    return ((double)(next_random(state) % 0xffffff) - 0x7fffff) / 0x800000;
}

static void fill(uint64_t *state, double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = uniform(state);
}

static void expect_near(double got, double want, double tolerance, const char *what, int index)
{
    cr_assert(fabs(got - want) <= tolerance * (1 + fabs(want)), "%s %d: %.17g, want %.17g", what, index, got, want);
}

// P = N = 1, L = 2, A = -ln 2, so a dt of 1 halves the state.
//   checkpoint 8; record d=1 x=3 B=2:  8/2 + 1*3*2 = 10;  token d=1 x=7 B=1:  10/2 + 7 = 12
//   C = 2, D = 1/2:  y = 12*2 + 7/2 = 27.5
Test(mamba2_reference, one_by_one_case_worked_by_hand)
{
    const rssm_oracle_head   head = {1, 1, false, false, -0.69314718055994531, 0.5, 0};
    const double             ring_x[2] = {3, NAN}, ring_B[2] = {2, NAN}, ring_dt[2] = {1, NAN};
    const rssm_oracle_ring   ring = {2, 0, 1, ring_x, ring_B, ring_dt};
    const double             x = 7, B = 1, C = 2, dt = 1, checkpoint = 8;
    const rssm_oracle_tokens tokens = {1, &x, NULL, &B, &C, &dt};
    double                   d, d_bound, y, y_bound, state = -1, state_bound = -1;
    rssm_oracle_answer       answer = {&d, &d_bound, &y, &y_bound, &state, &state_bound};

    cr_assert_eq(rssm_oracle_step(&head, &checkpoint, &ring, &tokens, RSSM_ORACLE_FOLD_NOTHING, &answer, NULL),
                 RSSM_OK);
    expect_near(y, 27.5, 1e-15, "y", 0);
    cr_assert_eq(d, 1);
    cr_assert_eq(state, -1, "nothing is folded");
    cr_assert_eq(rssm_oracle_step(&head, &checkpoint, &ring, &tokens, RSSM_ORACLE_FOLD_RECORDS, &answer, NULL),
                 RSSM_OK);
    expect_near(y, 27.5, 1e-15, "y", 0);
    expect_near(state, 10, 1e-15, "folded history", 0);
    cr_assert_eq(rssm_oracle_step(&head, &checkpoint, &ring, &tokens, RSSM_ORACLE_FOLD_ALL, &answer, NULL), RSSM_OK);
    expect_near(state, 12, 1e-15, "folded history and token", 0);
    cr_assert(y_bound > 0 && y_bound < 1e-4 && state_bound > 0 && state_bound < 1e-4);
}

// P = N = 2, ring of 2 records that wraps (row 1 is the older), A = -ln 2, no softplus.
//   S0 = [1 2; 3 4]
//   record d=1 x=(1,2)  B=(1,0):  S0/2 + [1 0; 2 0]              = [1.5 1; 3.5 2]
//   record d=2 x=(1,-1) B=(2,4):  S/4 + 2 [2 4; -2 -4]           = [4.375 8.25; -3.125 -7.5]
//   token  d=1 x=(2,0)  B=(1,1):  S/2 + [2 2; 0 0]               = [4.1875 6.125; -1.5625 -3.75]
//   C=(2,-1): S C = (2.25, 0.625);  D = 1/4: y = (2.75, 0.625);  gate z = (ln 3, 0): z sigmoid(z) = (3/4 ln 3, 0)
Test(mamba2_reference, two_by_two_case_worked_by_hand)
{
    const rssm_oracle_head head = {2, 2, false, false, -0.69314718055994531, 0.25, 0};
    const double           ring_x[4] = {1, -1, 1, 2}, ring_B[4] = {2, 4, 1, 0}, ring_dt[2] = {2, 1};
    const rssm_oracle_ring ring = {2, 1, 2, ring_x, ring_B, ring_dt};
    const double           x[2] = {2, 0}, z[2] = {1.0986122886681098, 0}, B[2] = {1, 1}, C[2] = {2, -1}, dt = 1;
    const double           checkpoint[4] = {1, 2, 3, 4}, folded[4] = {4.375, 8.25, -3.125, -7.5};
    const double           all[4] = {4.1875, 6.125, -1.5625, -3.75};
    rssm_oracle_tokens     tokens = {1, x, NULL, B, C, &dt};
    double                 d, d_bound, y[2], y_bound[2], state[4], state_bound[4];
    rssm_oracle_answer     answer = {&d, &d_bound, y, y_bound, state, state_bound};

    cr_assert_eq(rssm_oracle_step(&head, checkpoint, &ring, &tokens, RSSM_ORACLE_FOLD_RECORDS, &answer, NULL), RSSM_OK);
    expect_near(y[0], 2.75, 1e-15, "y", 0);
    expect_near(y[1], 0.625, 1e-15, "y", 1);
    for (int i = 0; i < 4; i++)
        expect_near(state[i], folded[i], 1e-15, "folded history", i);

    tokens.z = z;
    cr_assert_eq(rssm_oracle_step(&head, checkpoint, &ring, &tokens, RSSM_ORACLE_FOLD_ALL, &answer, NULL), RSSM_OK);
    expect_near(y[0], 2.2658878453779765, 1e-15, "gated y", 0);
    cr_assert_eq(y[1], 0);
    for (int i = 0; i < 4; i++)
        expect_near(state[i], all[i], 1e-15, "folded history and token", i);

    double                   recurrent[4], y_stream[6];
    const double             xs[6] = {1, 2, 1, -1, 2, 0}, Bs[6] = {1, 0, 2, 4, 1, 1}, Cs[6] = {0, 0, 0, 0, 2, -1};
    const double             dts[3] = {1, 2, 1};
    const rssm_oracle_tokens stream = {3, xs, NULL, Bs, Cs, dts};
    memcpy(recurrent, checkpoint, sizeof recurrent);
    rssm_oracle_sequence(&head, &stream, recurrent, y_stream);
    expect_near(y_stream[4], 2.75, 1e-15, "y of the stream", 4);
    for (int i = 0; i < 4; i++)
        expect_near(recurrent[i], all[i], 1e-15, "state of the stream", i);
}

// Literal values from 40-digit decimal arithmetic. An unthresholded exp(v) overflows at the last two.
Test(mamba2_reference, softplus_at_the_extremes)
{
    static const double cases[][2] = {
        {0.0, 0.6931471805599453},
        {-0.0, 0.6931471805599453},
        {1, 1.3132616875182228},
        {-1, 0.3132616875182228},
        {-8, 0.00033540637289576885},
        {-20, 2.061153620314381e-09},
        {19.9, 19.900000002277924},
        {20, 20.000000002061153},
        {20.1, 20.10000000186501},
        {88, 88},
        {1e4, 1e4},
        {-1e4, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const double got = rssm_oracle_softplus(cases[i][0]);
        cr_assert(fabs(got - cases[i][1]) <= 1e-15 * cases[i][1], "softplus(%g) = %.17g", cases[i][0], got);
    }
}

// One head's stream of random tokens, and what the recurrence makes of it.
typedef struct stream {
    rssm_oracle_head   head;
    rssm_oracle_tokens tokens;
    double             x[MAX_ITEMS * P], z[MAX_ITEMS * P], B[MAX_ITEMS * N], C[MAX_ITEMS * N], dt[MAX_ITEMS];
    double             initial[P * N], state[P * N], y[MAX_ITEMS * P];
} stream;

static void make_stream(stream *s, uint64_t *random)
{
    s->head = (rssm_oracle_head){P, N, true, false, -(1 + below(random, 63)) / 64.0, uniform(random), uniform(random)};
    s->tokens = (rssm_oracle_tokens){MAX_ITEMS, s->x, s->z, s->B, s->C, s->dt};
    fill(random, s->x, MAX_ITEMS * P);
    fill(random, s->z, MAX_ITEMS * P);
    fill(random, s->B, MAX_ITEMS * N);
    fill(random, s->C, MAX_ITEMS * N);
    fill(random, s->dt, MAX_ITEMS);
    fill(random, s->initial, P * N);
    memcpy(s->state, s->initial, sizeof s->state);
    rssm_oracle_sequence(&s->head, &s->tokens, s->state, s->y);
}

// What a slot holds between steps. Dead ring rows are NaN.
typedef struct slot {
    int    R, start, h;
    double x[32 * P], B[32 * N], dt[32], checkpoint[P * N];
} slot;

static void retire(slot *c)
{
    for (int i = 0; i < c->h; i++)
        c->dt[(c->start + i) % c->R] = c->x[(c->start + i) % c->R * P] = NAN;
    c->start = (c->start + c->h) % c->R;
    c->h = 0;
}

static void append(slot *c, const double *x, const double *B, double dt)
{
    const int row = (c->start + c->h++) % c->R;
    memcpy(c->x + row * P, x, sizeof(double) * P);
    memcpy(c->B + row * N, B, sizeof(double) * N);
    c->dt[row] = dt;
}

// One step of t tokens proposed from `position` on, all but the first `accepted` of them garbage.
static void check_step(const stream *s, slot *c, int position, int t, int accepted, rssm_oracle_fold fold,
                       uint64_t *random)
{
    double x[8 * P], B[8 * N], dt[8], d[8], d_bound[8], y[8 * P], y_bound[8 * P], before[P * N], bound[P * N];

    memcpy(x, s->x + position * P, sizeof(double) * (size_t)(t * P));
    memcpy(B, s->B + position * N, sizeof(double) * (size_t)(t * N));
    memcpy(dt, s->dt + position, sizeof(double) * (size_t)t);
    for (int k = accepted; k < t; k++)
        x[k * P] = B[k * N] = dt[k] = 1e3 * uniform(random);
    memcpy(before, c->checkpoint, sizeof before);
    const rssm_oracle_ring   ring = {c->R, c->start, c->h, c->x, c->B, c->dt};
    const rssm_oracle_tokens tokens = {t, x, s->z + position * P, B, s->C + position * N, dt};
    const rssm_oracle_answer answer = {d, d_bound, y, y_bound, c->checkpoint, bound};
    cr_assert_eq(rssm_oracle_step(&s->head, before, &ring, &tokens, fold, &answer, NULL), RSSM_OK);
    for (int i = 0; i < accepted * P; i++)
        expect_near(y[i], s->y[position * P + i], 1e-12, "y", position * P + i);
    if (fold != RSSM_ORACLE_FOLD_NOTHING) retire(c);
    for (int k = 0; k < accepted && fold != RSSM_ORACLE_FOLD_ALL; k++)
        append(c, x + k * P, B + k * N, d[k]);
}

// Cuts the stream into steps of up to T proposed tokens, with acceptance and folds at random, over a ring that wraps.
static void check_split(const stream *s, int T, int R, uint64_t *random)
{
    slot c = {.R = R, .start = below(random, R)};

    memcpy(c.checkpoint, s->initial, sizeof c.checkpoint);
    for (int i = 0; i < R; i++)
        c.dt[i] = c.x[i * P] = c.B[i * N] = NAN;
    for (int position = 0, accepted; position < MAX_ITEMS; position += accepted) {
        const int  left = MAX_ITEMS - position, t = 1 + below(random, T < left ? T : left);
        const bool folds = c.h + t > R || below(random, 5) == 0;
        accepted = 1 + below(random, t);
        check_step(s, &c, position, t, accepted,
                   !folds   ? RSSM_ORACLE_FOLD_NOTHING
                   : T == 1 ? RSSM_ORACLE_FOLD_ALL
                            : RSSM_ORACLE_FOLD_RECORDS,
                   random);
    }
    double                   y, last[P * N], bound[P * N];
    const rssm_oracle_ring   ring = {R, c.start, c.h, c.x, c.B, c.dt};
    const rssm_oracle_tokens none = {0, NULL, NULL, NULL, NULL, NULL};
    const rssm_oracle_answer answer = {&y, &y, &y, &y, last, bound};
    memcpy(last, c.checkpoint, sizeof last);
    cr_assert_eq(rssm_oracle_step(&s->head, c.checkpoint, &ring, &none, RSSM_ORACLE_FOLD_RECORDS, &answer, NULL),
                 RSSM_OK);
    for (int i = 0; i < P * N; i++)
        expect_near(last[i], s->state[i], 1e-12, "state", i);
}

Test(mamba2_reference, any_split_into_windows_agrees_with_the_recurrence)
{
    uint64_t      random = 20;
    static stream s;
    for (int i = 0; i < 100; i++) {
        make_stream(&s, &random);
        const int T = 1 + below(&random, 8);
        check_split(&s, T, T + below(&random, 24), &random);
    }
}

// dt as a ring holds it: processed, in fp32.
static float ring_dt_of(const stream *s, int j)
{
    return (float)rssm_oracle_softplus(s->dt[j] + s->head.dt_bias);
}

// The last token of a stream, with all before it from `first_record` on in the ring.
static void step_of_stream(const stream *s, int first_record, rssm_oracle_fold fold, double *y, double *y_bound,
                           double *state, double *state_bound)
{
    const int h = MAX_ITEMS - 1;
    double    d[MAX_ITEMS], token_d, token_d_bound;
    for (int j = 0; j < h; j++)
        d[j] = ring_dt_of(s, j);
    const rssm_oracle_ring ring = {
        h - first_record, 0, h - first_record, s->x + first_record * P, s->B + first_record * N, d + first_record};
    const rssm_oracle_tokens token = {1, s->x + h * P, NULL, s->B + h * N, s->C + h * N, s->dt + h};
    const rssm_oracle_answer answer = {&token_d, &token_d_bound, y, y_bound, state, state_bound};
    cr_assert_eq(rssm_oracle_step(&s->head, s->initial, &ring, &token, fold, &answer, NULL), RSSM_OK);
}

Test(mamba2_reference, zero_input_gives_zero_output_and_only_decays)
{
    uint64_t      random = 3;
    static stream s;
    double        y[P], y_bound[P], state[P * N], state_bound[P * N];
    make_stream(&s, &random);
    memset(s.x, 0, sizeof s.x), memset(s.initial, 0, sizeof s.initial);
    step_of_stream(&s, 0, RSSM_ORACLE_FOLD_ALL, y, y_bound, state, state_bound);
    for (int p = 0; p < P; p++)
        cr_assert(y[p] == 0 && y_bound[p] < 1e-30);
    for (int i = 0; i < P * N; i++)
        cr_assert(state[i] == 0 && state_bound[i] < 1e-30);
}

Test(mamba2_reference, without_decay_the_state_is_a_plain_sum)
{
    uint64_t      random = 4;
    static stream s;
    double        y[P], y_bound[P], state[P * N], state_bound[P * N];
    make_stream(&s, &random);
    s.head.A = 0;
    step_of_stream(&s, 0, RSSM_ORACLE_FOLD_ALL, y, y_bound, state, state_bound);
    for (int p = 0; p < P; p++) {
        double want_y = s.head.D * s.x[(MAX_ITEMS - 1) * P + p];
        for (int n = 0; n < N; n++) {
            double want = s.initial[p * N + n];
            for (int j = 0; j < MAX_ITEMS; j++) {
                const double d = j < MAX_ITEMS - 1 ? ring_dt_of(&s, j) : log1p(exp(s.dt[j] + s.head.dt_bias));
                want += d * s.x[j * P + p] * s.B[j * N + n];
            }
            expect_near(state[p * N + n], want, 1e-13, "state", p * N + n);
            want_y += want * s.C[(MAX_ITEMS - 1) * N + n];
        }
        expect_near(y[p], want_y, 1e-12, "y", p);
    }
}

Test(mamba2_reference, is_linear_in_x_and_the_checkpoint)
{
    uint64_t      random = 5;
    static stream a, b, sum;
    double        y[3][P], y_bound[P], state[3][P * N], bound[P * N];
    make_stream(&a, &random);
    b = sum = a;
    fill(&random, b.x, MAX_ITEMS * P);
    fill(&random, b.initial, P * N);
    for (int i = 0; i < MAX_ITEMS * P; i++)
        sum.x[i] = 2 * a.x[i] - b.x[i];
    for (int i = 0; i < P * N; i++)
        sum.initial[i] = 2 * a.initial[i] - b.initial[i];
    step_of_stream(&a, 0, RSSM_ORACLE_FOLD_ALL, y[0], y_bound, state[0], bound);
    step_of_stream(&b, 0, RSSM_ORACLE_FOLD_ALL, y[1], y_bound, state[1], bound);
    step_of_stream(&sum, 0, RSSM_ORACLE_FOLD_ALL, y[2], y_bound, state[2], bound);
    for (int p = 0; p < P; p++)
        expect_near(y[2][p], 2 * y[0][p] - y[1][p], 1e-12, "y", p);
    for (int i = 0; i < P * N; i++)
        expect_near(state[2][i], 2 * state[0][i] - state[1][i], 1e-12, "state", i);
}

// A dt of the token that underflows every decay: only the token itself is left, and nothing is NaN.
Test(mamba2_reference, an_underflowing_decay_leaves_the_newest_token_only)
{
    const rssm_oracle_head   head = {1, 2, true, false, -1, 0, 0};
    const double             ring_x[1] = {3}, ring_B[2] = {2, 2}, ring_dt[1] = {1e4}, checkpoint[2] = {8, 9};
    const rssm_oracle_ring   ring = {1, 0, 1, ring_x, ring_B, ring_dt};
    const double             x = 0.5, B[2] = {1, 2}, C[2] = {1, -1}, dt = 1e4;
    const rssm_oracle_tokens tokens = {1, &x, NULL, B, C, &dt};
    double                   d, d_bound, y, y_bound, state[2], bound[2];
    const rssm_oracle_answer answer = {&d, &d_bound, &y, &y_bound, state, bound};
    cr_assert_eq(rssm_oracle_step(&head, checkpoint, &ring, &tokens, RSSM_ORACLE_FOLD_ALL, &answer, NULL), RSSM_OK);
    cr_assert_eq(d, 1e4);
    cr_assert_eq(y, -5000);
    cr_assert(state[0] == 5000 && state[1] == 10000);
    cr_assert(isfinite(y_bound) && isfinite(bound[0]) && y_bound < 500);

    const double             idle_dt = -1e4; // and a token that counts for nothing
    const rssm_oracle_tokens idle = {1, &x, NULL, B, C, &idle_dt};
    const rssm_oracle_ring   empty = {1, 0, 0, NULL, NULL, NULL};
    cr_assert_eq(rssm_oracle_step(&head, checkpoint, &empty, &idle, RSSM_ORACLE_FOLD_ALL, &answer, NULL), RSSM_OK);
    cr_assert(d == 0 && y == -1 && state[0] == 8 && state[1] == 9);
}

// The step in fp32, in the two orders kernels use: weights from prefix sums, or the state updated record by record.
static void step_in_fp32(const stream *s, int first_record, bool prefix, float *y, float *state)
{
    const float A = (float)s->head.A;
    float       d[MAX_ITEMS], c[MAX_ITEMS], sum = 0;

    for (int j = first_record; j < MAX_ITEMS; j++) {
        const float v = (float)s->dt[j] + (float)s->head.dt_bias;
        d[j] = j < MAX_ITEMS - 1 ? ring_dt_of(s, j) : log1pf(expf(v));
        c[j] = sum += A * d[j];
    }
    for (int p = 0; p < P; p++) {
        y[p] = (float)s->head.D * (float)s->x[(MAX_ITEMS - 1) * P + p];
        for (int n = 0; n < N; n++) {
            float v = (float)s->initial[p * N + n] * (prefix ? expf(sum) : 1);
            for (int j = first_record; j < MAX_ITEMS; j++) {
                const float weight = prefix ? d[j] * expf(sum - c[j]) : d[j];
                v = (prefix ? v : v * exp2f(A * d[j] * 1.44269504f)) +
                    weight * (float)s->x[j * P + p] * (float)s->B[j * N + n];
            }
            state[p * N + n] = v;
            y[p] += v * (float)s->C[(MAX_ITEMS - 1) * N + n];
        }
    }
}

static double worst(const float *got, const double *want, const double *bound, int n)
{
    double most = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, fabs(got[i] - want[i]) / bound[i]);
    return most;
}

Test(mamba2_reference, fp32_in_any_order_lies_within_the_bound_and_a_lost_record_does_not)
{
    uint64_t      random = 6;
    static stream s;
    double        y[P], y_bound[P], state[P * N], bound[P * N], largest = 0;
    float         y32[P], state32[P * N];
    int           n_lost = 0, n_seen_in_y = 0;

    for (int i = 0; i < 200; i++) {
        make_stream(&s, &random);
        s.head.A = (float)(-0.01 * exp2(below(&random, 10)));
        step_of_stream(&s, 0, RSSM_ORACLE_FOLD_ALL, y, y_bound, state, bound);
        for (int prefix = 0; prefix < 2; prefix++) {
            step_in_fp32(&s, 0, prefix, y32, state32);
            const double error = fmax(worst(y32, y, y_bound, P), worst(state32, state, bound, P * N));
            cr_assert_lt(error, 1, "fp32 is at %g of the bound", error);
            largest = fmax(largest, error);
        }
        if (s.head.A < -0.05) continue;
        step_in_fp32(&s, 1, true, y32, state32); // loses the oldest record, 63 steps ago
        cr_assert_gt(worst(state32, state, bound, P * N), 1);
        n_lost++;
        n_seen_in_y += worst(y32, y, y_bound, P) > 1; // its B may be nearly orthogonal to C
    }
    cr_assert(n_lost > 20 && n_seen_in_y > n_lost * 9 / 10, "seen in %d of %d outputs", n_seen_in_y, n_lost);
    cr_assert_gt(largest, 0.02, "the bound is needlessly wide: fp32 comes to %g of it", largest);
}
