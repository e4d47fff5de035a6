// Plain kernels with faults on demand; see fake_kernels.h.
#include "tests/oracle/fake_kernels.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tuner/oracle/number_format.h"

enum { MOST_RECORDS = 32, MOST_COLUMNS = 64 };

// -------------------------------------------------------------------------------------------------------------- memory

static rssm_status take_memory(rssm_context *context, uint32_t device, size_t n_bytes, void **out_pointer,
                               rssm_diag *diag)
{
    (void)context, (void)device, (void)diag;
    *out_pointer = aligned_alloc(256, (n_bytes + 255) / 256 * 256);
    return *out_pointer ? RSSM_OK : RSSM_E_NO_MEMORY;
}

static void give_memory(rssm_context *context, uint32_t device, void *pointer)
{
    (void)context, (void)device;
    free(pointer);
}

static rssm_status copy_memory(rssm_context *context, uint32_t device, void *to, const void *from, size_t n_bytes,
                               rssm_diag *diag)
{
    (void)context, (void)device, (void)diag;
    memcpy(to, from, n_bytes);
    return RSSM_OK;
}

static rssm_status wait_for_nothing(rssm_context *context, uint32_t device, rssm_diag *diag)
{
    (void)context, (void)device, (void)diag;
    return RSSM_OK;
}

// ------------------------------------------------------------------------------------------------------------- advance

static void open_row(const fake_kernels *f, const rssm_advance_args *a, uint32_t i, rssm_descriptor *d)
{
    const rssm_window w = {(int)f->problem.window, (int)f->problem.ring_length, (int)f->problem.max_tokens, f->eager};
    const int         token = a->cu_seqlens ? a->cu_seqlens[i] : (int)i * w.T;
    const int         t = a->cu_seqlens ? a->cu_seqlens[i + 1] - token : a->tokens ? a->tokens[i] : w.T;
    const int         place = a->cu_seqlens && t == 0 ? -1 : token;

    if (a->slots[i] == a->pad_slot) {
        rssm_descriptor_null(d, place);
        d->t = (rssm_i16)(a->cu_seqlens ? t : w.T);
        return;
    }
    rssm_cursor   *c = &f->cursors[a->slots[i]];
    const uint32_t epoch = a->epochs ? a->epochs[i] : c->epoch;
    const int      forced = a->forced && f->fault != FAULT_IGNORES_FORCED && a->forced[i];
    const int      accepted = a->accepted && f->fault != FAULT_IGNORES_ACCEPTED ? a->accepted[i] : c->pending_t;
    if (f->fault == FAULT_KEEPS_OLD_RECORDS) c->nonce = c->epoch = epoch;
    if (epoch == c->epoch) rssm_cursor_commit(c, &w, accepted);
    rssm_cursor_open(c, &w, a->slots[i], place, t, forced, epoch, d);
    if (f->fault == FAULT_LOSES_POSITION) d->pos &= 3;
}

static rssm_status fake_advance(const rssm_group *group, const rssm_advance_args *a, void *stream)
{
    const fake_kernels *f = (const fake_kernels *)(const void *)group;
    rssm_descriptor    *all = calloc(a->n_rows, sizeof *all), *out = a->descriptors;
    uint32_t            n = 0;
    if (!all || stream) return RSSM_E_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < a->n_rows; i++)
        open_row(f, a, i, &all[i]);
    for (int pass = 0; pass < 2; pass++) {
        const bool folds_now = (pass == 0) != (f->fault == FAULT_FOLDS_LAST);
        for (uint32_t i = 0; i < a->n_rows; i++) {
            if ((all[i].mode >= RSSM_MODE_FOLD_HISTORY) == folds_now) out[n++] = all[i];
        }
    }
    free(all);
    return RSSM_OK;
}

// ---------------------------------------------------------------------------------------------------------------- step

static float read_one(uint32_t dtype, const void *base, int64_t element)
{
    double value;
    rssm_oracle_load(dtype, (const char *)base + element * (dtype == RSSM_F32 ? 4 : 2), 1, &value);
    return (float)value;
}

static void write_one(uint32_t dtype, void *base, int64_t element, float value)
{
    const double exact = value;
    rssm_oracle_store(dtype, &exact, 1, (char *)base + element * (dtype == RSSM_F32 ? 4 : 2));
}

static float round_to(uint32_t dtype, float value)
{
    return (float)rssm_oracle_round(dtype, value);
}

