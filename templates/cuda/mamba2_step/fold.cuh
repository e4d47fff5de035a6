// Mamba-2 step at T = 1: the fold of a tile's records by matrix instructions, dS[n][p] = sum_j B_j[n] (s_j x_j[p]).
//
// A tile is 16 rows p of a checkpoint. Lane l has g = l / 4 and t = l % 4; it owns rows 4t .. 4t+3 and, of each unit
// of columns, the piece of lane group g. One instruction folds 16 records into 16 columns and 8 rows: columns
// n = UNIT u + PIECE g + 2m and + 1 (accumulator rows g and g + 8), rows p = 4t + 2q and + 1 (its columns).
//
// Precision: the B_j of 16-bit activations are exact in the instruction's format, so only the factor s_j x_j is split
// into parts that add up to it: three bf16 (two for a 16-bit checkpoint, whose own rounding is 2^-9) or two tf32.
// float activations split both. The accumulator starts at zero and takes the small parts first, because its additions
// truncate; the sum with the decayed checkpoint is an fma outside.
#ifndef RSSM_CUDA_MAMBA2_STEP_FOLD_CUH
#define RSSM_CUDA_MAMBA2_STEP_FOLD_CUH

#include "cuda/mamba2_step/parts.cuh"
#include "cuda/mamba2_step/tile.cuh"
#include "prims/cuda_matrix.cuh"

// The factors of a tile as the second operand: [block of records][part][half of the rows][word].
struct Factors {
    rssm_u32 w[CFG_HELD_BLOCKS][PARTS][2][PART_WORDS];
};

// x[p] of records 2t, 2t+1, 2t+8, 2t+9 of a block for the row p that is column g of half `q`, from what the lanes hold of
// its records g and g + 8.
GPU_FN void transpose_x(const rssm_u32 held[2][ROW_WORDS], int q, float x[4])
{
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const rssm_u32 *w = held[k];
        if constexpr (sizeof(T_act) == 2) {
            const rssm_u32 pair = gpu_matrix_transpose(w[q]);
            gpu_words<T_act>::unpack(pair, x + 2 * k);
        } else {
            const rssm_u32 lower = gpu_matrix_transpose(gpu_lower_halves(w[2 * q], w[2 * q + 1]));
            const rssm_u32 upper = gpu_matrix_transpose(gpu_upper_halves(w[2 * q], w[2 * q + 1]));
            x[2 * k] = rssm_bits_float(gpu_lower_halves(lower, upper));
            x[2 * k + 1] = rssm_bits_float(gpu_upper_halves(lower, upper));
        }
    }
}

// s_j x_j of one block; what is behind the first `folded` records is left out, whatever it holds.
GPU_FN void make_block_factors(const rssm_u32 held[2][ROW_WORDS], const float *s, int block, rssm_i32 folded,
                               rssm_u32 factors[PARTS][2][PART_WORDS])
{
    const rssm_i32 t = gpu_lane() % 4;
#pragma unroll
    for (int q = 0; q < 2; q++) {
        float    f[4];
        rssm_u32 parts[PARTS][PART_WORDS];
        transpose_x(held, q, f);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const rssm_i32 record = block * BLOCK_RECORDS + 2 * t + i % 2 + i / 2 * 8;
            f[i] = record < folded ? s[record] * f[i] : 0.0f;
        }
        split<PARTS>(f, parts);
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
#pragma unroll
            for (int i = 0; i < PART_WORDS; i++) factors[part][q][i] = parts[part][i];
        }
    }
}

GPU_FN void make_factors(const TileRecords &records, const float *s, rssm_i32 folded, Factors &factors)
{
#pragma unroll
    for (int block = 0; block < CFG_HELD_BLOCKS; block++) {
        make_block_factors(records.x + 2 * block, s, block, folded, factors.w[block]);
    }
}

// The first operand of the instructions for columns m of a unit: B_j of one block, for lane group g.
// bf16: as loaded. f16: the same words, each half as tf32. float: from the record, split in two.
struct Columns {
    rssm_u32 w[USE_BF16 ? 1 : 2][sizeof(T_act) == 4 ? 2 : 1][4];   // [depth of 8 records][part][word]
};

GPU_FN void load_columns(const Shared &shared, int block, int unit, int m, Columns &columns)
{
    const rssm_i32 lane = gpu_lane();
    if constexpr (sizeof(T_act) == 2) {
        const rssm_i32 record = block * BLOCK_RECORDS + lane % 8 + lane / 16 * 8;
        const rssm_i32 position = unit * UNIT + m * 16 + lane / 8 % 2 * 8;
        rssm_u32       words[4];
        gpu_load_matrix4_transposed(words, gpu_shared_address(&shared.b[record][position * 2]));
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if constexpr (USE_BF16) {
                columns.w[0][0][i] = words[i];
            } else {   // word i: lane group i % 2, records 2t and 2t + 1 of depth i / 2
                float pair[2];
                gpu_words<rssm_f16>::unpack(words[i], pair);
                columns.w[i / 2][0][i % 2] = rssm_float_bits(pair[0]);
                columns.w[i / 2][0][i % 2 + 2] = rssm_float_bits(pair[1]);
            }
        }
    } else {
        const rssm_i32 column = unit * UNIT + lane / 4 * PIECE + 2 * m;
#pragma unroll
        for (int depth = 0; depth < 2; depth++) {
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const rssm_i32 record = block * BLOCK_RECORDS + depth * 8 + lane % 4 * 2 + i;
                const float   *from = (const float *)shared.b[record] + column;
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const bool     is_there = CFG_STATE_SIZE % UNIT == 0 || column < CFG_STATE_SIZE;
                    const float    value = is_there ? from[half] : 0.0f;
                    const rssm_u32 upper = gpu_to_tf32(value);
                    columns.w[depth][0][2 * i + half] = upper;
                    columns.w[depth][1][2 * i + half] = gpu_to_tf32(value - rssm_bits_float(upper));
                }
            }
        }
    }
}

// d += columns * factors for one half of the rows, small parts first.
GPU_FN void multiply(float d[4], const Columns &columns, const rssm_u32 parts[PARTS][2][PART_WORDS], int q)
{
    if constexpr (USE_BF16) {
#pragma unroll
        for (int part = PARTS - 1; part >= 0; part--) {
            gpu_matrix_bf16(d, columns.w[0][0], parts[part][q][0], parts[part][q][1]);
        }
    } else {
#pragma unroll
        for (int depth = 0; depth < 2; depth++) {
            if constexpr (sizeof(T_act) == 4) {
                gpu_matrix_tf32(d, columns.w[depth][1], parts[0][q][2 * depth], parts[0][q][2 * depth + 1]);
            }
#pragma unroll
            for (int part = PARTS - 1; part >= 0; part--) {
                gpu_matrix_tf32(d, columns.w[depth][0], parts[part][q][2 * depth], parts[part][q][2 * depth + 1]);
            }
        }
    }
}

// sum[half of the rows][accumulator] for columns m of a unit, over the records that are held.
GPU_FN void fold_columns(const Shared &shared, const Factors &factors, int unit, int m, rssm_i32 folded,
                         float sum[2][4])
{
#pragma unroll
    for (int i = 0; i < 8; i++) sum[i / 4][i % 4] = 0.0f;
#pragma unroll
    for (int block = 0; block < CFG_HELD_BLOCKS; block++) {
        if (block > 0 && folded <= block * BLOCK_RECORDS) continue;
        Columns columns;
        load_columns(shared, block, unit, m, columns);
#pragma unroll
        for (int q = 0; q < 2; q++) multiply(sum[q], columns, factors.w[block], q);
    }
}

#endif
