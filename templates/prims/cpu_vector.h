// Vectors of CFG_VEC floats for CPU kernels, in the GNU vector extensions of GCC 12 and Clang 14 or newer.
//
// The compiler maps them to whatever the target has (SSE, AVX2, AVX-512, NEON; a vector wider than the machine's is
// split), so there is no intrinsic and no #if per instruction set here. Loads and stores take any alignment and
// convert the storage format, chosen by the pointer's type; `_n` forms touch the first n lanes only and fill the
// others with 0. Rounding is that of numerics/convert.h, bit for bit.
// Include rssm_config.h first. Not for device code.
#ifndef RSSM_PRIMS_CPU_VECTOR_H
#define RSSM_PRIMS_CPU_VECTOR_H

#include "numerics/convert.h"
#include "numerics/softplus.h"

RSSM_ASSERT(CFG_VEC == 4 || CFG_VEC == 8 || CFG_VEC == 16, "a vector has 4, 8 or 16 floats");

// GCC notes that vectors wider than the target's registers have no settled calling convention. None is ever passed to
// a function that is not inlined.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

#define RSSM_INLINE static inline __attribute__((always_inline))

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

// ----------------------------------------------------------------------------------------------- format conversion

RSSM_INLINE rssm_vf rssm_vwiden_bf16(rssm_vh bits)
{
    return (rssm_vf)(__builtin_convertvector(bits, rssm_vu) << 16);
}

// Rounded to bf16, in the upper half of each lane; what is in the lower half is to be dropped.
RSSM_INLINE rssm_vu rssm_vround_bf16_bits(rssm_vf value)
{
    const rssm_vu u = (rssm_vu)value;
    const rssm_vu is_nan = (rssm_vu)(value != value);
    return rssm_vselect(is_nan, u | 0x400000u, u + 0x7fffu + ((u >> 16) & 1u));
}

RSSM_INLINE rssm_vh rssm_vround_bf16(rssm_vf value)
{
    return __builtin_convertvector(rssm_vround_bf16_bits(value) >> 16, rssm_vh);
}

RSSM_INLINE rssm_vf rssm_vwiden_f16(rssm_vh bits)
{
    const rssm_vu wide = __builtin_convertvector(bits, rssm_vu);
    const rssm_vu magnitude = wide & 0x7fffu;
    const rssm_vu normal = (magnitude << 13) + (112u << 23);
    const rssm_vu one = (rssm_vu){0} + (113u << 23);
    const rssm_vu subnormal = (rssm_vu)((rssm_vf)(normal + (1u << 23)) - (rssm_vf)one);
    const rssm_vu quiet = (rssm_vu)((rssm_vi)magnitude > 0x7c00) & 0x400000u;
    const rssm_vu special = (normal + (112u << 23)) | quiet;
    const rssm_vu finite = rssm_vselect((rssm_vu)((rssm_vi)magnitude < 0x400), subnormal, normal);
    const rssm_vu result = rssm_vselect((rssm_vu)((rssm_vi)magnitude >= 0x7c00), special, finite);
    return (rssm_vf)(result | ((wide & 0x8000u) << 16));
}

RSSM_INLINE rssm_vh rssm_vround_f16(rssm_vf value)
{
    const rssm_vu u = (rssm_vu)value;
    const rssm_vu magnitude = u & 0x7fffffffu;
    const rssm_vu normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    const rssm_vu subnormal = (rssm_vu)((rssm_vf)magnitude + 0.5f) - 0x3f000000u;
    const rssm_vu nan = ((magnitude >> 13) & 0x1ffu) | 0x7e00u;
    const rssm_vu infinite = (rssm_vu){0} + 0x7c00u;
    rssm_vu       result = rssm_vselect((rssm_vu)((rssm_vi)magnitude < 0x38800000), subnormal, normal);
    result = rssm_vselect((rssm_vu)((rssm_vi)magnitude >= 0x477ff000), infinite, result);
    result = rssm_vselect((rssm_vu)((rssm_vi)magnitude > 0x7f800000), nan, result);
    return __builtin_convertvector(result | ((u >> 16) & 0x8000u), rssm_vh);
}

// ------------------------------------------------------------------------------------------------ loads and stores

RSSM_INLINE rssm_vf rssm_vload_f32(const float *from)
{
    return *(const rssm_vf_memory *)from;
}

RSSM_INLINE rssm_vf rssm_vload_bf16(const rssm_bf16 *from)
{
    return rssm_vwiden_bf16(*(const rssm_vh_memory *)from);
}

RSSM_INLINE rssm_vf rssm_vload_f16(const rssm_f16 *from)
{
    return rssm_vwiden_f16(*(const rssm_vh_memory *)from);
}

RSSM_INLINE void rssm_vstore_f32(float *to, rssm_vf value)
{
    *(rssm_vf_memory *)to = value;
}

RSSM_INLINE void rssm_vstore_bf16(rssm_bf16 *to, rssm_vf value)
{
    *(rssm_vh_memory *)to = rssm_vround_bf16(value);
}

RSSM_INLINE void rssm_vstore_f16(rssm_f16 *to, rssm_vf value)
{
    *(rssm_vh_memory *)to = rssm_vround_f16(value);
}

