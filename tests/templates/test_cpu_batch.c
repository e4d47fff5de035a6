// Batches that no cursor would make but every step must take: any h from 0 to R - t, any start, any mode in any row,
// rows of 0 to T tokens, dense and packed, unused rows among them, tasks in any order. Judged by the float64 oracle;
// whatever is neither an output nor a record nor a folded checkpoint stays as it was, and whatever is not live is NaN.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/problem.h"
#include "tests/templates/cpu_layer.h"
#include "tuner/oracle/mamba2_reference.h"
#include "tuner/oracle/number_format.h"
#include "tuner/verify_random.h"

enum { N_ROWS = 7 };

typedef struct batch {
    cpu_layer          l;
    rssm_descriptor    d[N_ROWS];
    int                n_owned[N_ROWS]; // outputs of each row
    size_t             n_tokens;
    rssm_verify_random random;
} batch;

typedef struct counts {
    int appends, folds, folds_alone, nothing, longest;
} counts;

static rssm_problem problem_of(uint32_t P, uint32_t N, uint32_t H, uint32_t G, uint32_t T, uint32_t R, uint32_t act,
                               uint32_t state)
{
    rssm_problem p = RSSM_PROBLEM_INIT, normal;
    rssm_diag    diag = {0};
    p.head_dim = P;
    p.state_size = N;
    p.n_heads = H;
    p.n_groups = G;
    p.max_tokens = T;
    p.window = T;
    p.ring_length = R;
    p.activation_dtype = act;
    p.dt_dtype = RSSM_F32;
    p.checkpoint_dtype = state;
    cr_assert_eq(rssm_problem_normalise(&p, &normal, &diag), RSSM_OK, "%s", diag.text);
    return normal;
}

static int below(batch *b, int n)
{
    return (int)rssm_verify_below(&b->random, (uint32_t)n);
}

static bool computes(const rssm_descriptor *d, int T)
{
    return d->slot >= 0 && (d->mode == RSSM_MODE_APPEND || d->mode == RSSM_MODE_FOLD_HISTORY ||
                            (d->mode == RSSM_MODE_FOLD_ALL && T == 1));
}

// Descriptors in any order of rows; a row's sequence number is its place in the batch.
static void draw_batch(batch *b, bool packed)
{
    const int T = (int)b->l.p.max_tokens, R = (int)b->l.p.ring_length;
    int       slots[CPU_SLOTS], token = 0;
    for (int i = 0; i < CPU_SLOTS; i++) {
        const int j = below(b, i + 1);
        slots[i] = slots[j];
        slots[j] = i;
    }
    for (int i = 0; i < N_ROWS; i++) {
        rssm_descriptor *d = &b->d[i];
        const int        t = below(b, T + 1);
        rssm_descriptor_null(d, packed && t == 0 ? -1 : token);
        d->mode = (rssm_i16)(below(b, 8) == 0 ? below(b, 4) : 1 + below(b, 2));
        d->slot = i < CPU_SLOTS && below(b, 8) ? slots[i] : -1;
        d->t = (rssm_i16)t;
        if (d->mode == RSSM_MODE_FOLD_ALL && T > 1) d->t = (rssm_i16)(packed ? t : 0);
        if (!packed && !computes(d, T)) d->t = 0; // a dense row that does nothing owns T
        d->h = (rssm_i16)(below(b, 4) == 0 ? R - t : below(b, R - t + 1));
        d->start = (rssm_i16)below(b, R);
        b->n_owned[i] = packed ? t : T;
        token += b->n_owned[i];
    }
    b->n_tokens = (size_t)token;
}

static void put_batch(batch *b)
{
    for (int i = 0; i < N_ROWS; i++) {
        const rssm_descriptor *d = &b->d[i];
        if (!computes(d, (int)b->l.p.max_tokens)) continue;
        cpu_put_sequence(&b->l, (size_t)d->slot, (size_t)d->start, (size_t)d->h);
        for (int k = 0; k < d->t; k++)
            cpu_put_token(&b->l, (size_t)(d->token + k), (uint64_t)(i * 50 + k + 500));
    }
}

// ------------------------------------------------------------------------------------------------------------- oracle

static void load(const cpu_memory *m, size_t at, size_t n, double *values)
{
    rssm_oracle_load(m->dtype, (char *)cpu_payload(m) + at * cpu_element_bytes(m->dtype), n, values);
}

// As `load`, from before the launch.
static void load_before(const cpu_memory *m, size_t at, size_t n, double *values)
{
    cpu_memory then = *m;
    then.all = m->before;
    load(&then, at, n, values);
}

static void compare(cpu_memory *m, size_t at, const double *want, const double *bound, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++) {
        double got;
        load(m, at + i, 1, &got);
        const double error = rssm_oracle_error(m->dtype, want[i], bound[i], got);
        cr_assert(error <= 1, "%s: element %zu is %.9g, want %.9g: %g of the bound", what, i, got, want[i], error);
    }
    cpu_take(m, at, n);
}

