// Judges a group's kernels: runs `advance` and `step` on private, poisoned, guarded device memory over a few windows
// and compares every value with the float64 oracle and every other byte with what it must be.
//
// What a run meets: slots in random order among slots nobody uses, gaps between all strides, null rows with NaN inputs,
// rows that are desynchronised by fresh sequences, forced folds, idle steps and rejected tokens, slots that change
// their sequence in mid-run, rows in another order every step, rings that wrap. All dead memory (unused slots, ring
// rows without a live record, gaps, guard zones, outputs before a step, inputs of null rows) holds NaN patterns.
//
// What is compared after every step: descriptors and cursors with a host mirror of cursor.h; outputs, folded
// checkpoints and processed dt with the oracle, within the bounds of oracle/mamba2_reference.h plus one rounding to the
// stored type; appended x and B bit by bit; zeros of rows without tokens; and every byte of every buffer that nothing
// may write. The oracle starts each step from the checkpoint in memory, so errors do not pile up over steps.
//
// In an fp32 checkpoint an error below some 50 ulp (window of 16) passes, as the bounds document; in a 16-bit
// checkpoint and in 16-bit outputs one ulp is found.
//
// Non-goals: timing, choosing kernels, isolation from kernels that hang or write anywhere (the worker process does
// that). Threads: one run per group and device at a time.
#ifndef RSSM_TUNER_VERIFY_H
#define RSSM_TUNER_VERIFY_H

#include "base/status.h"

// What a run calls, so that tests can put a faulty kernel in its place. The members have the signatures and contracts
// of the functions of the same name in replayssm.h and runtime/memory.h.
typedef struct rssm_verify_calls {
    rssm_status (*advance)(const rssm_group *group, const rssm_advance_args *args, void *stream);
    rssm_status (*step)(const rssm_plan *plan, const rssm_step_args *args, void *stream);
    rssm_status (*alloc)(rssm_context *context, uint32_t device, size_t n_bytes, void **out_pointer, rssm_diag *diag);
    void (*free)(rssm_context *context, uint32_t device, void *pointer);
    rssm_status (*upload)(rssm_context *context, uint32_t device, void *to, const void *from, size_t n_bytes,
                          rssm_diag *diag);
    rssm_status (*download)(rssm_context *context, uint32_t device, void *to, const void *from, size_t n_bytes,
                            rssm_diag *diag);
    rssm_status (*synchronise)(rssm_context *context, uint32_t device, rssm_diag *diag);
} rssm_verify_calls;

enum {
    RSSM_VERIFY_GATE = 1 << 0, // with z
    RSSM_VERIFY_SKIP = 1 << 1, // with D
    RSSM_VERIFY_BIAS = 1 << 2, // with dt_bias
    RSSM_VERIFY_ALL_TENSORS = 7,
    RSSM_VERIFY_TOKEN_MAJOR = 1 << 3, // rings [slot][record][head][dense] instead of [slot][head][record][dense]
    RSSM_VERIFY_PAD_ZERO = 1 << 4,    // null rows name slot 0, which no sequence owns; otherwise -1
    RSSM_VERIFY_PACKED = 1 << 5,      // tokens packed by cu_seqlens, with rows that have none
    RSSM_VERIFY_DENSE = 1 << 6,       // native strides without gaps; guard zones stay
};

typedef struct rssm_verify_request {
    rssm_context       *context;
    uint32_t            device;
    const rssm_group   *group; // made for at least n_rows rows
    const rssm_plan    *plan;  // of `problem` in that group
    const rssm_problem *problem;
    void               *cursors;     // the group's, on the device: overwritten
    uint32_t            n_slots;     // of the group; at least n_rows, and one more under RSSM_VERIFY_PAD_ZERO
    uint32_t            n_rows;      // batch
    uint32_t            n_steps;     // 0: 2 L + 3
    uint32_t            eager;       // not 0: the group folds every step for this batch
    uint32_t            head_stride; // compare every k-th head with the oracle, counted from the last; 0: all
    uint32_t            flags;       // RSSM_VERIFY_*
    // Bytes that bases and strides are multiples of (as in the manifest's "align"), and not of more than that where
    // there are gaps; powers of two, at most 128; 0: the size of an element.
    uint32_t                 state_align, ring_align, activation_align;
    uint64_t                 scratch_bytes_per_row;
    uint64_t                 seed;
    const rssm_verify_calls *calls; // NULL: the library's own
} rssm_verify_request;

typedef struct rssm_verify_report {
    double   max_out, max_state, max_dt; // largest errors, as fractions of the bounds; 1 is the limit
    uint64_t n_out, n_state, n_dt;       // values compared with the oracle
    uint64_t n_bytes;                    // bytes compared for equality
    uint32_t n_steps;                    // finished
    // What the traffic covered: rows by kind.
    uint32_t n_appends, n_folds, n_full_folds, n_forced, n_wraps, n_idle, n_null, n_resets, n_rejections;
    char     failure[512]; // the first difference as a sentence; "" if there is none
} rssm_verify_report;

// Returns RSSM_OK if everything agreed; RSSM_E_WRONG_RESULT with the report's sentence in `diag` if not; or what went
// wrong on the way: RSSM_E_INVALID_ARGUMENT, RSSM_E_NO_MEMORY, what the calls return. The report is filled in all
// cases.
rssm_status rssm_verify(const rssm_verify_request *request, rssm_verify_report *out_report, rssm_diag *diag);

// The same with request->calls given: links nothing of runtime/.
rssm_status rssm_verify_run(const rssm_verify_request *request, rssm_verify_report *out_report, rssm_diag *diag);

#endif
