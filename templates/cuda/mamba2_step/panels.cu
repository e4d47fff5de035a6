// mamba2_step_panels: one step of up to T tokens per row (speculative decoding) of a Mamba-2 layer. Warps stream panels
// of the checkpoint through registers; every product with more than one token is done by matrix instructions.
//
// Math      records k < h of the ring, the current tokens are records h .. h + t - 1; d_k processed dt, A the decay;
//             D(k, i) = d_{k+1} + ... + d_{h+i}, the time from record k to token i
//           read:  y_i = e^{A D(-1, i)} (S C_i) + sum_{k <= h+i} d_k e^{A D(k, i)} (B_k . C_i) x_k + D x_i
//           fold:  S' = e^{A (d_0 + .. + d_{h-1})} S + sum_{k < h} s_k x_k B_k^T, and y_i as above from the unrounded S'
//                  and the tokens alone
//           then y *= silu(z); one rounding each at the stores of y and S'
// Modes     APPEND reads, FOLD_HISTORY folds, both append the t tokens behind the h records. A row with t = 0 may fold.
//           Anything else gets zeros.
// Layout    checkpoint [slot][head][p][n]; rings [slot][head][record][p], [slot][group][record][n],
//           [slot][head][record]; activations [token][head or group][dense]; all with the strides of the argument struct
// Grid      (heads * SPLIT / HEADS, rows); a block has HEADS whole heads of one group, or 1 / SPLIT of a head
// Flow      1 the row's descriptor   2 loads of the first panels, dt and B, copies of C and x to shared memory
//           3 B staged; per head: times, gaps and weights of all records (stage.cuh)   4 barrier
//           5 appends; B_k . C_i of all records and tokens, and from them the records' weights in y   6 barrier
//           7 panels: S C_i, or fold, store and S' C_i   8 per tile: the records' terms, gate, store of y
// Traffic   checkpoint read once (fold: and written once), x records once, B ring, C and products once per block
// Numbers   fp32 throughout: see panel.cuh; B_k . C_i is exact in the products and accumulated in fp32
// Invariant a lane reads a piece of the checkpoint before it writes it, and no other thread touches that piece; records
//           that are appended are read by nobody in this step, since the tokens come from the activations
#include "rssm_config.h"

#include "cuda/mamba2_step/tokens.cuh"

// Warps that must fit on a multiprocessor together, which caps the registers of a thread; tf32 factors need them all.
constexpr int RESIDENT_WARPS = USE_BF16 ? CFG_RESIDENT : least(CFG_RESIDENT, 8);

static_assert(CFG_MAX_TOKENS > 1 && CFG_MAX_TOKENS <= 16, "tokens are the columns of one or two instructions");
static_assert(CFG_HEAD_DIM % 16 == 0 && CFG_STATE_SIZE % 16 == 0, "whole tiles, whole pieces");
static_assert(CFG_SPLIT == 1 || CFG_HEADS == 1, "a block has whole heads or a part of one");
static_assert(CFG_HEAD_DIM % (CFG_SPLIT * TILE_ROWS) == 0, "a part of a head is whole tiles");
static_assert(CFG_GROUP_SIZE % CFG_HEADS == 0, "the heads of a block share B and C");
static_assert(CFG_WARPS == quotient_up(BLOCK_TILES, CFG_TILES), "derived WARPS");
static_assert(CFG_THREADS == CFG_WARPS * GPU_WARP, "derived THREADS");
static_assert(CFG_UNITS == quotient_up(CFG_STATE_SIZE, UNIT), "derived UNITS");
static_assert(CFG_TOKEN_SLOTS == quotient_up(CFG_MAX_TOKENS, 8) * 8, "derived TOKEN_SLOTS");
static_assert(CFG_RECORD_SLOTS == quotient_up(CFG_RING_LENGTH, 16) * 16, "derived RECORD_SLOTS");
static_assert(EXACT_PARTS * PART_WORDS <= 8, "words of a weight");
static_assert(sizeof(Shared) == CFG_SHARED_BYTES, "derived SHARED_BYTES and struct Shared disagree");

// ------------------------------------------------------------------------------------------------------------- panels

// S C_i of a tile: rows g and g + 8, tokens 2t and 2t + 1 of each half. `small`: what the small parts add up to.
struct Sums {
    float main[TOKEN_HALVES][4], small[TOKEN_HALVES][4];
};

