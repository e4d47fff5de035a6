// Cases of memory: races, initialisation, bounds, alignment, dependent launches. See cases.h.
#include "abi/types.h"
#include "prims/cuda_atomic.cuh"
#include "prims/cuda_dependent.cuh"
#include "prims/cuda_masked.cuh"
#include "prims/cuda_memory.cuh"
#include "prims/cuda_shared.cuh"
#include "prims/cuda_shuffle.cuh"
#include "tests/simt/kernels/cases.h"

static __device__ unsigned *shared_words()
{
    return (unsigned *)gpu_shared_memory();
}

// Every word is written once, so that what is wrong with a later access is not that nothing was there.
static __device__ void clear()
{
    for (int i = gpu_thread(); i < 192; i += 64) shared_words()[i] = 0;
    gpu_barrier_block();
}

static __device__ void read_before_barrier(const case_args &args)
{
    clear();
    unsigned *words = shared_words();
    words[gpu_thread()] = args.in[gpu_thread()] + 1;   // reported: read_before_barrier
    if (!args.broken) gpu_barrier_block();
    args.out[gpu_thread() ^ 32] = words[gpu_thread() ^ 32];   // reported: read_before_barrier
}

// Everybody reads word 0, then thread 63 overwrites it: the second barrier is missing.
static __device__ void write_before_readers_end(const case_args &args)
{
    unsigned *words = shared_words();
    if (gpu_thread() == 0) words[0] = 1;
    gpu_barrier_block();
    const unsigned one = words[0];   // reported: write_before_readers_end
    if (!args.broken) gpu_barrier_block();
    if (gpu_thread() == 63) words[0] = 2;   // reported: write_before_readers_end
    args.out[gpu_thread()] = args.in[gpu_thread()] + one;
}

static __device__ void two_writers(const case_args &args)
{
    unsigned *words = shared_words();
    if (gpu_lane() == 0 && (args.broken || gpu_warp() == 0)) words[0] = 1;   // reported: two_writers
    gpu_barrier_block();
    args.out[gpu_thread()] = args.in[gpu_thread()] + words[0];
}

static __device__ void lanes_without_barrier(const case_args &args)
{
    clear();
    unsigned *words = shared_words();
    words[gpu_lane()] = args.in[gpu_lane()] + 1;   // reported: lanes_without_barrier
    if (!args.broken) gpu_barrier<1>();
    const unsigned other = words[gpu_lane() ^ 1];   // reported: lanes_without_barrier
    args.out[gpu_lane() ^ 1] = other;
}

static __device__ void static_shared(const case_args &args)
{
    __shared__ __align__(16) unsigned words[64];
    words[gpu_thread()] = 0;
    gpu_barrier_block();
    words[gpu_thread()] = args.in[gpu_thread()] + 1;   // reported: static_shared
    if (!args.broken) gpu_barrier_block();
    args.out[gpu_thread() ^ 32] = words[gpu_thread() ^ 32];   // reported: static_shared
}

// Two threads write the halves of a word; a third reads the whole.
static __device__ void bytes_of_one_word(const case_args &args)
{
    clear();
    unsigned short *halves = (unsigned short *)shared_words();
    if (gpu_thread() < 2) halves[gpu_thread()] = gpu_thread() == 0;   // reported: bytes_of_one_word
    if (!args.broken) gpu_barrier_block();
    if (args.broken) gpu_barrier<1>();
    const unsigned one = *(const unsigned *)halves;   // reported: bytes_of_one_word
    args.out[gpu_thread()] = args.in[gpu_thread()] + one;
}

// Warp 1 produces; warp 0 consumes behind a barrier of two warps, or behind nothing.
static __device__ void consumer_ahead(const case_args &args)
{
    clear();
    unsigned *words = shared_words();
    if (gpu_warp() == 1) {
        words[gpu_lane()] = args.in[gpu_lane()] + 1;   // reported: consumer_ahead
        words[gpu_lane() + 32] = args.in[gpu_lane() + 32] + 1;
        gpu_barrier_named_arrive(1, 64);
    } else {
        if (!args.broken) gpu_barrier_named(1, 64);
        for (int i = gpu_lane(); i < 64; i += 32) {
            if (args.broken) gpu_atomic_add(args.counter, 0);
            args.out[i] = words[i];   // reported: consumer_ahead
        }
        if (args.broken) gpu_barrier_named(1, 64);
    }
}

