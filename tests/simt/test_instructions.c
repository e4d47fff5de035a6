// The emulator's instructions against definitions written out here: matrix products with position-coded operands, moves
// of matrices, conversions over every value class, exchanges of lanes.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "numerics/convert.h"
#include "tests/simt/emulator.h"
#include "tests/simt/kernels/matrix.h"
#include "tests/simt/suite.h"
#include "tuner/oracle/number_format.h"

static simt_kernel *kernel;

static void load_kernel(void)
{
    rssm_diag                  diag = {0};
    const simt_compile_options options = {.clang = simt_clang(),
                                          .template_root = RSSM_SOURCE_DIR "/templates",
                                          .source = RSSM_SOURCE_DIR "/tests/simt/kernels/matrix.cu",
                                          .entry = "matrix",
                                          .args = "matrix_args"};
    cr_assert_eq(simt_kernel_load(&options, &kernel, &diag), RSSM_OK, "%s", diag.text);
}

static void *buffer(size_t n, const void *from)
{
    void *pointer = NULL;
    cr_assert_eq(simt_alloc(n, &pointer, NULL), RSSM_OK);
    if (from) simt_upload(pointer, from, n, false);
    return pointer;
}

static void run(const matrix_args *args)
{
    simt_report               report;
    const simt_launch_options options = {{1, 1, 1}, {32, 1, 1}, 1024, 3, false};
    cr_assert(simt_launch(kernel, &options, args, &report), "instruction %d: %s", args->which, report.text);
}

// ------------------------------------------------------------------------------------------------------------ products

typedef struct product {
    int  which, depth, bytes;
    char format[6];
} product;

// Values that every format holds exactly, and products whose sums are exact in its accumulator: powers of two that name
// the position, few at a time.
static unsigned bits_of(const product *p, float value)
{
    if (strcmp(p->format, "bf16") == 0) return rssm_float_to_bf16(value).bits;
    if (strcmp(p->format, "f16") == 0) return rssm_float_to_f16(value).bits;
    if (strcmp(p->format, "tf32") == 0) return rssm_float_bits(value);
    if (strcmp(p->format, "e5m2") == 0) return rssm_float_to_f16(value).bits >> 8;
    if (value == 0) return 0;
    int exponent; // e4m3, normal values
    const float fraction = frexpf(fabsf(value), &exponent);
    return (value < 0 ? 0x80u : 0u) | (unsigned)(exponent - 1 + 7) << 3 | (unsigned)((fraction * 2 - 1) * 8);
}

static void put(const product *p, void *matrix, int index, float value)
{
    const unsigned bits = bits_of(p, value);
    memcpy((char *)matrix + index * p->bytes, &bits, (size_t)p->bytes);
}

static void multiply(const product *p, const float *a, const float *b, float d[16][8])
{
    unsigned char A[16 * 32 * 4] = {0}, B[32 * 8 * 4] = {0};
    for (int i = 0; i < 16 * p->depth; i++)
        put(p, A, i, a[i]);
    for (int i = 0; i < 8 * p->depth; i++)
        put(p, B, i, b[i]);
    simt_reset();
    const matrix_args args = {buffer((size_t)(16 * p->depth * p->bytes), A), buffer((size_t)(8 * p->depth * p->bytes), B),
                              buffer(16 * 8 * 4, d), buffer(4, NULL), 0, p->which};
    run(&args);
    simt_download(d, args.d, 16 * 8 * 4);
}

static const product products[] = {
    {MATRIX_BF16, 16, 2, "bf16"}, {MATRIX_F16, 16, 2, "f16"}, {MATRIX_BF16_8, 8, 2, "bf16"}, {MATRIX_F16_8, 8, 2, "f16"},
    {MATRIX_TF32, 8, 4, "tf32"},  {MATRIX_TF32_4, 4, 4, "tf32"}, {MATRIX_E4M3, 32, 1, "e4m3"}, {MATRIX_E5M2, 32, 1, "e5m2"},
};

Test(instructions, matrix_products_use_every_element_at_its_place, .init = load_kernel, .timeout = 60)
{
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        const product *p = &products[i];
        // One element of a against one of b: exactly one k contributes, and exactly one (row, column).
        for (int k = 0; k < p->depth; k++) {
            float a[16 * 32] = {0}, b[32 * 8] = {0}, d[16][8] = {{0}};
            for (int row = 0; row < 16; row++)
                a[row * p->depth + k] = (float)(1 << (row % 4)) * (row & 4 ? -1.0f : 1.0f) * (row & 8 ? 1.5f : 1.0f);
            for (int column = 0; column < 8; column++)
                b[k * 8 + column] = (float)(1 << (column % 4)) * (column & 4 ? 1.25f : 1.0f);
            multiply(p, a, b, d);
            for (int row = 0; row < 16; row++) {
                for (int column = 0; column < 8; column++) {
                    const float want = a[row * p->depth + k] * b[k * 8 + column];
                    cr_assert_eq(d[row][column], want, "%s depth %d, k %d: d[%d][%d] is %g, not %g", p->format, p->depth,
                                 k, row, column, d[row][column], want);
                }
            }
        }
    }
}

