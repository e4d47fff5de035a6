// Twin of templates/prims/cuda_memory.cuh for the emulator. Cache hints change nothing here.
#ifndef RSSM_PRIMS_CUDA_MEMORY_CUH
#define RSSM_PRIMS_CUDA_MEMORY_CUH

#include "prims/cuda_threads.cuh"

enum {
    GPU_HINT_NONE = 0,
    GPU_HINT_LOADS = 1,
    GPU_HINT_BOTH = 2,
    GPU_HINT_STREAM = 3,
};

// Assignments go through the emulator: a vector access is aligned to its size, which plain copies are not asked for.
typedef struct alignas(16) gpu_vec4 {
    rssm_u32                                 w[4];
    __attribute__((always_inline)) gpu_vec4 &operator=(const gpu_vec4 &other)
    {
        simt_copy_vector(this, &other, 16);
        return *this;
    }
} gpu_vec4;

typedef struct alignas(8) gpu_vec2 {
    rssm_u32                                 w[2];
    __attribute__((always_inline)) gpu_vec2 &operator=(const gpu_vec2 &other)
    {
        simt_copy_vector(this, &other, 8);
        return *this;
    }
} gpu_vec2;

GPU_FN rssm_u32 gpu_load2(const void *from, GPU_HERE)
{
    unsigned short half;
    simt_load(&half, from, 2, SIMT_GLOBAL, at);
    return half;
}

GPU_FN rssm_u32 gpu_load4(const void *from, GPU_HERE)
{
    rssm_u32 word;
    simt_load(&word, from, 4, SIMT_GLOBAL, at);
    return word;
}

GPU_FN gpu_vec2 gpu_load8(const void *from, GPU_HERE)
{
    gpu_vec2 v;
    simt_load(v.w, from, 8, SIMT_GLOBAL, at);
    return v;
}

GPU_FN gpu_vec4 gpu_load16(const void *from, GPU_HERE)
{
    gpu_vec4 v;
    simt_load(v.w, from, 16, SIMT_GLOBAL, at);
    return v;
}

GPU_FN rssm_u32 gpu_load4_if(const void *from, bool wanted, GPU_HERE)
{
    return wanted ? gpu_load4(from, at) : 0;
}

GPU_FN gpu_vec2 gpu_load8_if(const void *from, bool wanted, GPU_HERE)
{
    gpu_vec2 v = {{0, 0}};
    if (wanted) simt_load(v.w, from, 8, SIMT_GLOBAL, at);
    return v;
}

GPU_FN gpu_vec4 gpu_load16_if(const void *from, bool wanted, GPU_HERE)
{
    gpu_vec4 v = {{0, 0, 0, 0}};
    if (wanted) simt_load(v.w, from, 16, SIMT_GLOBAL, at);
    return v;
}

GPU_FN rssm_u32 gpu_load2_if(const void *from, bool wanted, GPU_HERE)
{
    return wanted ? gpu_load2(from, at) : 0;
}

// Where nothing is wanted the value is unspecified on the device: here it is NaN in every format.
template <int HINT> GPU_FN gpu_vec4 gpu_load16_hinted(const void *from, bool wanted, GPU_HERE)
{
    gpu_vec4 v = {{0xffe5ffe5u, 0xffe5ffe5u, 0xffe5ffe5u, 0xffe5ffe5u}};
    if (wanted) simt_load(v.w, from, 16, SIMT_GLOBAL, at);
    return v;
}

GPU_FN void gpu_store2(void *to, rssm_u32 half, GPU_HERE)
{
    const unsigned short bits = (unsigned short)half;
    simt_store(to, &bits, 2, SIMT_GLOBAL, at);
}

GPU_FN void gpu_store4(void *to, rssm_u32 word, GPU_HERE)
{
    simt_store(to, &word, 4, SIMT_GLOBAL, at);
}

GPU_FN void gpu_store8(void *to, gpu_vec2 v, GPU_HERE)
{
    simt_store(to, v.w, 8, SIMT_GLOBAL, at);
}

GPU_FN void gpu_store16(void *to, gpu_vec4 v, GPU_HERE)
{
    simt_store(to, v.w, 16, SIMT_GLOBAL, at);
}

GPU_FN void gpu_store16_no_allocate(void *to, gpu_vec4 v, GPU_HERE)
{
    gpu_store16(to, v, at);
}

GPU_FN void gpu_store16_streaming(void *to, gpu_vec4 v, GPU_HERE)
{
    gpu_store16(to, v, at);
}

template <int HINT> GPU_FN void gpu_store16_hinted(void *to, gpu_vec4 v, GPU_HERE)
{
    gpu_store16(to, v, at);
}

GPU_FN void gpu_atomic_or(rssm_u32 *word, rssm_u32 bits, GPU_HERE)
{
    simt_atomic_word(SIMT_ATOMIC_OR, word, bits, 0, at);
}

#endif
