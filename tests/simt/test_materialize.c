// A fold has one set of bits: flushes by every CUDA step template and materialize of the same records agree bit for bit,
// whatever the template, the configuration, the ring place and the batch. Executed by the emulator.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "abi/mamba2_layers.h"
#include "base/problem.h"
#include "tests/simt/suite.h"
#include "tuner/oracle/number_format.h"

enum { H = 2, P = 32, N = 48, SLOTS = 3 };

// One slot's memory, three times: slot 0 is the source, others take results. Native strides.
typedef struct memory {
    size_t         act_bytes, state_bytes; // of an element
    uint32_t       ring;
    unsigned char *state, *x_ring, *B_ring, *dt_ring, *x, *B, *dt, *A; // of the device
    size_t         slot_state_bytes;
} memory;

static uint32_t random_bits(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(*state >> 33);
}

static void fill(uint32_t dtype, void *bytes, size_t n, double low, double high, uint64_t *seed)
{
    const size_t size = dtype == RSSM_F32 ? 4 : 2;
    for (size_t i = 0; i < n; i++) {
        const double value = low + (high - low) * (random_bits(seed) % 100000) / 100000.0;
        rssm_oracle_store(dtype, &value, 1, (char *)bytes + i * size);
    }
}

static unsigned char *device(size_t n, uint32_t dtype, double low, double high, uint64_t *seed)
{
    const size_t size = dtype == RSSM_F32 ? 4 : 2;
    void        *pointer = NULL, *bytes = calloc(n, size);
    cr_assert(bytes);
    fill(dtype, bytes, n, low, high, seed);
    cr_assert_eq(simt_alloc(n * size, &pointer, NULL), RSSM_OK);
    simt_upload(pointer, bytes, n * size, false);
    free(bytes);
    return pointer;
}

static memory make_memory(const rssm_problem *p, uint64_t seed)
{
    const uint32_t act = p->activation_dtype;
    const size_t   R = p->ring_length;
    memory         m = {.act_bytes = act == RSSM_F32 ? 4 : 2, .state_bytes = p->checkpoint_dtype == RSSM_F32 ? 4 : 2};
    simt_reset();
    m.ring = p->ring_length;
    m.slot_state_bytes = (size_t)H * P * N * m.state_bytes;
    m.state = device((size_t)SLOTS * H * P * N, p->checkpoint_dtype, -2, 2, &seed);
    m.x_ring = device((size_t)SLOTS * H * R * P, act, -1, 1, &seed);
    m.B_ring = device((size_t)SLOTS * R * N, act, -1, 1, &seed);
    m.dt_ring = device((size_t)SLOTS * H * R, RSSM_F32, 0.001, 0.5, &seed);
    m.x = device((size_t)H * P, act, 0, 0, &seed);
    m.B = device(N, act, 0, 0, &seed);
    m.dt = device(H, RSSM_F32, 0, 0, &seed);
    m.A = device(H, RSSM_F32, -4, -0.1, &seed);
    return m;
}

static rssm_problem problem_of(uint32_t act, uint32_t state, uint32_t window, uint32_t ring, uint32_t tokens)
{
    rssm_problem p = RSSM_PROBLEM_INIT, normal;
    p.n_heads = H, p.head_dim = P, p.state_size = N, p.window = window, p.max_tokens = tokens, p.ring_length = ring;
    p.activation_dtype = act, p.checkpoint_dtype = state, p.dt_dtype = RSSM_F32, p.dt_softplus = 0;
    cr_assert_eq(rssm_problem_normalise(&p, &normal, NULL), RSSM_OK);
    return normal;
}

static void launch(const simt_kernel *kernel, const rssm_launch *l, uint32_t rows, const void *args, const char *what)
{
    simt_launch_options options = {.shared_bytes = l->shared_bytes, .seed = 7};
    simt_report         report;
    for (int i = 0; i < 3; i++) {
        options.grid[i] = (uint32_t)(l->grid[i].constant + l->grid[i].per_row * rows);
        options.block[i] = l->block[i];
    }
    cr_assert(simt_launch(kernel, &options, args, &report), "%s: %s", what, report.text);
}

static void *upload(const void *from, size_t n)
{
    void *pointer = NULL;
    cr_assert_eq(simt_alloc(n, &pointer, NULL), RSSM_OK);
    simt_upload(pointer, from, n, false);
    return pointer;
}

static rssm_ring_view ring_view(unsigned char *data, uint32_t heads, uint32_t ring, uint32_t dense)
{
    return (rssm_ring_view){data, (rssm_i64)heads * ring * dense, (rssm_i64)ring * dense, dense};
}

