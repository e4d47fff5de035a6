// replayssm: tuned decode kernels for layers that keep a state (Mamba-2; Gated DeltaNet and KDA follow).
//
// A step reads an old checkpoint of the state and the last few inputs (a ring of records), computes outputs from
// both, and writes the state once per window of L tokens instead of once per token. Which kernel does that fastest
// depends on the model's shape, the window, the number formats and the machine; `replayssm-tune` measures it once and
// keeps the answer in a database, and this library launches that answer.
//
// Plan slowly, launch fast:
//
//     rssm_context *context;  rssm_group *group;
//     rssm_context_options copt = RSSM_CONTEXT_OPTIONS_INIT;
//     rssm_context_open(&copt, &context, &diag);                  // finds devices, templates and threads
//     rssm_group_options gopt = RSSM_GROUP_OPTIONS_INIT;          // the model's layer shapes, slots and window
//     rssm_group_create(context, &gopt, &group, &diag);           // reads the databases, builds and loads kernels
//     const rssm_plan *plan = rssm_group_plan(group, 0);          // one per layer shape
//     for each model step {
//         rssm_advance(group, &advance, stream);                  // commits the last window, opens this one
//         for each layer rssm_step(plan, &step, stream);          // no lock, no allocation, no file, no system call
//     }
//
// Memory: checkpoints, rings, cursors and descriptors belong to the host; rssm_layout_get says how large they are.
// Every pointer in an argument struct is a device pointer of the group's device (on the CPU: an ordinary pointer; give
// large tensors huge pages there, as 4 KiB pages cost up to half the bandwidth).
//
// Conventions. Functions return a status; 0 is RSSM_OK. `out_*` parameters come last and are written on success only.
// A rssm_diag, where taken, may be NULL; on failure it holds one sentence: the thing, the cause, the remedy. Structs
// begin with `struct_size`; initialise them with their _INIT macro, so that later versions can add fields. Strides
// count elements. Handles are opaque; destroy functions take NULL.
//
// Threads. "Thread-safe": callable from any thread at any time. "Caller serialises": not for the same object at once.
#ifndef REPLAYSSM_H
#define REPLAYSSM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define RSSM_API
#else
#define RSSM_API __attribute__((visibility("default")))
#endif

#define RSSM_VERSION_MAJOR 0
#define RSSM_VERSION_MINOR 1
#define RSSM_VERSION_PATCH 0

// The version of the library, as "major.minor.patch". Thread-safe; the string is static.
RSSM_API const char *rssm_version(void);

// ---------------------------------------------------------------------------------------------------------- status

// X(name, value, text). Also the exit codes of replayssm-tune. 1-19 caller, 20-39 environment, 40-59 data,
// 60-79 compilation, 80-99 device.
#define RSSM_STATUS_LIST(X)                                                                       \
    X(OK, 0, "success")                                                                           \
    X(E_INVALID_ARGUMENT, 2, "an argument is not valid")                                          \
    X(E_UNSUPPORTED, 3, "this combination is not supported")                                      \
    X(E_NOT_IMPLEMENTED, 4, "this operation is not built yet")                                    \
    X(E_STRUCT_SIZE, 5, "struct_size is not one this version knows")                              \
    X(E_NO_MEMORY, 20, "out of memory")                                                           \
    X(E_IO, 21, "a file could not be read or written")                                            \
    X(E_PERMISSION, 22, "permission denied")                                                      \
    X(E_NOT_FOUND, 23, "not found")                                                               \
    X(E_READ_ONLY, 24, "the location is read-only")                                               \
    X(E_NO_COMPILER, 25, "no compiler for this backend was found")                                \
    X(E_NO_DEVICE, 26, "no such device")                                                          \
    X(E_TIMEOUT, 27, "the deadline passed")                                                       \
    X(E_BUSY, 28, "the resource is in use")                                                       \
    X(E_CORRUPT, 40, "the data is damaged")                                                       \
    X(E_FOREIGN, 41, "the file is not one of ours")                                               \
    X(E_TOO_NEW, 42, "the data was written by a newer version")                                   \
    X(E_MANIFEST, 43, "a kernel manifest is not valid")                                           \
    X(E_MODEL, 44, "a model configuration is not valid")                                          \
    X(E_MISS, 45, "no tuned kernel for this problem")                                             \
    X(E_COMPILE, 60, "a kernel did not compile")                                                  \
    X(E_MISMATCH, 61, "a kernel and its manifest disagree")                                       \
    X(E_DEVICE, 80, "the device reported an error")                                               \
    X(E_DEVICE_MEMORY, 81, "out of device memory")                                                \
    X(E_DEVICE_LOST, 82, "the device was lost")                                                   \
    X(E_DRIVER, 83, "the device driver is missing or too old")                                    \
    X(E_WRONG_RESULT, 84, "a kernel's results are outside the error bound")

