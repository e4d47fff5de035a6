// Scalar types and the one function qualifier shared by host C, host C++ and device code.
//
// NVRTC is given no standard header, so the fixed-width names are spelled from the built-in types; every supported
// target is LP64 or LLP64 with a 32-bit int and a 64-bit long long, which the assertions below check.
#ifndef RSSM_ABI_TYPES_H
#define RSSM_ABI_TYPES_H

typedef short rssm_i16;
typedef int rssm_i32;
typedef unsigned int rssm_u32;
typedef long long rssm_i64;
typedef unsigned long long rssm_u64;

// RSSM_FN: a function every side can inline. RSSM_ASSERT: a compile-time assertion in all three languages.
#if defined(__CUDACC__)
#define RSSM_FN static __host__ __device__ __forceinline__
#else
#define RSSM_FN static inline
#endif

#if defined(__cplusplus)
#define RSSM_ASSERT(condition, why) static_assert(condition, why)
#else
#define RSSM_ASSERT(condition, why) _Static_assert(condition, why)
#endif

RSSM_ASSERT(sizeof(rssm_i16) == 2 && sizeof(rssm_i32) == 4 && sizeof(rssm_i64) == 8, "fixed-width types");

// Number formats of tensors. The values are part of the argument structs and of the database: never renumber.
enum {
    RSSM_TYPE_F32 = 0,
    RSSM_TYPE_BF16 = 1,
    RSSM_TYPE_F16 = 2,
};

#endif
