// Several tokens per step: a block's shared memory, and what its warps prepare there while the checkpoint is on its way:
// times and scales per head, the tokens' C, and the weights of all records in y.
#ifndef RSSM_CUDA_MAMBA2_STEP_TOKENS_CUH
#define RSSM_CUDA_MAMBA2_STEP_TOKENS_CUH

#include "abi/mamba2_step.h"
#include "cuda/mamba2_step/panel.cuh"

enum {
    TOKEN_HALVES = CFG_TOKEN_SLOTS / 8,                     // columns of a matrix instruction are 8 tokens
    C_WORDS = PIECE * (int)sizeof(T_act) / 4,               // a lane's piece of C_i
    C_PITCH = COLUMNS + least(64, 4 * C_WORDS * 4) / (int)sizeof(T_act),   // elements; the pad spreads tokens over the banks
    HEAD_PASSES = quotient_up(CFG_HEADS, CFG_WARPS),
    IS_DIRECT = sizeof(T_act) == 2 && same_type<T_act, T_state>::value,    // S C without a conversion
};

// What a head multiplies with.
struct alignas(16) HeadTerms {
    float A;
    float skip;    // D
    float decay;   // of the checkpoint in a fold
    float reserved;
};

struct alignas(16) Shared {
    Row       row;
    Stage     stage;
    HeadTerms head[CFG_HEADS];
    float     since[CFG_HEADS][CFG_TOKEN_SLOTS];   // d of the tokens up to i
    float     scale[CFG_HEADS][CFG_TOKEN_SLOTS];   // of S C_i in y_i
    // The records' weights in y, as the lanes read them for second operands: [block][half of the tokens][part][lane][word]
    alignas(16) rssm_u32 weights[CFG_HEADS][CFG_RECORD_SLOTS / BLOCK_RECORDS][TOKEN_HALVES][8 * GPU_WARP];
    alignas(16) T_act c[CFG_TOKEN_SLOTS][C_PITCH];
};

// -------------------------------------------------------------------------------------------------------------- inputs

// Raw bits of what a warp needs to know about one head.
struct HeadInputs {
    rssm_u32 A;
    Coded    D, bias, dt;           // dt: of token `lane`
    rssm_u32 times[SCAN_RECORDS];
};

GPU_FN rssm_i32 pass_head(int pass)
{
    return pass * CFG_WARPS + gpu_warp();
}

GPU_FN void load_head(const rssm_mamba2_step_kernel_args &args, const Place &place, const Row &row,
                      HeadInputs inputs[HEAD_PASSES])
{
#pragma unroll
    for (int pass = 0; pass < HEAD_PASSES; pass++) {
        if (pass_head(pass) >= CFG_HEADS) continue;   // of the whole warp
        const rssm_i32 head = place.head + pass_head(pass);
        const rssm_i64 at = stride_times(args.dt.token_stride, row.token + gpu_lane()) +
                            stride_times(args.dt.head_stride, head);
        inputs[pass].A = gpu_load4(args.A + head);
        inputs[pass].D = load_coded(args.D, head, args.parameter_type, args.D);
        inputs[pass].bias = load_coded(args.dt_bias, head, args.parameter_type, args.dt_bias);
        inputs[pass].dt = load_coded(args.dt.data, at, args.dt_type, gpu_lane() < row.live - row.h);
        load_times(args.dt_ring, row, head, true, inputs[pass].times);
    }
}

// Times, gaps, weights and scales of one head; dt to its ring.
GPU_FN void finish_head(const rssm_mamba2_step_kernel_args &args, const Place &place, const Row &row, Shared &shared,
                        int local, const HeadInputs &inputs)
{
    const rssm_i32 lane = gpu_lane(), t = row.live - row.h;
    const float    A = rssm_bits_float(inputs.A);
    const float    raw = decode_coded(inputs.dt, args.dt_type) + decode_coded(inputs.bias, args.parameter_type);
    const float    d = lane >= t ? 0.0f : args.dt_softplus ? rssm_softplus(raw) : raw;
    const float    total = finish_times(row, A, inputs.times, local, shared.stage);
    const float    decay = rssm_exp(A * total);
    float          since = d;

#pragma unroll
    for (int distance = 1; distance < CFG_TOKEN_SLOTS; distance *= 2) {
        const float earlier = gpu_shuffle_up(since, distance);
        if (lane >= distance) since += earlier;
    }
    gpu_warp_barrier();   // stage: zeros behind the history -> the tokens' values
    if (lane < t) {
        shared.stage.time[local][row.h + lane] = d;
        shared.stage.gap[local][row.h + lane] = -since;
    }
    if (lane < CFG_TOKEN_SLOTS) {
        shared.since[local][lane] = since;
        shared.scale[local][lane] = rssm_exp(A * (row.folded > 0 ? since : total + since));
    }
    if (lane == 0) {
        HeadTerms terms;
        terms.A = A;
        terms.skip = decode_coded(inputs.D, args.parameter_type);
        terms.decay = decay;
        terms.reserved = 0.0f;
        shared.head[local] = terms;
    }
    if (lane < t && place.owns_heads) {
        char *ring = ring_at<float>(args.dt_ring, row.slot, place.head + local);
        gpu_store4(ring + record_offset<float>(args.dt_ring, row, row.h + lane), rssm_float_bits(d));
    }
}

