// Twin of templates/prims/cuda_convert.cuh for the emulator. The conversions are computed apart from numerics/.
#ifndef RSSM_PRIMS_CUDA_CONVERT_CUH
#define RSSM_PRIMS_CUDA_CONVERT_CUH

#include "numerics/convert.h"
#include "prims/cuda_threads.cuh"

GPU_FN float gpu_fma(float a, float b, float c)
{
    return simt_fma(a, b, c);
}

GPU_FN rssm_u32 gpu_pack_bf16(float lower, float upper)
{
    return simt_encode(SIMT_BF16, lower, 0) | simt_encode(SIMT_BF16, upper, 0) << 16;
}

GPU_FN rssm_u32 gpu_pack_f16(float lower, float upper)
{
    return simt_encode(SIMT_F16, lower, 0) | simt_encode(SIMT_F16, upper, 0) << 16;
}

GPU_FN float gpu_unpack_f16(rssm_u32 half)
{
    return simt_decode(SIMT_F16, half & 0xffffu);
}

GPU_FN float gpu_divide(float a, float b)
{
    return a / b;
}

GPU_FN rssm_u32 gpu_to_tf32(float value)
{
    return simt_to_tf32(value);
}

template <rssm_u32 SELECTOR> GPU_FN rssm_u32 gpu_permute_bytes(rssm_u32 a, rssm_u32 b)
{
    const rssm_u64 bytes = a | (rssm_u64)b << 32;
    rssm_u32       word = 0;
    for (int i = 0; i < 4; i++)
        word |= (rssm_u32)(bytes >> ((SELECTOR >> (4 * i) & 7) * 8) & 0xff) << (8 * i);
    return word;
}

GPU_FN rssm_u32 gpu_lower_halves(rssm_u32 a, rssm_u32 b)
{
    return gpu_permute_bytes<0x5410>(a, b);
}

GPU_FN rssm_u32 gpu_upper_halves(rssm_u32 a, rssm_u32 b)
{
    return gpu_permute_bytes<0x7632>(a, b);
}

template <class T> struct gpu_words;

template <> struct gpu_words<float> {
    enum { PER_WORD = 1 };
    GPU_FN void unpack(rssm_u32 word, float *to)
    {
        to[0] = rssm_bits_float(word);
    }
    GPU_FN rssm_u32 pack(const float *from)
    {
        return rssm_float_bits(from[0]);
    }
};

template <> struct gpu_words<rssm_bf16> {
    enum { PER_WORD = 2 };
    GPU_FN void unpack(rssm_u32 word, float *to)
    {
        to[0] = rssm_bits_float(word << 16);
        to[1] = rssm_bits_float(word & 0xffff0000u);
    }
    GPU_FN rssm_u32 pack(const float *from)
    {
        return gpu_pack_bf16(from[0], from[1]);
    }
};

template <> struct gpu_words<rssm_f16> {
    enum { PER_WORD = 2 };
    GPU_FN void unpack(rssm_u32 word, float *to)
    {
        to[0] = gpu_unpack_f16(word & 0xffffu);
        to[1] = gpu_unpack_f16(word >> 16);
    }
    GPU_FN rssm_u32 pack(const float *from)
    {
        return gpu_pack_f16(from[0], from[1]);
    }
};

template <class T, int COUNT> GPU_FN void gpu_unpack(const rssm_u32 *words, float *to)
{
    for (int i = 0; i < COUNT; i++)
        gpu_words<T>::unpack(words[i], to + i * gpu_words<T>::PER_WORD);
}

template <class T, int COUNT> GPU_FN void gpu_pack(const float *from, rssm_u32 *words)
{
    for (int i = 0; i < COUNT; i++)
        words[i] = gpu_words<T>::pack(from + i * gpu_words<T>::PER_WORD);
}

#endif
