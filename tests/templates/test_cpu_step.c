// The CPU step kernels of several tokens against the float64 oracle, on poisoned and guarded memory: every T and L that
// matters, shapes with nothing round about them, all number formats, all layouts; inside the library and compiled.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "abi/cursor.h"
#include "base/problem.h"
#include "tuner/verify.h"

enum { N_ROWS = 5, N_SLOTS = 8 };

typedef struct layer_shape {
    uint32_t P, N, H, G, head_stride;
} layer_shape;

static const layer_shape shapes[] = {
    {64, 128, 8, 2, 3}, {80, 128, 3, 1, 2}, {96, 64, 2, 2, 1},   {64, 96, 6, 1, 4},  {128, 256, 2, 1, 2},
    {7, 33, 6, 2, 1},   {64, 80, 5, 1, 3},  {64, 128, 56, 1, 23}, {5, 8, 4, 4, 1},   {17, 300, 3, 1, 1},
};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static const struct {
    uint32_t activation, checkpoint;
} formats[] = {
    {RSSM_BF16, RSSM_F32}, {RSSM_BF16, RSSM_BF16}, {RSSM_F16, RSSM_F32},
    {RSSM_F32, RSSM_BF16}, {RSSM_F32, RSSM_F32},   {RSSM_F16, RSSM_BF16},
};
enum { N_FORMATS = sizeof formats / sizeof formats[0] };

static const uint32_t layouts[] = {
    RSSM_VERIFY_ALL_TENSORS,
    RSSM_VERIFY_ALL_TENSORS | RSSM_VERIFY_PACKED,
    RSSM_VERIFY_ALL_TENSORS | RSSM_VERIFY_TOKEN_MAJOR | RSSM_VERIFY_PAD_ZERO,
    RSSM_VERIFY_ALL_TENSORS | RSSM_VERIFY_DENSE,
    RSSM_VERIFY_PACKED | RSSM_VERIFY_TOKEN_MAJOR,
    RSSM_VERIFY_GATE | RSSM_VERIFY_PAD_ZERO | RSSM_VERIFY_PACKED,
    RSSM_VERIFY_SKIP | RSSM_VERIFY_DENSE | RSSM_VERIFY_PACKED,
};
enum { N_LAYOUTS = sizeof layouts / sizeof layouts[0] };

static rssm_problem problem_of(const layer_shape *s, uint32_t T, uint32_t L, uint32_t format, uint32_t ring_length)
{
    rssm_problem p = RSSM_PROBLEM_INIT, normal;
    rssm_diag    diag = {0};
    p.head_dim = s->P;
    p.state_size = s->N;
    p.n_heads = s->H;
    p.n_groups = s->G;
    p.max_tokens = T;
    p.window = L;
    p.ring_length = ring_length;
    p.activation_dtype = p.dt_dtype = formats[format % N_FORMATS].activation;
    p.checkpoint_dtype = formats[format % N_FORMATS].checkpoint;
    cr_assert_eq(rssm_problem_normalise(&p, &normal, &diag), RSSM_OK, "%s", diag.text);
    return normal;
}

static rssm_context *open_context(uint32_t miss_policy)
{
    rssm_context_options options = RSSM_CONTEXT_OPTIONS_INIT;
    rssm_context        *context = NULL;
    rssm_diag            diag = {0};
    options.miss_policy = miss_policy;
    options.database = "/nonexistent/replayssm/tuned.db";
    cr_assert_eq(rssm_context_open(&options, &context, &diag), RSSM_OK, "%s", diag.text);
    return context;
}

