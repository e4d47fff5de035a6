// The whole GPU path without a GPU: devices found, kernels compiled by NVRTC, loaded and launched through the fake
// driver, whose launches run the CPU twins. The verifier judges what comes back.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/problem.h"
#include "runtime/builtin.h"
#include "runtime/group.h"
#include "runtime/memory.h"
#include "templates/abi/advance.h"
#include "templates/abi/mamba2_step.h"
#include "tests/support/fake_cuda.h"
#include "tuner/verify.h"

enum { N_ROWS = 3, N_SLOTS = 6 };

static rssm_problem small_problem(void)
{
    rssm_problem p = RSSM_PROBLEM_INIT, normal;
    p.n_heads = 8;
    p.n_groups = 2;
    p.head_dim = 32;
    p.state_size = 64;
    p.window = 4;
    cr_assert_eq(rssm_problem_normalise(&p, &normal, NULL), RSSM_OK);
    return normal;
}

static void advance_twin(const void *args, const fake_cuda_launch *launch, void *user)
{
    (void)launch, (void)user;
    rssm_builtin_find("advance", RSSM_F32, RSSM_F32)(args, 0);
}

// Runs the built-in CPU step: `user` is its number of tasks per row.
static void step_twin(const void *args, const fake_cuda_launch *launch, void *user)
{
    const rssm_mamba2_step_kernel_args *a = args;
    (void)launch;
    for (rssm_i64 i = 0; i < a->n_rows * *(const int64_t *)user; i++)
        rssm_builtin_find("mamba2_step_rows", RSSM_BF16, RSSM_F32)(args, i);
}

static int64_t cpu_tasks_per_row(const rssm_context *context, const rssm_problem *problem)
{
    const rssm_manifest *m = rssm_template_set_find(context->templates, "mamba2_step_rows");
    const rssm_device   *cpu = &context->devices[context->n_devices - 1];
    rssm_launch          launch;
    rssm_facts           facts;
    cr_assert_not_null(m);
    const rssm_config usual = rssm_config_default(m);
    rssm_facts_fill(cpu, problem, &facts);
    cr_assert_eq(rssm_launch_plan(&usual, &facts, &launch, NULL), RSSM_OK);
    return launch.grid[0].per_row;
}

static rssm_context *open_context(void)
{
    rssm_context_options o = RSSM_CONTEXT_OPTIONS_INIT;
    rssm_context        *context;
    rssm_diag            diag = {0};
    unsetenv("RSSM_DEVICE");
    o.database = "/nonexistent/replayssm/tuned.db";
    cr_assert_eq(rssm_context_open(&o, &context, &diag), RSSM_OK, "%s", diag.text);
    return context;
}

static rssm_group_options options_for(const rssm_problem *problem, void *cursors)
{
    rssm_group_options o = RSSM_GROUP_OPTIONS_INIT;
    o.problems = problem;
    o.n_problems = 1;
    o.n_slots = N_SLOTS;
    o.max_rows = N_ROWS;
    o.cursors = cursors;
    o.steps_only = 1;
    return o;
}

