// mamba2_step_stream: one decode step (T = 1) of a Mamba-2 layer; every warp streams tiles of the checkpoint through
// registers, 16 bytes per access and LOADS accesses in flight per lane.
//
// Math      records j < h of the ring, the current token is record h; d_j its processed dt, A the head's decay
//             s_j = d_j exp(A (d_{j+1} + ... + d_last))
//           no fold:  y = e^{A sum d} (S C) + sum_j s_j (B_j . C) x_j + D x
//           fold:     S' = e^{A sum d} S + sum_j s_j x_j B_j^T;  y = S' C + D x from the unrounded S'
//                     (FOLD_HISTORY leaves the token out of S' and adds its terms to y as above)
//           then y *= silu(z); one rounding each at the stores of y and S'
// Layout    checkpoint [slot][head][p][n]; rings [slot][head][record][p], [slot][group][record][n],
//           [slot][head][record]; all with the strides of the argument struct
// Grid      (heads * SPLIT / HEADS, rows); a block has HEADS whole heads of one group, or 1 / SPLIT of a head;
//           descriptors list folding rows first, so the long blocks start first
// Tile      16 rows of a head; lane l (g = l / 4, t = l % 4) owns rows 4t .. 4t+3 and in each unit of columns the
//           16-byte piece of g, so that one access of a warp covers four rows by one full 128-byte line;
//           a warp has TILES consecutive tiles and refills each register as soon as it is used
// Flow      1 the row's descriptor, head parameters   2 loads, in the order of their use: dt, B and C, x, checkpoint
//           3 while the checkpoint is on its way: decays, B_j . C, for a fold the records' matrix to shared memory
//           4 one barrier   5 tiles: dot with C, or fold by matrix instructions (fold.cuh), dot and store
//           6 sum over the eight lane groups, records' terms, gate, store of y
// Traffic   checkpoint read once (fold: and written once), each x record once, B ring and C once per block from L2
// Numbers   fp32 throughout; see fold.cuh for the fold. Dead records are never loaded; their factors are selected to
//           zero, not multiplied. No global fast-math; expf and log1pf are the compiler's accurate ones
// Invariant a lane reads a piece of the checkpoint before it writes it, and no other thread touches that piece
#include "rssm_config.h"

#include "abi/mamba2_step.h"
#include "cuda/mamba2_step/slow.cuh"

// Contract with stream.json
enum {
    DEPTH = CFG_DEPTH,                                         // units in flight per lane
    WARP_UNITS = CFG_TILES * CFG_UNITS,
    SLOW_RECORDS = CFG_RING_LENGTH + 1 > HELD_RECORDS,         // a ring can hold more than the registers
};
// Warps that must fit on a multiprocessor together, which caps the registers of a thread: 96 for 20, 128 for 16, 168
// for 12, 255 for 8. Wide states, tf32 factors and a second block of held records each need more registers.
constexpr int NEEDY = (CFG_STATE_SIZE > 128 || !USE_BF16) + (CFG_HELD_BLOCKS > 1);
constexpr int RESIDENT_WARPS = NEEDY == 0 ? CFG_RESIDENT : NEEDY == 1 ? 12 : 8;

static_assert(CFG_MAX_TOKENS == 1, "one token per row");
static_assert(CFG_HEAD_DIM % 16 == 0 && CFG_STATE_SIZE % 16 == 0, "whole tiles, whole pieces");
static_assert(CFG_SPLIT == 1 || CFG_HEADS == 1, "a block has whole heads or a part of one");
static_assert(CFG_HEAD_DIM % (CFG_SPLIT * TILE_ROWS) == 0, "a part of a head is whole tiles");
static_assert(CFG_GROUP_SIZE % CFG_HEADS == 0, "the heads of a block share B and C");
static_assert(CFG_WARPS == quotient_up(BLOCK_TILES, CFG_TILES), "derived WARPS");
static_assert(CFG_THREADS == CFG_WARPS * GPU_WARP, "derived THREADS");
static_assert(CFG_UNITS == quotient_up(CFG_STATE_SIZE, UNIT), "derived UNITS");
static_assert(CFG_HELD_BLOCKS == least(2, quotient_up(CFG_WINDOW, BLOCK_RECORDS)), "derived HELD_BLOCKS");
static_assert(CFG_RECORD_SLOTS > CFG_RING_LENGTH && CFG_RECORD_SLOTS >= HELD_RECORDS, "derived RECORD_SLOTS");
static_assert(DEPTH == least(CFG_LOADS / 4, WARP_UNITS), "derived DEPTH");
static_assert(sizeof(Shared) == CFG_SHARED_BYTES, "derived SHARED_BYTES and struct Shared disagree");

