// Mamba-2 step at T = 1: tiles. A tile is 16 rows of one head's checkpoint and belongs to one warp. Lane l has g = l / 4
// and t = l % 4; it owns rows 4t .. 4t+3, and of the window's records those with number g, g + 8, ...
// Here: where tiles are, the records' x, their terms in y, and the output.
#ifndef RSSM_CUDA_MAMBA2_STEP_TILE_CUH
#define RSSM_CUDA_MAMBA2_STEP_TILE_CUH

#include "cuda/mamba2_step/records.cuh"

enum {
    BLOCK_ROWS = CFG_HEADS * CFG_HEAD_DIM / CFG_SPLIT,
    BLOCK_TILES = BLOCK_ROWS / TILE_ROWS,
    HELD_GROUPS = HELD_RECORDS / 8,              // records of a lane in registers
    ROW_WORDS = 4 * (int)sizeof(T_act) / 4,      // words of x in a lane's four rows
};

struct Tile {
    rssm_i32 local;   // head, counted from the block's first
    rssm_i32 p;       // first row within the head
};

// A lane's four rows of x of its records; zeros where there is no record.
struct TileRecords {
    alignas(16) rssm_u32 x[HELD_GROUPS][ROW_WORDS];
};

GPU_FN Tile locate_tile(const Place &place, int k)
{
    const rssm_i32 first = (gpu_warp() * CFG_TILES + k) * TILE_ROWS;
    Tile           tile;
    tile.local = CFG_HEADS == 1 ? 0 : first / CFG_HEAD_DIM;
    tile.p = place.p + first - tile.local * CFG_HEAD_DIM;
    return tile;
}

// Is there a tile `k` for this warp? The last warp of a block may have fewer than the others.
GPU_FN bool has_tile(int k)
{
    return BLOCK_TILES % CFG_TILES == 0 || gpu_warp() * CFG_TILES + k < BLOCK_TILES;
}

// The row of a tile whose y a lane holds after sum_over_groups.
GPU_FN rssm_i32 output_row()
{
    const rssm_i32 lane = gpu_lane();
    return lane % 4 * 4 + lane / 16 * 2 + lane / 8 % 2;
}

GPU_FN void write_zeros(const rssm_mamba2_step_kernel_args &args, const Place &place, const Row &row)
{
    for (rssm_i32 i = gpu_thread(); i < BLOCK_ROWS * row.zeros; i += CFG_THREADS) {
        const rssm_i32 token = row.token + i / BLOCK_ROWS;
        const rssm_i32 local = CFG_HEADS == 1 ? 0 : i % BLOCK_ROWS / CFG_HEAD_DIM;
        const rssm_i32 p = place.p + i % BLOCK_ROWS - local * CFG_HEAD_DIM;
        char          *to = token_at<T_act>(args.out, token, place.head + local) + p * (int)sizeof(T_act);
        if constexpr (sizeof(T_act) == 4) gpu_store4(to, 0);
        else gpu_store2(to, 0);
    }
}

// The lane's offset in bytes within a head's x.
GPU_FN rssm_i32 lane_rows(const Tile &tile)
{
    return (tile.p + gpu_lane() % 4 * 4) * (int)sizeof(T_act);
}

// Loads x of records first, first + 8, ... in the lane's four rows: from the ring for j < h, from the activations for
// the current token, zeros behind it and where not wanted.
template <int COUNT>
GPU_FN void load_x(const rssm_mamba2_step_kernel_args &args, const Place &place, const Row &row, const Tile &tile,
                   rssm_i32 first, bool wanted, rssm_u32 words[COUNT][ROW_WORDS])
{
    const rssm_i32 head = place.head + tile.local;
    const char    *ring = ring_at<T_act>(args.x_ring, row.slot, head) + lane_rows(tile);
    const char    *now = token_at<T_act>(args.x, row.token, head) + lane_rows(tile);
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const rssm_i32 record = first + i * 8;
        const char    *from = record_or_token<T_act>(args.x_ring, row, record, ring, now);
        if constexpr (ROW_WORDS == 2) *(gpu_vec2 *)words[i] = gpu_load8_if(from, wanted && record < row.live);
        else *(gpu_vec4 *)words[i] = gpu_load16_if(from, wanted && record < row.live);
    }
}

