// Vectors of CFG_VEC floats for CPU kernels, in the GNU vector extensions of GCC 12 and Clang 14 or newer.
//
// The compiler maps them to whatever the target has (SSE, AVX2, AVX-512, NEON; a vector wider than the machine's is
// split), so there is no intrinsic and no #if per instruction set here. Loads and stores are in prims/cpu_format.h.
// Include rssm_config.h first. Not for device code.
#ifndef RSSM_PRIMS_CPU_VECTOR_H
#define RSSM_PRIMS_CPU_VECTOR_H

#include "abi/types.h"

RSSM_ASSERT(CFG_VEC == 4 || CFG_VEC == 8 || CFG_VEC == 16, "a vector has 4, 8 or 16 floats");

// Vectors wider than the target's registers have no settled calling convention. None is ever passed to a function that
// is not inlined. (GCC prints a note all the same, once, unless it is given -Wno-psabi.)
#pragma GCC diagnostic ignored "-Wpsabi"

#define RSSM_INLINE static inline __attribute__((always_inline))

// A function of its own, however few its callers: what is worked off by the block need not share registers, and
// compilers take more than their share of time over one large function.
#define RSSM_APART static __attribute__((noinline))

// Unroll the following loop completely: its trip count is a small constant and its arrays belong in registers.
#if defined(__clang__)
#define RSSM_UNROLL _Pragma("clang loop unroll(full)")
#else
#define RSSM_UNROLL _Pragma("GCC unroll 16")
#endif

typedef float          rssm_vf __attribute__((vector_size(4 * CFG_VEC)));
typedef rssm_u32       rssm_vu __attribute__((vector_size(4 * CFG_VEC)));
typedef rssm_i32       rssm_vi __attribute__((vector_size(4 * CFG_VEC)));
typedef unsigned short rssm_vh __attribute__((vector_size(2 * CFG_VEC)));

// The same in memory, at any address.
typedef float          rssm_vf_memory __attribute__((vector_size(4 * CFG_VEC), aligned(4), may_alias));
typedef rssm_u32       rssm_vu_memory __attribute__((vector_size(4 * CFG_VEC), aligned(2), may_alias));
typedef unsigned short rssm_vh_memory __attribute__((vector_size(2 * CFG_VEC), aligned(2), may_alias));

// ---------------------------------------------------------------------------------------------------------- lanes

RSSM_INLINE rssm_vf rssm_vsplat(float value)
{
    return value - (rssm_vf){0}; // not 0 + value, which would lose the sign of -0
}

// mask ? a : b, lane by lane; mask lanes are 0 or ~0, as vector comparisons give them.
RSSM_INLINE rssm_vu rssm_vselect(rssm_vu mask, rssm_vu a, rssm_vu b)
{
    return (a & mask) | (b & ~mask);
}

// -------------------------------------------------------------------------------------------------------- products

// The empty instruction takes a value where it is, in a register, and gives it back as one that the compiler knows
// nothing of: what was a product cannot be fused with the addition it goes into. Targets that do not fuse need none.
#if defined(__FMA__) && defined(__AVX512F__)
#define RSSM_SETTLE(value) __asm__("" : "+v"(value))
enum { SETTLED_BYTES = 64 };
#elif defined(__FMA__)
#define RSSM_SETTLE(value) __asm__("" : "+x"(value))
enum { SETTLED_BYTES = 32 };
#elif defined(__aarch64__)
#define RSSM_SETTLE(value) __asm__("" : "+w"(value))
enum { SETTLED_BYTES = 16 };
#else
#define RSSM_SETTLE(value) (void)(value)
enum { SETTLED_BYTES = 64 };
#endif

enum { SETTLED_FLOATS = 4 * CFG_VEC < SETTLED_BYTES ? CFG_VEC : SETTLED_BYTES / 4 };

typedef float rssm_settled __attribute__((vector_size(4 * SETTLED_FLOATS)));

// a * b, rounded whatever becomes of it.
RSSM_INLINE rssm_vf rssm_vproduct(rssm_vf a, rssm_vf b)
{
    union {
        rssm_vf      whole;
        rssm_settled part[CFG_VEC / SETTLED_FLOATS];
    } u = {a * b};
    RSSM_UNROLL
    for (rssm_i32 i = 0; i < CFG_VEC / SETTLED_FLOATS; i++)
        RSSM_SETTLE(u.part[i]);
    return u.whole;
}

RSSM_INLINE float rssm_product(float a, float b)
{
    float product = a * b;
    RSSM_SETTLE(product);
    return product;
}

// --------------------------------------------------------------------------------------------------------- memory

// Asks for the cache line `offset` bytes behind `from` in the second-level cache. The line may lie outside any object:
// a hint never faults. (Into the first level such requests hold up the loads that follow: a third slower on Zen 4.)
RSSM_INLINE void rssm_prefetch_at(const void *from, rssm_i64 offset)
{
    __builtin_prefetch((const void *)((unsigned long long)from + (unsigned long long)offset), 0, 2);
}

// Asks for the cache lines of n_bytes, `offset` bytes behind `from`.
RSSM_INLINE void rssm_prefetch(const void *from, rssm_i64 offset, rssm_i64 n_bytes)
{
    for (rssm_i64 at = 0; at < n_bytes; at += 64)
        rssm_prefetch_at(from, offset + at);
}

// Memory accesses before this line stay before those after it, in the compiled order; no instruction. Hardware foresees
// a stream only where lines are touched in ascending order (measured on Zen 4: 29 GB/s against 9).
RSSM_INLINE void rssm_keep_order(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

#endif
