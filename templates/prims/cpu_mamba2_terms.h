// A CPU Mamba-2 step but for the state itself: how each record enters the state and the output, the output, the
// appends.
//
// Records are numbered 0 .. n-1: the history in ring order, then the token. Of the first n_folded the state takes
// s_j x_j B_j, the others are read: y gets s_j (B_j . C) x_j. With processed dt d_j and m records in that part,
// s_j = d_j e^(A (d_(j+1) + .. + d_(m-1))). These sums run backwards over live records: no difference of prefixes, no
// exponent of a dead record. D joins the token's weight.
// Include rssm_config.h first. Not for device code.
#ifndef RSSM_PRIMS_CPU_MAMBA2_TERMS_H
#define RSSM_PRIMS_CPU_MAMBA2_TERMS_H

#include "prims/cpu_mamba2_place.h"
#include "prims/cpu_math.h"

enum {
    MAX_RECORDS = (CFG_RING_LENGTH ? CFG_RING_LENGTH : 64) + 1, // a full ring and the token
    MAX_STATE_SIZE = CFG_STATE_SIZE ? CFG_STATE_SIZE : 1024,
    TERMS = (MAX_RECORDS + 1 + CFG_VEC - 1) / CFG_VEC * CFG_VEC, // and the state's own decay; whole vectors
};

RSSM_ASSERT(MAX_RECORDS <= 65 && MAX_STATE_SIZE <= 1024, "these arrays are on the stack");

typedef struct group_terms {
    const T_act *B_record[MAX_RECORDS];
    rssm_i64     x_offset[MAX_RECORDS]; // of history records in a head's rings
    rssm_i64     dt_offset[MAX_RECORDS];
    float        B_dot_C[MAX_RECORDS];    // of the records that are read
    _Alignas(64) float C[MAX_STATE_SIZE]; // zeros without a token
} group_terms;

typedef struct head_terms {
    const T_act *x_ring;
    const T_act *x;                  // of the token
    float        dt;                 // processed, of the token
    float        fold_decay;         // of the state, by the folded records
    float        fold_scale[TERMS];  // s_j of the folded records
    rssm_i32     n_read;             // history records that are read: all or, after a fold, none
    float        read_decay;         // of S . C, by the records that are read
    float        read_weight[TERMS]; // factor of x_j in y, for the history
    float        token_weight;       // likewise for the token, with D
} head_terms;

// ----------------------------------------------------------------------------------------------------------- group

RSSM_INLINE float dot(const T_act *row, const float *C, rssm_i32 n_columns)
{
    rssm_vf  sum = {0};
    float    tail = 0.0f;
    rssm_i32 n = 0;
    for (; n + CFG_VEC <= n_columns; n += CFG_VEC)
        sum = sum + rssm_vload(row + n) * rssm_vload(C + n);
    for (; n < n_columns; n++)
        tail += rssm_to_float(row[n]) * C[n];
    return rssm_vsum(sum) + tail;
}

RSSM_INLINE void widen(float *to, const T_act *from, rssm_i32 n_columns)
{
    rssm_i32 n = 0;
    for (; n + CFG_VEC <= n_columns; n += CFG_VEC)
        rssm_vstore(to + n, rssm_vload(from + n));
    for (; n < n_columns; n++)
        to[n] = rssm_to_float(from[n]);
}

RSSM_INLINE void load_group(const step_args *args, const place *w, group_terms *g)
{
    const rssm_i32 N = state_size_of(args);

    for (rssm_i32 j = 0; j < w->n_history; j++) {
        const rssm_i32 row = ring_row(args, w, j);
        g->B_record[j] = ring_at(&args->B_ring, w->d.slot, w->group, row);
        g->x_offset[j] = row * args->x_ring.record_stride;
        g->dt_offset[j] = row * args->dt_ring.record_stride;
        rssm_prefetch(g->B_record[j], 0, N * (rssm_i64)sizeof(T_act));
    }
    if (w->has_token) {
        g->B_record[w->n_history] = token_at(&args->B, w->d.token, w->group);
        widen(g->C, token_at(&args->C, w->d.token, w->group), N);
        for (rssm_i32 j = w->n_folded; j <= w->n_history; j++)
            g->B_dot_C[j] = dot(g->B_record[j], g->C, N);
    } else {
        for (rssm_i32 n = 0; n < N; n++)
            g->C[n] = 0.0f;
    }
}

