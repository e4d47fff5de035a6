// What the files of the fake driver share. See fake_cuda.h.
//
// Objects are never forgotten before the fake is removed: a destroyed one stays in the list as dead, so that using it
// again is noticed instead of being undefined.
#ifndef FAKE_CUDA_STATE_H
#define FAKE_CUDA_STATE_H

#include <pthread.h>

#include "tests/support/fake_cuda.h"

typedef enum fake_call {
#define FAKE_CALL_ENUM(name, symbol, parameters) FAKE_##name,
    RSSM_CUDA_CALL_LIST(FAKE_CALL_ENUM) RSSM_CUDA_OPTIONAL_CALL_LIST(FAKE_CALL_ENUM)
#undef FAKE_CALL_ENUM
        FAKE_CALL_COUNT
} fake_call;

#define FAKE_DECLARE(name, symbol, parameters) rssm_cuda_result fake_##name parameters;
RSSM_CUDA_CALL_LIST(FAKE_DECLARE)
RSSM_CUDA_OPTIONAL_CALL_LIST(FAKE_DECLARE)
#undef FAKE_DECLARE

// Every entry point begins with one of these two: it holds the fake's lock until it returns. FAKE_CALL returns at once
// where a failure was asked for; after FAKE_RELEASE the function does its work and returns guard.result.
typedef struct fake_guard {
    rssm_cuda_result result;
} fake_guard;
fake_guard fake_lock(fake_call call);
void       fake_unlock(const fake_guard *guard);
#define FAKE_RELEASE(name) const fake_guard guard __attribute__((cleanup(fake_unlock))) = fake_lock(FAKE_##name)
#define FAKE_CALL(name)                                                                                                \
    FAKE_RELEASE(name);                                                                                                \
    if (guard.result != RSSM_CUDA_SUCCESS) return guard.result

// X(kind, singular, plural); those with an empty plural are not counted as held.
#define FAKE_KIND_LIST(X)                                                                                              \
    X(CONTEXT, "", "")                                                                                                 \
    X(LIBRARY, "library", "libraries")                                                                                 \
    X(KERNEL, "", "")                                                                                                  \
    X(FUNCTION, "", "")                                                                                                \
    X(ALLOCATION, "allocation", "allocations")                                                                         \
    X(STREAM, "stream", "streams")                                                                                     \
    X(EVENT, "event", "events")                                                                                        \
    X(GRAPH, "graph", "graphs")                                                                                        \
    X(EXEC, "executable graph", "executable graphs")

typedef enum fake_kind {
#define FAKE_KIND_ENUM(kind, singular, plural) FAKE_##kind,
    FAKE_KIND_LIST(FAKE_KIND_ENUM)
#undef FAKE_KIND_ENUM
        FAKE_KIND_COUNT
} fake_kind;

typedef struct fake_object {
    fake_kind           kind;
    bool                dead;
    struct CUctx_st    *context; // NULL for libraries, kernels and graphs
    struct fake_object *next;
} fake_object;

// One piece of work in a stream or a graph.
typedef struct fake_op {
    struct CUfunc_st      *function; // a launch
    fake_cuda_launch       launch;
    void                  *args;
    struct CUevent_st     *event; // or the recording of an event
    struct CUgraphExec_st *exec;  // or a graph
    struct fake_op        *next;
} fake_op;

typedef struct fake_queue {
    fake_op *first, *last;
} fake_queue;

struct CUctx_st {
    fake_object         object;
    int                 ordinal;
    struct CUstream_st *legacy;
};

struct CUlib_st {
    fake_object object;
    char       *bytes;
    size_t      n;
};

struct CUkern_st {
    fake_object             object;
    struct CUlib_st        *library;
    const fake_cuda_kernel *registered;
};

struct CUfunc_st {
    fake_object       object;
    struct CUkern_st *kernel;
    bool              resident;
    int               dynamic_shared_bytes; // the attribute
};

struct CUstream_st {
    fake_object        object;
    bool               non_blocking, legacy;
    fake_queue         pending;
    bool               capturing, invalidated;
    unsigned           capture_mode;
    pthread_t          capture_thread;
    struct CUgraph_st *graph;
};

struct CUevent_st {
    fake_object         object;
    struct CUstream_st *stream; // of the last recording
    bool                done;
    double              stamp_ns;
};

struct CUgraph_st {
    fake_object object;
    fake_queue  nodes;
};

struct CUgraphExec_st {
    fake_object object;
    fake_queue  nodes;
    bool        uploaded;
};

typedef struct fake_allocation {
    fake_object object;
    char       *base; // of the guard zone in front; NULL once freed
    size_t      n_bytes;
} fake_allocation;

typedef struct fake_state {
    fake_cuda_gpu    gpus[FAKE_CUDA_MAX_GPUS];
    int              n_gpus, retained[FAKE_CUDA_MAX_GPUS];
    struct CUctx_st *contexts[FAKE_CUDA_MAX_GPUS]; // NULL or dead: none
    int              driver_version;
    bool             initialised, require_current;
    rssm_cuda_result fault;
    long             counts[FAKE_CALL_COUNT], total;
    rssm_cuda_result forced[FAKE_CALL_COUNT];
    long             until_failure; // 0: not armed
    rssm_cuda_result failure;
    bool             failure_stays;
    int              fired; // a fake_call; -1: none
    fake_object     *objects;
    fake_cuda_kernel kernels[32];
    int              n_kernels;
    double           clock_ns;
    char             trace[1 << 14], leaks[256], violation[256];
    rssm_cuda_api    table;
} fake_state;
extern fake_state fake;

void fake_note(const char *format, ...) __attribute__((format(printf, 1, 2))); // a violation

void *fake_new(fake_kind kind, size_t size, struct CUctx_st *context);
bool  fake_is_live(const void *object, fake_kind kind);     // NULL and unknown pointers are not
bool  fake_is_dead_with_context(const fake_object *object); // it went when its context did, not by the host's hand

// The context that is current to this thread: 0, or why there is none.
rssm_cuda_result fake_current(struct CUctx_st **out_context);

fake_allocation *fake_find_allocation(unsigned long long address, size_t n_bytes);
void             fake_check_guards(const fake_allocation *allocation);
void             fake_push(fake_queue *queue, fake_op *op);
void             fake_clear(fake_queue *queue);
void             fake_run_launch(const fake_op *op);
void             fake_drain(struct CUstream_st *stream); // runs what waits in it
void             fake_drain_all(void);
rssm_cuda_result fake_stream(struct CUstream_st *handle, struct CUstream_st **out_stream);
rssm_cuda_result fake_unsafe(void); // of a call that a capture forbids: 0, or its error, and the capture is spoiled
unsigned         fake_capture_mode(void); // of this thread
int              fake_stack_depth(void);  // likewise
void             fake_reset_thread(void);

#endif
