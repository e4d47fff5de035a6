// Number formats of matrix operands and conversions, computed from their definition: sign, exponent field, fraction.
// Shares nothing with templates/numerics, which it checks.
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "tests/simt/device.h"

typedef struct layout {
    int  exponent_bits, fraction_bits, bias;
    bool has_inf;       // an exponent of all ones is Inf or NaN
    bool has_nan;       // without Inf: all ones only (E4M3)
    int  low_zero_bits; // below the fraction, as tf32 lies in 32 bits
} layout;

static const layout layouts[SIMT_N_FORMATS] = {
    [SIMT_BF16] = {8, 7, 127, true, true, 0}, [SIMT_F16] = {5, 10, 15, true, true, 0},
    [SIMT_E4M3] = {4, 3, 7, false, true, 0},  [SIMT_E5M2] = {5, 2, 15, true, true, 0},
    [SIMT_E2M1] = {2, 1, 1, false, false, 0}, [SIMT_TF32] = {8, 10, 127, true, true, 13},
};

static uint32_t field_max(const layout *f)
{
    return (1u << f->exponent_bits) - 1;
}

// Largest finite magnitude, as bits without sign.
static uint32_t largest(const layout *f)
{
    const uint32_t all = (field_max(f) << f->fraction_bits) | ((1u << f->fraction_bits) - 1);
    if (f->has_inf) return (field_max(f) << f->fraction_bits) - 1;
    return f->has_nan ? all - 1 : all;
}

static double magnitude_of(const layout *f, uint32_t bits)
{
    const uint32_t field = bits >> f->fraction_bits, fraction = bits & ((1u << f->fraction_bits) - 1);
    if (field == 0) return ldexp(fraction, 1 - f->bias - f->fraction_bits);
    return ldexp((double)(fraction + (1u << f->fraction_bits)), (int)field - f->bias - f->fraction_bits);
}

float simt_decode(simt_format format, uint32_t bits)
{
    const layout  *f = &layouts[format];
    const int      n = f->exponent_bits + f->fraction_bits;
    const uint32_t word = bits >> f->low_zero_bits, magnitude = word & ((1u << n) - 1);
    const float    sign = word >> n & 1 ? -1.0f : 1.0f;

    if (f->has_inf && magnitude >> f->fraction_bits == field_max(f)) {
        return magnitude & ((1u << f->fraction_bits) - 1) ? NAN : sign * INFINITY;
    }
    if (!f->has_inf && f->has_nan && magnitude > largest(f)) return NAN;
    return sign * (float)magnitude_of(f, magnitude);
}

uint32_t simt_encode(simt_format format, float value, int saturate)
{
    const layout  *f = &layouts[format];
    const int      n = f->exponent_bits + f->fraction_bits;
    const uint32_t sign = signbit(value) ? 1u << n : 0, all = (1u << n) - 1;
    uint32_t       low = 0, high = largest(f) + 1;
    const double   magnitude = fabs((double)value);

    if (isnan(value)) return (f->has_nan ? all : largest(f)) << f->low_zero_bits; // one NaN, positive; E2M1 has none
    // Magnitudes grow with their bits: the largest that is not above the value, by halving.
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (magnitude_of(f, middle) <= magnitude)
            low = middle;
        else
            high = middle;
    }
    const double below = magnitude_of(f, low), above = magnitude_of(f, low + 1); // above the largest: one step further
    const double middle = below + (above - below) / 2;
    if (magnitude > middle || (magnitude == middle && (low & 1))) low++;
    if (low > largest(f) || (isinf(value) && !saturate)) {
        low = saturate || !f->has_nan ? largest(f) : f->has_inf ? field_max(f) << f->fraction_bits : all;
    }
    return (low | sign) << f->low_zero_bits;
}

uint32_t simt_to_tf32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value)) return 0x7fffffffu;
    if (isinf(value)) return bits;
    // Half a unit of the tenth fraction bit away from zero, then cut: a carry goes into the exponent, up to Inf.
    return (bits + 0x1000u) & ~0x1fffu;
}

int32_t simt_to_int(float value, int32_t low, int32_t high, int to_nearest)
{
    const double whole = to_nearest ? nearbyint((double)value) : trunc((double)value);
    if (isnan(value)) return 0;
    return whole < low ? low : whole > high ? high : (int32_t)whole;
}

float simt_fma(float a, float b, float c)
{
    return fmaf(a, b, c);
}