// What a warp has in flight.
struct Held {
    Unit        unit[DEPTH];
    TileRecords records[CFG_TILES];
};

GPU_FN void load_records(const rssm_mamba2_step_kernel_args &args, const Place &place, const Row &row, int k,
                         Held &held)
{
    load_x<HELD_GROUPS>(args, place, row, locate_tile(place, k), gpu_lane() / 4, has_tile(k), held.records[k].x);
}

// Folds into unit `u`, stores it, and adds S' C to y. All lanes of the warp call.
GPU_FN void write_unit(const Shared &shared, const Factors &factors, const Tile &tile, char *checkpoint, int u,
                       Unit &unit, float y[4])
{
    enum { WORDS = 2 * sizeof(T_act) / 4 };
    const rssm_i32 folded = shared.row.folded;
    // Always so; but the compiler does not know, and keeps the products of later units, which depend on no load in
    // flight, out of this one's registers.
    if (folded > 0) {
        const float decay = shared.head[tile.local].checkpoint;   // again and again, rather than in a register
        UnitWords   words = {};
        if (has_columns(u)) words = unit_words(shared.c, u);
#pragma unroll
        for (int m = 0; m < PIECE / 2; m++) {
            float sum[2][4], c[2];
            if (m == 2) gpu_warp_barrier();   // likewise for the second half of a 16-bit unit
            fold_columns(shared, factors, u % CFG_UNITS, m, folded, sum);
            gpu_unpack<T_act, WORDS>(words.w + m * WORDS, c);
            if (has_columns(u)) update_columns(unit, m, decay, sum, c, y);
        }
    }
    store_unit(checkpoint, u, unit);
}

// d x of the current token in the lane's four rows, from the lanes that hold record 0.
GPU_FN void share_dx(const TileRecords &records, float d, float dx[4])
{
    rssm_u32 words[ROW_WORDS];
#pragma unroll
    for (int i = 0; i < ROW_WORDS; i++) words[i] = gpu_shuffle_from(records.x[0][i], gpu_lane() % 4);
    gpu_unpack<T_act, ROW_WORDS>(words, dx);
#pragma unroll
    for (int r = 0; r < 4; r++) dx[r] *= d;
}

// y of a tile: scaled, the records' terms added, stored. The current token's x to its ring.
GPU_FN void finish_tile(const rssm_mamba2_step_kernel_args &args, const Place &place, const Row &row,
                        const Shared &shared, const Tile &tile, const TileRecords &records, rssm_u32 z, float y[4])
{
    const float output = shared.head[tile.local].output;
#pragma unroll
    for (int r = 0; r < 4; r++) y[r] *= output;
#pragma unroll
    for (int i = 0; i < HELD_GROUPS; i++) {
        const rssm_i32 record = i * 8 + gpu_lane() / 4;
        add_record(row, shared, tile, record, records.x[i], y);
        if (record == row.h && row.appends) append_x(args, place, row, tile, records.x[i]);
    }
    store_output(args, place, row, tile, z, y);
}

// What happens to a checkpoint.
enum Path { PATH_READ, PATH_FOLD, PATH_FOLD_ONE };

