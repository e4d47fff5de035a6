// See check.h.
#include "tests/lifecycle/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum {
    P_MAX = 16,
    N_MAX = 32,
    RECORDS_MAX = LIFE_RING_MAX + LIFE_T_MAX,
    TOKENS_MAX = LIFE_T_MAX,
};

// One head's numbers.
typedef struct head_numbers {
    double checkpoint[P_MAX * N_MAX], state[P_MAX * N_MAX], state_bound[P_MAX * N_MAX];
    double run_state[P_MAX * N_MAX], run_error[P_MAX * N_MAX];
    double ring_x[RECORDS_MAX * P_MAX], ring_B[RECORDS_MAX * N_MAX], ring_dt[RECORDS_MAX];
    double x[TOKENS_MAX * P_MAX], z[TOKENS_MAX * P_MAX], y[TOKENS_MAX * P_MAX], y_bound[TOKENS_MAX * P_MAX];
    double B[TOKENS_MAX * N_MAX], C[TOKENS_MAX * N_MAX], dt[TOKENS_MAX], d[TOKENS_MAX], d_bound[TOKENS_MAX];
    double got[N_MAX];
} head_numbers;

rssm_status life_work_create(life_work *k, rssm_diag *diag)
{
    memset(k, 0, sizeof *k);
    k->block = rssm_alloc(sizeof(head_numbers));
    if (!k->block) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for checks");
    return RSSM_OK;
}

void life_work_destroy(life_work *k)
{
    rssm_free(k->block);
    k->block = NULL;
}

static head_numbers *numbers_of(const life_work *k)
{
    return (head_numbers *)(void *)k->block;
}

// ---------------------------------------------------------------------------------------------------------- comparing

typedef struct place {
    const life_row_check *c;
    const char           *what;
    uint32_t              layer, head;
    int32_t               part;
} place;

static double value_at(const life_world *w, const life_tensor *t, size_t byte)
{
    double value;
    life_decode(&w->decoder, t->dtype, w->actual + byte, 1, &value);
    return value;
}

static rssm_status report(life_world *w, const life_tensor *t, size_t offset, const place *at, size_t element,
                          double want, double bound)
{
    const size_t byte = offset + element * t->element_bytes;
    const bool   untouched = memcmp(w->image + byte, w->actual + byte, t->element_bytes) == 0;
    return life_wrong(
        w,
        "%s of slot %d (%d records, %d tokens): layer %u, head %u: %s %d, element %zu of %s is %.9g, want "
        "%.9g within %.3g%s",
        at->c->what, at->c->to, at->c->n_records, at->c->t, at->layer, at->head, at->what, at->part, element, t->name,
        value_at(w, t, byte), want, bound + life_half_ulp(t->dtype, want), untouched ? " (it was not written)" : "");
}

// A dense run against the oracle; taken over if it agrees. Leaves its values in `got`.
static rssm_status compare_run(life_world *w, life_work *k, const life_tensor *t, size_t offset, const place *at,
                               const double *want, const double *bound, double *worst)
{
    double      *got = numbers_of(k)->got;
    const size_t n = (size_t)t->n_dense;
    life_decode(&w->decoder, t->dtype, w->actual + offset, n, got);
    for (size_t i = 0; i < n; i++) {
        if (!life_close(t->dtype, want[i], bound[i], got[i])) return report(w, t, offset, at, i, want[i], bound[i]);
    }
    const double error = fabs(got[0] - want[0]) / (bound[0] + life_half_ulp(t->dtype, want[0]));
    if (error > *worst) *worst = error;
    k->n_values += n;
    life_adopt(w, offset, life_run_bytes(t));
    return RSSM_OK;
}

// -------------------------------------------------------------------------------------------------------- one head