// A piece of C as tf32 words: [element][part].
GPU_FN void split_c(const PieceC &c, rssm_u32 w[PIECE][X_PARTS])
{
    float f[PIECE];
    gpu_unpack<T_act, C_WORDS>(c.w, f);
#pragma unroll
    for (int e = 0; e < PIECE; e++) {
        w[e][0] = X_PARTS == 2 ? gpu_to_tf32(f[e]) : rssm_float_bits(f[e]);
        if constexpr (X_PARTS == 2) w[e][1] = gpu_to_tf32(f[e] - rssm_bits_float(w[e][0]));
    }
}

// sums += S C for one panel. EXACT: every element of S fits tf32.
template <bool EXACT>
GPU_FN void read_floats(const Shared &shared, const float s[2][PIECE], int u, Sums &sums)
{
    rssm_u32 c[TOKEN_HALVES][PIECE][X_PARTS];
#pragma unroll
    for (int half = 0; half < TOKEN_HALVES; half++) split_c(load_c(shared, u, half), c[half]);
#pragma unroll
    for (int m = 0; m < PAIRS; m++) {
        rssm_u32 upper[4], lower[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {   // rows g, g + 8; elements 2m, 2m + 1
            const float value = s[i % 2][2 * m + i / 2];
            upper[i] = EXACT ? rssm_float_bits(value) : upper_tf32(value);
            lower[i] = EXACT ? 0 : rssm_float_bits(value - rssm_bits_float(upper[i]));
        }
#pragma unroll
        for (int half = 0; half < TOKEN_HALVES; half++) {
            const rssm_u32(*even)[X_PARTS] = &c[half][2 * m], (*odd)[X_PARTS] = &c[half][2 * m + 1];
            if constexpr (!EXACT) gpu_matrix_tf32(sums.small[half], lower, (*even)[0], (*odd)[0]);
            if constexpr (X_PARTS == 2) gpu_matrix_tf32(sums.small[half], upper, (*even)[1], (*odd)[1]);
            gpu_matrix_tf32(sums.main[half], upper, (*even)[0], (*odd)[0]);
        }
    }
}

GPU_FN void read_panel(const Shared &shared, const Panel &panel, int u, Sums &sums)
{
    if constexpr (IS_DIRECT) {
#pragma unroll
        for (int half = 0; half < TOKEN_HALVES; half++) {
            const PieceC c = load_c(shared, u, half);
#pragma unroll
            for (int k = 0; k < PAIRS / 2; k++) {
                rssm_u32 a[4];
#pragma unroll
                for (int i = 0; i < 4; i++) a[i] = has_columns(u) ? panel.row[i % 2].w[2 * k + i / 2] : 0;
                multiply_16bit(sums.main[half], a, c.w[2 * k], c.w[2 * k + 1]);
            }
        }
    } else {
        float s[2][PIECE];
        unpack_panel(panel, u, s);
        read_floats<sizeof(T_state) == 2>(shared, s, u, sums);
    }
}

// -------------------------------------------------------------------------------------------------------------- outputs

// terms += the records' terms in y of a tile.
GPU_FN void add_records(const Shared &shared, const Tile &tile, float terms[TOKEN_HALVES][4])
{
#pragma unroll 1
    for (int block = shared.row.folded / BLOCK_RECORDS; block * BLOCK_RECORDS < shared.row.live; block++) {
        rssm_u32 x[X_PARTS][2][PART_WORDS];
        BlockX   words;
        load_block_x(shared.stage, tile, block, words);
#pragma unroll
        for (int rows = 0; rows < 2; rows++) {
            if constexpr (USE_BF16) {
                x[0][rows][0] = words.w[rows][0];
                x[0][rows][1] = words.w[rows][1];
            } else {
                float    f[4];
                rssm_u32 split_x[X_PARTS][PART_WORDS];
                unpack_block_x(words, rows, f);
                split<X_PARTS>(f, split_x);
#pragma unroll
                for (int i = 0; i < X_PARTS * PART_WORDS; i++) x[i / PART_WORDS][rows][i % PART_WORDS] = split_x[i / PART_WORDS][i % PART_WORDS];
            }
        }
#pragma unroll
        for (int half = 0; half < TOKEN_HALVES; half++) {
#pragma unroll
            for (int part = EXACT_PARTS - 1; part >= 0; part--) {
                const rssm_u32 *from = shared.weights[tile.local][block][half] + (part * GPU_WARP + gpu_lane()) * PART_WORDS;
                rssm_u32        weights[1][PART_WORDS];
#pragma unroll
                for (int i = 0; i < PART_WORDS; i++) weights[0][i] = from[i];
                if (part > 0 || X_PARTS == 1) multiply_block<1, 1>(terms[half], x, weights);
                else multiply_block<X_PARTS, 1>(terms[half], x, weights);
            }
        }
    }
}

// The gates of a lane's outputs: rows g and g + 8, tokens 2t and 2t + 1 of each half.
struct Gates {
    rssm_u32 bits[TOKEN_HALVES][4];
};

GPU_FN rssm_i32 output_token(int half, int i)
{
    return half * 8 + gpu_lane() % 4 * 2 + i % 2;
}

// Where the lane's output 0 of half 0 is in z or out, and its output i of a half from there, in bytes.
GPU_FN char *output_at(const rssm_token_view &view, const Place &place, const Row &row, const Tile &tile)
{
    return token_at<T_act>(view, row.token + output_token(0, 0), place.head + tile.local) +
           (place.p + tile.p + gpu_lane() / 4) * (int)sizeof(T_act);
}

GPU_FN rssm_i64 output_offset(const rssm_token_view &view, int half, int i)
{
    return ((half * 8 + i % 2) * view.token_stride + i / 2 * 8) * (int)sizeof(T_act);
}

GPU_FN void load_gates(const rssm_mamba2_step_kernel_args &args, const Place &place, const Row &row, const Tile &tile,
                       Gates &gates)
{
    if (!args.z.data) return;
    const char *from = output_at(args.z, place, row, tile);
#pragma unroll
    for (int half = 0; half < TOKEN_HALVES; half++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const char *at = from + output_offset(args.z, half, i);
            const bool  wanted = output_token(half, i) < row.live - row.h;
            gates.bits[half][i] = sizeof(T_act) == 4 ? gpu_load4_if(at, wanted) : gpu_load2_if(at, wanted);
        }
    }
}

