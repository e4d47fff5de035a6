// Loads and stores of vectors in the storage formats, for CPU kernels.
//
// Any alignment; the format is chosen by the pointer's type. `_n` forms touch the first n lanes only and fill the
// others with 0. Rounding is that of numerics/convert.h, bit for bit. Include rssm_config.h first. Not for device code.
#ifndef RSSM_PRIMS_CPU_FORMAT_H
#define RSSM_PRIMS_CPU_FORMAT_H

#include "numerics/convert.h"
#include "prims/cpu_vector.h"

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

// Dozens of instructions without F16C: in the build that counts bytes (RSSM_SMALL) functions of their own.
#if defined(RSSM_SMALL)
#define RSSM_LONG RSSM_APART
#else
#define RSSM_LONG RSSM_INLINE
#endif

RSSM_LONG void rssm_convert_from_f16(float *to, const rssm_f16 *from)
{
    *(rssm_vf_memory *)to = rssm_vwiden_f16(*(const rssm_vh_memory *)from);
}

RSSM_LONG void rssm_convert_to_f16(rssm_f16 *to, const float *from)
{
    *(rssm_vh_memory *)to = rssm_vround_f16(*(const rssm_vf_memory *)from);
}

RSSM_INLINE rssm_vf rssm_vload_f16(const rssm_f16 *from)
{
    float lanes[CFG_VEC];
    rssm_convert_from_f16(lanes, from);
    return rssm_vload_f32(lanes);
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
    float lanes[CFG_VEC];
    rssm_vstore_f32(lanes, value);
    rssm_convert_to_f16(to, lanes);
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

#define rssm_vload_n(from, n)                                                                                          \
    _Generic((from), const float *: rssm_vload_n_f32, float *: rssm_vload_n_f32,                \
             const rssm_bf16 *: rssm_vload_n_bf16, rssm_bf16 *: rssm_vload_n_bf16,              \
             const rssm_f16 *: rssm_vload_n_f16, rssm_f16 *: rssm_vload_n_f16)(from, n)

#define rssm_vstore_n(to, value, n)                                                                                    \
    _Generic((to), float *: rssm_vstore_n_f32, rssm_bf16 *: rssm_vstore_n_bf16,                 \
             rssm_f16 *: rssm_vstore_n_f16)(to, value, n)

#endif
