// The life of a slot on a GPU that is not there: kernels compiled by NVRTC and loaded, launches that run the CPU twins
// in stream order, tables, staging memory, and every driver call that may fail.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/problem.h"
#include "runtime/builtin.h"
#include "runtime/group.h"
#include "runtime/layers.h"
#include "runtime/memory.h"
#include "templates/abi/advance.h"
#include "tests/support/fake_cuda.h"

enum { SLOTS = 5, LAYERS = 3, H = 4, G = 2, P = 16, N = 32, R = 4, VALUES = H * P * N };

static void slots_twin(const void *args, const fake_cuda_launch *launch, void *user)
{
    (void)launch, (void)user;
    rssm_builtin_find("slots", RSSM_F32, RSSM_F32)(args, 0);
}

// A block of these kernels is a task of their CPU twins: one head of one row. `user` is the entry.
static void rows_twin(const void *args, const fake_cuda_launch *launch, void *user)
{
    for (unsigned i = 0; i < launch->grid[0]; i++) rssm_builtin_find(user, RSSM_BF16, RSSM_BF16)(args, i);
}

typedef struct gpu_slots {
    rssm_context *context;
    rssm_group   *group;
    rssm_layers  *layers;
    rssm_layer    layer[LAYERS];
    char         *memory;   // of the device, everything in it
    size_t        used;
    void         *table, *staging;
    rssm_cursor  *cursors;
} gpu_slots;

static void *take(gpu_slots *g, size_t n_bytes)
{
    void *p = g->memory + g->used;
    g->used = (g->used + n_bytes + 255) / 256 * 256;
    cr_assert_leq(g->used, 4 << 20);
    return p;
}

static void register_all(const rssm_context *context)
{
    static char            copy[] = "mamba2_copy", encode[] = "mamba2_encode", decode[] = "mamba2_decode";
    const fake_cuda_kernel known[] = {
        {.entry = "advance", .args_bytes = sizeof(rssm_advance_kernel_args)},
        {.entry = "slots", .args_bytes = sizeof(rssm_slots_kernel_args), .run = slots_twin},
        {.entry = copy, .args_bytes = sizeof(rssm_mamba2_layers_kernel_args), .run = rows_twin, .user = copy},
        {.entry = encode, .args_bytes = sizeof(rssm_mamba2_state_kernel_args), .run = rows_twin, .user = encode},
        {.entry = decode, .args_bytes = sizeof(rssm_mamba2_state_kernel_args), .run = rows_twin, .user = decode},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) fake_cuda_register(&known[i]);
    for (size_t i = 0; i < rssm_template_set_count(context->templates); i++) {   // no twin is needed of these
        const rssm_manifest *m = rssm_template_set_at(context->templates, i);
        if (m->backend != RSSM_CUDA || (m->op != RSSM_OP_STEP && m->op != RSSM_OP_MATERIALIZE)) continue;
        fake_cuda_register(&(fake_cuda_kernel){.entry = m->entry, .args_bytes = m->op == RSSM_OP_STEP
                                                   ? sizeof(rssm_mamba2_step_kernel_args)
                                                   : sizeof(rssm_mamba2_layers_kernel_args)});
    }
}

static void open_slots(gpu_slots *g)
{
    const fake_cuda_gpu  gpus[] = {FAKE_CUDA_H200};
    rssm_context_options o = RSSM_CONTEXT_OPTIONS_INIT;
    rssm_group_options   go = RSSM_GROUP_OPTIONS_INIT;
    rssm_problem         p = RSSM_PROBLEM_INIT;
    rssm_layout          layout = RSSM_LAYOUT_INIT;
    rssm_diag            diag = {0};

    memset(g, 0, sizeof *g);
    fake_cuda_install(gpus, 1);
    unsetenv("RSSM_DEVICE");
    o.database = "/nonexistent/replayssm/tuned.db";
    cr_assert_eq(rssm_context_open(&o, &g->context, &diag), RSSM_OK, "%s", diag.text);
    register_all(g->context);
    cr_assert_eq(rssm_memory_alloc(g->context, 0, 4 << 20, (void **)&g->memory, &diag), RSSM_OK);
    memset(g->memory, 0xFF, 4 << 20);
    p.n_heads = H, p.n_groups = G, p.head_dim = P, p.state_size = N, p.window = R;
    p.checkpoint_dtype = RSSM_BF16;
    cr_assert_eq(rssm_layout_get(&p, &layout, &diag), RSSM_OK);
    g->cursors = take(g, SLOTS * sizeof *g->cursors);
    memset(g->cursors, 0, SLOTS * sizeof *g->cursors);
    go.problems = &p, go.n_problems = 1, go.n_slots = SLOTS, go.max_rows = SLOTS, go.cursors = g->cursors;
    cr_assert_eq(rssm_group_create(g->context, &go, &g->group, &diag), RSSM_OK, "%s", diag.text);
    float *A = take(g, H * sizeof *A);
    for (int i = 0; i < LAYERS; i++) {
        rssm_layer *l = &g->layer[i];
        *l = (rssm_layer)RSSM_LAYER_INIT;
        l->state = (rssm_state_tensor){take(g, SLOTS * layout.state_bytes), layout.state_slot_stride};
        l->x_ring = (rssm_ring_tensor){take(g, SLOTS * layout.x_ring_bytes), layout.x_slot_stride, layout.x_head_stride,
                                       layout.x_record_stride};
        l->B_ring = (rssm_ring_tensor){take(g, SLOTS * layout.B_ring_bytes), layout.B_slot_stride, layout.B_head_stride,
                                       layout.B_record_stride};
        l->dt_ring = (rssm_ring_tensor){take(g, SLOTS * layout.dt_ring_bytes), layout.dt_slot_stride,
                                        layout.dt_head_stride, layout.dt_record_stride};
        l->A = A;
    }
    g->table = take(g, rssm_layers_table_bytes(LAYERS));
    cr_assert_eq(rssm_layers_create(g->group, g->layer, LAYERS, g->table, &g->layers, &diag), RSSM_OK, "%s", diag.text);
    g->staging = take(g, rssm_blob_bytes(g->layers));
}

