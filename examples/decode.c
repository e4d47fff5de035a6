// A host program: 32 sequences decode 64 tokens through one Mamba-2 layer, compared with a float64 recurrence.
//
// Memory comes from runtime/memory.h, so that the same program runs on a CPU and on a GPU, where the model step is
// captured into a graph once and replayed for every token. A real host has its own allocator and activations.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "include/replayssm.h"
#include "runtime/context.h"
#include "runtime/cuda_memory.h"
#include "runtime/memory.h"
#include "tuner/oracle/mamba2_reference.h"

enum { H = 16, G = 1, P = 64, N = 128, BATCH = 32, TOKENS = 64 };

static rssm_context *context;
static uint32_t      device;   // the first: a GPU if there is one
static rssm_diag     diag;
// Every token's inputs and outputs, kept for the comparison.
static float x[TOKENS][BATCH * H * P], B[TOKENS][BATCH * G * N], C[TOKENS][BATCH * G * N], dt[TOKENS][BATCH * H];
static float out[TOKENS][BATCH * H * P], state[BATCH][H * P * N], A[H];
static void *arrays[16];   // on the device
static int32_t n_arrays, slots[BATCH];

static void check(rssm_status st)
{
    if (st == RSSM_OK) return;
    exit((fprintf(stderr, "decode: %s: %s\n", rssm_status_name(st), diag.text), st));
}

static void upload(const void *to, const void *from, size_t n_bytes)
{
    check(rssm_memory_upload(context, device, (void *)to, from, n_bytes, &diag));
}

static void *device_array(size_t n_bytes)
{
    void *zeros = calloc(1, n_bytes);
    check(rssm_memory_alloc(context, device, n_bytes, &arrays[n_arrays], &diag));
    upload(arrays[n_arrays], zeros, n_bytes);
    free(zeros);
    return arrays[n_arrays++];
}

#define RING(name) (rssm_ring_tensor){device_array(BATCH * layout.name##_ring_bytes), layout.name##_slot_stride, \
                                      layout.name##_head_stride, layout.name##_record_stride}

static void feed(void *to, float *values, size_t n)
{
    static uint32_t s = 1;
    for (size_t i = 0; i < n; i++) values[i] = (float)(s = s * 1664525u + 1013904223u) * 0x1p-31f - 1.0f;
    upload(to, values, n * sizeof *values);
}

// Largest difference from the recurrence over all tokens of one head of one sequence, relative to the largest output.
static double compare(int row, int h)
{
    static double S[P * N], xs[TOKENS * P], Bs[TOKENS * N], Cs[TOKENS * N], dts[TOKENS], y[TOKENS * P];
    const rssm_oracle_head   head = {.head_dim = P, .state_size = N, .softplus = true, .A = A[h]};
    const rssm_oracle_tokens tokens = {.n = TOKENS, .x = xs, .B = Bs, .C = Cs, .dt = dts};
    double worst = 0.0, largest = 0.0;
    for (int i = 0; i < P * N; i++) S[i] = state[row][h * P * N + i];
    for (int t = 0; t < TOKENS; t++) {
        dts[t] = dt[t][row * H + h];
        for (int p = 0; p < P; p++) xs[t * P + p] = x[t][(row * H + h) * P + p];
        for (int n = 0; n < N; n++) Bs[t * N + n] = B[t][row * N + n], Cs[t * N + n] = C[t][row * N + n];
    }
    rssm_oracle_sequence(&head, &tokens, S, y);
    for (int i = 0; i < TOKENS * P; i++) largest = fmax(largest, fabs(y[i]));
    for (int i = 0; i < TOKENS * P; i++) worst = fmax(worst, fabs(y[i] - out[i / P][(row * H + h) * P + i % P]));
    return worst / largest;
}

