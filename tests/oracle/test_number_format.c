// Tests of tuner/oracle/number_format.c. The 16-bit formats are checked exhaustively against values built by walking
// up the number line one spacing at a time, which uses neither the code under test nor bit tricks.
#include "tuner/oracle/number_format.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "include/replayssm.h"

enum { MANTISSA_BF16 = 7, MANTISSA_F16 = 10, INF_BF16 = 0x7f80, INF_F16 = 0x7c00 };

static const struct sixteen_bits {
    uint32_t dtype;
    int      mantissa_bits;
    uint32_t infinity; // pattern
    double   smallest; // subnormal
    double   largest;  // finite
} sixteen_bits[] = {
    {RSSM_BF16, MANTISSA_BF16, INF_BF16, 0x1p-133, 0x1.fep127},
    {RSSM_F16, MANTISSA_F16, INF_F16, 0x1p-24, 65504},
};

// Fills value[0 .. infinity] of the non-negative patterns; value[infinity] is the first power of two without a pattern.
static void walk(const struct sixteen_bits *f, double *value)
{
    double spacing = f->smallest;
    value[0] = 0;
    for (uint32_t bits = 1; bits <= f->infinity; bits++) {
        const uint32_t below = bits - 1;
        // The spacing doubles after each whole binade, but not after the subnormals, which share the first one's.
        if (below % (1u << f->mantissa_bits) == 0 && below >> f->mantissa_bits >= 2) spacing *= 2;
        value[bits] = value[below] + spacing;
    }
}

Test(number_format, decodes_every_16_bit_pattern)
{
    static double value[1 << 15];
    for (size_t i = 0; i < 2; i++) {
        const struct sixteen_bits *f = &sixteen_bits[i];
        walk(f, value);
        cr_assert_eq(value[f->infinity - 1], f->largest);
        for (uint32_t bits = 0; bits < 1u << 16; bits++) {
            const double   got = rssm_oracle_value(f->dtype, bits);
            const uint32_t magnitude = bits & 0x7fff;
            cr_assert_eq(!!signbit(got), bits >> 15, "sign of %04x", bits);
            if (magnitude > f->infinity) {
                cr_assert(isnan(got), "%04x is a NaN", bits);
            } else if (magnitude == f->infinity) {
                cr_assert(isinf(got), "%04x is an infinity", bits);
            } else {
                cr_assert_eq(fabs(got), value[magnitude], "%04x is %a, not %a", bits, value[magnitude], got);
            }
        }
    }
}

Test(number_format, every_16_bit_pattern_survives_a_round_trip)
{
    for (size_t i = 0; i < 2; i++) {
        const struct sixteen_bits *f = &sixteen_bits[i];
        for (uint32_t bits = 0; bits < 1u << 16; bits++) {
            const double   value = rssm_oracle_value(f->dtype, bits);
            const uint32_t back = rssm_oracle_bits(f->dtype, value);
            if (isnan(value)) {
                cr_assert(isnan(rssm_oracle_value(f->dtype, back)) && back >> 15 == bits >> 15, "%04x", bits);
            } else {
                cr_assert_eq(back, bits, "%04x came back as %04x", bits, back);
            }
        }
    }
}

