// What the parts of a workload share: workload.c (memory), workload_traffic.c (cursors, accepted counts),
// workload_run.c (launches and their times).
#ifndef RSSM_TUNER_WORKLOAD_PARTS_H
#define RSSM_TUNER_WORKLOAD_PARTS_H

#include "runtime/context.h"
#include "templates/abi/cursor.h"
#include "tuner/workload.h"

typedef enum rssm_workload_buffer {
    RSSM_WORKLOAD_STATE,
    RSSM_WORKLOAD_X_RING,
    RSSM_WORKLOAD_B_RING,
    RSSM_WORKLOAD_DT_RING,
    RSSM_WORKLOAD_CURSORS,
    RSSM_WORKLOAD_DESCRIPTORS, // [n_slots] in the order of slots, here and below
    RSSM_WORKLOAD_SLOTS,
    RSSM_WORKLOAD_ACCEPTED,
    RSSM_WORKLOAD_X,
    RSSM_WORKLOAD_B,
    RSSM_WORKLOAD_C,
    RSSM_WORKLOAD_DT,
    RSSM_WORKLOAD_OUT,
    RSSM_WORKLOAD_A,
    RSSM_WORKLOAD_D,
    RSSM_WORKLOAD_BIAS,
    RSSM_WORKLOAD_N_BUFFERS,
} rssm_workload_buffer;

struct rssm_workload {
    rssm_context      *context;
    const rssm_device *device;
    uint32_t           device_index;
    rssm_problem       problem;
    rssm_layout        layout;
    uint32_t           n_slots, max_rows;
    uint64_t           random;
    int32_t           *slots;                            // [n_slots] host copy of the order of slots
    rssm_cursor       *cursors;                          // [n_slots] by slot, host copy
    int32_t           *accepted;                         // [n_slots] in the order of slots, host copy
    void              *buffers[RSSM_WORKLOAD_N_BUFFERS]; // on the device
};

// splitmix64
uint64_t rssm_workload_random(uint64_t *state);

// Slots that a run of n_rows uses within `limit` bytes: a multiple of n_rows.
uint32_t rssm_workload_slots_for(const rssm_workload *w, uint32_t n_rows, uint64_t limit);

// Spreads the cursors over the phases of the steady state (h = 0 for all where `eager`).
rssm_status rssm_workload_set_phases(rssm_workload *w, int eager, uint64_t *random, rssm_diag *diag);

// Prepares the accepted counts of the next advance of the first n slots of the order; T > 1 only.
rssm_status rssm_workload_draw_accepted(rssm_workload *w, uint32_t n, uint64_t *random, rssm_diag *diag);

#endif
