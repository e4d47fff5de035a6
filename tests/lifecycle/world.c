// Making the world: shapes, the arena's layout, parameters, groups and layers. See world.h.
#include "tests/lifecycle/world.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "templates/abi/slots.h"
#include "tuner/oracle/number_format.h"

enum { GUARD_BYTES = 64, TENSOR_ALIGN = 16, ARRAY_ALIGN = 256 };

// The second shape has nothing round about it where any shape is served.
static void set_shapes(life_world *w)
{
    static const struct {
        uint32_t H, G, P, N;
    } all_shapes[2][LIFE_SHAPES] = {{{4, 2, 16, 32}, {3, 1, 12, 24}}, {{4, 2, 16, 32}, {3, 1, 16, 16}}}, *shapes;
    const life_variant *v = w->variant;

    shapes = all_shapes[w->on_gpu];
    for (int i = 0; i < LIFE_SHAPES; i++) {
        rssm_problem *p = &w->shapes[i];
        *p = (rssm_problem)RSSM_PROBLEM_INIT;
        p->n_heads = shapes[i].H;
        p->n_groups = shapes[i].G;
        p->head_dim = shapes[i].P;
        p->state_size = shapes[i].N;
        p->window = (uint32_t)w->window;
        p->max_tokens = 1;
        p->ring_length = (uint32_t)w->ring;
        p->checkpoint_dtype = v->checkpoint;
        p->activation_dtype = v->activation;
        p->dt_dtype = v->dt;
        p->parameter_dtype = v->parameter;
        p->dt_softplus = v->softplus;
        p->flags = v->checkpoint == RSSM_F32 ? 0 : RSSM_PROBLEM_EAGER_16BIT;
    }
}

// ------------------------------------------------------------------------------------------------------------- layout

// The least odd multiple of `align` above n: room for a gap that breaks every larger alignment.
static int64_t with_gap(int64_t n, int64_t align)
{
    const int64_t multiple = n / align + 1;
    return (multiple % 2 ? multiple : multiple + 1) * align;
}

static void place(life_world *w, life_tensor *t, size_t align, size_t skew)
{
    t->offset = (w->n_bytes + GUARD_BYTES + align - 1) / align * align + skew;
    w->n_bytes = t->offset + t->bytes + GUARD_BYTES;
}

static void add_tensor(life_world *w, life_tensor *t, const char *name, uint32_t dtype, int64_t n_outer, int64_t heads,
                       int64_t records, int64_t dense, bool token_major)
{
    *t = (life_tensor){.dtype = dtype, .n_outer = n_outer, .n_heads = heads, .n_records = records, .n_dense = dense};
    snprintf(t->name, sizeof t->name, "%s", name);
    t->element_bytes = rssm_dtype_bytes(dtype);
    const int64_t align = TENSOR_ALIGN / (int64_t)t->element_bytes;
    const int64_t inner = dense > 1 ? with_gap(dense, align) : 1;
    const int64_t n_inner = token_major ? heads : records, n_middle = token_major ? records : heads;
    const int64_t middle = n_middle > 1 && dense > 1 ? with_gap(n_inner * inner, align) : n_inner * inner;
    t->record_stride = token_major ? middle : inner;
    t->head_stride = token_major ? inner : middle;
    t->outer_stride = with_gap(n_middle * middle, align);
    t->bytes = (size_t)(n_outer * t->outer_stride) * t->element_bytes;
    place(w, t, ARRAY_ALIGN, TENSOR_ALIGN);
}

// A checkpoint is dense within its slot.
static void add_state(life_world *w, life_tensor *t, const rssm_problem *p)
{
    const int64_t H = p->n_heads, P = p->head_dim, N = p->state_size;
    *t = (life_tensor){.name = "state",
                       .dtype = p->checkpoint_dtype,
                       .n_outer = LIFE_SLOTS,
                       .n_heads = H,
                       .n_records = P,
                       .n_dense = N};
    t->element_bytes = rssm_dtype_bytes(t->dtype);
    t->record_stride = N;
    t->head_stride = P * N;
    t->outer_stride = with_gap(H * P * N, TENSOR_ALIGN / (int64_t)t->element_bytes);
    t->bytes = (size_t)(LIFE_SLOTS * t->outer_stride) * t->element_bytes;
    place(w, t, ARRAY_ALIGN, TENSOR_ALIGN);
}

