// Kernels for tests of the verifier: plain, scalar, correct `advance` and `step` in fp32, and one fault at a time put
// into them. Memory is the host's.
#ifndef RSSM_TESTS_ORACLE_FAKE_KERNELS_H
#define RSSM_TESTS_ORACLE_FAKE_KERNELS_H

#include "abi/cursor.h"
#include "tuner/verify.h"

typedef enum fake_fault {
    FAULT_NONE,
    FAULT_FEW_ULPS, // folded state off by 4 ulp: the documented tolerance of an fp32 checkpoint
    // step
    FAULT_WRITES_NOTHING,
    FAULT_SKIPS_LAST_HEAD,
    FAULT_DROPS_NEWEST_RECORD,
    FAULT_DROPS_OLDEST_RECORD,
    FAULT_MANY_ULPS, // folded state off by 256 ulp (fp32) or 1 ulp (16 bits); outputs are right
    FAULT_WRITES_GAP,
    FAULT_WRITES_GUARD,
    FAULT_WRITES_INPUT,
    FAULT_WRITES_DESCRIPTOR,
    FAULT_WRITES_STATE_OF_NULL_ROW,
    FAULT_SKIPS_NULL_ROWS,
    FAULT_SKIPS_IDLE_ROWS,
    FAULT_READS_DEAD_RECORD,   // times zero
    FAULT_READS_FOLDED_RECORD, // likewise, one that was live before the last fold
    FAULT_READS_NULL_INPUT,    // times zero
    FAULT_APPENDS_ELSEWHERE,
    FAULT_APPENDS_AFTER_FOLD,
    FAULT_APPENDS_RAW_DT,
    FAULT_ROUNDS_WEIGHTS, // of a fold, to bf16
    FAULT_ROUNDS_READOUT, // of the checkpoint to 11 bits, as one pass of TF32
    FAULT_READS_ROUNDED_STATE,
    FAULT_IGNORES_SLOT_STRIDE,
    FAULT_IGNORES_WRAP,
    FAULT_IGNORES_GATE,
    FAULT_IGNORES_BIAS,
    FAULT_LOGARITHM_OF_SUM, // softplus without log1p
    FAULT_STATE_STAYS,      // does not store the fold
    // advance
    FAULT_KEEPS_OLD_RECORDS, // of the slot's previous sequence
    FAULT_IGNORES_FORCED,
    FAULT_IGNORES_ACCEPTED,
    FAULT_FOLDS_LAST,
    FAULT_LOSES_POSITION,
} fake_fault;

typedef struct fake_kernels {
    rssm_problem problem; // normalised
    rssm_cursor *cursors; // [n_slots]
    uint32_t     n_slots;
    int          eager;
    int          flags; // of the request
    fake_fault   fault;
} fake_kernels;

// The calls take a fake_kernels in place of the group and of the plan.
extern const rssm_verify_calls fake_calls;

#endif
