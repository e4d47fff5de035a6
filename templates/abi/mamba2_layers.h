// Arguments of the ops that treat the slots of Mamba-2 layers between steps: materialize and copy, for all layers of one
// shape in one launch; encode and decode, for one layer. Shared by host and kernels.
#ifndef RSSM_ABI_MAMBA2_LAYERS_H
#define RSSM_ABI_MAMBA2_LAYERS_H

#include "abi/mamba2_step.h"
#include "abi/slots.h"

// Where one layer keeps its slots: an entry of a table in device memory.
typedef struct rssm_mamba2_layer {
    rssm_state_view state;
    rssm_ring_view x_ring, B_ring, dt_ring;
    const float *A;               // [head]
} rssm_mamba2_layer;

RSSM_ASSERT(sizeof(rssm_mamba2_layer) == 16 + 3 * 32 + 8, "layer layout");

// Materialize and copy. A launch of n_moves * n_layers rows: row r is move r % n_moves of layer r / n_moves.
typedef struct rssm_mamba2_layers_kernel_args {
    const rssm_mamba2_layer *sources;        // [n_layers]
    const rssm_mamba2_layer *destinations;   // [n_layers] the same table, or that of other memory with the same shape
    const rssm_slot_move *moves;             // [n_moves]
    rssm_i32 n_moves;
    rssm_i32 n_layers;
    rssm_i32 n_heads;                        // the shape, for kernels built without it
    rssm_i32 n_groups;
    rssm_i32 head_dim;
    rssm_i32 state_size;
    rssm_i32 ring_length;                    // R of the sources
    rssm_i32 reserved;
} rssm_mamba2_layers_kernel_args;

RSSM_ASSERT(sizeof(rssm_mamba2_layers_kernel_args) == 56, "layers argument layout");

// Encode (float to stored form) and decode (back). n_rows rows.
typedef struct rssm_mamba2_state_kernel_args {
    rssm_state_view state;        // stored form
    float *values;                // [row][head][head_dim][state_size]; encode: NULL means zeros
    rssm_i64 value_stride;        // elements between rows of `values`
    const rssm_i32 *slots;        // [n_rows]; outside 0 .. n_slots - 1: the row is skipped
    rssm_i32 n_rows;
    rssm_i32 n_slots;
    rssm_i32 pad_slot;            // this one is skipped too
    rssm_i32 n_heads;
    rssm_i32 head_dim;
    rssm_i32 state_size;
} rssm_mamba2_state_kernel_args;

RSSM_ASSERT(sizeof(rssm_mamba2_state_kernel_args) == 64, "state argument layout");

#endif