static void add_array(life_world *w, life_array which, const char *name, size_t n, size_t entry_bytes)
{
    life_tensor *t = &w->arrays[which];
    *t = (life_tensor){.n_outer = (int64_t)n, .n_heads = 1, .n_records = 1, .n_dense = 1, .outer_stride = 1};
    snprintf(t->name, sizeof t->name, "%s", name);
    t->element_bytes = entry_bytes;
    t->bytes = n * entry_bytes;
    if (t->bytes) place(w, t, ARRAY_ALIGN, 0);
    if (which + 1 == LIFE_N_CONTROL) w->control_bytes = w->n_bytes;
}

static size_t table_stride(const life_world *w)
{
    return (w->calls->table_bytes(LIFE_LAYERS) + 15) / 16 * 16 + 16;
}

static rssm_status lay_out_arrays(life_world *w, size_t slot_bytes)
{
    size_t      scratch = 0, values = 0;
    rssm_status st;
    for (int i = 0; i < LIFE_SHAPES; i++) {
        const rssm_problem *p = &w->shapes[i];
        const size_t        n = (size_t)p->n_heads * p->head_dim * p->state_size + 4;
        rssm_layout         layout = RSSM_LAYOUT_INIT;
        if (n > values) values = n;
        RSSM_TRY(rssm_layout_get(p, &layout, w->diag));
        if (layout.scratch_bytes_per_row > scratch) scratch = layout.scratch_bytes_per_row;
    }
    add_array(w, LIFE_CURSORS, "cursors", LIFE_SLOTS, sizeof(rssm_cursor));
    add_array(w, LIFE_DESCRIPTORS, "descriptors", LIFE_ROWS, sizeof(rssm_descriptor));
    add_array(w, LIFE_ISSUES, "issues", 1, sizeof(uint32_t));
    add_array(w, LIFE_SLOT_ARRAY, "slots", LIFE_ROWS, sizeof(int32_t));
    add_array(w, LIFE_TOKEN_COUNTS, "tokens", LIFE_ROWS, sizeof(int32_t));
    add_array(w, LIFE_CU_SEQLENS, "cu_seqlens", LIFE_ROWS + 1, sizeof(int32_t));
    add_array(w, LIFE_ACCEPTED, "accepted", LIFE_ROWS, sizeof(int32_t));
    add_array(w, LIFE_FORCED, "forced", LIFE_ROWS, 1);
    add_array(w, LIFE_EPOCHS, "epochs", LIFE_ROWS, sizeof(uint32_t));
    add_array(w, LIFE_REQUESTS, "requests", LIFE_ROWS, sizeof(int32_t));
    add_array(w, LIFE_SOURCES, "source_slots", LIFE_ROWS, sizeof(int32_t));
    add_array(w, LIFE_DESTINATIONS, "destination_slots", LIFE_ROWS, sizeof(int32_t));
    add_array(w, LIFE_COUNTS, "counts", LIFE_ROWS, sizeof(int32_t));
    add_array(w, LIFE_POSITIONS, "positions", LIFE_ROWS, sizeof(uint64_t));
    add_array(w, LIFE_NONCES, "nonces", LIFE_ROWS, sizeof(uint64_t));
    add_array(w, LIFE_MOVES, "moves", LIFE_ROWS, sizeof(rssm_slot_move));
    add_array(w, LIFE_VALUES, "values", LIFE_ROWS, values * sizeof(float));
    add_array(w, LIFE_SCRATCH, "scratch", LIFE_ROWS, scratch);
    add_array(w, LIFE_STAGING, "staging", 1, w->on_gpu ? slot_bytes + (64 << 10) : 0);
    add_array(w, LIFE_TABLES, "layer tables", LIFE_GROUPS, table_stride(w));
done:
    return st;
}

