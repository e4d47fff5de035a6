// Matrix instructions of a warp: fragments gathered from the lanes, multiplied, dealt out again.
//
// Fragment layouts are those of the PTX ISA, "Matrix Fragments for mma". Lane l has g = l / 4 and t = l % 4. The inner
// sum follows what is known of the hardware ("Numerical behavior of NVIDIA tensor cores", Fasi et al. 2021; "Accurate
// Models of NVIDIA Tensor Cores", Khattak and Mikaitis 2025): products are exact, all terms and the accumulator are
// aligned to the largest exponent and cut there, with two bits beyond fp32's fraction (fp8: 13 fraction bits), summed
// exactly, and cut to fp32. So accumulated sums lose as much here as there.
#include <math.h>
#include <string.h>

#include "tests/simt/machine.h"

typedef struct shape {
    simt_warp_kind kind;
    simt_format    format;
    int            depth;    // k
    int            per_word; // elements in 32 bits
    int            fraction; // bits kept in the aligned sum
} shape;

static const shape shapes[] = {
    {SIMT_MATRIX_BF16, SIMT_BF16, 16, 2, 25},  {SIMT_MATRIX_F16, SIMT_F16, 16, 2, 25},
    {SIMT_MATRIX_TF32, SIMT_TF32, 8, 1, 25},   {SIMT_MATRIX_TF32_4, SIMT_TF32, 4, 1, 25},
    {SIMT_MATRIX_BF16_8, SIMT_BF16, 8, 2, 25}, {SIMT_MATRIX_F16_8, SIMT_F16, 8, 2, 25},
    {SIMT_MATRIX_E4M3, SIMT_E4M3, 32, 4, 13},  {SIMT_MATRIX_E5M2, SIMT_E5M2, 32, 4, 13},
};

static float element(const shape *s, uint32_t word, int i)
{
    const int bits = 32 / s->per_word;
    return simt_decode(s->format, bits == 32 ? word & ~0x1fffu : word >> (i * bits) & ((1u << bits) - 1));
}

// a: word w of lane l holds row g + 8 (w odd), columns from (w / 2) * 4 * per_word + t * per_word on.
// b: word w holds column g, rows from w * 4 * per_word + t * per_word on.
static void gather(const shape *s, simt_warp_op *ops[SIMT_WARP], float a[16][32], float b[32][8])
{
    const int half = 4 * s->per_word, n_words = s->depth / half;
    for (int l = 0; l < SIMT_WARP; l++) {
        const int g = l / 4, t = l % 4;
        for (int w = 0; w < 2 * n_words; w++) {
            for (int i = 0; i < s->per_word; i++) {
                a[g + w % 2 * 8][w / 2 * half + t * s->per_word + i] = element(s, ops[l]->in[w], i);
            }
        }
        for (int w = 0; w < n_words; w++) {
            for (int i = 0; i < s->per_word; i++) {
                b[w * half + t * s->per_word + i][g] = element(s, ops[l]->in[4 + w], i);
            }
        }
    }
}

static double cut(double value, int exponent)
{
    return ldexp(trunc(ldexp(value, -exponent)), exponent);
}

// One element of d = a b + c.
static float inner(const shape *s, const float *row, float b[32][8], int column, float c)
{
    double terms[33], sum = 0;
    int    top = -1000, exponent;
    bool   special = !isfinite(c);

    terms[s->depth] = c;
    for (int k = 0; k < s->depth; k++) {
        terms[k] = (double)row[k] * b[k][column];
        if (!isfinite(terms[k])) special = true;
    }
    for (int k = 0; k <= s->depth; k++) {
        if (special)
            sum += terms[k];
        else if (terms[k] != 0 && (frexp(terms[k], &exponent), exponent > top))
            top = exponent;
    }
    if (special) return (float)sum;
    if (top == -1000) return 0.0f;
    for (int k = 0; k <= s->depth; k++)
        sum += cut(terms[k], top - 1 - s->fraction);
    if (sum == 0) return 0.0f;
    frexp(sum, &exponent);
    const int kept = s->fraction < 23 ? s->fraction : 23;
    const int lowest = exponent - 1 - kept < -149 ? -149 : exponent - 1 - kept;
    return (float)cut(sum, lowest);
}