typedef enum rssm_status {
#define RSSM_STATUS_ENUM(name, value, text) RSSM_##name = value,
    RSSM_STATUS_LIST(RSSM_STATUS_ENUM)
#undef RSSM_STATUS_ENUM
} rssm_status;

// Name ("RSSM_E_IO") and text of a status; "unknown status" for any other value. Thread-safe; static strings.
RSSM_API const char *rssm_status_name(rssm_status status);
RSSM_API const char *rssm_status_text(rssm_status status);

// What went wrong, in the caller's memory.
typedef struct rssm_diag {
    rssm_status code;
    int         line;          // of this library's source, for reports
    const char *file;          // static
    char        text[1024];    // one sentence, NUL-terminated, cut if longer
} rssm_diag;

// --------------------------------------------------------------------------------------------------------- problem

typedef enum rssm_recurrence { RSSM_MAMBA2 = 0, RSSM_GDN = 1, RSSM_KDA = 2 } rssm_recurrence;

typedef enum rssm_dtype {
    RSSM_F32 = 0,
    RSSM_BF16 = 1,
    RSSM_F16 = 2,
    RSSM_FP8_E4M3 = 3,   // with one fp32 scale per state row
    RSSM_INT8 = 4,       // likewise
    RSSM_NVFP4 = 5,      // read copies only
} rssm_dtype;

typedef enum rssm_checkpoint_mode {
    RSSM_CHECKPOINT_SHARED = 0,     // one stored copy, read by every step
    RSSM_CHECKPOINT_SEPARATE = 1,   // a recurrence copy read by folds, and a low-precision copy read by other steps
} rssm_checkpoint_mode;

typedef enum rssm_rounding { RSSM_NEAREST = 0, RSSM_STOCHASTIC = 1 } rssm_rounding;

enum {
    RSSM_PROBLEM_EAGER_16BIT = 1u << 0,   // consent to rounding a 16-bit state at every token where that is faster
};

// One layer shape and how it is stored. Zero-initialise through RSSM_PROBLEM_INIT and set what differs.
typedef struct rssm_problem {
    uint32_t struct_size;
    uint32_t recurrence;         // rssm_recurrence
    uint32_t n_heads;            // H (value heads)
    uint32_t n_groups;           // G of B and C (key heads for GDN / KDA); divides n_heads
    uint32_t head_dim;           // P
    uint32_t state_size;         // N
    uint32_t window;             // L: a fold every L tokens
    uint32_t max_tokens;         // T: most tokens of a row in one step; 1 = standard decode
    uint32_t ring_length;        // R of the memory; 0: the least that serves L and T (L where T = 1, else L + T)
    uint32_t activation_dtype;   // x, z, B, C, out and the x and B rings: RSSM_F32, RSSM_BF16, RSSM_F16
    uint32_t dt_dtype;           // raw dt: RSSM_F32 or the activation's
    uint32_t parameter_dtype;    // D and dt_bias: RSSM_F32 or the activation's. A is always fp32
    uint32_t checkpoint_mode;    // rssm_checkpoint_mode
    uint32_t checkpoint_dtype;   // of the shared or the recurrence copy
    uint32_t read_dtype;         // of the read copy; separate mode only
    uint32_t rounding;           // rssm_rounding of checkpoint_dtype
    uint32_t philox_rounds;      // 0: 7; stochastic rounding only
    uint32_t dt_softplus;        // not 0: dt = softplus(dt + bias)
    uint32_t flags;              // RSSM_PROBLEM_*
} rssm_problem;
#define RSSM_PROBLEM_INIT {sizeof(rssm_problem), 0, 0, 1, 0, 0, 16, 1, 0, RSSM_BF16, RSSM_BF16, RSSM_F32, 0, RSSM_F32, 0, 0, 0, 1, 0}

