// A window's records in shared memory: x and B as the matrix instructions read them, and what weighs them. For the
// kernels whose warps hold panels of the checkpoint (panel.cuh).
//
// Records are numbered from the oldest; the first h are in the ring, those behind them, up to `live`, are the current
// tokens. Record slots up to the next multiple of 16 behind `live` hold zeros, so that what lies there never matters.
#ifndef RSSM_CUDA_MAMBA2_STEP_STAGE_CUH
#define RSSM_CUDA_MAMBA2_STEP_STAGE_CUH

#include "cuda/mamba2_step/row.cuh"
#include "cuda/mamba2_step/window.cuh"
#include "prims/cuda_copy.cuh"
#include "prims/cuda_shared.cuh"

enum {
    UNIT = 4 * PIECE,                               // columns of a panel: four lanes side by side, 64 bytes of a row
    COLUMNS = CFG_UNITS * UNIT,                     // state_size, rounded up to whole units
    PAIRS = PIECE / 2,                              // pairs of columns in a piece; also chunks of 16 bits in a unit
    BLOCK_P = CFG_HEAD_DIM / CFG_SPLIT,             // rows that a block has of each of its heads
    B_CHUNKS = COLUMNS / CHUNK,                     // of a staged B_j, with those behind its last column
    X_CHUNKS = BLOCK_P / CHUNK,
    B_PITCH = COLUMNS * (int)sizeof(T_act) + 16,    // bytes; the pad spreads records over the banks
    X_PITCH = BLOCK_P * (int)sizeof(T_act) + 16,
    HELD_CHUNKS = least(8, quotient_up(least(32, CFG_RECORD_SLOTS) * B_CHUNKS, CFG_THREADS)),   // of B, in registers
};

struct alignas(16) Stage {
    float time[CFG_HEADS][CFG_RECORD_SLOTS];     // d_j
    float gap[CFG_HEADS][CFG_RECORD_SLOTS];      // of history: d of all newer history; of a token: -d of the tokens up to it
    float weight[CFG_HEADS][CFG_RECORD_SLOTS];   // of history: s_j in the folded checkpoint
    alignas(16) unsigned char b[CFG_RECORD_SLOTS][B_PITCH];   // 16 bits: see staged_word; float: columns in order
    alignas(16) unsigned char x[CFG_HEADS][CFG_RECORD_SLOTS][X_PITCH];
};

// Record slots in use.
GPU_FN rssm_i32 slots_in_use(const Row &row)
{
    return (row.live + BLOCK_RECORDS - 1) / BLOCK_RECORDS * BLOCK_RECORDS;
}

// Record `record` of a head or group: in the ring for the first h, then the current tokens.
GPU_FN const char *record_at(const rssm_ring_view &ring, const rssm_token_view &tokens, const Row &row, rssm_i32 record,
                             rssm_i32 head)
{
    const bool  in_ring = record < row.h;
    const char *from = in_ring ? ring_at<T_act>(ring, row.slot, head)
                               : token_at<T_act>(tokens, row.token + record - row.h, head);
    return from + (in_ring ? record_offset<T_act>(ring, row, record) : 0);
}

// ------------------------------------------------------------------------------------------------------------------ x

// Begins the copies of the records' x.
GPU_FN void stage_x(const rssm_ring_view &ring, const rssm_token_view &tokens, const Place &place, const Row &row,
                    Stage &stage)
{
    const rssm_i32 slots = slots_in_use(row);
#pragma unroll 1
    for (int local = 0; local < CFG_HEADS; local++) {
#pragma unroll 1
        for (rssm_i32 i = gpu_thread(); i < slots * X_CHUNKS; i += CFG_THREADS) {
            const rssm_i32 record = i / X_CHUNKS, chunk = i % X_CHUNKS;
            const char    *from = record_at(ring, tokens, row, record, place.head + local) +
                               place.p * (int)sizeof(T_act) + chunk * 16;
            gpu_copy_async_or_zeros<16>(&stage.x[local][record][chunk * 16], from, record < row.live);
        }
    }
}

// The current tokens' x to the ring. All copies are complete.
GPU_FN void append_x(const rssm_ring_view &ring, const Place &place, const Row &row, const Stage &stage)
{
    const rssm_i32 t = row.live - row.h;
#pragma unroll 1
    for (int local = 0; local < CFG_HEADS; local++) {
        char *to = ring_at<T_act>(ring, row.slot, place.head + local) + place.p * (int)sizeof(T_act);
#pragma unroll 1
        for (rssm_i32 i = gpu_thread(); i < t * X_CHUNKS; i += CFG_THREADS) {
            const rssm_i32 record = row.h + i / X_CHUNKS, chunk = i % X_CHUNKS;
            gpu_store16(to + record_offset<T_act>(ring, row, record) + chunk * 16,
                        *(const gpu_vec4 *)&stage.x[local][record][chunk * 16]);
        }
    }
}

// ------------------------------------------------------------------------------------------------------------------ B

// Where word `e` of a chunk of 16-bit elements is staged. A fold's matrix instruction m of a unit takes columns
// PIECE q + 2m and + 1 of each lane q of four, and reads them as its neighbours 2q and 2q + 1.
GPU_FN rssm_i32 staged_word(rssm_i32 chunk, int e)
{
    const rssm_i32 pair = chunk % PAIRS * 4 + e;
    return chunk / PAIRS * (UNIT / 2) + pair % PAIRS * 4 + pair / PAIRS;
}

