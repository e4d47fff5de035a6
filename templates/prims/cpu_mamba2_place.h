// Where a task of a CPU Mamba-2 step works: its batch row, its part of the layer, the row's records and tokens; and
// what every step does there, whatever its algorithm: zeros of rows that compute nothing, processed dt, the appends.
// Include rssm_config.h first; it needs VEC, HEADS and SPLIT. Not for device code.
#ifndef RSSM_PRIMS_CPU_MAMBA2_PLACE_H
#define RSSM_PRIMS_CPU_MAMBA2_PLACE_H

#include "prims/cpu_fold.h"

typedef rssm_mamba2_step_kernel_args step_args;

typedef struct place {
    rssm_descriptor d;
    shape           s;
    part            part;
    rssm_i32        n_tokens;  // there are outputs to compute
    rssm_i32        n_history; // live records in the ring
    rssm_i32        n_folded;  // of history and tokens, the first ones enter the state; 0: it is not written
} place;

RSSM_INLINE T_act *token_at(const rssm_token_view *view, rssm_i32 token, rssm_i32 head)
{
    return (T_act *)view->data + token * view->token_stride + head * view->head_stride;
}

// A kernel of several tokens has no FOLD_ALL: such a row does nothing.
RSSM_INLINE void locate_records(place *w, const rssm_i32 most_tokens)
{
    const rssm_i32 is_known = w->d.mode == RSSM_MODE_APPEND || w->d.mode == RSSM_MODE_FOLD_HISTORY ||
                              (w->d.mode == RSSM_MODE_FOLD_ALL && most_tokens == 1);
    const rssm_i32 is_live = w->d.slot >= 0 && is_known;
    w->n_tokens = is_live && w->d.t > 0 ? (w->d.t < most_tokens ? w->d.t : most_tokens) : 0;
    w->n_history = is_live ? w->d.h : 0;
    w->n_folded = 0;
    if (is_live && w->d.mode == RSSM_MODE_FOLD_HISTORY) w->n_folded = w->n_history;
    if (is_live && w->d.mode == RSSM_MODE_FOLD_ALL) w->n_folded = w->n_history + w->n_tokens;
}

RSSM_INLINE place locate(const step_args *args, rssm_i64 task, const rssm_i32 most_tokens)
{
    place          w = {.s = shape_of(args)};
    const rssm_i32 n = tasks_per_row(&w.s);

    w.d = args->descriptors[task / n];
    w.part = part_of(&w.s, (rssm_i32)(task % n));
    locate_records(&w, most_tokens);
    return w;
}

RSSM_INLINE void find_history(const step_args *args, const place *w, history *r)
{
    r->slot = w->d.slot;
    r->start = w->d.start;
    r->n = w->n_history;
    find_records(r, &w->s, &args->x_ring, &args->B_ring, &args->dt_ring, w->part.group);
}

RSSM_INLINE void prefetch_rings(const step_args *args, const place *w, const history *r, rssm_i32 head)
{
    prefetch_records(r, &w->part, &args->x_ring, &args->dt_ring, head);
}

// The outputs of a row that computes nothing (abi/cursor.h, rssm_descriptor).
RSSM_INLINE void write_zeros(const step_args *args, const place *w, const rssm_i32 most_tokens)
{
    const rssm_i32 all = most_tokens == 1 ? 1 : args->max_tokens;
    const rssm_i32 n = w->d.t > 0 ? w->d.t : all;
    if (w->d.token < 0) return;
    for (rssm_i32 i = 0; i < n; i++) {
        for (rssm_i32 head = w->part.head_begin; head < w->part.head_end; head++) {
            T_act *out = token_at(&args->out, w->d.token + i, head);
            for (rssm_i32 p = w->part.row_begin; p < w->part.row_end; p++)
                rssm_store_float(out + p, 0.0f);
        }
    }
}

// Processed dt of the row's token i.
RSSM_INLINE float token_dt(const step_args *args, const place *w, rssm_i32 i, rssm_i32 head)
{
    const rssm_i64 at = (w->d.token + i) * args->dt.token_stride + head * args->dt.head_stride;
    float          dt = rssm_float_at(args->dt.data, at, args->dt_type);
    if (args->dt_bias) dt += rssm_float_at(args->dt_bias, head, args->parameter_type);
    return args->dt_softplus ? rssm_softplus(dt) : dt;
}

// --------------------------------------------------------------------------------------------------------- appends
//
// Token i becomes the record behind the history and the tokens before it. No live record is touched, so other tasks of
// the row may still read those.

RSSM_INLINE rssm_i32 append_row(const place *w, rssm_i32 i)
{
    return rssm_ring_index(w->d.start, w->n_history + i, w->s.ring_length);
}

RSSM_INLINE void append_head(const step_args *args, const place *w, rssm_i32 i, rssm_i32 head, float dt)
{
    const rssm_i32 row = append_row(w, i);
    const T_act   *from = token_at(&args->x, w->d.token + i, head);
    T_act         *x = ring_at(&args->x_ring, w->d.slot, head, row);
    for (rssm_i32 p = w->part.row_begin; p < w->part.row_end; p++)
        x[p] = from[p];
    if (w->part.row_begin == 0) *dt_ring_at(&args->dt_ring, w->d.slot, head, row) = dt;
}

RSSM_INLINE void append_group(const step_args *args, const place *w, rssm_i32 i)
{
    const T_act *from = token_at(&args->B, w->d.token + i, w->part.group);
    T_act       *B = ring_at(&args->B_ring, w->d.slot, w->part.group, append_row(w, i));
    for (rssm_i32 n = 0; n < state_size_of(&w->s); n++)
        B[n] = from[n];
}

#endif
