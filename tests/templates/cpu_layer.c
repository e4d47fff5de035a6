// See cpu_layer.h.
#include "tests/templates/cpu_layer.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "gen/build.h"
#include "runtime/builtin.h"
#include "runtime/select.h"
#include "tuner/oracle/number_format.h"

enum { GUARD = 64, GAP = 3 };

size_t cpu_element_bytes(uint32_t dtype)
{
    return dtype == RSSM_F32 ? 4 : 2;
}

void *cpu_payload(const cpu_memory *m)
{
    return m->all + GUARD * cpu_element_bytes(m->dtype);
}

// NaN everywhere, in every format.
static cpu_memory make_memory(uint32_t dtype, size_t n)
{
    cpu_memory m = {dtype, (n + 2 * GUARD) * cpu_element_bytes(dtype), NULL, NULL};
    m.all = malloc(m.bytes);
    m.before = malloc(m.bytes);
    cr_assert(m.all && m.before);
    for (size_t i = 0; i < m.bytes; i += 2) {
        m.all[i] = (unsigned char)(0x81 + i % 120);
        m.all[i + 1] = i & 8 ? 0xff : 0x7f;
    }
    return m;
}

static uint64_t next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

void cpu_fill(cpu_memory *m, size_t at, size_t n, uint64_t seed, double low, double high)
{
    seed = seed * 0x9e3779b97f4a7c15u + 1;
    for (size_t i = 0; i < n; i++) {
        const double value = low + (high - low) * (double)next(&seed) * 0x1p-31;
        rssm_oracle_store(m->dtype, &value, 1, (char *)cpu_payload(m) + (at + i) * cpu_element_bytes(m->dtype));
    }
}

void cpu_remember(cpu_memory *m)
{
    memcpy(m->before, m->all, m->bytes);
}

void cpu_take(cpu_memory *m, size_t at, size_t n)
{
    const size_t e = cpu_element_bytes(m->dtype), from = (GUARD + at) * e;
    memcpy(m->before + from, m->all + from, n * e);
}

bool cpu_is_as_before(const cpu_memory *m)
{
    return memcmp(m->all, m->before, m->bytes) == 0;
}

// -------------------------------------------------------------------------------------------------------------- layer

static cpu_memory make_ring(uint32_t dtype, size_t n_heads, size_t R, size_t n_dense, rssm_ring_view *view)
{
    const size_t     record = n_dense > 1 ? n_dense + GAP : 1, head = record * R + GAP, slot = head * n_heads + GAP;
    const cpu_memory m = make_memory(dtype, slot * CPU_SLOTS);
    *view = (rssm_ring_view){cpu_payload(&m), (rssm_i64)slot, (rssm_i64)head, (rssm_i64)record};
    return m;
}

static cpu_memory make_tokens(uint32_t dtype, size_t n_tokens, size_t n_heads, size_t n_dense, rssm_token_view *view)
{
    const size_t     head = n_dense > 1 ? n_dense + GAP : 1, token = head * n_heads + GAP;
    const cpu_memory m = make_memory(dtype, token * n_tokens);
    *view = (rssm_token_view){cpu_payload(&m), (rssm_i64)token, (rssm_i64)head};
    return m;
}

size_t cpu_state_elements(const rssm_problem *p)
{
    return (size_t)p->n_heads * p->head_dim * p->state_size;
}

static void make_parameters(cpu_layer *l)
{
    const size_t H = l->p.n_heads;
    l->A = malloc(3 * H * sizeof *l->A);
    cr_assert(l->A);
    l->D = l->A + H;
    l->dt_bias = l->D + H;
    for (size_t h = 0; h < H; h++) {
        l->A[h] = h % 5 == 4 ? 0.0f : -0.05f * (float)(1 + h * h % 40);
        l->D[h] = 0.25f * (float)(h % 7) - 0.5f;
        l->dt_bias[h] = 0.125f * (float)(h % 3);
    }
}

cpu_layer cpu_layer_make(const rssm_problem *p, size_t n_tokens)
{
    cpu_layer                     l = {.p = *p};
    const size_t                  H = p->n_heads, G = p->n_groups, P = p->head_dim, N = p->state_size;
    const uint32_t                act = p->activation_dtype;
    rssm_mamba2_step_kernel_args *a = &l.step;

    l.view.state.slot_stride = (rssm_i64)(cpu_state_elements(p) + GAP);
    l.state = make_memory(p->checkpoint_dtype, (cpu_state_elements(p) + GAP) * CPU_SLOTS);
    l.view.state.data = cpu_payload(&l.state);
    l.x_ring = make_ring(act, H, p->ring_length, P, &l.view.x_ring);
    l.B_ring = make_ring(act, G, p->ring_length, N, &l.view.B_ring);
    l.dt_ring = make_ring(RSSM_F32, H, p->ring_length, 1, &l.view.dt_ring);
    l.x = make_tokens(act, n_tokens, H, P, &a->x);
    l.z = make_tokens(act, n_tokens, H, P, &a->z);
    l.B = make_tokens(act, n_tokens, G, N, &a->B);
    l.C = make_tokens(act, n_tokens, G, N, &a->C);
    l.dt = make_tokens(RSSM_F32, n_tokens, H, 1, &a->dt);
    l.out = make_tokens(act, n_tokens, H, P, &a->out);
    make_parameters(&l);
    l.view.A = a->A = l.A;
    a->D = l.D;
    a->dt_bias = l.dt_bias;
    a->state = l.view.state;
    a->x_ring = l.view.x_ring;
    a->B_ring = l.view.B_ring;
    a->dt_ring = l.view.dt_ring;
    a->n_heads = (rssm_i32)H;
    a->n_groups = (rssm_i32)G;
    a->head_dim = (rssm_i32)P;
    a->state_size = (rssm_i32)N;
    a->ring_length = (rssm_i32)p->ring_length;
    a->max_tokens = (rssm_i32)p->max_tokens;
    a->dt_softplus = (rssm_i32)p->dt_softplus;
    return l;
}

