// Mamba-2 step at T = 1: what all tiles of a block need from the window's records, computed once per block while the
// checkpoint is on its way, and left in shared memory:
//   - per head the decays and the records' factors s_j (records.cuh: load_heads, finish_heads)
//   - per group the products B_j . C, and for a fold the records B_j as the matrix instructions read them
//     (load_chunks, use_chunks)
// It also appends dt (once per head) and B (once per group).
//
// Chunks: a record B_j is CHUNKS pieces of 16 bytes; RECORD_LANES lanes hold one record, a warp RECORDS_PER_WARP of
// them, a block RECORDS_PER_PASS. The current token is record h.
#ifndef RSSM_CUDA_MAMBA2_STEP_RECORDS_CUH
#define RSSM_CUDA_MAMBA2_STEP_RECORDS_CUH

#include "cuda/mamba2_step/row.cuh"
#include "cuda/mamba2_step/window.cuh"
#include "prims/cuda_shared.cuh"

enum {
    UNIT = 8 * PIECE,                           // columns of a unit: eight lanes side by side, 128 bytes
    COLUMNS = CFG_UNITS * UNIT,                 // state_size, rounded up to whole units
    HELD_RECORDS = BLOCK_RECORDS * CFG_HELD_BLOCKS,
    RECORD_BYTES = COLUMNS * (int)sizeof(T_act) + 16,   // of a staged record; the pad spreads records over the banks

    RECORD_LANES = least(GPU_WARP, power_of_two_above(CHUNKS)),
    LANE_CHUNKS = quotient_up(CHUNKS, RECORD_LANES),
    RECORDS_PER_WARP = GPU_WARP / RECORD_LANES,
    RECORDS_PER_PASS = CFG_WARPS * RECORDS_PER_WARP,
    PASSES = most(1, least(quotient_up(HELD_RECORDS, RECORDS_PER_PASS), 8 / LANE_CHUNKS)),   // in registers at once

    HEAD_PASSES = quotient_up(CFG_HEADS, CFG_WARPS),
};

// What a head multiplies with: S' = checkpoint * S + fold;  y = output * (S or S')C + sum of the records' terms.
struct alignas(16) HeadFactors {
    float checkpoint;
    float output;
    float current;   // the current token's term in y is (current * (B . C) + skip) x
    float skip;
};

struct alignas(16) Shared {
    Row         row;                              // the block's row, so that no register holds it while tiles stream
    HeadFactors head[CFG_HEADS];
    float       s[CFG_HEADS][CFG_RECORD_SLOTS];   // s_j; written for the records of this step only
    float       bc[CFG_RECORD_SLOTS];             // B_j . C; likewise
    alignas(16) T_act c[COLUMNS];
    alignas(16) T_act b_one[COLUMNS];             // B of record 0, in order; where that is all there is to fold
    alignas(16) unsigned char b[HELD_RECORDS][RECORD_BYTES];   // 16-bit: see stage_chunk; float: columns in order
};

// ------------------------------------------------------------------------------------------------------------ heads

// Raw bits of what a warp needs to know about one head.
struct HeadInputs {
    rssm_u32 A;
    Coded    D, bias, dt;
    rssm_u32 times[SCAN_RECORDS];   // processed dt of this lane's records
};

// The head of this warp in a pass, counted from the block's first. From the last warp down: the first warps have most
// to do with the records' products.
GPU_FN rssm_i32 pass_head(int pass)
{
    return pass * CFG_WARPS + CFG_WARPS - 1 - gpu_warp();
}

// The part that does not depend on the row.
GPU_FN void load_parameters(const rssm_mamba2_step_kernel_args &args, const Place &place, HeadInputs inputs[HEAD_PASSES])
{
#pragma unroll
    for (int pass = 0; pass < HEAD_PASSES; pass++) {
        const bool     is_mine = pass_head(pass) < CFG_HEADS;
        const rssm_i32 head = place.head + pass_head(pass);
        inputs[pass].A = gpu_load4_if(args.A + head, is_mine);
        inputs[pass].D = load_coded(args.D, head, args.parameter_type, is_mine && args.D);
        inputs[pass].bias = load_coded(args.dt_bias, head, args.parameter_type, is_mine && args.dt_bias);
    }
}

