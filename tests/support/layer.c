#include "tests/support/layer.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

rssm_problem test_problem(void)
{
    rssm_problem p = RSSM_PROBLEM_INIT;
    p.n_heads = 12;
    p.n_groups = 2;
    p.head_dim = 20;
    p.state_size = 48;
    p.window = 4;
    p.activation_dtype = p.dt_dtype = RSSM_F32;
    return p;
}

static void *array(test_layer *l, size_t n_bytes)
{
    void *p = NULL;
    cr_assert_eq(posix_memalign(&p, 256, n_bytes + 256), 0);
    memset(p, 0, n_bytes);
    cr_assert_lt(l->n_memory, (int)(sizeof l->memory / sizeof l->memory[0]));
    l->memory[l->n_memory++] = p;
    return p;
}

static float *random_floats(test_layer *l, size_t n)
{
    float *v = array(l, n * sizeof *v);
    for (size_t i = 0; i < n; i++) v[i] = (float)(rand() % 2001 - 1000) * 1e-3f;
    return v;
}

void test_layer_open(test_layer *l, const rssm_problem *problem, uint32_t n_rows, uint32_t miss_policy, uint32_t eager,
                     const char *database)
{
    rssm_context_options co = RSSM_CONTEXT_OPTIONS_INIT;
    rssm_group_options   go = RSSM_GROUP_OPTIONS_INIT;
    rssm_diag            diag = {0};

    memset(l, 0, sizeof *l);
    l->problem = *problem;
    l->n_rows = n_rows;
    l->layout = (rssm_layout)RSSM_LAYOUT_INIT;
    co.miss_policy = miss_policy;
    co.database = database ? database : "/nonexistent/replayssm/tuned.db";
    cr_assert_eq(rssm_context_open(&co, &l->context, &diag), RSSM_OK, "%s", diag.text);
    cr_assert_eq(rssm_layout_get(problem, &l->layout, &diag), RSSM_OK, "%s", diag.text);
    l->device = rssm_device_count(l->context) - 1;   // the CPU
    go.device = l->device;
    go.problems = problem;
    go.n_problems = 1;
    go.n_slots = n_rows;
    go.max_rows = n_rows;
    go.eager = eager;
    go.cursors = array(l, n_rows * l->layout.cursor_bytes);
    cr_assert_eq(rssm_group_create(l->context, &go, &l->group, &diag), RSSM_OK, "%s", diag.text);
    l->plan = rssm_group_plan(l->group, 0);

    const int64_t H = problem->n_heads, P = problem->head_dim, G = problem->n_groups, N = problem->state_size;
    int32_t      *slots = array(l, n_rows * sizeof *slots);
    for (uint32_t i = 0; i < n_rows; i++) slots[i] = (int32_t)i;
    float *A = random_floats(l, (size_t)H);
    for (int64_t i = 0; i < H; i++) A[i] = -0.1f - (float)i;
    l->advance = (rssm_advance_args)RSSM_ADVANCE_ARGS_INIT;
    l->advance.n_rows = n_rows;
    l->advance.slots = slots;
    l->advance.descriptors = array(l, n_rows * l->layout.descriptor_bytes);
    l->step = (rssm_step_args)RSSM_STEP_ARGS_INIT;
    l->step.n_rows = n_rows;
    l->step.descriptors = l->advance.descriptors;
    l->step.x = (rssm_token_tensor){random_floats(l, (size_t)(n_rows * H * P)), H * P, P};
    l->step.B = (rssm_token_tensor){random_floats(l, (size_t)(n_rows * G * N)), G * N, N};
    l->step.C = (rssm_token_tensor){random_floats(l, (size_t)(n_rows * G * N)), G * N, N};
    l->step.dt = (rssm_token_tensor){random_floats(l, (size_t)(n_rows * H)), H, 1};
    l->out = array(l, (size_t)(n_rows * H * P) * sizeof(float));
    l->step.out = (rssm_token_tensor){l->out, H * P, P};
    l->step.A = A;
    l->step.state = (rssm_state_tensor){random_floats(l, n_rows * l->layout.state_bytes / 4), l->layout.state_slot_stride};
    l->step.x_ring = (rssm_ring_tensor){array(l, n_rows * l->layout.x_ring_bytes), l->layout.x_slot_stride,
                                        l->layout.x_head_stride, l->layout.x_record_stride};
    l->step.B_ring = (rssm_ring_tensor){array(l, n_rows * l->layout.B_ring_bytes), l->layout.B_slot_stride,
                                        l->layout.B_head_stride, l->layout.B_record_stride};
    l->step.dt_ring = (rssm_ring_tensor){array(l, n_rows * l->layout.dt_ring_bytes), l->layout.dt_slot_stride,
                                         l->layout.dt_head_stride, l->layout.dt_record_stride};
}

void test_layer_close(test_layer *l)
{
    rssm_group_destroy(l->group);
    rssm_context_close(l->context);
    for (int i = 0; i < l->n_memory; i++) free(l->memory[i]);
}