static double *doubles(size_t n)
{
    double *v = rssm_calloc(n + 1, sizeof *v);
    cr_assert(v);
    return v;
}

static void check_head(batch *b, int row, size_t head)
{
    cpu_layer             *l = &b->l;
    const rssm_problem    *p = &l->p;
    const rssm_descriptor *d = &b->d[row];
    const size_t P = p->head_dim, N = p->state_size, R = p->ring_length, T = p->max_tokens, n = (size_t)d->t;
    const size_t group = head / (p->n_heads / p->n_groups), slot = (size_t)d->slot;
    const size_t state_at = slot * (size_t)l->view.state.slot_stride + head * P * N;
    double      *all = doubles(3 * P * N + R * (P + N + 1) + T * (4 * P + 2 * N + 3)), *S = all, *S1 = S + P * N;
    double      *S1_bound = S1 + P * N, *ring_x = S1_bound + P * N, *ring_B = ring_x + R * P, *ring_dt = ring_B + R * N;
    double      *x = ring_dt + R, *z = x + T * P, *y = z + T * P, *y_bound = y + T * P, *B = y_bound + T * P;
    double      *C = B + T * N, *dt = C + T * N, *processed = dt + T, *dt_bound = processed + T;
    char         what[128];

    load_before(&l->state, state_at, P * N, S);
    for (int j = 0; j < d->h; j++) {
        const size_t r = (size_t)(d->start + j) % R;
        load_before(&l->x_ring, cpu_ring_at(&l->view.x_ring, slot, head, r), P, ring_x + r * P);
        load_before(&l->B_ring, cpu_ring_at(&l->view.B_ring, slot, group, r), N, ring_B + r * N);
        load_before(&l->dt_ring, cpu_ring_at(&l->view.dt_ring, slot, head, r), 1, ring_dt + r);
    }
    for (size_t k = 0; k < n; k++) {
        const size_t token = (size_t)d->token + k;
        load(&l->x, cpu_token_at(&l->step.x, token, head), P, x + k * P);
        load(&l->z, cpu_token_at(&l->step.z, token, head), P, z + k * P);
        load(&l->B, cpu_token_at(&l->step.B, token, group), N, B + k * N);
        load(&l->C, cpu_token_at(&l->step.C, token, group), N, C + k * N);
        load(&l->dt, cpu_token_at(&l->step.dt, token, head), 1, dt + k);
    }
    const rssm_oracle_head   parameters = {(int)P, (int)N, true, p->checkpoint_dtype != RSSM_F32, l->A[head],
                                           l->D[head], l->dt_bias[head]};
    const rssm_oracle_ring   ring = {(int)R, d->start, d->h, ring_x, ring_B, ring_dt};
    const rssm_oracle_tokens tokens = {d->t, x, z, B, C, dt};
    const rssm_oracle_answer answer = {processed, dt_bound, y, y_bound, S1, S1_bound};
    const rssm_oracle_fold   fold = d->mode == RSSM_MODE_APPEND         ? RSSM_ORACLE_FOLD_NOTHING
                                    : d->mode == RSSM_MODE_FOLD_HISTORY ? RSSM_ORACLE_FOLD_RECORDS
                                                                        : RSSM_ORACLE_FOLD_ALL;
    cr_assert_eq(rssm_oracle_step(&parameters, S, &ring, &tokens, fold, &answer, NULL), RSSM_OK);
    snprintf(what, sizeof what, "row %d (mode %d, start %d, h %d, t %d), head %zu", row, d->mode, d->start, d->h, d->t,
             head);
    for (size_t k = 0; k < n; k++)
        compare(&l->out, cpu_token_at(&l->step.out, (size_t)d->token + k, head), y + k * P, y_bound + k * P, P, what);
    for (size_t k = 0; k < n && fold != RSSM_ORACLE_FOLD_ALL; k++)
        compare(&l->dt_ring, cpu_ring_at(&l->view.dt_ring, slot, head, ((size_t)(d->start + d->h) + k) % R),
                processed + k, dt_bound + k, 1, what);
    if ((fold == RSSM_ORACLE_FOLD_RECORDS && d->h > 0) || (fold == RSSM_ORACLE_FOLD_ALL && d->h + d->t > 0))
        compare(&l->state, state_at, S1, S1_bound, P * N, what);
    rssm_free(all);
}

// ------------------------------------------------------------------------------------------------- exact expectations

static void expect_copy(cpu_memory *to, size_t at, const cpu_memory *from, size_t from_at, size_t n, const char *what)
{
    const size_t e = cpu_element_bytes(to->dtype);
    cr_assert(memcmp((char *)cpu_payload(to) + at * e, (char *)cpu_payload(from) + from_at * e, n * e) == 0,
              "the record of %s is not the token's", what);
    cpu_take(to, at, n);
}