static __device__ void matrix_before_barrier(const case_args &args)
{
    clear();
    unsigned *words = shared_words();
    unsigned  m[4];
    for (int i = gpu_thread(); i < 128; i += 64) words[i] = 0x00010001u;   // reported: matrix_before_barrier
    if (!args.broken) gpu_barrier_block();
    gpu_load_matrix4_transposed(m, gpu_shared_address(words + gpu_lane() * 4));   // reported: matrix_before_barrier
    args.out[gpu_thread()] = args.in[gpu_thread()] + (m[3] >> 16);
}

static __device__ void plain_beside_atomic(const case_args &args)
{
    if (gpu_lane() == 0) gpu_atomic_add(args.counter, 1u);   // reported: plain_beside_atomic
    if (args.broken && gpu_lane() == 0) *args.counter += 1;   // reported: plain_beside_atomic
    args.out[gpu_block_x() * 32 + gpu_lane()] = args.in[gpu_block_x() * 32 + gpu_lane()] + 1;
}

static __device__ void blocks_share_output(const case_args &args)
{
    const int i = (args.broken ? 0 : gpu_block_x() * 32) + gpu_lane();
    args.out[i] = args.in[i] + 1;   // reported: blocks_share_output
}

// ---------------------------------------------------------------------------------------------------- initialisation

static __device__ void reads_unwritten_shared(const case_args &args)
{
    unsigned *words = shared_words();
    if (!args.broken || gpu_lane() != 5) words[gpu_lane()] = 1;
    gpu_barrier<1>();
    args.out[gpu_lane()] = args.in[gpu_lane()] + words[gpu_lane()];   // reported: reads_unwritten_shared
}

// Shared memory does not outlive a block.
static __device__ void reads_last_blocks_shared(const case_args &args)
{
    unsigned *words = shared_words();
    if (!args.broken || gpu_block_x() == 0) words[gpu_lane()] = 1;
    gpu_barrier<1>();
    const int i = gpu_block_x() * 32 + gpu_lane();
    args.out[i] = args.in[i] + words[gpu_lane()];   // reported: reads_last_blocks_shared
}

static __device__ void reads_unwritten_global(const case_args &args)
{
    args.out[gpu_lane()] = args.in[gpu_lane()];
    if (args.broken && gpu_lane() == 9) args.out[gpu_lane()] += args.out[33];   // reported: reads_unwritten_global
    args.out[gpu_lane()] += 1;
}

// ------------------------------------------------------------------------------------------------------------ bounds

static __device__ void behind_buffer(const case_args &args)
{
    const unsigned i = gpu_lane() + (args.broken ? args.n - 31 : 0);
    const unsigned word = args.in[i];   // reported: behind_buffer
    args.out[gpu_lane()] = word + 1;
}

static __device__ void before_buffer(const case_args &args)
{
    args.out[gpu_lane() - (args.broken ? 1 : 0)] = args.in[gpu_lane()] + 1;   // reported: before_buffer
}

static __device__ void vector_over_end(const case_args &args)
{
    const unsigned last = args.n / 4 * 4;   // n is not a multiple of four
    if (args.broken && gpu_lane() == 0) {
        gpu_store16(args.out + last, gpu_load16(args.in));   // reported: vector_over_end
    }
    args.out[gpu_lane()] = args.in[gpu_lane()] + 1;
}

static __device__ void behind_shared(const case_args &args)
{
    unsigned *words = shared_words();
    words[gpu_lane() + (args.broken ? 1024 - 31 : 0)] = args.in[gpu_lane()] + 1;   // reported: behind_shared
    gpu_barrier<1>();
    args.out[gpu_lane()] = words[gpu_lane()];
}