int main(void)
{
    rssm_problem       problem = RSSM_PROBLEM_INIT;
    rssm_group_options options = RSSM_GROUP_OPTIONS_INIT;
    rssm_advance_args  advance = RSSM_ADVANCE_ARGS_INIT;
    rssm_step_args     step = RSSM_STEP_ARGS_INIT;
    rssm_layout        layout = RSSM_LAYOUT_INIT;
    rssm_device_info   info = RSSM_DEVICE_INFO_INIT;
    rssm_plan_info     plan_info = RSSM_PLAN_INFO_INIT;
    rssm_group        *group;
    rssm_cuda_graph   *graph = NULL;
    void              *stream = NULL;
    double             worst = 0.0;
    // 1. The layer, and a plan for it from the tuning database.
    problem.n_heads = H, problem.n_groups = G, problem.head_dim = P, problem.state_size = N;
    problem.activation_dtype = problem.dt_dtype = RSSM_F32;
    check(rssm_context_open(NULL, &context, &diag));
    check(rssm_device_get(context, device, &info));
    check(rssm_layout_get(&problem, &layout, &diag));
    options.device = device, options.problems = &problem, options.n_problems = 1;
    options.n_slots = options.max_rows = BATCH, options.cursors = device_array(BATCH * layout.cursor_bytes);
    check(rssm_group_create(context, &options, &group, &diag));
    const rssm_plan *plan = rssm_group_plan(group, 0);
    check(rssm_plan_info_get(plan, BATCH, &plan_info));
    printf("%s: %s (%s)\n", info.name, plan_info.candidate, plan_info.source);

    // 2. Memory: states, rings, and what the rest of the layer would provide.
    for (int h = 0; h < H; h++) A[h] = -0.02f * (float)(1 << h % 8);
    for (int r = 0; r < BATCH; r++) slots[r] = BATCH - 1 - r;   // row r lives in slot BATCH - 1 - r
    step.n_rows = advance.n_rows = BATCH;
    advance.slots = device_array(sizeof slots);
    step.descriptors = advance.descriptors = device_array(BATCH * layout.descriptor_bytes);
    step.x = (rssm_token_tensor){device_array(sizeof x[0]), H * P, P};
    step.B = (rssm_token_tensor){device_array(sizeof B[0]), G * N, N};
    step.C = (rssm_token_tensor){device_array(sizeof B[0]), G * N, N};
    step.dt = (rssm_token_tensor){device_array(sizeof dt[0]), H, 1};
    step.out = (rssm_token_tensor){device_array(sizeof out[0]), H * P, P};
    step.A = device_array(sizeof A);
    step.state = (rssm_state_tensor){device_array(BATCH * layout.state_bytes), layout.state_slot_stride};
    step.x_ring = RING(x);
    step.B_ring = RING(B);
    step.dt_ring = RING(dt);
    upload(step.A, A, sizeof A), upload(advance.slots, slots, sizeof slots);
    for (int r = 0; r < BATCH; r++)
        feed((float *)step.state.data + slots[r] * layout.state_slot_stride, state[r], H * P * N);

    // 3. A model step: advance once, then every layer. On a GPU it is captured once.
    if (info.backend == RSSM_CUDA) {
        check(rssm_cuda_graph_begin(&context->devices[device], &graph, &stream, &diag));
        check(rssm_advance(group, &advance, stream));
        check(rssm_step(plan, &step, stream));
        check(rssm_cuda_graph_end(graph, &diag));
    }
    for (int t = 0; t < TOKENS; t++) {
        feed(step.x.data, x[t], BATCH * H * P);
        feed(step.B.data, B[t], BATCH * G * N);
        feed(step.C.data, C[t], BATCH * G * N);
        feed(step.dt.data, dt[t], BATCH * H);
        check(graph ? rssm_cuda_graph_launch(graph, &diag) : rssm_advance(group, &advance, NULL));
        if (graph == NULL) check(rssm_step(plan, &step, NULL));
        check(rssm_device_synchronise(context, device, &diag));
        check(rssm_memory_download(context, device, out[t], step.out.data, sizeof out[t], &diag));
    }

    // 4. Against the recurrence in double.
    for (int r = 0; r < BATCH; r++)
        for (int h = 0; h < H; h++) worst = fmax(worst, compare(r, h));
    printf("%d sequences, %d tokens: largest relative difference %.2e\n", BATCH, TOKENS, worst);
    while (n_arrays > 0) rssm_memory_free(context, device, arrays[--n_arrays]);
    rssm_cuda_graph_destroy(graph);
    rssm_group_destroy(group);
    rssm_context_close(context);
    return worst < 1e-5 ? 0 : 1;
}
