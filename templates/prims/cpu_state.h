// Rows of the checkpoint in pairs of vectors, for CPU kernels that stream the state.
//
// A pair covers PAIR consecutive columns. Of bf16 one vector takes the even columns and the other the odd ones: two of
// them share a 32-bit word, so a shift and a mask widen a pair, and a shift and an or narrow it, where natural order
// would shuffle every vector. What is multiplied with rows is put in the same "state order" once per task. Columns
// behind the last whole pair keep their natural order.
// Include rssm_config.h first. Not for device code.
#ifndef RSSM_PRIMS_CPU_STATE_H
#define RSSM_PRIMS_CPU_STATE_H

#include "prims/cpu_format.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the lower half of a word must be the earlier column"
#endif

enum {
    PAIR = 2 * CFG_VEC,
    STATE_IS_BF16 = _Generic(*(T_state *)0, rssm_bf16 : 1, default : 0),
};

typedef rssm_u64 rssm_vq __attribute__((vector_size(8 * CFG_VEC)));
typedef rssm_u64 rssm_vq_memory __attribute__((vector_size(8 * CFG_VEC), aligned(4), may_alias));

typedef struct rssm_vpair {
    rssm_vf a, b;
} rssm_vpair;

RSSM_INLINE rssm_vpair rssm_load_pair(const T_state *from)
{
    if (STATE_IS_BF16) {
        const rssm_vu words = *(const rssm_vu_memory *)from;
        return (rssm_vpair){(rssm_vf)(words << 16), (rssm_vf)(words & 0xffff0000u)};
    }
    return (rssm_vpair){rssm_vload(from), rssm_vload(from + CFG_VEC)};
}

RSSM_INLINE void rssm_store_pair(T_state *to, rssm_vpair pair)
{
    if (STATE_IS_BF16) {
        const rssm_vu even = rssm_vround_bf16_bits(pair.a) >> 16;
        const rssm_vu odd = rssm_vround_bf16_bits(pair.b) & 0xffff0000u;
        *(rssm_vu_memory *)to = even | odd;
    } else {
        rssm_vstore(to, pair.a);
        rssm_vstore(to + CFG_VEC, pair.b);
    }
}

// to[..] = from[..] of n_columns columns, from natural to state order. Two floats are seen as one word of 64 bits, of
// which the lower half is the even column.
RSSM_INLINE void rssm_state_order(float *to, const float *from, rssm_i32 n_columns)
{
    const rssm_i32 n_paired = STATE_IS_BF16 ? n_columns / PAIR * PAIR : 0;
    for (rssm_i32 n = 0; n < n_paired; n += PAIR) {
        const rssm_vq words = *(const rssm_vq_memory *)(from + n);
        rssm_vstore(to + n, (rssm_vf) __builtin_convertvector(words, rssm_vu));
        rssm_vstore(to + n + CFG_VEC, (rssm_vf) __builtin_convertvector(words >> 32, rssm_vu));
    }
    for (rssm_i32 n = n_paired; n < n_columns; n++)
        to[n] = from[n];
}

#endif
