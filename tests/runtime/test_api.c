// The public calls on the CPU: argument checks, provenance, missing kernels, fallbacks.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/layer.h"

Test(api, refuses_structs_of_another_size)
{
    rssm_context_options o = RSSM_CONTEXT_OPTIONS_INIT;
    rssm_context        *context = NULL;
    rssm_diag            diag = {0};
    o.struct_size = 8;
    cr_expect_eq(rssm_context_open(&o, &context, &diag), RSSM_E_STRUCT_SIZE);
    cr_expect_null(context);
    cr_expect(strstr(diag.text, "RSSM_CONTEXT_OPTIONS_INIT"));
}

static long resident_kib(void)
{
    char   line[256];
    long   kib = 0;
    FILE  *f = fopen("/proc/self/status", "r");
    cr_assert_not_null(f);
    while (fgets(line, sizeof line, f)) sscanf(line, "VmRSS: %ld kB", &kib);
    fclose(f);
    return kib;
}

Test(api, opens_a_context_in_less_than_16_mib)
{
    rssm_context_options o = RSSM_CONTEXT_OPTIONS_INIT;
    rssm_context        *context;
    o.database = "/nonexistent/tuned.db";
    const long before = resident_kib();
    cr_assert_eq(rssm_context_open(&o, &context, NULL), RSSM_OK);
    const long after = resident_kib();
#ifdef __SANITIZE_ADDRESS__
    const long limit = 128 * 1024;   // shadow memory and quarantine come on top
#else
    const long limit = 16 * 1024;
#endif
    cr_expect_lt(after - before, limit, "%ld KiB", after - before);
    rssm_context_close(context);
}

