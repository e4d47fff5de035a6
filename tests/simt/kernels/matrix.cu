// Matrix instructions on whole matrices in memory: fragments are filled by the index formulas of the PTX ISA, written
// out element by element, so that they share no code with the emulator's own gathering.
#include "abi/types.h"
#include "prims/cuda_atomic.cuh"
#include "prims/cuda_convert_more.cuh"
#include "prims/cuda_masked.cuh"
#include "prims/cuda_matrix_more.cuh"
#include "prims/cuda_shared_matrix.cuh"
#include "prims/cuda_shuffle.cuh"
#include "tests/simt/kernels/matrix.h"

static __device__ unsigned byte_at(const unsigned char *m, int columns, int row, int column)
{
    return m[row * columns + column];
}

static __device__ unsigned half_at(const unsigned short *m, int columns, int row, int column)
{
    return m[row * columns + column];
}

// PTX ISA, m16n8k16 with 16-bit elements: a_i is in row g for i = 0, 1, 4, 5, else g + 8; in column 2t + (i & 1), and 8
// further for i >= 4. b_i: row 2t + (i & 1), 8 further for i >= 2; column g. k8 has the first half of both.
static __device__ void fragments_16(const matrix_args &args, int depth, unsigned a[4], unsigned b[2])
{
    const unsigned short *A = (const unsigned short *)args.a, *B = (const unsigned short *)args.b;
    const int             g = gpu_lane() / 4, t = gpu_lane() % 4;
    for (int i = 0; i < depth / 2; i += 2) {
        const int row = (i % 4 < 2) ? g : g + 8, column = 2 * t + (i >= 4 ? 8 : 0);
        a[i / 2] = half_at(A, depth, row, column) | half_at(A, depth, row, column + 1) << 16;
    }
    for (int i = 0; i < depth / 4; i += 2) {
        const int row = 2 * t + (i >= 2 ? 8 : 0);
        b[i / 2] = half_at(B, 8, row, g) | half_at(B, 8, row + 1, g) << 16;
    }
}

// m16n8k8 with tf32: a0 (g, t), a1 (g + 8, t), a2 (g, t + 4), a3 (g + 8, t + 4); b0 (t, g), b1 (t + 4, g).
static __device__ void fragments_32(const matrix_args &args, int depth, unsigned a[4], unsigned b[2])
{
    const unsigned *A = (const unsigned *)args.a, *B = (const unsigned *)args.b;
    const int       g = gpu_lane() / 4, t = gpu_lane() % 4;
    a[0] = A[g * depth + t];
    a[1] = A[(g + 8) * depth + t];
    b[0] = B[t * 8 + g];
    if (depth == 4) return;
    a[2] = A[g * depth + t + 4];
    a[3] = A[(g + 8) * depth + t + 4];
    b[1] = B[(t + 4) * 8 + g];
}

// m16n8k32 with 8-bit elements: a_i is in row g for i < 4 and 8 <= i < 12, else g + 8; in column 4t + (i & 3), 16
// further for i >= 8. b_i: row 4t + (i & 3), 16 further for i >= 4; column g.
static __device__ void fragments_8(const matrix_args &args, unsigned a[4], unsigned b[2])
{
    const int g = gpu_lane() / 4, t = gpu_lane() % 4;
    for (int i = 0; i < 4; i++) a[i] = 0;
    b[0] = b[1] = 0;
    for (int i = 0; i < 16; i++) {
        const int row = i < 4 || (8 <= i && i < 12) ? g : g + 8, column = 4 * t + (i & 3) + (i >= 8 ? 16 : 0);
        a[i / 4] |= byte_at((const unsigned char *)args.a, 32, row, column) << (8 * (i & 3));
    }
    for (int i = 0; i < 8; i++) {
        const int row = 4 * t + (i & 3) + (i >= 4 ? 16 : 0);
        b[i / 4] |= byte_at((const unsigned char *)args.b, 8, row, g) << (8 * (i & 3));
    }
}

static __device__ void multiply(const matrix_args &args)
{
    const int g = gpu_lane() / 4, t = gpu_lane() % 4;
    unsigned  a[4], b[2];
    float     d[4];
    for (int i = 0; i < 4; i++) d[i] = args.d[(g + i / 2 * 8) * 8 + 2 * t + i % 2];
    if (args.which == MATRIX_BF16 || args.which == MATRIX_F16) fragments_16(args, 16, a, b);
    if (args.which == MATRIX_BF16_8 || args.which == MATRIX_F16_8) fragments_16(args, 8, a, b);
    if (args.which == MATRIX_TF32) fragments_32(args, 8, a, b);
    if (args.which == MATRIX_TF32_4) fragments_32(args, 4, a, b);
    if (args.which == MATRIX_E4M3 || args.which == MATRIX_E5M2) fragments_8(args, a, b);
    if (args.which == MATRIX_BF16) gpu_matrix_bf16(d, a, b[0], b[1]);
    if (args.which == MATRIX_F16) gpu_matrix_f16(d, a, b[0], b[1]);
    if (args.which == MATRIX_BF16_8) gpu_matrix_bf16_8(d, a, b[0]);
    if (args.which == MATRIX_F16_8) gpu_matrix_f16_8(d, a, b[0]);
    if (args.which == MATRIX_TF32) gpu_matrix_tf32(d, a, b[0], b[1]);
    if (args.which == MATRIX_TF32_4) gpu_matrix_tf32_4(d, a, b[0]);
    if (args.which == MATRIX_E4M3) gpu_matrix_e4m3(d, a, b[0], b[1]);
    if (args.which == MATRIX_E5M2) gpu_matrix_e5m2(d, a, b[0], b[1]);
    for (int i = 0; i < 4; i++) args.d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = d[i];
}