// y of a tile: scaled, the records' terms added, gated, stored.
GPU_FN void finish_tile(const rssm_mamba2_step_kernel_args &args, const Place &place, const Shared &shared,
                        const Tile &tile, const Gates &gates, const Sums &sums)
{
    const Row &row = shared.row;
    float      terms[TOKEN_HALVES][4] = {};
    if (row.live == row.h) return;
    add_records(shared, tile, terms);
    char *to = output_at(args.out, place, row, tile);
#pragma unroll
    for (int half = 0; half < TOKEN_HALVES; half++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const rssm_i32 token = output_token(half, i);
            const float    scale = shared.scale[tile.local][token];
            float          y = gpu_fma(scale, sums.main[half][i] + sums.small[half][i], terms[half][i]);
            if (args.z.data) {
                float z[2];
                gpu_words<T_act>::unpack(gates.bits[half][i], z);
                y *= gpu_divide(z[0], 1.0f + rssm_exp(-z[0]));   // silu
            }
            if (token >= row.live - row.h) continue;
            const float pair[2] = {y, 0.0f};
            char       *at = to + output_offset(args.out, half, i);
            if constexpr (sizeof(T_act) == 4) gpu_store4(at, gpu_words<T_act>::pack(pair));
            else gpu_store2(at, gpu_words<T_act>::pack(pair));
        }
    }
}

GPU_FN void write_zeros(const rssm_mamba2_step_kernel_args &args, const Place &place, const Row &row)
{
    for (rssm_i32 i = gpu_thread(); i < row.zeros * CFG_HEADS * BLOCK_P; i += CFG_THREADS) {
        const rssm_i32 token = i / (CFG_HEADS * BLOCK_P), local = i / BLOCK_P % CFG_HEADS, p = place.p + i % BLOCK_P;
        char          *to = token_at<T_act>(args.out, row.token + token, place.head + local) + p * (int)sizeof(T_act);
        if constexpr (sizeof(T_act) == 4) gpu_store4(to, 0);
        else gpu_store2(to, 0);
    }
}

