// Sums of lanes, and exp and SiLU lane by lane, for CPU kernels. The formulas are those of numerics/softplus.h.
// Include rssm_config.h first. Not for device code.
#ifndef RSSM_PRIMS_CPU_MATH_H
#define RSSM_PRIMS_CPU_MATH_H

#include "numerics/softplus.h"
#include "prims/cpu_vector.h"

typedef float rssm_v4f __attribute__((vector_size(16)));
typedef float rssm_v8f __attribute__((vector_size(32)));
typedef float rssm_v16f __attribute__((vector_size(64)));

// Four lanes whose sum is the sum of all lanes: upper half added to lower half until four are left.
RSSM_INLINE rssm_v4f rssm_vsum_to_four(rssm_vf v)
{
    // The vector under each width it may have; only the one it does have is used.
    union {
        rssm_vf   v;
        rssm_v4f  v4;
        rssm_v8f  v8;
        rssm_v16f v16;
    } u;
    u.v = v;
    if (CFG_VEC == 16) {
        u.v8 = __builtin_shufflevector(u.v16, u.v16, 0, 1, 2, 3, 4, 5, 6, 7) +
               __builtin_shufflevector(u.v16, u.v16, 8, 9, 10, 11, 12, 13, 14, 15);
    }
    if (CFG_VEC >= 8) {
        u.v4 = __builtin_shufflevector(u.v8, u.v8, 0, 1, 2, 3) + __builtin_shufflevector(u.v8, u.v8, 4, 5, 6, 7);
    }
    return u.v4;
}

RSSM_INLINE float rssm_vsum(rssm_vf v)
{
    const rssm_v4f s = rssm_vsum_to_four(v);
    return (s[0] + s[2]) + (s[1] + s[3]);
}

// to[i] += the sum of v[i], for four vectors: a transposition shares the shuffles.
RSSM_INLINE void rssm_vsum_four(float *to, const rssm_vf *v)
{
    const rssm_v4f a = rssm_vsum_to_four(v[0]);
    const rssm_v4f b = rssm_vsum_to_four(v[1]);
    const rssm_v4f c = rssm_vsum_to_four(v[2]);
    const rssm_v4f d = rssm_vsum_to_four(v[3]);
    const rssm_v4f ab = __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const rssm_v4f cd = __builtin_shufflevector(c, d, 0, 4, 1, 5) + __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const rssm_v4f s = __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    RSSM_UNROLL
    for (rssm_i32 i = 0; i < 4; i++)
        to[i] += s[i];
}

// rssm_exp of each lane. NaN lanes stay NaN: they pass the bounds and the arithmetic.
RSSM_INLINE rssm_vf rssm_vexp(rssm_vf x)
{
    const rssm_vu below = (rssm_vu)(x < rssm_vsplat(-104.0f));
    const rssm_vu above = (rssm_vu)(x > rssm_vsplat(89.0f));
    const rssm_vu least = rssm_vselect(below, (rssm_vu)rssm_vsplat(-104.0f), (rssm_vu)x);
    const rssm_vf bounded = (rssm_vf)rssm_vselect(above, (rssm_vu)rssm_vsplat(89.0f), least);
    const rssm_vf shifted = bounded * RSSM_LOG2_E + 12582912.0f;
    const rssm_vf k = shifted - 12582912.0f;
    const rssm_vi exponent = (rssm_vi)shifted - 0x4b400000;
    const rssm_vf r = (bounded - k * RSSM_LN2_UPPER) - k * RSSM_LN2_LOWER;
    const rssm_vi half = exponent >> 1;
    rssm_vf       e = r * (1.0f / 5040) + 1.0f / 720;

    e = e * r + 1.0f / 120;
    e = e * r + 1.0f / 24;
    e = e * r + 1.0f / 6;
    e = e * r + 0.5f;
    e = e * r + 1.0f;
    e = e * r + 1.0f;
    // A NaN lane has any exponent here, but a NaN fraction; the masks keep the factors defined.
    return e * (rssm_vf)(((rssm_vu)(half + 127) & 0xffu) << 23) *
           (rssm_vf)(((rssm_vu)(exponent - half + 127) & 0xffu) << 23);
}

// rssm_silu of each lane.
RSSM_INLINE rssm_vf rssm_vsilu(rssm_vf v)
{
    return v / (rssm_vexp(-v) + 1.0f);
}

#endif
