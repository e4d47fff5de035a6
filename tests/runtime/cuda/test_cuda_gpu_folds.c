// On a real GPU: a fold has one set of bits. Flushes at T = 1 and T = 4 and materialize of the same records agree, in all
// formats, for rings as long as the window and longer. Skipped, with the reason, where there is no GPU.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/replayssm.h"
#include "runtime/memory.h"
#include "tuner/oracle/number_format.h"

enum { H = 8, P = 64, N = 128, G = 1, WINDOW = 16, SLOTS = 2, MODE_FOLD_HISTORY = 2 };

typedef struct fixture {
    rssm_context      *context;
    rssm_group        *groups[2]; // T = 1 and T = 4 on the same memory
    rssm_layers       *layers;
    rssm_layout        layout;
    rssm_step_args     step;
    rssm_layer         layer;
    void              *cursors, *table, *moves, *numbers, *descriptor, *activations, *out;
    unsigned char     *before, *want, *got; // the checkpoint of slot 0, on the host
} fixture;

static void must(rssm_status st, const rssm_diag *diag)
{
    cr_assert_eq(st, RSSM_OK, "%s: %s", rssm_status_name(st), diag->text);
}

static void *device(fixture *f, const void *from, size_t n)
{
    void     *pointer = NULL;
    rssm_diag diag = {0};
    must(rssm_memory_alloc(f->context, 0, n, &pointer, &diag), &diag);
    must(rssm_memory_upload(f->context, 0, pointer, from, n, &diag), &diag);
    return pointer;
}

static void *device_values(fixture *f, uint32_t dtype, size_t n_bytes, double low, double high, uint64_t seed)
{
    const size_t size = dtype == RSSM_F32 ? 4 : 2;
    char        *bytes = malloc(n_bytes);
    cr_assert_not_null(bytes);
    for (size_t i = 0; i < n_bytes / size; i++) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        const double value = low + (high - low) * (double)(seed >> 40) / (1 << 24);
        rssm_oracle_store(dtype, &value, 1, bytes + i * size);
    }
    void *pointer = device(f, bytes, n_bytes);
    free(bytes);
    return pointer;
}

static rssm_problem problem_of(uint32_t act, uint32_t state, uint32_t T, uint32_t ring)
{
    rssm_problem p = RSSM_PROBLEM_INIT;
    p.n_heads = H, p.n_groups = G, p.head_dim = P, p.state_size = N, p.window = WINDOW;
    p.max_tokens = T, p.ring_length = ring;
    p.activation_dtype = act, p.dt_dtype = RSSM_F32, p.checkpoint_dtype = state;
    return p;
}

static void open_group(fixture *f, int which, const rssm_problem *p)
{
    rssm_group_options o = RSSM_GROUP_OPTIONS_INIT;
    rssm_diag          diag = {0};
    o.problems = p, o.n_problems = 1, o.n_slots = SLOTS, o.max_rows = 4, o.cursors = f->cursors;
    o.eager = RSSM_EAGER_NEVER;
    must(rssm_group_create(f->context, &o, &f->groups[which], &diag), &diag);
}

static rssm_ring_tensor ring(void *data, int64_t slot, int64_t head, int64_t record)
{
    return (rssm_ring_tensor){data, slot, head, record};
}

static void open_memory(fixture *f, uint32_t act, uint32_t state)
{
    const rssm_layout *l = &f->layout;
    rssm_diag          diag = {0};

    f->layer.state = (rssm_state_tensor){device_values(f, state, SLOTS * l->state_bytes, -2, 2, 1), l->state_slot_stride};
    f->layer.x_ring = ring(device_values(f, act, SLOTS * l->x_ring_bytes, -1, 1, 2), l->x_slot_stride, l->x_head_stride,
                           l->x_record_stride);
    f->layer.B_ring = ring(device_values(f, act, SLOTS * l->B_ring_bytes, -1, 1, 3), l->B_slot_stride, l->B_head_stride,
                           l->B_record_stride);
    f->layer.dt_ring = ring(device_values(f, RSSM_F32, SLOTS * l->dt_ring_bytes, 0.001, 0.5, 4), l->dt_slot_stride,
                            l->dt_head_stride, l->dt_record_stride);
    f->layer.A = device_values(f, RSSM_F32, H * 4, -4, -0.1, 5);
    f->activations = device_values(f, act, (size_t)4 * H * P * 4, -1, 1, 6);
    f->out = device_values(f, act, (size_t)4 * H * P * 4, 0, 0, 7);
    f->table = device_values(f, RSSM_F32, rssm_layers_table_bytes(1), 0, 0, 8);
    f->moves = device_values(f, RSSM_F32, 64, 0, 0, 9);
    f->numbers = device_values(f, RSSM_F32, 64, 0, 0, 10);
    f->descriptor = device_values(f, RSSM_F32, 64, 0, 0, 11);
    must(rssm_layers_create(f->groups[1], &f->layer, 1, f->table, &f->layers, &diag), &diag);
    f->before = malloc(l->state_bytes), f->want = malloc(l->state_bytes), f->got = malloc(l->state_bytes);
    must(rssm_memory_download(f->context, 0, f->before, f->layer.state.data, l->state_bytes, &diag), &diag);
    f->step = (rssm_step_args)RSSM_STEP_ARGS_INIT;
    f->step.n_rows = 1;
    f->step.descriptors = f->descriptor;
    f->step.x = (rssm_token_tensor){f->activations, H * P, P};
    f->step.B = f->step.C = (rssm_token_tensor){f->activations, N, N};
    f->step.dt = (rssm_token_tensor){f->activations, H, 1};
    f->step.out = (rssm_token_tensor){f->out, H * P, P};
    f->step.A = f->layer.A;
    f->step.state = f->layer.state;
    f->step.x_ring = f->layer.x_ring, f->step.B_ring = f->layer.B_ring, f->step.dt_ring = f->layer.dt_ring;
}