static size_t lay_out_layer(life_world *w, life_layer *l)
{
    const rssm_problem *p = l->problem;
    const uint32_t      act = p->activation_dtype;
    const int64_t       H = p->n_heads, G = p->n_groups, P = p->head_dim, N = p->state_size;
    const bool          major = w->variant->token_major != w->memory->other_order;

    add_state(w, &l->state, p);
    add_tensor(w, &l->x_ring, "x_ring", act, LIFE_SLOTS, H, w->ring, P, major);
    add_tensor(w, &l->B_ring, "B_ring", act, LIFE_SLOTS, G, w->ring, N, major);
    add_tensor(w, &l->dt_ring, "dt_ring", RSSM_F32, LIFE_SLOTS, H, w->ring, 1, major);
    add_tensor(w, &l->x, "x", act, LIFE_TOKENS, H, 1, P, false);
    if (w->variant->gate) add_tensor(w, &l->z, "z", act, LIFE_TOKENS, H, 1, P, false);
    add_tensor(w, &l->B, "B", act, LIFE_TOKENS, G, 1, N, false);
    add_tensor(w, &l->C, "C", act, LIFE_TOKENS, G, 1, N, false);
    add_tensor(w, &l->dt, "dt", p->dt_dtype, LIFE_TOKENS, H, 1, 1, false);
    add_tensor(w, &l->out, "out", act, LIFE_TOKENS, H, 1, P, false);
    add_tensor(w, &l->A, "A", RSSM_F32, 1, 1, 1, H, false);
    if (w->variant->skip) add_tensor(w, &l->D, "D", p->parameter_dtype, 1, 1, 1, H, false);
    if (w->variant->bias) add_tensor(w, &l->dt_bias, "dt_bias", p->parameter_dtype, 1, 1, 1, H, false);
    l->model_at = w->n_model;
    w->n_model += (size_t)(H * P * N);
    return (l->state.bytes + l->x_ring.bytes + l->B_ring.bytes + l->dt_ring.bytes) / LIFE_SLOTS;
}

static rssm_status lay_out(life_world *w)
{
    size_t      slot_bytes = 0;
    rssm_status st;
    // The arrays come first, so their size of staging memory is taken from a trial layout of the layers.
    for (int pass = 0; pass < 2; pass++) {
        w->n_bytes = w->n_model = 0;
        RSSM_TRY(lay_out_arrays(w, slot_bytes));
        slot_bytes = 0;
        for (int i = 0; i < LIFE_LAYERS; i++) {
            w->layers[i].shape = i == 2;
            w->layers[i].problem = &w->shapes[w->layers[i].shape];
            slot_bytes += lay_out_layer(w, &w->layers[i]);
        }
    }
done:
    return st;
}

// ----------------------------------------------------------------------------------------------------------- contents

static void write_parameter(life_world *w, const life_tensor *t, uint32_t head, double value, double *out_value)
{
    const size_t at = t->offset + head * t->element_bytes;
    *out_value = 0;
    if (t->bytes == 0) return;
    rssm_oracle_store(t->dtype, &value, 1, w->image + at);
    rssm_oracle_load(t->dtype, w->image + at, 1, out_value);
}

static void write_parameters(life_world *w, life_layer *l)
{
    rssm_verify_random *r = &w->random;
    for (uint32_t head = 0; head < l->problem->n_heads; head++) {
        const double magnitude = exp2(rssm_verify_uniform(r, log2(0.02), 3));
        const double bias = w->variant->softplus ? 0.3 * rssm_verify_bell(r) : rssm_verify_uniform(r, 0, 0.1);
        write_parameter(w, &l->A, head, rssm_verify_one_in(r, 16) ? 0 : -magnitude, &l->A_of[head]);
        write_parameter(w, &l->D, head, rssm_verify_bell(r), &l->D_of[head]);
        write_parameter(w, &l->dt_bias, head, bias, &l->bias_of[head]);
    }
}

static rssm_status make_pools(life_world *w)
{
    const life_variant *v = w->variant;
    const uint32_t      types[LIFE_N_POOLS] = {v->activation, v->activation, v->activation, v->dt, RSSM_F32};
    life_pool          *s = &w->stored_states;
    rssm_status         st;

    RSSM_TRY(life_decoder_create(&w->decoder, w->diag));
    for (int i = 0; i < LIFE_N_POOLS; i++)
        RSSM_TRY(life_pool_create(&w->pools[i], (life_pool_kind)i, types[i], v->softplus, &w->random, w->diag));
    RSSM_TRY(life_pool_create(s, LIFE_POOL_STATE, v->checkpoint, v->softplus, &w->random, w->diag));
    rssm_oracle_store(v->checkpoint, w->pools[LIFE_POOL_STATE].values, LIFE_POOL_VALUES, s->bits);
    rssm_oracle_load(v->checkpoint, s->bits, LIFE_POOL_VALUES, s->values);
done:
    return st;
}

static rssm_ring_tensor ring_view(const life_world *w, const life_tensor *t)
{
    return (rssm_ring_tensor){life_device(w, t), t->outer_stride, t->head_stride, t->record_stride};
}

