#include "tests/runtime/slot_fixture.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

uint64_t fixture_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545F4914F6CDD1Dull;
}

int32_t fixture_below(int32_t n)
{
    return (int32_t)((fixture_random() >> 33) % (uint64_t)n);
}

rssm_problem fixture_shape(uint32_t H, uint32_t G, uint32_t P, uint32_t N, uint32_t R, uint32_t act,
                           uint32_t checkpoint)
{
    rssm_problem p = RSSM_PROBLEM_INIT;
    p.n_heads = H;
    p.n_groups = G;
    p.head_dim = P;
    p.state_size = N;
    p.window = p.ring_length = R;
    p.activation_dtype = p.dt_dtype = act;
    p.checkpoint_dtype = checkpoint;
    return p;
}

static int64_t bytes_of(uint32_t dtype)
{
    return dtype == RSSM_F32 ? 4 : 2;
}

static void *memory(size_t n)
{
    void *p = NULL;
    cr_assert_eq(posix_memalign(&p, 256, n), 0);
    memset(p, 0, n);
    return p;
}

static void make_tensor(fixture_tensor *t, int64_t n_slots, int64_t n_heads, int64_t n_records, int64_t n_dense,
                        int64_t element_bytes, fixture_layout layout)
{
    const int64_t gap = layout == FIXTURE_GAPS;
    *t = (fixture_tensor){.n = {n_slots, n_heads, n_records, n_dense}, .element_bytes = element_bytes};
    if (layout == FIXTURE_TOKEN_MAJOR) {
        t->stride[1] = n_dense;
        t->stride[2] = n_heads * n_dense;
        t->stride[0] = n_records * t->stride[2];
    } else {
        t->stride[2] = n_dense + 3 * gap;
        t->stride[1] = n_records * t->stride[2] + 5 * gap;
        t->stride[0] = n_heads * t->stride[1] + 7 * gap;
    }
    t->n_bytes = (size_t)((n_slots * t->stride[0] + 2) * element_bytes);
    t->bytes = memory(t->n_bytes);
    t->data = t->bytes + gap * element_bytes;   // aligned to its elements, and to nothing more
}

static void make_layer(slot_fixture *f, uint32_t i, fixture_layout layout)
{
    const uint32_t      plan = i % f->n_problems;
    const rssm_problem *p = &f->problems[plan];
    const int64_t       H = p->n_heads, G = p->n_groups, P = p->head_dim, N = p->state_size, R = p->ring_length;
    const int64_t       act = bytes_of(p->activation_dtype), S = f->n_slots;
    fixture_tensor     *t = f->tensor[i];

    make_tensor(&t[FIXTURE_STATE], S, 1, 1, H * P * N, bytes_of(p->checkpoint_dtype), layout);
    make_tensor(&t[FIXTURE_X], S, H, R, P, act, layout);
    make_tensor(&t[FIXTURE_B], S, G, R, N, act, layout);
    make_tensor(&t[FIXTURE_DT], S, H, R, 1, 4, layout);
    f->layer[i] = (rssm_layer)RSSM_LAYER_INIT;
    f->layer[i].plan = plan;
    f->layer[i].state = (rssm_state_tensor){t[0].data, t[0].stride[0]};
    rssm_ring_tensor *rings[] = {&f->layer[i].x_ring, &f->layer[i].B_ring, &f->layer[i].dt_ring};
    for (int k = 1; k < FIXTURE_TENSORS; k++)
        *rings[k - 1] = (rssm_ring_tensor){t[k].data, t[k].stride[0], t[k].stride[1], t[k].stride[2]};
    f->layer[i].A = f->A;
}

void fixture_open_slots(slot_fixture *f, const rssm_problem *problems, uint32_t n_problems, uint32_t n_layers,
                        uint32_t n_slots, fixture_layout layout)
{
    rssm_context_options co = RSSM_CONTEXT_OPTIONS_INIT;
    rssm_group_options   go = RSSM_GROUP_OPTIONS_INIT;
    rssm_diag            diag = {0};

    memset(f, 0, sizeof *f);
    co.miss_policy = RSSM_MISS_BUILTIN;
    co.database = "/nonexistent/replayssm/tuned.db";
    co.n_threads = 2;
    cr_assert_eq(rssm_context_open(&co, &f->context, &diag), RSSM_OK, "%s", diag.text);
    memcpy(f->problems, problems, n_problems * sizeof *problems);
    f->n_problems = n_problems;
    f->n_layers = n_layers;
    f->n_slots = n_slots;
    f->max_rows = 2 * n_slots;
    f->device = rssm_device_count(f->context) - 1;
    f->cursors = memory(n_slots * sizeof *f->cursors);
    f->A = memory(1024 * sizeof(float));
    go.device = f->device;
    go.problems = f->problems;
    go.n_problems = n_problems;
    go.n_slots = n_slots;
    go.max_rows = f->max_rows;
    go.cursors = f->cursors;
    cr_assert_eq(rssm_group_create(f->context, &go, &f->group, &diag), RSSM_OK, "%s", diag.text);
    for (uint32_t i = 0; i < n_layers; i++) make_layer(f, i, layout);
    f->table = memory(rssm_layers_table_bytes(n_layers));
    cr_assert_eq(rssm_layers_create(f->group, f->layer, n_layers, f->table, &f->layers, &diag), RSSM_OK, "%s",
                 diag.text);
}

