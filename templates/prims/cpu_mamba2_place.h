// Where a task of a CPU Mamba-2 step works: its batch row, group, heads and rows of the state, and the addresses there.
//
// Tasks of a batch row are numbered [group][block of HEADS heads][part of SPLIT]; the shape comes from the config
// header or, where that leaves it 0, from the arguments.
// Include rssm_config.h first; it needs VEC, HEADS and SPLIT. Not for device code.
#ifndef RSSM_PRIMS_CPU_MAMBA2_PLACE_H
#define RSSM_PRIMS_CPU_MAMBA2_PLACE_H

#include "abi/mamba2_step.h"
#include "prims/cpu_format.h"

RSSM_ASSERT(CFG_MAX_TOKENS <= 1, "one token per row");
RSSM_ASSERT(CFG_HEADS == 1 || CFG_SPLIT == 1, "a task is several heads or part of one");

typedef rssm_mamba2_step_kernel_args step_args;

typedef struct place {
    rssm_descriptor d;
    rssm_i32        group;
    rssm_i32        head_begin, head_end;
    rssm_i32        row_begin, row_end; // of each head's head_dim rows
    rssm_i32        has_token;          // not 0: there is an output to compute
    rssm_i32        n_history;          // live records in the ring
    rssm_i32        n_folded;           // of history and token, the first ones enter the state; 0: it is not written
    rssm_i32        owns_group;         // not 0: this task appends the group's B
} place;

// ------------------------------------------------------------------------------------------------ shape, addresses

RSSM_INLINE rssm_i32 head_dim_of(const step_args *args)
{
    return CFG_HEAD_DIM ? CFG_HEAD_DIM : args->head_dim;
}

RSSM_INLINE rssm_i32 state_size_of(const step_args *args)
{
    return CFG_STATE_SIZE ? CFG_STATE_SIZE : args->state_size;
}

RSSM_INLINE rssm_i32 group_size_of(const step_args *args)
{
    return CFG_GROUP_SIZE ? CFG_GROUP_SIZE : args->n_heads / args->n_groups;
}

// Ring row of history record j; of the record to be appended for j == n_history.
RSSM_INLINE rssm_i32 ring_row(const step_args *args, const place *w, rssm_i32 j)
{
    return rssm_ring_index(w->d.start, j, CFG_RING_LENGTH ? CFG_RING_LENGTH : args->ring_length);
}

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

RSSM_INLINE T_act *token_at(const rssm_token_view *view, rssm_i32 token, rssm_i32 head)
{
    return (T_act *)view->data + token * view->token_stride + head * view->head_stride;
}

RSSM_INLINE T_state *state_at(const step_args *args, const place *w, rssm_i32 head, rssm_i32 row)
{
    const rssm_i64 rows = (rssm_i64)head * head_dim_of(args) + row;
    return (T_state *)args->state.data + w->d.slot * args->state.slot_stride + rows * state_size_of(args);
}

// ---------------------------------------------------------------------------------------------------------- a task

RSSM_INLINE void locate_records(place *w)
{
    const rssm_i32 is_live = w->d.slot >= 0 && w->d.mode != RSSM_MODE_NONE;
    w->has_token = is_live && w->d.t > 0;
    w->n_history = is_live ? w->d.h : 0;
    w->n_folded = 0;
    if (is_live && w->d.mode == RSSM_MODE_FOLD_HISTORY) w->n_folded = w->n_history;
    if (is_live && w->d.mode == RSSM_MODE_FOLD_ALL) w->n_folded = w->n_history + w->has_token;
}

RSSM_INLINE place locate(const step_args *args, rssm_i64 task)
{
    const rssm_i32 P = head_dim_of(args);
    const rssm_i32 group_size = group_size_of(args);
    const rssm_i32 head_blocks = (group_size + CFG_HEADS - 1) / CFG_HEADS;
    const rssm_i32 part_rows = ((P + CFG_SPLIT - 1) / CFG_SPLIT + 7) / 8 * 8; // parts share few lines of the outputs
    const rssm_i32 tasks_per_row = args->n_groups * head_blocks * CFG_SPLIT;
    const rssm_i32 in_row = (rssm_i32)(task % tasks_per_row);
    const rssm_i32 part = in_row % CFG_SPLIT;
    const rssm_i32 head_block = in_row / CFG_SPLIT % head_blocks;
    const rssm_i32 heads_left = group_size - head_block * CFG_HEADS;
    const rssm_i32 rows_left = P - part * part_rows; // none in the last parts of a small head
    place          w;

    w.d = args->descriptors[task / tasks_per_row];
    w.group = in_row / CFG_SPLIT / head_blocks;
    w.head_begin = w.group * group_size + head_block * CFG_HEADS;
    w.head_end = w.head_begin + (heads_left < CFG_HEADS ? heads_left : CFG_HEADS);
    w.row_begin = CFG_SPLIT == 1 ? 0 : part * part_rows;
    w.row_end = CFG_SPLIT == 1 ? P : w.row_begin + (rows_left < part_rows ? rows_left : part_rows);
    w.owns_group = head_block == 0 && part == 0;
    locate_records(&w);
    return w;
}

// The outputs of a row without a token. A negative token: it has none, its place in a packed batch is another row's.
RSSM_INLINE void write_zeros(const step_args *args, const place *w)
{
    if (w->d.token < 0) return;
    for (rssm_i32 head = w->head_begin; head < w->head_end; head++) {
        T_act *out = token_at(&args->out, w->d.token, head);
        for (rssm_i32 p = w->row_begin; p < w->row_end; p++)
            rssm_store_float(out + p, 0.0f);
    }
}

#endif
