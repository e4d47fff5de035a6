// Mamba-2 step at T = 1: rows whose ring holds more records than a lane keeps in registers. They cannot occur at the
// window a plan was made for; memory shared with another plan can hand them over. Same tiles, lanes and instructions as
// the stream, so that a fold has the same bits, but one unit at a time, and the records behind the staged ones come from
// L1 and L2 each time. Correct before fast.
#ifndef RSSM_CUDA_MAMBA2_STEP_SLOW_CUH
#define RSSM_CUDA_MAMBA2_STEP_SLOW_CUH

#include "cuda/mamba2_step/fold.cuh"
#include "cuda/mamba2_step/unit.cuh"

// Element [record][column] of B; zero where there is none.
GPU_FN float b_element(const rssm_mamba2_step_kernel_args &args, const Place &place, const Row &row, rssm_i32 record,
                       rssm_i32 column)
{
    if (record >= row.live || column >= CFG_STATE_SIZE) return 0.0f;
    const char *from = record_or_token<T_act>(args.B_ring, row, record, ring_at<T_act>(args.B_ring, row.slot, place.group),
                                              token_at<T_act>(args.B, row.token, place.group));
    return rssm_to_float(((const T_act *)from)[column]);
}

// As load_columns, from the records themselves.
GPU_FN void gather_columns(const rssm_mamba2_step_kernel_args &args, const Place &place, const Row &row, int block, int unit,
                           int m, Columns &columns)
{
    const rssm_i32 lane = gpu_lane(), column = unit * UNIT + lane / 4 * PIECE + 2 * m;
#pragma unroll
    for (int depth = 0; depth < 2; depth++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const rssm_i32 record = block * BLOCK_RECORDS + depth * 8 + lane % 4 * 2;
            const float    pair[2] = {b_element(args, place, row, record, column + half),
                                      b_element(args, place, row, record + 1, column + half)};
            if constexpr (USE_BF16) {
                columns.w[0][0][depth * 2 + half] = gpu_pack_bf16(pair[0], pair[1]);
            } else {
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const rssm_u32 upper = gpu_to_tf32(pair[i]);   // exact for 16 bits
                    columns.w[depth][0][2 * i + half] = upper;
                    if constexpr (sizeof(T_act) == 4) {
                        columns.w[depth][1][2 * i + half] = gpu_to_tf32(pair[i] - rssm_bits_float(upper));
                    }
                }
            }
        }
    }
}

// Columns 2 and 3 of each piece become columns 0 and 1, and so on round.
GPU_FN void rotate_unit(Unit &unit)
{
    enum { WORDS = 2 * sizeof(T_state) / 4 };
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const gpu_vec4 v = unit.row[r];
#pragma unroll
        for (int i = 0; i < 4; i++) unit.row[r].w[i] = v.w[(i + WORDS) % 4];
    }
}

// S' = decay S + fold for one unit, stored; y += S' C. All lanes of the warp call. A real loop over the columns: unrolled,
// its addresses would take the registers that the stream needs.
GPU_FN void fold_unit_slowly(const rssm_mamba2_step_kernel_args &args, const Place &place, const Shared &shared,
                             const Tile &tile, char *checkpoint, int u, Unit &unit, float y[4])
{
    const Row  &row = shared.row;
    const float decay = shared.head[tile.local].checkpoint;
#pragma unroll 1
    for (int m = 0; m < PIECE / 2; m++) {
        const T_act *from = shared.c + u % CFG_UNITS * UNIT + gpu_lane() / 4 * PIECE + 2 * m;
        float        sum[2][4] = {};
#pragma unroll 1
        for (int block = 0; block * BLOCK_RECORDS < row.folded; block++) {
            alignas(16) rssm_u32 x[2][ROW_WORDS];
            rssm_u32             factors[PARTS][2][PART_WORDS];
            Columns              columns;
            load_x<2>(args, place, row, tile, block * BLOCK_RECORDS + gpu_lane() / 4, true, x);
            make_block_factors(x, shared.s[tile.local], block, row.folded, factors);
            gather_columns(args, place, row, block, u % CFG_UNITS, m, columns);
#pragma unroll
            for (int q = 0; q < 2; q++) multiply(sum[q], columns, factors, q);
        }
        if (has_columns(u)) {
            const float c[2] = {rssm_to_float(from[0]), rssm_to_float(from[1])};
            update_columns(unit, 0, decay, sum, c, y);
        }
        rotate_unit(unit);
    }
    store_unit(checkpoint, u, unit);
}

// All tiles of the warp; nothing that is in flight is used. `checkpoint` as in stream.cu.
GPU_FN void step_tiles_slowly(const rssm_mamba2_step_kernel_args &args, const Place &place, const Shared &shared,
                              char *checkpoint)
{
    const Row &row = shared.row;
#pragma unroll 1
    for (int k = 0; k < CFG_TILES && has_tile(k); k++) {
        const Tile tile = locate_tile(place, k);
        float      y[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 1
        for (int u = k * CFG_UNITS; u < (k + 1) * CFG_UNITS; u++) {
            Unit unit = {};
            if (has_columns(u)) load_unit(checkpoint, u, true, unit);
            if (row.folded > 0) fold_unit_slowly(args, place, shared, tile, checkpoint, u, unit, y);
            else if (has_columns(u)) read_unit(shared, u, unit, y);
        }
#pragma unroll
        for (int r = 0; r < 4; r++) y[r] *= shared.head[tile.local].output;
#pragma unroll 1
        for (rssm_i32 record = gpu_lane() / 4; record <= row.h; record += 8) {
            alignas(16) rssm_u32 words[1][ROW_WORDS];
            load_x<1>(args, place, row, tile, record, true, words);
            add_record(row, shared, tile, record, words[0], y);
            if (record == row.h && row.appends) append_x(args, place, row, tile, words[0]);
        }
        store_output(args, place, row, tile, load_z(args, place, row, tile), y);
    }
}

#endif
