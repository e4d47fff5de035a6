// Making the table of layers, and launching over it. See layers.h.
#include "runtime/layers.h"

#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "runtime/memory.h"
#include "runtime/step_args.h"

size_t rssm_layers_table_bytes(uint32_t n_layers)
{
    return n_layers * sizeof(rssm_mamba2_layer);
}

const rssm_plan *rssm_layers_plan(const rssm_layers *layers, uint32_t i)
{
    return &layers->group->plans[layers->layers[i].plan];
}

// ---------------------------------------------------------------------------------------------------------- checking

// A tensor of slots, as far as checking goes: dimensions outside the dense innermost one.
typedef struct tensor_check {
    const char *name;
    const void *data;
    int64_t     n[3], stride[3];   // slot, head or group, record; n = 1 where there is no such dimension
    int64_t     n_dense;
    uint32_t    element_bytes, align;
} tensor_check;

// No two elements share a place if, from the densest dimension outwards, each step passes all that lies within.
static bool overlaps(const tensor_check *t)
{
    int64_t reach = t->n_dense;   // elements from the first to behind the last of the dimensions taken so far
    bool    taken[3] = {false, false, false};

    for (int k = 0; k < 3; k++) {
        int next = -1;
        for (int i = 0; i < 3; i++)
            if (!taken[i] && (next < 0 || t->stride[i] < t->stride[next])) next = i;
        taken[next] = true;
        if (t->n[next] == 1) continue;
        if (t->stride[next] < reach || t->stride[next] > INT64_MAX / 8 / t->n[next]) return true;
        reach += (t->n[next] - 1) * t->stride[next];
    }
    return false;
}

static rssm_status check_tensor(const tensor_check *t, uint32_t layer, rssm_diag *diag)
{
    uint64_t bits = (uintptr_t)t->data;

    if (t->data == NULL)
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "the %s of layer %u is NULL; every layer needs one", t->name,
                         layer);
    if (overlaps(t))
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT,
                         "the strides of the %s of layer %u (slot %lld, head %lld, record "
                         "%lld elements) let its parts overlap; each must pass what lies within it",
                         t->name, layer, (long long)t->stride[0], (long long)t->stride[1], (long long)t->stride[2]);
    for (int i = 0; i < 3; i++)
        if (t->n[i] > 1) bits |= (uint64_t)t->stride[i] * t->element_bytes;
    if (bits & (t->align - 1))
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT,
                         "the %s of layer %u, or one of its strides, is not a multiple of %u "
                         "bytes, which this device's kernels need",
                         t->name, layer, t->align);
    return RSSM_OK;
}

static tensor_check ring_check(const char *name, const rssm_ring_tensor *r, uint32_t n_slots, uint32_t n_heads,
                               uint32_t ring_length, uint32_t n_dense, uint32_t element_bytes, uint32_t align)
{
    return (tensor_check){.name = name,
                          .data = r->data,
                          .n = {n_slots, n_heads, ring_length},
                          .stride = {r->slot_stride, r->head_stride, r->record_stride},
                          .n_dense = n_dense,
                          .element_bytes = element_bytes,
                          .align = align < element_bytes ? element_bytes : align};
}

// The strictest alignment of the plan's kernels, those of its steps among them.
static void alignment_of(const rssm_plan *plan, uint32_t *out_state, uint32_t *out_rings)
{
    const rssm_kernel *kernels[4 + RSSM_BUCKETS_MAX] = {plan->copy, plan->materialize, plan->encode, plan->decode};

    for (uint32_t b = 0; b < plan->group->n_buckets; b++) kernels[4 + b] = plan->buckets[b].kernel;
    *out_state = *out_rings = 1;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        if (kernels[i] == NULL) continue;
        if (kernels[i]->geometry.align_state > *out_state) *out_state = kernels[i]->geometry.align_state;
        if (kernels[i]->geometry.align_rings > *out_rings) *out_rings = kernels[i]->geometry.align_rings;
    }
}

static rssm_status check_layer(const rssm_group *group, const rssm_layer *l, uint32_t index, rssm_diag *diag)
{
    if (l->plan >= group->n_plans)
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "layer %u names plan %u; the group has %u", index, l->plan,
                         group->n_plans);
    const rssm_plan    *plan = &group->plans[l->plan];
    const rssm_problem *p = &plan->problem;
    const uint32_t      act = rssm_dtype_bytes(p->activation_dtype), state = rssm_dtype_bytes(p->checkpoint_dtype);
    const uint32_t      n = group->n_slots, R = p->ring_length;
    uint32_t            align_state, align_rings;

    alignment_of(plan, &align_state, &align_rings);
    const tensor_check checks[] = {
        {"state", l->state.data, {n, 1, 1}, {l->state.slot_stride, 0, 0},
         (int64_t)p->n_heads * p->head_dim * p->state_size, state, align_state < state ? state : align_state},
        ring_check("x ring", &l->x_ring, n, p->n_heads, R, p->head_dim, act, align_rings),
        ring_check("B ring", &l->B_ring, n, p->n_groups, R, p->state_size, act, align_rings),
        ring_check("dt ring", &l->dt_ring, n, p->n_heads, R, 1, sizeof(float), sizeof(float)),
    };
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        const rssm_status st = check_tensor(&checks[i], index, diag);
        if (st != RSSM_OK) return st;
    }
    if (l->A == NULL || (uintptr_t)l->A % sizeof(float) != 0)
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT,
                         "A of layer %u is NULL or misaligned; it is fp32 [%u] on the device", index, p->n_heads);
    return RSSM_OK;
}

