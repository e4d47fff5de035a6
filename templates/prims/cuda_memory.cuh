// Global memory: loads and stores of 2 to 16 bytes with cache hints, and atomics. One function per instruction form.
//
// All loads are coherent forms (not ld.global.nc), because a step may write what it has read; they are volatile so
// that the order of issue is the order of the source.
#ifndef RSSM_PRIMS_CUDA_MEMORY_CUH
#define RSSM_PRIMS_CUDA_MEMORY_CUH

#include "prims/cuda_threads.cuh"

// How the accesses of a checkpoint treat the caches: loads and stores.
enum {
    GPU_HINT_NONE = 0,
    GPU_HINT_LOADS = 1,         // loads leave L1 alone
    GPU_HINT_BOTH = 2,          // loads and stores leave L1 alone
    GPU_HINT_STREAM = 3,        // loads leave L1 alone, stores are marked as used once
};

typedef struct alignas(16) gpu_vec4 {
    rssm_u32 w[4];
} gpu_vec4;

typedef struct alignas(8) gpu_vec2 {
    rssm_u32 w[2];
} gpu_vec2;

GPU_FN rssm_u32 gpu_load2(const void *from)
{
    unsigned short half;
    asm volatile("ld.global.u16 %0, [%1];" : "=h"(half) : "l"(from));
    return half;
}

GPU_FN rssm_u32 gpu_load4(const void *from)
{
    rssm_u32 word;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(word) : "l"(from));
    return word;
}

GPU_FN gpu_vec2 gpu_load8(const void *from)
{
    gpu_vec2 v;
    asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(v.w[0]), "=r"(v.w[1]) : "l"(from));
    return v;
}

GPU_FN gpu_vec4 gpu_load16(const void *from)
{
    gpu_vec4 v;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
                 : "l"(from));
    return v;
}

// The same where `wanted`, zeros elsewhere: without a branch, and nothing is read where it is not wanted.
GPU_FN rssm_u32 gpu_load4_if(const void *from, bool wanted)
{
    rssm_u32 word;
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %2, 0;\n\tmov.u32 %0, 0;\n\t@p ld.global.u32 %0, [%1];\n\t}"
                 : "=&r"(word)
                 : "l"(from), "r"((rssm_u32)wanted));
    return word;
}

GPU_FN gpu_vec2 gpu_load8_if(const void *from, bool wanted)
{
    gpu_vec2 v;
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %3, 0;\n\tmov.u32 %0, 0;\n\tmov.u32 %1, 0;\n\t"
                 "@p ld.global.v2.u32 {%0, %1}, [%2];\n\t}"
                 : "=&r"(v.w[0]), "=&r"(v.w[1])
                 : "l"(from), "r"((rssm_u32)wanted));
    return v;
}

GPU_FN gpu_vec4 gpu_load16_if(const void *from, bool wanted)
{
    gpu_vec4 v;
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %5, 0;\n\tmov.u32 %0, 0;\n\tmov.u32 %1, 0;\n\t"
                 "mov.u32 %2, 0;\n\tmov.u32 %3, 0;\n\t@p ld.global.v4.u32 {%0, %1, %2, %3}, [%4];\n\t}"
                 : "=&r"(v.w[0]), "=&r"(v.w[1]), "=&r"(v.w[2]), "=&r"(v.w[3])
                 : "l"(from), "r"((rssm_u32)wanted));
    return v;
}

GPU_FN rssm_u32 gpu_load2_if(const void *from, bool wanted)
{
    rssm_u32 half;
    asm volatile("{\n\t.reg .pred p;\n\t.reg .u16 h;\n\tsetp.ne.u32 p, %2, 0;\n\tmov.u16 h, 0;\n\t"
                 "@p ld.global.u16 h, [%1];\n\tcvt.u32.u16 %0, h;\n\t}"
                 : "=&r"(half)
                 : "l"(from), "r"((rssm_u32)wanted));
    return half;
}

// 16 bytes where `wanted`; elsewhere nothing is read and the value is unspecified.
template <int HINT> GPU_FN gpu_vec4 gpu_load16_hinted(const void *from, bool wanted)
{
    gpu_vec4 v;
    if constexpr (HINT == GPU_HINT_NONE) {
        asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %5, 0;\n\t"
                     "@p ld.global.v4.u32 {%0, %1, %2, %3}, [%4];\n\t}"
                     : "=&r"(v.w[0]), "=&r"(v.w[1]), "=&r"(v.w[2]), "=&r"(v.w[3])
                     : "l"(from), "r"((rssm_u32)wanted));
    } else {
        asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %5, 0;\n\t"
                     "@p ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];\n\t}"
                     : "=&r"(v.w[0]), "=&r"(v.w[1]), "=&r"(v.w[2]), "=&r"(v.w[3])
                     : "l"(from), "r"((rssm_u32)wanted));
    }
    return v;
}

GPU_FN void gpu_store2(void *to, rssm_u32 half)
{
    asm volatile("st.global.u16 [%0], %1;" ::"l"(to), "h"((unsigned short)half) : "memory");
}

GPU_FN void gpu_store4(void *to, rssm_u32 word)
{
    asm volatile("st.global.u32 [%0], %1;" ::"l"(to), "r"(word) : "memory");
}

GPU_FN void gpu_store8(void *to, gpu_vec2 v)
{
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(v.w[0]), "r"(v.w[1]) : "memory");
}

GPU_FN void gpu_store16(void *to, gpu_vec4 v)
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.w[0]), "r"(v.w[1]), "r"(v.w[2]),
                 "r"(v.w[3])
                 : "memory");
}

GPU_FN void gpu_store16_no_allocate(void *to, gpu_vec4 v)
{
    asm volatile("st.global.L1::no_allocate.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.w[0]), "r"(v.w[1]),
                 "r"(v.w[2]), "r"(v.w[3])
                 : "memory");
}

GPU_FN void gpu_store16_streaming(void *to, gpu_vec4 v)
{
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.w[0]), "r"(v.w[1]), "r"(v.w[2]),
                 "r"(v.w[3])
                 : "memory");
}

template <int HINT> GPU_FN void gpu_store16_hinted(void *to, gpu_vec4 v)
{
    if constexpr (HINT == GPU_HINT_BOTH) gpu_store16_no_allocate(to, v);
    else if constexpr (HINT == GPU_HINT_STREAM) gpu_store16_streaming(to, v);
    else gpu_store16(to, v);
}

GPU_FN void gpu_atomic_or(rssm_u32 *word, rssm_u32 bits)
{
    asm volatile("red.global.or.b32 [%0], %1;" ::"l"(word), "r"(bits) : "memory");
}

#endif
