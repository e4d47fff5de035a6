// Folding records into the checkpoint: the one routine for every CPU kernel that does so.
//
// Of a head, with records 0 .. n-1 from the oldest to the newest, processed dt d_j and A:
//   s_j = d_j e^(A (d_(j+1) + .. + d_(n-1)))     S'[p,:] = e^(A (d_0 + .. + d_(n-1))) S[p,:] + sum_j s_j x_j[p] B_j
// The sums in the exponents run backwards over live records: no difference of prefixes, no exponent of a dead record.
//
// Invariant: the bits of S' depend on S and the records alone. Every element takes the same operations in the same
// order, whatever the vectors, the rows in registers or the kernel. Compilers fuse a product and an addition where the
// target can (-ffp-contract=fast), and of a sum of two products they would choose one or the other: so the first
// product, that of S, is rounded, and each record's is fused. So a materialize writes what a step's flush would.
// Include rssm_config.h first; it needs VEC, FOLD_ROWS and PREFETCH. Not for device code.
#ifndef RSSM_PRIMS_CPU_FOLD_H
#define RSSM_PRIMS_CPU_FOLD_H

#include "prims/cpu_mamba2_part.h"
#include "prims/cpu_math.h"
#include "prims/cpu_state.h"

enum {
    BLOCK = 16,      // state rows between two visits to the x ring: short enough for loads to run ahead meanwhile
    FOLD_PAIRS = 4,  // pairs of vectors of a row that a fold keeps in registers
    COLUMNS = 256,   // columns of B held as floats: 17 records of 128 columns are a quarter of an L1
    B_COLUMNS = MAX_STATE_SIZE < COLUMNS ? MAX_STATE_SIZE : COLUMNS,
    TERMS = (MAX_RECORDS + 1 + CFG_VEC - 1) / CFG_VEC * CFG_VEC, // a factor per record and the state's; whole vectors
};

RSSM_ASSERT(CFG_FOLD_ROWS == 1 || CFG_FOLD_ROWS == 2, "16 accumulators at most");
RSSM_ASSERT(BLOCK % CFG_FOLD_ROWS == 0 && BLOCK % CFG_VEC == 0, "a block holds whole groups");
RSSM_ASSERT(COLUMNS % PAIR == 0, "only a row's last columns are out of state order");

// B of a group's folded records.
typedef struct fold_columns {
    const T_act *const *B_record;                 // [n_records]
    rssm_i32            n_records;
    rssm_i32            first;                    // column that B begins with; -1: none yet
    _Alignas(64) float  B[MAX_RECORDS][B_COLUMNS]; // in state order
} fold_columns;

// What a head gives to its fold.
typedef struct fold_head {
    float        decay;
    float        scale[TERMS]; // s_j
    const T_act *x[MAX_RECORDS];
} fold_head;

// What becomes of the folded rows but for their place in the checkpoint; constants where they are given.
typedef struct fold_use {
    const float *C;         // not NULL: y[r] += S'[r,:] . C, from the first column, in state order
    float       *y;
    float       *unrounded; // not NULL: S' in state order, rows B_COLUMNS apart
} fold_use;

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

// --------------------------------------------------------------------------------------------------- in registers

typedef struct fold_tile_terms {
    const float (*x)[BLOCK];     // s_j x_j, from the first row
    const float (*B)[B_COLUMNS]; // from the first column
    rssm_i32     n_records;
    float        decay;
} fold_tile_terms;

// Folds `pairs` pairs of `rows` rows, N apart, at column n; sum[r] += S'[r,..] . C.
RSSM_INLINE void fold_tile(const T_state *from, T_state *to, rssm_i32 N, rssm_i32 n, const fold_tile_terms *f,
                           const fold_use *use, rssm_vf *sum, const rssm_i32 rows, const rssm_i32 pairs)
{
    rssm_vpair acc[CFG_FOLD_ROWS][FOLD_PAIRS];

    RSSM_UNROLL
    for (rssm_i32 r = 0; r < rows; r++) {
        RSSM_UNROLL
        for (rssm_i32 k = 0; k < pairs; k++) {
            const rssm_vpair s = rssm_load_pair(from + (rssm_i64)r * N + n + k * PAIR);
            acc[r][k].a = rssm_vproduct(s.a, rssm_vsplat(f->decay));
            acc[r][k].b = rssm_vproduct(s.b, rssm_vsplat(f->decay));
        }
    }
    rssm_keep_order();
    for (rssm_i32 j = 0; j < f->n_records; j++) {
        RSSM_UNROLL
        for (rssm_i32 k = 0; k < pairs; k++) {
            const rssm_vf a = rssm_vload(f->B[j] + n + k * PAIR);
            const rssm_vf b = rssm_vload(f->B[j] + n + k * PAIR + CFG_VEC);
            RSSM_UNROLL
            for (rssm_i32 r = 0; r < rows; r++) {
                acc[r][k].a = acc[r][k].a + a * f->x[j][r];
                acc[r][k].b = acc[r][k].b + b * f->x[j][r];
            }
        }
    }
    RSSM_UNROLL
    for (rssm_i32 r = 0; r < rows; r++) {
        RSSM_UNROLL
        for (rssm_i32 k = 0; k < pairs; k++) {
            const rssm_i32 at = n + k * PAIR;
            if (use->C) {
                sum[r] = sum[r] + acc[r][k].a * rssm_vload(use->C + at);
                sum[r] = sum[r] + acc[r][k].b * rssm_vload(use->C + at + CFG_VEC);
            }
            if (use->unrounded) {
                rssm_vstore(use->unrounded + r * B_COLUMNS + at, acc[r][k].a);
                rssm_vstore(use->unrounded + r * B_COLUMNS + at + CFG_VEC, acc[r][k].b);
            }
            rssm_store_pair(to + (rssm_i64)r * N + at, acc[r][k]);
        }
    }
}