void fixture_close_slots(slot_fixture *f)
{
    rssm_layers_destroy(f->layers);
    rssm_group_destroy(f->group);
    rssm_context_close(f->context);
    for (uint32_t i = 0; i < f->n_layers; i++)
        for (int k = 0; k < FIXTURE_TENSORS; k++) free(f->tensor[i][k].bytes);
    free(f->cursors);
    free(f->A);
    free(f->table);
}

void fixture_randomise(slot_fixture *f, uint64_t seed)
{
    const int32_t R = (int32_t)f->problems[0].ring_length;

    state = seed * 0x9E3779B97F4A7C15ull + 1;
    for (uint32_t i = 0; i < f->n_layers; i++)
        for (int k = 0; k < FIXTURE_TENSORS; k++)
            for (size_t b = 0; b < f->tensor[i][k].n_bytes; b++)
                f->tensor[i][k].bytes[b] = (char)(fixture_random() >> 40);
    for (uint32_t s = 0; s < f->n_slots; s++)
        f->cursors[s] = (rssm_cursor_record){.start = fixture_below(R), .h = fixture_below(R + 1),
                                             .epoch = (uint32_t)fixture_below(5), .pos = fixture_random() >> 8,
                                             .nonce = fixture_random()};
}

fixture_image fixture_image_of(const slot_fixture *f)
{
    fixture_image image = {0};
    for (uint32_t i = 0; i < f->n_layers; i++)
        for (int k = 0; k < FIXTURE_TENSORS; k++) {
            image.bytes[i][k] = memory(f->tensor[i][k].n_bytes);
            memcpy(image.bytes[i][k], f->tensor[i][k].bytes, f->tensor[i][k].n_bytes);
        }
    image.cursors = memory(f->n_slots * sizeof *image.cursors);
    memcpy(image.cursors, f->cursors, f->n_slots * sizeof *image.cursors);
    return image;
}

void fixture_image_free(const slot_fixture *f, fixture_image *image)
{
    for (uint32_t i = 0; i < f->n_layers; i++)
        for (int k = 0; k < FIXTURE_TENSORS; k++) free(image->bytes[i][k]);
    free(image->cursors);
}

void fixture_expect_memory(const slot_fixture *f, const fixture_image *image, const char *when)
{
    static const char *const names[] = {"state", "x ring", "B ring", "dt ring"};
    for (uint32_t i = 0; i < f->n_layers; i++)
        for (int k = 0; k < FIXTURE_TENSORS; k++) {
            const char *a = f->tensor[i][k].bytes, *b = image->bytes[i][k];
            size_t      at = 0;
            while (at < f->tensor[i][k].n_bytes && a[at] == b[at]) at++;
            cr_assert_eq(at, f->tensor[i][k].n_bytes, "%s: %s of layer %u differs at byte %zu", when, names[k], i, at);
        }
}

void fixture_expect_cursors(const slot_fixture *f, const fixture_image *image, const char *when)
{
    for (uint32_t s = 0; s < f->n_slots; s++)
        cr_assert_eq(memcmp(&f->cursors[s], &image->cursors[s], sizeof *f->cursors), 0, "%s: cursor %u", when, s);
}

char *fixture_at(const slot_fixture *f, const fixture_image *image, uint32_t layer, int tensor, int64_t slot,
                 int64_t head, int64_t record)
{
    const fixture_tensor *t = &f->tensor[layer][tensor];
    char                 *base = image ? image->bytes[layer][tensor] + (t->data - t->bytes) : t->data;
    return base + (slot * t->stride[0] + head * t->stride[1] + record * t->stride[2]) * t->element_bytes;
}

void fixture_model_copy(const slot_fixture *f, fixture_image *image, int32_t from, int32_t to, int32_t start, int32_t n)
{
    for (uint32_t i = 0; i < f->n_layers; i++)
        for (int k = 0; k < FIXTURE_TENSORS; k++) {
            const fixture_tensor *t = &f->tensor[i][k];
            const int64_t         n_records = k == FIXTURE_STATE ? 1 : n;
            for (int64_t head = 0; head < t->n[1]; head++)
                for (int64_t j = 0; j < n_records; j++)
                    memcpy(fixture_at(f, image, i, k, to, head, j),
                           fixture_at(f, image, i, k, from, head, k == FIXTURE_STATE ? 0 : (start + j) % t->n[2]),
                           (size_t)(t->n[3] * t->element_bytes));
        }
}
