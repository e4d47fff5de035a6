// mamba2_copy: the checkpoints and records of slots to other slots, of all layers of one shape.
//
// What     of every move: the checkpoint's bytes, and its n records of x, B and dt, which begin at ring index `start`
//          of the source and at index 0 of the destination. Nothing is rounded; nothing behind the n records is read.
// Layout   abi/mamba2_layers.h. Any strides, head_dim and state_size, and any alignment, since either side may be a
//          packed buffer. Source and destination of a move are never one slot.
// Tasks    One head of one move of one layer; a group's first head takes the group's B as well.
// Traffic  Everything once, in the order of its addresses.
#include "rssm_config.h"

#include "abi/mamba2_layers.h"
#include "numerics/types.h"

// From byte offsets, since packed buffers may lie anywhere.
static void copy_bytes(char *to, const char *from, rssm_i64 n)
{
    __builtin_memcpy(to, from, (unsigned long)n);
}

static char *ring_head(const rssm_ring_view *ring, rssm_i32 slot, rssm_i32 head, rssm_i64 element_bytes)
{
    return (char *)ring->data + (slot * ring->slot_stride + head * ring->head_stride) * element_bytes;
}

// n records of `width` elements of one head or group.
static void copy_records(const rssm_ring_view *to, const rssm_ring_view *from, const rssm_slot_move *move,
                         rssm_i32 head, rssm_i32 width, rssm_i64 element_bytes, rssm_i32 ring_length)
{
    const char *source = ring_head(from, move->source, head, element_bytes);
    char       *destination = ring_head(to, move->destination, head, element_bytes);

    for (rssm_i32 j = 0; j < move->n; j++) {
        const rssm_i64 at = rssm_ring_index(move->start, j, ring_length);
        copy_bytes(destination + j * to->record_stride * element_bytes,
                   source + at * from->record_stride * element_bytes, width * element_bytes);
    }
}

void mamba2_copy(const rssm_mamba2_layers_kernel_args *args, rssm_i64 task);

void mamba2_copy(const rssm_mamba2_layers_kernel_args *args, rssm_i64 task)
{
    const rssm_i64           row = task / args->n_heads;
    const rssm_i32           head = (rssm_i32)(task % args->n_heads);
    const rssm_slot_move     move = args->moves[row % args->n_moves];
    const rssm_mamba2_layer *from = &args->sources[row / args->n_moves];
    const rssm_mamba2_layer *to = &args->destinations[row / args->n_moves];
    const rssm_i64           P = args->head_dim;
    const rssm_i64           N = args->state_size;
    const rssm_i64           head_bytes = P * N * (rssm_i64)sizeof(T_state);
    const rssm_i32           heads_of_group = args->n_heads / args->n_groups;

    if (move.source < 0) return;
    copy_bytes((char *)to->state.data + move.destination * to->state.slot_stride * (rssm_i64)sizeof(T_state) +
                   head * head_bytes,
               (const char *)from->state.data + move.source * from->state.slot_stride * (rssm_i64)sizeof(T_state) +
                   head * head_bytes,
               head_bytes);
    copy_records(&to->x_ring, &from->x_ring, &move, head, args->head_dim, sizeof(T_act), args->ring_length);
    copy_records(&to->dt_ring, &from->dt_ring, &move, head, 1, sizeof(float), args->ring_length);
    if (head % heads_of_group == 0)
        copy_records(&to->B_ring, &from->B_ring, &move, head / heads_of_group, args->state_size, sizeof(T_act),
                     args->ring_length);
}
