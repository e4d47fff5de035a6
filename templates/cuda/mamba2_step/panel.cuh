// Panels: 16 rows of a head's checkpoint by UNIT columns, in the registers of one warp. Lane l has g = l / 4 and
// t = l % 4; it holds the 16-byte piece t of rows g and g + 8. A tile is the panels side by side: 16 rows, all columns.
//
// In this layout a panel is the first operand of the matrix instructions for S C (rows p, depth n, second operand C with
// the tokens as columns), and the accumulator of those that fold records into it (rows p, columns n, depth the records).
// Inside a piece, instruction m takes the two columns 2m and 2m + 1.
//
// Precision: everything is fp32. What does not fit an instruction's format exactly is split into parts that add up to
// it; small parts have an accumulator of their own or go first, because accumulation truncates, and the sum with the
// decayed checkpoint is an fma outside.
#ifndef RSSM_CUDA_MAMBA2_STEP_PANEL_CUH
#define RSSM_CUDA_MAMBA2_STEP_PANEL_CUH

#include "cuda/mamba2_step/parts.cuh"
#include "cuda/mamba2_step/stage.cuh"
#include "prims/cuda_matrix.cuh"

enum {
    BLOCK_TILES = CFG_HEADS * BLOCK_P / TILE_ROWS,
    RAGGED = CFG_STATE_SIZE % UNIT != 0,            // the last unit has columns that do not exist
    X_PARTS = sizeof(T_act) == 4 ? 2 : 1,           // of an activation, as the instructions read it
};

struct Panel {
    gpu_vec4 row[2];
};

struct Tile {
    rssm_i32 local;   // head, counted from the block's first
    rssm_i32 p;       // first row, counted from the block's first of that head
};

GPU_FN Tile locate_tile(int k)
{
    const rssm_i32 first = (gpu_warp() * CFG_TILES + k) * TILE_ROWS;
    Tile           tile;
    tile.local = CFG_HEADS == 1 ? 0 : first / BLOCK_P;
    tile.p = first - tile.local * BLOCK_P;
    return tile;
}

// Is there a tile `k` for this warp? The last warp of a block may have fewer than the others.
GPU_FN bool has_tile(int k)
{
    return k < CFG_TILES && (BLOCK_TILES % CFG_TILES == 0 || gpu_warp() * CFG_TILES + k < BLOCK_TILES);
}

// The lane's first piece of the first row of its warp's first tile.
GPU_FN char *checkpoint_at(const rssm_state_view &state, const Place &place, rssm_i32 slot)
{
    const rssm_i32 row = place.p + gpu_warp() * CFG_TILES * TILE_ROWS + gpu_lane() / 4;
    const rssm_i64 element = slot * state.slot_stride + ((rssm_i64)place.head * CFG_HEAD_DIM + row) * CFG_STATE_SIZE +
                             gpu_lane() % 4 * PIECE;
    return (char *)state.data + element * (int)sizeof(T_state);
}

// Does this lane have columns in panel `u` of a tile?
GPU_FN bool has_columns(int u)
{
    return !RAGGED || u * UNIT + gpu_lane() % 4 * PIECE < CFG_STATE_SIZE;
}

GPU_FN void load_panel(const char *tile_at, int u, bool wanted, Panel &panel)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        panel.row[half] = gpu_load16_hinted<CFG_HINT>(tile_at + half * 8 * ROW_BYTES + u * 64, wanted && has_columns(u));
    }
}

enum {
    DEPTH = CFG_DEPTH,   // panels in flight: a part of a tile, or a tile
    TILE_BYTES = TILE_ROWS * ROW_BYTES,
};
static_assert(DEPTH == least(CFG_LOADS / 2, CFG_UNITS), "derived DEPTH");

struct Held {
    Panel panel[DEPTH];
};