// One row and head of a step, as floats.
typedef struct row_head {
    const fake_kernels    *f;
    const rssm_step_args  *a;
    const rssm_descriptor *d;
    int64_t                head, group;
    int                    n_folded;
    float                  A, D;
    float                  dt[MOST_RECORDS], s[MOST_RECORDS];
} row_head;

static int64_t ring_at(const row_head *w, const rssm_ring_tensor *ring, int64_t head, int item)
{
    const int R = (int)w->f->problem.ring_length;
    const int record = w->f->fault == FAULT_IGNORES_WRAP ? (w->d->start + item < R ? w->d->start + item : R - 1)
                                                         : (w->d->start + item) % R;
    return w->d->slot * ring->slot_stride + head * ring->head_stride + record * ring->record_stride;
}

static int64_t token_at(const row_head *w, const rssm_token_tensor *t, int64_t head, int k)
{
    return (w->d->token + k) * t->token_stride + head * t->head_stride;
}

static float item_x(const row_head *w, int item, int p)
{
    const uint32_t act = w->f->problem.activation_dtype;
    if (item < w->d->h) return read_one(act, w->a->x_ring.data, ring_at(w, &w->a->x_ring, w->head, item) + p);
    return read_one(act, w->a->x.data, token_at(w, &w->a->x, w->head, item - w->d->h) + p);
}

static float item_B(const row_head *w, int item, int n)
{
    const uint32_t act = w->f->problem.activation_dtype;
    if (item < w->d->h) return read_one(act, w->a->B_ring.data, ring_at(w, &w->a->B_ring, w->group, item) + n);
    return read_one(act, w->a->B.data, token_at(w, &w->a->B, w->group, item - w->d->h) + n);
}

static int64_t state_at(const row_head *w, int p, int n)
{
    const rssm_problem *q = &w->f->problem;
    const int64_t       P = q->head_dim, N = q->state_size;
    const int64_t stride = w->f->fault == FAULT_IGNORES_SLOT_STRIDE ? q->n_heads * P * N : w->a->state.slot_stride;
    return w->d->slot * stride + (w->head * P + p) * N + n;
}

static float process_dt(const row_head *w, int k)
{
    const rssm_problem *q = &w->f->problem;
    float               v = read_one(q->dt_dtype, w->a->dt.data, token_at(w, &w->a->dt, w->head, k));
    if (w->a->dt_bias && w->f->fault != FAULT_IGNORES_BIAS) v += read_one(q->parameter_dtype, w->a->dt_bias, w->head);
    if (!q->dt_softplus) return v;
    if (w->f->fault == FAULT_LOGARITHM_OF_SUM) return v <= 20 ? logf(1 + expf(v)) : v;
    return v <= 20 ? log1pf(expf(v)) : v;
}

// Weights of the items 0 .. n-1 as the last of them sees them; returns the checkpoint's decay.
static float weigh(row_head *w, int n)
{
    float later = 0;
    for (int j = n - 1; j >= 0; j--) {
        w->s[j] = w->dt[j] * expf(w->A * later);
        later += w->dt[j];
    }
    if (w->f->fault == FAULT_DROPS_NEWEST_RECORD && w->d->h > 2 && n >= w->d->h) w->s[w->d->h - 1] = 0;
    if (w->f->fault == FAULT_DROPS_OLDEST_RECORD && w->d->h > 2) w->s[0] = 0;
    return expf(w->A * later);
}

static float stored_off(const row_head *w, float value)
{
    const uint32_t dtype = w->f->problem.checkpoint_dtype;
    if (w->f->fault == FAULT_FEW_ULPS && dtype == RSSM_F32) return value * (1 + 4 * 0x1p-23f);
    if (w->f->fault != FAULT_MANY_ULPS) return value;
    if (dtype == RSSM_F32) return value * (1 + 256 * 0x1p-23f);
    return round_to(dtype, value) + copysignf(2 * (float)rssm_oracle_half_ulp(dtype, value), value);
}

// The state after the first n_folded items, unrounded.
static float next_state(const row_head *w, int p, int n, float decay)
{
    float state = decay * read_one(w->f->problem.checkpoint_dtype, w->a->state.data, state_at(w, p, n));
    for (int j = 0; j < w->n_folded; j++) {
        float weight = w->s[j] * item_B(w, j, n);
        if (w->f->fault == FAULT_ROUNDS_WEIGHTS) weight = round_to(RSSM_BF16, weight);
        state += weight * item_x(w, j, p);
    }
    return state;
}