// Checks a problem by itself: ranges, divisibility, capacity. Returns RSSM_E_INVALID_ARGUMENT or
// RSSM_E_UNSUPPORTED with the reason in `diag`. Thread-safe.
RSSM_API rssm_status rssm_problem_check(const rssm_problem *problem, rssm_diag *diag);

// The native, head-major memory layout of one layer. A host with its own strides needs only the sizes.
typedef struct rssm_layout {
    uint32_t struct_size;
    uint32_t ring_length;                // R, resolved
    uint64_t state_bytes;                // per slot: checkpoint [H][P][N]
    uint64_t x_ring_bytes;               // per slot: [H][R][P] of the activation type
    uint64_t B_ring_bytes;               // per slot: [G][R][N] of the activation type
    uint64_t dt_ring_bytes;              // per slot: [H][R] of fp32
    int64_t  state_slot_stride;          // elements between slots, here and below
    int64_t  x_slot_stride, x_head_stride, x_record_stride;
    int64_t  B_slot_stride, B_head_stride, B_record_stride;
    int64_t  dt_slot_stride, dt_head_stride, dt_record_stride;
    uint64_t cursor_bytes;               // per slot and group
    uint64_t descriptor_bytes;           // per row and group
    uint64_t scratch_bytes_per_row;      // per row of the largest batch, shared by all layers; 0: none needed
} rssm_layout;
#define RSSM_LAYOUT_INIT {sizeof(rssm_layout), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

// Returns RSSM_OK, what rssm_problem_check returns, or RSSM_E_NOT_IMPLEMENTED where the layout has no fields for it yet
// (GDN, KDA, 8-bit and separate checkpoints). Thread-safe.
RSSM_API rssm_status rssm_layout_get(const rssm_problem *problem, rssm_layout *out_layout, rssm_diag *diag);

// --------------------------------------------------------------------------------------------------------- context

typedef struct rssm_context rssm_context;
typedef struct rssm_group   rssm_group;
typedef struct rssm_plan    rssm_plan;

typedef enum rssm_log_level { RSSM_LOG_ERROR, RSSM_LOG_WARN, RSSM_LOG_INFO, RSSM_LOG_DEBUG } rssm_log_level;
typedef void rssm_log_fn(void *user, rssm_log_level level, const char *text);

// What to do for a problem that the databases do not answer.
typedef enum rssm_miss_policy {
    RSSM_MISS_COMPILE = 0,   // build the manifest's default now, if a compiler is found; else a built-in kernel
    RSSM_MISS_BUILTIN = 1,   // never compile: use a built-in kernel, or a compiled one from a database
    RSSM_MISS_FAIL = 2,      // RSSM_E_MISS
} rssm_miss_policy;

typedef struct rssm_context_options {
    uint32_t     struct_size;
    uint32_t     miss_policy;      // rssm_miss_policy
    const char  *database;         // user database file; NULL: $RSSM_DATABASE, else the XDG data directory's
    const char  *template_dir;     // NULL: $RSSM_TEMPLATE_DIR, else the templates inside the library
    uint32_t     n_threads;        // CPU backend: worker threads including the caller; 0: one per usable core
    uint32_t     reserved;
    rssm_log_fn *log;              // NULL: silent. Called from plan creation only, never from a launch
    void        *log_user;
} rssm_context_options;
#define RSSM_CONTEXT_OPTIONS_INIT {sizeof(rssm_context_options), 0, NULL, NULL, 0, 0, NULL, NULL}

// Finds devices, templates and threads; `options` NULL: all defaults. Databases are read when a group is made: a missing,
// damaged or foreign one is reported through the log and treated as empty, it never takes the host down. Returns
// RSSM_E_NO_MEMORY, RSSM_E_STRUCT_SIZE, RSSM_E_MANIFEST for a bad template folder. Thread-safe.
RSSM_API rssm_status rssm_context_open(const rssm_context_options *options, rssm_context **out_context,
                                       rssm_diag *diag);

// Destroys a context. All its groups must be destroyed before. Caller serialises.
RSSM_API void rssm_context_close(rssm_context *context);

typedef enum rssm_backend { RSSM_CPU = 0, RSSM_CUDA = 1 } rssm_backend;