// Folds columns [0, n_columns) of `rows` rows that are N apart.
RSSM_INLINE void fold_rows(const T_state *from, T_state *to, rssm_i32 N, rssm_i32 n_columns, const fold_tile_terms *f,
                           const fold_use *use, const rssm_i32 rows)
{
    const rssm_i32 asks_ahead = CFG_PREFETCH > 0 && f->n_records > 1;
    rssm_vf        sum[CFG_FOLD_ROWS];
    rssm_i32       n = 0;

    RSSM_UNROLL
    for (rssm_i32 r = 0; r < rows; r++) {
        sum[r] = (rssm_vf){0};
        if (asks_ahead) rssm_prefetch(from + (rssm_i64)r * N, CFG_PREFETCH, n_columns * (rssm_i64)sizeof(T_state));
    }
    for (; n + FOLD_PAIRS * PAIR <= n_columns; n += FOLD_PAIRS * PAIR)
        fold_tile(from, to, N, n, f, use, sum, rows, FOLD_PAIRS);
    for (; n + PAIR <= n_columns; n += PAIR)
        fold_tile(from, to, N, n, f, use, sum, rows, 1);
    for (rssm_i32 r = 0; r < rows; r++) {
        for (rssm_i32 tail = n; tail < n_columns; tail++) {
            float s = rssm_product(rssm_to_float(from[(rssm_i64)r * N + tail]), f->decay);
            for (rssm_i32 j = 0; j < f->n_records; j++)
                s += f->B[j][tail] * f->x[j][r];
            rssm_store_float(to + (rssm_i64)r * N + tail, s);
            if (use->unrounded) use->unrounded[r * B_COLUMNS + tail] = s;
            if (use->C) use->y[r] += s * use->C[tail];
        }
        if (use->C) use->y[r] += rssm_vsum(sum[r]);
    }
}

// ----------------------------------------------------------------------------------------------- a block of rows

// On return c->B holds the records from column `first`.
RSSM_INLINE void load_columns(fold_columns *c, rssm_i32 first, rssm_i32 n_columns)
{
    _Alignas(64) float row[B_COLUMNS];
    if (c->first == first) return;
    c->first = first;
    for (rssm_i32 j = 0; j < c->n_records; j++) {
        widen(row, c->B_record[j] + first, n_columns);
        rssm_state_order(c->B[j], row, n_columns);
    }
}

// x[j][p] = s_j x_j[first + p].
RSSM_INLINE void load_scaled_x(const fold_head *t, rssm_i32 n_records, rssm_i32 first, rssm_i32 n_rows,
                               float (*x)[BLOCK])
{
    for (rssm_i32 j = 0; j < n_records; j++) {
        const T_act *from = t->x[j] + first;
        rssm_i32     p = 0;
        for (; p + CFG_VEC <= n_rows; p += CFG_VEC)
            rssm_vstore(x[j] + p, rssm_vload(from + p) * t->scale[j]);
        for (; p < n_rows; p++)
            x[j][p] = rssm_to_float(from[p]) * t->scale[j];
    }
}

// Folds columns [n, n + n_columns), at most B_COLUMNS, of n_rows <= BLOCK rows that are N apart, from `from` to `to`,
// which may be the same. x as load_scaled_x leaves it.
RSSM_INLINE void fold_block(const T_state *from, T_state *to, rssm_i32 N, rssm_i32 n, rssm_i32 n_columns,
                            fold_columns *c, float decay, const float (*x)[BLOCK], rssm_i32 n_rows,
                            const fold_use *use)
{
    rssm_i32 p = 0;

    load_columns(c, n, n_columns);
    while (p < n_rows) {
        const rssm_i64        at = (rssm_i64)p * N + n;
        const fold_tile_terms f = {(const float(*)[BLOCK])(x[0] + p), c->B, c->n_records, decay};
        const fold_use        u = {use->C, use->C ? use->y + p : (float *)0,
                                   use->unrounded ? use->unrounded + p * B_COLUMNS : (float *)0};
        if (p + CFG_FOLD_ROWS <= n_rows) {
            fold_rows(from + at, to + at, N, n_columns, &f, &u, CFG_FOLD_ROWS);
            p += CFG_FOLD_ROWS;
        } else {
            fold_rows(from + at, to + at, N, n_columns, &f, &u, 1);
            p++;
        }
    }
}

#endif