// Adds the run's coverage to `total`.
static void verify(rssm_context *context, const rssm_problem *p, uint32_t flags, uint32_t head_stride, uint32_t seed,
                   rssm_verify_report *total)
{
    static rssm_cursor  cursors[N_SLOTS];
    rssm_group_options  options = RSSM_GROUP_OPTIONS_INIT;
    rssm_verify_request request = {0};
    rssm_verify_report  report;
    rssm_group         *group = NULL;
    rssm_diag           diag = {0};

    memset(cursors, 0, sizeof cursors);
    options.device = request.device = rssm_device_count(context) - 1; // the CPU
    options.problems = request.problem = p;
    options.n_problems = 1;
    options.n_slots = request.n_slots = N_SLOTS;
    options.max_rows = request.n_rows = N_ROWS;
    options.cursors = request.cursors = cursors;
    options.steps_only = 1;
    cr_assert_eq(rssm_group_create(context, &options, &group, &diag), RSSM_OK, "%s", diag.text);
    request.context = context;
    request.group = group;
    request.plan = rssm_group_plan(group, 0);
    request.head_stride = head_stride;
    request.flags = flags;
    request.seed = seed;
    request.n_steps = p->window < 16 ? 0 : p->window + 12;
    const rssm_status st = rssm_verify(&request, &report, &diag);
    cr_expect_eq(st, RSSM_OK, "P %u N %u H %u G %u T %u L %u R %u, formats %u %u, flags %#x: %s", p->head_dim,
                 p->state_size, p->n_heads, p->n_groups, p->max_tokens, p->window, p->ring_length, p->activation_dtype,
                 p->checkpoint_dtype, flags, diag.text);
    rssm_group_destroy(group);
    total->n_folds += report.n_folds;
    total->n_forced += report.n_forced;
    total->n_wraps += report.n_wraps;
    total->n_idle += report.n_idle;
    total->n_null += report.n_null;
    total->n_rejections += report.n_rejections;
    if (report.max_out > total->max_out) total->max_out = report.max_out;
    if (report.max_state > total->max_state) total->max_state = report.max_state;
    total->n_steps++; // here: of runs
}

Test(cpu_step, takes_every_number_of_tokens_and_window)
{
    static const uint32_t tokens[] = {2, 3, 4, 5, 6, 8, 16};
    const uint32_t        windows[] = {0, 4, 8, 16, 32}; // 0: as many as tokens
    rssm_context         *context = open_context(RSSM_MISS_BUILTIN);
    rssm_verify_report    total = {0};
    uint32_t              run = 0;

    for (size_t t = 0; t < sizeof tokens / sizeof tokens[0]; t++) {
        for (size_t l = 0; l < sizeof windows / sizeof windows[0]; l++) {
            const uint32_t T = tokens[t], L = windows[l] ? windows[l] : T;
            if (L < T || (windows[l] && L == T)) continue;
            for (uint32_t repeat = 0; repeat < 3; repeat++, run++) {
                const layer_shape *s = &shapes[run % N_SHAPES];
                const rssm_problem p = problem_of(s, T, L, run + run / N_FORMATS, run % 4 == 3 ? L + T + 5 : 0);
                verify(context, &p, layouts[(run + run / N_LAYOUTS) % N_LAYOUTS], s->head_stride, run, &total);
            }
        }
    }
    rssm_context_close(context);
    printf("%u runs, output %.3f and state %.3f of the bound\n", total.n_steps, total.max_out, total.max_state);
    cr_assert(total.n_folds > 500 && total.n_forced > 50 && total.n_wraps > 500 && total.n_idle > 50 &&
                  total.n_null > 500 && total.n_rejections > 500,
              "folds %u forced %u wraps %u idle %u null %u rejections %u", total.n_folds, total.n_forced, total.n_wraps,
              total.n_idle, total.n_null, total.n_rejections);
}

Test(cpu_step, takes_every_number_format_in_every_layout)
{
    rssm_context      *context = open_context(RSSM_MISS_BUILTIN);
    rssm_verify_report total = {0};
    for (uint32_t f = 0; f < N_FORMATS; f++) {
        for (uint32_t l = 0; l < N_LAYOUTS; l++) {
            const rssm_problem p = problem_of(&shapes[5], 3, 5, f, 0);
            verify(context, &p, layouts[l], 1, f * 100 + l, &total);
        }
    }
    rssm_context_close(context);
}

// The longest rings, the widest state: what the arrays of the built-in kernels hold at most.
Test(cpu_step, takes_the_largest_shapes)
{
    static const layer_shape wide = {6, 1024, 2, 1, 1};
    rssm_context            *context = open_context(RSSM_MISS_BUILTIN);
    rssm_verify_report       total = {0};
    for (uint32_t f = 0; f < 2; f++) {
        const rssm_problem p = problem_of(&wide, 16, 64, f, 80 + 16 * f);
        verify(context, &p, layouts[f], 1, f, &total);
        const rssm_problem one = problem_of(&wide, 1, 64, f, 96);
        verify(context, &one, layouts[f], 1, f, &total);
    }
    rssm_context_close(context);
}

Test(cpu_step, compiled_for_a_shape)
{
    rssm_context      *context = open_context(RSSM_MISS_COMPILE);
    rssm_verify_report total = {0};
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t     T = i == 0 ? 4 : i == 1 ? 2 : i == 2 ? 7 : 16;
        const layer_shape *s = &shapes[i == 3 ? 5 : i];
        const rssm_problem p = problem_of(s, T, 16, i, 0);
        verify(context, &p, layouts[i], s->head_stride, i, &total);
    }
    rssm_context_close(context);
}