Test(instructions, matrix_products_accumulate, .init = load_kernel, .timeout = 60)
{
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        const product *p = &products[i];
        float          a[16 * 32], b[32 * 8], d[16][8], c[16][8];
        for (int j = 0; j < 16 * p->depth; j++)
            a[j] = (float)(j * 7 % 5 - 2);
        for (int j = 0; j < 8 * p->depth; j++)
            b[j] = (float)(j * 11 % 7 - 3);
        for (int j = 0; j < 128; j++)
            d[j / 8][j % 8] = c[j / 8][j % 8] = (float)(j % 9) - 4;
        multiply(p, a, b, d);
        for (int row = 0; row < 16; row++) {
            for (int column = 0; column < 8; column++) {
                float want = c[row][column];
                for (int k = 0; k < p->depth; k++)
                    want += a[row * p->depth + k] * b[k * 8 + column];
                cr_assert_eq(d[row][column], want, "%s depth %d: d[%d][%d] is %g, not %g", p->format, p->depth, row, column,
                             d[row][column], want);
            }
        }
    }
}

// The sum is cut where hardware cuts it: 1 + 2^-25 loses the small term wherever it stands; 2^-25 * 2 is kept.
Test(instructions, matrix_sums_are_truncated, .init = load_kernel, .timeout = 60)
{
    const product *p = &products[0];
    float          a[16 * 32] = {0}, b[32 * 8] = {0}, d[16][8] = {{0}};
    for (int k = 0; k < 3; k++)
        b[k * 8] = 1.0f;
    a[0] = 1.0f, a[1] = 0x1p-24f, a[2] = 0x1p-24f;                                      // row 0: 1 + 2^-23
    a[p->depth] = 1.0f, a[p->depth + 1] = 0x1p-27f;                                     // row 1: below the two extra bits
    a[2 * p->depth] = -1.0f, a[2 * p->depth + 1] = 0x1p-25f;                            // row 2: cut towards zero
    a[3 * p->depth] = 1.0f, a[3 * p->depth + 1] = 0x1p-24f, a[3 * p->depth + 2] = -1.0f; // row 3: 2^-24 survives
    multiply(p, a, b, d);
    cr_expect_eq(d[0][0], 1.0f + 0x1p-23f);
    cr_expect_eq(d[1][0], 1.0f);
    cr_expect_eq(d[2][0], -1.0f + 0x1p-24f, "%.9g", d[2][0]);
    cr_expect_eq(d[3][0], 0x1p-24f);
}

// -------------------------------------------------------------------------------------------------------------- moves

static void move_matrices(int which, unsigned words[4][32])
{
    unsigned short m[4][8][8];
    for (int i = 0; i < 256; i++)
        m[i / 64][i / 8 % 8][i % 8] = (unsigned short)(1000 * (i / 64) + 10 * (i / 8 % 8) + i % 8);
    simt_reset();
    const matrix_args args = {buffer(512, m), buffer(4, NULL), buffer(4, NULL), buffer(512, NULL), 0, which};
    run(&args);
    simt_download(words, args.words, 512);
}

Test(instructions, matrices_are_dealt_out_by_row_or_column, .init = load_kernel, .timeout = 60)
{
    const struct {
        int  which, n;
        bool transposed;
    } cases[] = {{LOAD_MATRIX4, 4, false},           {LOAD_MATRIX4_TRANSPOSED, 4, true}, {LOAD_MATRIX2, 2, false},
                 {LOAD_MATRIX2_TRANSPOSED, 2, true}, {LOAD_MATRIX1, 1, false},           {TRANSPOSE, 1, true},
                 {STORE_MATRIX4, 4, false},          {STORE_MATRIX4_TRANSPOSED, 4, true}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        unsigned words[4][32];
        move_matrices(cases[c].which, words);
        for (unsigned i = 0; i < (unsigned)cases[c].n; i++) {
            for (unsigned lane = 0; lane < 32; lane++) {
                for (unsigned half = 0; half < 2; half++) {
                    const unsigned g = lane / 4, k = lane % 4 * 2 + half;
                    const unsigned row = cases[c].transposed ? k : g, column = cases[c].transposed ? g : k;
                    const unsigned got = words[i][lane] >> (16 * half) & 0xffff, want = 1000 * i + 10 * row + column;
                    cr_assert_eq(got, want, "form %d, matrix %u, lane %u, half %u: %u, not %u", cases[c].which, i, lane,
                                 half, got, want);
                }
            }
        }
    }
}

// -------------------------------------------------------------------------------------------------------- conversions

enum { VALUES = 40000 };

static float  values[VALUES];
static unsigned words_of_values[VALUES];