static rssm_status check_all(const rssm_group *group, const rssm_layer *layers, uint32_t n_layers, const void *table,
                             rssm_diag *diag)
{
    rssm_status st = RSSM_OK;

    if (layers == NULL || n_layers == 0 || n_layers > RSSM_LAYERS_MOST)
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "%u layers were given; a table holds 1 to %d", n_layers,
                         RSSM_LAYERS_MOST);
    if (table == NULL || (uintptr_t)table % 16 != 0)
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT,
                         "the table is NULL or not 16-byte aligned; give it %zu bytes of the device's memory",
                         rssm_layers_table_bytes(n_layers));
    for (uint32_t i = 0; i < n_layers; i++) RSSM_TRY(check_layer(group, &layers[i], i, diag));
done:
    return st;
}

// ------------------------------------------------------------------------------------------------------------ making

static rssm_mamba2_layer entry_of(const rssm_layer *l)
{
    return (rssm_mamba2_layer){.state = {l->state.data, l->state.slot_stride},
                               .x_ring = rssm_ring_view_of(&l->x_ring),
                               .B_ring = rssm_ring_view_of(&l->B_ring),
                               .dt_ring = rssm_ring_view_of(&l->dt_ring),
                               .A = l->A};
}

// Places by plan, in the order given within a plan (Y1).
static void sort_layers(rssm_layers *made, rssm_mamba2_layer *entries)
{
    uint32_t place = 0;

    for (uint32_t plan = 0; plan < made->group->n_plans; plan++) {
        const uint32_t first = place;
        for (uint32_t i = 0; i < made->n_layers; i++) {
            if (made->layers[i].plan != plan) continue;
            entries[place] = entry_of(&made->layers[i]);
            made->places[i] = place++;
        }
        if (place == first) continue;
        made->runs[made->n_runs++] = (rssm_layer_run){&made->group->plans[plan], first, place - first};
    }
}

rssm_status rssm_layers_create(const rssm_group *group, const rssm_layer *layers, uint32_t n_layers, void *table,
                               rssm_layers **out_layers, rssm_diag *diag)
{
    rssm_status        st = RSSM_OK;
    rssm_layers       *made = NULL;
    rssm_mamba2_layer *entries = NULL;

    RSSM_TRY(check_all(group, layers, n_layers, table, diag));
    made = rssm_calloc(1, sizeof *made);
    entries = rssm_calloc(n_layers, sizeof *entries);
    if (made != NULL) {
        *made = (rssm_layers){.group = group, .n_layers = n_layers, .table = table};
        made->layers = rssm_calloc(n_layers, sizeof *made->layers);
        made->places = rssm_calloc(n_layers, sizeof *made->places);
        made->runs = rssm_calloc(group->n_plans, sizeof *made->runs);
    }
    if (made == NULL || entries == NULL || made->layers == NULL || made->places == NULL || made->runs == NULL) {
        st = RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for %u layers", n_layers);
        goto done;
    }
    memcpy(made->layers, layers, n_layers * sizeof *layers);
    sort_layers(made, entries);
    RSSM_TRY(rssm_memory_upload(group->context, rssm_group_device(group), table, entries,
                                rssm_layers_table_bytes(n_layers), diag));
    *out_layers = made;
    made = NULL;
done:
    rssm_layers_destroy(made);
    rssm_free(entries);
    return st;
}

void rssm_layers_destroy(rssm_layers *layers)
{
    if (layers == NULL) return;
    rssm_free(layers->layers);
    rssm_free(layers->places);
    rssm_free(layers->runs);
    rssm_free(layers);
}

// --------------------------------------------------------------------------------------------------------- launching

static const rssm_kernel *kernel_of(const rssm_plan *plan, rssm_op op)
{
    return op == RSSM_OP_COPY ? plan->copy : plan->materialize;
}

rssm_status rssm_layers_ready(const rssm_layers *layers, rssm_op op, uint32_t n_moves)
{
    for (uint32_t i = 0; i < layers->n_runs; i++) {
        const rssm_kernel *kernel = kernel_of(layers->runs[i].plan, op);
        const uint64_t     n_rows = (uint64_t)n_moves * layers->runs[i].n;
        if (kernel == NULL) return RSSM_E_UNSUPPORTED;
        if (n_rows > INT32_MAX || !rssm_group_grid_fits(kernel, n_rows)) return RSSM_E_INVALID_ARGUMENT;
    }
    return RSSM_OK;
}

rssm_status rssm_layers_launch(const rssm_layers *layers, rssm_op op, const rssm_mamba2_layer *sources,
                               const rssm_mamba2_layer *destinations, const rssm_slot_move *moves, uint32_t n_moves,
                               void *stream)
{
    rssm_status st = RSSM_OK;

    for (uint32_t i = 0; i < layers->n_runs && st == RSSM_OK; i++) {
        const rssm_layer_run                *run = &layers->runs[i];
        const rssm_problem                  *p = &run->plan->problem;
        const rssm_mamba2_layers_kernel_args args = {
            .sources = sources + run->first,
            .destinations = destinations + run->first,
            .moves = moves,
            .n_moves = (rssm_i32)n_moves,
            .n_layers = (rssm_i32)run->n,
            .n_heads = (rssm_i32)p->n_heads,
            .n_groups = (rssm_i32)p->n_groups,
            .head_dim = (rssm_i32)p->head_dim,
            .state_size = (rssm_i32)p->state_size,
            .ring_length = (rssm_i32)p->ring_length,
        };
        st = rssm_group_launch(layers->group, kernel_of(run->plan, op), &args, n_moves * run->n, stream);
    }
    return st;
}
