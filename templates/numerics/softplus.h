// exp, softplus and SiLU of one float. Valid as C11, C++17 and device code.
//
// On the device expf and log1pf are the compiler's own functions (NVRTC has them without a header). On the host they
// are written out below, because host kernels are loaded as objects that link nothing, not even libm; and so that the
// vector forms in prims/cpu_vector.h can follow the same formulas. Errors against the exact functions: rssm_exp 1.2,
// rssm_log1p 0.94, rssm_softplus 1.7 units in the last place (largest over every 61st float).
#ifndef RSSM_NUMERICS_SOFTPLUS_H
#define RSSM_NUMERICS_SOFTPLUS_H

#include "abi/types.h"
#include "numerics/convert.h"

// ln 2 in two parts: the first has 15 bits, so that its product with an exponent (9 bits) is exact.
#define RSSM_LN2_UPPER 0.693145751953125f
#define RSSM_LN2_LOWER 1.42860682030941723212e-6f
#define RSSM_LOG2_E 1.44269504088896340736f

// e^x = 2^k e^r with |r| <= ln 2 / 2, where the series to r^7 is within 6e-9. Gives 0 and Inf outside float's range.
RSSM_FN float rssm_exp(float x)
{
#if defined(__CUDA_ARCH__)
    return expf(x);
#else
    const float bounded = x < -104.0f ? -104.0f : (x > 89.0f ? 89.0f : x); // NaN passes: both comparisons fail
    // Adding 1.5 * 2^23 leaves the nearest integer in the low bits of the fraction.
    const float    shifted = bounded * RSSM_LOG2_E + 12582912.0f;
    const float    k = shifted - 12582912.0f;
    const rssm_i32 exponent = (rssm_i32)rssm_float_bits(shifted) - 0x4b400000;
    const float    r = (bounded - k * RSSM_LN2_UPPER) - k * RSSM_LN2_LOWER;
    const rssm_i32 half = exponent / 2; // in two factors: 2^k itself may be subnormal or too large
    float          e = 1.0f / 5040;

    e = e * r + 1.0f / 720;
    e = e * r + 1.0f / 120;
    e = e * r + 1.0f / 24;
    e = e * r + 1.0f / 6;
    e = e * r + 0.5f;
    e = e * r + 1.0f;
    e = e * r + 1.0f;
    if (!(x == x)) return x;
    return e * rssm_bits_float((rssm_u32)(127 + half) << 23) * rssm_bits_float((rssm_u32)(127 + exponent - half) << 23);
#endif
}

// log(1 + x) for 0 <= x < 2^126: 1 + x = 2^k m with m near 1, log m = 2 atanh((m - 1) / (m + 1)), and what the sum
// 1 + x lost to rounding is given back to first order.
RSSM_FN float rssm_log1p(float x)
{
#if defined(__CUDA_ARCH__)
    return log1pf(x);
#else
    const float    sum = 1.0f + x;
    const float    lost = x < 1.0f ? x - (sum - 1.0f) : 1.0f - (sum - x);
    const rssm_u32 bits = rssm_float_bits(sum);
    const rssm_i32 exponent = (rssm_i32)((bits + 0x4afb0du) >> 23) - 127; // m in [sqrt(1/2), sqrt(2))
    const float    m = rssm_bits_float(bits - ((rssm_u32)exponent << 23));
    const float    k = (float)exponent;
    const float    f = m - 1.0f;
    const float    q = f / (2.0f + f);
    const float    square = q * q;
    const float    series = square * (2.0f / 3 + square * (2.0f / 5 + square * (2.0f / 7 + square * (2.0f / 9))));
    // 2q = f - q f, so that the leading term is f itself, without a rounding.
    return k * RSSM_LN2_UPPER + (f - (q * (f - series) - (k * RSSM_LN2_LOWER + lost / sum)));
#endif
}

// log(1 + e^v), and v itself above 20, where the difference is below half a unit in the last place. Never overflows.
RSSM_FN float rssm_softplus(float v)
{
    return v > 20.0f ? v : rssm_log1p(rssm_exp(v));
}

// v * sigmoid(v). The exponential may overflow to Inf: the quotient is then the right zero.
RSSM_FN float rssm_silu(float v)
{
    return v / (1.0f + rssm_exp(-v));
}

#endif