// Every exponent with fractions around each rounding position, both signs, subnormals, infinities, NaN.
static void make_values(void)
{
    unsigned n = 0, state = 1;
    for (unsigned exponent = 0; exponent < 256; exponent++) {
        for (unsigned i = 0; i < 70; i++) {
            static const unsigned near[] = {0, 1, 0x7fffff, 0x400000, 0x7fffff ^ 0x1000, 0x0fff, 0x1000, 0x1001, 0x3000,
                                            0x7fff, 0x8000, 0x8001, 0x18000, 0x7f8000, 0x080000, 0x080001, 0x07ffff,
                                            0x100000, 0x100001, 0x0fffff, 0x200000, 0x300000, 0x180000, 0x2fffff};
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
    const matrix_args args = {buffer(sizeof values, values), buffer(4, NULL), buffer(4, NULL), buffer(sizeof values, NULL),
                              VALUES, which};
    run(&args);
    simt_download(words_of_values, args.words, sizeof values);
}

static void load_and_make(void)
{
    load_kernel();
    make_values();
}

Test(instructions, conversions_to_16_bits_agree_with_numerics, .init = load_and_make, .timeout = 60)
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

Test(instructions, conversions_to_8_bits_and_less_saturate, .init = load_and_make, .timeout = 60)
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
            cr_assert_eq(words_of_values[i], want, "form %d, %a: %04x, not %04x", forms[form], v, words_of_values[i], want);
        }
    }
    for (int pass = 0; pass < 2; pass++) {
        double magnitudes[128];
        const unsigned n = small_list(pass ? CONVERT_E5M2 : CONVERT_E4M3, magnitudes);
        convert(pass ? CONVERT_FROM_E5M2 : CONVERT_FROM_E4M3);
        for (unsigned i = 0; i < VALUES; i++) {
            const unsigned bits = rssm_float_bits(values[i]) & 0xff, magnitude = bits & 0x7f;
            const float    got = rssm_bits_float(words_of_values[i]);
            if (magnitude < n) cr_assert_eq(got, (float)(bits & 0x80 ? -magnitudes[magnitude] : magnitudes[magnitude]));
            else if (pass && magnitude == 0x7c) cr_assert(isinf(got) && (got < 0) == (bits >> 7));
            else cr_assert(isnan(got));
        }
    }
}

Test(instructions, tf32_rounds_ties_away_and_int8_saturates, .init = load_and_make, .timeout = 60)
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

// ------------------------------------------------------------------------------------------------------------ exchanges

static unsigned own(unsigned lane)
{
    return lane * 3 + 5;
}

static unsigned exchanged(int which, unsigned lane)
{
    unsigned lanes = 0;
    switch (which) {
    case EXCHANGE_XOR:
        return own(lane ^ 5);
    case EXCHANGE_DOWN:
        return own(lane + 3 < 32 ? lane + 3 : lane);
    case EXCHANGE_FROM:
        return own(17);
    case EXCHANGE_UP:
        return own(lane >= 4 ? lane - 4 : lane);
    case EXCHANGE_BALLOT:
    case EXCHANGE_MATCH:
        for (unsigned i = 0; i < 32; i++)
            if (which == EXCHANGE_MATCH ? i % 5 == lane % 5 : i % 3 == 1) lanes |= 1u << i;
        return lanes;
    case EXCHANGE_MATCH_ALL:
        return 0xffffffffu;
    case EXCHANGE_SUM:
        return 31 * 32 / 2 * 3 + 5 * 32;
    case EXCHANGE_MASKED:
        return lane < 8 || lane >= 24 ? 0 : own(23) + 1000 * 8 + 100000;
    default:
        return 0;
    }
}

Test(instructions, lanes_exchange, .init = load_kernel, .timeout = 60)
{
    for (int which = EXCHANGE_XOR; which < EXCHANGE_ATOMIC; which++) {
        unsigned words[48];
        simt_reset();
        const matrix_args args = {buffer(4, NULL), buffer(4, NULL), buffer(4, NULL), buffer(sizeof words, NULL), 0, which};
        run(&args);
        simt_download(words, args.words, sizeof words);
        for (unsigned lane = 0; lane < 32; lane++)
            cr_assert_eq(words[lane], exchanged(which, lane), "exchange %d, lane %u: %u", which, lane, words[lane]);
    }
}

Test(instructions, atomics_update, .init = load_kernel, .timeout = 60)
{
    unsigned words[48] = {0};
    simt_reset();
    const matrix_args args = {buffer(4, NULL), buffer(4, NULL), buffer(4, NULL), buffer(sizeof words, words), 0,
                              EXCHANGE_ATOMIC};
    run(&args);
    simt_download(words, args.words, sizeof words);
    cr_expect_eq(words[40], 31 * 32 / 2 * 3 + 5 * 32);
    cr_expect_eq(words[41], own(31));
    cr_expect_eq(words[42], rssm_float_bits(16.0f));
    cr_expect_geq(words[43], 1);
}