static void open_fixture(fixture *f, uint32_t act, uint32_t state, uint32_t ring_length)
{
    static const char     cursors[SLOTS * 64];
    rssm_context_options  o = RSSM_CONTEXT_OPTIONS_INIT;
    rssm_device_info      info = RSSM_DEVICE_INFO_INIT;
    rssm_diag             diag = {0};
    const rssm_problem    one = problem_of(act, state, 1, ring_length), four = problem_of(act, state, 4, ring_length);

    memset(f, 0, sizeof *f);
    o.database = "/nonexistent/tuned.db";
    must(rssm_context_open(&o, &f->context, &diag), &diag);
    must(rssm_device_get(f->context, 0, &info), &diag);
    if (info.backend != RSSM_CUDA) {
        fprintf(stderr, "skipped: no GPU\n"); // ctest looks for these words
        cr_skip_test("no GPU");
    }
    f->layout = (rssm_layout)RSSM_LAYOUT_INIT;
    must(rssm_layout_get(&four, &f->layout, &diag), &diag);
    f->cursors = device(f, cursors, sizeof cursors);
    open_group(f, 0, &one);
    open_group(f, 1, &four);
    open_memory(f, act, state);
}

static void close_fixture(fixture *f)
{
    void *const pointers[] = {f->layer.state.data, f->layer.x_ring.data, f->layer.B_ring.data, f->layer.dt_ring.data,
                              (void *)(uintptr_t)f->layer.A, f->activations, f->out, f->table, f->moves, f->numbers,
                              f->descriptor, f->cursors};
    rssm_layers_destroy(f->layers);
    for (int i = 0; i < 2; i++) rssm_group_destroy(f->groups[i]);
    for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++) rssm_memory_free(f->context, 0, pointers[i]);
    rssm_context_close(f->context);
    free(f->before);
    free(f->want);
    free(f->got);
}

// Folds the n records behind `start` of slot 0 into slot 1, and gives that checkpoint back.
static void materialize(fixture *f, int32_t start, int32_t n)
{
    const rssm_cursor_record cursor = {.start = start, .h = n};
    const int32_t            numbers[] = {0, 1, n}; // source, destination, count
    rssm_slot_args           a = RSSM_SLOT_ARGS_INIT;
    rssm_diag                diag = {0};

    must(rssm_memory_upload(f->context, 0, f->cursors, &cursor, sizeof cursor, &diag), &diag);
    must(rssm_memory_upload(f->context, 0, f->numbers, numbers, sizeof numbers, &diag), &diag);
    a.n_rows = 1;
    a.source_slots = (const int32_t *)f->numbers;
    a.destination_slots = a.source_slots + 1;
    a.counts = a.source_slots + 2;
    a.moves = f->moves;
    must(rssm_materialize(f->layers, &a, NULL), &diag);
    must(rssm_device_synchronise(f->context, 0, &diag), &diag);
    must(rssm_memory_download(f->context, 0, f->want, (char *)f->layer.state.data + f->layout.state_bytes,
                              f->layout.state_bytes, &diag),
         &diag);
}

// The same by a step of one of the groups, in place; slot 0 is then as before.
static void flush(fixture *f, int which, int32_t start, int32_t n)
{
    const rssm_descriptor_record d = {.slot = 0, .token = -1, .start = (int16_t)start, .h = (int16_t)n, .t = 0,
                                      .mode = MODE_FOLD_HISTORY};
    rssm_diag diag = {0};

    must(rssm_memory_upload(f->context, 0, f->descriptor, &d, sizeof d, &diag), &diag);
    must(rssm_step(rssm_group_plan(f->groups[which], 0), &f->step, NULL), &diag);
    must(rssm_device_synchronise(f->context, 0, &diag), &diag);
    must(rssm_memory_download(f->context, 0, f->got, f->layer.state.data, f->layout.state_bytes, &diag), &diag);
    must(rssm_memory_upload(f->context, 0, f->layer.state.data, f->before, f->layout.state_bytes, &diag), &diag);
}

static void expect_equal_bits(uint32_t act, uint32_t state, uint32_t ring_length)
{
    const int32_t counts[] = {1, 2, 9, 15, 16, 17, 20};
    fixture       f;
    int           n_compared = 0;

    open_fixture(&f, act, state, ring_length);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        const int32_t start = counts[i] * 7 % (int32_t)ring_length;
        materialize(&f, start, counts[i]);
        cr_expect_neq(memcmp(f.want, f.before, f.layout.state_bytes), 0, "materialize of %d wrote nothing", counts[i]);
        for (int which = 0; which < 2; which++, n_compared++) {
            flush(&f, which, start, counts[i]);
            cr_expect_eq(memcmp(f.want, f.got, f.layout.state_bytes), 0,
                         "activations %u, checkpoint %u, ring %u: group %d flushes %d records to other bits", act, state,
                         ring_length, which, counts[i]);
        }
    }
    materialize(&f, 3, 0);
    cr_expect_eq(memcmp(f.want, f.before, f.layout.state_bytes), 0, "no record: not a copy");
    cr_expect_eq(n_compared, 14);
    close_fixture(&f);
}

Test(cuda_gpu_folds, have_one_set_of_bits, .timeout = 300)
{
    const uint32_t activations[] = {RSSM_BF16, RSSM_F16, RSSM_F32}, checkpoints[] = {RSSM_F32, RSSM_BF16};
    for (int a = 0; a < 3; a++)
        for (int c = 0; c < 2; c++) expect_equal_bits(activations[a], checkpoints[c], a == 0 ? 20 : 36);
}
