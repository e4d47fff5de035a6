// mamba2_step_rows: one Mamba-2 decode step of one layer, the state streamed row by row.
//
// Math     Of a head, with records j (history, then the token), s_j and decay as in prims/cpu_mamba2_terms.h:
//            fold   S'[p,:] = decay S[p,:] + sum_j s_j x_j[p] B_j
//            read   y[p]    = decay (S[p,:] . C) + sum_j s_j (B_j . C) x_j[p]
//          then y += D x, the z gate, one rounding. A row that folds reads from S' before it is rounded. fp32
//          throughout.
// Modes    APPEND        read over the history and the token; ring[start + h] = token
//          FOLD_HISTORY  fold the history, then read the token; ring[start + h] = token. With h = 0: as APPEND
//          FOLD_ALL      fold the history and the token; no record is written
//          No token (t = 0, or a null row): zeros to the row's outputs; a negative `token` means it has none.
// Layout   abi/mamba2_step.h. Any strides, any head_dim; state_size <= 1024; rings <= 64.
// Tasks    A task is up to HEADS heads of one group of one batch row, or one of SPLIT parts of a head's rows. It reads
//          what no task writes, or writes itself: x ring and outputs by rows, dt ring by a head's first part, B ring by
//          a group's first task.
// Flow     1 locate  2 C to float, B_j . C; ask for the first head's rings
//          per head: 3 record weights, ask for the next head's rings; per BLOCK rows: 4 read or fold the state,
//          strictly in the order of its addresses, asking PREFETCH bytes ahead  5 records, D, gate, output; 6 append
// Traffic  The state once; a fold stores it once, however many records. Rings once per head, B ring once per task.
#include "rssm_config.h"

#include "prims/cpu_mamba2_output.h"
#include "prims/cpu_state.h"

enum {
    BLOCK = 16,         // state rows between two visits to the x ring: short enough for loads to run ahead meanwhile
    READ_ROWS = 4,      // rows whose sums over the lanes are taken together
    FOLD_PAIRS = 4,     // pairs of vectors of a row that a fold keeps in registers
    FIRST_BYTES = 4096, // of the state, asked for while the group's terms are computed
    COLUMNS = 256,      // columns of B held as floats for a fold: 17 records of 128 columns are a quarter of an L1
    B_COLUMNS = MAX_STATE_SIZE < COLUMNS ? MAX_STATE_SIZE : COLUMNS,
};

// Contract with rows.json.
RSSM_ASSERT(CFG_FOLD_ROWS == 1 || CFG_FOLD_ROWS == 2, "16 accumulators at most");
RSSM_ASSERT(BLOCK % READ_ROWS == 0 && BLOCK % CFG_FOLD_ROWS == 0 && BLOCK % CFG_VEC == 0, "a block holds whole groups");
RSSM_ASSERT(COLUMNS % PAIR == 0, "only a row's last columns are out of state order");

// What the state's rows are multiplied with, in state order.
typedef struct row_terms {
    _Alignas(64) float C[MAX_STATE_SIZE];
    _Alignas(64) float B[MAX_RECORDS][B_COLUMNS]; // of the folded records, from column first_column
    rssm_i32 first_column;                        // -1: none yet
} row_terms;

// ------------------------------------------------------------------------------------------------------------ read

// S . C for one row: whole vectors in *sum, the rest returned.
RSSM_INLINE float read_row(const T_state *S, rssm_i32 N, const float *C, rssm_vf *sum)
{
    rssm_vf  even = {0};
    rssm_vf  odd = {0};
    float    tail = 0.0f;
    rssm_i32 n = 0;
    for (; n + PAIR <= N; n += PAIR) {
        const rssm_vpair s = rssm_load_pair(S + n);
        even = even + s.a * rssm_vload(C + n);
        odd = odd + s.b * rssm_vload(C + n + CFG_VEC);
    }
    for (; n < N; n++)
        tail += rssm_to_float(S[n]) * C[n];
    rssm_keep_order();
    *sum = even + odd;
    return tail;
}

