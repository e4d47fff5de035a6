// read: streams a buffer through registers and keeps nothing, so that its time is the read bandwidth of the device.
//
// Layout    a dense array of 16-byte vectors
// Grid      a few blocks per multiprocessor, whatever the size; a block takes chunks of LOADS * THREADS vectors in turn
// Flow      LOADS independent loads, L1 left alone, then one exclusive-or of all
// Traffic   each vector once; nothing is written
#include "rssm_config.h"

#include "abi/probe.h"
#include "prims/cuda_memory.cuh"

enum { LOADS = 8 };

extern "C" __global__ void __launch_bounds__(CFG_THREADS) probe_read(const __grid_constant__ rssm_probe_kernel_args args)
{
    const gpu_vec4 *data = (const gpu_vec4 *)args.data;
    const rssm_i64  chunk = (rssm_i64)LOADS * CFG_THREADS;
    rssm_u32        sum = 0;

    for (rssm_i64 first = gpu_block_x() * chunk + gpu_thread(); first < args.n_vectors; first += CFG_BLOCKS * chunk) {
        gpu_vec4 v[LOADS];
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            const rssm_i64 at = first + (rssm_i64)i * CFG_THREADS;
            v[i] = gpu_load16_hinted<GPU_HINT_LOADS>(data + (at < args.n_vectors ? at : first), true);
        }
#pragma unroll
        for (int i = 0; i < LOADS; i++) sum ^= v[i].w[0] ^ v[i].w[1] ^ v[i].w[2] ^ v[i].w[3];
    }
    if (sum == 0x9e3779b9u) gpu_store4(args.sink, sum);
}