Test(cuda_group, serves_a_verified_step_on_a_gpu_that_is_not_there)
{
    const fake_cuda_gpu gpus[] = {FAKE_CUDA_H200, FAKE_CUDA_H200};
    const rssm_problem  problem = small_problem();
    rssm_device_info    info = RSSM_DEVICE_INFO_INIT;
    rssm_plan_info      plan_info = RSSM_PLAN_INFO_INIT;
    rssm_verify_report  report;
    rssm_group         *group;
    rssm_diag           diag = {0};
    void               *cursors;
    int64_t             tasks;

    fake_cuda_install(gpus, 2);
    rssm_context *context = open_context();
    cr_assert_eq(rssm_device_count(context), 3, "two GPUs, then the CPU");
    cr_assert_eq(rssm_device_get(context, 1, &info), RSSM_OK);
    cr_expect_str_eq(info.arch, "sm_90a");
    cr_expect_eq(info.backend, RSSM_CUDA);
    tasks = cpu_tasks_per_row(context, &problem);
    fake_cuda_register(&(fake_cuda_kernel){.entry = "advance", .args_bytes = sizeof(rssm_advance_kernel_args), .run = advance_twin});
    fake_cuda_register(&(fake_cuda_kernel){.entry = "mamba2_step_stream", .args_bytes = sizeof(rssm_mamba2_step_kernel_args),
                                           .run = step_twin, .user = &tasks});
    cr_assert_eq(rssm_memory_alloc(context, 1, N_SLOTS * sizeof(rssm_cursor), &cursors, &diag), RSSM_OK);
    rssm_group_options o = options_for(&problem, cursors);
    o.device = 1;
    cr_assert_eq(rssm_group_create(context, &o, &group, &diag), RSSM_OK, "%s", diag.text);
    cr_assert_eq(rssm_plan_info_get(rssm_group_plan(group, 0), N_ROWS, &plan_info), RSSM_OK);
    cr_expect_eq(plan_info.match, RSSM_MATCH_DEFAULT);
    cr_expect(strstr(plan_info.candidate, "mamba2_step_stream"), "%s", plan_info.candidate);
    const rssm_geometry *g = &rssm_group_plan(group, 0)->buckets[2].kernel->geometry;
    const rssm_verify_request request = {
        .context = context, .device = 1, .group = group, .plan = rssm_group_plan(group, 0), .problem = &problem,
        .cursors = cursors, .n_slots = N_SLOTS, .n_rows = N_ROWS, .flags = RSSM_VERIFY_ALL_TENSORS, .seed = 5,
        .state_align = g->align_state, .ring_align = g->align_rings, .activation_align = g->align_activations,
    };
    cr_expect_eq(rssm_verify(&request, &report, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_gt(report.n_folds + report.n_full_folds, 0);
    rssm_group_destroy(group);
    rssm_memory_free(context, 1, cursors);
    rssm_context_close(context);
    cr_expect_str_eq(fake_cuda_leaks(), "");
    cr_expect_str_eq(fake_cuda_violation(), "");
    fake_cuda_remove();
}

// x, B and C are loaded 16 bytes at a time; z and out by element, so that a slice of a packed projection will do.
Test(cuda_group, asks_for_alignment_only_where_kernels_need_it)
{
    const fake_cuda_gpu gpus[] = {FAKE_CUDA_H200};
    const rssm_problem  problem = small_problem();
    rssm_step_args      a = RSSM_STEP_ARGS_INIT;
    rssm_group         *group;
    rssm_diag           diag = {0};
    char               *p;

    fake_cuda_install(gpus, 1);
    rssm_context *context = open_context();
    fake_cuda_register(&(fake_cuda_kernel){.entry = "advance", .args_bytes = sizeof(rssm_advance_kernel_args)});
    fake_cuda_register(&(fake_cuda_kernel){.entry = "mamba2_step_stream", .args_bytes = sizeof(rssm_mamba2_step_kernel_args)});
    cr_assert_eq(rssm_memory_alloc(context, 0, 4096, (void **)&p, &diag), RSSM_OK);
    const rssm_group_options o = options_for(&problem, p);
    cr_assert_eq(rssm_group_create(context, &o, &group, &diag), RSSM_OK, "%s", diag.text);
    a.n_rows = 1;
    a.descriptors = p;
    a.A = (const float *)p;
    a.x = a.z = a.out = a.B = a.C = (rssm_token_tensor){p, 512, 64};
    a.dt = (rssm_token_tensor){p, 8, 1};
    a.state = (rssm_state_tensor){p, 16384};
    a.x_ring = a.B_ring = a.dt_ring = (rssm_ring_tensor){p, 512, 128, 64};
    const rssm_plan *plan = rssm_group_plan(group, 0);
    cr_expect_eq(rssm_step(plan, &a, NULL), RSSM_OK);
    a.z = a.out = (rssm_token_tensor){p + 2, 513, 33};   // one bf16 element aside, odd strides
    cr_expect_eq(rssm_step(plan, &a, NULL), RSSM_OK);
    a.out.data = p + 1;
    cr_expect_eq(rssm_step(plan, &a, NULL), RSSM_E_INVALID_ARGUMENT, "half an element aside");
    a.out.data = p;
    a.x.data = p + 2;
    cr_expect_eq(rssm_step(plan, &a, NULL), RSSM_E_INVALID_ARGUMENT, "x is loaded 16 bytes at a time");
    rssm_group_destroy(group);
    rssm_memory_free(context, 0, p);
    rssm_context_close(context);
    fake_cuda_remove();
}

Test(cuda_group, says_what_stops_a_gpu)
{
    const fake_cuda_gpu gpus[] = {FAKE_CUDA_H200};
    const rssm_problem  problem = small_problem();
    rssm_group         *group = NULL;
    rssm_diag           diag = {0};
    void               *cursors;

    fake_cuda_install(gpus, 1);
    rssm_context *context = open_context();
    cr_assert_eq(rssm_memory_alloc(context, 0, N_SLOTS * sizeof(rssm_cursor), &cursors, &diag), RSSM_OK);
    const rssm_group_options o = options_for(&problem, cursors);
    fake_cuda_fail_call("cuLibraryLoadData", RSSM_CUDA_ERROR_OUT_OF_MEMORY);
    cr_expect_eq(rssm_group_create(context, &o, &group, &diag), RSSM_E_DEVICE_MEMORY);
    cr_expect_gt(strlen(diag.text), 30);
    fake_cuda_fail_call("cuLibraryLoadData", RSSM_CUDA_ERROR_NO_BINARY_FOR_GPU);
    cr_expect_eq(rssm_group_create(context, &o, &group, &diag), RSSM_E_UNSUPPORTED, "%s", diag.text);
    fake_cuda_fail_call("cuLibraryLoadData", 0);
    void *p;
    cr_expect_eq(rssm_memory_alloc(context, 0, (size_t)1 << 50, &p, &diag), RSSM_E_DEVICE_MEMORY);
    setenv("RSSM_NVRTC", "/nonexistent/libnvrtc.so", 1);
    rssm_context *without = open_context();
    cr_expect_eq(rssm_group_create(without, &o, &group, &diag), RSSM_E_NO_COMPILER, "%s", diag.text);
    cr_expect(strstr(diag.text, "/nonexistent/libnvrtc.so"), "%s", diag.text);
    unsetenv("RSSM_NVRTC");
    cr_expect_null(group);
    rssm_memory_free(context, 0, cursors);
    rssm_context_close(without);
    rssm_context_close(context);
    fake_cuda_remove();
}

Test(cuda_group, leaves_the_cpu_where_there_is_no_driver)
{
    fake_cuda_install(NULL, 0);
    rssm_context    *context = open_context();
    rssm_device_info info = RSSM_DEVICE_INFO_INIT;
    cr_assert_eq(rssm_device_count(context), 1);
    cr_assert_eq(rssm_device_get(context, 0, &info), RSSM_OK);
    cr_expect_eq(info.backend, RSSM_CPU);
    rssm_context_close(context);
    fake_cuda_remove();
}