static void fold(row_head *w)
{
    const rssm_problem *q = &w->f->problem;
    const float         decay = weigh(w, w->n_folded);
    for (int p = 0; p < (int)q->head_dim; p++) {
        for (int n = 0; n < (int)q->state_size; n++) {
            const float folded = next_state(w, p, n, decay);
            if (w->f->fault == FAULT_STATE_STAYS) continue;
            write_one(q->checkpoint_dtype, w->a->state.data, state_at(w, p, n), stored_off(w, folded));
        }
    }
}

static float read_state(const row_head *w, int p, int n)
{
    const uint32_t dtype = w->f->problem.checkpoint_dtype;
    const float    value = read_one(dtype, w->a->state.data, state_at(w, p, n));
    return w->f->fault == FAULT_ROUNDS_READOUT ? (float)(rintf(ldexpf(value, 9)) * 0x1p-9) : value;
}

static float output(row_head *w, int k, int p)
{
    const rssm_problem *q = &w->f->problem;
    const uint32_t      act = q->activation_dtype;
    const int           n_items = w->d->h + k + 1, N = (int)q->state_size;
    const int64_t       C = token_at(w, &w->a->C, w->group, k);
    const float         decay = weigh(w, n_items);
    float               y = 0;

    if (w->f->fault == FAULT_READS_ROUNDED_STATE && w->n_folded == n_items) {
        for (int n = 0; n < N; n++) {
            y += round_to(q->checkpoint_dtype, next_state(w, p, n, decay)) * read_one(act, w->a->C.data, C + n);
        }
    } else {
        for (int n = 0; n < N; n++)
            y += read_state(w, p, n) * read_one(act, w->a->C.data, C + n);
        y *= decay;
        for (int j = 0; j < n_items; j++) {
            float dot = 0;
            for (int n = 0; n < N; n++)
                dot += item_B(w, j, n) * read_one(act, w->a->C.data, C + n);
            y += w->s[j] * dot * item_x(w, j, p);
        }
    }
    if (w->f->fault == FAULT_READS_DEAD_RECORD && w->d->h < (int)q->ring_length) {
        y += 0 * read_one(act, w->a->x_ring.data, ring_at(w, &w->a->x_ring, w->head, w->d->h) + p);
    }
    if (w->f->fault == FAULT_READS_FOLDED_RECORD && w->d->pos > 0 && w->d->h < (int)q->ring_length) {
        const int64_t before = ring_at(w, &w->a->x_ring, w->head, (int)q->ring_length - 1);
        y += 0 * read_one(act, w->a->x_ring.data, before + p);
    }
    if (w->a->D) y += read_one(q->parameter_dtype, w->a->D, w->head) * item_x(w, w->d->h + k, p);
    if (w->a->z.data && w->f->fault != FAULT_IGNORES_GATE) {
        const float z = read_one(act, w->a->z.data, token_at(w, &w->a->z, w->head, k) + p);
        y *= z / (1 + expf(-z));
    }
    return y;
}

static void append(row_head *w, bool first_of_group)
{
    const rssm_problem *q = &w->f->problem;
    const uint32_t      act = q->activation_dtype;
    for (int k = 0; k < w->d->t; k++) {
        const int     to = w->d->h + k + (w->f->fault == FAULT_APPENDS_ELSEWHERE);
        const int64_t x = ring_at(w, &w->a->x_ring, w->head, to), B = ring_at(w, &w->a->B_ring, w->group, to);
        for (int p = 0; p < (int)q->head_dim; p++)
            write_one(act, w->a->x_ring.data, x + p, item_x(w, w->d->h + k, p));
        for (int n = 0; n < (int)q->state_size && first_of_group; n++) {
            write_one(act, w->a->B_ring.data, B + n, item_B(w, w->d->h + k, n));
        }
        const float raw = read_one(q->dt_dtype, w->a->dt.data, token_at(w, &w->a->dt, w->head, k));
        write_one(RSSM_F32, w->a->dt_ring.data, ring_at(w, &w->a->dt_ring, w->head, to),
                  w->f->fault == FAULT_APPENDS_RAW_DT ? raw : w->dt[w->d->h + k]);
    }
}