typedef struct rssm_device_info {
    uint32_t struct_size;
    uint32_t backend;            // rssm_backend
    char     name[128];
    char     arch[64];           // "x86-64-v4", "sm_90a": what kernels are compiled for
    uint32_t n_units;            // cores or multiprocessors
    uint32_t reserved;
    uint64_t cache_bytes;        // last-level cache
    uint64_t memory_bytes;
} rssm_device_info;
#define RSSM_DEVICE_INFO_INIT {sizeof(rssm_device_info), 0, "", "", 0, 0, 0, 0}

// Devices are numbered from 0: GPUs first, the CPU last. Thread-safe.
RSSM_API uint32_t    rssm_device_count(const rssm_context *context);
RSSM_API rssm_status rssm_device_get(const rssm_context *context, uint32_t device, rssm_device_info *out_info);

// ----------------------------------------------------------------------------------------------------------- group

// A cursor and a descriptor, for hosts that read or fill them; layouts as in templates/abi/cursor.h.
typedef struct rssm_cursor_record {
    int32_t  start, h, pending_t, pending_mode;
    uint32_t epoch;
    int32_t  invalid;
    uint64_t pos, nonce;
} rssm_cursor_record;

typedef struct rssm_descriptor_record {
    int32_t  slot;    // < 0: null row
    int32_t  token;   // first token of the row in the activations; < 0: it has none there
    int16_t  start, h, t;
    int16_t  mode;    // 0 none, 1 append, 2 fold history, 3 fold all
    uint64_t pos, nonce;
} rssm_descriptor_record;

typedef enum rssm_eager_policy {
    RSSM_EAGER_AUTO = 0,     // per batch bucket, whichever the measurements say is faster
    RSSM_EAGER_NEVER = 1,
    RSSM_EAGER_ALWAYS = 2,   // the conventional step, for comparison
} rssm_eager_policy;

// The layers of a model that share slots, cursors and window: one entry per distinct layer shape. L, T and R must be
// the same in all of them.
typedef struct rssm_group_options {
    uint32_t            struct_size;
    uint32_t            device;          // index of rssm_device_get
    const rssm_problem *problems;        // [n_problems], copied
    const uint32_t     *layer_counts;    // [n_problems] layers of each shape; NULL: one each. Weighs the choice of mode
    uint32_t            n_problems;
    uint32_t            n_slots;
    uint32_t            max_rows;        // largest batch; plans are made for every bucket up to it
    uint32_t            eager;           // rssm_eager_policy
    void               *cursors;         // [n_slots] of cursor_bytes, zeroed by the host, on the device
    uint32_t            debug;           // not 0: advance also checks for duplicate slots
    uint32_t            steps_only;      // not 0: no kernels for the life of a slot; those calls then fail
} rssm_group_options;
#define RSSM_GROUP_OPTIONS_INIT {sizeof(rssm_group_options), 0, NULL, NULL, 0, 0, 0, 0, NULL, 0, 0}

// Chooses, builds and loads kernels for every problem and batch bucket; may read files and run a compiler for
// seconds. Keeps no database open. Returns RSSM_E_MISS under RSSM_MISS_FAIL, RSSM_E_UNSUPPORTED,
// RSSM_E_INVALID_ARGUMENT, RSSM_E_NO_MEMORY, RSSM_E_COMPILE. Thread-safe.
RSSM_API rssm_status rssm_group_create(rssm_context *context, const rssm_group_options *options,
                                       rssm_group **out_group, rssm_diag *diag);

// Destroys a group and its plans. No launch of it may be running. Caller serialises.
RSSM_API void rssm_group_destroy(rssm_group *group);

// The plan of problem `index`; NULL if there is none. Immutable; lives as long as the group. Thread-safe.
RSSM_API const rssm_plan *rssm_group_plan(const rssm_group *group, uint32_t index);

typedef struct rssm_advance_args {
    uint32_t       struct_size;
    uint32_t       n_rows;        // batch, 0 .. max_rows
    const int32_t *slots;         // [n_rows]
    const int32_t *tokens;        // [n_rows] tokens of each row, 0 .. T; NULL: T each
    const int32_t *cu_seqlens;    // [n_rows + 1] packed first tokens; NULL: dense, row i begins at token i * T
    const int32_t *accepted;      // [n_rows] accepted tokens of the slot's previous step; NULL: all
    const uint8_t *forced;        // [n_rows] not 0: fold in this step; NULL: none
    const uint32_t *epochs;       // [n_rows] the sequence's admission number; a change resets the slot; NULL: no check
    void          *descriptors;   // [n_rows] of descriptor_bytes, out
    uint32_t      *issues;        // one word of RSSM_ISSUE bits, OR-ed into; NULL: not wanted
    int32_t        pad_slot;      // slot value of null rows
    uint32_t       reserved;
} rssm_advance_args;
#define RSSM_ADVANCE_ARGS_INIT {sizeof(rssm_advance_args), 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, -1, 0}