// Between each pattern and the next one: the tie goes to the even pattern, the rest to the nearer one. The last pair
// is the largest finite number and the infinity, so overflow is part of it; the first ones are subnormal.
Test(number_format, rounds_to_nearest_with_ties_to_even_everywhere)
{
    static double value[1 << 15];
    for (size_t i = 0; i < 2; i++) {
        const struct sixteen_bits *f = &sixteen_bits[i];
        walk(f, value);
        for (uint32_t bits = 0; bits < f->infinity; bits++) {
            const double   middle = (value[bits] + value[bits + 1]) / 2;
            const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
            const uint32_t sign = 0x8000;
            cr_assert_eq(rssm_oracle_bits(f->dtype, middle), even, "tie above %04x", bits);
            cr_assert_eq(rssm_oracle_bits(f->dtype, -middle), even | sign, "tie below -%04x", bits);
            cr_assert_eq(rssm_oracle_bits(f->dtype, nextafter(middle, 0)), bits);
            cr_assert_eq(rssm_oracle_bits(f->dtype, nextafter(middle, INFINITY)), bits + 1);
            cr_assert_eq(rssm_oracle_half_ulp(f->dtype, value[bits]), middle - value[bits], "half ulp at %04x", bits);
        }
        cr_assert_eq(rssm_oracle_round(f->dtype, value[f->infinity]), INFINITY);
        cr_assert_eq(rssm_oracle_bits(f->dtype, 1e300), f->infinity);
        cr_assert_eq(rssm_oracle_bits(f->dtype, -INFINITY), f->infinity | 0x8000);
        cr_assert_eq(rssm_oracle_bits(f->dtype, -0.0), 0x8000);
    }
}

// The compiler's own float is the independent check here.
Test(number_format, agrees_with_the_machine_about_f32)
{
    uint32_t bits = 1;
    for (int i = 0; i < 2000000; i++) {
        float single;
        bits = bits * 1664525u + 1013904223u;
        memcpy(&single, &bits, sizeof single);
        if (isnan(single)) continue;
        cr_assert_eq(rssm_oracle_value(RSSM_F32, bits), (double)single, "%08x", bits);
        cr_assert_eq(rssm_oracle_bits(RSSM_F32, single), bits, "%08x", bits);
        const double between = (double)single * (1 + i * 0x1p-50);
        float        rounded = (float)between;
        uint32_t     want;
        memcpy(&want, &rounded, sizeof want);
        cr_assert_eq(rssm_oracle_bits(RSSM_F32, between), want, "%a", between);
    }
}

Test(number_format, loads_and_stores_unaligned_elements)
{
    static const double   values[3] = {1, -2.5, 0x1p-14};
    static const uint32_t dtypes[3] = {RSSM_F32, RSSM_BF16, RSSM_F16};
    for (size_t i = 0; i < 3; i++) {
        unsigned char bytes[16];
        double        back[3];
        memset(bytes, 0xee, sizeof bytes);
        rssm_oracle_store(dtypes[i], values, 3, bytes + 1);
        rssm_oracle_load(dtypes[i], bytes + 1, 3, back);
        cr_assert(memcmp(values, back, sizeof values) == 0);
        cr_assert_eq(bytes[0], 0xee);
        cr_assert_eq(bytes[dtypes[i] == RSSM_F32 ? 13 : 7], 0xee);
    }
}

Test(number_format, error_is_one_at_the_edge_of_what_rounding_explains)
{
    // 1 + 2^-8 is the tie between the bf16 neighbours 1 and 1 + 2^-7.
    cr_assert_eq(rssm_oracle_error(RSSM_BF16, 1 + 0x1p-8, 0, 1), 1);
    cr_assert_eq(rssm_oracle_error(RSSM_BF16, 1 + 0x1p-8, 0, 1 + 0x1p-7), 1);
    cr_assert_gt(rssm_oracle_error(RSSM_BF16, 1 + 0x1.1p-8, 0, 1), 1);
    cr_assert_lt(rssm_oracle_error(RSSM_BF16, 1 + 0x1.1p-8, 0x1p-11, 1), 1); // an error before the rounding
    cr_assert_eq(rssm_oracle_error(RSSM_BF16, 0, 0, NAN), INFINITY);
    cr_assert_eq(rssm_oracle_error(RSSM_F16, 1e5, 0, INFINITY), 0);
    cr_assert_eq(rssm_oracle_error(RSSM_F16, 1e5, 0, -INFINITY), INFINITY);
    cr_assert_eq(rssm_oracle_error(RSSM_F16, 60000, 1, INFINITY), INFINITY);
}
