// Arguments of the Mamba-2 `step` op, shared by host and kernels; its layout hash is stored with every binary.
// Views keep a pointer and its strides together. Strides count elements, not bytes; the innermost dimension is dense.
#ifndef RSSM_ABI_MAMBA2_STEP_H
#define RSSM_ABI_MAMBA2_STEP_H

#include "abi/cursor.h"

// An activation or output: [token][head or group][dense].
typedef struct rssm_token_view {
    void *data;
    rssm_i64 token_stride;
    rssm_i64 head_stride;   // of one head, or of one group for B and C
} rssm_token_view;

// A checkpoint: [slot] then [head][head_dim][state_size], dense within the slot.
typedef struct rssm_state_view {
    void *data;
    rssm_i64 slot_stride;
} rssm_state_view;

// A ring: records of one head (x, dt) or of one group (B). Native: [slot][head][R][dense].
typedef struct rssm_ring_view {
    void *data;
    rssm_i64 slot_stride;
    rssm_i64 head_stride;     // of one head, or of one group for B
    rssm_i64 record_stride;
} rssm_ring_view;

typedef struct rssm_mamba2_step_kernel_args {
    const rssm_descriptor *descriptors;   // [n_rows]

    rssm_token_view x;     // [token][head][head_dim]     activation type
    rssm_token_view z;     // same; data NULL: no gate
    rssm_token_view B;     // [token][group][state_size]  activation type
    rssm_token_view C;     // same
    rssm_token_view dt;    // [token][head]               dt_type, raw: bias and softplus are applied by the step
    rssm_token_view out;   // [token][head][head_dim]     activation type

    const float *A;        // [head], negative
    const void *D;         // [head] parameter_type; NULL: no skip term
    const void *dt_bias;   // [head] parameter_type; NULL: no bias

    rssm_state_view state;     // checkpoint type
    rssm_ring_view x_ring;     // activation type, raw x
    rssm_ring_view B_ring;     // activation type, raw B, once per group
    rssm_ring_view dt_ring;    // float, processed dt

    rssm_i32 n_rows;
    rssm_i32 n_heads;          // the shape again, for kernels built without it (built-in generic kernels)
    rssm_i32 n_groups;
    rssm_i32 head_dim;
    rssm_i32 state_size;
    rssm_i32 ring_length;      // R
    rssm_i32 max_tokens;       // T
    rssm_i32 dt_softplus;      // not 0: softplus is applied to dt + bias
    rssm_i32 dt_type;          // RSSM_TYPE_*
    rssm_i32 parameter_type;   // RSSM_TYPE_* of D and dt_bias
} rssm_mamba2_step_kernel_args;

RSSM_ASSERT(sizeof(rssm_mamba2_step_kernel_args) == 8 + 6 * 24 + 3 * 8 + 16 + 3 * 32 + 10 * 4,
            "step argument layout");

#endif
