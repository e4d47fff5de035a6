// Scalar conversions between float and the 16-bit formats. Valid as C11, C++17 and device code.
//
// To float: exact, subnormals included. From float: round to nearest, ties to even; overflow gives Inf, Inf stays Inf,
// a NaN stays a quiet NaN with its sign and upper payload. Only integer operations and arithmetic on normal floats, so
// the results are the same where the processor flushes subnormal floats to zero.
//
// rssm_to_float and rssm_store_float choose by the argument's type (_Generic in C, overloads in C++); rssm_float_at
// chooses by a run-time RSSM_TYPE_* code, for tensors whose format is no part of a kernel's configuration.
#ifndef RSSM_NUMERICS_CONVERT_H
#define RSSM_NUMERICS_CONVERT_H

#include "abi/types.h"
#include "numerics/types.h"

// Bit casts: the one place that depends on the language. Host compilers (GCC, Clang) turn the copy into a move.
RSSM_FN rssm_u32 rssm_float_bits(float value)
{
#if defined(__CUDA_ARCH__)
    return __float_as_uint(value);
#else
    rssm_u32 bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
#endif
}

RSSM_FN float rssm_bits_float(rssm_u32 bits)
{
#if defined(__CUDA_ARCH__)
    return __uint_as_float(bits);
#else
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
#endif
}

RSSM_FN float rssm_bf16_to_float(rssm_bf16 x)
{
    return rssm_bits_float((rssm_u32)x.bits << 16);
}

RSSM_FN rssm_bf16 rssm_float_to_bf16(float value)
{
    const rssm_u32 u = rssm_float_bits(value);
    const rssm_u32 is_nan = (u & 0x7fffffffu) > 0x7f800000u;
    const rssm_u32 nearest = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    rssm_bf16      x;
    x.bits = (unsigned short)(is_nan ? (u >> 16) | 0x40u : nearest);
    return x;
}

RSSM_FN float rssm_f16_to_float(rssm_f16 x)
{
    const rssm_u32 sign = ((rssm_u32)x.bits & 0x8000u) << 16;
    const rssm_u32 magnitude = (rssm_u32)x.bits & 0x7fffu;
    rssm_u32       u = (magnitude << 13) + (112u << 23); // exponent bias 15 to 127

    if (magnitude >= 0x7c00u) {
        u += 112u << 23; // Inf and NaN: the exponent of all ones
        if (magnitude > 0x7c00u) u |= 0x400000u;
    } else if (magnitude < 0x400u) { // fraction * 2^-24: placed below 2^-14, whose leading one is then taken away
        u = rssm_float_bits(rssm_bits_float(u + (1u << 23)) - rssm_bits_float(113u << 23));
    }
    return rssm_bits_float(u | sign);
}

RSSM_FN rssm_f16 rssm_float_to_f16(float value)
{
    const rssm_u32 u = rssm_float_bits(value);
    const rssm_u32 magnitude = u & 0x7fffffffu;
    rssm_u32       bits;
    rssm_f16       x;

    if (magnitude > 0x7f800000u) {
        bits = 0x7e00u | ((magnitude >> 13) & 0x1ffu);
    } else if (magnitude >= 0x477ff000u) { // 65520: half way between the largest finite value and the next
        bits = 0x7c00u;
    } else if (magnitude < 0x38800000u) { // below 2^-14: 0.5 has a spacing of 2^-24, so the addition rounds
        bits = rssm_float_bits(rssm_bits_float(magnitude) + 0.5f) - 0x3f000000u;
    } else {
        bits = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    }
    x.bits = (unsigned short)(bits | ((u >> 16) & 0x8000u));
    return x;
}

#if defined(__cplusplus)

RSSM_FN float rssm_to_float(float x)
{
    return x;
}
RSSM_FN float rssm_to_float(rssm_bf16 x)
{
    return rssm_bf16_to_float(x);
}
RSSM_FN float rssm_to_float(rssm_f16 x)
{
    return rssm_f16_to_float(x);
}
RSSM_FN void rssm_store_float(float *to, float value)
{
    *to = value;
}
RSSM_FN void rssm_store_float(rssm_bf16 *to, float value)
{
    *to = rssm_float_to_bf16(value);
}
RSSM_FN void rssm_store_float(rssm_f16 *to, float value)
{
    *to = rssm_float_to_f16(value);
}

#else

RSSM_FN float rssm_float_to_float(float x)
{
    return x;
}

RSSM_FN void rssm_store_float_f32(float *to, float value)
{
    *to = value;
}

RSSM_FN void rssm_store_float_bf16(rssm_bf16 *to, float value)
{
    *to = rssm_float_to_bf16(value);
}

RSSM_FN void rssm_store_float_f16(rssm_f16 *to, float value)
{
    *to = rssm_float_to_f16(value);
}

#define rssm_to_float(x)                                                                                               \
    _Generic((x), float : rssm_float_to_float, rssm_bf16 : rssm_bf16_to_float, rssm_f16 : rssm_f16_to_float)(x)
#define rssm_store_float(to, value)                                                                                    \
    _Generic((to), float *: rssm_store_float_f32, rssm_bf16 *: rssm_store_float_bf16,                \
             rssm_f16 *: rssm_store_float_f16)(to, value)

#endif

// Element `index` of a tensor whose format is the run-time code `type`.
RSSM_FN float rssm_float_at(const void *data, rssm_i64 index, rssm_i32 type)
{
    if (type == RSSM_TYPE_BF16) return rssm_bf16_to_float(((const rssm_bf16 *)data)[index]);
    if (type == RSSM_TYPE_F16) return rssm_f16_to_float(((const rssm_f16 *)data)[index]);
    return ((const float *)data)[index];
}

#endif
