// Manifests: what a template serves, what can be tuned in it and how it is launched, read from <name>.json.
//
// Every error names the file and the JSON path. A loaded manifest is valid as a whole: unknown keys refused, names
// unique and in capitals, expressions parsed and every name in them known, defaults among their values.
// Non-goals: evaluating for a problem (gen/space.h), comparing with the template's source (gen/check).
// Ownership: a manifest and all it points to live in the arena of their rssm_template_set (gen/source.h).
// Threads: immutable after load.
#ifndef RSSM_GEN_MANIFEST_H
#define RSSM_GEN_MANIFEST_H

#include "base/arena.h"
#include "base/status.h"
#include "gen/expr.h"

enum {
    RSSM_MANIFEST_SCHEMA = 1,
    RSSM_TUNABLES_MAX = 16,
    RSSM_VALUES_MAX = 64, // of one tunable
    RSSM_DERIVED_MAX = 16,
    RSSM_CONSTRAINTS_MAX = 64,
    RSSM_RECURRENCE_ANY = 255, // beside the values of rssm_recurrence
};

// X(enumerator, name)
#define RSSM_OP_LIST(X)                                                                                                \
    X(RSSM_OP_ADVANCE, "advance")                                                                                      \
    X(RSSM_OP_STEP, "step")                                                                                            \
    X(RSSM_OP_MATERIALIZE, "materialize")                                                                              \
    X(RSSM_OP_ENCODE, "encode")                                                                                        \
    X(RSSM_OP_DECODE, "decode")                                                                                        \
    X(RSSM_OP_COPY, "copy")                                                                                            \
    X(RSSM_OP_SLOTS, "slots")                                                                                          \
    X(RSSM_OP_PROBE, "probe")

typedef enum rssm_op {
#define RSSM_OP_ENUM(enumerator, name) enumerator,
    RSSM_OP_LIST(RSSM_OP_ENUM)
#undef RSSM_OP_ENUM
} rssm_op;

const char *rssm_op_name(rssm_op op);
const char *rssm_recurrence_name(uint32_t recurrence); // "mamba2", "gdn", "kda", "any"
const char *rssm_backend_name(rssm_backend backend);   // "cpu", "cuda"

typedef struct rssm_range { // inclusive
    int64_t low, high;
} rssm_range;

// What a template can serve. Sets are masks of 1u << enumerator; an absent key is a full mask or range.
typedef struct rssm_serves {
    uint32_t   checkpoint_modes, checkpoint_dtypes, activation_dtypes, roundings;
    rssm_range max_tokens, head_dim, state_size, group_size, window;
} rssm_serves;

typedef struct rssm_tunable {
    const char    *name; // "ROWS"; rendered as CFG_ROWS
    const char    *doc;
    const int64_t *values; // [n_values] not negative, ascending
    size_t         n_values;
    size_t         default_index;
} rssm_tunable;

typedef struct rssm_derived {
    const char      *name;
    const rssm_expr *expr; // over problem, device, tunables and earlier derived
} rssm_derived;

typedef struct rssm_constraint {
    const rssm_expr *expr;
    const char      *why;
} rssm_constraint;

typedef struct rssm_manifest {
    const char  *file; // its name in the template set, "cpu/mamba2_step/rows.json"
    const char  *name; // "mamba2_step_rows"; unique in the set
    uint32_t     version;
    rssm_op      op;
    uint32_t     recurrence; // rssm_recurrence or RSSM_RECURRENCE_ANY
    rssm_backend backend;
    const char  *source; // name in the template set, "cpu/mamba2_step/rows.c"
    const char  *entry;  // symbol
    const char  *args;   // type name of the argument struct
    const char  *doc;
    rssm_serves  serves;

    const rssm_tunable    *tunables;
    size_t                 n_tunables;
    const rssm_derived    *derived;
    size_t                 n_derived;
    const rssm_constraint *constraints;
    size_t                 n_constraints;

    uint32_t         align_state, align_rings, align_activations; // bytes; 1 where not given
    const rssm_expr *grid[3];                                     // the only place, with cost, that may use `rows`
    const rssm_expr *block[3];
    const rssm_expr *shared_bytes;
    const rssm_expr *scratch_bytes_per_row;
    const rssm_expr *replay_bytes;      // "cost"; NULL where not given
    int64_t          spill_limit_bytes; // "limits"; -1: none
    int64_t          register_limit;    // -1: none
    bool             is_builtin;        // CPU: also inside the library, generic
} rssm_manifest;

// Reads one manifest into `arena`. `file` is its name in the set; "source" is taken beside it. RSSM_E_MANIFEST,
// RSSM_E_NO_MEMORY.
rssm_status rssm_manifest_load(const char *text, size_t n, const char *file, rssm_arena *arena,
                               const rssm_manifest **out_manifest, rssm_diag *diag);

// Whether it can serve a normalised problem: RSSM_OK, or RSSM_E_UNSUPPORTED naming field, value and what is served.
rssm_status rssm_manifest_serves(const rssm_manifest *manifest, const rssm_problem *problem, rssm_diag *diag);

#endif
