// mamba2_step_tokens but for the state: how every record and token enters each token's output, and the outputs.
//
// With h records, t tokens, s_k of the whole history as in prims/cpu_fold.h and processed dt d of the tokens:
//   y_i = e^(A (d_0 + .. + d_i)) (e^(A sum of the history's d) (S . C_i) + sum_k s_k (B_k . C_i) x_k)
//         + sum of the tokens k <= i: d_k e^(A (d_(k+1) + .. + d_i)) (B_k . C_i) x_k  +  D x_i
// After a fold the history is in S. A token never meets a later one, not even times zero.
#ifndef RSSM_CPU_MAMBA2_STEP_TOKENS_TERMS_H
#define RSSM_CPU_MAMBA2_STEP_TOKENS_TERMS_H

#include "prims/cpu_mamba2_place.h"

enum {
    TILE_ROWS = 4,                               // rows, or records of B, whose products are taken together
    TILE_TOKENS = 2,                             // with the C of so many tokens
    OUTPUT_TOKENS = 4,                           // outputs that share a pass over the records
    MAX_WIDTH = (MAX_STATE_SIZE + 15) / 16 * 16, // of a token's C: whole vectors, at their own alignment
};

RSSM_ASSERT(BLOCK % TILE_ROWS == 0, "a block holds whole tiles");
RSSM_ASSERT(TILE_ROWS == 4, "rows of a tile are listed one by one");

// What products with C are taken of.
enum {
    OF_STATE,  // T_state, in state order when loaded in pairs
    OF_FOLDED, // float, in state order
    OF_B,      // T_act, in natural order
};

typedef struct group_terms {
    history            r;
    rssm_i32           width;                       // of a token's C
    float              B_dot_C[MAX_TOKENS * TERMS]; // [token][record, then token]; of what the state does not take
    _Alignas(64) float C[MAX_TOKENS * MAX_WIDTH];   // natural order while B . C is taken, then state order
} group_terms;

typedef struct head_terms {
    fold_head    fold;
    float        dt[MAX_TOKENS];            // processed, of the tokens
    rssm_i32     n_read;                    // history records that are read: all or, after a fold, none
    const T_act *x[MAX_RECORDS];            // of them, then of the tokens
    float        read_decay[MAX_TOKENS];    // of S . C_i
    float        weight[MAX_TOKENS][TERMS]; // [i][k]: factor of x[k] in y_i
} head_terms;

// -------------------------------------------------------------------------------------------------------- products

RSSM_INLINE rssm_vpair load_pair(const void *row, rssm_i32 n, const rssm_i32 kind)
{
    if (kind == OF_STATE) return rssm_load_pair((const T_state *)row + n);
    if (kind == OF_FOLDED) {
        const float *floats = (const float *)row + n;
        return (rssm_vpair){rssm_vload(floats), rssm_vload(floats + CFG_VEC)};
    }
    const T_act *values = (const T_act *)row + n;
    return (rssm_vpair){rssm_vload(values), rssm_vload(values + CFG_VEC)};
}

RSSM_INLINE float load_one(const void *row, rssm_i32 n, const rssm_i32 kind)
{
    if (kind == OF_STATE) return rssm_to_float(((const T_state *)row)[n]);
    if (kind == OF_FOLDED) return ((const float *)row)[n];
    return rssm_to_float(((const T_act *)row)[n]);
}

// to[i][r] += rows[r] . C_i over whole pairs of columns, for n_rows rows and n_tokens tokens `width` apart. A single
// row takes two sums per token, which halves the chain of additions. With `ahead`, as much state as is read is asked
// for, PREFETCH bytes behind it, bit by bit: a burst of requests would hold up the loads.
RSSM_INLINE void add_tile(const void *const *rows, rssm_i32 n_columns, const float *C, rssm_i32 width, float *to,
                          rssm_i32 to_stride, const T_state *ahead, const rssm_i32 kind, const rssm_i32 n_rows,
                          const rssm_i32 n_tokens)
{
    const rssm_i64 step_bytes = PAIR * n_rows * (rssm_i64)sizeof(T_state);
    rssm_vf        sum[TILE_TOKENS][TILE_ROWS] = {{{0}}};
    rssm_vf        odd[TILE_TOKENS] = {{0}};
    for (rssm_i32 n = 0; n + PAIR <= n_columns; n += PAIR) {
        if (ahead) rssm_prefetch(ahead, CFG_PREFETCH + n / PAIR * step_bytes, step_bytes);
        RSSM_UNROLL
        for (rssm_i32 r = 0; r < n_rows; r++) {
            const rssm_vpair s = load_pair(rows[r], n, kind);
            RSSM_UNROLL
            for (rssm_i32 i = 0; i < n_tokens; i++) {
                const rssm_vf b = rssm_vload(C + i * width + n + CFG_VEC);
                sum[i][r] = sum[i][r] + s.a * rssm_vload(C + i * width + n);
                if (n_rows == 1) {
                    odd[i] = odd[i] + s.b * b;
                } else {
                    sum[i][r] = sum[i][r] + s.b * b;
                }
            }
        }
    }
    RSSM_UNROLL
    for (rssm_i32 i = 0; i < n_tokens; i++) {
        if (n_rows == 1) {
            to[i * to_stride] += rssm_vsum(sum[i][0] + odd[i]);
        } else {
            rssm_vsum_four(to + i * to_stride, sum[i]);
        }
    }
}

