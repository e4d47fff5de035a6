// What the emulating twins of prims/ call: the device side of the emulator, one function per kind of operation.
//
// Every function that touches memory or waits takes a place: the template's file and line, which the twins capture
// with __builtin_FILE() and __builtin_LINE() in default arguments. Plain loads and stores of a template come in through
// the compiler's instrumentation instead (hooks.c) and are placed by their program counter.
//
// Addresses are host pointers; shared memory also has the 32-bit addresses that some instructions take. All functions
// act for the emulated thread that calls; on a defect they report it and do not return. Valid as C11 and C++17.
#ifndef RSSM_SIMT_DEVICE_H
#define RSSM_SIMT_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SIMT_API __attribute__((visibility("default")))

enum { SIMT_WARP = 32 };

typedef struct simt_place {
    const char *file;
    int         line;
} simt_place;

// Where the thread is. Constant for a thread, so the compiler may keep the answers.
SIMT_API __attribute__((const)) uint32_t simt_thread_index(void);
SIMT_API __attribute__((const)) uint32_t simt_block_index(int axis);
SIMT_API __attribute__((const)) uint32_t simt_grid_size(int axis);

SIMT_API void    *simt_shared_memory(void); // of the launch's dynamic size
SIMT_API uint32_t simt_shared_address(const void *object, simt_place at);

// Memory. n of 1, 2, 4, 8 or 16, and the address a multiple of it.
typedef enum simt_space { SIMT_GLOBAL, SIMT_SHARED, SIMT_ANY } simt_space;
SIMT_API void simt_load(void *value, const void *from, uint32_t n, simt_space space, simt_place at);
SIMT_API void simt_store(void *to, const void *value, uint32_t n, simt_space space, simt_place at);
SIMT_API void simt_copy_vector(void *to, const void *from, uint32_t n); // either side may be a local variable

typedef enum simt_atomic {
    SIMT_ATOMIC_OR,
    SIMT_ATOMIC_AND,
    SIMT_ATOMIC_ADD,
    SIMT_ATOMIC_ADD_F32,
    SIMT_ATOMIC_MIN,
    SIMT_ATOMIC_MAX,
    SIMT_ATOMIC_EXCHANGE,
    SIMT_ATOMIC_COMPARE, // stores `operand` where the word equals `expected`
} simt_atomic;
SIMT_API uint32_t simt_atomic_word(simt_atomic op, void *word, uint32_t operand, uint32_t expected, simt_place at);

// Waiting. n_threads 0: the whole block. `simt_arrive` counts without waiting.
SIMT_API void simt_barrier(uint32_t id, uint32_t n_threads, simt_place at);
SIMT_API void simt_arrive(uint32_t id, uint32_t n_threads, simt_place at);

// Operations of the lanes of one warp. The lanes of `mask` meet; the last to come computes for all.
typedef enum simt_warp_kind {
    SIMT_WARP_SYNC, // orders memory among the lanes; no other operation does
    SIMT_SHUFFLE_XOR,
    SIMT_SHUFFLE_UP,
    SIMT_SHUFFLE_DOWN,
    SIMT_SHUFFLE_FROM,
    SIMT_BALLOT,
    SIMT_ANY_OF,
    SIMT_ALL_OF,
    SIMT_MATCH_ANY,
    SIMT_MATCH_ALL,
    SIMT_REDUCE_ADD,
    SIMT_REDUCE_MIN,
    SIMT_REDUCE_MAX,
    SIMT_REDUCE_AND,
    SIMT_REDUCE_OR,
    SIMT_TRANSPOSE,     // movmatrix m8n8 b16
    SIMT_LOAD_MATRIX,   // ldmatrix m8n8 b16: `operand` 1, 2 or 4 matrices; in[0] address, in[1] transposed
    SIMT_STORE_MATRIX,  // stmatrix likewise; in[2 ...] words
    SIMT_MATRIX_BF16,   // mma m16n8k16: in[0 .. 3] a, in[4 .. 5] b, d in and out
    SIMT_MATRIX_F16,    // the same
    SIMT_MATRIX_TF32,   // m16n8k8
    SIMT_MATRIX_TF32_4, // m16n8k4: in[0 .. 1] a, in[4] b
    SIMT_MATRIX_BF16_8, // m16n8k8: in[0 .. 1] a, in[4] b
    SIMT_MATRIX_F16_8,  // the same
    SIMT_MATRIX_E4M3,   // m16n8k32
    SIMT_MATRIX_E5M2,   // m16n8k32
    SIMT_N_WARP_KINDS,
} simt_warp_kind;

typedef struct simt_warp_op {
    simt_warp_kind kind;
    uint32_t       mask;
    int32_t        operand; // distance, lane or xor mask of a shuffle
    uint32_t       in[6];
    uint32_t       out[4];
    float          d[4];
    simt_place     at;
} simt_warp_op;

SIMT_API void simt_warp(simt_warp_op *op);

// cp.async: `n` of 4, 8 or 16 bytes to shared memory, of which `n_read` come from memory and the rest are zeros.
SIMT_API void simt_copy_async(void *to, const void *from, uint32_t n, uint32_t n_read, simt_place at);
SIMT_API void simt_copy_commit(void);
SIMT_API void simt_copy_wait(uint32_t n_groups_left, simt_place at);

// mbarrier objects, 8 bytes of shared memory.
SIMT_API void simt_mbarrier_init(void *barrier, uint32_t n_arrivals, simt_place at);
SIMT_API void simt_mbarrier_arrive(void *barrier, uint32_t n_arrivals, uint32_t n_expected_bytes, simt_place at);
SIMT_API int  simt_mbarrier_test(void *barrier, uint32_t parity, simt_place at); // 0: not yet; others ran meanwhile
SIMT_API void simt_mbarrier_wait(void *barrier, uint32_t parity, simt_place at);
SIMT_API void simt_fence_async(void);    // fence.proxy.async: own writes, before copies that follow
SIMT_API void simt_fence_mbarrier(void); // fence.mbarrier_init

// Bulk copies, multiples of 16 bytes: memory to shared memory, completing on an mbarrier; and back, in groups.
SIMT_API void simt_bulk_load(void *to, const void *from, uint32_t n, void *barrier, simt_place at);
SIMT_API void simt_bulk_store(void *to, const void *from, uint32_t n, simt_place at);
SIMT_API void simt_bulk_commit(void);
SIMT_API void simt_bulk_wait(uint32_t n_groups_left, int read_only, simt_place at); // read_only: sources may be reused

// Programmatic dependent launch.
SIMT_API void simt_dependency_wait(void);
SIMT_API void simt_dependency_trigger(void);

// Number formats: bits of the format nearest to a value (ties to even), overflow to Inf or, `saturate`, to the largest
// finite value; and the value of bits.
typedef enum simt_format {
    SIMT_BF16,
    SIMT_F16,
    SIMT_E4M3,
    SIMT_E5M2,
    SIMT_E2M1,
    SIMT_TF32,
    SIMT_N_FORMATS
} simt_format;
SIMT_API uint32_t simt_encode(simt_format format, float value, int saturate);
SIMT_API float    simt_decode(simt_format format, uint32_t bits);
SIMT_API uint32_t simt_to_tf32(float value);                                           // ties away from zero
SIMT_API int32_t  simt_to_int(float value, int32_t low, int32_t high, int to_nearest); // saturating; NaN gives 0
SIMT_API float    simt_fma(float a, float b, float c);

#ifdef __cplusplus
}
#endif

#endif
