// Conversions and arithmetic by one instruction each, and words of 16-bit elements. Roundings are to nearest even,
// as in numerics/convert.h, whose bits these give (but for the payload of a NaN); gpu_to_tf32 alone rounds ties away
// from zero.
#ifndef RSSM_PRIMS_CUDA_CONVERT_CUH
#define RSSM_PRIMS_CUDA_CONVERT_CUH

#include "numerics/convert.h"
#include "prims/cuda_threads.cuh"

GPU_FN float gpu_fma(float a, float b, float c)
{
    float d;
    asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c));
    return d;
}

// Two floats to one word of two bf16 (or f16), `lower` in the lower half.
GPU_FN rssm_u32 gpu_pack_bf16(float lower, float upper)
{
    rssm_u32 word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(upper), "f"(lower));
    return word;
}

GPU_FN rssm_u32 gpu_pack_f16(float lower, float upper)
{
    rssm_u32 word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(upper), "f"(lower));
    return word;
}

GPU_FN float gpu_unpack_f16(rssm_u32 half)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((unsigned short)half));
    return value;
}

// a / b to 2 units in the last place, over the whole range.
GPU_FN float gpu_divide(float a, float b)
{
    float quotient;
    asm("div.full.f32 %0, %1, %2;" : "=f"(quotient) : "f"(a), "f"(b));
    return quotient;
}

// A float whose last 13 fraction bits are zero, as the tf32 matrix instructions read it.
GPU_FN rssm_u32 gpu_to_tf32(float value)
{
    rssm_u32 word;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(value));
    return word;
}

// Bytes 0-3 are a's, 4-7 b's; nibble i of the selector names the byte that becomes byte i.
template <rssm_u32 SELECTOR> GPU_FN rssm_u32 gpu_permute_bytes(rssm_u32 a, rssm_u32 b)
{
    rssm_u32 word;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(word) : "r"(a), "r"(b), "n"(SELECTOR));
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

// How elements of a storage format lie in 32-bit words.
template <class T> struct gpu_words;

template <> struct gpu_words<float> {
    enum { PER_WORD = 1 };
    static __device__ __forceinline__ void unpack(rssm_u32 word, float *to)
    {
        to[0] = rssm_bits_float(word);
    }
    static __device__ __forceinline__ rssm_u32 pack(const float *from)
    {
        return rssm_float_bits(from[0]);
    }
};

template <> struct gpu_words<rssm_bf16> {
    enum { PER_WORD = 2 };
    static __device__ __forceinline__ void unpack(rssm_u32 word, float *to)
    {
        to[0] = rssm_bits_float(word << 16);
        to[1] = rssm_bits_float(word & 0xffff0000u);
    }
    static __device__ __forceinline__ rssm_u32 pack(const float *from)
    {
        return gpu_pack_bf16(from[0], from[1]);
    }
};

template <> struct gpu_words<rssm_f16> {
    enum { PER_WORD = 2 };
    static __device__ __forceinline__ void unpack(rssm_u32 word, float *to)
    {
        to[0] = gpu_unpack_f16(word & 0xffffu);
        to[1] = gpu_unpack_f16(word >> 16);
    }
    static __device__ __forceinline__ rssm_u32 pack(const float *from)
    {
        return gpu_pack_f16(from[0], from[1]);
    }
};

// COUNT words of format T to floats, and back.
template <class T, int COUNT> GPU_FN void gpu_unpack(const rssm_u32 *words, float *to)
{
#pragma unroll
    for (int i = 0; i < COUNT; i++) gpu_words<T>::unpack(words[i], to + i * gpu_words<T>::PER_WORD);
}

template <class T, int COUNT> GPU_FN void gpu_pack(const float *from, rssm_u32 *words)
{
#pragma unroll
    for (int i = 0; i < COUNT; i++) words[i] = gpu_words<T>::pack(from + i * gpu_words<T>::PER_WORD);
}

#endif
