// The part of a layer that a task of a CPU Mamba-2 kernel works on, and the ring records it meets there.
//
// A row of a launch (of the batch, or a move of a slot) is cut into tasks numbered [group][block of HEADS heads][part
// of SPLIT]: several heads of one group, or one of SPLIT parts of a head's rows.
// Include rssm_config.h first; it needs VEC, HEADS and SPLIT. Not for device code.
#ifndef RSSM_PRIMS_CPU_MAMBA2_PART_H
#define RSSM_PRIMS_CPU_MAMBA2_PART_H

#include "abi/mamba2_step.h"
#include "prims/cpu_format.h"

RSSM_ASSERT(CFG_HEADS == 1 || CFG_SPLIT == 1, "a task is several heads or part of one");

enum {
    MAX_RING = CFG_RING_LENGTH ? CFG_RING_LENGTH : 96,
    MAX_TOKENS = CFG_MAX_TOKENS ? CFG_MAX_TOKENS : 16,
    MAX_RECORDS = MAX_RING + MAX_TOKENS, // a full ring and the tokens
    MAX_STATE_SIZE = CFG_STATE_SIZE ? CFG_STATE_SIZE : 1024,
};

RSSM_ASSERT(MAX_RING <= 96 && MAX_TOKENS <= 16 && MAX_STATE_SIZE <= 1024, "arrays of these sizes are on the stack");

typedef struct shape {
    rssm_i32 n_groups, group_size, head_dim, state_size, ring_length;
} shape;

typedef struct part {
    rssm_i32 group;
    rssm_i32 head_begin, head_end;
    rssm_i32 row_begin, row_end; // of each head's head_dim rows
    rssm_i32 owns_group;         // not 0: of the row's tasks, this one sees to what the group's heads share
} part;

// From the config header or, where that leaves it 0, from the arguments.
#define shape_of(args)                                                                                                 \
    ((shape){.n_groups = (args)->n_groups,                                                                             \
             .group_size = CFG_GROUP_SIZE ? CFG_GROUP_SIZE : (args)->n_heads / (args)->n_groups,                       \
             .head_dim = CFG_HEAD_DIM ? CFG_HEAD_DIM : (args)->head_dim,                                               \
             .state_size = CFG_STATE_SIZE ? CFG_STATE_SIZE : (args)->state_size,                                       \
             .ring_length = CFG_RING_LENGTH ? CFG_RING_LENGTH : (args)->ring_length})

RSSM_INLINE rssm_i32 state_size_of(const shape *s)
{
    return CFG_STATE_SIZE ? CFG_STATE_SIZE : s->state_size; // known where functions are not inlined, too
}

RSSM_INLINE rssm_i32 head_blocks_of(const shape *s)
{
    return (s->group_size + CFG_HEADS - 1) / CFG_HEADS;
}

RSSM_INLINE rssm_i32 tasks_per_row(const shape *s)
{
    return s->n_groups * head_blocks_of(s) * CFG_SPLIT;
}

// Part `in_row` of a row, 0 <= in_row < tasks_per_row.
RSSM_INLINE part part_of(const shape *s, rssm_i32 in_row)
{
    const rssm_i32 P = s->head_dim;
    const rssm_i32 head_blocks = head_blocks_of(s);
    const rssm_i32 part_rows = ((P + CFG_SPLIT - 1) / CFG_SPLIT + 7) / 8 * 8; // parts share few lines of the outputs
    const rssm_i32 index = in_row % CFG_SPLIT;
    const rssm_i32 head_block = in_row / CFG_SPLIT % head_blocks;
    const rssm_i32 heads_left = s->group_size - head_block * CFG_HEADS;
    const rssm_i32 rows_left = P - index * part_rows; // none in the last parts of a small head
    part           w;

    w.group = in_row / CFG_SPLIT / head_blocks;
    w.head_begin = w.group * s->group_size + head_block * CFG_HEADS;
    w.head_end = w.head_begin + (heads_left < CFG_HEADS ? heads_left : CFG_HEADS);
    w.row_begin = CFG_SPLIT == 1 ? 0 : index * part_rows;
    w.row_end = CFG_SPLIT == 1 ? P : w.row_begin + (rows_left < part_rows ? rows_left : part_rows);
    w.owns_group = head_block == 0 && index == 0;
    return w;
}