static void gather(const life_world *w, const life_row_check *c, uint32_t layer, uint32_t head, head_numbers *m)
{
    const life_layer   *l = &w->layers[layer];
    const rssm_problem *p = l->problem;
    const size_t        P = p->head_dim, N = p->state_size, group = head / (p->n_heads / p->n_groups);

    life_decode(&w->decoder, l->state.dtype, w->image + life_at(&l->state, c->from, head, 0), P * N, m->checkpoint);
    for (size_t j = 0; j < (size_t)c->n_records; j++) {
        const life_record *r = &c->s->records[j];
        memcpy(m->ring_x + j * P, life_token_values(w, r->token, layer, LIFE_X) + head * P, P * sizeof(double));
        memcpy(m->ring_B + j * N, life_token_values(w, r->token, layer, LIFE_B) + group * N, N * sizeof(double));
        m->ring_dt[j] = r->dt[layer][head];
    }
    for (size_t i = 0; i < (size_t)c->t; i++) {
        const uint64_t token = c->tokens[i];
        memcpy(m->x + i * P, life_token_values(w, token, layer, LIFE_X) + head * P, P * sizeof(double));
        memcpy(m->z + i * P, life_token_values(w, token, layer, LIFE_Z) + head * P, P * sizeof(double));
        memcpy(m->B + i * N, life_token_values(w, token, layer, LIFE_B) + group * N, N * sizeof(double));
        memcpy(m->C + i * N, life_token_values(w, token, layer, LIFE_C) + group * N, N * sizeof(double));
        m->dt[i] = life_token_values(w, token, layer, LIFE_DT)[head];
    }
}

static rssm_status ask_oracle(life_world *w, const life_row_check *c, uint32_t layer, uint32_t head, head_numbers *m)
{
    const life_layer        *l = &w->layers[layer];
    const rssm_oracle_head   parameters = {(int)l->problem->head_dim,
                                           (int)l->problem->state_size,
                                           w->variant->softplus,
                                           w->variant->checkpoint != RSSM_F32,
                                           l->A_of[head],
                                           l->D_of[head],
                                           l->bias_of[head]};
    const rssm_oracle_ring   ring = {RECORDS_MAX, 0, c->n_records, m->ring_x, m->ring_B, m->ring_dt};
    const rssm_oracle_tokens tokens = {c->t, m->x, w->variant->gate ? m->z : NULL, m->B, m->C, m->dt};
    const rssm_oracle_answer answer = {m->d, m->d_bound, m->y, m->y_bound, m->state, m->state_bound};
    return rssm_oracle_step(&parameters, m->checkpoint, &ring, &tokens, c->fold, &answer, w->diag);
}

// The outputs against the uninterrupted run, of which the checkpoint may be as far away as the model says.
static rssm_status check_drift(life_world *w, life_work *k, const life_row_check *c, uint32_t layer, uint32_t head)
{
    const life_layer  *l = &w->layers[layer];
    const size_t       P = l->problem->head_dim, N = l->problem->state_size, at = l->model_at + head * P * N;
    head_numbers      *m = numbers_of(k);
    const life_tensor *out = &l->out;

    memcpy(m->run_state, c->s->state + at, P * N * sizeof(double));
    memcpy(m->run_error, c->s->error + at, P * N * sizeof(double));
    for (int32_t j = 0; j < c->n_records; j++) {
        const life_record *r = &c->s->records[j];
        life_apply(w, layer, head, r->token, &r->dt[layer][head], m->run_state, m->run_error);
    }
    for (size_t i = 0; i < (size_t)c->t; i++) {
        const double *C = m->C + i * N;
        life_apply(w, layer, head, c->tokens[i], NULL, m->run_state, m->run_error);
        life_decode(&w->decoder, out->dtype, w->actual + life_at(out, c->first_output + (int64_t)i, head, 0), P,
                    m->got);
        for (size_t row = 0; row < P; row++) {
            double y = l->D_of[head] * m->x[i * P + row], bound = 0;
            for (size_t n = 0; n < N; n++) {
                y += m->run_state[row * N + n] * C[n];
                bound += m->run_error[row * N + n] * fabs(C[n]);
            }
            if (w->variant->gate) {
                const double z = m->z[i * P + row], gate = z / (1 + exp(-z));
                y *= gate;
                bound *= fabs(gate);
            }
            // Of a gate, a whole factor more: its own error applies to a larger value.
            bound = 2 * bound + m->y_bound[i * P + row];
            if (!life_close(out->dtype, y, bound, m->got[row])) {
                const place where = {c, "against the uninterrupted run, token", layer, head, (int32_t)i};
                return report(w, out, life_at(out, c->first_output + (int64_t)i, head, 0), &where, row, y, bound);
            }
            const double error = fabs(m->got[row] - y) / (bound + life_half_ulp(out->dtype, y));
            if (error > k->max_drift) k->max_drift = error;
        }
    }
    return RSSM_OK;
}

