// mamba2_materialize_panels: folds the first n committed records of source slots into the checkpoints of destination
// slots, for all layers of one shape in one launch.
//
// Math      S' = e^{A (d_0 + .. + d_{n-1})} S + sum_{j < n} s_j x_j B_j^T, s_j = d_j e^{A (d_{j+1} + .. + d_{n-1})};
//           n = 0: the checkpoint as it is, bit by bit
// Bits      those that a flush of the same records would have written: the same sums, factors and instructions
//           (window.cuh, panel.cuh; stream.cu uses the same terms with the operands exchanged)
// Grid      (rows * heads); row r is move r % n_moves of layer r / n_moves, a block has one head of it
// Flow      1 the move and the layer   2 loads of the first panels, dt and B, copies of x   3 B staged; weights
//           4 barrier   5 panels: fold, store
// Traffic   checkpoint read and written once, the n records read once per head (x, dt) or block (B, from L2)
// Invariant rings are only read. Source and destination may be the same slot: a lane reads a piece before it writes it,
//           and no other thread touches that piece
#include "rssm_config.h"

#include "abi/mamba2_layers.h"
#include "cuda/mamba2_step/panel.cuh"

static_assert(CFG_HEADS == 1 && CFG_SPLIT == 1, "a block has one head");
static_assert(CFG_HEAD_DIM % 16 == 0 && CFG_STATE_SIZE % 16 == 0, "whole tiles, whole pieces");
static_assert(CFG_WARPS == quotient_up(BLOCK_TILES, CFG_TILES), "derived WARPS");
static_assert(CFG_THREADS == CFG_WARPS * GPU_WARP, "derived THREADS");
static_assert(CFG_UNITS == quotient_up(CFG_STATE_SIZE, UNIT), "derived UNITS");
static_assert(CFG_RECORD_SLOTS == quotient_up(CFG_RING_LENGTH, 16) * 16, "derived RECORD_SLOTS");

struct alignas(16) Shared {
    Stage stage;
    float decay;
    float reserved[3];
};

static_assert(sizeof(Shared) == CFG_SHARED_BYTES, "derived SHARED_BYTES and struct Shared disagree");

// Reads a move. False: there is nothing to do.
GPU_FN bool read_move(const rssm_slot_move &move, bool same_memory, Row &row)
{
    row.slot = move.source;
    row.token = -1;
    row.start = move.start;
    row.h = row.live = row.folded = move.n;
    row.appends = row.zeros = 0;
    if (move.source < 0 || move.destination < 0) return false;
    if (move.n < 0 || move.n > CFG_RING_LENGTH || move.start < 0 || move.start >= CFG_RING_LENGTH) return false;
    return move.n > 0 || !same_memory || move.source != move.destination;
}

// All tiles of the warp; on entry the first DEPTH panels are in flight. FOLDS: false for a copy.
template <bool FOLDS, Fold FOLD>
GPU_FN void stream_tiles(const Shared &shared, rssm_i32 folded, const char *from, char *to, Held &held)
{
#pragma unroll 1
    for (int k = 0; has_tile(k); k++) {
        const Tile tile = locate_tile(k);
        Factors    factors;
        if constexpr (FOLDS && FOLD == FOLD_HELD) make_all_factors(shared.stage, tile, folded, factors);
#pragma unroll
        for (int u = 0; u < CFG_UNITS; u++) {
            Panel &panel = held.panel[u % DEPTH];
            if constexpr (FOLDS) {
                float s[2][PIECE];
                fold_panel<FOLD>(shared.stage, tile, factors, shared.decay, folded, u, panel, s);
            }
            store_panel(to, u, panel);
            load_next_panel(from, u, has_tile(k + 1), held);
        }
        from += TILE_BYTES;
        to += TILE_BYTES;
    }
}

extern "C" __global__ void __launch_bounds__(CFG_THREADS, 1)
    mamba2_materialize_panels(const __grid_constant__ rssm_mamba2_layers_kernel_args args)
{
    Shared                  &shared = *(Shared *)gpu_shared_memory();
    const rssm_i32           n_heads = args.n_heads;
    const rssm_i32           index = gpu_block_x() / n_heads;
    const rssm_slot_move     move = args.moves[index % args.n_moves];
    const rssm_mamba2_layer &source = args.sources[index / args.n_moves];
    const rssm_mamba2_layer &destination = args.destinations[index / args.n_moves];
    const Place              place = locate(index, gpu_block_x() % n_heads);
    const rssm_token_view    no_tokens = {};
    rssm_u32                 times[SCAN_RECORDS];
    HeldB                    b;
    Held                     held;
    Row                      row;

    if (!read_move(move, source.state.data == destination.state.data, row)) return;
    const char *from = checkpoint_at(source.state, place, move.source);
    char       *to = checkpoint_at(destination.state, place, move.destination);
    load_first_panels(from, held);
    const rssm_u32 A = gpu_load4(source.A + place.head);
    load_times(source.dt_ring, row, place.head, gpu_warp() == 0, times);
    load_b(source.B_ring, no_tokens, place, row, shared.stage, b);
    stage_x(source.x_ring, no_tokens, place, row, shared.stage);
    gpu_copy_commit();

    finish_b(source.B_ring, no_tokens, place, row, shared.stage, b);
    if (gpu_warp() == 0) {
        const float total = finish_times(row, rssm_bits_float(A), times, 0, shared.stage);
        if (gpu_lane() == 0) shared.decay = rssm_exp(rssm_bits_float(A) * total);
    }
    gpu_copy_wait<0>();
    gpu_barrier<CFG_WARPS>();   // shared: written by all warps -> read by all

    const Fold fold = fold_of(row.folded);
    if (row.folded == 0) stream_tiles<false, FOLD_ONE>(shared, row.folded, from, to, held);
    else if (fold == FOLD_ONE) stream_tiles<true, FOLD_ONE>(shared, row.folded, from, to, held);
    else if (fold == FOLD_HELD) stream_tiles<true, FOLD_HELD>(shared, row.folded, from, to, held);
    else stream_tiles<true, FOLD_LONG>(shared, row.folded, from, to, held);
}