void cpu_layer_free(cpu_layer *l)
{
    cpu_memory *all[] = {&l->state, &l->x_ring, &l->B_ring, &l->dt_ring, &l->x, &l->z, &l->B, &l->C, &l->dt, &l->out};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]->all);
        free(all[i]->before);
    }
    free(l->A);
}

size_t cpu_ring_at(const rssm_ring_view *v, size_t slot, size_t head, size_t record)
{
    return slot * (size_t)v->slot_stride + head * (size_t)v->head_stride + record * (size_t)v->record_stride;
}

size_t cpu_token_at(const rssm_token_view *v, size_t token, size_t head)
{
    return token * (size_t)v->token_stride + head * (size_t)v->head_stride;
}

void cpu_put_record(cpu_layer *l, size_t slot, size_t record, uint64_t j)
{
    const rssm_problem *p = &l->p;
    for (size_t h = 0; h < p->n_heads; h++) {
        cpu_fill(&l->x_ring, cpu_ring_at(&l->view.x_ring, slot, h, record), p->head_dim, j * 1000 + h, -2, 2);
        cpu_fill(&l->dt_ring, cpu_ring_at(&l->view.dt_ring, slot, h, record), 1, j * 1000 + h + 300, 0.01, 1.5);
    }
    for (size_t g = 0; g < p->n_groups; g++)
        cpu_fill(&l->B_ring, cpu_ring_at(&l->view.B_ring, slot, g, record), p->state_size, j * 1000 + g + 600, -1, 1);
}

void cpu_put_token(cpu_layer *l, size_t token, uint64_t j)
{
    const rssm_problem *p = &l->p;
    for (size_t h = 0; h < p->n_heads; h++) {
        cpu_fill(&l->x, cpu_token_at(&l->step.x, token, h), p->head_dim, j * 1000 + h, -2, 2);
        cpu_fill(&l->z, cpu_token_at(&l->step.z, token, h), p->head_dim, j * 1000 + h + 800, -3, 3);
        cpu_fill(&l->dt, cpu_token_at(&l->step.dt, token, h), 1, j * 1000 + h + 300, 0.01, 1.5);
    }
    for (size_t g = 0; g < p->n_groups; g++) {
        cpu_fill(&l->B, cpu_token_at(&l->step.B, token, g), p->state_size, j * 1000 + g + 600, -1, 1);
        cpu_fill(&l->C, cpu_token_at(&l->step.C, token, g), p->state_size, j * 1000 + g + 900, -1, 1);
    }
}

void cpu_put_sequence(cpu_layer *l, size_t slot, size_t start, size_t n)
{
    cpu_fill(&l->state, slot * (size_t)l->view.state.slot_stride, cpu_state_elements(&l->p), 77, -3, 3);
    for (size_t j = 0; j < n; j++)
        cpu_put_record(l, slot, (start + j) % l->p.ring_length, j);
}

// ------------------------------------------------------------------------------------------------------------ kernels

cpu_kernel cpu_builtin(const char *entry, const rssm_problem *p)
{
    const cpu_kernel k = {rssm_builtin_find(entry, p->activation_dtype, p->checkpoint_dtype),
                          p->n_groups * ((p->n_heads / p->n_groups + 3) / 4)}; // the default HEADS
    cr_assert(k.entry, "%s is not in the library", entry);
    return k;
}

cpu_kernel cpu_compiled(rssm_context *context, const char *name, const char *text, const rssm_problem *p,
                        rssm_kernel *loaded)
{
    const rssm_device    *device = &context->devices[context->n_devices - 1];
    const rssm_manifest  *manifest = rssm_template_set_find(context->templates, name);
    const rssm_toolchain *toolchain;
    rssm_object           object = {0};
    rssm_config           config;
    rssm_launch           launch;
    rssm_facts            facts;
    rssm_diag             diag = {0};

    rssm_facts_fill(device, p, &facts);
    cr_assert(manifest, "%s", name);
    cr_assert_eq(rssm_config_parse(manifest, text, &config, &diag), RSSM_OK, "%s", diag.text);
    const rssm_build_input input = {context->templates, &config, p, &facts, RSSM_CPU, device->info.arch, false, false};
    cr_assert_eq(rssm_context_toolchain(context, RSSM_CPU, &toolchain, &diag), RSSM_OK, "%s", diag.text);
    cr_assert_eq(rssm_build(&input, toolchain, &object, NULL, &diag), RSSM_OK, "%s: %s", text, diag.text);
    cr_assert_eq(rssm_launch_plan(&config, &facts, &launch, &diag), RSSM_OK, "%s", diag.text);
    cr_assert_eq(rssm_kernel_load_host(object.bytes, object.n, manifest->entry, loaded, &diag), RSSM_OK, "%s",
                 diag.text);
    rssm_object_free(&object);
    return (cpu_kernel){loaded->host_entry, launch.grid[0].per_row};
}

void cpu_launch(const cpu_kernel *k, const void *args, rssm_i64 n_rows, uint64_t seed)
{
    const size_t n = (size_t)(k->tasks_per_row * n_rows);
    rssm_i64    *order = malloc(n * sizeof *order);
    cr_assert(order);
    for (size_t i = 0; i < n; i++) {
        const size_t j = (size_t)(next(&seed) % (i + 1));
        order[i] = order[j];
        order[j] = (rssm_i64)i;
    }
    for (size_t i = 0; i < n; i++)
        k->entry(args, order[i]);
    free(order);
}