// y[p] = S[p,:] . C for n_rows <= BLOCK rows.
RSSM_INLINE void read_block(const T_state *S, rssm_i32 N, const float *C, rssm_i32 n_rows, float *y)
{
    rssm_i32 p = 0;
    for (; p + READ_ROWS <= n_rows; p += READ_ROWS) {
        rssm_vf sum[READ_ROWS];
        RSSM_UNROLL
        for (rssm_i32 r = 0; r < READ_ROWS; r++)
            y[p + r] = read_row(S + (rssm_i64)(p + r) * N, N, C, &sum[r]);
        rssm_vsum_four(y + p, sum);
    }
    for (; p < n_rows; p++) {
        rssm_vf sum;
        y[p] = read_row(S + (rssm_i64)p * N, N, C, &sum);
        y[p] += rssm_vsum(sum);
    }
}

// ------------------------------------------------------------------------------------------------------------ fold

// A fold of some rows and columns of the state: S'[r,n] = decay S[r,n] + sum_j x[j][r] B[j][n].
typedef struct fold_tile_terms {
    const float (*x)[BLOCK];     // s_j x_j, from the first row
    const float (*B)[B_COLUMNS]; // from the first column
    const float *C;
    rssm_i32     n_records;
    float        decay;
} fold_tile_terms;

// Folds `pairs` pairs of `rows` rows at column n; sum[r] += S'[r,..] . C.
RSSM_INLINE void fold_tile(T_state *S, rssm_i32 N, rssm_i32 n, const fold_tile_terms *f, rssm_vf *sum,
                           const rssm_i32 rows, const rssm_i32 pairs)
{
    rssm_vpair acc[CFG_FOLD_ROWS][FOLD_PAIRS];

    RSSM_UNROLL
    for (rssm_i32 r = 0; r < rows; r++) {
        RSSM_UNROLL
        for (rssm_i32 k = 0; k < pairs; k++) {
            const rssm_vpair s = rssm_load_pair(S + (rssm_i64)r * N + n + k * PAIR);
            acc[r][k] = (rssm_vpair){s.a * f->decay, s.b * f->decay};
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
            sum[r] = sum[r] + acc[r][k].a * rssm_vload(f->C + n + k * PAIR);
            sum[r] = sum[r] + acc[r][k].b * rssm_vload(f->C + n + k * PAIR + CFG_VEC);
            rssm_store_pair(S + (rssm_i64)r * N + n + k * PAIR, acc[r][k]);
        }
    }
}

// Folds columns [0, n_columns) of `rows` rows that are N apart; y[r] += S'[r,:] . C.
RSSM_INLINE void fold_rows(T_state *S, rssm_i32 N, rssm_i32 n_columns, const fold_tile_terms *f, float *y,
                           const rssm_i32 rows)
{
    const rssm_i32 asks_ahead = CFG_PREFETCH > 0 && f->n_records > 1;
    rssm_vf        sum[CFG_FOLD_ROWS];
    rssm_i32       n = 0;

    RSSM_UNROLL
    for (rssm_i32 r = 0; r < rows; r++) {
        sum[r] = (rssm_vf){0};
        if (asks_ahead) rssm_prefetch(S + (rssm_i64)r * N, CFG_PREFETCH, n_columns * (rssm_i64)sizeof(T_state));
    }
    for (; n + FOLD_PAIRS * PAIR <= n_columns; n += FOLD_PAIRS * PAIR)
        fold_tile(S, N, n, f, sum, rows, FOLD_PAIRS);
    for (; n + PAIR <= n_columns; n += PAIR)
        fold_tile(S, N, n, f, sum, rows, 1);
    for (rssm_i32 r = 0; r < rows; r++) {
        for (rssm_i32 tail = n; tail < n_columns; tail++) {
            float s = rssm_to_float(S[(rssm_i64)r * N + tail]) * f->decay;
            for (rssm_i32 j = 0; j < f->n_records; j++)
                s += f->x[j][r] * f->B[j][tail];
            rssm_store_float(S + (rssm_i64)r * N + tail, s);
            y[r] += s * f->C[tail];
        }
        y[r] += rssm_vsum(sum[r]);
    }
}

// On return m->B holds the folded records from column `first`.
RSSM_INLINE void load_columns(const place *w, const group_terms *g, row_terms *m, rssm_i32 first, rssm_i32 n_columns)
{
    _Alignas(64) float row[B_COLUMNS];
    if (m->first_column == first) return;
    m->first_column = first;
    for (rssm_i32 j = 0; j < w->n_folded; j++) {
        widen(row, g->B_record[j] + first, n_columns);
        rssm_state_order(m->B[j], row, n_columns);
    }
}

