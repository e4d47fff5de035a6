// The emulator's instructions against definitions written out here: matrix products with position-coded operands,
// moves of matrices, exchanges of lanes.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "numerics/convert.h"
#include "tests/simt/instruction_kernel.h"

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
    int         exponent; // e4m3, normal values
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
    const matrix_args args = {simt_test_buffer((size_t)(16 * p->depth * p->bytes), A),
                              simt_test_buffer((size_t)(8 * p->depth * p->bytes), B),
                              simt_test_buffer(16 * 8 * 4, d),
                              simt_test_buffer(4, NULL),
                              0,
                              p->which};
    simt_run_instruction(&args);
    simt_download(d, args.d, 16 * 8 * 4);
}

static const product products[] = {
    {MATRIX_BF16, 16, 2, "bf16"}, {MATRIX_F16, 16, 2, "f16"},   {MATRIX_BF16_8, 8, 2, "bf16"},
    {MATRIX_F16_8, 8, 2, "f16"},  {MATRIX_TF32, 8, 4, "tf32"},  {MATRIX_TF32_4, 4, 4, "tf32"},
    {MATRIX_E4M3, 32, 1, "e4m3"}, {MATRIX_E5M2, 32, 1, "e5m2"},
};

Test(instructions, matrix_products_use_every_element_at_its_place, .init = simt_load_instructions, .timeout = 60)
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
                    cr_assert_eq(d[row][column], want, "%s depth %d, k %d: d[%d][%d] is %g, not %g", p->format,
                                 p->depth, k, row, column, d[row][column], want);
                }
            }
        }
    }
}

Test(instructions, matrix_products_accumulate, .init = simt_load_instructions, .timeout = 60)
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
                cr_assert_eq(d[row][column], want, "%s depth %d: d[%d][%d] is %g, not %g", p->format, p->depth, row,
                             column, d[row][column], want);
            }
        }
    }
}

// The sum is cut where hardware cuts it: 1 + 2^-25 loses the small term wherever it stands; 2^-25 * 2 is kept.
Test(instructions, matrix_sums_are_truncated, .init = simt_load_instructions, .timeout = 60)
{
    const product *p = &products[0];
    float          a[16 * 32] = {0}, b[32 * 8] = {0}, d[16][8] = {{0}};
    for (int k = 0; k < 3; k++)
        b[k * 8] = 1.0f;
    a[0] = 1.0f, a[1] = 0x1p-24f, a[2] = 0x1p-24f;           // row 0: 1 + 2^-23
    a[p->depth] = 1.0f, a[p->depth + 1] = 0x1p-27f;          // row 1: below the two extra bits
    a[2 * p->depth] = -1.0f, a[2 * p->depth + 1] = 0x1p-25f; // row 2: cut towards zero
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
    const matrix_args args = {simt_test_buffer(512, m),
                              simt_test_buffer(4, NULL),
                              simt_test_buffer(4, NULL),
                              simt_test_buffer(512, NULL),
                              0,
                              which};
    simt_run_instruction(&args);
    simt_download(words, args.words, 512);
}

Test(instructions, matrices_are_dealt_out_by_row_or_column, .init = simt_load_instructions, .timeout = 60)
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

// ---------------------------------------------------------------------------------------------------------- exchanges

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

Test(instructions, lanes_exchange, .init = simt_load_instructions, .timeout = 60)
{
    for (int which = EXCHANGE_XOR; which < EXCHANGE_ATOMIC; which++) {
        unsigned words[48];
        simt_reset();
        const matrix_args args = {simt_test_buffer(4, NULL),
                                  simt_test_buffer(4, NULL),
                                  simt_test_buffer(4, NULL),
                                  simt_test_buffer(sizeof words, NULL),
                                  0,
                                  which};
        simt_run_instruction(&args);
        simt_download(words, args.words, sizeof words);
        for (unsigned lane = 0; lane < 32; lane++)
            cr_assert_eq(words[lane], exchanged(which, lane), "exchange %d, lane %u: %u", which, lane, words[lane]);
    }
}

Test(instructions, atomics_update, .init = simt_load_instructions, .timeout = 60)
{
    unsigned words[48] = {0};
    simt_reset();
    const matrix_args args = {simt_test_buffer(4, NULL),
                              simt_test_buffer(4, NULL),
                              simt_test_buffer(4, NULL),
                              simt_test_buffer(sizeof words, words),
                              0,
                              EXCHANGE_ATOMIC};
    simt_run_instruction(&args);
    simt_download(words, args.words, sizeof words);
    cr_expect_eq(words[40], 31 * 32 / 2 * 3 + 5 * 32);
    cr_expect_eq(words[41], own(31));
    cr_expect_eq(words[42], rssm_float_bits(16.0f));
    cr_expect_geq(words[43], 1);
}