// Copies record `j` of slot 0 behind `start` to the current token, so that a fold may take it from there.
static void make_token(const memory *m, uint32_t start, uint32_t j)
{
    const size_t  record = (start + j) % m->ring;
    unsigned char bytes[P * 4 + N * 4];
    for (size_t h = 0; h < H; h++) {
        simt_download(bytes, m->x_ring + (h * m->ring + record) * P * m->act_bytes, P * m->act_bytes);
        simt_upload(m->x + h * P * m->act_bytes, bytes, P * m->act_bytes, false);
        simt_download(bytes, m->dt_ring + (h * m->ring + record) * 4, 4);
        simt_upload(m->dt + h * 4, bytes, 4, false);
    }
    simt_download(bytes, m->B_ring + record * N * m->act_bytes, N * m->act_bytes);
    simt_upload(m->B, bytes, N * m->act_bytes, false);
}

// Folds n records of slot 0 by a step, in place, and gives the checkpoint back as it was afterwards.
static void flush(const simt_kernel *kernel, const rssm_launch *l, const memory *m, const rssm_problem *p,
                  rssm_descriptor d, unsigned char *out)
{
    unsigned char                     *before = malloc(m->slot_state_bytes);
    uint64_t                           seed = 1;
    unsigned char                     *result = device(16 * H * P, p->activation_dtype, 0, 0, &seed);
    const rssm_mamba2_step_kernel_args args = {
        .descriptors = upload(&d, sizeof d),
        .x = {m->x, H * P, P},
        .B = {m->B, N, N},
        .C = {m->B, N, N},
        .dt = {m->dt, H, 1},
        .out = {result, H * P, P},
        .A = (const float *)m->A,
        .state = {m->state, (rssm_i64)H * P * N},
        .x_ring = ring_view(m->x_ring, H, m->ring, P),
        .B_ring = ring_view(m->B_ring, 1, m->ring, N),
        .dt_ring = ring_view(m->dt_ring, H, m->ring, 1),
        .n_rows = 1,
        .n_heads = H,
        .n_groups = 1,
        .head_dim = P,
        .state_size = N,
        .ring_length = (rssm_i32)m->ring,
        .max_tokens = (rssm_i32)p->max_tokens,
        .dt_type = RSSM_TYPE_F32,
        .parameter_type = RSSM_TYPE_F32,
    };
    cr_assert(before);
    simt_download(before, m->state, m->slot_state_bytes);
    launch(kernel, l, 1, &args, "flush");
    simt_download(out, m->state, m->slot_state_bytes);
    cr_expect_neq(memcmp(before, out, m->slot_state_bytes), 0, "the flush wrote nothing");
    simt_upload(m->state, before, m->slot_state_bytes, false);
    free(before);
}

static void materialize(const simt_kernel *kernel, const rssm_launch *l, const memory *m, rssm_slot_move move,
                        unsigned char *out)
{
    const rssm_mamba2_layer layer = {
        .state = {m->state, (rssm_i64)H * P * N},
        .x_ring = ring_view(m->x_ring, H, m->ring, P),
        .B_ring = ring_view(m->B_ring, 1, m->ring, N),
        .dt_ring = ring_view(m->dt_ring, H, m->ring, 1),
        .A = (const float *)m->A,
    };
    const rssm_slot_move                 moves[2] = {{.source = -1}, move};   // the first has nothing to do
    const void                          *table = upload(&layer, sizeof layer);
    const rssm_mamba2_layers_kernel_args args = {.sources = table,
                                                 .destinations = table,
                                                 .moves = upload(moves, sizeof moves),
                                                 .n_moves = 2,
                                                 .n_layers = 1,
                                                 .n_heads = H,
                                                 .n_groups = 1,
                                                 .head_dim = P,
                                                 .state_size = N,
                                                 .ring_length = (rssm_i32)m->ring};
    launch(kernel, l, 2, &args, "materialize");
    simt_download(out, m->state + (size_t)move.destination * m->slot_state_bytes, m->slot_state_bytes);
}

typedef struct kernel_of {
    simt_kernel *kernel;
    rssm_launch  launch;
} kernel_of;

static kernel_of load(rssm_template_set *set, const char *name, const char *config_text, const rssm_problem *p)
{
    const rssm_manifest *manifest = rssm_template_set_find(set, name);
    const rssm_facts     facts = simt_facts(p);
    rssm_diag            diag = {0};
    rssm_config          config;
    kernel_of            k = {0};
    cr_assert(manifest, "there is no template %s", name);
    config = rssm_config_default(manifest);
    if (config_text) cr_assert_eq(rssm_config_parse(manifest, config_text, &config, &diag), RSSM_OK, "%s", diag.text);
    cr_assert_eq(simt_template_load(simt_template_root(), &config, p, &facts, NULL, &k.kernel, &k.launch, &diag),
                 RSSM_OK, "%s", diag.text);
    return k;
}

