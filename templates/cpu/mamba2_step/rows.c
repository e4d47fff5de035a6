// mamba2_step_rows: one Mamba-2 decode step of one layer, the state streamed row by row.
//
// Math     Of a head, with records j (history, then the token), s_j and decay as in prims/cpu_fold.h:
//            fold   S'[p,:] = decay S[p,:] + sum_j s_j x_j[p] B_j
//            read   y[p]    = decay (S[p,:] . C) + sum_j s_j (B_j . C) x_j[p]
//          then y += D x, the z gate, one rounding. A row that folds reads from S' before it is rounded. fp32
//          throughout.
// Modes    APPEND        read over the history and the token; ring[start + h] = token
//          FOLD_HISTORY  fold the history, then read the token; ring[start + h] = token. With h = 0: as APPEND
//          FOLD_ALL      fold the history and the token; no record is written
//          No token (t = 0, or a null row): zeros to the row's outputs (abi/cursor.h).
// Layout   abi/mamba2_step.h. Any strides, any head_dim; state_size <= 1024; rings <= 96.
// Tasks    A task is up to HEADS heads of one group of one batch row, or one of SPLIT parts of a head's rows. It reads
//          what no task writes, or writes itself: x ring and outputs by rows, dt ring by a head's first part, B ring by
//          a group's first task.
// Flow     1 locate  2 C to float, B_j . C; ask for the first head's rings
//          per head: 3 record weights, ask for the next head's rings; per BLOCK rows: 4 read or fold the state,
//          strictly in the order of its addresses, asking PREFETCH bytes ahead  5 records, D, gate, output; 6 append
// Traffic  The state once; a fold stores it once, however many records. Rings once per head, B ring once per task.
#include "rssm_config.h"

#include "prims/cpu_mamba2_output.h"

enum {
    READ_ROWS = 4,      // rows whose sums over the lanes are taken together
    FIRST_BYTES = 4096, // of the state, asked for while the group's terms are computed
};

// Contract with rows.json.
RSSM_ASSERT(CFG_MAX_TOKENS <= 1, "one token per row");
RSSM_ASSERT(BLOCK % READ_ROWS == 0, "a block holds whole groups");

// What the state's rows are multiplied with, in state order.
typedef struct row_terms {
    _Alignas(64) float C[MAX_STATE_SIZE];
    fold_columns       columns;
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

// ------------------------------------------------------------------------------------------------------------ step

// As read_block, from the folded state, which replaces the old one.
RSSM_INLINE void fold_and_read(T_state *S, rssm_i32 N, const head_terms *t, row_terms *m, rssm_i32 first,
                               rssm_i32 n_rows, float *y)
{
    _Alignas(64) float x[MAX_RECORDS][BLOCK];

    load_scaled_x(&t->fold, m->columns.n_records, first, n_rows, x);
    for (rssm_i32 p = 0; p < n_rows; p++)
        y[p] = 0.0f;
    for (rssm_i32 n = 0; n < N; n += B_COLUMNS) {
        const rssm_i32 n_columns = N - n < B_COLUMNS ? N - n : B_COLUMNS;
        const fold_use use = {.C = m->C + n, .y = y};
        fold_block(S, S, N, n, n_columns, &m->columns, t->fold.decay, (const float(*)[BLOCK])x, n_rows, &use);
    }
}

RSSM_INLINE void step_head(const step_args *args, const place *w, const group_terms *g, const head_terms *t,
                           row_terms *m, rssm_i32 head)
{
    const rssm_i32 N = state_size_of(&w->s);
    const rssm_i32 end = w->part.row_end;
    for (rssm_i32 first = w->part.row_begin; first < end; first += BLOCK) {
        const rssm_i32     n_rows = end - first < BLOCK ? end - first : BLOCK;
        T_state           *S = state_at(&args->state, &w->s, w->d.slot, head, first);
        _Alignas(64) float y[BLOCK];
        if (w->n_folded > 0) {
            fold_and_read(S, N, t, m, first, n_rows, y);
        } else {
            read_block(S, N, m->C, n_rows, y);
        }
        if (w->n_tokens > 0) finish_rows(args, w, g, t, head, first, n_rows, y);
    }
}

void mamba2_step_rows(const rssm_mamba2_step_kernel_args *args, rssm_i64 task);

void mamba2_step_rows(const rssm_mamba2_step_kernel_args *args, rssm_i64 task)
{
    const place    w = locate(args, task, 1);
    const rssm_i32 appends = w.n_tokens > 0 && w.d.mode != RSSM_MODE_FOLD_ALL;
    group_terms    g;
    row_terms      m;

    if (w.n_tokens == 0) write_zeros(args, &w, 1);
    if ((w.n_tokens == 0 && w.n_folded == 0) || w.part.row_begin >= w.part.row_end) return;

    rssm_prefetch(state_at(&args->state, &w.s, w.d.slot, w.part.head_begin, w.part.row_begin), 0, FIRST_BYTES);
    load_group(args, &w, &g);
    prefetch_rings(args, &w, &g.r, w.part.head_begin);
    rssm_state_order(m.C, g.C, state_size_of(&w.s));
    m.columns.B_record = g.r.B;
    m.columns.n_records = w.n_folded;
    m.columns.first = -1;
    for (rssm_i32 head = w.part.head_begin; head < w.part.head_end; head++) {
        head_terms t;
        load_head(args, &w, &g, head, &t);
        if (head + 1 < w.part.head_end) prefetch_rings(args, &w, &g.r, head + 1);
        step_head(args, &w, &g, &t, &m, head);
        if (appends) append_head(args, &w, 0, head, t.dt);
    }
    if (appends && w.part.owns_group) append_group(args, &w, 0);
}
