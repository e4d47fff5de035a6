// Mamba-2 step at T = 1: units, the columns of a tile that its warp reads with one access per row: the 16-byte pieces of
// eight lanes side by side. Their loads and stores, their products with C, and what a fold leaves in them.
#ifndef RSSM_CUDA_MAMBA2_STEP_UNIT_CUH
#define RSSM_CUDA_MAMBA2_STEP_UNIT_CUH

#include "cuda/mamba2_step/tile.cuh"

enum { RAGGED = CFG_STATE_SIZE % UNIT != 0 };   // the last unit has columns that do not exist

// One unit of a tile in registers: the pieces of a lane's four rows.
struct Unit {
    gpu_vec4 row[4];
};

// The lane's piece of row 0, unit 0, tile 0 of its warp.
GPU_FN char *checkpoint_at(const rssm_mamba2_step_kernel_args &args, const Place &place, const Row &row)
{
    const rssm_i32 tile_row = place.p + gpu_warp() * CFG_TILES * TILE_ROWS + gpu_lane() % 4 * 4;
    const rssm_i64 element = row.slot * args.state.slot_stride +
                             ((rssm_i64)place.head * CFG_HEAD_DIM + tile_row) * CFG_STATE_SIZE +
                             gpu_lane() / 4 * PIECE;
    return (char *)args.state.data + element * (int)sizeof(T_state);
}

// Does this lane have columns in unit `u` of the warp?
GPU_FN bool has_columns(int u)
{
    return !RAGGED || (u % CFG_UNITS * UNIT + gpu_lane() / 4 * PIECE) < CFG_STATE_SIZE;
}

GPU_FN int unit_offset(int u, int row)
{
    return (u / CFG_UNITS * TILE_ROWS + row) * ROW_BYTES + u % CFG_UNITS * 128;
}

GPU_FN void load_unit(const char *checkpoint, int u, bool wanted, Unit &unit)
{
#pragma unroll
    for (int r = 0; r < 4; r++) {
        unit.row[r] = gpu_load16_hinted<CFG_HINT>(checkpoint + unit_offset(u, r), wanted && has_columns(u) && has_tile(u / CFG_UNITS));
    }
}

GPU_FN void store_unit(char *checkpoint, int u, const Unit &unit)
{
    if (!has_columns(u)) return;
#pragma unroll
    for (int r = 0; r < 4; r++) gpu_store16_hinted<CFG_HINT>(checkpoint + unit_offset(u, r), unit.row[r]);
}

// The lane's columns of C or B in unit `u`, from a copy in order: as stored, and as floats.
struct UnitWords {
    rssm_u32 w[PIECE * sizeof(T_act) / 4];
};

GPU_FN UnitWords unit_words(const T_act *columns, int u)
{
    const T_act *from = columns + u % CFG_UNITS * UNIT + gpu_lane() / 4 * PIECE;
    UnitWords    words;
    if constexpr (sizeof(words) == 8) {
        *(gpu_vec2 *)words.w = *(const gpu_vec2 *)from;
    } else {
#pragma unroll
        for (int i = 0; i < (int)sizeof(words) / 16; i++) ((gpu_vec4 *)words.w)[i] = ((const gpu_vec4 *)from)[i];
    }
    return words;
}

GPU_FN void unit_floats(const T_act *columns, int u, float to[PIECE])
{
    const UnitWords words = unit_words(columns, u);
    gpu_unpack<T_act, sizeof(words) / 4>(words.w, to);
}

// y += S C for one unit.
GPU_FN void read_unit(const Shared &shared, int u, const Unit &unit, float y[4])
{
    float c[PIECE];
    unit_floats(shared.c, u, c);
#pragma unroll
    for (int r = 0; r < 4; r++) {
        float s[PIECE];
        gpu_unpack<T_state, 4>(unit.row[r].w, s);
#pragma unroll
        for (int e = 0; e < PIECE; e++) y[r] = gpu_fma(s[e], c[e], y[r]);
    }
}

// Folds one record into a unit: S' = decay S + (s x) B, stored; y += S' C.
GPU_FN void replace_unit(const Shared &shared, const Tile &tile, const float dx[4], char *checkpoint, int u, Unit &unit,
                         float y[4])
{
    const float decay = shared.head[tile.local].checkpoint;
    float       b[PIECE], c[PIECE];
    unit_floats(shared.b_one, u, b);
    unit_floats(shared.c, u, c);
#pragma unroll
    for (int r = 0; r < 4; r++) {
        float s[PIECE];
        gpu_unpack<T_state, 4>(unit.row[r].w, s);
#pragma unroll
        for (int e = 0; e < PIECE; e++) {
            s[e] = gpu_fma(decay, s[e], dx[r] * b[e]);
            y[r] = gpu_fma(s[e], c[e], y[r]);
        }
        gpu_pack<T_state, 4>(s, unit.row[r].w);
    }
    store_unit(checkpoint, u, unit);
}

// S' = decay S + sum in place for two columns of the lane's four rows; y += S' C.
GPU_FN void update_columns(Unit &unit, int m, float decay, const float sum[2][4], const float c[2], float y[4])
{
    enum { WORDS = 2 * sizeof(T_state) / 4 };
#pragma unroll
    for (int r = 0; r < 4; r++) {
        float s[2];
        gpu_unpack<T_state, WORDS>(unit.row[r].w + m * WORDS, s);
#pragma unroll
        for (int e = 0; e < 2; e++) {
            s[e] = gpu_fma(decay, s[e], sum[r / 2][r % 2 + 2 * e]);
            y[r] = gpu_fma(s[e], c[e], y[r]);
        }
        gpu_pack<T_state, WORDS>(s, unit.row[r].w + m * WORDS);
    }
}

#endif