// `configs`: of each step template, 1 or 2.
static void expect_equal_bits(uint32_t act, uint32_t state, uint32_t window, uint32_t ring, int configs)
{
    const rssm_problem one = problem_of(act, state, window, ring, 1), four = problem_of(act, state, window, ring, 4);
    rssm_template_set *set = simt_open_templates();
    const memory       m = make_memory(&four, act * 10 + state + ring);
    unsigned char     *want = malloc(m.slot_state_bytes), *got = malloc(m.slot_state_bytes);
    kernel_of          steps[4] = {load(set, "mamba2_step_stream", NULL, &one), load(set, "mamba2_step_panels", NULL, &four)};
    kernel_of          folds = load(set, "mamba2_materialize_panels", NULL, &four);
    const uint32_t     counts[] = {1, 2, 7, 16, 17, 19, ring};
    const size_t       n_steps = 2 * (size_t)configs;
    if (configs == 2) {
        steps[2] = load(set, "mamba2_step_stream", "LOADS=8 TILES=1 HEADS=2 SPLIT=1 RESIDENT=16 HINT=1", &one);
        steps[3] = load(set, "mamba2_step_panels", "LOADS=8 TILES=2 HEADS=2 SPLIT=1 RESIDENT=16 HINT=0", &four);
    }
    cr_assert(want && got);
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        const rssm_i32 n = (rssm_i32)counts[c], start = (rssm_i32)(counts[c] * 5 % ring);
        if (counts[c] > ring) continue;
        materialize(folds.kernel, &folds.launch, &m, (rssm_slot_move){0, 1, start, n, 0, 0}, want);
        for (size_t k = 0; k < n_steps; k++) {
            const rssm_descriptor history = {0, -1, (rssm_i16)start, (rssm_i16)n, 0, RSSM_MODE_FOLD_HISTORY, 0, 0};
            flush(steps[k].kernel, &steps[k].launch, &m, k % 2 ? &four : &one, history, got);
            cr_expect_eq(memcmp(want, got, m.slot_state_bytes), 0, "step %zu folds %d records of a ring of %u to other bits", k,
                         n, ring);
        }
        const rssm_descriptor all = {0, 0, (rssm_i16)start, (rssm_i16)(n - 1), 1, RSSM_MODE_FOLD_ALL, 0, 0};
        make_token(&m, (uint32_t)start, (uint32_t)n - 1);
        flush(steps[0].kernel, &steps[0].launch, &m, &one, all, got);
        cr_expect_eq(memcmp(want, got, m.slot_state_bytes), 0, "a fold with the token makes other bits of %d records", n);
    }
    // None: an exact copy. In place: the source itself.
    simt_download(got, m.state, m.slot_state_bytes);
    materialize(folds.kernel, &folds.launch, &m, (rssm_slot_move){0, 2, 1, 0, 0, 0}, want);
    cr_expect_eq(memcmp(want, got, m.slot_state_bytes), 0, "n = 0 is not a copy");
    materialize(folds.kernel, &folds.launch, &m, (rssm_slot_move){0, 1, 3, 5, 0, 0}, want);
    materialize(folds.kernel, &folds.launch, &m, (rssm_slot_move){0, 0, 3, 5, 0, 0}, got);
    cr_expect_eq(memcmp(want, got, m.slot_state_bytes), 0, "in place makes other bits");
    for (size_t k = 0; k < n_steps; k++) simt_kernel_unload(steps[k].kernel);
    simt_kernel_unload(folds.kernel);
    rssm_template_set_close(set);
    free(want);
    free(got);
}

Test(materialize, has_the_bits_of_a_flush_bf16, .timeout = 300)
{
    expect_equal_bits(RSSM_BF16, RSSM_F32, 16, 20, 2);
    expect_equal_bits(RSSM_BF16, RSSM_BF16, 16, 40, 1);   // longer than the window: more records than registers hold
}

Test(materialize, has_the_bits_of_a_flush_f16, .timeout = 300)
{
    expect_equal_bits(RSSM_F16, RSSM_F32, 32, 36, 1);
    expect_equal_bits(RSSM_F16, RSSM_BF16, 8, 12, 1);
}

Test(materialize, has_the_bits_of_a_flush_f32, .timeout = 300)
{
    expect_equal_bits(RSSM_F32, RSSM_F32, 16, 20, 1);
    expect_equal_bits(RSSM_F32, RSSM_BF16, 16, 20, 1);
}