// Commits every row's previous step, opens this one and writes descriptors, rows that fold first: one launch for the
// whole group. Asynchronous on GPUs, done on return on the CPU. Captures into graphs. Returns
// RSSM_E_INVALID_ARGUMENT, RSSM_E_DEVICE. Threads: caller serialises per group.
RSSM_API rssm_status rssm_advance(const rssm_group *group, const rssm_advance_args *args, void *stream);

// The two halves alone, for hosts that learn the accepted counts later. `descriptors` is not used by commit.
RSSM_API rssm_status rssm_commit(const rssm_group *group, const rssm_advance_args *args, void *stream);
RSSM_API rssm_status rssm_open(const rssm_group *group, const rssm_advance_args *args, void *stream);

// Words for RSSM_ISSUE bits, e.g. "slot out of range; capacity". Writes at most n bytes with the NUL. Thread-safe.
RSSM_API void rssm_issues_text(uint32_t issues, char *out_text, size_t n);

// ------------------------------------------------------------------------------------------------------------ step

typedef struct rssm_token_tensor {   // [token][head or group][dense]
    void   *data;
    int64_t token_stride, head_stride;
} rssm_token_tensor;

typedef struct rssm_state_tensor {   // [slot][head][head_dim][state_size], dense within a slot
    void   *data;
    int64_t slot_stride;
} rssm_state_tensor;

typedef struct rssm_ring_tensor {    // [slot][head or group][record][dense], any order of head and record
    void   *data;
    int64_t slot_stride, head_stride, record_stride;
} rssm_ring_tensor;

typedef struct rssm_step_args {
    uint32_t          struct_size;
    uint32_t          n_rows;
    const void       *descriptors;   // [n_rows], from rssm_advance or filled by the host
    rssm_token_tensor x, z;          // [token][H][P]; z.data NULL: no gate
    rssm_token_tensor B, C;          // [token][G][N]
    rssm_token_tensor dt;            // [token][H], raw
    rssm_token_tensor out;           // [token][H][P]; zeros for null rows
    const float      *A;             // [H]
    const void       *D, *dt_bias;   // [H]; NULL: none
    rssm_state_tensor state;
    rssm_ring_tensor  x_ring, B_ring, dt_ring;
    void             *scratch;       // scratch_bytes_per_row * n_rows, 256-byte aligned; NULL where that is 0
} rssm_step_args;
#define RSSM_STEP_ARGS_INIT {sizeof(rssm_step_args), 0, NULL, {NULL, 0, 0}, {NULL, 0, 0}, {NULL, 0, 0}, {NULL, 0, 0}, {NULL, 0, 0}, {NULL, 0, 0}, NULL, NULL, NULL, {NULL, 0}, {NULL, 0, 0, 0}, {NULL, 0, 0, 0}, {NULL, 0, 0, 0}, NULL}

// One layer's decode step. At most two launches, nothing else: no allocation, lock, file, log or system call beyond
// the driver's launch. Asynchronous on GPUs; on the CPU the call returns when the outputs are written and `stream`
// must be NULL. Captures into graphs. Returns RSSM_E_INVALID_ARGUMENT for more rows than the group was made for, a
// null pointer that is needed or a misaligned one; RSSM_E_DEVICE. Thread-safe for different slots and outputs.
RSSM_API rssm_status rssm_step(const rssm_plan *plan, const rssm_step_args *args, void *stream);

// ----------------------------------------------------------------------------------------------- the life of a slot
//
// What happens to slots between steps: a sequence is admitted (reset, encode), forked or given to a prefix cache (copy,
// materialize), cut back (truncate), abandoned (invalidate), moved to another host (export, import). Each of these is one
// launch for the cursors and, where memory moves, one for all layers of a shape; asynchronous on GPUs, done on return on
// the CPU. All but export and import capture into graphs. They see committed records only: commit first. (Copy alone takes
// an uncommitted step along, to be committed in both slots.)

