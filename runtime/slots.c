// The life of a slot between steps: reset, truncate, invalidate, copy, materialize. One launch for the cursors, which
// leaves moves, and where memory moves one per shape over all its layers. Everything that can be refused is refused
// before the first launch. No allocation, lock, file or log: these calls capture into graphs.
#include <stdint.h>

#include "runtime/layers.h"
#include "templates/abi/slots.h"

enum {
    NEEDS_SOURCES = 1 << 0,
    NEEDS_COUNTS = 1 << 1,
    NEEDS_POSITIONS = 1 << 2,
    NEEDS_MOVES = 1 << 3,
};

static rssm_status check(const rssm_group *group, const rssm_slot_args *a, unsigned needs, void *stream)
{
    if (a->struct_size != sizeof *a) return RSSM_E_STRUCT_SIZE;
    if (a->n_rows > group->max_rows || a->destination_slots == NULL) return RSSM_E_INVALID_ARGUMENT;
    if (needs & NEEDS_SOURCES && a->source_slots == NULL) return RSSM_E_INVALID_ARGUMENT;
    if (needs & NEEDS_COUNTS && a->counts == NULL) return RSSM_E_INVALID_ARGUMENT;
    if (needs & NEEDS_POSITIONS && a->positions == NULL) return RSSM_E_INVALID_ARGUMENT;
    if (needs & NEEDS_MOVES && (a->moves == NULL || (uintptr_t)a->moves % 16 != 0)) return RSSM_E_INVALID_ARGUMENT;
    if (group->backend == RSSM_CPU && stream != NULL) return RSSM_E_INVALID_ARGUMENT;
    return group->slots == NULL ? RSSM_E_UNSUPPORTED : RSSM_OK;
}

static rssm_status launch_slots(const rssm_group *group, const rssm_slot_args *a, rssm_i32 kind, void *stream)
{
    const bool                   has_moves = kind == RSSM_SLOTS_COPY || kind == RSSM_SLOTS_MATERIALIZE;
    const rssm_slots_kernel_args args = {
        .cursors = group->cursors,
        .moves = has_moves ? a->moves : NULL,
        .requests = a->requests,
        .sources = a->source_slots,
        .destinations = a->destination_slots,
        .counts = a->counts,
        .epochs = a->epochs,
        .positions = (const rssm_u64 *)a->positions,
        .nonces = (const rssm_u64 *)a->nonces,
        .issues = a->issues,
        .kind = kind,
        .ring_length = group->window.R,
        .n_rows = (rssm_i32)a->n_rows,
        .n_slots = (rssm_i32)group->n_slots,
        .pad_slot = a->pad_slot,
    };
    return rssm_group_launch(group, group->slots, &args, a->n_rows, stream);
}

static rssm_status move_cursors(const rssm_group *group, const rssm_slot_args *args, rssm_i32 kind, unsigned needs,
                                void *stream)
{
    const rssm_status st = check(group, args, needs, stream);
    if (st != RSSM_OK || args->n_rows == 0) return st;
    return launch_slots(group, args, kind, stream);
}

static rssm_status move_layers(const rssm_layers *layers, const rssm_slot_args *args, rssm_i32 kind, rssm_op op,
                               unsigned needs, void *stream)
{
    rssm_status st = check(layers->group, args, needs, stream);
    if (st == RSSM_OK) st = rssm_layers_ready(layers, op, args->n_rows);
    if (st != RSSM_OK || args->n_rows == 0) return st;
    st = launch_slots(layers->group, args, kind, stream);
    if (st != RSSM_OK) return st;
    return rssm_layers_launch(layers, op, layers->table, layers->table, args->moves, args->n_rows, stream);
}

rssm_status rssm_reset(const rssm_group *group, const rssm_slot_args *args, void *stream)
{
    return move_cursors(group, args, RSSM_SLOTS_RESET, 0, stream);
}

rssm_status rssm_truncate(const rssm_group *group, const rssm_slot_args *args, void *stream)
{
    return move_cursors(group, args, RSSM_SLOTS_TRUNCATE, NEEDS_POSITIONS, stream);
}

rssm_status rssm_invalidate(const rssm_group *group, const rssm_slot_args *args, void *stream)
{
    return move_cursors(group, args, RSSM_SLOTS_INVALIDATE, 0, stream);
}

rssm_status rssm_copy(const rssm_layers *layers, const rssm_slot_args *args, void *stream)
{
    return move_layers(layers, args, RSSM_SLOTS_COPY, RSSM_OP_COPY, NEEDS_SOURCES | NEEDS_MOVES, stream);
}

rssm_status rssm_materialize(const rssm_layers *layers, const rssm_slot_args *args, void *stream)
{
    return move_layers(layers, args, RSSM_SLOTS_MATERIALIZE, RSSM_OP_MATERIALIZE,
                       NEEDS_SOURCES | NEEDS_COUNTS | NEEDS_MOVES, stream);
}
