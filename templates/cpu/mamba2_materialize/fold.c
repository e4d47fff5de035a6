// mamba2_materialize_fold: the first n records of a slot folded into the checkpoint of another, or of its own.
//
// Math     prims/cpu_fold.h over the records from the move's start on: the bits that a flush of them would have stored.
//          n = 0: the source's bytes; where that is the destination itself, nothing.
// Layout   abi/mamba2_layers.h: row r is move r % n_moves of layer r / n_moves. Any strides; state_size <= 1024;
//          rings <= 96. Rings are only read.
// Tasks    A task is up to HEADS heads of one group of one row, or one of SPLIT parts of a head's rows. It writes its
//          own rows of the destination and reads those of the source.
// Flow     1 locate  per head: 2 record weights; per BLOCK rows: 3 fold or copy, in the order of addresses
// Traffic  The checkpoint once in and once out. Rings once per head, B ring once per task.
#include "rssm_config.h"

#include "abi/mamba2_layers.h"
#include "prims/cpu_fold.h"

typedef struct place {
    rssm_slot_move          move;
    const rssm_mamba2_layer *source, *destination;
    shape                   s;
    part                    part;
} place;

RSSM_INLINE void load_head(const place *w, const history *r, rssm_i32 head, fold_head *t)
{
    const float *dt_ring = dt_ring_at(&w->source->dt_ring, r->slot, head, 0);
    const T_act *x_ring = ring_at(&w->source->x_ring, r->slot, head, 0);
    float        dt[TERMS] = {0};

    for (rssm_i32 j = 0; j < r->n; j++) {
        dt[j] = dt_ring[r->dt_offset[j]];
        t->x[j] = x_ring + r->x_offset[j];
    }
    t->decay = decay_scales(w->source->A[head], dt, r->n, t->scale);
}

RSSM_INLINE void fold_head_rows(const place *w, const fold_head *t, fold_columns *c, rssm_i32 head)
{
    const rssm_i32 N = state_size_of(&w->s);
    const rssm_i32 end = w->part.row_end;
    const fold_use nothing_else = {0};

    for (rssm_i32 first = w->part.row_begin; first < end; first += BLOCK) {
        const rssm_i32     n_rows = end - first < BLOCK ? end - first : BLOCK;
        const T_state     *from = state_at(&w->source->state, &w->s, w->move.source, head, first);
        T_state           *to = state_at(&w->destination->state, &w->s, w->move.destination, head, first);
        _Alignas(64) float x[MAX_RECORDS][BLOCK];

        load_scaled_x(t, c->n_records, first, n_rows, x);
        for (rssm_i32 n = 0; n < N; n += B_COLUMNS) {
            const rssm_i32 n_columns = N - n < B_COLUMNS ? N - n : B_COLUMNS;
            fold_block(from, to, N, n, n_columns, c, t->decay, (const float(*)[BLOCK])x, n_rows, &nothing_else);
        }
    }
}

// The heads of a task lie one behind the other.
RSSM_INLINE void copy_rows(const place *w)
{
    for (rssm_i32 head = w->part.head_begin; head < w->part.head_end; head++) {
        const T_state *from = state_at(&w->source->state, &w->s, w->move.source, head, w->part.row_begin);
        T_state       *to = state_at(&w->destination->state, &w->s, w->move.destination, head, w->part.row_begin);
        const rssm_i64 n = (rssm_i64)(w->part.row_end - w->part.row_begin) * state_size_of(&w->s);
        if (from != to) __builtin_memcpy(to, from, (unsigned long)n * sizeof(T_state));
    }
}

void mamba2_materialize_fold(const rssm_mamba2_layers_kernel_args *args, rssm_i64 task);

void mamba2_materialize_fold(const rssm_mamba2_layers_kernel_args *args, rssm_i64 task)
{
    place          w = {.s = shape_of(args)};
    const rssm_i32 n_tasks = tasks_per_row(&w.s);
    const rssm_i64 row = task / n_tasks;
    history        r;
    fold_columns   c;

    w.move = args->moves[row % args->n_moves];
    w.source = &args->sources[row / args->n_moves];
    w.destination = &args->destinations[row / args->n_moves];
    w.part = part_of(&w.s, (rssm_i32)(task % n_tasks));
    if (w.move.source < 0 || w.part.row_begin >= w.part.row_end) return;
    if (w.move.n <= 0) {
        copy_rows(&w);
        return;
    }
    r.slot = w.move.source;
    r.start = w.move.start;
    r.n = w.move.n;
    find_records(&r, &w.s, &w.source->x_ring, &w.source->B_ring, &w.source->dt_ring, w.part.group);
    c.B_record = r.B;
    c.n_records = r.n;
    c.first = -1;
    for (rssm_i32 head = w.part.head_begin; head < w.part.head_end; head++) {
        fold_head t;
        prefetch_records(&r, &w.part, &w.source->x_ring, &w.source->dt_ring, head);
        load_head(&w, &r, head, &t);
        fold_head_rows(&w, &t, &c, head);
    }
}