// Where one layer keeps its slots.
typedef struct rssm_layer {
    uint32_t          plan;        // index of its shape among the group's problems
    uint32_t          reserved;
    rssm_state_tensor state;
    rssm_ring_tensor  x_ring, B_ring, dt_ring;
    const float      *A;           // [H] on the device
} rssm_layer;
#define RSSM_LAYER_INIT {0, 0, {NULL, 0}, {NULL, 0, 0, 0}, {NULL, 0, 0, 0}, {NULL, 0, 0, 0}, NULL}

// The layers of a group, checked once and known to the device through a table there.
typedef struct rssm_layers rssm_layers;

// Bytes of the device table of n layers.
RSSM_API size_t rssm_layers_table_bytes(uint32_t n_layers);

// `layers` [n_layers] is copied; `table` is device memory of rssm_layers_table_bytes, 16-byte aligned, that lives as long
// as the result. Waits for the device. The group must outlive it. Returns RSSM_E_INVALID_ARGUMENT (a null or misaligned
// pointer, a stride that lets slots overlap), RSSM_E_NO_MEMORY, RSSM_E_DEVICE. Thread-safe.
RSSM_API rssm_status rssm_layers_create(const rssm_group *group, const rssm_layer *layers, uint32_t n_layers, void *table,
                                        rssm_layers **out_layers, rssm_diag *diag);
RSSM_API void        rssm_layers_destroy(rssm_layers *layers);

// Requests. All pointers are device pointers; which arrays an operation reads is said with it. No slot may be the
// destination of one request and take part in another of the same call.
typedef struct rssm_slot_args {
    uint32_t        struct_size;
    uint32_t        n_rows;              // most requests, 0 .. max_rows
    const int32_t  *requests;            // [n_rows] compacted list: indices into the arrays, ended by -1; NULL: 0, 1, 2, ...
    const int32_t  *source_slots;
    const int32_t  *destination_slots;
    const int32_t  *counts;
    const uint32_t *epochs;              // of the destinations' sequences; NULL: kept; copy: the sources'
    const uint64_t *positions;
    const uint64_t *nonces;              // NULL: reset takes the epoch; copy and materialize the sources'
    void           *moves;               // [n_rows] of 32 bytes, 16-byte aligned: scratch of copy and materialize
    uint32_t       *issues;              // one word of RSSM_ISSUE bits, OR-ed into; NULL: not wanted
    int32_t         pad_slot;            // a request with this slot is skipped
    uint32_t        reserved;
} rssm_slot_args;
#define RSSM_SLOT_ARGS_INIT {sizeof(rssm_slot_args), 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, -1, 0}

// A new sequence in each destination slot, with `positions` (NULL: 0) tokens in its checkpoint and `counts` (NULL: 0)
// records in its rings from index 0 on. Cursors only: the checkpoint comes from rssm_encode.
// For all of these: RSSM_E_INVALID_ARGUMENT, RSSM_E_STRUCT_SIZE, RSSM_E_DEVICE; a request that cannot be met (slot out of
// range, too many records, an invalid slot, a step not committed) changes nothing and sets its bit in `issues`.
// Threads: caller serialises per group.
RSSM_API rssm_status rssm_reset(const rssm_group *group, const rssm_slot_args *args, void *stream);

// Drops the newest records of each destination slot, so that `positions` tokens remain; refused (RSSM_ISSUE_POSITION) for
// a token that is folded already.
RSSM_API rssm_status rssm_truncate(const rssm_group *group, const rssm_slot_args *args, void *stream);

// Marks destination slots as no state (a step or a transfer was abandoned half-way): steps refuse them until reset,
// copied into or imported.
RSSM_API rssm_status rssm_invalidate(const rssm_group *group, const rssm_slot_args *args, void *stream);

// Checkpoint, scales, live records and cursor of each source slot to its destination slot, in all layers.
RSSM_API rssm_status rssm_copy(const rssm_layers *layers, const rssm_slot_args *args, void *stream);

// Folds the first `counts` committed records of each source slot into the checkpoint of its destination slot, in all
// layers, with the bits that a flush of these records would have written; 0 copies the checkpoint. The destination then
// holds no record, and the source is untouched; where both are the same slot, its later records stay.
RSSM_API rssm_status rssm_materialize(const rssm_layers *layers, const rssm_slot_args *args, void *stream);