// The same for any number of tokens, and all columns.
RSSM_INLINE void add_products(const void *const *rows, rssm_i32 n_columns, const float *C, rssm_i32 width,
                              rssm_i32 n_tokens, float *to, rssm_i32 to_stride, const T_state *ahead,
                              const rssm_i32 kind, const rssm_i32 n_rows)
{
    const T_state *none = (const T_state *)0;
    rssm_i32       i = 0;
    for (; i + TILE_TOKENS <= n_tokens; i += TILE_TOKENS)
        add_tile(rows, n_columns, C + i * width, width, to + i * to_stride, to_stride, i ? none : ahead, kind, n_rows,
                 TILE_TOKENS);
    if (i < n_tokens)
        add_tile(rows, n_columns, C + i * width, width, to + i * to_stride, to_stride, i ? none : ahead, kind, n_rows,
                 1);
    for (rssm_i32 n = n_columns / PAIR * PAIR; n < n_columns; n++) {
        for (rssm_i32 r = 0; r < n_rows; r++) {
            const float value = load_one(rows[r], n, kind);
            for (i = 0; i < n_tokens; i++)
                to[i * to_stride + r] += value * C[i * width + n];
        }
    }
}

// ----------------------------------------------------------------------------------------------------------- group

// B_k . C_i of records and tokens from n_folded on.
RSSM_INLINE void multiply_B(const place *w, group_terms *g)
{
    const rssm_i32 N = state_size_of(&w->s);
    const T_state *none = (const T_state *)0;
    const rssm_i32 end = w->n_history + w->n_tokens;
    rssm_i32       k = w->n_folded;

    for (rssm_i32 i = 0; i < w->n_tokens; i++) {
        for (rssm_i32 j = k; j < end; j++)
            g->B_dot_C[i * TERMS + j] = 0.0f;
    }
    for (; k + TILE_ROWS <= end; k += TILE_ROWS) {
        const void *rows[TILE_ROWS] = {g->r.B[k], g->r.B[k + 1], g->r.B[k + 2], g->r.B[k + 3]};
        add_products(rows, N, g->C, g->width, w->n_tokens, g->B_dot_C + k, TERMS, none, OF_B, TILE_ROWS);
    }
    for (; k < end; k++) {
        const void *rows[] = {g->r.B[k]};
        add_products(rows, N, g->C, g->width, w->n_tokens, g->B_dot_C + k, TERMS, none, OF_B, 1);
    }
}

RSSM_APART void load_group(const step_args *args, const place *w, group_terms *g)
{
    const rssm_i32 N = state_size_of(&w->s);

    find_history(args, w, &g->r);
    g->width = (N + 15) / 16 * 16;
    for (rssm_i32 i = 0; i < w->n_tokens; i++) {
        g->r.B[w->n_history + i] = token_at(&args->B, w->d.token + i, w->part.group);
        widen(g->C + i * g->width, token_at(&args->C, w->d.token + i, w->part.group), N);
    }
    multiply_B(w, g);
    for (rssm_i32 i = 0; i < w->n_tokens && STATE_IS_BF16; i++) {
        _Alignas(64) float row[MAX_STATE_SIZE];
        for (rssm_i32 n = 0; n < N; n++)
            row[n] = g->C[i * g->width + n];
        rssm_state_order(g->C + i * g->width, row, N);
    }
}

// ------------------------------------------------------------------------------------------------------------ head

// Weights of the history's x, `scale` being its s_k, and of the tokens' own.
RSSM_INLINE void load_weights(const step_args *args, const place *w, const group_terms *g, rssm_i32 head,
                              float read_decay, const float *scale, head_terms *t)
{
    const float    D = args->D ? rssm_float_at(args->D, head, args->parameter_type) : 0.0f;
    const rssm_i32 h = w->n_history;
    for (rssm_i32 i = 0; i < w->n_tokens; i++) {
        float       own[TERMS];
        const float decay = decay_scales(args->A[head], t->dt, i + 1, own);
        t->read_decay[i] = read_decay * decay;
        for (rssm_i32 k = 0; k < t->n_read; k++)
            t->weight[i][k] = scale[k] * decay * g->B_dot_C[i * TERMS + k];
        for (rssm_i32 k = 0; k <= i; k++)
            t->weight[i][t->n_read + k] = own[k] * g->B_dot_C[i * TERMS + h + k];
        t->weight[i][t->n_read + i] += D;
    }
}