// The gate's bits for the row whose y this lane will hold.
GPU_FN rssm_u32 load_z(const rssm_mamba2_step_kernel_args &args, const Place &place, const Row &row, const Tile &tile)
{
    if (!args.z.data || !has_token(row)) return 0;
    const char *from = token_at<T_act>(args.z, row.token, place.head + tile.local) +
                       (tile.p + output_row()) * (int)sizeof(T_act);
    return sizeof(T_act) == 4 ? gpu_load4(from) : gpu_load2(from);
}

// The terms of one record in y, for the lane's four rows.
GPU_FN void add_record(const Row &row, const Shared &shared, const Tile &tile, rssm_i32 record,
                       const rssm_u32 words[ROW_WORDS], float y[4])
{
    const HeadFactors &head = shared.head[tile.local];
    float              factor = 0.0f, x[4];

    if (record < row.h && row.folded == 0) factor = shared.s[tile.local][record] * shared.bc[record];
    if (record == row.h) factor = gpu_fma(head.current, shared.bc[record], head.skip);
    gpu_unpack<T_act, ROW_WORDS>(words, x);
#pragma unroll
    for (int r = 0; r < 4; r++) y[r] = gpu_fma(factor, x[r], y[r]);
}

// The current token's x in the lane's four rows becomes record h.
GPU_FN void append_x(const rssm_mamba2_step_kernel_args &args, const Place &place, const Row &row, const Tile &tile,
                     const rssm_u32 words[ROW_WORDS])
{
    char *to = ring_at<T_act>(args.x_ring, row.slot, place.head + tile.local) + lane_rows(tile) +
               record_offset<T_act>(args.x_ring, row, row.h);
    if constexpr (ROW_WORDS == 2) gpu_store8(to, *(const gpu_vec2 *)words);
    else gpu_store16(to, *(const gpu_vec4 *)words);
}

// Each lane's y of one row, summed over the eight lane groups: see output_row.
GPU_FN float sum_over_groups(const float y[4])
{
    const bool upper = gpu_lane() & 16, odd = gpu_lane() & 8;
    const float a = (upper ? y[2] : y[0]) + gpu_shuffle_xor(upper ? y[0] : y[2], 16);
    const float b = (upper ? y[3] : y[1]) + gpu_shuffle_xor(upper ? y[1] : y[3], 16);
    const float c = (odd ? b : a) + gpu_shuffle_xor(odd ? a : b, 8);
    return c + gpu_shuffle_xor(c, 4);
}

// Sums y over the lane groups, gates and stores it.
GPU_FN void store_output(const rssm_mamba2_step_kernel_args &args, const Place &place, const Row &row, const Tile &tile,
                         rssm_u32 z_bits, const float y[4])
{
    float sum = sum_over_groups(y);
    if (row.token < 0 || gpu_lane() / 4 % 2) return;   // odd groups hold the same rows
    if (!has_token(row)) {
        sum = 0.0f;
    } else if (args.z.data) {
        float z[2];
        gpu_words<T_act>::unpack(z_bits, z);
        sum *= rssm_silu(z[0]);
    }
    const float pair[2] = {sum, 0.0f};
    char       *to = token_at<T_act>(args.out, row.token, place.head + tile.local) +
               (tile.p + output_row()) * (int)sizeof(T_act);
    if constexpr (sizeof(T_act) == 4) gpu_store4(to, gpu_words<T_act>::pack(pair));
    else gpu_store2(to, gpu_words<T_act>::pack(pair));
}

#endif