typedef struct rssm_state_args {
    uint32_t       struct_size;
    uint32_t       n_rows;         // 0 .. max_rows
    const int32_t *slots;          // [n_rows] on the device; pad_slot and slots out of range are skipped
    float         *values;         // [n_rows][H][P][N] on the device; encode: NULL means zeros
    int64_t        value_stride;   // elements between rows of `values`
    int32_t        pad_slot;
    uint32_t       reserved;
} rssm_state_args;
#define RSSM_STATE_ARGS_INIT {sizeof(rssm_state_args), 0, NULL, NULL, 0, -1, 0}

// Prefill states of layer `layer` into stored form, and back. Cursors are not touched: reset the slots once per group.
RSSM_API rssm_status rssm_encode(const rssm_layers *layers, uint32_t layer, const rssm_state_args *args, void *stream);
RSSM_API rssm_status rssm_decode(const rssm_layers *layers, uint32_t layer, const rssm_state_args *args, void *stream);

// One slot of all layers as one blob of host memory: self-describing, independent of strides, ring length and window,
// guarded by a checksum. For offload to the host, preemption and migration.
typedef struct rssm_transfer_args {
    uint32_t struct_size;
    int32_t  slot;
    uint32_t epoch;       // import: of the sequence in the slot from now on
    uint32_t reserved;
    void    *staging;     // device memory of rssm_blob_bytes, 256-byte aligned; unused on the CPU
    void    *stream;
} rssm_transfer_args;
#define RSSM_TRANSFER_ARGS_INIT {sizeof(rssm_transfer_args), 0, 0, 0, NULL, NULL}

// The most bytes a blob of these layers takes; also of the staging memory.
RSSM_API size_t rssm_blob_bytes(const rssm_layers *layers);

// Waits for the stream. Export: RSSM_E_INVALID_ARGUMENT for a slot out of range, invalid or with an uncommitted step, or a
// buffer that is too small; RSSM_E_CORRUPT for a cursor that cannot be. Import checks everything first: RSSM_E_CORRUPT (damaged), RSSM_E_FOREIGN (not a blob),
// RSSM_E_TOO_NEW, RSSM_E_UNSUPPORTED (of another problem, or more records than the ring holds); the slot is then as it
// was. An import that fails later, on the device, leaves the slot invalid. Threads: caller serialises per group.
RSSM_API rssm_status rssm_export(const rssm_layers *layers, const rssm_transfer_args *args, void *out_blob,
                                 size_t capacity, size_t *out_bytes, rssm_diag *diag);
RSSM_API rssm_status rssm_import(const rssm_layers *layers, const rssm_transfer_args *args, const void *blob,
                                 size_t n_bytes, rssm_diag *diag);

// --------------------------------------------------------------------------------------------------- introspection

// Which rung of the ladder answered.
typedef enum rssm_match {
    RSSM_MATCH_EXACT = 0,         // tuned on this kind of device for this problem and bucket
    RSSM_MATCH_NEIGHBOUR = 1,     // tuned for another batch bucket
    RSSM_MATCH_SAME_ARCH = 2,     // tuned on another device of the same architecture
    RSSM_MATCH_DEFAULT = 3,       // the manifest's default, compiled here
    RSSM_MATCH_BUILTIN = 4,       // a generic kernel inside the library
} rssm_match;

typedef struct rssm_plan_info {
    uint32_t struct_size;
    uint32_t match;            // rssm_match
    uint32_t batch_bucket;     // the bucket that serves this batch
    uint32_t eager;            // not 0: the conventional step runs in this bucket
    uint32_t stale;            // not 0: the row is usable but was measured under another driver or compiler
    uint32_t n_launches;       // per step
    double   median_ns;        // measured window average of one step; 0: never measured
    char     candidate[256];   // "mamba2_step_rows ROWS=16 VEC=16": template and config
    char     source[256];      // database layer, or why there is none
} rssm_plan_info;
#define RSSM_PLAN_INFO_INIT {sizeof(rssm_plan_info), 0, 0, 0, 0, 0, 0.0, "", ""}

// What serves a batch of n_rows. Returns RSSM_E_INVALID_ARGUMENT if n_rows is 0 or above max_rows. Thread-safe.
RSSM_API rssm_status rssm_plan_info_get(const rssm_plan *plan, uint32_t n_rows, rssm_plan_info *out_info);

#ifdef __cplusplus
}
#endif

#endif