// What a thread has in flight of the records' B.
struct HeldB {
    gpu_vec4 chunk[HELD_CHUNKS];
};

GPU_FN gpu_vec4 load_b_chunk(const rssm_ring_view &ring, const rssm_token_view &tokens, const Place &place,
                             const Row &row, rssm_i32 i)
{
    const rssm_i32 record = i / B_CHUNKS, chunk = i % B_CHUNKS;
    return gpu_load16_if(record_at(ring, tokens, row, record, place.group) + chunk * 16,
                         record < row.live && chunk < CHUNKS);
}

GPU_FN void store_b_chunk(Stage &stage, rssm_i32 i, const gpu_vec4 &v)
{
    rssm_u32 *to = (rssm_u32 *)stage.b[i / B_CHUNKS];
#pragma unroll
    for (int e = 0; e < 4; e++) to[staged_word(i % B_CHUNKS, e)] = v.w[e];
}

// Begins to load the records' B: all of it (float: as copies), or as much as the registers hold.
GPU_FN void load_b(const rssm_ring_view &ring, const rssm_token_view &tokens, const Place &place, const Row &row,
                   Stage &stage, HeldB &held)
{
    if constexpr (sizeof(T_act) == 2) {
#pragma unroll
        for (int k = 0; k < HELD_CHUNKS; k++) {
            held.chunk[k] = load_b_chunk(ring, tokens, place, row, gpu_thread() + k * CFG_THREADS);
        }
    } else {
#pragma unroll 1
        for (rssm_i32 i = gpu_thread(); i < slots_in_use(row) * B_CHUNKS; i += CFG_THREADS) {
            const rssm_i32 record = i / B_CHUNKS, chunk = i % B_CHUNKS;
            gpu_copy_async_or_zeros<16>(&stage.b[record][chunk * 16],
                                        record_at(ring, tokens, row, record, place.group) + chunk * 16,
                                        record < row.live && chunk < CHUNKS);
        }
    }
}

// Stages what was loaded, and the rest.
GPU_FN void finish_b(const rssm_ring_view &ring, const rssm_token_view &tokens, const Place &place, const Row &row,
                     Stage &stage, const HeldB &held)
{
    if constexpr (sizeof(T_act) == 2) {
        const rssm_i32 n = slots_in_use(row) * B_CHUNKS;
#pragma unroll
        for (int k = 0; k < HELD_CHUNKS; k++) {
            if (gpu_thread() + k * CFG_THREADS < n) store_b_chunk(stage, gpu_thread() + k * CFG_THREADS, held.chunk[k]);
        }
#pragma unroll 1
        for (rssm_i32 i = gpu_thread() + HELD_CHUNKS * CFG_THREADS; i < n; i += CFG_THREADS) {
            store_b_chunk(stage, i, load_b_chunk(ring, tokens, place, row, i));
        }
    }
}

// The current tokens' B to the ring. All records are staged.
GPU_FN void append_b(const rssm_ring_view &ring, const Place &place, const Row &row, const Stage &stage)
{
    const rssm_i32 t = row.live - row.h;
#pragma unroll 1
    for (rssm_i32 i = gpu_thread(); i < t * CHUNKS; i += CFG_THREADS) {
        const rssm_i32  record = row.h + i / CHUNKS, chunk = i % CHUNKS;
        const rssm_u32 *from = (const rssm_u32 *)stage.b[record];
        gpu_vec4        v;
#pragma unroll
        for (int e = 0; e < 4; e++) v.w[e] = from[sizeof(T_act) == 2 ? staged_word(chunk, e) : chunk * 4 + e];
        gpu_store16(ring_at<T_act>(ring, row.slot, place.group) + record_offset<T_act>(ring, row, record) + chunk * 16, v);
    }
}

// -------------------------------------------------------------------------------------------------------------- times

// Processed dt of this lane's history records of a head.
GPU_FN void load_times(const rssm_ring_view &ring, const Row &row, rssm_i32 head, bool wanted,
                       rssm_u32 times[SCAN_RECORDS])
{
    const char *from = ring_at<float>(ring, row.slot, head);
#pragma unroll
    for (int i = 0; i < SCAN_RECORDS; i++) {
        const rssm_i32 record = scan_record(i);
        times[i] = gpu_load4_if(from + record_offset<float>(ring, row, record), wanted && record < row.h);
    }
}

// Times, gaps and weights of a head's history, zeros behind it. Returns the sum of the times.
GPU_FN float finish_times(const Row &row, float A, const rssm_u32 bits[SCAN_RECORDS], int local, Stage &stage)
{
    float times[SCAN_RECORDS], later[SCAN_RECORDS];
#pragma unroll
    for (int i = 0; i < SCAN_RECORDS; i++) times[i] = rssm_bits_float(bits[i]);
    const float total = sum_later(times, later);
#pragma unroll
    for (int i = 0; i < SCAN_RECORDS; i++) {
        const rssm_i32 record = scan_record(i);
        if (record >= CFG_RECORD_SLOTS) continue;
        const bool is_history = record < row.h;
        stage.time[local][record] = is_history ? times[i] : 0.0f;
        stage.gap[local][record] = is_history ? later[i] : 0.0f;
        stage.weight[local][record] = is_history ? record_weight(A, times[i], later[i]) : 0.0f;
    }
    return total;
}

#endif
