// From the public arguments of a step to the kernels' struct. Inline: it is on the launch path. Used by rssm_step and by
// the emulator of the tests, which launches in its place.
#ifndef RSSM_RUNTIME_STEP_ARGS_H
#define RSSM_RUNTIME_STEP_ARGS_H

#include "include/replayssm.h"
#include "templates/abi/mamba2_step.h"

static inline rssm_token_view rssm_token_view_of(const rssm_token_tensor *t)
{
    return (rssm_token_view){t->data, t->token_stride, t->head_stride};
}

static inline rssm_ring_view rssm_ring_view_of(const rssm_ring_tensor *t)
{
    return (rssm_ring_view){t->data, t->slot_stride, t->head_stride, t->record_stride};
}

// `p` is normalised; nothing is checked here.
static inline rssm_mamba2_step_kernel_args rssm_step_kernel_args(const rssm_problem *p, const rssm_step_args *a)
{
    return (rssm_mamba2_step_kernel_args){
        .descriptors = a->descriptors,
        .x = rssm_token_view_of(&a->x),
        .z = rssm_token_view_of(&a->z),
        .B = rssm_token_view_of(&a->B),
        .C = rssm_token_view_of(&a->C),
        .dt = rssm_token_view_of(&a->dt),
        .out = rssm_token_view_of(&a->out),
        .A = a->A,
        .D = a->D,
        .dt_bias = a->dt_bias,
        .state = {a->state.data, a->state.slot_stride},
        .x_ring = rssm_ring_view_of(&a->x_ring),
        .B_ring = rssm_ring_view_of(&a->B_ring),
        .dt_ring = rssm_ring_view_of(&a->dt_ring),
        .n_rows = (rssm_i32)a->n_rows,
        .n_heads = (rssm_i32)p->n_heads,
        .n_groups = (rssm_i32)p->n_groups,
        .head_dim = (rssm_i32)p->head_dim,
        .state_size = (rssm_i32)p->state_size,
        .ring_length = (rssm_i32)p->ring_length,
        .max_tokens = (rssm_i32)p->max_tokens,
        .dt_softplus = (rssm_i32)p->dt_softplus,
        .dt_type = (rssm_i32)p->dt_dtype,
        .parameter_type = (rssm_i32)p->parameter_dtype,
    };
}

#endif
