// The configuration space of a manifest: configs, their validity for a problem and device, and their launch.
//
// Order: configs are numbered in mixed radix, the last tunable fastest, over all value combinations ("raw" space).
// Non-goals: search strategy (tuner), what a config costs.
// Facts given to these functions hold a problem and a device (gen/facts.h), not tunables or derived values.
// Threads: no shared state.
#ifndef RSSM_GEN_SPACE_H
#define RSSM_GEN_SPACE_H

#include "base/str.h"
#include "gen/manifest.h"

// One value for each tunable. Plain value; borrows the manifest.
typedef struct rssm_config {
    const rssm_manifest *manifest;
    int64_t              values[RSSM_TUNABLES_MAX]; // in manifest order; unused ones are 0
} rssm_config;

rssm_config rssm_config_default(const rssm_manifest *manifest);
bool        rssm_config_equal(const rssm_config *a, const rssm_config *b);

// Canonical text, "ROWS=8 VEC=16" in manifest order; "" without tunables.
void rssm_config_text(const rssm_config *config, rssm_str *out);

// The inverse: every tunable once, in any order, each value among the manifest's. RSSM_E_INVALID_ARGUMENT.
rssm_status rssm_config_parse(const rssm_manifest *manifest, const char *text, rssm_config *out_config,
                              rssm_diag *diag);

// RSSM_OK, or RSSM_E_UNSUPPORTED with "rejected: EXPR (WHY)" of the first constraint that does not hold. Does not look
// at what the manifest serves: see rssm_manifest_serves.
rssm_status rssm_config_check(const rssm_config *config, const rssm_facts *facts, rssm_diag *diag);

// Copies `facts` and adds the config's tunables and derived values. RSSM_E_UNSUPPORTED where one cannot be computed.
rssm_status rssm_config_facts(const rssm_config *config, const rssm_facts *facts, rssm_facts *out_facts,
                              rssm_diag *diag);

uint64_t    rssm_space_size(const rssm_manifest *manifest);               // raw; at least 1
rssm_config rssm_space_at(const rssm_manifest *manifest, uint64_t index); // index < size
uint64_t    rssm_space_index(const rssm_config *config);                  // the inverse

// Valid configs in order: start with *cursor = 0; false at the end.
bool rssm_space_next(const rssm_manifest *manifest, const rssm_facts *facts, uint64_t *cursor, rssm_config *out_config);

// Configs that differ from this one by one step in one tunable, in order, not checked. Returns how many.
enum { RSSM_NEIGHBOURS_MAX = 2 * RSSM_TUNABLES_MAX };
size_t rssm_config_neighbours(const rssm_config *config, rssm_config out_configs[RSSM_NEIGHBOURS_MAX]);

// How to launch: grid dimension i of n rows is grid[i].constant + n * grid[i].per_row.
typedef struct rssm_extent {
    int64_t constant, per_row;
} rssm_extent;

typedef struct rssm_launch {
    rssm_extent grid[3];
    uint32_t    block[3];
    uint32_t    shared_bytes;
    uint64_t    scratch_bytes_per_row;
} rssm_launch;

// Checks that the grid is linear in rows (RSSM_E_MANIFEST), that no extent is negative and blocks are within 1..1024
// threads (RSSM_E_UNSUPPORTED). CPU templates: tasks are grid[0]; the other extents must be 1.
rssm_status rssm_launch_plan(const rssm_config *config, const rssm_facts *facts, rssm_launch *out_launch,
                             rssm_diag *diag);

// The manifest's cost in bytes of one replay step of `rows` rows. RSSM_E_NOT_FOUND where it gives none.
rssm_status rssm_config_replay_bytes(const rssm_config *config, const rssm_facts *facts, int64_t rows,
                                     int64_t *out_bytes, rssm_diag *diag);

#endif