// const T *, also where it is used for T *.
#define rssm_vload(from)                                                                                               \
    _Generic((from), const float *: rssm_vload_f32, float *: rssm_vload_f32,                           \
             const rssm_bf16 *: rssm_vload_bf16, rssm_bf16 *: rssm_vload_bf16,                         \
             const rssm_f16 *: rssm_vload_f16, rssm_f16 *: rssm_vload_f16)(from)

#define rssm_vstore(to, value)                                                                                         \
    _Generic((to), float * : rssm_vstore_f32, rssm_bf16 * : rssm_vstore_bf16, rssm_f16 * : rssm_vstore_f16)(to, value)

// The first n lanes, 0 <= n <= CFG_VEC. Where n is the constant CFG_VEC these are the plain forms.
RSSM_INLINE rssm_vf rssm_vload_n_f32(const float *from, rssm_i32 n)
{
    float lanes[CFG_VEC] = {0};
    if (n == CFG_VEC) return rssm_vload_f32(from);
    for (rssm_i32 i = 0; i < CFG_VEC; i++) {
        if (i < n) lanes[i] = from[i];
    }
    return rssm_vload_f32(lanes);
}

RSSM_INLINE rssm_vf rssm_vload_n_bf16(const rssm_bf16 *from, rssm_i32 n)
{
    rssm_bf16 lanes[CFG_VEC] = {{0}};
    if (n == CFG_VEC) return rssm_vload_bf16(from);
    for (rssm_i32 i = 0; i < CFG_VEC; i++) {
        if (i < n) lanes[i] = from[i];
    }
    return rssm_vload_bf16(lanes);
}

RSSM_INLINE rssm_vf rssm_vload_n_f16(const rssm_f16 *from, rssm_i32 n)
{
    rssm_f16 lanes[CFG_VEC] = {{0}};
    if (n == CFG_VEC) return rssm_vload_f16(from);
    for (rssm_i32 i = 0; i < CFG_VEC; i++) {
        if (i < n) lanes[i] = from[i];
    }
    return rssm_vload_f16(lanes);
}

RSSM_INLINE void rssm_vstore_n_f32(float *to, rssm_vf value, rssm_i32 n)
{
    if (n == CFG_VEC) {
        rssm_vstore_f32(to, value);
    } else {
        for (rssm_i32 i = 0; i < CFG_VEC; i++) {
            if (i < n) to[i] = value[i];
        }
    }
}

RSSM_INLINE void rssm_vstore_n_bf16(rssm_bf16 *to, rssm_vf value, rssm_i32 n)
{
    if (n == CFG_VEC) {
        rssm_vstore_bf16(to, value);
    } else {
        for (rssm_i32 i = 0; i < CFG_VEC; i++) {
            if (i < n) to[i] = rssm_float_to_bf16(value[i]);
        }
    }
}

RSSM_INLINE void rssm_vstore_n_f16(rssm_f16 *to, rssm_vf value, rssm_i32 n)
{
    if (n == CFG_VEC) {
        rssm_vstore_f16(to, value);
    } else {
        for (rssm_i32 i = 0; i < CFG_VEC; i++) {
            if (i < n) to[i] = rssm_float_to_f16(value[i]);
        }
    }
}

#define rssm_vload(from)                                                                                               \
    _Generic((from), const float *: rssm_vload_f32, float *: rssm_vload_f32,                    \
             const rssm_bf16 *: rssm_vload_bf16, rssm_bf16 *: rssm_vload_bf16,                  \
             const rssm_f16 *: rssm_vload_f16, rssm_f16 *: rssm_vload_f16)(from)

#define rssm_vload_n(from, n)                                                                                          \
    _Generic((from), const float *: rssm_vload_n_f32, float *: rssm_vload_n_f32,                \
             const rssm_bf16 *: rssm_vload_n_bf16, rssm_bf16 *: rssm_vload_n_bf16,              \
             const rssm_f16 *: rssm_vload_n_f16, rssm_f16 *: rssm_vload_n_f16)(from, n)

#define rssm_vstore(to, value)                                                                                         \
    _Generic((to), float * : rssm_vstore_f32, rssm_bf16 * : rssm_vstore_bf16, rssm_f16 * : rssm_vstore_f16)(to, value)

#define rssm_vstore_n(to, value, n)                                                                                    \
    _Generic((to), float *: rssm_vstore_n_f32, rssm_bf16 *: rssm_vstore_n_bf16,                 \
             rssm_f16 *: rssm_vstore_n_f16)(to, value, n)

// Asks for the cache line `offset` bytes behind `from` in the second-level cache. The line may lie outside any object:
// a hint never faults. (Into the first level such requests hold up the loads that follow: a third slower on Zen 4.)
RSSM_INLINE void rssm_prefetch_at(const void *from, rssm_i64 offset)
{
    __builtin_prefetch((const void *)((unsigned long long)from + (unsigned long long)offset), 0, 2);
}

// Asks for the cache lines of n_bytes, `offset` bytes behind `from`.
RSSM_INLINE void rssm_prefetch(const void *from, rssm_i64 offset, rssm_i64 n_bytes)
{
    for (rssm_i64 at = 0; at < n_bytes; at += 64) rssm_prefetch_at(from, offset + at);
}

// Memory accesses before this line stay before those after it, in the compiled order; no instruction. Hardware foresees
// a stream only where lines are touched in ascending order (measured on Zen 4: 29 GB/s against 9).
RSSM_INLINE void rssm_keep_order(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

#endif
