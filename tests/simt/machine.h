// The machine's state, shared by the emulator's own files. See emulator.h for what it is.
//
// Order ("happens before") is kept in vector clocks: one component per thread of the block, one for the engine that
// makes asynchronous copies and one for the launch before this one. Every access leaves a record in the shadow of each
// byte; a conflicting access that the record is not ordered before is a race, whatever the order they ran in.
//
// Invariants
//   M1  A thread's own component grows whenever it passes something on (barrier, arrival, commit), so that what it does
//       next is not taken for ordered.
//   M2  Records are never cleared: an owner of an earlier block is past for shared memory, and for global memory past
//       unless a dependent launch has not waited (referee.c).
#ifndef RSSM_SIMT_MACHINE_H
#define RSSM_SIMT_MACHINE_H

#include "tests/simt/device.h"
#include "tests/simt/emulator.h"

enum {
    ARENA_BYTES = 192 << 20,
    DYNAMIC_AT = 4096,         // of dynamic shared memory in the arena
    DYNAMIC_BYTES = 256 << 10, // more than any device has
    STATIC_AT = 512 << 10,     // where shadows of static shared memory are
    STATIC_BYTES = 256 << 10,
    GLOBAL_AT = 1 << 20,
    GUARD_BYTES = 4096,
    SHARED_SKEW = 16, // dynamic shared memory is promised an alignment of 16 and gets no more
    THREADS_MAX = 1024,
    BARRIERS = 16,
    MBARRIERS = 128,
    STACK_BYTES = 256 << 10,
};

// State of a byte.
enum {
    BYTE_EXISTS = 1,
    BYTE_WRITTEN = 2,
    BYTE_ARRIVING = 4, // target of a copy that has not been waited for
    BYTE_LEAVING = 8,  // source of one
};

// One access. Owner: number of the block << 11 | thread; the two pseudo-threads come after the block's own.
typedef struct simt_record {
    uint32_t site;  // 0: none
    uint32_t clock; // the owner's own component then; top bit: atomic
    uint32_t owner;
} simt_record;

enum { ATOMIC_BIT = 1u << 31, OWNER_THREAD_BITS = 11, ENGINE = 1025, PREVIOUS = 1026, READERS = 3 };

typedef struct simt_shadow {
    simt_record write, reads[READERS]; // the last plain write; plain reads and atomics since, packed to the front
} simt_shadow;

typedef enum simt_state {
    SIMT_READY,
    SIMT_AT_WARP,
    SIMT_AT_BARRIER,
    SIMT_AT_MBARRIER,
    SIMT_SPINNING,
    SIMT_DONE
} simt_state;

typedef struct simt_thread {
    void          *stack_pointer; // of a fiber that does not run
    unsigned char *stack;         // [STACK_BYTES], above a guard page
    void          *fake_stack;    // AddressSanitizer's
    uint32_t       index;
    simt_state     state;
    uint32_t       site;                   // of what it waits for
    simt_warp_op  *op;                     // SIMT_AT_WARP
    uint32_t       barrier;                // SIMT_AT_BARRIER: id
    uint32_t       parity;                 // SIMT_AT_MBARRIER
    void          *mbarrier;               // likewise
    uint32_t      *clock;                  // [simt.n_components]
    uint32_t       fenced;                 // own clock at the last proxy fence
    uint32_t       copy_group, bulk_group; // numbers of the groups that are open
} simt_thread;

typedef struct simt_barrier_state {
    uint32_t  expected, arrived; // threads; 0: nobody has come
    uint32_t  site;
    uint32_t *clock; // [n_components] of those that came
} simt_barrier_state;

typedef struct simt_mbarrier {
    void     *object; // NULL: free entry
    uint32_t  expected, pending;
    int64_t   bytes; // announced and not yet arrived
    uint32_t  phase; // completed phases
    uint32_t  init_thread, init_clock, init_site;
    bool      fenced;       // its initialisation was passed on to the copy engine
    uint32_t *clock, *past; // [n_components] of this phase's arrivals; of the last completed one
    int32_t  *seen;         // [threads] number of the last phase a thread has passed; -2: none
} simt_mbarrier;

typedef enum simt_copy_kind { COPY_ASYNC, COPY_BULK_LOAD, COPY_BULK_STORE } simt_copy_kind;

typedef struct simt_copy {
    simt_copy_kind       kind;
    unsigned char       *to;
    const unsigned char *from;
    uint32_t             n, n_read, thread, group, site;
    bool                 moved; // bulk stores: the source has been read and may change
    simt_mbarrier       *mbarrier;
    struct simt_copy    *next;
} simt_copy;