static void step_head(const fake_kernels *f, const rssm_step_args *a, const rssm_descriptor *d, int64_t head)
{
    const rssm_problem *q = &f->problem;
    const int64_t       group_size = q->n_heads / q->n_groups;
    row_head            w = {.f = f, .a = a, .d = d, .head = head, .group = head / group_size, .A = a->A[head]};
    float               y[4][MOST_COLUMNS];

    w.n_folded = d->mode == RSSM_MODE_FOLD_ALL ? d->h + d->t : d->mode == RSSM_MODE_FOLD_HISTORY ? d->h : 0;
    for (int j = 0; j < d->h; j++)
        w.dt[j] = read_one(RSSM_F32, a->dt_ring.data, ring_at(&w, &a->dt_ring, head, j));
    for (int k = 0; k < d->t; k++)
        w.dt[d->h + k] = process_dt(&w, k);
    for (int k = 0; k < d->t; k++) {
        for (int p = 0; p < (int)q->head_dim; p++)
            y[k][p] = output(&w, k, p);
    }
    if (w.n_folded > 0) fold(&w);
    if ((d->mode != RSSM_MODE_FOLD_ALL && d->mode != RSSM_MODE_NONE) || f->fault == FAULT_APPENDS_AFTER_FOLD) {
        append(&w, head % group_size == 0);
    }
    for (int k = 0; k < d->t; k++) {
        for (int p = 0; p < (int)q->head_dim; p++) {
            write_one(q->activation_dtype, a->out.data, token_at(&w, &a->out, head, k) + p, y[k][p]);
        }
    }
}

// Rows without an output to compute: zeros, over all tokens that are theirs.
static void write_zeros(const fake_kernels *f, const rssm_step_args *a, const rssm_descriptor *d)
{
    const bool dense = !(f->flags & RSSM_VERIFY_PACKED);
    const int  n = dense ? (int)f->problem.max_tokens : d->t;
    float      zero = 0;

    if (d->token < 0) return;
    for (int k = 0; k < n; k++) {
        for (int64_t head = 0; head < f->problem.n_heads; head++) {
            for (int p = 0; p < (int)f->problem.head_dim; p++) {
                const int64_t at = head * a->out.head_stride + p;
                if (f->fault == FAULT_READS_NULL_INPUT) {
                    const int64_t x = (d->token + k) * a->x.token_stride + head * a->x.head_stride + p;
                    zero = 0 * read_one(f->problem.activation_dtype, a->x.data, x);
                }
                write_one(f->problem.activation_dtype, a->out.data, (d->token + k) * a->out.token_stride + at, zero);
            }
        }
    }
}

static void misbehave(const fake_kernels *f, const rssm_step_args *a)
{
    const rssm_problem *q = &f->problem;
    const int64_t       state = q->n_heads * q->head_dim * q->state_size;
    if (f->fault == FAULT_WRITES_GAP) ((unsigned char *)a->state.data)[state * (q->checkpoint_dtype ? 2 : 4)] ^= 1;
    if (f->fault == FAULT_WRITES_GUARD) ((unsigned char *)a->out.data)[-1] ^= 1;
    if (f->fault == FAULT_WRITES_INPUT) ((unsigned char *)a->C.data)[1] ^= 1;
    if (f->fault == FAULT_WRITES_DESCRIPTOR) ((rssm_descriptor *)(uintptr_t)a->descriptors)->nonce += 1;
}

static rssm_status fake_step(const rssm_plan *plan, const rssm_step_args *a, void *stream)
{
    const fake_kernels    *f = (const fake_kernels *)(const void *)plan;
    const rssm_descriptor *descriptors = a->descriptors;
    const int64_t          H = f->problem.n_heads;

    if (stream) return RSSM_E_INVALID_ARGUMENT;
    if (f->fault == FAULT_WRITES_NOTHING) return RSSM_OK;
    for (uint32_t i = 0; i < a->n_rows; i++) {
        const rssm_descriptor *d = &descriptors[i];
        if (d->slot < 0) {
            if (f->fault == FAULT_WRITES_STATE_OF_NULL_ROW) memset(a->state.data, 0, 4); // -1 clamped to slot 0
            if (f->fault != FAULT_SKIPS_NULL_ROWS) write_zeros(f, a, d);
            continue;
        }
        for (int64_t head = 0; head < H - (f->fault == FAULT_SKIPS_LAST_HEAD); head++)
            step_head(f, a, d, head);
        if (d->t == 0 && f->fault != FAULT_SKIPS_IDLE_ROWS) write_zeros(f, a, d);
    }
    misbehave(f, a);
    return RSSM_OK;
}

const rssm_verify_calls fake_calls = {
    .advance = fake_advance,
    .step = fake_step,
    .alloc = take_memory,
    .free = give_memory,
    .upload = copy_memory,
    .download = copy_memory,
    .synchronise = wait_for_nothing,
};
