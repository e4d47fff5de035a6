// The world of the lifecycle test: one arena of device memory that holds everything, its host image, and the groups and
// layers that live on it.
//
// Two layers of one shape and one of another share cursors and slots. Four groups run on the same memory: one token per
// step, most, some, and one token with a fold at every step. Every tensor has gaps between its strides and a guard zone
// before and behind it; all that belongs to no element, and all that is dead, is NaN.
//
// Invariant W1: between events, image and device hold the same bytes. An event writes into the image what it uploads
// and what the library must write; life_compare() compares every byte of the arena.
//
// Everything is called through a table, so that faulty calls and other machines can take the library's place.
// Threads: none.
#ifndef RSSM_TESTS_LIFECYCLE_WORLD_H
#define RSSM_TESTS_LIFECYCLE_WORLD_H

#include "templates/abi/cursor.h"
#include "tests/lifecycle/numbers.h"

enum {
    LIFE_SHAPES = 2,
    LIFE_LAYERS = 3,
    LIFE_GROUPS = 4,
    LIFE_SLOTS = 9,
    LIFE_ROWS = 5,
    LIFE_RING_MAX = 13,
    LIFE_T_MAX = 6,
    LIFE_HEADS = 4,
    LIFE_TOKENS = LIFE_ROWS * (LIFE_T_MAX + 1), // of the activations: a refused row may ask for one too many
};

// Signatures and contracts of the functions of the same name in replayssm.h and runtime/memory.h.
typedef struct life_calls {
    rssm_status (*group_create)(rssm_context *, const rssm_group_options *, rssm_group **, rssm_diag *);
    void (*group_destroy)(rssm_group *);
    const rssm_plan *(*group_plan)(const rssm_group *, uint32_t);
    rssm_status (*layers_create)(const rssm_group *, const rssm_layer *, uint32_t, void *, rssm_layers **, rssm_diag *);
    void (*layers_destroy)(rssm_layers *);
    rssm_status (*advance)(const rssm_group *, const rssm_advance_args *, void *);
    rssm_status (*commit)(const rssm_group *, const rssm_advance_args *, void *);
    rssm_status (*open)(const rssm_group *, const rssm_advance_args *, void *);
    rssm_status (*step)(const rssm_plan *, const rssm_step_args *, void *);
    rssm_status (*reset)(const rssm_group *, const rssm_slot_args *, void *);
    rssm_status (*truncate)(const rssm_group *, const rssm_slot_args *, void *);
    rssm_status (*invalidate)(const rssm_group *, const rssm_slot_args *, void *);
    rssm_status (*copy)(const rssm_layers *, const rssm_slot_args *, void *);
    rssm_status (*materialize)(const rssm_layers *, const rssm_slot_args *, void *);
    rssm_status (*encode)(const rssm_layers *, uint32_t, const rssm_state_args *, void *);
    rssm_status (*decode)(const rssm_layers *, uint32_t, const rssm_state_args *, void *);
    size_t (*table_bytes)(uint32_t);
    size_t (*blob_bytes)(const rssm_layers *);
    rssm_status (*export_slot)(const rssm_layers *, const rssm_transfer_args *, void *, size_t, size_t *, rssm_diag *);
    rssm_status (*import_slot)(const rssm_layers *, const rssm_transfer_args *, const void *, size_t, rssm_diag *);
    rssm_status (*alloc)(rssm_context *, uint32_t, size_t, void **, rssm_diag *);
    void (*free)(rssm_context *, uint32_t, void *);
    rssm_status (*upload)(rssm_context *, uint32_t, void *, const void *, size_t, rssm_diag *);
    rssm_status (*download)(rssm_context *, uint32_t, void *, const void *, size_t, rssm_diag *);
    rssm_status (*synchronise)(rssm_context *, uint32_t, rssm_diag *);
} life_calls;

extern const life_calls life_library; // the library's own

// Where a world lives. A table of calls that needs no context may leave it NULL.
typedef struct life_machine {
    const life_calls *calls;
    rssm_context     *context;
    uint32_t          device;
    bool              is_gpu; // its pointers are not this process's, and transfers are slow
} life_machine;

// Which numbers and options a run uses.
typedef struct life_variant {
    const char *name;
    uint32_t    checkpoint, activation, dt, parameter;
    bool        gate, skip, bias, softplus, token_major;
} life_variant;

// How a host keeps its slots: what differs between hosts that send each other sequences.
typedef struct life_memory {
    int32_t window, ring;
    int32_t tokens[LIFE_GROUPS]; // most per step; the last group folds at every step
    bool    other_order;         // of records and heads in the rings
} life_memory;

// A tensor in the arena: dense runs, each named by (outer, head, record).
typedef struct life_tensor {
    char     name[24];
    uint32_t dtype;
    size_t   element_bytes, offset, bytes; // of the payload; 0 bytes: the tensor is absent
    int64_t  n_outer, n_heads, n_records, n_dense;
    int64_t  outer_stride, head_stride, record_stride; // elements
} life_tensor;