GPU_FN void load_times(const rssm_mamba2_step_kernel_args &args, const Place &place, const Row &row,
                       HeadInputs inputs[HEAD_PASSES])
{
#pragma unroll
    for (int pass = 0; pass < HEAD_PASSES; pass++) {
        const bool     is_mine = pass_head(pass) < CFG_HEADS;
        const rssm_i32 head = place.head + pass_head(pass);
        const char    *ring = ring_at<float>(args.dt_ring, row.slot, head);
        const rssm_i64 at = stride_times(args.dt.token_stride, row.token) + stride_times(args.dt.head_stride, head);
        inputs[pass].dt = load_coded(args.dt.data, at, args.dt_type, is_mine && has_token(row));
#pragma unroll
        for (int i = 0; i < SCAN_RECORDS; i++) {
            const rssm_i32 record = scan_record(i);
            inputs[pass].times[i] =
                gpu_load4_if(ring + record_offset<float>(args.dt_ring, row, record), is_mine && record < row.h);
        }
    }
}

// One head: s_j = d_j exp(A (d of all newer records)). The current token is the newest record, unless it stays out of
// the fold. Sums run from the newest record back: no difference of large sums is taken.
GPU_FN void finish_head(const rssm_mamba2_step_kernel_args &args, const Place &place, const Row &row, Shared &shared,
                        rssm_i32 local, const HeadInputs &inputs)
{
    const float A = rssm_bits_float(inputs.A);
    const float raw = decode_coded(inputs.dt, args.dt_type) + decode_coded(inputs.bias, args.parameter_type);
    const float d = !has_token(row) ? 0.0f : args.dt_softplus ? rssm_softplus(raw) : raw;
    const bool  token_is_newest = row.folded != row.h || row.h == 0;
    float       times[SCAN_RECORDS], later[SCAN_RECORDS];

#pragma unroll
    for (int i = 0; i < SCAN_RECORDS; i++) {
        times[i] = scan_record(i) == row.h && token_is_newest ? d : rssm_bits_float(inputs.times[i]);
    }
    const float total = sum_later(times, later);
#pragma unroll
    for (int i = 0; i < SCAN_RECORDS; i++) {
        const float s = record_weight(A, times[i], later[i]);
        if (scan_record(i) < row.h) shared.s[local][scan_record(i)] = s;
    }
    // Lane 0: the checkpoint's decay; lane 1: the current token's alone.
    const float decay = rssm_exp(A * (gpu_lane() == 0 ? total : d));
    const float token_decay = gpu_shuffle_from(decay, 1);
    if (gpu_lane() != 0) return;

    HeadFactors factors;
    factors.checkpoint = decay;
    factors.output = row.folded == 0 ? decay : folds_token(row) ? 1.0f : token_decay;
    factors.current = folds_token(row) ? 0.0f : d;
    factors.skip = decode_coded(inputs.D, args.parameter_type);
    shared.head[local] = factors;
    shared.s[local][row.h] = d;
    if (row.appends && place.owns_heads) {
        char *ring = ring_at<float>(args.dt_ring, row.slot, place.head + local);
        gpu_store4(ring + record_offset<float>(args.dt_ring, row, row.h), rssm_float_bits(d));
    }
}

GPU_FN void finish_heads(const rssm_mamba2_step_kernel_args &args, const Place &place, const Row &row, Shared &shared,
                         const HeadInputs inputs[HEAD_PASSES])
{
#pragma unroll
    for (int pass = 0; pass < HEAD_PASSES; pass++) {
        if (pass_head(pass) < CFG_HEADS) finish_head(args, place, row, shared, pass_head(pass), inputs[pass]);
    }
}

// ----------------------------------------------------------------------------------------------------------- chunks

// This lane's chunks of the records of COUNT passes.
template <int COUNT> struct Chunks {
    gpu_vec4 b[COUNT][LANE_CHUNKS];
};

GPU_FN gpu_vec4 zero_vec4()
{
    gpu_vec4 v;
    v.w[0] = v.w[1] = v.w[2] = v.w[3] = 0;
    return v;
}

GPU_FN rssm_i32 chunk_record(rssm_i32 pass)
{
    return pass * RECORDS_PER_PASS + gpu_warp() * RECORDS_PER_WARP + gpu_lane() / RECORD_LANES;
}