static rssm_status make_group(life_world *w, int index)
{
    life_group        *g = &w->groups[index];
    rssm_group_options o = RSSM_GROUP_OPTIONS_INIT;
    rssm_layer         layers[LIFE_LAYERS];
    rssm_status        st;

    for (int i = 0; i < LIFE_SHAPES; i++) {
        g->problems[i] = w->shapes[i];
        g->problems[i].max_tokens = (uint32_t)w->memory->tokens[index];
    }
    g->window = (rssm_window){w->window, w->ring, w->memory->tokens[index], index == LIFE_GROUPS - 1};
    g->refuses_duplicates = index % 2 == 0;
    o.device = w->device;
    o.problems = g->problems;
    o.n_problems = LIFE_SHAPES;
    o.n_slots = LIFE_SLOTS;
    o.max_rows = LIFE_ROWS;
    o.eager = g->window.eager ? RSSM_EAGER_ALWAYS : RSSM_EAGER_NEVER;
    o.cursors = life_device_array(w, LIFE_CURSORS);
    o.debug = index % 2 == 0;
    RSSM_TRY(w->calls->group_create(w->context, &o, &g->group, w->diag));
    for (int i = 0; i < LIFE_SHAPES; i++)
        g->plans[i] = w->calls->group_plan(g->group, (uint32_t)i);
    for (int i = 0; i < LIFE_LAYERS; i++) {
        const life_layer *l = &w->layers[i];
        layers[i] = (rssm_layer){l->shape,
                                 0,
                                 {life_device(w, &l->state), l->state.outer_stride},
                                 ring_view(w, &l->x_ring),
                                 ring_view(w, &l->B_ring),
                                 ring_view(w, &l->dt_ring),
                                 life_device(w, &l->A)};
    }
    unsigned char *table = (unsigned char *)life_device_array(w, LIFE_TABLES) + (size_t)index * table_stride(w);
    RSSM_TRY(w->calls->layers_create(g->group, layers, LIFE_LAYERS, table, &g->layers, w->diag));
done:
    return st;
}

rssm_status life_world_create(life_world *w, const life_machine *machine, const life_variant *variant,
                              const life_memory *memory, uint64_t seed, rssm_diag *diag)
{
    void       *arena = NULL;
    rssm_status st;

    memset(w, 0, sizeof *w);
    w->calls = machine->calls;
    w->context = machine->context;
    w->device = machine->device;
    w->on_gpu = machine->is_gpu;
    w->variant = variant;
    w->memory = memory;
    w->window = memory->window;
    w->ring = memory->ring;
    w->diag = diag;
    w->random.state = seed;
    set_shapes(w);
    RSSM_TRY(make_pools(w));
    RSSM_TRY(lay_out(w));
    w->image = rssm_alloc(w->n_bytes);
    w->actual = rssm_alloc(w->n_bytes);
    if (!w->image || !w->actual) {
        st = RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for an image of %zu bytes", w->n_bytes);
        goto done;
    }
    RSSM_TRY(w->calls->alloc(w->context, w->device, w->n_bytes, &arena, diag));
    w->arena = arena;
    life_poison(w, 0, w->n_bytes);
    for (int i = 0; i < LIFE_LAYERS; i++)
        write_parameters(w, &w->layers[i]);
    memset(life_entry(w, LIFE_CURSORS, 0), 0, w->arrays[LIFE_CURSORS].bytes);
    memset(life_entry(w, LIFE_ISSUES, 0), 0, w->arrays[LIFE_ISSUES].bytes);
    RSSM_TRY(life_flush(w));
    for (int i = 0; i < LIFE_GROUPS; i++)
        RSSM_TRY(make_group(w, i));
    RSSM_TRY(life_fetch(w, true));
    for (size_t i = 0; i < LIFE_GROUPS; i++) // what the library put into the tables is its own affair
        life_adopt(w, w->arrays[LIFE_TABLES].offset + i * table_stride(w), w->calls->table_bytes(LIFE_LAYERS));
    RSSM_TRY(life_compare(w, true));
done:
    return st;
}

void life_world_destroy(life_world *w)
{
    for (int i = 0; i < LIFE_GROUPS && w->calls; i++) {
        w->calls->layers_destroy(w->groups[i].layers);
        w->calls->group_destroy(w->groups[i].group);
    }
    if (w->arena) w->calls->free(w->context, w->device, w->arena);
    rssm_free(w->image);
    rssm_free(w->actual);
    for (int i = 0; i < LIFE_N_POOLS; i++)
        life_pool_destroy(&w->pools[i]);
    life_pool_destroy(&w->stored_states);
    life_decoder_destroy(&w->decoder);
    memset(w, 0, sizeof *w);
}
