// The layers of a group as the device sees them: one table of views in device memory, sorted by shape.
//
// Invariants
//   Y1  Layers of one shape are one run of the table, so that one launch serves them all.
//   Y2  Every view is aligned for every kernel of its plan, and no two slots of one tensor share an element.
// Threads: immutable once made.
#ifndef RSSM_RUNTIME_LAYERS_H
#define RSSM_RUNTIME_LAYERS_H

#include "runtime/group.h"
#include "templates/abi/mamba2_layers.h"

enum { RSSM_LAYERS_MOST = 65536 };

// Entries [first, first + n) of the table.
typedef struct rssm_layer_run {
    const rssm_plan *plan;
    uint32_t         first, n;
} rssm_layer_run;

struct rssm_layers {
    const rssm_group  *group;
    uint32_t           n_layers, n_runs;
    rssm_mamba2_layer *table;    // [n_layers] on the device
    rssm_layer        *layers;   // [n_layers] as given
    uint32_t          *places;   // [n_layers] of each layer in the table
    rssm_layer_run    *runs;     // [n_runs], by plan
};

// The plan of layer i, i < n_layers.
const rssm_plan *rssm_layers_plan(const rssm_layers *layers, uint32_t i);

// Whether n_moves moves of `op` (copy or materialize) can be launched for every run: RSSM_E_UNSUPPORTED without a
// kernel, RSSM_E_INVALID_ARGUMENT where a grid does not hold them.
rssm_status rssm_layers_ready(const rssm_layers *layers, rssm_op op, uint32_t n_moves);

// One launch per run. `sources` and `destinations` are tables of the same order as the layers' own.
rssm_status rssm_layers_launch(const rssm_layers *layers, rssm_op op, const rssm_mamba2_layer *sources,
                               const rssm_mamba2_layer *destinations, const rssm_slot_move *moves, uint32_t n_moves,
                               void *stream);

#endif