// Four 8x8 matrices of half-words, [matrix][row][column], through shared memory by way of one form of ldmatrix: words
// out as [matrix][lane].
static __device__ void load_matrices(const matrix_args &args)
{
    unsigned *words = (unsigned *)gpu_shared_memory(), out[4] = {0, 0, 0, 0};
    for (int i = gpu_lane(); i < 128; i += 32) words[i] = ((const unsigned *)args.a)[i];
    gpu_barrier<1>();
    const unsigned row = gpu_shared_address(words + gpu_lane() * 4);
    const unsigned row2 = gpu_shared_address(words + gpu_lane() % 16 * 4);
    if (args.which == LOAD_MATRIX4) gpu_load_matrix4(out, row);
    if (args.which == LOAD_MATRIX4_TRANSPOSED) gpu_load_matrix4_transposed(out, row);
    if (args.which == LOAD_MATRIX2) gpu_load_matrix2(out, row2);
    if (args.which == LOAD_MATRIX2_TRANSPOSED) gpu_load_matrix2_transposed(out, row2);
    if (args.which == LOAD_MATRIX1) gpu_load_matrix1(out, gpu_shared_address(words + gpu_lane() % 8 * 4));
    if (args.which == STORE_MATRIX4 || args.which == STORE_MATRIX4_TRANSPOSED) {
        gpu_load_matrix4(out, row);
        gpu_barrier<1>();
        if (args.which == STORE_MATRIX4) gpu_store_matrix4(out, row);
        else gpu_store_matrix4_transposed(out, row);
        gpu_barrier<1>();
        for (int i = 0; i < 4; i++) out[i] = words[gpu_lane() + 32 * i];
    }
    if (args.which == TRANSPOSE) out[0] = gpu_matrix_transpose(words[gpu_lane()]);
    for (int i = 0; i < 4; i++) args.words[i * 32 + gpu_lane()] = out[i];
}

// Conversions of args.n floats at `a`, one word each.
static __device__ void convert(const matrix_args &args)
{
    const float *values = (const float *)args.a;
    for (unsigned i = gpu_thread(); i < args.n; i += 32) {
        const float v = values[i];
        unsigned    word = 0;
        if (args.which == CONVERT_BF16) word = gpu_pack_bf16(v, -v);
        if (args.which == CONVERT_F16) word = gpu_pack_f16(v, -v);
        if (args.which == CONVERT_TF32) word = gpu_to_tf32(v);
        if (args.which == CONVERT_E4M3) word = gpu_pack_e4m3(v, -v);
        if (args.which == CONVERT_E5M2) word = gpu_pack_e5m2(v, -v);
        if (args.which == CONVERT_E2M1) word = gpu_pack_e2m1(v, -v);
        if (args.which == CONVERT_INT8) word = (unsigned)gpu_to_int8(v);
        if (args.which == CONVERT_FROM_F16) word = rssm_float_bits(gpu_unpack_f16(rssm_float_bits(v) & 0xffffu));
        if (args.which == CONVERT_FROM_E4M3) word = rssm_float_bits(gpu_unpack_e4m3(rssm_float_bits(v) & 0xffu));
        if (args.which == CONVERT_FROM_E5M2) word = rssm_float_bits(gpu_unpack_e5m2(rssm_float_bits(v) & 0xffu));
        args.words[i] = word;
    }
}

// Exchanges of lane numbers, for comparison with plain loops.
static __device__ void exchange(const matrix_args &args)
{
    const unsigned lane = (unsigned)gpu_lane(), own = lane * 3 + 5, low = 0x00ffff00u;
    unsigned       word = 0;
    if (args.which == EXCHANGE_XOR) word = gpu_shuffle_xor(own, 5);
    if (args.which == EXCHANGE_DOWN) word = (unsigned)gpu_shuffle_down((float)own, 3);
    if (args.which == EXCHANGE_FROM) word = (unsigned)gpu_shuffle_from((float)own, 17);
    if (args.which == EXCHANGE_BALLOT) word = gpu_ballot(lane % 3 == 1);
    if (args.which == EXCHANGE_UP) word = gpu_shuffle_up_lanes(0xffffffffu, own, 4);
    if (args.which == EXCHANGE_MATCH) word = gpu_match_any(0xffffffffu, lane % 5);
    if (args.which == EXCHANGE_MATCH_ALL) word = gpu_match_all(0xffffffffu, lane / 32);
    if (args.which == EXCHANGE_SUM) word = gpu_reduce_add(0xffffffffu, own);
    if (args.which == EXCHANGE_MASKED && (low >> lane & 1)) {
        word = gpu_reduce_max(low, own) + 1000 * gpu_count_bits(gpu_ballot_lanes(low, lane % 2 == 0)) +
               100000 * gpu_all_lanes(low, lane < 24) + 200000 * gpu_any_lane(low, lane == 3);
    }
    if (args.which == EXCHANGE_ATOMIC) {
        gpu_atomic_add(args.words + 40, own);
        gpu_atomic_max(args.words + 41, own);
        gpu_atomic_add((float *)(args.words + 42), 0.5f);
        word = gpu_atomic_compare(args.words + 43, lane, lane + 1) == lane;
    }
    args.words[lane] = word;
}

extern "C" __global__ void matrix(const __grid_constant__ matrix_args args)
{
    if (args.which < LOAD_MATRIX4) multiply(args);
    else if (args.which < CONVERT_BF16) load_matrices(args);
    else if (args.which < EXCHANGE_XOR) convert(args);
    else exchange(args);
}
