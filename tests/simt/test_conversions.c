// The emulator's conversions over every class of values, against lists of what a format holds and against numerics/.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "numerics/convert.h"
#include "tests/simt/instruction_kernel.h"

enum { VALUES = 40000 };

static float    values[VALUES];
static unsigned words_of_values[VALUES];

// Every exponent with fractions around each rounding position, both signs, subnormals, infinities, NaN.
static void make_values(void)
{
    unsigned n = 0, state = 1;
    for (unsigned exponent = 0; exponent < 256; exponent++) {
        for (unsigned i = 0; i < 70; i++) {
            static const unsigned near[] = {
                0,        1,        0x7fffff, 0x400000, 0x7fffff ^ 0x1000, 0x0fff,   0x1000,   0x1001,
                0x3000,   0x7fff,   0x8000,   0x8001,   0x18000,           0x7f8000, 0x080000, 0x080001,
                0x07ffff, 0x100000, 0x100001, 0x0fffff, 0x200000,          0x300000, 0x180000, 0x2fffff};
            state = state * 1664525u + 1013904223u;
            const unsigned fraction = i < 24 ? near[i] : i < 48 ? near[i - 24] ^ 0x400000 : state >> 9;
            values[n++] = rssm_bits_float(exponent << 23 | fraction);
            values[n++] = rssm_bits_float(1u << 31 | exponent << 23 | fraction);
        }
    }
    while (n < VALUES)
        values[n] = (float)n / 64.0f, n++;
}

static void convert(int which)
{
    simt_reset();
    const matrix_args args = {simt_test_buffer(sizeof values, values),
                              simt_test_buffer(4, NULL),
                              simt_test_buffer(4, NULL),
                              simt_test_buffer(sizeof values, NULL),
                              VALUES,
                              which};
    simt_run_instruction(&args);
    simt_download(words_of_values, args.words, sizeof values);
}

static void load_and_make(void)
{
    simt_load_instructions();
    make_values();
}

Test(conversions, conversions_to_16_bits_agree_with_numerics, .init = load_and_make, .timeout = 60)
{
    for (int pass = 0; pass < 2; pass++) {
        convert(pass ? CONVERT_F16 : CONVERT_BF16);
        for (unsigned i = 0; i < VALUES; i++) {
            const float    v = values[i];
            const unsigned lower = pass ? rssm_float_to_f16(v).bits : rssm_float_to_bf16(v).bits;
            const unsigned upper = pass ? rssm_float_to_f16(-v).bits : rssm_float_to_bf16(-v).bits;
            const unsigned want = isnan(v) ? 0x7fff7fffu : lower | upper << 16; // NaN: one pattern
            cr_assert_eq(words_of_values[i], want, "%a: %08x, not %08x", v, words_of_values[i], want);
        }
    }
    convert(CONVERT_FROM_F16);
    for (unsigned i = 0; i < VALUES; i++) {
        const rssm_f16 half = {(unsigned short)(rssm_float_bits(values[i]) & 0xffff)};
        const float    want = rssm_f16_to_float(half), got = rssm_bits_float(words_of_values[i]);
        cr_assert(got == want || (isnan(got) && isnan(want)), "%04x: %a, not %a", half.bits, got, want);
    }
}

// The nearest member of a list of magnitudes, ties to the even index, saturating at the last.
static unsigned nearest(const double *magnitudes, unsigned n, double magnitude)
{
    unsigned best = 0;
    for (unsigned i = 1; i < n; i++) {
        const double here = fabs(magnitudes[i] - magnitude), before = fabs(magnitudes[best] - magnitude);
        if (here < before || (here == before && i % 2 == 0)) best = i;
    }
    return best;
}