static void close_slots(gpu_slots *g)
{
    rssm_layers_destroy(g->layers);
    rssm_group_destroy(g->group);
    rssm_memory_free(g->context, 0, g->memory);
    rssm_context_close(g->context);
    cr_expect_str_eq(fake_cuda_leaks(), "");
    cr_expect_str_eq(fake_cuda_violation(), "");
    fake_cuda_remove();
}

// Encode, reset with records, copy, export, import into a third slot, decode: the values come back.
Test(cuda_slots, carries_a_state_all_the_way)
{
    gpu_slots          g;
    rssm_diag          diag = {0};
    rssm_slot_args     a = RSSM_SLOT_ARGS_INIT;
    rssm_state_args    s = RSSM_STATE_ARGS_INIT;
    rssm_transfer_args t = RSSM_TRANSFER_ARGS_INIT;
    size_t             n;

    open_slots(&g);
    int32_t  *slots = take(&g, 3 * sizeof *slots), *count = take(&g, sizeof *count);
    uint64_t *position = take(&g, sizeof *position);
    float    *values = take(&g, VALUES * sizeof *values), *back = take(&g, VALUES * sizeof *back);
    uint32_t *issues = take(&g, sizeof *issues);
    slots[0] = 1, slots[1] = 3, slots[2] = 4, *count = 2, *position = 77, *issues = 0;
    for (int i = 0; i < VALUES; i++) values[i] = (float)(i % 255);
    a.n_rows = 1, a.destination_slots = slots, a.counts = count, a.positions = position, a.issues = issues;
    a.moves = take(&g, 32 * SLOTS);
    s.n_rows = 1, s.slots = slots, s.values = values, s.value_stride = VALUES;
    cr_assert_eq(rssm_reset(g.group, &a, NULL), RSSM_OK);
    cr_assert_eq(rssm_encode(g.layers, 1, &s, NULL), RSSM_OK);
    a.source_slots = slots, a.destination_slots = slots + 1;
    cr_assert_eq(rssm_copy(g.layers, &a, NULL), RSSM_OK);
    const size_t capacity = rssm_blob_bytes(g.layers);
    char        *blob = malloc(capacity);
    t.slot = 3, t.staging = g.staging;
    cr_assert_eq(rssm_export(g.layers, &t, blob, capacity, &n, &diag), RSSM_OK, "%s", diag.text);
    t.slot = 4, t.epoch = 9;
    cr_assert_eq(rssm_import(g.layers, &t, blob, n, &diag), RSSM_OK, "%s", diag.text);
    s.slots = slots + 2, s.values = back;
    cr_assert_eq(rssm_decode(g.layers, 1, &s, NULL), RSSM_OK);
    cr_assert_eq(rssm_device_synchronise(g.context, 0, &diag), RSSM_OK);
    cr_expect_eq(memcmp(values, back, VALUES * sizeof *values), 0);
    cr_expect_eq(g.cursors[4].pos, 77);
    cr_expect_eq(g.cursors[4].h, 2);
    cr_expect_eq(g.cursors[4].epoch, 9);
    cr_expect_eq(*issues, 0);
    free(blob);
    close_slots(&g);
}