typedef struct simt_machine {
    unsigned char       *arena;
    unsigned char       *state;   // [ARENA_BYTES]
    simt_shadow         *shadow;  // [ARENA_BYTES]
    size_t               used;    // of the arena
    unsigned char       *statics; // static shared memory of the kernel that runs, [n_statics]
    size_t               n_statics;
    const unsigned char *image, *image_end; // its loaded object: constants may be read

    const simt_kernel *kernel;
    void (*entry)(const void *args);
    const void         *args; // the struct's bytes may be read: a fiber begins by copying it
    size_t              n_args;
    simt_launch_options options;
    uint32_t            n_threads, n_components;                                     // of a block
    uint32_t            block[3], block_number, first_block_number, complete_blocks; // numbers below are past
    uint64_t            random;

    simt_thread       *threads; // [THREADS_MAX]
    simt_thread       *self;    // NULL: the scheduler runs
    void              *scheduler_pointer, *scheduler_fake_stack;
    const void        *scheduler_stack;
    size_t             scheduler_stack_bytes;
    uint32_t          *clocks;       // all of a block
    uint32_t           engine_clock; // of the engine that makes copies
    simt_barrier_state barriers[BARRIERS];
    simt_mbarrier      mbarriers[MBARRIERS];
    simt_copy         *copies; // oldest first
    uint64_t           events; // grows when something moves that a waiting thread may wait for
    bool               failed;
    simt_report       *report;
    simt_counts        counts;
} simt_machine;

extern simt_machine simt;

// fiber.c
void           simt_fiber_prepare(simt_thread *thread);
void           simt_fiber_run(simt_thread *thread); // until it waits or ends
void           simt_fiber_yield(simt_state state);  // of the thread that runs
_Noreturn void simt_fiber_abandon(void);            // to the scheduler, for good

// schedule.c
uint32_t simt_draw(uint32_t n); // 0 .. n - 1
void     simt_clock_join(uint32_t *into, const uint32_t *from);
void     simt_clock_pass(simt_thread *thread); // M1
uint32_t simt_owner(uint32_t thread);

// deadlock.c
void simt_diagnose(void); // nobody can go on: reports why

// memory.c
bool   simt_locate(const void *address, size_t *out_offset); // in arena or static shared memory
bool   simt_is_shared(size_t offset);
void   simt_shared_begin(void);                          // a new block's shared memory
size_t simt_buffer_of(size_t offset, size_t *out_bytes); // start of the buffer that is nearest

// referee.c
typedef enum simt_access_kind { ACCESS_LOAD, ACCESS_STORE, ACCESS_ATOMIC } simt_access_kind;
// How much of what is read must have been written.
typedef enum simt_wanted {
    WANT_BYTES, // every byte
    WANT_WORDS, // of every word at least a byte: copies of structs have padding
    WANT_NONE,  // ldmatrix moves whole rows, used or not; unwritten memory holds NaN, which shows where it is used
} simt_wanted;
// Judges and records an access of n bytes by component `who` with its clock.
void simt_access(const void *address, size_t n, simt_access_kind kind, uint32_t who, uint32_t site, simt_wanted wanted);
void simt_mark_written(void *address, size_t n, uint32_t who, uint32_t site);

// report.c
uint32_t simt_site_of_pc(const void *return_address);
uint32_t simt_site_of_place(simt_place at);
void     simt_site_resolve(uint32_t site, char *out_file, size_t n, int *out_line);
void     simt_sites_forget(void); // counters of an object that was unloaded may come to mean another's
bool     simt_same_line(uint32_t a, uint32_t b);
typedef struct simt_text {
    char c[300];
} simt_text;
simt_text simt_site_text(uint32_t site);
simt_text simt_owner_text(uint32_t owner);
// Ends the launch with this defect at `site`; does not return to a fiber.
void simt_fail(simt_defect defect, uint32_t site, const char *format, ...) __attribute__((format(printf, 3, 4)));

// warp.c, matrix.c
void simt_warp_resolve(simt_warp_op *ops[SIMT_WARP], uint32_t first_thread);
void simt_matrix_resolve(simt_warp_op *ops[SIMT_WARP], uint32_t first_thread);

// async.c
void simt_async_begin(void);   // of a block
bool simt_async_advance(void); // completes one bulk copy; false: there is none
void simt_async_end(void);     // of a block: nothing may be under way
bool simt_mbarrier_passes(const simt_thread *thread);
void simt_mbarrier_passed(simt_thread *thread);

// compile.c
const char *simt_kernel_object(const simt_kernel *kernel);
const char *simt_kernel_root(const simt_kernel *kernel);
void        simt_kernel_image(const simt_kernel *kernel, const unsigned char **out_from, const unsigned char **out_to);
void        simt_kernel_statics(const simt_kernel *kernel, unsigned char **out_from, size_t *out_bytes);
size_t      simt_kernel_args_bytes(const simt_kernel *kernel);
void (*simt_kernel_entry(const simt_kernel *kernel))(const void *args);

#endif
