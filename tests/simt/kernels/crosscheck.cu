// Every instruction that templates/prims has, on the same words on the emulator and on a GPU. One warp; only the real
// headers' functions are used, so the file compiles for both. See crosscheck.h.
#include "abi/types.h"
#include "prims/cuda_convert.cuh"
#include "prims/cuda_matrix.cuh"
#include "prims/cuda_memory.cuh"
#include "prims/cuda_shared.cuh"
#include "prims/cuda_shuffle.cuh"
#include "tests/simt/kernels/crosscheck.h"

enum { LOOPS = CROSSCHECK_VALUES / GPU_WARP };

GPU_FN rssm_u32 small_number(rssm_u32 word)
{
    return rssm_float_bits((float)(rssm_i32)(word % 15) - 7.0f);   // exact in every format, and so are sums of products
}

GPU_FN rssm_u32 pair_of_small(rssm_u32 word)
{
    return gpu_pack_bf16(rssm_bits_float(small_number(word)), rssm_bits_float(small_number(word >> 8)));
}

// A word of moderate floats: exponents near 127.
GPU_FN float moderate(rssm_u32 word)
{
    return rssm_bits_float((word & 0x807fffffu) | (120u + (word >> 23) % 12) << 23);
}

GPU_FN rssm_u32 convert(int which, rssm_u32 word, rssm_u32 next)
{
    const float v = rssm_bits_float(word), w = rssm_bits_float(next);
    if (which == CROSS_PACK_BF16) return gpu_pack_bf16(v, w);
    if (which == CROSS_PACK_F16) return gpu_pack_f16(v, w);
    if (which == CROSS_TF32) return v == v ? gpu_to_tf32(v) : 0;
    if (which == CROSS_UNPACK_F16) {
        const bool special = (word & 0x7c00u) == 0x7c00u;   // the payload of a NaN is not defined
        return special ? (word & 0x3ffu) != 0 : rssm_float_bits(gpu_unpack_f16(word & 0xffffu));
    }
    if (which == CROSS_NUMERICS_BF16) return rssm_float_to_bf16(v).bits;
    if (which == CROSS_NUMERICS_F16) return rssm_float_to_f16(v).bits;
    if (which == CROSS_FMA) {
        const float sum = gpu_fma(moderate(word), moderate(next), moderate(word ^ next));
        return rssm_float_bits(sum);
    }
    return gpu_lower_halves(word, next) ^ gpu_upper_halves(next, word) * 3u;
}

GPU_FN rssm_u32 exchange(int which, int loop, rssm_u32 word, rssm_u32 *shared)
{
    rssm_u32 words[4];
    if (which == CROSS_SHUFFLE_XOR) return gpu_shuffle_xor(word, loop % 32);
    if (which == CROSS_SHUFFLE_DOWN) return rssm_float_bits(gpu_shuffle_down((float)(word & 0xffffu), loop % 32));
    if (which == CROSS_SHUFFLE_FROM) return rssm_float_bits(gpu_shuffle_from((float)(word & 0xffffu), loop % 32));
    if (which == CROSS_BALLOT) return gpu_ballot(word & 1) + (rssm_u32)gpu_count_bits(word);
    if (which == CROSS_TRANSPOSE) return gpu_matrix_transpose(word);
    for (int i = 0; i < 4; i++) shared[gpu_lane() + 32 * i] = word * (2 * i + 1);
    gpu_barrier<1>();
    gpu_load_matrix4_transposed(words, gpu_shared_address(shared + gpu_lane() * 4));
    gpu_barrier<1>();
    return words[0] ^ words[1] * 3u ^ words[2] * 5u ^ words[3] * 7u;
}

GPU_FN rssm_u32 load(const crosscheck_args &args, int i)
{
    const gpu_vec2 two = gpu_load8(args.in + i / 2 * 2);
    const gpu_vec4 four = gpu_load16(args.in + i / 4 * 4), none = gpu_load16_if(args.in + i / 4 * 4, i % 3 == 0);
    return gpu_load4(args.in + i) ^ gpu_load2((const unsigned short *)args.in + i) * 3u ^ two.w[1] * 5u ^
           four.w[2] * 7u ^
           none.w[3] * 9u ^ gpu_load4_if(args.in + i, i % 2 == 0) * 11u;
}

// A product of matrices from words in order; accumulator element 0, with the others mixed in where sums are exact.
GPU_FN rssm_u32 multiply(const crosscheck_args &args, int which, int i)
{
    const bool exact = which == CROSS_MATRIX_BF16_EXACT || which == CROSS_MATRIX_TF32_EXACT;
    const bool is_bf16 = which == CROSS_MATRIX_BF16_EXACT || which == CROSS_MATRIX_BF16;
    rssm_u32   words[6];
    float      d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int k = 0; k < 6; k++) {
        const rssm_u32 word = args.in[(i + 37 * k) % CROSSCHECK_VALUES], next = word * 2654435761u;
        if (is_bf16) words[k] = exact ? pair_of_small(word) : gpu_pack_bf16(moderate(word), moderate(next));
        else words[k] = exact ? small_number(word) : gpu_to_tf32(moderate(word));
    }
    if (is_bf16) gpu_matrix_bf16(d, words, words[4], words[5]);
    else gpu_matrix_tf32(d, words, words[4], words[5]);
    if (!exact) return rssm_float_bits(d[0]);
    return rssm_float_bits(d[0]) ^ rssm_float_bits(d[1]) * 3u ^ rssm_float_bits(d[2]) * 5u ^ rssm_float_bits(d[3]) * 7u;
}

extern "C" __global__ void crosscheck(const __grid_constant__ crosscheck_args args)
{
    rssm_u32 *shared = (rssm_u32 *)gpu_shared_memory();
    for (int loop = 0; loop < LOOPS; loop++) {
        const int      i = loop * GPU_WARP + gpu_lane();
        const rssm_u32 word = args.in[i], next = args.in[(i + 1) % CROSSCHECK_VALUES];
        rssm_u32       result;
        if (args.which < CROSS_SHUFFLE_XOR) result = convert(args.which, word, next);
        else if (args.which < CROSS_LOADS) result = exchange(args.which, loop, word, shared);
        else if (args.which == CROSS_LOADS) result = load(args, i);
        else result = multiply(args, args.which, i);
        gpu_store4(args.out + i, result);
    }
}