Test(cuda_slots, asks_for_alignment)
{
    gpu_slots          g;
    rssm_diag          diag = {0};
    rssm_layers       *layers = NULL;
    rssm_transfer_args t = RSSM_TRANSFER_ARGS_INIT;
    rssm_state_args    s = RSSM_STATE_ARGS_INIT;
    char               blob[64];
    size_t             n;

    open_slots(&g);
    for (int i = 0; i < 5; i++) {
        rssm_layer l = g.layer[0];
        if (i == 0) l.state.data = (char *)l.state.data + 8;
        if (i == 1) l.state.slot_stride += 4;
        if (i == 2) l.x_ring.slot_stride += 4;
        if (i == 3) l.B_ring.data = (char *)l.B_ring.data + 2;
        if (i == 4) l.dt_ring.data = (char *)l.dt_ring.data + 4;   // read by element
        cr_expect_eq(rssm_layers_create(g.group, &l, 1, g.table, &layers, &diag),
                     i < 4 ? RSSM_E_INVALID_ARGUMENT : RSSM_OK, "case %d: %s", i, diag.text);
        if (i < 4) cr_expect(strstr(diag.text, "16 bytes"), "case %d: %s", i, diag.text);
    }
    rssm_layers_destroy(layers);
    t.slot = 0;
    cr_expect_eq(rssm_export(g.layers, &t, blob, sizeof blob, &n, &diag), RSSM_E_INVALID_ARGUMENT);
    cr_expect(strstr(diag.text, "staging"), "%s", diag.text);
    t.staging = (char *)g.staging + 16;
    cr_expect_eq(rssm_import(g.layers, &t, blob, sizeof blob, &diag), RSSM_E_INVALID_ARGUMENT);
    s.n_rows = 1, s.slots = (int32_t *)g.memory, s.values = (float *)(void *)(g.memory + 4);
    cr_expect_eq(rssm_encode(g.layers, 0, &s, NULL), RSSM_E_INVALID_ARGUMENT, "values are read 16 bytes at a time");
    close_slots(&g);
}

// Each driver call fails once: the call says so; an import leaves the slot as it was, or invalid, never half a state.
Test(cuda_slots, survives_every_failed_driver_call)
{
    gpu_slots          g;
    rssm_diag          diag = {0};
    rssm_transfer_args t = RSSM_TRANSFER_ARGS_INIT;
    size_t             n = 0;
    int                n_exports = 0, n_untouched = 0, n_invalid = 0;

    open_slots(&g);
    const size_t capacity = rssm_blob_bytes(g.layers);
    char        *blob = malloc(capacity);
    g.cursors[2] = (rssm_cursor){.start = 3, .h = 3, .epoch = 1, .pos = 5, .nonce = 6};
    t.slot = 2, t.staging = g.staging;
    for (long i = 1; i < 200; i++) {
        fake_cuda_fail_nth(i, RSSM_CUDA_ERROR_LAUNCH_FAILED);
        const rssm_status st = rssm_export(g.layers, &t, blob, capacity, &n, &diag);
        const bool        has_fired = fake_cuda_fired(), is_late = fake_cuda_fired_late();
        fake_cuda_fail_nth(0, 0);
        if (!has_fired) {
            cr_expect_eq(st, RSSM_OK, "%s", diag.text);
            break;
        }
        if (!is_late) cr_expect_neq(st, RSSM_OK, "export, call %ld", i);
        n_exports++;
    }
    t.slot = 4;
    for (long i = 1; i < 200; i++) {
        const rssm_cursor before = {.start = 1, .h = 2, .epoch = 70, .pos = 8, .nonce = 9};
        g.cursors[4] = before;
        fake_cuda_fail_nth(i, RSSM_CUDA_ERROR_LAUNCH_FAILED);
        const rssm_status st = rssm_import(g.layers, &t, blob, n, &diag);
        const bool        has_fired = fake_cuda_fired(), is_late = fake_cuda_fired_late();
        fake_cuda_fail_nth(0, 0);
        if (!has_fired) {
            cr_expect_eq(st, RSSM_OK, "%s", diag.text);
            break;
        }
        if (is_late && st == RSSM_OK) continue;
        cr_expect_neq(st, RSSM_OK, "import, call %ld", i);
        const bool is_untouched = memcmp(&before, &g.cursors[4], sizeof before) == 0;
        n_untouched += is_untouched;
        n_invalid += g.cursors[4].invalid != 0;
        cr_expect(is_untouched || g.cursors[4].invalid, "import, call %ld: half a state", i);
    }
    cr_expect_geq(n_exports, 8);
    cr_expect_geq(n_untouched, 2);
    cr_expect_geq(n_invalid, 4);
    free(blob);
    close_slots(&g);
}
