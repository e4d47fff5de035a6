// Tables of layers: what is refused and why, what is taken, that shapes may come in any order, and failed allocations.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "runtime/layers.h"
#include "tests/runtime/slot_fixture.h"

enum { SLOTS = 4 };

static slot_fixture two_shapes(fixture_layout layout)
{
    const rssm_problem problems[] = {fixture_shape(6, 3, 5, 7, 6, RSSM_BF16, RSSM_F32),
                                     fixture_shape(2, 1, 16, 32, 6, RSSM_F32, RSSM_BF16)};
    slot_fixture       f;
    fixture_open_slots(&f, problems, 2, 5, SLOTS, layout);
    return f;
}

// What is wrong with a layer: its field, and words of the sentence.
typedef struct bad_layer {
    size_t      offset;
    int64_t     value;
    const char *words;
} bad_layer;

#define AT(field) offsetof(rssm_layer, field)

Test(layers, refuses_what_would_overlap_or_fault)
{
    static const bad_layer cases[] = {
        {AT(state.data), 0, "state of layer 2 is NULL"},
        {AT(x_ring.data), 0, "x ring of layer 2 is NULL"},
        {AT(B_ring.data), 0, "B ring of layer 2 is NULL"},
        {AT(dt_ring.data), 0, "dt ring of layer 2 is NULL"},
        {AT(A), 0, "A of layer 2"},
        {AT(A), 4098, "A of layer 2"},
        {AT(state.data), 4097, "state of layer 2"},
        {AT(x_ring.data), 4097, "x ring of layer 2"},
        {AT(dt_ring.data), 4098, "dt ring of layer 2"},
        {AT(state.slot_stride), 6 * 5 * 7 - 1, "overlap"},
        {AT(state.slot_stride), 0, "overlap"},
        {AT(state.slot_stride), -6 * 5 * 7, "overlap"},
        {AT(state.slot_stride), INT64_MAX / 2, "overlap"},
        {AT(x_ring.slot_stride), 6 * 6 * 5 - 1, "overlap"},
        {AT(x_ring.head_stride), 6 * 5 - 1, "overlap"},
        {AT(x_ring.record_stride), 4, "overlap"},
        {AT(B_ring.slot_stride), 3 * 6 * 7 - 1, "overlap"},
        {AT(B_ring.record_stride), 0, "overlap"},
        {AT(dt_ring.head_stride), 5, "overlap"},
    };
    slot_fixture f = two_shapes(FIXTURE_NATIVE);
    rssm_layers *layers = NULL;
    rssm_diag    diag = {0};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rssm_layer changed[5];
        memcpy(changed, f.layer, sizeof changed);
        memcpy((char *)&changed[2] + cases[i].offset, &cases[i].value, 8);
        cr_expect_eq(rssm_layers_create(f.group, changed, 5, f.table, &layers, &diag), RSSM_E_INVALID_ARGUMENT,
                     "case %zu", i);
        cr_expect(strstr(diag.text, cases[i].words), "case %zu: %s", i, diag.text);
    }
    f.layer[4].plan = 2;
    cr_expect_eq(rssm_layers_create(f.group, f.layer, 5, f.table, &layers, &diag), RSSM_E_INVALID_ARGUMENT);
    cr_expect(strstr(diag.text, "layer 4 names plan 2"), "%s", diag.text);
    f.layer[4].plan = 0;
    cr_expect_eq(rssm_layers_create(f.group, f.layer, 0, f.table, &layers, &diag), RSSM_E_INVALID_ARGUMENT);
    cr_expect_eq(rssm_layers_create(f.group, NULL, 5, f.table, &layers, &diag), RSSM_E_INVALID_ARGUMENT);
    cr_expect_eq(rssm_layers_create(f.group, f.layer, RSSM_LAYERS_MOST + 1, f.table, &layers, &diag),
                 RSSM_E_INVALID_ARGUMENT);
    cr_expect_eq(rssm_layers_create(f.group, f.layer, 5, NULL, &layers, &diag), RSSM_E_INVALID_ARGUMENT);
    cr_expect_eq(rssm_layers_create(f.group, f.layer, 5, (char *)f.table + 8, &layers, &diag), RSSM_E_INVALID_ARGUMENT);
    cr_expect(strstr(diag.text, "16-byte"), "%s", diag.text);
    cr_expect_null(layers);
    rssm_layers_destroy(NULL);
    fixture_close_slots(&f);
}