GPU_FN rssm_i32 lane_chunk(rssm_i32 i)
{
    return i * RECORD_LANES + gpu_lane() % RECORD_LANES;
}

// This lane's chunks of the current C; zeros without a token.
GPU_FN void load_c(const rssm_mamba2_step_kernel_args &args, const Place &place, const Row &row,
                   gpu_vec4 c[LANE_CHUNKS])
{
    const char *from = token_at<T_act>(args.C, row.token, place.group);
#pragma unroll
    for (int i = 0; i < LANE_CHUNKS; i++) {
        c[i] = gpu_load16_if(from + lane_chunk(i) * 16, has_token(row) && lane_chunk(i) < CHUNKS);
    }
}

// Passes `first` and following; zeros where there is no record.
template <int COUNT>
GPU_FN void load_chunks(const rssm_mamba2_step_kernel_args &args, const Place &place, const Row &row, rssm_i32 first,
                        Chunks<COUNT> &chunks)
{
    const char *ring = ring_at<T_act>(args.B_ring, row.slot, place.group);
    const char *now = token_at<T_act>(args.B, row.token, place.group);
#pragma unroll
    for (int pass = 0; pass < COUNT; pass++) {
        const rssm_i32 record = chunk_record(first + pass);
        const char    *from = record_or_token<T_act>(args.B_ring, row, record, ring, now);
#pragma unroll
        for (int i = 0; i < LANE_CHUNKS; i++) {
            chunks.b[pass][i] = gpu_load16_if(from + lane_chunk(i) * 16, record < row.live && lane_chunk(i) < CHUNKS);
        }
    }
}

// Sum over the lanes of a record.
GPU_FN float dot(const gpu_vec4 b[LANE_CHUNKS], const gpu_vec4 c[LANE_CHUNKS])
{
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < LANE_CHUNKS; i++) {
        float left[CHUNK], right[CHUNK];
        gpu_unpack<T_act, 4>(b[i].w, left);
        gpu_unpack<T_act, 4>(c[i].w, right);
#pragma unroll
        for (int k = 0; k < CHUNK; k++) sum = gpu_fma(left[k], right[k], sum);
    }
#pragma unroll
    for (int mask = RECORD_LANES / 2; mask > 0; mask /= 2) sum += gpu_shuffle_xor(sum, mask);
    return sum;
}

// Stores a chunk for the fold. In a staged record of 16-bit elements, column n = UNIT u + PIECE g + e is at position
// UNIT u + 8 e + g: eight neighbours belong to the eight lane groups of a matrix row block. Words are pairs (g, g + 1);
// with PIECE = 8 a pair is in two chunks, so neighbouring lanes first exchange halves. All lanes of the warp call.
GPU_FN void stage_chunk(Shared &shared, rssm_i32 record, rssm_i32 chunk, const gpu_vec4 &v, bool store)
{
    if constexpr (sizeof(T_act) == 4) {
        if (store) *(gpu_vec4 *)&shared.b[record][chunk * 16] = v;
    } else {
        const bool     odd = chunk & 1;
        const rssm_u32 given0 = odd ? v.w[0] : v.w[2], given1 = odd ? v.w[1] : v.w[3];
        rssm_u32       a0 = v.w[0], a1 = v.w[1], b0 = v.w[2], b1 = v.w[3];   // of lane group g, of g + 1
        rssm_i32       word = chunk / 4 * (UNIT / 2) + chunk % 4;
        if constexpr (PIECE == 8) {
            const rssm_u32 taken0 = gpu_shuffle_xor(given0, 1), taken1 = gpu_shuffle_xor(given1, 1);
            a0 = odd ? taken0 : v.w[0];
            a1 = odd ? taken1 : v.w[1];
            b0 = odd ? v.w[2] : taken0;
            b1 = odd ? v.w[3] : taken1;
            word = chunk / 8 * (UNIT / 2) + (odd ? 16 : 0) + chunk % 8 / 2;
        }
        if (!store) return;
        rssm_u32 *to = (rssm_u32 *)shared.b[record] + word;
        to[0] = gpu_lower_halves(a0, b0);
        to[4] = gpu_upper_halves(a0, b0);
        to[8] = gpu_lower_halves(a1, b1);
        to[12] = gpu_upper_halves(a1, b1);
    }
}