// Asks for a head's rings, which lie elsewhere than its state and are too short for the hardware to foresee.
RSSM_INLINE void prefetch_rings(const step_args *args, const place *w, const group_terms *g, rssm_i32 head)
{
    const T_act   *x = ring_at(&args->x_ring, w->d.slot, head, 0) + w->row_begin;
    const float   *dt = dt_ring_at(&args->dt_ring, w->d.slot, head, 0);
    const rssm_i64 n_bytes = (w->row_end - w->row_begin) * (rssm_i64)sizeof(T_act);
    for (rssm_i32 j = 0; j < w->n_history; j++) {
        rssm_prefetch(x + g->x_offset[j], 0, n_bytes);
        rssm_prefetch_at(dt + g->dt_offset[j], 0);
    }
}

// ------------------------------------------------------------------------------------------------------------ head

RSSM_INLINE float token_dt(const step_args *args, const place *w, rssm_i32 head)
{
    const rssm_i64 at = w->d.token * args->dt.token_stride + head * args->dt.head_stride;
    float          dt = rssm_float_at(args->dt.data, at, args->dt_type);
    if (args->dt_bias) dt += rssm_float_at(args->dt_bias, head, args->parameter_type);
    return args->dt_softplus ? rssm_softplus(dt) : dt;
}

// scale[j] = s_j of m records; returns the decay of what was there before them, e^(A (d_0 + .. + d_(m-1))).
RSSM_INLINE float decay_scales(float A, const float *dt, rssm_i32 m, float *scale)
{
    _Alignas(64) float exponent[TERMS];
    float              later = 0.0f;
    for (rssm_i32 j = m - 1; j >= 0; j--) {
        exponent[j] = A * later;
        later += dt[j];
    }
    exponent[m] = A * later;
    for (rssm_i32 j = 0; j <= m; j += CFG_VEC) {
        const rssm_i32 lanes = m + 1 - j < CFG_VEC ? m + 1 - j : CFG_VEC;
        rssm_vstore(exponent + j, rssm_vexp(rssm_vload_n(exponent + j, lanes)));
    }
    for (rssm_i32 j = 0; j < m; j++)
        scale[j] = dt[j] * exponent[j];
    return exponent[m];
}

RSSM_INLINE void load_head(const step_args *args, const place *w, const group_terms *g, rssm_i32 head, head_terms *t)
{
    const float    A = args->A[head];
    const float   *dt_ring = dt_ring_at(&args->dt_ring, w->d.slot, head, 0);
    const rssm_i32 h = w->n_history;
    float          dt[TERMS] = {0};

    t->x_ring = ring_at(&args->x_ring, w->d.slot, head, 0);
    for (rssm_i32 j = 0; j < h; j++)
        dt[j] = dt_ring[g->dt_offset[j]];
    if (w->has_token) {
        t->x = token_at(&args->x, w->d.token, head);
        t->dt = dt[h] = token_dt(args, w, head);
    }
    t->n_read = w->n_folded ? 0 : h;
    if (w->n_folded) t->fold_decay = decay_scales(A, dt, w->n_folded, t->fold_scale);
    if (!w->has_token) return;

    t->token_weight = args->D ? rssm_float_at(args->D, head, args->parameter_type) : 0.0f;
    t->read_decay = 1.0f;
    if (w->n_folded <= h) { // the token was not folded: it is read, and so is a history that was not
        const rssm_i32 first = h - t->n_read;
        t->read_decay = decay_scales(A, dt + first, t->n_read + 1, t->read_weight);
        t->token_weight += t->read_weight[t->n_read] * g->B_dot_C[h];
        for (rssm_i32 j = 0; j < t->n_read; j++)
            t->read_weight[j] *= g->B_dot_C[j];
    }
}

// x of record j.
RSSM_INLINE const T_act *x_record(const place *w, const group_terms *g, const head_terms *t, rssm_i32 j)
{
    return j < w->n_history ? t->x_ring + g->x_offset[j] : t->x;
}

#endif
