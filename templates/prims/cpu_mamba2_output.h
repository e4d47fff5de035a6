// The end of a CPU Mamba-2 step of one token: outputs from S . C and the records.
// Include rssm_config.h first. Not for device code.
#ifndef RSSM_PRIMS_CPU_MAMBA2_OUTPUT_H
#define RSSM_PRIMS_CPU_MAMBA2_OUTPUT_H

#include "prims/cpu_mamba2_terms.h"

// Outputs [p, p + lanes) of a head, from y = S . C.
RSSM_INLINE void finish_lanes(const group_terms *g, const head_terms *t, const T_act *z, T_act *out, rssm_i32 p,
                              rssm_vf y, rssm_i32 lanes)
{
    const T_act *ring = t->x_ring + p;
    rssm_vf      even = y * t->read_decay;
    rssm_vf      odd = rssm_vload_n(t->x + p, lanes) * t->token_weight;
    rssm_i32     j = 0;
    for (; j + 2 <= t->n_read; j += 2) { // two sums: half the chain of additions
        even = even + rssm_vload_n(ring + g->r.x_offset[j], lanes) * t->read_weight[j];
        odd = odd + rssm_vload_n(ring + g->r.x_offset[j + 1], lanes) * t->read_weight[j + 1];
    }
    if (j < t->n_read) even = even + rssm_vload_n(ring + g->r.x_offset[j], lanes) * t->read_weight[j];
    even = even + odd;
    if (z) even = even * rssm_vsilu(rssm_vload_n(z + p, lanes));
    rssm_vstore_n(out + p, even, lanes);
}

// Outputs of n_rows rows of a head from `first`, from y[p] = S . C.
RSSM_INLINE void finish_rows(const step_args *args, const place *w, const group_terms *g, const head_terms *t,
                             rssm_i32 head, rssm_i32 first, rssm_i32 n_rows, const float *y)
{
    const T_act *z = args->z.data ? token_at(&args->z, w->d.token, head) : (const T_act *)0;
    T_act       *out = token_at(&args->out, w->d.token, head);
    rssm_i32     p = 0;
    for (; p + CFG_VEC <= n_rows; p += CFG_VEC)
        finish_lanes(g, t, z, out, first + p, rssm_vload(y + p), CFG_VEC);
    if (p < n_rows) finish_lanes(g, t, z, out, first + p, rssm_vload_n(y + p, n_rows - p), n_rows - p);
}

#endif
