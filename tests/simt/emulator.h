// The SIMT emulator: runs a CUDA template, compiled as host C++, on the CPU, and referees it.
//
// A block's threads are fibers. Warps take turns in an order drawn from a seed; a fiber runs until it waits. Blocks run
// one after the other in a shuffled order: no block waits for another. Memory of the device is an arena with shadow
// state per byte (memory.c, referee.c), so that every access is judged by itself, not by what it happened to do.
//
// Non-goals: timing, caches, memory orders weaker than "ordered or not", clusters.
// Threads: none. One machine per process; a defect ends the launch, not the process.
#ifndef RSSM_SIMT_EMULATOR_H
#define RSSM_SIMT_EMULATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"

// What the referee reports. X(enumerator, words)
#define SIMT_DEFECT_LIST(X)                                                                                            \
    X(SIMT_CLEAN, "no defect")                                                                                         \
    X(SIMT_DIVERGENT_BARRIER, "divergent barrier")                                                                     \
    X(SIMT_ABSENT_LANE, "absent lane")                                                                                 \
    X(SIMT_SHARED_RACE, "shared-memory race")                                                                          \
    X(SIMT_GLOBAL_RACE, "global-memory race")                                                                          \
    X(SIMT_UNINITIALISED, "uninitialised read")                                                                        \
    X(SIMT_ASYNC_UNWAITED, "async copy not waited for")                                                                \
    X(SIMT_PROXY, "missing proxy fence")                                                                               \
    X(SIMT_MBARRIER, "mbarrier phase error")                                                                           \
    X(SIMT_OUT_OF_BOUNDS, "out of bounds")                                                                             \
    X(SIMT_MISALIGNED, "misaligned access")                                                                            \
    X(SIMT_DEADLOCK, "deadlock")                                                                                       \
    X(SIMT_DEPENDENCY, "grid dependency not waited for")

typedef enum simt_defect {
#define SIMT_DEFECT_ENUM(enumerator, words) enumerator,
    SIMT_DEFECT_LIST(SIMT_DEFECT_ENUM)
#undef SIMT_DEFECT_ENUM
        SIMT_N_DEFECTS,
} simt_defect;

const char *simt_defect_text(simt_defect defect);

typedef struct simt_report {
    simt_defect defect;
    char        file[200]; // as the template set names it, "cuda/advance/advance.cu", where it is one of its files
    int         line;
    char        text[1024]; // one sentence with place, thread and the other side of a conflict
} simt_report;

// ------------------------------------------------------------------------------------------------------------- memory

// Reserves the arena. Everything in it is lost on the next call.
void simt_reset(void);

// 256-byte aligned, between guards; uninitialised until uploaded or written. RSSM_E_DEVICE_MEMORY.
rssm_status simt_alloc(size_t n_bytes, void **out_pointer, rssm_diag *diag);
void        simt_free(void *pointer);

// `poison`: words of two NaN half-words, as the verifier fills dead memory with, count as uninitialised.
void simt_upload(void *to, const void *from, size_t n_bytes, bool poison);
void simt_download(void *to, const void *from, size_t n_bytes);

// ------------------------------------------------------------------------------------------------------------ kernels

typedef struct simt_kernel simt_kernel;

typedef struct simt_compile_options {
    const char *clang;         // program or path of clang++
    const char *template_root; // folder of templates/
    const char *source;        // relative to the root, or absolute
    const char *entry, *args;  // kernel and its argument struct
    const char *config;        // text of rssm_config.h; NULL: the source needs none
    const char *flags;         // further arguments of the compiler, separated by blanks; NULL: none
} simt_compile_options;

// Compiles into a temporary folder and loads. RSSM_E_NO_COMPILER, RSSM_E_COMPILE with the first error line, RSSM_E_IO.
rssm_status simt_kernel_load(const simt_compile_options *options, simt_kernel **out_kernel, rssm_diag *diag);
void        simt_kernel_unload(simt_kernel *kernel);

typedef struct simt_launch_options {
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;
    uint64_t seed;      // of the orders of blocks, warps and copies
    bool     dependent; // may begin before the launch before it is complete
} simt_launch_options;

// Runs a kernel. False: it was stopped by a defect, and the report says which; memory is as it was then.
bool simt_launch(const simt_kernel *kernel, const simt_launch_options *options, const void *args,
                 simt_report *out_report);

// Instruments that tests read: what the last launch did.
typedef struct simt_counts {
    uint64_t n_blocks, n_switches, n_accesses, n_warp_ops;
} simt_counts;
simt_counts simt_last_counts(void);

#endif