RSSM_APART void load_head(const step_args *args, const place *w, const group_terms *g, rssm_i32 head, head_terms *t)
{
    const float   *dt_ring = dt_ring_at(&args->dt_ring, w->d.slot, head, 0);
    const T_act   *x_ring = ring_at(&args->x_ring, w->d.slot, head, 0);
    const rssm_i32 h = w->n_history;
    float          dt[TERMS] = {0};

    for (rssm_i32 k = 0; k < h; k++) {
        dt[k] = dt_ring[g->r.dt_offset[k]];
        t->fold.x[k] = x_ring + g->r.x_offset[k];
    }
    t->fold.decay = decay_scales(args->A[head], dt, h, t->fold.scale);
    if (w->n_tokens == 0) return;

    t->n_read = w->n_folded ? 0 : h;
    for (rssm_i32 k = 0; k < t->n_read; k++)
        t->x[k] = t->fold.x[k];
    for (rssm_i32 i = 0; i < w->n_tokens; i++) {
        t->x[t->n_read + i] = token_at(&args->x, w->d.token + i, head);
        t->dt[i] = token_dt(args, w, i, head);
    }
    load_weights(args, w, g, head, w->n_folded ? 1.0f : t->fold.decay, t->fold.scale, t);
}

// --------------------------------------------------------------------------------------------------------- outputs

// Rows of a block and their records, for the outputs of some of its lanes.
typedef struct block_terms {
    const float (*x)[BLOCK]; // of the records that are read, then of the tokens
    const float *y;          // [token][BLOCK]: S . C_i
    rssm_i32     first;      // of the block's rows in the head
} block_terms;

// Lanes [p, p + lanes) of n_tokens tokens from i.
RSSM_INLINE void finish_tile(const step_args *args, const place *w, const head_terms *t, const block_terms *b,
                             rssm_i32 head, rssm_i32 i, rssm_i32 p, rssm_i32 lanes, const rssm_i32 n_tokens)
{
    rssm_vf sum[OUTPUT_TOKENS];

    RSSM_UNROLL
    for (rssm_i32 e = 0; e < n_tokens; e++)
        sum[e] = rssm_vload(b->y + (i + e) * BLOCK + p) * t->read_decay[i + e];
    for (rssm_i32 k = 0; k < t->n_read; k++) {
        const rssm_vf x = rssm_vload(b->x[k] + p);
        RSSM_UNROLL
        for (rssm_i32 e = 0; e < n_tokens; e++)
            sum[e] = sum[e] + x * t->weight[i + e][k];
    }
    RSSM_UNROLL
    for (rssm_i32 e = 0; e < n_tokens; e++) {
        const rssm_i32 token = w->d.token + i + e;
        for (rssm_i32 k = t->n_read; k <= t->n_read + i + e; k++)
            sum[e] = sum[e] + rssm_vload(b->x[k] + p) * t->weight[i + e][k];
        if (args->z.data)
            sum[e] = sum[e] * rssm_vsilu(rssm_vload_n(token_at(&args->z, token, head) + b->first + p, lanes));
        rssm_vstore_n(token_at(&args->out, token, head) + b->first + p, sum[e], lanes);
    }
}

RSSM_INLINE void finish_lanes(const step_args *args, const place *w, const head_terms *t, const block_terms *b,
                              rssm_i32 head, rssm_i32 p, rssm_i32 lanes)
{
    rssm_i32 i = 0;
    for (; i + OUTPUT_TOKENS <= w->n_tokens; i += OUTPUT_TOKENS)
        finish_tile(args, w, t, b, head, i, p, lanes, OUTPUT_TOKENS);
    for (; i < w->n_tokens; i++)
        finish_tile(args, w, t, b, head, i, p, lanes, 1);
}

// Outputs of n_rows rows of a head from `first`, from y[token][BLOCK] = S . C. Lanes behind n_rows are never stored.
RSSM_APART void finish_rows(const step_args *args, const place *w, const head_terms *t, rssm_i32 head, rssm_i32 first,
                            rssm_i32 n_rows, const float *y)
{
    _Alignas(64) float x[MAX_RECORDS][BLOCK];
    const block_terms  b = {(const float(*)[BLOCK])x, y, first};
    rssm_i32           p = 0;

    for (rssm_i32 k = 0; k < t->n_read + w->n_tokens; k++) {
        for (p = 0; p + CFG_VEC <= n_rows; p += CFG_VEC)
            rssm_vstore(x[k] + p, rssm_vload(t->x[k] + first + p));
        if (p < n_rows) rssm_vstore(x[k] + p, rssm_vload_n(t->x[k] + first + p, n_rows - p));
    }
    for (p = 0; p + CFG_VEC <= n_rows; p += CFG_VEC)
        finish_lanes(args, w, t, &b, head, p, CFG_VEC);
    if (p < n_rows) finish_lanes(args, w, t, &b, head, p, n_rows - p);
}

#endif