// Products with C into shared.bc, zeros where there is no record.
template <int COUNT>
GPU_FN void share_products(Shared &shared, rssm_i32 first, const Chunks<COUNT> &chunks, const gpu_vec4 c[LANE_CHUNKS])
{
#pragma unroll
    for (int pass = 0; pass < COUNT; pass++) {
        const rssm_i32 record = chunk_record(first + pass);
        const float    product = dot(chunks.b[pass], c);
        if (gpu_lane() % RECORD_LANES == 0 && record < CFG_RECORD_SLOTS) shared.bc[record] = product;
    }
}

// For a fold: the held records into shared.b, zeros behind the last.
template <int COUNT>
GPU_FN void stage_chunks(const Row &row, Shared &shared, rssm_i32 first, const Chunks<COUNT> &chunks)
{
#pragma unroll
    for (int pass = 0; pass < COUNT; pass++) {
        const rssm_i32 record = chunk_record(first + pass);
#pragma unroll
        for (int i = 0; i < LANE_CHUNKS; i++) {
            const gpu_vec4 v = record < row.folded ? chunks.b[pass][i] : zero_vec4();
            stage_chunk(shared, record, lane_chunk(i), v, record < HELD_RECORDS && lane_chunk(i) < CHUNKS);
        }
    }
}

// The current token's B becomes record h.
template <int COUNT>
GPU_FN void append_chunks(const rssm_mamba2_step_kernel_args &args, const Place &place, const Row &row, rssm_i32 first,
                          const Chunks<COUNT> &chunks)
{
    char *to = ring_at<T_act>(args.B_ring, row.slot, place.group) + record_offset<T_act>(args.B_ring, row, row.h);
#pragma unroll
    for (int pass = 0; pass < COUNT; pass++) {
        if (chunk_record(first + pass) != row.h) continue;
#pragma unroll
        for (int i = 0; i < LANE_CHUNKS; i++) {
            if (lane_chunk(i) < CHUNKS) gpu_store16(to + lane_chunk(i) * 16, chunks.b[pass][i]);
        }
    }
}

template <int COUNT>
GPU_FN void use_chunks(const rssm_mamba2_step_kernel_args &args, const Place &place, const Row &row, Shared &shared,
                       rssm_i32 first, const Chunks<COUNT> &chunks, const gpu_vec4 c[LANE_CHUNKS])
{
    share_products(shared, first, chunks, c);
    if (row.folded > 0 && !folds_one(row)) stage_chunks(row, shared, first, chunks);
    if (row.appends && place.owns_group) append_chunks(args, place, row, first, chunks);
}

// The records behind the held passes, one pass at a time: nothing of them is in flight yet.
GPU_FN void finish_chunks(const rssm_mamba2_step_kernel_args &args, const Place &place, const Row &row, Shared &shared,
                          const gpu_vec4 c[LANE_CHUNKS])
{
    const rssm_i32 last = row.h / BLOCK_RECORDS * BLOCK_RECORDS + BLOCK_RECORDS - 1;
#pragma unroll 1
    for (rssm_i32 pass = PASSES; pass * RECORDS_PER_PASS <= last; pass++) {
        Chunks<1> chunks;
        load_chunks(args, place, row, pass, chunks);
        use_chunks(args, place, row, shared, pass, chunks, c);
    }
}

// The block's copies of C and, where record 0 is all there is to fold, of its B, in order.
GPU_FN void share_columns(const Row &row, Shared &shared, const gpu_vec4 c[LANE_CHUNKS],
                          const gpu_vec4 b[LANE_CHUNKS])
{
    if (gpu_thread() >= RECORD_LANES) return;
#pragma unroll
    for (int i = 0; i < LANE_CHUNKS; i++) {
        if (lane_chunk(i) >= CHUNKS) continue;
        *(gpu_vec4 *)&shared.c[lane_chunk(i) * CHUNK] = c[i];
        if (folds_one(row)) *(gpu_vec4 *)&shared.b_one[lane_chunk(i) * CHUNK] = b[i];
    }
}

#endif