static void multiply(const shape *s, simt_warp_op *ops[SIMT_WARP])
{
    float a[16][32], b[32][8];
    gather(s, ops, a, b);
    for (int l = 0; l < SIMT_WARP; l++) {
        for (int i = 0; i < 4; i++) {
            const int row = l / 4 + i / 2 * 8, column = l % 4 * 2 + i % 2;
            ops[l]->d[i] = inner(s, a[row], b, column, ops[l]->d[i]);
        }
    }
}

// An 8x8 matrix of 16-bit elements in a warp: lane l holds [g][2t] and [g][2t + 1].
static void transpose(simt_warp_op *ops[SIMT_WARP])
{
    uint16_t m[8][8];
    for (int l = 0; l < SIMT_WARP; l++) {
        m[l / 4][l % 4 * 2] = (uint16_t)ops[l]->in[0];
        m[l / 4][l % 4 * 2 + 1] = (uint16_t)(ops[l]->in[0] >> 16);
    }
    for (int l = 0; l < SIMT_WARP; l++)
        ops[l]->out[0] = m[l % 4 * 2][l / 4] | (uint32_t)m[l % 4 * 2 + 1][l / 4] << 16;
}

static unsigned char *row_address(simt_warp_op *op, uint32_t thread)
{
    const uint32_t site = simt_site_of_place(op->at);
    if (op->in[0] % 16 != 0) {
        simt_fail(SIMT_MISALIGNED, site, "%s gives a row address that is not a multiple of 16",
                  simt_owner_text(simt_owner(thread)).c);
    }
    if (op->in[0] >= GLOBAL_AT) {
        simt_fail(SIMT_OUT_OF_BOUNDS, site, "%s gives the row address 0x%x, which is not in shared memory",
                  simt_owner_text(simt_owner(thread)).c, op->in[0]);
    }
    return op->in[0] >= STATIC_AT ? simt.statics + (op->in[0] - STATIC_AT) : simt.arena + op->in[0];
}

// Row l % 8 of matrix l / 8 is at the address of lane l; word i of lane l belongs to matrix i.
static void move_matrices(simt_warp_op *ops[SIMT_WARP], uint32_t first, bool store)
{
    const uint32_t n = (uint32_t)ops[0]->operand;
    uint16_t       m[4][8][8];
    for (uint32_t i = 0; store && i < n; i++) {
        for (uint32_t l = 0; l < SIMT_WARP; l++) {
            for (uint32_t k = 0; k < 2; k++) {
                const uint16_t value = (uint16_t)(ops[l]->in[2 + i] >> (16 * k));
                if (ops[l]->in[1])
                    m[i][l % 4 * 2 + k][l / 4] = value;
                else
                    m[i][l / 4][l % 4 * 2 + k] = value;
            }
        }
    }
    for (uint32_t l = 0; l < 8 * n; l++) {
        unsigned char *at = row_address(ops[l], first + l);
        simt_access(at, 16, store ? ACCESS_STORE : ACCESS_LOAD, first + l, simt_site_of_place(ops[l]->at), WANT_NONE);
        if (store)
            memcpy(at, m[l / 8][l % 8], 16);
        else
            memcpy(m[l / 8][l % 8], at, 16);
    }
    for (uint32_t i = 0; !store && i < n; i++) {
        for (uint32_t l = 0; l < SIMT_WARP; l++) {
            const uint32_t g = l / 4, t = l % 4;
            const bool     trans = ops[l]->in[1];
            const uint16_t lower = trans ? m[i][2 * t][g] : m[i][g][2 * t];
            const uint16_t upper = trans ? m[i][2 * t + 1][g] : m[i][g][2 * t + 1];
            ops[l]->out[i] = lower | (uint32_t)upper << 16;
        }
    }
}

void simt_matrix_resolve(simt_warp_op *ops[SIMT_WARP], uint32_t first_thread)
{
    for (uint32_t l = 0; l < SIMT_WARP; l++) {
        if (ops[l]) continue;
        simt_fail(SIMT_ABSENT_LANE, simt.self->site,
                  "a matrix instruction is one of all 32 lanes, and lane %u is not in "
                  "its mask",
                  l);
    }
    switch (ops[0]->kind) {
    case SIMT_TRANSPOSE:
        transpose(ops);
        return;
    case SIMT_LOAD_MATRIX:
    case SIMT_STORE_MATRIX:
        move_matrices(ops, first_thread, ops[0]->kind == SIMT_STORE_MATRIX);
        return;
    default:
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            if (shapes[i].kind == ops[0]->kind) multiply(&shapes[i], ops);
    }
}
