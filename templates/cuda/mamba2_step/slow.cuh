// Mamba-2 step at T = 1: rows whose ring holds more records than a lane keeps in registers. They cannot occur at the
// window a plan was made for; memory shared with another plan can hand them over. Same tiles and lanes as the stream,
// one piece of the checkpoint at a time, plain fp32, everything else from L1 and L2. Correct before fast.
#ifndef RSSM_CUDA_MAMBA2_STEP_SLOW_CUH
#define RSSM_CUDA_MAMBA2_STEP_SLOW_CUH

#include "cuda/mamba2_step/tile.cuh"

// One piece of the checkpoint: y += S C, or for a fold S' = decay S + sum_j s_j x_j[p] B_j, y += S' C, stored.
GPU_FN void step_piece_slowly(const rssm_mamba2_step_kernel_args &args, const Place &place, const Row &row,
                              const Shared &shared, const Tile &tile, char *at, rssm_i32 column, rssm_i32 p, float &y)
{
    const rssm_i32 head = place.head + tile.local;
    gpu_vec4       piece = gpu_load16(at);
    float          s[PIECE];

    gpu_unpack<T_state, 4>(piece.w, s);
    if (row.folded > 0) {
#pragma unroll
        for (int e = 0; e < PIECE; e++) s[e] *= shared.head[tile.local].checkpoint;
#pragma unroll 1
        for (rssm_i32 record = 0; record < row.folded; record++) {
            const char *b = token_at<T_act>(args.B, row.token, place.group);
            const char *x = token_at<T_act>(args.x, row.token, head);
            if (record < row.h) {
                b = ring_at<T_act>(args.B_ring, row.slot, place.group) + record_offset<T_act>(args.B_ring, row, record);
                x = ring_at<T_act>(args.x_ring, row.slot, head) + record_offset<T_act>(args.x_ring, row, record);
            }
            const float factor = shared.s[tile.local][record] * rssm_to_float(((const T_act *)x)[p]);
#pragma unroll
            for (int e = 0; e < PIECE; e++) {
                s[e] = gpu_fma(factor, rssm_to_float(((const T_act *)b)[column + e]), s[e]);
            }
        }
    }
#pragma unroll
    for (int e = 0; e < PIECE; e++) y = gpu_fma(s[e], rssm_to_float(shared.c[column + e]), y);
    if (row.folded == 0) return;
    gpu_pack<T_state, 4>(s, piece.w);
    gpu_store16(at, piece);
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
        for (rssm_i32 column = gpu_lane() / 4 * PIECE; column < CFG_STATE_SIZE; column += UNIT) {
#pragma unroll
            for (int r = 0; r < 4; r++) {
                char *at = checkpoint + (k * TILE_ROWS + r) * ROW_BYTES + column / UNIT * 128;
                step_piece_slowly(args, place, row, shared, tile, at, column, tile.p + gpu_lane() % 4 * 4 + r, y[r]);
            }
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