// The first panels of the warp's first tile.
GPU_FN void load_first_panels(const char *tile_at, Held &held)
{
#pragma unroll
    for (int u = 0; u < DEPTH; u++) load_panel(tile_at, u, has_tile(0), held.panel[u]);
}

// What takes the place of panel `u`, which is no longer needed: panel u + DEPTH or, of the tile behind, panel u % DEPTH.
GPU_FN void load_next_panel(const char *tile_at, int u, bool has_next_tile, Held &held)
{
    if (u + DEPTH < CFG_UNITS) load_panel(tile_at, u + DEPTH, true, held.panel[u % DEPTH]);
    else load_panel(tile_at + TILE_BYTES, u % DEPTH, has_next_tile, held.panel[u % DEPTH]);
}

GPU_FN void store_panel(char *tile_at, int u, const Panel &panel)
{
    if (!has_columns(u)) return;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        gpu_store16_hinted<CFG_HINT>(tile_at + half * 8 * ROW_BYTES + u * 64, panel.row[half]);
    }
}

// As floats; zeros where there are no columns.
GPU_FN void unpack_panel(const Panel &panel, int u, float s[2][PIECE])
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        gpu_unpack<T_state, 4>(panel.row[half].w, s[half]);
#pragma unroll
        for (int e = 0; e < PIECE; e++) s[half][e] = has_columns(u) ? s[half][e] : 0.0f;
    }
}

// ------------------------------------------------------------------------------------------------- records as operands

// x of one block of records in a tile, first operand: [half of the rows][records 2t, 2t + 1 | 2t + 8, 2t + 9], the
// lane's rows being g and g + 8. 16 bits: the words as they are.
struct BlockX {
    rssm_u32 w[2][sizeof(T_act) == 2 ? 2 : 4];
};

GPU_FN void load_block_x(const Stage &stage, const Tile &tile, int block, BlockX &x)
{
    const rssm_i32 lane = gpu_lane();
    if constexpr (sizeof(T_act) == 2) {
        const rssm_i32 record = block * BLOCK_RECORDS + lane % 8 + lane / 16 * 8;
        const rssm_i32 p = tile.p + lane / 8 % 2 * 8;
        rssm_u32       words[4];
        gpu_load_matrix4_transposed(words, gpu_shared_address(&stage.x[tile.local][record][p * 2]));
#pragma unroll
        for (int i = 0; i < 4; i++) x.w[i % 2][i / 2] = words[i];
    } else {
#pragma unroll
        for (int half = 0; half < 2; half++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const rssm_i32 record = block * BLOCK_RECORDS + lane % 4 * 2 + i % 2 + i / 2 * 8;
                x.w[half][i] = ((const rssm_u32 *)stage.x[tile.local][record])[tile.p + lane / 4 + half * 8];
            }
        }
    }
}

GPU_FN void unpack_block_x(const BlockX &x, int half, float f[4])
{
    gpu_unpack<T_act, sizeof(x.w[0]) / 4>(x.w[half], f);
}

// Factors s_j x_j[p] of one block as parts. What is behind the first `folded` records has no weight.
GPU_FN void make_factors(const Stage &stage, const Tile &tile, int block, rssm_i32 folded,
                         rssm_u32 factors[PARTS][2][PART_WORDS])
{
    BlockX x;
    load_block_x(stage, tile, block, x);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float    f[4];
        rssm_u32 parts[PARTS][PART_WORDS];
        unpack_block_x(x, half, f);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const rssm_i32 record = block * BLOCK_RECORDS + gpu_lane() % 4 * 2 + i % 2 + i / 2 * 8;
            f[i] = record < folded ? stage.weight[tile.local][record] * f[i] : 0.0f;
        }
        split<PARTS>(f, parts);
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
#pragma unroll
            for (int i = 0; i < PART_WORDS; i++) factors[part][half][i] = parts[part][i];
        }
    }
}

