// See model.h.
#include "tests/lifecycle/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

rssm_status life_sequence_create(const life_world *w, life_sequence *s, rssm_diag *diag)
{
    memset(s, 0, sizeof *s);
    s->state = rssm_calloc(w->n_model, sizeof *s->state);
    s->error = rssm_calloc(w->n_model, sizeof *s->error);
    if (!s->state || !s->error) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for the model of a sequence");
    return RSSM_OK;
}

void life_sequence_destroy(life_sequence *s)
{
    rssm_free(s->state);
    rssm_free(s->error);
    memset(s, 0, sizeof *s);
}

void life_sequence_assign(const life_world *w, life_sequence *to, const life_sequence *from)
{
    double *state = to->state, *error = to->error;
    if (to == from) return;
    *to = *from;
    to->state = memcpy(state, from->state, w->n_model * sizeof *state);
    to->error = memcpy(error, from->error, w->n_model * sizeof *error);
}

static size_t n_state(const life_layer *l)
{
    return (size_t)l->problem->n_heads * l->problem->head_dim * l->problem->state_size;
}

size_t life_state_place(const life_world *w, uint64_t seed, uint32_t layer)
{
    return life_pool_place(seed, layer, 99, n_state(&w->layers[layer]));
}

void life_sequence_begin(const life_world *w, life_sequence *s, uint64_t seed, uint64_t position)
{
    s->position = s->accepted = position;
    s->n_records = s->pending_t = 0;
    s->pending_mode = RSSM_MODE_NONE;
    memset(s->error, 0, w->n_model * sizeof *s->error);
    memset(s->state, 0, w->n_model * sizeof *s->state);
    for (uint32_t i = 0; i < LIFE_LAYERS && seed != 0; i++) {
        const life_layer *l = &w->layers[i];
        memcpy(s->state + l->model_at, w->stored_states.values + life_state_place(w, seed, i),
               n_state(l) * sizeof *s->state);
    }
}

// Pool and place of all heads' values of a token.
static const life_pool *find_run(const life_world *w, uint64_t token, uint32_t layer, int which, size_t *out_place)
{
    static const life_pool_kind kinds[] = {LIFE_POOL_X, LIFE_POOL_Z, LIFE_POOL_BC, LIFE_POOL_BC, LIFE_POOL_DT};
    const rssm_problem         *p = w->layers[layer].problem;
    const size_t sizes[] = {p->n_heads * p->head_dim, p->n_heads * p->head_dim, p->n_groups * p->state_size,
                            p->n_groups * p->state_size, p->n_heads};
    *out_place = life_pool_place(token, layer, (uint32_t)which, sizes[which]);
    return &w->pools[kinds[which]];
}

const double *life_token_values(const life_world *w, uint64_t token, uint32_t layer, int which)
{
    size_t           place;
    const life_pool *pool = find_run(w, token, layer, which, &place);
    return pool->values + place;
}

const unsigned char *life_token_bits(const life_world *w, uint64_t token, uint32_t layer, int which)
{
    size_t           place;
    const life_pool *pool = find_run(w, token, layer, which, &place);
    return pool->bits + place * pool->element_bytes;
}

double life_exact_dt(const life_world *w, uint32_t layer, uint32_t head, uint64_t token)
{
    const double v = life_token_values(w, token, layer, LIFE_DT)[head] + w->layers[layer].bias_of[head];
    return w->variant->softplus ? rssm_oracle_softplus(v) : v;
}

// S' = e^(A d) S + d x B. A kernel folds with the dt that the ring holds, which is off by `off`: its decay is off by a
// factor of up to e^(|A| off), its new term by off |x B|. What it was wrong by before decays along.
void life_apply(const life_world *w, uint32_t layer, uint32_t head, uint64_t token, const float *stored_dt,
                double *state, double *error)
{
    const life_layer   *l = &w->layers[layer];
    const rssm_problem *p = l->problem;
    const size_t        P = p->head_dim, N = p->state_size, group = head / (p->n_heads / p->n_groups);
    const double       *x = life_token_values(w, token, layer, LIFE_X) + head * P;
    const double       *B = life_token_values(w, token, layer, LIFE_B) + group * N;
    const double        d = life_exact_dt(w, layer, head, token);
    const double        off = stored_dt ? fabs(*stored_dt - d) : 0;
    const double        decay = exp(l->A_of[head] * d), grown = decay * exp(fabs(l->A_of[head]) * off);
    const double        lost = decay * expm1(fabs(l->A_of[head]) * off);

    for (size_t i = 0; i < P; i++) {
        const double a = d * x[i], b = off * fabs(x[i]);
        double      *S = state + i * N, *E = error + i * N;
        for (size_t n = 0; n < N; n++) {
            E[n] = grown * E[n] + lost * fabs(S[n]) + b * fabs(B[n]);
            S[n] = decay * S[n] + a * B[n];
        }
    }
}

void life_sequence_folded(life_sequence *s, int32_t n)
{
    s->position += (uint64_t)n;
    s->n_records -= n;
    memmove(s->records, s->records + n, (size_t)(LIFE_RING_MAX + LIFE_T_MAX - n) * sizeof s->records[0]);
}

void life_sequence_commit(life_sequence *s, int32_t accepted)
{
    int32_t kept = accepted < s->pending_t ? accepted : s->pending_t;
    if (kept < 0) kept = 0;
    if (s->pending_mode == RSSM_MODE_FOLD_ALL) {
        kept = s->pending_t; // it is in the checkpoint, whatever the host says
    } else {
        s->n_records += kept;
    }
    s->accepted += (uint64_t)kept;
    s->pending_t = 0;
    s->pending_mode = RSSM_MODE_NONE;
}

bool life_sequence_agrees(const life_sequence *s, const rssm_cursor *c, char *out_text, size_t n)
{
    const bool settled = s->pending_mode == RSSM_MODE_NONE;
    if (c->pos + (uint64_t)c->h == s->accepted && c->pending_t == s->pending_t && c->pending_mode == s->pending_mode &&
        (!settled || (c->pos == s->position && c->h == s->n_records)))
        return true;
    snprintf(
        out_text, n,
        "the cursor says %llu tokens in the checkpoint, %d records and %d pending in mode %d; the sequence has %llu "
        "tokens, %llu of them in the checkpoint, %d records and %d pending in mode %d",
        c->pos, c->h, c->pending_t, c->pending_mode, (unsigned long long)s->accepted, (unsigned long long)s->position,
        s->n_records, s->pending_t, s->pending_mode);
    return false;
}