static __device__ void null_pointer(const case_args &args)
{
    unsigned *to = args.broken && gpu_lane() == 4 ? (unsigned *)16 : args.out + gpu_lane();
    gpu_store4(to, args.in[gpu_lane()] + 1);   // reported: null_pointer
}

struct five {
    unsigned w[5];
};

static __device__ void struct_over_end(const case_args &args)
{
    args.out[gpu_lane()] = args.in[gpu_lane()] + 1;
    if (gpu_lane() != 31) return;
    const unsigned at = args.broken ? args.n - 4 : args.n - 5;
    *(five *)(args.out + at) = *(const five *)args.in;   // reported: struct_over_end
}

static __device__ void wrong_space(const case_args &args)
{
    unsigned *words = shared_words();
    words[gpu_lane()] = 1;
    gpu_barrier<1>();
    const unsigned one = args.broken ? gpu_load4(words + gpu_lane()) : words[gpu_lane()];   // reported: wrong_space
    args.out[gpu_lane()] = args.in[gpu_lane()] + one;
}

// --------------------------------------------------------------------------------------------------------- alignment

static __device__ void misaligned_load(const case_args &args)
{
    const gpu_vec2 v = gpu_load8(args.in + (args.broken ? 1 : 0));   // reported: misaligned_load
    args.out[gpu_lane()] = args.in[gpu_lane()] + (v.w[1] > 0 ? 1 : 1);
}

static __device__ void misaligned_vector(const case_args &args)
{
    gpu_vec4 *vectors = (gpu_vec4 *)(shared_words() + (args.broken ? 2 : 4));
    gpu_vec4  one;
    one.w[0] = one.w[1] = one.w[2] = one.w[3] = 1;
    if (gpu_lane() < 8) vectors[gpu_lane()] = one;   // reported: misaligned_vector
    gpu_barrier<1>();
    args.out[gpu_lane()] = args.in[gpu_lane()] + vectors[gpu_lane() / 4].w[gpu_lane() % 4];
}

static __device__ void misaligned_word(const case_args &args)
{
    char *bytes = (char *)shared_words() + (args.broken ? 2 : 0);
    ((unsigned *)bytes)[gpu_lane()] = 1;   // reported: misaligned_word
    gpu_barrier<1>();
    args.out[gpu_lane()] = args.in[gpu_lane()] + ((unsigned *)bytes)[gpu_lane()];
}

static __device__ void misaligned_matrix_row(const case_args &args)
{
    unsigned *words = shared_words(), m[4];
    for (int i = gpu_lane(); i < 160; i += 32) words[i] = 0x00010001u;
    gpu_barrier<1>();
    const int stride = args.broken ? 5 : 4;
    const unsigned row = gpu_shared_address(words + gpu_lane() * stride);
    gpu_load_matrix4_transposed(m, row);   // reported: misaligned_matrix_row
    args.out[gpu_lane()] = args.in[gpu_lane()] + (m[3] >> 16);
}

// -------------------------------------------------------------------------------------------------- dependent launch

// The launch before wrote `out`; this one is launched as dependent.
static __device__ void before_dependency(const case_args &args)
{
    if (!args.broken) gpu_dependency_wait();
    const unsigned word = gpu_load4(args.out + gpu_lane());   // reported: before_dependency
    gpu_dependency_wait();
    args.out[gpu_lane()] = word;
    gpu_dependency_trigger();
}

static __device__ void overwrites_before_dependency(const case_args &args)
{
    if (!args.broken) gpu_dependency_wait();
    gpu_store4(args.out + gpu_lane(), gpu_load4(args.in + gpu_lane()) + 1);   // reported: overwrites_before_dependency
}

extern "C" __global__ void memory(const __grid_constant__ case_args args)
{
    int i = 0;
    if (args.which < 0) args.out[gpu_lane()] = args.in[gpu_lane()] + 1;
#define CASE(name, defect, n_blocks, n_threads)                                                                        \
    if (args.which == i++) name(args);
    MEMORY_CASES(CASE)
#undef CASE
}