// B_j of one block for instructions m and m + 1 of a unit, second operand: [instruction][part][record words].
struct BlockB {
    rssm_u32 w[2][X_PARTS][PART_WORDS];
};

GPU_FN void load_block_b(const Stage &stage, int block, int unit, int m, BlockB &b)
{
    const rssm_i32 lane = gpu_lane();
    if constexpr (sizeof(T_act) == 2) {
        const rssm_i32 record = block * BLOCK_RECORDS + lane % 16;
        rssm_u32       words[4];
        gpu_load_matrix4_transposed(words, gpu_shared_address(&stage.b[record][(unit * UNIT + (m + lane / 16) * 8) * 2]));
#pragma unroll
        for (int i = 0; i < 4; i++) {   // word i: instruction i / 2, records 2t and 2t + 1 of half i % 2 of the block
            if constexpr (USE_BF16) {
                b.w[i / 2][0][i % 2] = words[i];
            } else {
                float pair[2];
                gpu_unpack<T_act, 1>(&words[i], pair);
                b.w[i / 2][0][i % 2 * 2] = rssm_float_bits(pair[0]);
                b.w[i / 2][0][i % 2 * 2 + 1] = rssm_float_bits(pair[1]);
            }
        }
    } else {
        const rssm_i32 column = unit * UNIT + lane / 8 * PIECE + lane / 4 % 2;
#pragma unroll
        for (int k = 0; k < 2; k++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const rssm_i32 record = block * BLOCK_RECORDS + lane % 4 * 2 + i % 2 + i / 2 * 8;
                const float    value = ((const float *)stage.b[record])[column + 2 * (m + k)];
                const rssm_u32 upper = gpu_to_tf32(value);
                b.w[k][0][i] = upper;
                b.w[k][X_PARTS - 1][i] = X_PARTS == 2 ? gpu_to_tf32(value - rssm_bits_float(upper)) : upper;
            }
        }
    }
}

// d += first * second over one block of records: COUNT parts of the first operand, whose small ones go first; of a
// second operand in two parts the small one meets the first's largest only.
template <int COUNT, int SECOND>
GPU_FN void multiply_block(float d[4], const rssm_u32 first[COUNT][2][PART_WORDS],
                           const rssm_u32 second[SECOND][PART_WORDS])
{
#pragma unroll
    for (int depth = 0; depth < (USE_BF16 ? 1 : 2); depth++) {
#pragma unroll
        for (int i = SECOND == 2 ? -1 : 0; i < COUNT; i++) {
            const int      part = i < 0 ? 0 : COUNT - 1 - i, other = i < 0 ? 1 : 0;
            const rssm_u32 a[4] = {first[part][0][2 * depth], first[part][1][2 * depth], first[part][0][2 * depth + 1],
                                   first[part][1][2 * depth + 1]};
            if constexpr (USE_BF16) gpu_matrix_bf16(d, a, second[other][0], second[other][1]);
            else gpu_matrix_tf32(d, a, second[other][2 * depth], second[other][2 * depth + 1]);
        }
    }
}

// --------------------------------------------------------------------------------------------------------------- fold

// The factors of a tile: of all records where they fit into the registers.
struct Factors {
    rssm_u32 w[CFG_HELD_BLOCKS][PARTS][2][PART_WORDS];
};

GPU_FN void make_all_factors(const Stage &stage, const Tile &tile, rssm_i32 folded, Factors &factors)
{
#pragma unroll
    for (int block = 0; block < CFG_HELD_BLOCKS; block++) {
        if (block == 0 || folded > block * BLOCK_RECORDS) make_factors(stage, tile, block, folded, factors.w[block]);
    }
}

