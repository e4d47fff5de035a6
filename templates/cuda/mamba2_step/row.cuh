// Mamba-2 step: what a block works on. Its row's descriptor as flags, and the addresses of the row's tensors.
// Shared by the CUDA step templates; include rssm_config.h first.
#ifndef RSSM_CUDA_MAMBA2_STEP_ROW_CUH
#define RSSM_CUDA_MAMBA2_STEP_ROW_CUH

#include "abi/mamba2_step.h"
#include "prims/cuda_convert.cuh"
#include "prims/cuda_memory.cuh"

// A row's part in this step; the same in all threads of a block.
struct alignas(16) Row {
    rssm_i32 slot;
    rssm_i32 token;
    rssm_i32 start;         // ring index of the oldest record
    rssm_i32 h;             // records in the ring
    rssm_i32 live;          // records with the current tokens, which are records h, h + 1, ...
    rssm_i32 folded;        // records that go into the checkpoint, from the oldest; 0: it is only read
    rssm_i32 appends;       // not 0: the current tokens become records of the ring, from record h on
    rssm_i32 zeros;         // outputs that get zeros where there is nothing to compute
};

// What a block is asked to do with its row.
enum Work { WORK_NONE, WORK_ZEROS, WORK_STEP };

// Reads descriptor `index`. A fold of nothing is no fold. A row that computes nothing (null, idle, or not of this kernel)
// gets zeros as output, unless it owns no place there: token < 0. A descriptor that would lead out of the ring is taken
// for a null row.
GPU_FN Work read_row(const rssm_descriptor *descriptors, rssm_i32 index, Row &row)
{
    const rssm_descriptor *d = descriptors + index;
    const gpu_vec2 place = gpu_load8(&d->slot);   // slot, token
    const gpu_vec2 window = gpu_load8(&d->start); // start, h, t, mode
    const rssm_i32 mode = (rssm_i32)(window.w[1] >> 16);
    const rssm_i32 given = (rssm_i32)(window.w[1] & 0xffffu);
    const rssm_i32 t = CFG_MAX_TOKENS == 1 ? given != 0 : given;
    const bool     folds_token = CFG_MAX_TOKENS == 1 && mode == RSSM_MODE_FOLD_ALL && t;

    row.slot = (rssm_i32)place.w[0];
    row.token = (rssm_i32)place.w[1];
    row.start = (rssm_i32)(window.w[0] & 0xffffu);
    row.h = (rssm_i32)(window.w[0] >> 16);
    row.live = row.h + t;
    row.folded = mode == RSSM_MODE_FOLD_ALL || mode == RSSM_MODE_FOLD_HISTORY ? row.h + folds_token : 0;
    row.appends = t && !folds_token;
    row.zeros = given ? given : CFG_MAX_TOKENS;
    const bool is_known = CFG_MAX_TOKENS == 1 || (mode != RSSM_MODE_FOLD_ALL && t <= CFG_MAX_TOKENS);
    const bool is_inside = row.start < CFG_RING_LENGTH && row.live - folds_token <= CFG_RING_LENGTH;
    if (row.slot >= 0 && mode != RSSM_MODE_NONE && (row.folded > 0 || t) && is_known && is_inside) return WORK_STEP;
    row.h = row.live = 0;   // so that no record is wanted
    return row.token >= 0 ? WORK_ZEROS : WORK_NONE;
}

// The heads of a block and its group; `owns_*`: this block is the one that appends for its heads, its group.
struct Place {
    rssm_i32 row;
    rssm_i32 head;    // first head
    rssm_i32 p;       // first row of the checkpoint within that head
    rssm_i32 group;
    bool     owns_heads;
    bool     owns_group;
};

// Block `index` of a row: HEADS whole heads, or one of SPLIT parts of a head.
GPU_FN Place locate(rssm_i32 row, rssm_i32 index)
{
    Place place;
    place.row = row;
    place.head = CFG_SPLIT > 1 ? index / CFG_SPLIT : index * CFG_HEADS;
    place.p = CFG_SPLIT > 1 ? index % CFG_SPLIT * (CFG_HEAD_DIM / CFG_SPLIT) : 0;
    place.group = place.head / CFG_GROUP_SIZE;
    place.owns_heads = place.p == 0;
    place.owns_group = place.owns_heads && place.head % CFG_GROUP_SIZE == 0;
    return place;
}

GPU_FN bool has_token(const Row &row)
{
    return row.live > row.h;
}

// Does the fold take the current token too?
GPU_FN bool folds_token(const Row &row)
{
    return row.folded > row.h;
}

// One folded record needs no matrix instruction: S' = decay S + (s x) B, the conventional step where it is the token.
GPU_FN bool folds_one(const Row &row)
{
    return row.folded == 1;
}

GPU_FN rssm_i32 ring_index(const Row &row, rssm_i32 record)
{
    return rssm_ring_index(row.start, record, CFG_RING_LENGTH);
}

// index * stride for an index that is not negative: two multiplications where a signed one takes five.
GPU_FN rssm_i64 stride_times(rssm_i64 stride, rssm_i32 index)
{
    return (rssm_i64)((rssm_u64)stride * (rssm_u32)index);
}

// Element [token][head or group][0] of an activation, in bytes.
template <class T> GPU_FN char *token_at(const rssm_token_view &view, rssm_i32 token, rssm_i32 head)
{
    return (char *)view.data +
           (stride_times(view.token_stride, token) + stride_times(view.head_stride, head)) * (rssm_i64)sizeof(T);
}

// Record [slot][head or group][0][0] of a ring, in bytes, and what lies between two records.
template <class T> GPU_FN char *ring_at(const rssm_ring_view &view, rssm_i32 slot, rssm_i32 head)
{
    return (char *)view.data +
           (stride_times(view.slot_stride, slot) + stride_times(view.head_stride, head)) * (rssm_i64)sizeof(T);
}

template <class T> GPU_FN rssm_i64 record_offset(const rssm_ring_view &view, const Row &row, rssm_i32 record)
{
    return stride_times(view.record_stride * (rssm_i64)sizeof(T), ring_index(row, record));
}

// Record j < h in its ring, record h at the current token; by selection, without a branch.
template <class T>
GPU_FN const char *record_or_token(const rssm_ring_view &view, const Row &row, rssm_i32 record, const char *ring,
                                   const char *token)
{
    const bool in_ring = record < row.h;
    return (in_ring ? ring : token) +
           stride_times(view.record_stride * (rssm_i64)sizeof(T), in_ring ? ring_index(row, record) : 0);
}

// Element `index` of a tensor whose format is a run-time code, zero where it is not wanted: loaded without a branch into
// the one word of its width, decoded later, so that nothing waits for a load before all loads are issued.
struct Coded {
    rssm_u32 word, half;
};

GPU_FN Coded load_coded(const void *data, rssm_i64 index, rssm_i32 type, bool wanted)
{
    const bool wide = type == RSSM_TYPE_F32;
    Coded      coded;
    coded.word = gpu_load4_if((const float *)data + index, wanted && wide);
    coded.half = gpu_load2_if((const unsigned short *)data + index, wanted && !wide);
    return coded;
}

GPU_FN float decode_coded(const Coded &coded, rssm_i32 type)
{
    const float narrow = type == RSSM_TYPE_BF16 ? rssm_bits_float(coded.half << 16) : gpu_unpack_f16(coded.half);
    return type == RSSM_TYPE_F32 ? rssm_bits_float(coded.word) : narrow;
}

#endif