// All tiles of the warp; on entry the first DEPTH units and the records of their tiles are in flight.
template <Path PATH>
GPU_FN void stream_tiles(const rssm_mamba2_step_kernel_args &args, const Place &place, const Shared &shared,
                         char *checkpoint, Held &held)
{
    const Row &row = shared.row;
    Factors    factors;
    float      y[4], dx[4];
    rssm_u32   z = 0;
#pragma unroll
    for (int u = 0; u < WARP_UNITS; u++) {
        const int  k = u / CFG_UNITS;
        const Tile tile = locate_tile(place, k);
        Unit      &unit = held.unit[u % DEPTH];
        if (u % CFG_UNITS == 0) {
            if (!has_tile(k)) return;
            if (k > 0) gpu_warp_barrier();   // one tile's accesses at a time
            y[0] = y[1] = y[2] = y[3] = 0.0f;
            z = load_z(args, place, row, tile);
            if constexpr (PATH == PATH_FOLD) make_factors(held.records[k], shared.s[tile.local], row.folded, factors);
            if constexpr (PATH == PATH_FOLD_ONE) share_dx(held.records[k], shared.s[tile.local][0], dx);
        }
        if constexpr (PATH == PATH_FOLD) {
            write_unit(shared, factors, tile, checkpoint, u, unit, y);
        } else if (has_columns(u)) {
            if constexpr (PATH == PATH_READ) read_unit(shared, u, unit, y);
            else replace_unit(shared, tile, dx, checkpoint, u, unit, y);
        }
        if (u + DEPTH < WARP_UNITS) {
            load_unit(checkpoint, u + DEPTH, true, unit);
            if ((u + DEPTH) % CFG_UNITS == 0) load_records(args, place, row, (u + DEPTH) / CFG_UNITS, held);
        }
        if (u % CFG_UNITS == CFG_UNITS - 1) {
            finish_tile(args, place, row, shared, tile, held.records[k], z, y);
        }
    }
}

extern "C" __global__ void __launch_bounds__(CFG_THREADS, most(1, RESIDENT_WARPS / CFG_WARPS))
    mamba2_step_stream(const __grid_constant__ rssm_mamba2_step_kernel_args args)
{
    Shared        &shared = *(Shared *)gpu_shared_memory();
    const Place    place = locate(gpu_block_y(), gpu_block_x());
    HeadInputs     inputs[HEAD_PASSES];
    gpu_vec4       c[LANE_CHUNKS];
    Chunks<PASSES> chunks;
    Held           held;
    Row            row;

    // All loads, in one run without a branch: what depends on no descriptor is computed while it is on its way.
    load_parameters(args, place, inputs);
    const Work work = read_row(args.descriptors, place.row, row);
    char      *checkpoint = checkpoint_at(args, place, row);
    load_times(args, place, row, inputs);
    load_c(args, place, row, c);
    load_chunks(args, place, row, 0, chunks);
#pragma unroll
    for (int u = 0; u < DEPTH; u += CFG_UNITS) load_records(args, place, row, u / CFG_UNITS, held);
#pragma unroll
    for (int u = 0; u < DEPTH; u++) load_unit(checkpoint, u, work == WORK_STEP, held.unit[u]);
    if (work != WORK_STEP) {
        if (work == WORK_ZEROS) write_zeros(args, place, row);
        return;
    }

    share_columns(row, shared, c, chunks.b[0]);
    finish_heads(args, place, row, shared, inputs);
    use_chunks(args, place, row, shared, 0, chunks, c);
    finish_chunks(args, place, row, shared, c);
    if (gpu_thread() == 0) shared.row = row;
    gpu_barrier<CFG_WARPS>();   // shared: written by all warps -> read by all

    if (SLOW_RECORDS && shared.row.live > HELD_RECORDS) step_tiles_slowly(args, place, shared, checkpoint);
    else if (shared.row.folded == 0) stream_tiles<PATH_READ>(args, place, shared, checkpoint, held);
    else if (folds_one(shared.row)) stream_tiles<PATH_FOLD_ONE>(args, place, shared, checkpoint, held);
    else stream_tiles<PATH_FOLD>(args, place, shared, checkpoint, held);
}
