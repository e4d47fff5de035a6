// What the device compiler knows without a header, for a template compiled as host C++. Included before everything.
//
// A static variable marked __shared__ goes into a section of its own; the emulator takes that section for the block's
// static shared memory. Write alignments of such variables with __align__.
#ifndef RSSM_SIMT_LANGUAGE_H
#define RSSM_SIMT_LANGUAGE_H

#define __host__
#define __device__
#define __global__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __cluster_dims__(...)
#define __maxnreg__(n)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static __attribute__((section("simt_shared"), used))

extern "C" {
extern unsigned char __start_simt_shared[] __attribute__((weak, visibility("hidden")));
extern unsigned char __stop_simt_shared[] __attribute__((weak, visibility("hidden")));
__attribute__((visibility("default"), used)) inline void *simt_statics(int end)
{
    return end ? __stop_simt_shared : __start_simt_shared;
}
}

#endif