// x[j][p] = s_j x_j[first + p] of the folded records.
RSSM_INLINE void load_scaled_x(const place *w, const group_terms *g, const head_terms *t, rssm_i32 first,
                               rssm_i32 n_rows, float (*x)[BLOCK])
{
    for (rssm_i32 j = 0; j < w->n_folded; j++) {
        const T_act *from = x_record(w, g, t, j) + first;
        rssm_i32     p = 0;
        for (; p + CFG_VEC <= n_rows; p += CFG_VEC)
            rssm_vstore(x[j] + p, rssm_vload(from + p) * t->fold_scale[j]);
        for (; p < n_rows; p++)
            x[j][p] = rssm_to_float(from[p]) * t->fold_scale[j];
    }
}

// As read_block, from the folded state, which replaces the old one.
RSSM_INLINE void fold_block(T_state *S, rssm_i32 N, const place *w, const group_terms *g, const head_terms *t,
                            row_terms *m, rssm_i32 first, rssm_i32 n_rows, float *y)
{
    _Alignas(64) float x[MAX_RECORDS][BLOCK];

    load_scaled_x(w, g, t, first, n_rows, x);
    for (rssm_i32 p = 0; p < n_rows; p++)
        y[p] = 0.0f;
    for (rssm_i32 n = 0; n < N; n += B_COLUMNS) {
        const rssm_i32  n_columns = N - n < B_COLUMNS ? N - n : B_COLUMNS;
        fold_tile_terms f = {.B = m->B, .C = m->C + n, .n_records = w->n_folded, .decay = t->fold_decay};
        rssm_i32        p = 0;

        load_columns(w, g, m, n, n_columns);
        for (; p + CFG_FOLD_ROWS <= n_rows; p += CFG_FOLD_ROWS) {
            f.x = (const float(*)[BLOCK])(x[0] + p);
            fold_rows(S + (rssm_i64)p * N + n, N, n_columns, &f, y + p, CFG_FOLD_ROWS);
        }
        for (; p < n_rows; p++) {
            f.x = (const float(*)[BLOCK])(x[0] + p);
            fold_rows(S + (rssm_i64)p * N + n, N, n_columns, &f, y + p, 1);
        }
    }
}

// ------------------------------------------------------------------------------------------------------------ step

RSSM_INLINE void step_head(const step_args *args, const place *w, const group_terms *g, const head_terms *t,
                           row_terms *m, rssm_i32 head)
{
    const rssm_i32 N = state_size_of(args);
    for (rssm_i32 first = w->row_begin; first < w->row_end; first += BLOCK) {
        const rssm_i32     n_rows = w->row_end - first < BLOCK ? w->row_end - first : BLOCK;
        T_state           *S = state_at(args, w, head, first);
        _Alignas(64) float y[BLOCK];
        if (w->n_folded > 0) {
            fold_block(S, N, w, g, t, m, first, n_rows, y);
        } else {
            read_block(S, N, m->C, n_rows, y);
        }
        if (w->has_token) finish_rows(args, w, g, t, head, first, n_rows, y);
    }
}

void mamba2_step_rows(const rssm_mamba2_step_kernel_args *args, rssm_i64 task);

void mamba2_step_rows(const rssm_mamba2_step_kernel_args *args, rssm_i64 task)
{
    const place    w = locate(args, task);
    const rssm_i32 appends = w.has_token && w.d.mode != RSSM_MODE_FOLD_ALL;
    group_terms    g;
    row_terms      m;

    if (!w.has_token) write_zeros(args, &w);
    if ((!w.has_token && w.n_folded == 0) || w.row_begin >= w.row_end) return;

    rssm_prefetch(state_at(args, &w, w.head_begin, w.row_begin), 0, FIRST_BYTES);
    load_group(args, &w, &g);
    prefetch_rings(args, &w, &g, w.head_begin);
    rssm_state_order(m.C, g.C, state_size_of(args));
    m.first_column = -1;
    for (rssm_i32 head = w.head_begin; head < w.head_end; head++) {
        head_terms t;
        load_head(args, &w, &g, head, &t);
        if (head + 1 < w.head_end) prefetch_rings(args, &w, &g, head + 1);
        step_head(args, &w, &g, &t, &m, head);
        if (appends) append_head(args, &w, &t, head);
    }
    if (appends && w.owns_group) append_group(args, &w, &g);
}