Test(api, names_every_status)
{
#define CHECK_STATUS(name, value, text_)                                     \
    cr_expect_str_eq(rssm_status_name(RSSM_##name), "RSSM_" #name);          \
    cr_expect_str_eq(rssm_status_text(RSSM_##name), text_);
    RSSM_STATUS_LIST(CHECK_STATUS)
    cr_expect_str_eq(rssm_status_text((rssm_status)99), "unknown status");
}

Test(api, says_what_a_group_lacks)
{
    test_layer   l;
    rssm_problem p = test_problem();
    rssm_diag    diag = {0};
    rssm_group  *group = NULL;
    uint64_t     cursors[64] = {0};

    test_layer_open(&l, &p, 2, RSSM_MISS_BUILTIN, RSSM_EAGER_NEVER, NULL);
    rssm_group_options o = RSSM_GROUP_OPTIONS_INIT;
    o.device = l.device;
    o.problems = &p;
    o.n_problems = 1;
    o.n_slots = 2;
    o.max_rows = 2;
    cr_expect_eq(rssm_group_create(l.context, &o, &group, &diag), RSSM_E_INVALID_ARGUMENT);
    cr_expect(strstr(diag.text, "cursors"));
    o.cursors = cursors;
    o.device = 99;
    cr_expect_eq(rssm_group_create(l.context, &o, &group, &diag), RSSM_E_NO_DEVICE);
    o.device = l.device;
    p.n_groups = 5;
    cr_expect_eq(rssm_group_create(l.context, &o, &group, &diag), RSSM_E_INVALID_ARGUMENT);
    cr_expect(strstr(diag.text, "problem 0"), "%s", diag.text);
    p = test_problem();
    rssm_problem two[2] = {p, p};
    two[1].window = 8;
    o.problems = two;
    o.n_problems = 2;
    cr_expect_eq(rssm_group_create(l.context, &o, &group, &diag), RSSM_E_INVALID_ARGUMENT);
    cr_expect(strstr(diag.text, "window"), "%s", diag.text);
    cr_expect_null(group);
    test_layer_close(&l);
}

Test(api, says_that_combinations_without_a_kernel_are_unsupported)
{
    test_layer         l;
    const rssm_problem usual = test_problem();
    rssm_diag          diag = {0};
    rssm_group        *group = NULL;
    uint64_t           cursors[64] = {0};

    test_layer_open(&l, &usual, 2, RSSM_MISS_BUILTIN, RSSM_EAGER_NEVER, NULL);
    for (int i = 0; i < 6; i++) {
        rssm_problem p = usual;
        if (i == 0) p.recurrence = RSSM_GDN;
        if (i == 1) p.recurrence = RSSM_KDA;
        if (i == 2) p.checkpoint_dtype = RSSM_FP8_E4M3;
        if (i == 3) p.max_tokens = 4, p.window = 4000;
        if (i == 4) p.checkpoint_dtype = RSSM_F16, p.rounding = RSSM_STOCHASTIC;
        if (i == 5) p.checkpoint_mode = RSSM_CHECKPOINT_SEPARATE, p.checkpoint_dtype = RSSM_F16, p.read_dtype = RSSM_NVFP4;
        rssm_group_options o = RSSM_GROUP_OPTIONS_INIT;
        o.device = l.device;
        o.problems = &p;
        o.n_problems = 1;
        o.n_slots = 2;
        o.max_rows = 2;
        o.cursors = cursors;
        const rssm_status st = rssm_group_create(l.context, &o, &group, &diag);
        cr_expect(st == RSSM_E_UNSUPPORTED || st == RSSM_E_INVALID_ARGUMENT, "case %d: %s %s", i, rssm_status_name(st),
                  diag.text);
        cr_expect(strlen(diag.text) > 20, "case %d says: %s", i, diag.text);
    }
    test_layer_close(&l);
}

// A group that was made for steps alone has no kernels for anything else, and says so.
Test(api, says_that_slot_operations_need_their_kernels)
{
    test_layer         l;
    const rssm_problem p = test_problem();
    rssm_slot_args     a = RSSM_SLOT_ARGS_INIT;
    rssm_group        *group;
    rssm_diag          diag = {0};
    rssm_cursor_record cursors[2] = {{0}};
    int32_t            slots[1] = {1};

    test_layer_open(&l, &p, 1, RSSM_MISS_BUILTIN, RSSM_EAGER_NEVER, NULL);
    rssm_group_options o = RSSM_GROUP_OPTIONS_INIT;
    o.device = l.device;
    o.problems = &p;
    o.n_problems = 1;
    o.n_slots = 2;
    o.max_rows = 2;
    o.cursors = cursors;
    o.steps_only = 1;
    cr_assert_eq(rssm_group_create(l.context, &o, &group, &diag), RSSM_OK, "%s", diag.text);
    a.n_rows = 1;
    a.destination_slots = slots;
    cr_expect_eq(rssm_reset(group, &a, NULL), RSSM_E_UNSUPPORTED);
    cr_expect_eq(rssm_invalidate(group, &a, NULL), RSSM_E_UNSUPPORTED);
    rssm_group_destroy(group);
    o.steps_only = 0;
    cr_assert_eq(rssm_group_create(l.context, &o, &group, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_eq(rssm_invalidate(group, &a, NULL), RSSM_OK);
    cr_expect_eq(cursors[1].invalid, 1);
    rssm_group_destroy(group);
    test_layer_close(&l);
}

Test(api, refuses_bad_step_arguments)
{
    test_layer         l;
    const rssm_problem p = test_problem();
    test_layer_open(&l, &p, 3, RSSM_MISS_BUILTIN, RSSM_EAGER_NEVER, NULL);
    cr_assert_eq(rssm_advance(l.group, &l.advance, NULL), RSSM_OK);
    cr_assert_eq(rssm_step(l.plan, &l.step, NULL), RSSM_OK);

    rssm_step_args a = l.step;
    a.n_rows = 4;
    cr_expect_eq(rssm_step(l.plan, &a, NULL), RSSM_E_INVALID_ARGUMENT);
    a.n_rows = 0;
    cr_expect_eq(rssm_step(l.plan, &a, NULL), RSSM_OK, "an empty batch is nothing to do");
    a = l.step;
    a.struct_size--;
    cr_expect_eq(rssm_step(l.plan, &a, NULL), RSSM_E_STRUCT_SIZE);
    a = l.step;
    a.state.data = NULL;
    cr_expect_eq(rssm_step(l.plan, &a, NULL), RSSM_E_INVALID_ARGUMENT);
    a = l.step;
    a.state.data = (char *)a.state.data + 1;
    cr_expect_eq(rssm_step(l.plan, &a, NULL), RSSM_E_INVALID_ARGUMENT, "a misaligned state");
    cr_expect_eq(rssm_step(l.plan, &l.step, &a), RSSM_E_INVALID_ARGUMENT, "the CPU has no streams");
    rssm_advance_args advance = l.advance;
    advance.slots = NULL;
    cr_expect_eq(rssm_advance(l.group, &advance, NULL), RSSM_E_INVALID_ARGUMENT);
    advance = l.advance;
    advance.n_rows = 4;
    cr_expect_eq(rssm_advance(l.group, &advance, NULL), RSSM_E_INVALID_ARGUMENT);
    test_layer_close(&l);
}

Test(api, reports_issues_of_a_batch)
{
    test_layer         l;
    const rssm_problem p = test_problem();
    uint32_t           issues = 0;
    char               text[256];
    test_layer_open(&l, &p, 3, RSSM_MISS_BUILTIN, RSSM_EAGER_NEVER, NULL);
    int32_t *slots = (int32_t *)l.advance.slots;
    slots[1] = 77;
    l.advance.issues = &issues;
    cr_assert_eq(rssm_advance(l.group, &l.advance, NULL), RSSM_OK);
    cr_expect_neq(issues, 0);
    rssm_issues_text(issues, text, sizeof text);
    cr_expect_str_eq(text, "slot out of range");
    rssm_issues_text(~0u, text, 12);
    cr_expect_eq(strlen(text), 11, "cut to the buffer: '%s'", text);
    test_layer_close(&l);
}

Test(api, says_which_rung_answered)
{
    test_layer         l;
    const rssm_problem p = test_problem();
    rssm_plan_info     info = RSSM_PLAN_INFO_INIT;

    test_layer_open(&l, &p, 5, RSSM_MISS_BUILTIN, RSSM_EAGER_NEVER, NULL);
    cr_assert_eq(rssm_plan_info_get(l.plan, 5, &info), RSSM_OK);
    cr_expect_eq(info.match, RSSM_MATCH_BUILTIN);
    cr_expect_eq(info.batch_bucket, 8);
    cr_expect_eq(info.n_launches, 1);
    cr_expect(strstr(info.candidate, "mamba2_step"), "%s", info.candidate);
    cr_expect(strstr(info.source, "built into"), "%s", info.source);
    cr_expect_eq(rssm_plan_info_get(l.plan, 0, &info), RSSM_E_INVALID_ARGUMENT);
    cr_expect_eq(rssm_plan_info_get(l.plan, 6, &info), RSSM_E_INVALID_ARGUMENT);
    test_layer_close(&l);

    test_layer_open(&l, &p, 5, RSSM_MISS_COMPILE, RSSM_EAGER_NEVER, NULL);
    cr_assert_eq(rssm_plan_info_get(l.plan, 5, &info), RSSM_OK);
    cr_expect_eq(info.match, RSSM_MATCH_DEFAULT);
    test_layer_close(&l);
}

Test(api, falls_back_to_a_built_in_kernel_without_a_compiler)
{
    test_layer         l;
    const rssm_problem p = test_problem();
    rssm_plan_info     info = RSSM_PLAN_INFO_INIT;
    setenv("RSSM_CLANG", "/nonexistent/clang", 1);
    test_layer_open(&l, &p, 2, RSSM_MISS_COMPILE, RSSM_EAGER_NEVER, NULL);
    cr_assert_eq(rssm_plan_info_get(l.plan, 2, &info), RSSM_OK);
    cr_expect_eq(info.match, RSSM_MATCH_BUILTIN);
    cr_assert_eq(rssm_advance(l.group, &l.advance, NULL), RSSM_OK);
    cr_assert_eq(rssm_step(l.plan, &l.step, NULL), RSSM_OK);
    test_layer_close(&l);
}

Test(api, fails_on_a_miss_where_the_host_wants_that)
{
    test_layer           l;
    const rssm_problem   p = test_problem();
    rssm_context_options co = RSSM_CONTEXT_OPTIONS_INIT;
    rssm_context        *context;
    rssm_group          *group = NULL;
    rssm_diag            diag = {0};
    uint64_t             cursors[16] = {0};

    test_layer_open(&l, &p, 2, RSSM_MISS_BUILTIN, RSSM_EAGER_NEVER, NULL);
    co.miss_policy = RSSM_MISS_FAIL;
    co.database = "/nonexistent/replayssm/tuned.db";
    cr_assert_eq(rssm_context_open(&co, &context, &diag), RSSM_OK);
    rssm_group_options o = RSSM_GROUP_OPTIONS_INIT;
    o.device = l.device;
    o.problems = &p;
    o.n_problems = 1;
    o.n_slots = 2;
    o.max_rows = 2;
    o.cursors = cursors;
    cr_expect_eq(rssm_group_create(context, &o, &group, &diag), RSSM_E_MISS, "%s", diag.text);
    cr_expect(strstr(diag.text, "replayssm-tune tune"), "%s", diag.text);
    rssm_context_close(context);
    test_layer_close(&l);
}

Test(api, asks_for_consent_before_rounding_a_16_bit_state_every_step)
{
    test_layer   l;
    rssm_problem p = test_problem();
    rssm_group  *group = NULL;
    rssm_diag    diag = {0};
    uint64_t     cursors[16] = {0};

    test_layer_open(&l, &p, 2, RSSM_MISS_BUILTIN, RSSM_EAGER_ALWAYS, NULL);
    p.checkpoint_dtype = RSSM_BF16;
    rssm_group_options o = RSSM_GROUP_OPTIONS_INIT;
    o.device = l.device;
    o.problems = &p;
    o.n_problems = 1;
    o.n_slots = 2;
    o.max_rows = 2;
    o.cursors = cursors;
    o.eager = RSSM_EAGER_ALWAYS;
    cr_expect_eq(rssm_group_create(l.context, &o, &group, &diag), RSSM_E_UNSUPPORTED);
    cr_expect(strstr(diag.text, "RSSM_PROBLEM_EAGER_16BIT"));
    p.flags = RSSM_PROBLEM_EAGER_16BIT;
    cr_expect_eq(rssm_group_create(l.context, &o, &group, &diag), RSSM_OK, "%s", diag.text);
    rssm_group_destroy(group);
    test_layer_close(&l);
}

Test(api, survives_a_database_that_is_not_one)
{
    test_layer         l;
    const rssm_problem p = test_problem();
    rssm_plan_info     info = RSSM_PLAN_INFO_INIT;
    test_layer_open(&l, &p, 2, RSSM_MISS_BUILTIN, RSSM_EAGER_NEVER, RSSM_SOURCE_DIR "/README.md");
    cr_assert_eq(rssm_plan_info_get(l.plan, 2, &info), RSSM_OK);
    cr_expect_eq(info.match, RSSM_MATCH_BUILTIN);
    test_layer_close(&l);
}