typedef struct life_layer {
    uint32_t            shape;
    const rssm_problem *problem; // T is not meaningful
    life_tensor         state, x_ring, B_ring, dt_ring, x, z, B, C, dt, out, A, D, dt_bias;
    double              A_of[LIFE_HEADS], D_of[LIFE_HEADS], bias_of[LIFE_HEADS];
    size_t              model_at; // of its first head in a sequence's arrays
} life_layer;

typedef struct life_group {
    rssm_window      window;
    bool             refuses_duplicates;
    rssm_group      *group;
    rssm_layers     *layers;
    const rssm_plan *plans[LIFE_SHAPES];
    rssm_problem     problems[LIFE_SHAPES];
} life_group;

typedef enum life_array {
    // What is read back between the calls of an event comes first.
    LIFE_CURSORS,
    LIFE_DESCRIPTORS,
    LIFE_ISSUES,
    LIFE_N_CONTROL,
    LIFE_SLOT_ARRAY = LIFE_N_CONTROL,
    LIFE_TOKEN_COUNTS,
    LIFE_CU_SEQLENS,
    LIFE_ACCEPTED,
    LIFE_FORCED,
    LIFE_EPOCHS,
    LIFE_REQUESTS,
    LIFE_SOURCES,
    LIFE_DESTINATIONS,
    LIFE_COUNTS,
    LIFE_POSITIONS,
    LIFE_NONCES,
    LIFE_MOVES,
    LIFE_VALUES,
    LIFE_SCRATCH,
    LIFE_STAGING,
    LIFE_TABLES,
    LIFE_N_ARRAYS,
} life_array;

typedef struct life_interval {
    size_t from, to;
} life_interval;

enum { LIFE_DIRTY_MAX = 512 };

typedef struct life_world {
    const life_calls   *calls;
    const life_variant *variant;
    const life_memory  *memory;
    int32_t             window, ring; // of all groups: L and R
    rssm_context       *context;
    uint32_t            device;
    bool                on_gpu;
    rssm_diag          *diag;
    rssm_verify_random  random;
    life_decoder        decoder;
    life_pool           pools[LIFE_N_POOLS];
    life_pool           stored_states; // LIFE_POOL_STATE rounded to the checkpoint's format

    rssm_problem shapes[LIFE_SHAPES];
    life_layer   layers[LIFE_LAYERS];
    life_group   groups[LIFE_GROUPS];
    life_tensor  arrays[LIFE_N_ARRAYS];
    size_t       n_model; // doubles of a sequence's state

    size_t         n_bytes, control_bytes;
    unsigned char *arena; // device
    unsigned char *image, *actual;
    life_interval  dirty[LIFE_DIRTY_MAX];
    uint32_t       n_dirty;
    uint64_t       salt;
    uint64_t       event; // for sentences
} life_world;

// The machine is the caller's. The same seed and variant give the same parameters and tokens in any memory. Destroy
// accepts half-built worlds.
rssm_status life_world_create(life_world *w, const life_machine *machine, const life_variant *variant,
                              const life_memory *memory, uint64_t seed, rssm_diag *diag);
void        life_world_destroy(life_world *w);

// Offset of a run in the image; its bytes; device address of an array or tensor (NULL: absent).
static inline size_t life_at(const life_tensor *t, int64_t outer, int64_t head, int64_t record)
{
    return t->offset +
           (size_t)(outer * t->outer_stride + head * t->head_stride + record * t->record_stride) * t->element_bytes;
}

static inline size_t life_run_bytes(const life_tensor *t)
{
    return (size_t)t->n_dense * t->element_bytes;
}

static inline void *life_device(const life_world *w, const life_tensor *t)
{
    return t->bytes ? w->arena + t->offset : NULL;
}

static inline void *life_device_array(const life_world *w, life_array which)
{
    return life_device(w, &w->arrays[which]);
}

// Element i of an array, in the image.
static inline void *life_entry(life_world *w, life_array which, size_t i)
{
    return w->image + w->arrays[which].offset + i * w->arrays[which].element_bytes;
}

// Host writes: into the image, and to the device at the next life_flush.
void life_dirty(life_world *w, size_t offset, size_t n);
void life_write(life_world *w, size_t offset, const void *bytes, size_t n);
void life_write_entry(life_world *w, life_array which, size_t i, const void *bytes);
void life_poison(life_world *w, size_t offset, size_t n); // with NaN patterns of every format
void life_poison_array(life_world *w, life_array which);
void life_poison_run(life_world *w, const life_tensor *t, int64_t outer, int64_t head, int64_t record);
// The whole of slot `slot` in all layers: records only, or the checkpoint as well.
void life_poison_record(life_world *w, int32_t slot, int32_t record);
void life_poison_checkpoint(life_world *w, int32_t slot);

rssm_status life_flush(life_world *w);

// Waits and reads back: the control arrays, or everything. Then compares what came back with the image.
rssm_status life_fetch(life_world *w, bool everything);
rssm_status life_compare(life_world *w, bool everything);

// What the library wrote and was checked, or may write as it likes.
void life_adopt(life_world *w, size_t offset, size_t n);

// A difference, as a sentence in the diag. Returns RSSM_E_WRONG_RESULT.
rssm_status life_wrong(life_world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

// A call that must succeed.
rssm_status life_expect_ok(life_world *w, rssm_status status, const char *call);

#endif
