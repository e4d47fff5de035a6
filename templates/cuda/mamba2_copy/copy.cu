// mamba2_copy: the checkpoints and records of slots to other slots, of all layers of one shape.
//
// What     of every move: the checkpoint's bytes, and its n records of x, B and dt, which begin at ring index `start`
//          of the source and at index 0 of the destination. Nothing is rounded; nothing behind the n records is read.
// Layout   abi/mamba2_layers.h; pointers and strides of checkpoints, x and B are multiples of 16 bytes.
// Blocks   One head of one move of one layer; a group's first head takes the group's B as well. A block whose move says
//          that there is nothing to do ends at once.
// Flow     1 locate  2 the checkpoint, FLIGHT vectors per thread in flight  3 x, likewise  4 dt  5 B
// Traffic  everything read once and written once, in vectors of 16 bytes
#include "rssm_config.h"

#include "abi/mamba2_layers.h"
#include "prims/cuda_memory.cuh"

enum {
    VECTOR = 16,   // bytes of an access
    FLIGHT = 4,    // of them under way per thread
    HEAD_BYTES = CFG_HEAD_DIM * CFG_STATE_SIZE * (int)sizeof(T_state),
    X_BYTES = CFG_HEAD_DIM * (int)sizeof(T_act),      // of one record of one head
    B_BYTES = CFG_STATE_SIZE * (int)sizeof(T_act),    // of one record of one group
};

// Contract with copy.json
static_assert(CFG_HEAD_DIM % 16 == 0 && CFG_STATE_SIZE % 16 == 0, "rows and records are whole vectors");
static_assert(CFG_THREADS % GPU_WARP == 0, "whole warps");

// Records of one head or group on both sides, n of them, of RECORD_BYTES each. RECORD_BYTES apart on a side where they
// are dense; a checkpoint is one record.
struct Records {
    const unsigned char *from;
    unsigned char       *to;
    rssm_i64             from_stride, to_stride;   // bytes
    rssm_i32             start, n, ring_length;
};

template <int RECORD_BYTES> GPU_FN void copy_records(const Records &r)
{
    constexpr int  PER_RECORD = RECORD_BYTES / VECTOR;
    const rssm_i32 n = r.n * PER_RECORD;
    for (rssm_i32 first = gpu_thread(); first < n; first += CFG_THREADS * FLIGHT) {
        gpu_vec4 v[FLIGHT];
#pragma unroll
        for (int k = 0; k < FLIGHT; k++) {
            const rssm_i32 i = first + k * CFG_THREADS;
            const rssm_i64 record = rssm_ring_index(r.start, i / PER_RECORD, r.ring_length);
            v[k] = gpu_load16_if(r.from + record * r.from_stride + i % PER_RECORD * VECTOR, i < n);
        }
#pragma unroll
        for (int k = 0; k < FLIGHT; k++) {
            const rssm_i32 i = first + k * CFG_THREADS;
            if (i < n) gpu_store16(r.to + i / PER_RECORD * r.to_stride + i % PER_RECORD * VECTOR, v[k]);
        }
    }
}

GPU_FN Records find_records(const rssm_mamba2_layers_kernel_args &args, const rssm_slot_move &move,
                            const rssm_ring_view &from, const rssm_ring_view &to, rssm_i32 head, int element_bytes)
{
    Records r;
    r.from =
        (const unsigned char *)from.data + (move.source * from.slot_stride + head * from.head_stride) * element_bytes;
    r.to = (unsigned char *)to.data + (move.destination * to.slot_stride + head * to.head_stride) * element_bytes;
    r.from_stride = from.record_stride * element_bytes;
    r.to_stride = to.record_stride * element_bytes;
    r.start = move.start;
    r.n = move.n;
    r.ring_length = args.ring_length;
    return r;
}

GPU_FN void copy_state(const rssm_slot_move &move, const rssm_state_view &from, const rssm_state_view &to,
                       rssm_i32 head)
{
    Records r;
    r.from = (const unsigned char *)from.data + move.source * from.slot_stride * (rssm_i64)sizeof(T_state) +
             (rssm_i64)head * HEAD_BYTES;
    r.to = (unsigned char *)to.data + move.destination * to.slot_stride * (rssm_i64)sizeof(T_state) +
           (rssm_i64)head * HEAD_BYTES;
    r.from_stride = r.to_stride = HEAD_BYTES;
    r.start = 0;
    r.n = r.ring_length = 1;
    copy_records<HEAD_BYTES>(r);
}

// One float per record.
GPU_FN void copy_dt(const Records &r)
{
    for (rssm_i32 j = gpu_thread(); j < r.n; j += CFG_THREADS) {
        const rssm_i64 record = rssm_ring_index(r.start, j, r.ring_length);
        gpu_store4(r.to + j * r.to_stride, gpu_load4(r.from + record * r.from_stride));
    }
}

extern "C" __global__ void __launch_bounds__(CFG_THREADS)
    mamba2_copy(const __grid_constant__ rssm_mamba2_layers_kernel_args args)
{
    const rssm_i32           row = gpu_block_x() / args.n_heads;
    const rssm_i32           head = gpu_block_x() % args.n_heads;
    const rssm_slot_move     move = args.moves[row % args.n_moves];
    const rssm_mamba2_layer &from = args.sources[row / args.n_moves];
    const rssm_mamba2_layer &to = args.destinations[row / args.n_moves];

    if (move.source < 0) return;
    copy_state(move, from.state, to.state, head);
    copy_records<X_BYTES>(find_records(args, move, from.x_ring, to.x_ring, head, sizeof(T_act)));
    copy_dt(find_records(args, move, from.dt_ring, to.dt_ring, head, sizeof(float)));
    if (head % CFG_GROUP_SIZE == 0) {
        copy_records<B_BYTES>(find_records(args, move, from.B_ring, to.B_ring, head / CFG_GROUP_SIZE, sizeof(T_act)));
    }
}