// sum = factors * B over `folded` records for instructions m and m + 1 of a unit.
template <bool HELD>
GPU_FN void fold_columns(const Stage &stage, const Tile &tile, const Factors &factors, int unit, int m, rssm_i32 folded,
                         float sum[2][4])
{
    BlockB b;
#pragma unroll
    for (int i = 0; i < 8; i++) sum[i / 4][i % 4] = 0.0f;
    if constexpr (HELD) {
#pragma unroll
        for (int block = 0; block < CFG_HELD_BLOCKS; block++) {
            if (block > 0 && folded <= block * BLOCK_RECORDS) continue;
            load_block_b(stage, block, unit, m, b);
#pragma unroll
            for (int k = 0; k < 2; k++) multiply_block<PARTS, X_PARTS>(sum[k], factors.w[block], b.w[k]);
        }
    } else {
#pragma unroll 1
        for (int block = 0; block * BLOCK_RECORDS < folded; block++) {
            rssm_u32 made[PARTS][2][PART_WORDS];
            make_factors(stage, tile, block, folded, made);
            load_block_b(stage, block, unit, m, b);
#pragma unroll
            for (int k = 0; k < 2; k++) multiply_block<PARTS, X_PARTS>(sum[k], made, b.w[k]);
        }
    }
}

// How a fold is done: one record by plain arithmetic, as the conventional step; with the factors of all records in
// registers; or, where a ring that is longer than the window holds more of them than that, made anew each time.
enum Fold { FOLD_ONE, FOLD_HELD, FOLD_LONG };

GPU_FN Fold fold_of(rssm_i32 folded)
{
    return folded == 1 ? FOLD_ONE : folded <= CFG_HELD_BLOCKS * BLOCK_RECORDS ? FOLD_HELD : FOLD_LONG;
}

// S' = decay S + (s x) B with record 0.
GPU_FN void fold_one(const Stage &stage, const Tile &tile, float decay, int unit, float s[2][PIECE])
{
    const rssm_i32 t = gpu_lane() % 4;
    const T_act   *x = (const T_act *)stage.x[tile.local][0] + tile.p + gpu_lane() / 4;
    const float    weight = stage.weight[tile.local][0];
    const float    sx[2] = {weight * rssm_to_float(x[0]), weight * rssm_to_float(x[8])};
#pragma unroll
    for (int m = 0; m < PAIRS; m++) {
        float b[2];
        if constexpr (sizeof(T_act) == 2) {
            gpu_unpack<T_act, 1>((const rssm_u32 *)stage.b[0] + unit * (UNIT / 2) + m * 4 + t, b);
        } else {
            b[0] = ((const float *)stage.b[0])[unit * UNIT + t * PIECE + 2 * m];
            b[1] = ((const float *)stage.b[0])[unit * UNIT + t * PIECE + 2 * m + 1];
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            s[i / 2][2 * m + i % 2] = gpu_fma(decay, s[i / 2][2 * m + i % 2], sx[i / 2] * b[i % 2]);
        }
    }
}

// S' = decay S + fold for panel `u`: in `s`, unrounded, and rounded in `panel`.
template <Fold FOLD>
GPU_FN void fold_panel(const Stage &stage, const Tile &tile, const Factors &factors, float decay, rssm_i32 folded, int u,
                       Panel &panel, float s[2][PIECE])
{
    unpack_panel(panel, u, s);
    if constexpr (FOLD == FOLD_ONE) {
        fold_one(stage, tile, decay, u, s);
    } else {
#pragma unroll
        for (int m = 0; m < PAIRS; m += 2) {
            float sum[2][4];
            fold_columns<FOLD == FOLD_HELD>(stage, tile, factors, u, m, folded, sum);
#pragma unroll
            for (int i = 0; i < 8; i++) {   // instruction i / 4; accumulators: row g, row g, row g + 8, row g + 8
                float &element = s[i / 2 % 2][2 * m + i / 4 * 2 + i % 2];
                element = gpu_fma(decay, element, sum[i / 4][i % 4]);
            }
        }
    }
#pragma unroll
    for (int half = 0; half < 2; half++) gpu_pack<T_state, 4>(s[half], panel.row[half].w);
}

#endif