// Begins the copies of the tokens' C; zeros behind the last token and the last column.
GPU_FN void stage_c(const rssm_mamba2_step_kernel_args &args, const Place &place, const Row &row, Shared &shared)
{
#pragma unroll 1
    for (rssm_i32 i = gpu_thread(); i < CFG_TOKEN_SLOTS * B_CHUNKS; i += CFG_THREADS) {
        const rssm_i32 token = i / B_CHUNKS, chunk = i % B_CHUNKS;
        gpu_copy_async_or_zeros<16>(&shared.c[token][chunk * CHUNK],
                                    token_at<T_act>(args.C, row.token + token, place.group) + chunk * 16,
                                    token < row.live - row.h && chunk < CHUNKS);
    }
}

// ------------------------------------------------------------------------------------------------------------------ C

// A lane's piece of C for token g of a half, as stored.
struct PieceC {
    rssm_u32 w[C_WORDS];
};

GPU_FN PieceC load_c(const Shared &shared, int unit, int half)
{
    const T_act *from = &shared.c[half * 8 + gpu_lane() / 4][unit * UNIT + gpu_lane() % 4 * PIECE];
    PieceC       c;
    if constexpr (sizeof(c) == 8) {
        *(gpu_vec2 *)c.w = *(const gpu_vec2 *)from;
    } else {
#pragma unroll
        for (int i = 0; i < (int)sizeof(c) / 16; i++) ((gpu_vec4 *)c.w)[i] = ((const gpu_vec4 *)from)[i];
    }
    return c;
}

GPU_FN void multiply_16bit(float d[4], const rssm_u32 a[4], rssm_u32 b0, rssm_u32 b1)
{
    if constexpr (USE_BF16) gpu_matrix_bf16(d, a, b0, b1);
    else gpu_matrix_f16(d, a, b0, b1);
}

// B_k . C_i of one block of 16 records: tokens are the rows, records the columns, in the order of staged_word. d[half of
// the records]: records 2t and 2t + 1 with token g, then with token g + 8.
GPU_FN void multiply_records(const Shared &shared, int block, float d[2][4])
{
    const rssm_i32 lane = gpu_lane();
    if constexpr (sizeof(T_act) == 2) {
        const rssm_i32 record = block * BLOCK_RECORDS + lane % 8 + lane / 16 * 8;
#pragma unroll 4
        for (int unit = 0; unit < CFG_UNITS; unit++) {
            PieceC c[2] = {};
#pragma unroll
            for (int half = 0; half < TOKEN_HALVES; half++) c[half] = load_c(shared, unit, half);
#pragma unroll
            for (int k = 0; k < PAIRS / 2; k++) {
                const rssm_u32 a[4] = {c[0].w[2 * k], c[1].w[2 * k], c[0].w[2 * k + 1], c[1].w[2 * k + 1]};
                rssm_u32       b[4];
                gpu_load_matrix4(b, gpu_shared_address(&shared.stage.b[record][unit * UNIT * 2 + k * 32 + lane / 8 % 2 * 16]));
                multiply_16bit(d[0], a, b[0], b[1]);
                multiply_16bit(d[1], a, b[2], b[3]);
            }
        }
    } else {
#pragma unroll 1
        for (int n = 0; n < CFG_STATE_SIZE; n++) {
#pragma unroll
            for (int i = 0; i < 8; i++) {
                if (i / 2 % 2 >= TOKEN_HALVES) continue;
                const rssm_i32 record = block * BLOCK_RECORDS + i / 4 * 8 + lane % 4 * 2 + i % 2;
                const float    c = rssm_to_float(shared.c[(lane / 4 + i / 2 % 2 * 8) % CFG_TOKEN_SLOTS][n]);
                d[i / 4][i % 4] = gpu_fma(((const float *)shared.stage.b[record])[n], c, d[i / 4][i % 4]);
            }
        }
    }
}

// The weights of one block of records in y of token g of a half, for one head, from the products with C.
GPU_FN void weigh_block(Shared &shared, const Row &row, int local, int block, int half, const float d[2][4])
{
    const Stage    &stage = shared.stage;
    const HeadTerms terms = shared.head[local];
    const rssm_i32  lane = gpu_lane(), token = half * 8 + lane / 4;
    const rssm_i32  newest = row.h + token;   // the record that is this token
    const float     since = shared.since[local][token];
    float           f[4];
    rssm_u32        parts[EXACT_PARTS][PART_WORDS];

#pragma unroll
    for (int i = 0; i < 4; i++) {
        const rssm_i32 record = block * BLOCK_RECORDS + lane % 4 * 2 + i % 2 + i / 2 * 8;
        const bool     wanted = record <= newest && newest < row.live && record >= row.folded;
        const float    exponent = wanted ? terms.A * (stage.gap[local][record] + since) : 0.0f;
        const float    weight = record_weight(1.0f, stage.time[local][record], exponent);
        f[i] = wanted ? gpu_fma(weight, d[i / 2][half * 2 + i % 2], record == newest ? terms.skip : 0.0f) : 0.0f;
    }
    split<EXACT_PARTS>(f, parts);
#pragma unroll
    for (int part = 0; part < EXACT_PARTS; part++) {
#pragma unroll
        for (int i = 0; i < PART_WORDS; i++) {
            shared.weights[local][block][half][(part * GPU_WARP + lane) * PART_WORDS + i] = parts[part][i];
        }
    }
}

// The weights of all records that are read, blocks of records dealt out to the warps.
GPU_FN void weigh_records(Shared &shared, const Row &row)
{
#pragma unroll 1
    for (int block = row.folded / BLOCK_RECORDS + gpu_warp(); block * BLOCK_RECORDS < row.live; block += CFG_WARPS) {
        float d[2][4] = {};
        multiply_records(shared, block, d);
#pragma unroll 1
        for (int local = 0; local < CFG_HEADS; local++) {
#pragma unroll
            for (int half = 0; half < TOKEN_HALVES; half++) weigh_block(shared, row, local, block, half, d);
        }
    }
}

#endif
