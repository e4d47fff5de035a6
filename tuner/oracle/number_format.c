// Number formats as the oracle sees them; see number_format.h.
#include "tuner/oracle/number_format.h"

#include <math.h>
#include <string.h>

#include "include/replayssm.h"

// A binary floating-point format. A finite value is k * 2^(e - precision) with 2^(precision-1) <= |k| < 2^precision,
// or, below the smallest exponent, k * 2^least.
typedef struct number_format {
    int precision; // significant bits, the implicit one included
    int exponent_bits;
    int bias;  // of the stored exponent
    int least; // exponent of the smallest subnormal
} number_format;

static const number_format formats[] = {
    [RSSM_F32] = {24, 8, 127, -149},
    [RSSM_BF16] = {8, 8, 127, -133},
    [RSSM_F16] = {11, 5, 15, -24},
};

// Exponent of the spacing of the format's numbers at `value` (finite).
static int spacing_exponent(const number_format *f, double value)
{
    int e = 0;
    if (value == 0) return f->least;
    frexp(value, &e); // |value| = m * 2^e, 1/2 <= m < 1
    return e - f->precision > f->least ? e - f->precision : f->least;
}

double rssm_oracle_value(uint32_t dtype, uint32_t bits)
{
    const number_format *f = &formats[dtype];
    const uint32_t       stored_bits = (uint32_t)(f->precision - 1);
    const uint32_t       stored = bits % (1u << stored_bits);
    const int            exponent = (int)((bits >> stored_bits) % (1u << f->exponent_bits));
    const double         sign = (bits >> (stored_bits + (uint32_t)f->exponent_bits)) % 2 ? -1 : 1;
    const int            special = (1 << f->exponent_bits) - 1;

    if (exponent == special) return stored ? copysign(NAN, sign) : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(stored, f->least);
    return sign * ldexp(stored + ldexp(1, (int)stored_bits), f->least + exponent - 1);
}

double rssm_oracle_round(uint32_t dtype, double value)
{
    const number_format *f = &formats[dtype];
    if (!isfinite(value)) return value;

    const int    q = spacing_exponent(f, value);
    const double rounded = ldexp(rint(ldexp(value, -q)), q);
    const double beyond = ldexp(1, f->bias + 1); // the first power of two without a pattern
    return fabs(rounded) >= beyond ? copysign(INFINITY, value) : copysign(rounded, value);
}

uint32_t rssm_oracle_bits(uint32_t dtype, double value)
{
    const number_format *f = &formats[dtype];
    const int            stored_bits = f->precision - 1;
    const uint32_t       special = ((1u << f->exponent_bits) - 1) << stored_bits;
    const uint32_t       sign = (signbit(value) ? 1u : 0u) << (stored_bits + f->exponent_bits);
    const double         r = fabs(rssm_oracle_round(dtype, value));
    int                  e = 0;

    if (isnan(r)) return sign | special | 1u << (stored_bits - 1);
    if (isinf(r)) return sign | special;
    if (r == 0) return sign;
    const double m = frexp(r, &e);
    if (e - f->precision < f->least) return sign | (uint32_t)ldexp(r, -f->least); // subnormal
    return sign | (uint32_t)(e - 1 + f->bias) << stored_bits | (uint32_t)ldexp(2 * m - 1, stored_bits);
}

double rssm_oracle_half_ulp(uint32_t dtype, double value)
{
    return isfinite(value) ? ldexp(0.5, spacing_exponent(&formats[dtype], value)) : INFINITY;
}

void rssm_oracle_load(uint32_t dtype, const void *from, size_t n, double *out_values)
{
    const unsigned char *bytes = from;
    for (size_t i = 0; i < n; i++) {
        if (dtype == RSSM_F32) {
            float value;
            memcpy(&value, bytes + i * sizeof value, sizeof value);
            out_values[i] = value;
        } else {
            uint16_t bits;
            memcpy(&bits, bytes + i * sizeof bits, sizeof bits);
            out_values[i] = rssm_oracle_value(dtype, bits);
        }
    }
}

void rssm_oracle_store(uint32_t dtype, const double *values, size_t n, void *out_bytes)
{
    unsigned char *bytes = out_bytes;
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = rssm_oracle_bits(dtype, values[i]);
        const uint16_t half = (uint16_t)bits;
        if (dtype == RSSM_F32) {
            memcpy(bytes + i * sizeof bits, &bits, sizeof bits);
        } else {
            memcpy(bytes + i * sizeof half, &half, sizeof half);
        }
    }
}

double rssm_oracle_error(uint32_t dtype, double want, double bound, double got)
{
    if (isnan(got) || isnan(want)) return INFINITY;
    if (isinf(got)) return got == rssm_oracle_round(dtype, want + copysign(bound, want)) ? 0 : INFINITY;
    return fabs(got - want) / (bound + rssm_oracle_half_ulp(dtype, fabs(want) + bound));
}