static unsigned small_list(int which, double *magnitudes)
{
    static const double e2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    if (which == CONVERT_E2M1) {
        memcpy(magnitudes, e2m1, sizeof e2m1);
        return 8;
    }
    const int      fraction_bits = which == CONVERT_E4M3 ? 3 : 2, bias = which == CONVERT_E4M3 ? 7 : 15;
    const unsigned n = which == CONVERT_E4M3 ? 0x7f : 0x7c; // e4m3: 0x7f is NaN; e5m2: Inf from 0x7c
    for (unsigned i = 0; i < n; i++) {
        const unsigned field = i >> fraction_bits, fraction = i & ((1u << fraction_bits) - 1);
        magnitudes[i] = field ? ldexp(1 + ldexp(fraction, -fraction_bits), (int)field - bias)
                              : ldexp(fraction, 1 - bias - fraction_bits);
    }
    return n;
}

Test(conversions, conversions_to_8_bits_and_less_saturate, .init = load_and_make, .timeout = 60)
{
    static const int forms[] = {CONVERT_E4M3, CONVERT_E5M2, CONVERT_E2M1};
    for (size_t form = 0; form < 3; form++) {
        double         magnitudes[128];
        const unsigned n = small_list(forms[form], magnitudes), width = forms[form] == CONVERT_E2M1 ? 4 : 8;
        convert(forms[form]);
        for (unsigned i = 0; i < VALUES; i++) {
            const float    v = values[i];
            const unsigned sign = signbit(v) ? 1u << (width - 1) : 0, other = sign ^ 1u << (width - 1);
            const unsigned bits = nearest(magnitudes, n, fmin(fabs((double)v), 1e6));
            unsigned       want = (bits | sign) | (bits | other) << width;
            if (isnan(v)) want = width == 4 ? 0x77u : 0x7f7fu;
            cr_assert_eq(words_of_values[i], want, "form %d, %a: %04x, not %04x", forms[form], v, words_of_values[i],
                         want);
        }
    }
    for (int pass = 0; pass < 2; pass++) {
        double         magnitudes[128];
        const unsigned n = small_list(pass ? CONVERT_E5M2 : CONVERT_E4M3, magnitudes);
        convert(pass ? CONVERT_FROM_E5M2 : CONVERT_FROM_E4M3);
        for (unsigned i = 0; i < VALUES; i++) {
            const unsigned bits = rssm_float_bits(values[i]) & 0xff, magnitude = bits & 0x7f;
            const float    got = rssm_bits_float(words_of_values[i]);
            if (magnitude < n)
                cr_assert_eq(got, (float)(bits & 0x80 ? -magnitudes[magnitude] : magnitudes[magnitude]));
            else if (pass && magnitude == 0x7c)
                cr_assert(isinf(got) && (got < 0) == (bits >> 7));
            else
                cr_assert(isnan(got));
        }
    }
}

Test(conversions, tf32_rounds_ties_away_and_int8_saturates, .init = load_and_make, .timeout = 60)
{
    convert(CONVERT_TF32);
    for (unsigned i = 0; i < VALUES; i++) {
        const float v = values[i], got = rssm_bits_float(words_of_values[i]);
        cr_assert_eq(words_of_values[i] & (isnan(v) ? 0 : 0x1fffu), 0);
        if (isnan(v) || isinf(v) || isinf(got)) {
            cr_assert(isnan(v) ? isnan(got) : isinf(got) && fabsf(v) >= 0x1.ffep127f, "%a gives %a", v, got);
            continue;
        }
        int exponent;
        frexp(v, &exponent);
        const double unit = ldexp(1, (exponent < -125 ? -125 : exponent) - 11);
        cr_assert_eq((double)got, copysign(floor(fabs((double)v) / unit + 0.5) * unit, v), "%a gives %a", v, got);
    }
    convert(CONVERT_INT8);
    for (unsigned i = 0; i < VALUES; i++) {
        const double v = values[i], whole = isnan(v) ? 0 : fmax(-128, fmin(127, nearbyint(v)));
        cr_assert_eq((int)words_of_values[i], (int)whole, "%a gives %d", v, (int)words_of_values[i]);
    }
}
