// A layer on the CPU for tests: problem, memory with random contents, a group, argument structs ready to launch.
#ifndef RSSM_TESTS_LAYER_H
#define RSSM_TESTS_LAYER_H

#include "include/replayssm.h"

typedef struct test_layer {
    rssm_problem      problem;
    rssm_layout       layout;
    uint32_t          n_rows, device;
    rssm_context     *context;
    rssm_group       *group;
    const rssm_plan  *plan;
    rssm_advance_args advance;
    rssm_step_args    step;
    float            *out;          // of the step, activation type f32
    void             *memory[16];
    int               n_memory;
} test_layer;

// A small problem with odd sizes: f32 activations and checkpoint.
rssm_problem test_problem(void);

// Opens a context (database: a file that does not exist, unless given) and makes the group. Fails the test on any error.
void test_layer_open(test_layer *layer, const rssm_problem *problem, uint32_t n_rows, uint32_t miss_policy,
                     uint32_t eager, const char *database);
void test_layer_close(test_layer *layer);

#endif