// Any order of the dimensions that keeps elements apart: here slots within heads, and pages that hold several tensors.
Test(layers, takes_every_order_of_dimensions)
{
    slot_fixture f = two_shapes(FIXTURE_NATIVE);
    rssm_layers *layers;
    rssm_diag    diag = {0};
    rssm_layer   l = f.layer[0];   // H 6, G 3, P 5, N 7, R 6

    l.x_ring = (rssm_ring_tensor){l.x_ring.data, 6 * 5, SLOTS * 6 * 5, 5};
    l.B_ring = (rssm_ring_tensor){l.B_ring.data, 7, 6 * SLOTS * 7, SLOTS * 7};
    l.dt_ring = (rssm_ring_tensor){l.dt_ring.data, 100000, 1, 6};
    l.state.slot_stride = 100000;
    cr_expect_eq(rssm_layers_create(f.group, &l, 1, f.table, &layers, &diag), RSSM_OK, "%s", diag.text);
    rssm_layers_destroy(layers);
    fixture_close_slots(&f);
}

// Y1: layers alternate between two shapes; in the table they lie by shape, in the order given.
Test(layers, sorts_the_table_by_shape)
{
    slot_fixture             f = two_shapes(FIXTURE_GAPS);
    const rssm_mamba2_layer *table = f.table;
    static const uint32_t    order[] = {0, 2, 4, 1, 3};

    cr_expect_eq(rssm_layers_table_bytes(5), 5 * sizeof *table);
    cr_assert_eq(f.layers->n_runs, 2);
    cr_expect_eq(f.layers->runs[0].n, 3);
    cr_expect_eq(f.layers->runs[1].first, 3);
    cr_expect_eq(f.layers->runs[1].n, 2);
    for (uint32_t place = 0; place < 5; place++) {
        const rssm_layer *l = &f.layer[order[place]];
        cr_expect_eq(f.layers->places[order[place]], place);
        cr_expect_eq(table[place].state.data, l->state.data, "place %u", place);
        cr_expect_eq(table[place].state.slot_stride, l->state.slot_stride);
        cr_expect_eq(table[place].B_ring.head_stride, l->B_ring.head_stride);
        cr_expect_eq(table[place].x_ring.record_stride, l->x_ring.record_stride);
        cr_expect_eq(table[place].dt_ring.slot_stride, l->dt_ring.slot_stride);
        cr_expect_eq(table[place].A, l->A);
    }
    fixture_close_slots(&f);
}

Test(layers, needs_no_layer_of_every_shape)
{
    slot_fixture f = two_shapes(FIXTURE_NATIVE);
    rssm_layers *layers;
    cr_assert_eq(rssm_layers_create(f.group, &f.layer[1], 1, f.table, &layers, NULL), RSSM_OK);
    cr_expect_eq(layers->n_runs, 1);
    cr_expect_eq(layers->runs[0].plan, rssm_group_plan(f.group, 1));
    rssm_layers_destroy(layers);
    fixture_close_slots(&f);
}

// More rows than a grid has is refused before a cursor moves.
Test(layers, knows_how_much_one_launch_holds)
{
    slot_fixture f = two_shapes(FIXTURE_NATIVE);   // runs of 3 layers with 6 heads and of 2 with 2
    cr_expect_eq(rssm_layers_ready(f.layers, RSSM_OP_COPY, INT32_MAX / 18), RSSM_OK);
    cr_expect_eq(rssm_layers_ready(f.layers, RSSM_OP_COPY, INT32_MAX / 18 + 1), RSSM_E_INVALID_ARGUMENT);
    cr_expect_eq(rssm_layers_ready(f.layers, RSSM_OP_COPY, UINT32_MAX), RSSM_E_INVALID_ARGUMENT);
    fixture_close_slots(&f);
}

Test(layers, survives_every_failed_allocation)
{
    slot_fixture f = two_shapes(FIXTURE_NATIVE);
    long         n_failures = 0;
    for (long n = 1; n < 100; n++) {
        rssm_layers *layers = NULL;
        rssm_diag    diag = {0};
        rssm_alloc_fail_after(n);
        const rssm_status st = rssm_layers_create(f.group, f.layer, 5, f.table, &layers, &diag);
        if (!rssm_alloc_fail_after(0)) {
            cr_expect_eq(st, RSSM_OK);
            rssm_layers_destroy(layers);
            break;
        }
        cr_expect_eq(st, RSSM_E_NO_MEMORY);
        cr_expect_null(layers);
        n_failures++;
    }
    cr_expect_eq(n_failures, 5, "%ld allocations failed", n_failures);
    fixture_close_slots(&f);
}
