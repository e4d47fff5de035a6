// A CPU Mamba-2 step of one token but for the state itself: how each record enters the state and the output.
//
// Records are numbered 0 .. n-1: the history in ring order, then the token. Of the first n_folded the state takes
// s_j x_j B_j (prims/cpu_fold.h), the others are read: y gets s_j (B_j . C) x_j. D joins the token's weight.
// Include rssm_config.h first. Not for device code.
#ifndef RSSM_PRIMS_CPU_MAMBA2_TERMS_H
#define RSSM_PRIMS_CPU_MAMBA2_TERMS_H

#include "prims/cpu_mamba2_place.h"

typedef struct group_terms {
    history            r;
    float              B_dot_C[MAX_RECORDS]; // of the records that are read
    _Alignas(64) float C[MAX_STATE_SIZE];    // zeros without a token
} group_terms;

typedef struct head_terms {
    const T_act *x_ring;
    const T_act *x;    // of the token
    float        dt;   // processed, of the token
    fold_head    fold; // of the folded records
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

RSSM_INLINE void load_group(const step_args *args, const place *w, group_terms *g)
{
    const rssm_i32 N = state_size_of(&w->s);

    find_history(args, w, &g->r);
    if (w->n_tokens > 0) {
        g->r.B[w->n_history] = token_at(&args->B, w->d.token, w->part.group);
        widen(g->C, token_at(&args->C, w->d.token, w->part.group), N);
        for (rssm_i32 j = w->n_folded; j <= w->n_history; j++)
            g->B_dot_C[j] = dot(g->r.B[j], g->C, N);
    } else {
        for (rssm_i32 n = 0; n < N; n++)
            g->C[n] = 0.0f;
    }
}

// ------------------------------------------------------------------------------------------------------------ head

RSSM_INLINE void load_head(const step_args *args, const place *w, const group_terms *g, rssm_i32 head, head_terms *t)
{
    const float    A = args->A[head];
    const float   *dt_ring = dt_ring_at(&args->dt_ring, w->d.slot, head, 0);
    const rssm_i32 h = w->n_history;
    float          dt[TERMS] = {0};

    t->x_ring = ring_at(&args->x_ring, w->d.slot, head, 0);
    for (rssm_i32 j = 0; j < h; j++)
        dt[j] = dt_ring[g->r.dt_offset[j]];
    if (w->n_tokens > 0) {
        t->x = token_at(&args->x, w->d.token, head);
        t->dt = dt[h] = token_dt(args, w, 0, head);
    }
    t->n_read = w->n_folded ? 0 : h;
    if (w->n_folded) t->fold.decay = decay_scales(A, dt, w->n_folded, t->fold.scale);
    for (rssm_i32 j = 0; j < w->n_folded; j++)
        t->fold.x[j] = j < h ? t->x_ring + g->r.x_offset[j] : t->x;
    if (w->n_tokens == 0) return;

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

#endif