static void check_records(batch *b, int row)
{
    cpu_layer             *l = &b->l;
    const rssm_problem    *p = &l->p;
    const rssm_descriptor *d = &b->d[row];
    for (int k = 0; k < d->t && d->mode != RSSM_MODE_FOLD_ALL; k++) {
        const size_t record = (size_t)(d->start + d->h + k) % p->ring_length, token = (size_t)(d->token + k);
        for (size_t h = 0; h < p->n_heads; h++)
            expect_copy(&l->x_ring, cpu_ring_at(&l->view.x_ring, (size_t)d->slot, h, record), &l->x,
                        cpu_token_at(&l->step.x, token, h), p->head_dim, "x");
        for (size_t g = 0; g < p->n_groups; g++)
            expect_copy(&l->B_ring, cpu_ring_at(&l->view.B_ring, (size_t)d->slot, g, record), &l->B,
                        cpu_token_at(&l->step.B, token, g), p->state_size, "B");
    }
}

static void expect_zeros(batch *b, int row)
{
    cpu_layer *l = &b->l;
    for (int k = 0; k < b->n_owned[row]; k++) {
        for (size_t h = 0; h < l->p.n_heads; h++) {
            const size_t at = cpu_token_at(&l->step.out, (size_t)(b->d[row].token + k), h);
            for (size_t i = 0; i < l->p.head_dim; i++) {
                double got;
                load(&l->out, at + i, 1, &got);
                cr_assert(got == 0, "row %d computes nothing, but output %d, head %zu is %g", row, k, h, got);
            }
            cpu_take(&l->out, at, l->p.head_dim);
        }
    }
}

static void check_batch(batch *b, counts *c)
{
    cpu_memory *all[] = {&b->l.state, &b->l.x_ring, &b->l.B_ring, &b->l.dt_ring, &b->l.out};
    for (int i = 0; i < N_ROWS; i++) {
        const rssm_descriptor *d = &b->d[i];
        const bool             works = computes(d, (int)b->l.p.max_tokens);
        for (size_t h = 0; h < b->l.p.n_heads && works; h++)
            check_head(b, i, h);
        if (works) check_records(b, i);
        if (!works || d->t == 0) expect_zeros(b, i);
        c->appends += works && d->mode == RSSM_MODE_APPEND && d->t > 0;
        c->folds += works && d->mode != RSSM_MODE_APPEND && d->t > 0;
        c->folds_alone += works && d->mode == RSSM_MODE_FOLD_HISTORY && d->t == 0 && d->h > 0;
        c->nothing += !works;
        if (works && d->h > c->longest) c->longest = d->h;
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        cr_assert(cpu_is_as_before(all[i]), "buffer %zu was written where nothing may write", i);
}

static void run_batch(const cpu_kernel *k, const rssm_problem *p, uint64_t seed, bool packed, counts *c)
{
    batch b = {.random = {seed}};
    b.l.p = *p;
    draw_batch(&b, packed);
    b.l = cpu_layer_make(p, b.n_tokens + 1);
    put_batch(&b);
    cpu_memory *all[] = {&b.l.state, &b.l.x_ring, &b.l.B_ring, &b.l.dt_ring, &b.l.out};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        cpu_remember(all[i]);
    b.l.step.descriptors = b.d;
    b.l.step.n_rows = N_ROWS;
    cpu_launch(k, &b.l.step, N_ROWS, seed);
    check_batch(&b, c);
    cpu_layer_free(&b.l);
}

static void run_shapes(const char *entry, const uint32_t *tokens, size_t n_tokens)
{
    static const uint32_t shapes[][4] = {{8, 32, 3, 1}, {7, 33, 4, 2}, {20, 64, 5, 1}, {3, 5, 6, 3}, {33, 128, 2, 1}};
    static const uint32_t activations[] = {RSSM_F32, RSSM_BF16, RSSM_F16};
    counts                c = {0};
    for (uint64_t seed = 0; seed < 150; seed++) {
        const uint32_t    *s = shapes[seed % 5], T = tokens[seed / 2 % n_tokens];
        const uint32_t     R = T + (T == 1 ? 0 : T) + (uint32_t)(seed * 7 % (97 - 2 * T));
        const rssm_problem p = problem_of(s[0], s[1], s[2], s[3], T, R, activations[seed / 3 % 3],
                                          seed % 2 ? RSSM_BF16 : RSSM_F32);
        const cpu_kernel   k = cpu_builtin(entry, &p);
        run_batch(&k, &p, seed, seed / 5 % 2, &c);
    }
    cr_assert(c.appends > 100 && c.folds > 100 && c.folds_alone > 10 && c.nothing > 100 && c.longest > 80,
              "%d appends, %d folds, %d without a token, %d rows that do nothing, %d records", c.appends, c.folds,
              c.folds_alone, c.nothing, c.longest);
}

Test(cpu_batch, several_tokens)
{
    static const uint32_t tokens[] = {2, 3, 4, 5, 7, 8, 11, 16};
    run_shapes("mamba2_step_tokens", tokens, sizeof tokens / sizeof tokens[0]);
}

Test(cpu_batch, one_token)
{
    static const uint32_t tokens[] = {1};
    run_shapes("mamba2_step_rows", tokens, 1);
}
