// A workload: the tensors a layer's step runs on while it is timed, as a server would have them.
//
// Checkpoints and rings are cold: there are more slots than twice the last-level cache holds, every launch of a pass
// uses others, in random order. The layer's small inputs and its output are shared by all launches, hence hot. Cursors
// are spread over all L phases of the window, so that a pass over all slots folds exactly as often as production does.
// Where a step has T > 1 tokens, rows have T each, of which 1 to T are accepted with equal probability: cursors begin in
// that traffic's steady state, and a sample folds about as often as the long run (tuner/workload_traffic.c).
// The harness owns every byte of it; nothing of a host application is ever touched.
// Threads: caller serialises.
#ifndef RSSM_TUNER_WORKLOAD_H
#define RSSM_TUNER_WORKLOAD_H

#include "base/status.h"

typedef struct rssm_workload rssm_workload;

// For batches up to max_rows. `memory_limit` bounds its size in bytes (0: half of the device's memory);
// RSSM_E_UNSUPPORTED names what would be needed where even one batch does not fit.
rssm_status rssm_workload_create(rssm_context *context, uint32_t device, const rssm_problem *problem, uint32_t max_rows,
                                 uint64_t memory_limit, rssm_workload **out_workload, rssm_diag *diag);
void        rssm_workload_destroy(rssm_workload *workload);

const rssm_problem *rssm_workload_problem(const rssm_workload *workload); // normalised
uint64_t            rssm_workload_bytes(const rssm_workload *workload);   // of slots: checkpoints and rings

// Group options for a group that runs on this workload's cursors; valid as long as the workload.
rssm_group_options rssm_workload_group_options(const rssm_workload *workload);

// A run: one group on the workload at one batch size.
typedef struct rssm_run rssm_run;

// Sets the cursors to their phases (all 0 where `eager`) and, on a GPU, captures the launches into a graph.
rssm_status rssm_run_create(rssm_workload *workload, const rssm_group *group, uint32_t n_rows, int eager,
                            rssm_run **out_run, rssm_diag *diag);
void        rssm_run_destroy(rssm_run *run);

// One sample: advances every cursor by a step, then times a pass of steps over all slots (several passes where one is
// short). Gives nanoseconds per step. Where the slots do not divide evenly into phases, a sample takes L passes; at T > 1
// as many as make 512 rows. Accepted counts are drawn between the timed passes.
rssm_status rssm_run_sample(rssm_run *run, double *out_step_ns, rssm_diag *diag);

// Nanoseconds of one advance of n_rows rows; on a GPU as a node of a graph.
rssm_status rssm_run_advance_ns(rssm_run *run, double *out_ns, rssm_diag *diag);

#endif