// -------------------------------------------------------------------------------------------------------------- stream

// All tiles of the warp; on entry the first DEPTH panels are in flight. WRITES: they are folded and stored.
template <bool WRITES, Fold FOLD>
GPU_FN void stream_tiles(const rssm_mamba2_step_kernel_args &args, const Place &place, const Shared &shared,
                         char *tile_at, Held &held)
{
#pragma unroll 1
    for (int k = 0; has_tile(k); k++) {
        const Tile tile = locate_tile(k);
        Factors    factors;
        Gates      gates;
        Sums       sums = {};
        load_gates(args, place, shared.row, tile, gates);
        if constexpr (WRITES && FOLD == FOLD_HELD) make_all_factors(shared.stage, tile, shared.row.folded, factors);
#pragma unroll
        for (int u = 0; u < CFG_UNITS; u++) {
            Panel &panel = held.panel[u % DEPTH];
            if constexpr (WRITES) {
                // Never; but the compiler does not know, and keeps the folds of later panels, which depend on no load in
                // flight, out of this one's registers. Where there are registers enough it may mix them.
                if (CFG_RESIDENT > 12 && shared.row.folded <= 0) continue;
                float s[2][PIECE];
                fold_panel<FOLD>(shared.stage, tile, factors, shared.head[tile.local].decay, shared.row.folded, u, panel, s);
                store_panel(tile_at, u, panel);
                read_floats<false>(shared, s, u, sums);
            } else {
                read_panel(shared, panel, u, sums);
            }
            load_next_panel(tile_at, u, has_tile(k + 1), held);
        }
        finish_tile(args, place, shared, tile, gates, sums);
        tile_at += TILE_BYTES;
    }
}

extern "C" __global__ void __launch_bounds__(CFG_THREADS, most(1, RESIDENT_WARPS / CFG_WARPS))
    mamba2_step_panels(const __grid_constant__ rssm_mamba2_step_kernel_args args)
{
    Shared     &shared = *(Shared *)gpu_shared_memory();
    const Place place = locate(gpu_block_y(), gpu_block_x());
    HeadInputs  inputs[HEAD_PASSES];
    HeldB       b;
    Held        held;
    Row         row;

    const Work work = read_row(args.descriptors, place.row, row);
    if (work != WORK_STEP) {
        if (work == WORK_ZEROS) write_zeros(args, place, row);
        return;
    }
    // The checkpoint first: its loads are few instructions, and what follows is many.
    char *checkpoint = checkpoint_at(args.state, place, row.slot);
    load_first_panels(checkpoint, held);
    load_head(args, place, row, inputs);
    load_b(args.B_ring, args.B, place, row, shared.stage, b);
    stage_c(args, place, row, shared);
    stage_x(args.x_ring, args.x, place, row, shared.stage);
    gpu_copy_commit();

    finish_b(args.B_ring, args.B, place, row, shared.stage, b);
#pragma unroll
    for (int pass = 0; pass < HEAD_PASSES; pass++) {
        if (pass_head(pass) < CFG_HEADS) finish_head(args, place, row, shared, pass_head(pass), inputs[pass]);
    }
    if (gpu_thread() == 0) shared.row = row;
    if (row.live == row.h && row.token >= 0) write_zeros(args, place, row);
    gpu_copy_wait<0>();
    gpu_barrier<CFG_WARPS>();   // shared: written by all warps -> read by all

    append_x(args.x_ring, place, row, shared.stage);
    if (place.owns_group) append_b(args.B_ring, place, row, shared.stage);
    weigh_records(shared, row);
    gpu_barrier<CFG_WARPS>();   // shared.weights: written by some warps -> read by all

    const Fold fold = fold_of(shared.row.folded);
    if (shared.row.folded == 0) stream_tiles<false, FOLD_ONE>(args, place, shared, checkpoint, held);
    else if (fold == FOLD_ONE) stream_tiles<true, FOLD_ONE>(args, place, shared, checkpoint, held);
    else if (fold == FOLD_HELD) stream_tiles<true, FOLD_HELD>(args, place, shared, checkpoint, held);
    else stream_tiles<true, FOLD_LONG>(args, place, shared, checkpoint, held);
}
