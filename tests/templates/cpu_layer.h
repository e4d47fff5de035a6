// A layer's memory and the CPU kernels that work on it, for tests that call kernels task by task: guards and gaps
// around and between all runs, NaN wherever a test puts nothing, and a picture of how everything was before a launch.
#ifndef RSSM_TESTS_CPU_LAYER_H
#define RSSM_TESTS_CPU_LAYER_H

#include <stdbool.h>

#include "abi/mamba2_layers.h"
#include "runtime/context.h"
#include "runtime/kernel.h"

enum { CPU_SLOTS = 6 };

typedef struct cpu_memory {
    uint32_t       dtype;
    size_t         bytes; // of both arrays, guards included
    unsigned char *all, *before;
} cpu_memory;

typedef struct cpu_layer {
    rssm_problem                 p;
    cpu_memory                   state, x_ring, B_ring, dt_ring; // CPU_SLOTS slots
    cpu_memory                   x, z, B, C, dt, out;            // tokens of a step
    float                       *A, *D, *dt_bias;                // [head]
    rssm_mamba2_layer            view;
    rssm_mamba2_step_kernel_args step; // over all of it, with z, D and dt_bias; without descriptors
} cpu_layer;

typedef struct cpu_kernel {
    rssm_cpu_kernel *entry;
    rssm_i64         tasks_per_row;
} cpu_kernel;

cpu_layer cpu_layer_make(const rssm_problem *normalised, size_t n_tokens);
void      cpu_layer_free(cpu_layer *l);

size_t cpu_element_bytes(uint32_t dtype);
void  *cpu_payload(const cpu_memory *m); // behind the first guard

// n values in [low, high] from element `at` of the payload on, the same for the same seed whatever the place.
void cpu_fill(cpu_memory *m, size_t at, size_t n, uint64_t seed, double low, double high);

// Elements of the payload.
size_t cpu_ring_at(const rssm_ring_view *v, size_t slot, size_t head, size_t record);
size_t cpu_token_at(const rssm_token_view *v, size_t token, size_t head);
size_t cpu_state_elements(const rssm_problem *p); // of a slot

// Record j of the sequence in a slot's ring; as a token of the step's x, B and dt.
void cpu_put_record(cpu_layer *l, size_t slot, size_t record, uint64_t j);
void cpu_put_token(cpu_layer *l, size_t token, uint64_t j);
// A checkpoint, and n records from `start` on.
void cpu_put_sequence(cpu_layer *l, size_t slot, size_t start, size_t n);

// The picture of what must not change, and whether it did not. `take` accepts a run of elements as it is.
void cpu_remember(cpu_memory *m);
void cpu_take(cpu_memory *m, size_t at, size_t n);
bool cpu_is_as_before(const cpu_memory *m);

// A kernel inside the library; config `text` of a template, compiled (`loaded` is to be unloaded).
cpu_kernel cpu_builtin(const char *entry, const rssm_problem *p);
cpu_kernel cpu_compiled(rssm_context *context, const char *name, const char *text, const rssm_problem *p,
                        rssm_kernel *loaded);

// All tasks of n_rows rows, in an order drawn from the seed.
void cpu_launch(const cpu_kernel *k, const void *args, rssm_i64 n_rows, uint64_t seed);

#endif