// The folded checkpoint: against the oracle, and against the uninterrupted run.
static rssm_status check_state(life_world *w, life_work *k, const life_row_check *c, uint32_t layer, uint32_t head)
{
    const life_layer  *l = &w->layers[layer];
    const life_tensor *t = &l->state;
    const size_t       P = l->problem->head_dim, N = l->problem->state_size;
    double            *state = c->s->state + l->model_at + head * P * N;
    double            *error = c->s->error + l->model_at + head * P * N;
    head_numbers      *m = numbers_of(k);
    rssm_status        st = RSSM_OK;

    for (int32_t j = 0; j < c->n_records; j++)
        life_apply(w, layer, head, c->s->records[j].token, &c->s->records[j].dt[layer][head], state, error);
    for (int32_t i = 0; i < c->t && c->fold == RSSM_ORACLE_FOLD_ALL; i++)
        life_apply(w, layer, head, c->tokens[i], NULL, state, error);
    for (size_t row = 0; row < P; row++) {
        const place  at = {c, "row", layer, head, (int32_t)row};
        const size_t from = row * N;
        RSSM_TRY(compare_run(w, k, t, life_at(t, c->to, head, (int64_t)row), &at, m->state + from,
                             m->state_bound + from, &k->max_state));
        for (size_t n = 0; n < N; n++) {
            double *e = &error[from + n];
            *e +=
                m->state_bound[from + n] + life_half_ulp(t->dtype, fabs(m->state[from + n]) + m->state_bound[from + n]);
            if (!(fabs(m->got[n] - state[from + n]) <= *e)) {
                const place where = {c, "against the uninterrupted run, row", layer, head, (int32_t)row};
                st = report(w, t, life_at(t, c->to, head, (int64_t)row), &where, n, state[from + n], *e);
                goto done;
            }
        }
    }
done:
    return st;
}

static rssm_status check_head(life_world *w, life_work *k, const life_row_check *c, uint32_t layer, uint32_t head)
{
    const life_layer *l = &w->layers[layer];
    const size_t      P = l->problem->head_dim;
    head_numbers     *m = numbers_of(k);
    rssm_status       st = RSSM_OK;
    const bool        folds = c->fold == RSSM_ORACLE_FOLD_ALL || (c->fold && c->n_records > 0);

    if (c->t == 0 && !folds) return RSSM_OK;
    gather(w, c, layer, head, m);
    RSSM_TRY(ask_oracle(w, c, layer, head, m));
    if (head == w->event % l->problem->n_heads) RSSM_TRY(check_drift(w, k, c, layer, head));
    for (int32_t i = 0; i < c->t; i++) {
        const place at = {c, "token", layer, head, i};
        RSSM_TRY(compare_run(w, k, &l->out, life_at(&l->out, c->first_output + i, head, 0), &at, m->y + (size_t)i * P,
                             m->y_bound + (size_t)i * P, &k->max_out));
    }
    for (int32_t i = 0; i < c->t && c->append_at >= 0; i++) {
        const int32_t record = (c->append_at + i) % w->ring;
        const place   at = {c, "processed dt of record", layer, head, record};
        const size_t  offset = life_at(&l->dt_ring, c->to, head, record);
        RSSM_TRY(compare_run(w, k, &l->dt_ring, offset, &at, m->d + i, m->d_bound + i, &k->max_out));
        memcpy(&c->s->records[c->n_records + i].dt[layer][head], w->actual + offset, sizeof(float));
    }
    if (folds) RSSM_TRY(check_state(w, k, c, layer, head));
done:
    return st;
}

rssm_status life_check_row(life_world *w, life_work *k, const life_row_check *c)
{
    rssm_status st = RSSM_OK;
    for (uint32_t layer = 0; layer < LIFE_LAYERS; layer++) {
        for (uint32_t head = 0; head < w->layers[layer].problem->n_heads; head++)
            RSSM_TRY(check_head(w, k, c, layer, head));
    }
done:
    return st;
}