// ------------------------------------------------------------------------------------------------------- addresses

// Element offset of a record of a head, or of a group.
RSSM_INLINE rssm_i64 ring_offset(const rssm_ring_view *view, rssm_i32 slot, rssm_i32 head, rssm_i32 row)
{
    return slot * view->slot_stride + head * view->head_stride + row * view->record_stride;
}

RSSM_INLINE T_act *ring_at(const rssm_ring_view *view, rssm_i32 slot, rssm_i32 head, rssm_i32 row)
{
    return (T_act *)view->data + ring_offset(view, slot, head, row);
}

RSSM_INLINE float *dt_ring_at(const rssm_ring_view *view, rssm_i32 slot, rssm_i32 head, rssm_i32 row)
{
    return (float *)view->data + ring_offset(view, slot, head, row);
}

RSSM_INLINE T_state *state_at(const rssm_state_view *view, const shape *s, rssm_i32 slot, rssm_i32 head, rssm_i32 row)
{
    const rssm_i64 rows = (rssm_i64)head * s->head_dim + row;
    return (T_state *)view->data + slot * view->slot_stride + rows * s->state_size;
}

RSSM_INLINE void widen(float *to, const T_act *from, rssm_i32 n_columns)
{
    rssm_i32 n = 0;
    for (; n + CFG_VEC <= n_columns; n += CFG_VEC)
        rssm_vstore(to + n, rssm_vload(from + n));
    for (; n < n_columns; n++)
        to[n] = rssm_to_float(from[n]);
}

// --------------------------------------------------------------------------------------------------------- records

// The live records of a slot, as a group's heads see them: `n` from ring row `start` on.
typedef struct history {
    rssm_i32     slot, start, n;
    rssm_i64     x_offset[MAX_RING]; // from record 0 of a head's ring
    rssm_i64     dt_offset[MAX_RING];
    const T_act *B[MAX_RECORDS]; // a step puts its tokens behind the history
} history;

// `r` with slot, start and n set.
RSSM_INLINE void find_records(history *r, const shape *s, const rssm_ring_view *x_ring, const rssm_ring_view *B_ring,
                              const rssm_ring_view *dt_ring, rssm_i32 group)
{
    for (rssm_i32 j = 0; j < r->n; j++) {
        const rssm_i32 row = rssm_ring_index(r->start, j, s->ring_length);
        r->B[j] = ring_at(B_ring, r->slot, group, row);
        r->x_offset[j] = row * x_ring->record_stride;
        r->dt_offset[j] = row * dt_ring->record_stride;
        rssm_prefetch(r->B[j], 0, s->state_size * (rssm_i64)sizeof(T_act));
    }
}

// Asks for a head's rings, which lie elsewhere than its state and are too short for the hardware to foresee.
RSSM_INLINE void prefetch_records(const history *r, const part *w, const rssm_ring_view *x_ring,
                                  const rssm_ring_view *dt_ring, rssm_i32 head)
{
    const T_act   *x = ring_at(x_ring, r->slot, head, 0) + w->row_begin;
    const float   *dt = dt_ring_at(dt_ring, r->slot, head, 0);
    const rssm_i64 n_bytes = (w->row_end - w->row_begin) * (rssm_i64)sizeof(T_act);
    for (rssm_i32 j = 0; j < r->n; j++) {
        rssm_prefetch(x + r->x_offset[j], 0, n_bytes);
        rssm_prefetch_at(dt + r->dt_offset[j], 0);
    }
}

#endif
