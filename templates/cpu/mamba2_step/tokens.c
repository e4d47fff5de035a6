// mamba2_step_tokens: one Mamba-2 decode step of several tokens per row; the state is streamed once for all of them.
//
// Math     tokens_terms.h; a fold as in prims/cpu_fold.h: S' = decay S + sum_k s_k x_k B_k over the history. A row that
//          folds reads from S' before it is rounded. Then the z gate, one rounding. fp32 throughout.
// Modes    APPEND        read over the history and the tokens; ring[start + h + i] = token i
//          FOLD_HISTORY  fold the history, then read over the tokens; ring[start + h + i] = token i. With h = 0: as
//                        APPEND. Without a token only the fold
//          No token, a null row, another mode: zeros to the row's outputs (abi/cursor.h).
// Layout   abi/mamba2_step.h. Any strides, any head_dim; state_size <= 1024; rings <= 96; 16 tokens.
// Tasks    A task is up to HEADS heads of one group of one batch row, or one of SPLIT parts of a head's rows. It reads
//          what no task writes, or writes itself: x ring and outputs by rows, dt ring by a head's first part, B ring by
//          a group's first task.
// Flow     1 locate  2 C to float, B_k . C_i; ask for the first head's rings
//          per head: 3 record weights, ask for the next head's rings; per BLOCK rows: 4 S . C_i of all tokens, asking
//          PREFETCH bytes ahead; or fold the rows, which leaves them unrounded in a buffer, and take the products there
//          5 records, D, gate, outputs; 6 append
// Traffic  The state once; a fold stores it once, however many records. Rings once per head, B ring once per task.
#include "rssm_config.h"

#include "cpu/mamba2_step/tokens_terms.h"

enum {
    FIRST_BYTES = 4096, // of the state, asked for while the group's terms are computed
};

// Contract with tokens.json.
RSSM_ASSERT(CFG_MAX_TOKENS == 0 || CFG_MAX_TOKENS >= 2, "one token is another template's");

// One of the last rows of a number that is no multiple of TILE_ROWS.
RSSM_APART void read_row(const shape *s, const T_state *S, const group_terms *g, rssm_i32 n_tokens, float *y)
{
    const void *rows[] = {S};
    add_products(rows, state_size_of(s), g->C, g->width, n_tokens, y, BLOCK, (const T_state *)0, OF_STATE, 1);
}

// y[token][BLOCK]: S[p,:] . C_i for n_rows <= BLOCK rows. A few rows at a time, which stay in the cache over all
// tokens, are not met in the order of their addresses; what is asked for ahead is.
RSSM_APART void read_block(const shape *s, const T_state *S, const group_terms *g, rssm_i32 n_rows, rssm_i32 n_tokens,
                           float *y)
{
    const rssm_i32 N = state_size_of(s);
    rssm_i32       p = 0;
    for (; p + TILE_ROWS <= n_rows; p += TILE_ROWS) {
        const T_state *first = S + (rssm_i64)p * N;
        const T_state *ahead = CFG_PREFETCH > 0 ? first : (const T_state *)0;
        const void    *rows[TILE_ROWS] = {first, first + N, first + 2 * N, first + 3 * N};
        add_products(rows, N, g->C, g->width, n_tokens, y + p, BLOCK, ahead, OF_STATE, TILE_ROWS);
    }
    for (; p < n_rows; p++)
        read_row(s, S + (rssm_i64)p * N, g, n_tokens, y + p);
}

// As read_block, from the folded state, which replaces the old one.
RSSM_APART void fold_and_read(const shape *s, T_state *S, const group_terms *g, const head_terms *t, fold_columns *c,
                              rssm_i32 first, rssm_i32 n_rows, rssm_i32 n_tokens, float *y)
{
    const rssm_i32     N = state_size_of(s);
    _Alignas(64) float x[MAX_RECORDS][BLOCK];
    _Alignas(64) float folded[BLOCK * B_COLUMNS];
    const fold_use     use = {.unrounded = folded};

    load_scaled_x(&t->fold, c->n_records, first, n_rows, x);
    for (rssm_i32 i = n_rows * B_COLUMNS; i < (n_rows + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS * B_COLUMNS; i++)
        folded[i] = 0.0f; // the last tile's rows behind n_rows
    for (rssm_i32 n = 0; n < N; n += B_COLUMNS) {
        const rssm_i32 n_columns = N - n < B_COLUMNS ? N - n : B_COLUMNS;
        fold_block(S, S, N, n, n_columns, c, t->fold.decay, (const float(*)[BLOCK])x, n_rows, &use);
        for (rssm_i32 p = 0; p < n_rows; p += TILE_ROWS) {
            const float   *row = folded + p * B_COLUMNS;
            const void    *rows[TILE_ROWS] = {row, row + B_COLUMNS, row + 2 * B_COLUMNS, row + 3 * B_COLUMNS};
            const T_state *none = (const T_state *)0;
            add_products(rows, n_columns, g->C + n, g->width, n_tokens, y + p, BLOCK, none, OF_FOLDED, TILE_ROWS);
        }
    }
}

RSSM_INLINE void step_head(const step_args *args, const place *w, const group_terms *g, const head_terms *t,
                           fold_columns *c, rssm_i32 head)
{
    const rssm_i32 end = w->part.row_end;
    for (rssm_i32 first = w->part.row_begin; first < end; first += BLOCK) {
        const rssm_i32     n_rows = end - first < BLOCK ? end - first : BLOCK;
        T_state           *S = state_at(&args->state, &w->s, w->d.slot, head, first);
        _Alignas(64) float y[MAX_TOKENS * BLOCK];

        for (rssm_i32 i = 0; i < w->n_tokens * BLOCK; i++)
            y[i] = 0.0f;
        if (w->n_folded > 0) {
            fold_and_read(&w->s, S, g, t, c, first, n_rows, w->n_tokens, y);
        } else {
            read_block(&w->s, S, g, n_rows, w->n_tokens, y);
        }
        if (w->n_tokens > 0) finish_rows(args, w, t, head, first, n_rows, y);
    }
}

void mamba2_step_tokens(const rssm_mamba2_step_kernel_args *args, rssm_i64 task);

void mamba2_step_tokens(const rssm_mamba2_step_kernel_args *args, rssm_i64 task)
{
    const place  w = locate(args, task, MAX_TOKENS);
    group_terms  g;
    fold_columns c;

    if (w.n_tokens == 0) write_zeros(args, &w, MAX_TOKENS);
    if ((w.n_tokens == 0 && w.n_folded == 0) || w.part.row_begin >= w.part.row_end) return;

    rssm_prefetch(state_at(&args->state, &w.s, w.d.slot, w.part.head_begin, w.part.row_begin), 0, FIRST_BYTES);
    load_group(args, &w, &g);
    prefetch_rings(args, &w, &g.r, w.part.head_begin);
    c.B_record = g.r.B;
    c.n_records = w.n_folded;
    c.first = -1;
    for (rssm_i32 head = w.part.head_begin; head < w.part.head_end; head++) {
        head_terms t;
        load_head(args, &w, &g, head, &t);
        if (head + 1 < w.part.head_end) prefetch_rings(args, &w, &g.r, head + 1);
        step_head(args, &w, &g, &t, &c, head);
        for (rssm_i32 i = 0; i < w.n_tokens; i++)
            append_head(args, &w, i, head, t.dt[i]);
    }
    for (rssm_i32 i = 0; i < w.n_tokens && w.part.owns_group; i++)
        append_group(args, &w, i);
}
