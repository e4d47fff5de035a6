// The part of CUDA that templates use, for a parser without a toolkit: qualifiers, builtin variables and a few
// builtin functions. Declarations only; nothing is ever compiled from this. A template that needs more than this uses
// something that belongs in prims/ as an instruction.
#ifndef RSSM_CHECK_CUDA_SHIM_CUH
#define RSSM_CHECK_CUDA_SHIM_CUH

#define __CUDACC__
#define __CUDACC_RTC__
#define __NVCC__

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __restrict__ __restrict
// Attributes that not every libclang knows.
#define __grid_constant__
#define __cluster_dims__(...)
#define __maxnreg__(n)

typedef __SIZE_TYPE__ size_t;

struct uint3 {
    unsigned int x, y, z;
};
struct dim3 {
    unsigned int x, y, z;
};
extern const __device__ uint3 threadIdx, blockIdx;
extern const __device__ dim3  blockDim, gridDim;
extern const __device__ int   warpSize;

__device__ size_t       __cvta_generic_to_shared(const void *pointer);
__device__ unsigned int __float_as_uint(float value);
__device__ float        __uint_as_float(unsigned int bits);
__device__ int          __float_as_int(float value);
__device__ float        __int_as_float(int bits);

// NVRTC has the mathematical functions without a header.
extern "C" {
__device__ float expf(float), exp2f(float), expm1f(float), logf(float), log2f(float), log1pf(float);
__device__ float sqrtf(float), rsqrtf(float), fabsf(float), fminf(float, float), fmaxf(float, float);
__device__ float fmaf(float, float, float), rintf(float), ldexpf(float, int);
}

#endif
