// The CUDA templates for the life of a slot against the library's CPU kernels, bit by bit, refereed: cursors and moves
// of every kind and list, copies between rings that wrap, and states to stored form and back.
//
// Dead records and gaps are uninitialised memory to the referee, so that reading one is a defect.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "abi/mamba2_layers.h"
#include "base/problem.h"
#include "runtime/builtin.h"
#include "tests/simt/suite.h"

enum { SLOTS = 12, MOST_ROWS = 600, LAYERS = 2, TENSORS = 4, GAP = 16 };

static uint64_t state;

static rssm_i32 below(rssm_i32 n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (rssm_i32)((state >> 33) % (uint64_t)n);
}

static void *device(const void *from, size_t n, bool poison)
{
    void *pointer = NULL;
    cr_assert_eq(simt_alloc(n, &pointer, NULL), RSSM_OK);
    simt_upload(pointer, from, n, poison);
    return pointer;
}

typedef struct loaded {
    simt_kernel *kernel;
    rssm_launch  launch;
} loaded;

static loaded load(rssm_op op, const rssm_problem *problem)
{
    rssm_template_set   *set = simt_open_templates();
    const rssm_manifest *m = rssm_template_set_next(set, op, RSSM_MAMBA2, RSSM_CUDA, NULL);
    const rssm_facts     facts = simt_facts(problem);
    loaded               l = {0};
    rssm_diag            diag = {0};

    cr_assert_not_null(m);
    cr_assert_eq(rssm_manifest_serves(m, problem, &diag), RSSM_OK, "%s", diag.text);
    const rssm_config config = rssm_config_default(m);
    cr_assert_eq(simt_template_load(simt_template_root(), &config, op == RSSM_OP_SLOTS ? NULL : problem, &facts, NULL,
                                    &l.kernel, &l.launch, &diag), RSSM_OK, "%s", diag.text);
    rssm_template_set_close(set);
    return l;
}

static void launch(const loaded *l, rssm_i32 n_rows, const void *args)
{
    simt_report         report;
    simt_launch_options options = {.shared_bytes = l->launch.shared_bytes, .seed = (uint64_t)below(1 << 30)};
    for (int i = 0; i < 3; i++) {
        options.grid[i] = (uint32_t)(l->launch.grid[i].constant + l->launch.grid[i].per_row * n_rows);
        options.block[i] = l->launch.block[i];
    }
    cr_assert(simt_launch(l->kernel, &options, args, &report), "%s", report.text);
}

static rssm_problem problem_of(rssm_i32 P, rssm_i32 N, uint32_t act, uint32_t checkpoint)
{
    rssm_problem p = RSSM_PROBLEM_INIT, normal;
    p.n_heads = 6, p.n_groups = 2, p.head_dim = (uint32_t)P, p.state_size = (uint32_t)N;
    p.window = p.ring_length = 7;
    p.activation_dtype = p.dt_dtype = act, p.checkpoint_dtype = checkpoint;
    cr_assert_eq(rssm_problem_normalise(&p, &normal, NULL), RSSM_OK);
    return normal;
}

// ------------------------------------------------------------------------------------------------------------- cursors

typedef struct batch {
    rssm_cursor    cursors[MOST_ROWS];
    rssm_slot_move moves[MOST_ROWS];
    rssm_i32       requests[MOST_ROWS], sources[MOST_ROWS], destinations[MOST_ROWS], counts[MOST_ROWS];
    rssm_u32       epochs[MOST_ROWS], issues;
    rssm_u64       positions[MOST_ROWS], nonces[MOST_ROWS];
} batch;

enum { RING = 9 };

// Slots 0 .. n / 2 - 1 are sources, the others destinations, each once; some requests name what they must not.
static void draw(batch *b, rssm_i32 n_slots, rssm_i32 n_rows)
{
    static const rssm_i32 wrong[] = {-1, -9, 1 << 20, 0x7fffffff};
    memset(b, 0, sizeof *b);
    for (rssm_i32 i = 0; i < n_slots; i++) {
        rssm_cursor *c = &b->cursors[i];
        c->start = below(RING), c->h = below(RING - 3), c->epoch = (rssm_u32)below(3), c->invalid = below(9) == 0;
        c->pending_mode = below(3) ? 0 : 1 + below(3), c->pending_t = c->pending_mode ? below(4) : 0;
        c->pos = (rssm_u64)below(1000) << 33, c->nonce = (rssm_u64)below(1000) << 20;
    }
    for (rssm_i32 i = 0; i < n_rows; i++) {
        const rssm_i32 to = n_slots / 2 + i % (n_slots / 2), from = below(4) ? below(n_slots / 2) : to;
        b->requests[i] = n_rows - 1 - i;
        b->sources[i] = below(15) ? from : wrong[below(4)];
        b->destinations[i] = i < n_slots / 2 && below(15) ? to : wrong[below(4)];   // each destination once
        b->counts[i] = below(RING + 3) - 1;
        b->epochs[i] = (rssm_u32)below(100), b->nonces[i] = (rssm_u64)below(100) << 40;
        b->positions[i] = b->cursors[to].pos + (rssm_u64)below(RING) - 1;
    }
}

// `optional`: bits of the arrays that are given; `end`: place of the list's end, -1: no list.
static void check_slots(const loaded *l, rssm_i32 kind, rssm_i32 n_rows, unsigned optional, rssm_i32 end)
{
    const rssm_i32 n_slots = MOST_ROWS;
    static batch   b, got;
    const bool     has_moves = kind == RSSM_SLOTS_COPY || kind == RSSM_SLOTS_MATERIALIZE;

    draw(&b, n_slots, n_rows);
    if (end >= 0 && end < n_rows) b.requests[end] = -1 - below(5);
    if (end == 0 || end == 3) b.requests[n_rows - 1] = 1 << 20;   // behind the end: must not matter
    b.issues = 1u << 30;
    got = b;
    const rssm_slots_kernel_args host = {
        .cursors = b.cursors, .moves = has_moves ? b.moves : NULL, .requests = end >= 0 ? b.requests : NULL,
        .sources = b.sources, .destinations = b.destinations,
        .counts = kind == RSSM_SLOTS_MATERIALIZE || optional & 1 ? b.counts : NULL,
        .epochs = optional & 2 ? b.epochs : NULL,
        .positions = kind == RSSM_SLOTS_TRUNCATE || optional & 4 ? b.positions : NULL,
        .nonces = optional & 8 ? b.nonces : NULL, .issues = optional & 16 ? &b.issues : NULL,
        .kind = kind, .ring_length = RING, .n_rows = n_rows, .n_slots = n_slots, .pad_slot = -1};
    const size_t           n = (size_t)n_rows;
    rssm_slots_kernel_args args = host;
    simt_reset();
    args.cursors = device(b.cursors, (size_t)n_slots * sizeof *b.cursors, false);
    if (host.moves) cr_assert_eq(simt_alloc(n * sizeof *b.moves, (void **)&args.moves, NULL), RSSM_OK);
    if (host.requests) args.requests = device(b.requests, n * 4, false);
    args.sources = device(b.sources, n * 4, false);
    args.destinations = device(b.destinations, n * 4, false);
    if (host.counts) args.counts = device(b.counts, n * 4, false);
    if (host.epochs) args.epochs = device(b.epochs, n * 4, false);
    if (host.positions) args.positions = device(b.positions, n * 8, false);
    if (host.nonces) args.nonces = device(b.nonces, n * 8, false);
    if (host.issues) args.issues = device(&b.issues, 4, false);
    launch(l, n_rows, &args);
    rssm_builtin_find("slots", RSSM_F32, RSSM_F32)(&host, 0);
    simt_download(got.cursors, args.cursors, (size_t)n_slots * sizeof *got.cursors);
    if (host.moves) simt_download(got.moves, args.moves, n * sizeof *got.moves);
    if (host.issues) simt_download(&got.issues, args.issues, 4);
    if (!host.issues) got.issues = b.issues;
    cr_assert_eq(got.issues, b.issues, "kind %d: issues 0x%x, not 0x%x", kind, got.issues, b.issues);
    for (rssm_i32 i = 0; i < n_slots; i++)
        cr_assert_eq(memcmp(&got.cursors[i], &b.cursors[i], sizeof *b.cursors), 0,
                     "kind %d: cursor %d of %d rows, end %d", kind, i, n_rows, end);
    for (rssm_i32 i = 0; i < n_rows && host.moves; i++)
        cr_assert_eq(memcmp(&got.moves[i], &b.moves[i], sizeof *b.moves), 0, "kind %d: move %d of %d rows, end %d",
                     kind, i, n_rows, end);
}

Test(slots, move_cursors_as_on_the_cpu, .timeout = 300)
{
    const rssm_problem problem = problem_of(16, 16, RSSM_F32, RSSM_F32);
    const loaded       l = load(RSSM_OP_SLOTS, &problem);
    const rssm_i32     threads = (rssm_i32)l.launch.block[0];
    const rssm_i32     rows[] = {1, 33, threads, threads + 1, MOST_ROWS};

    for (rssm_i32 kind = 0; kind < 5; kind++)
        for (int i = 0; i < 5; i++) {
            const rssm_i32 ends[] = {-1, 0, 3, rows[i] / 2, rows[i] - 1, threads};
            for (int k = 0; k < 6; k++)
                if (ends[k] <= rows[i]) check_slots(&l, kind, rows[i], (unsigned)below(32), ends[k]);
        }
    simt_kernel_unload(l.kernel);
}

// ---------------------------------------------------------------------------------------------------------------- copy

typedef struct tensor {
    unsigned char *bytes;
    rssm_i64       n[3], stride[3], n_dense, element_bytes;   // slot, head, record
    size_t         n_bytes;
} tensor;

static tensor make_tensor(rssm_i64 n_heads, rssm_i64 n_records, rssm_i64 n_dense, rssm_i64 element_bytes,
                          bool token_major)
{
    tensor t = {.n = {SLOTS, n_heads, n_records}, .n_dense = n_dense, .element_bytes = element_bytes};
    if (token_major) {
        t.stride[1] = n_dense, t.stride[2] = n_heads * n_dense, t.stride[0] = n_records * t.stride[2] + GAP;
    } else {
        t.stride[2] = n_dense + (n_dense > 1 ? GAP : 1);
        t.stride[1] = n_records * t.stride[2] + GAP, t.stride[0] = n_heads * t.stride[1] + GAP;
    }
    t.n_bytes = (size_t)(SLOTS * t.stride[0] * element_bytes);
    t.bytes = malloc(t.n_bytes);
    memset(t.bytes, 0xFF, t.n_bytes);   // dead: NaN in every format
    return t;
}

// Live bytes: never a word of two NaN half-words.
static void fill(const tensor *t, rssm_i64 slot, rssm_i64 record)
{
    for (rssm_i64 head = 0; head < t->n[1]; head++) {
        const rssm_i64 at = slot * t->stride[0] + head * t->stride[1] + record * t->stride[2];
        for (rssm_i64 i = 0; i < t->n_dense * t->element_bytes; i++)
            t->bytes[at * t->element_bytes + i] = (unsigned char)(below(256) & 0x3f);
    }
}

static void check_copy(const rssm_problem *p, bool token_major)
{
    const rssm_i64 H = p->n_heads, G = p->n_groups, P = p->head_dim, N = p->state_size, R = p->ring_length;
    const rssm_i64 act = p->activation_dtype == RSSM_F32 ? 4 : 2, st = p->checkpoint_dtype == RSSM_F32 ? 4 : 2;
    const loaded                   l = load(RSSM_OP_COPY, p);
    tensor                         t[LAYERS][TENSORS];
    rssm_mamba2_layer              host[LAYERS], there[LAYERS];
    rssm_slot_move                 moves[5];
    enum { N_MOVES = sizeof moves / sizeof moves[0] };
    rssm_mamba2_layers_kernel_args args = {.n_moves = N_MOVES, .n_layers = LAYERS, .n_heads = (rssm_i32)H,
                                           .n_groups = (rssm_i32)G, .head_dim = (rssm_i32)P, .state_size = (rssm_i32)N,
                                           .ring_length = (rssm_i32)R};

    simt_reset();
    for (int i = 0; i < N_MOVES; i++) {   // no record, all of them, a wrap, two of one source, nothing to do
        static const rssm_i32 n[] = {0, 7, 4, 3, 2};
        moves[i] = (rssm_slot_move){i == 4 ? -1 : i == 3 ? 2 : i, 6 + i, i == 1 ? 0 : 5, n[i], 1, 2};
    }
    moves[3].start = moves[2].start;
    for (int i = 0; i < LAYERS; i++) {
        void *data[TENSORS];
        t[i][0] = make_tensor(1, 1, H * P * N, st, token_major);
        t[i][1] = make_tensor(H, R, P, act, token_major);
        t[i][2] = make_tensor(G, R, N, act, token_major);
        t[i][3] = make_tensor(H, R, 1, 4, token_major);
        for (int m = 0; m < N_MOVES - 1; m++)
            for (int k = 0; k < TENSORS; k++)
                for (rssm_i32 j = 0; j < (k ? moves[m].n : 1); j++)
                    fill(&t[i][k], moves[m].source, k ? rssm_ring_index(moves[m].start, j, (rssm_i32)R) : 0);
        for (int k = 0; k < TENSORS; k++) data[k] = device(t[i][k].bytes, t[i][k].n_bytes, true);
        for (int side = 0; side < 2; side++) {
            rssm_mamba2_layer *e = side ? &there[i] : &host[i];
            rssm_ring_view    *rings[] = {&e->x_ring, &e->B_ring, &e->dt_ring};
            e->state = (rssm_state_view){side ? data[0] : t[i][0].bytes, t[i][0].stride[0]};
            for (int k = 1; k < TENSORS; k++)
                *rings[k - 1] = (rssm_ring_view){side ? data[k] : t[i][k].bytes, t[i][k].stride[0], t[i][k].stride[1],
                                                 t[i][k].stride[2]};
            e->A = NULL;
        }
    }
    args.sources = args.destinations = device(there, sizeof there, false);
    args.moves = device(moves, sizeof moves, false);
    launch(&l, N_MOVES * LAYERS, &args);
    args.sources = args.destinations = host;
    args.moves = moves;
    rssm_cpu_kernel *cpu = rssm_builtin_find("mamba2_copy", p->activation_dtype, p->checkpoint_dtype);
    for (rssm_i64 task = 0; task < N_MOVES * LAYERS * H; task++) cpu(&args, task);
    for (int i = 0; i < LAYERS; i++) {
        void *const data[] = {there[i].state.data, there[i].x_ring.data, there[i].B_ring.data, there[i].dt_ring.data};
        for (int k = 0; k < TENSORS; k++) {
            unsigned char *got = malloc(t[i][k].n_bytes);
            simt_download(got, data[k], t[i][k].n_bytes);
            cr_assert_eq(memcmp(got, t[i][k].bytes, t[i][k].n_bytes), 0, "P %d N %d: tensor %d of layer %d", (int)P,
                         (int)N, k, i);
            free(got);
            free(t[i][k].bytes);
        }
    }
    simt_kernel_unload(l.kernel);
}

static const struct {
    rssm_i32 P, N;
    uint32_t act, checkpoint;
} cases[] = {
    {16, 16, RSSM_F32, RSSM_F32},  {48, 32, RSSM_BF16, RSSM_F32}, {64, 128, RSSM_BF16, RSSM_BF16},
    {16, 48, RSSM_F16, RSSM_BF16}, {80, 64, RSSM_F16, RSSM_F32},  {32, 16, RSSM_F32, RSSM_BF16},
};
enum { N_CASES = sizeof cases / sizeof cases[0] };

Test(slots, copy_as_on_the_cpu, .timeout = 300)
{
    for (int i = 0; i < N_CASES; i++) {
        const rssm_problem p = problem_of(cases[i].P, cases[i].N, cases[i].act, cases[i].checkpoint);
        check_copy(&p, i % 2);
    }
}

// ------------------------------------------------------------------------------------------------------ encode, decode

static void check_states(const rssm_problem *p)
{
    enum { ROWS = 5 };
    const rssm_i64  n = (rssm_i64)p->n_heads * p->head_dim * p->state_size, stride = n + 16, slot_stride = n + 32;
    const rssm_i64  element_bytes = p->checkpoint_dtype == RSSM_F32 ? 4 : 2;
    const size_t    n_values = (size_t)(ROWS * stride) * 4, n_state = (size_t)(SLOTS * slot_stride * element_bytes);
    const rssm_i32  slots[ROWS] = {3, -1, 11, SLOTS, 0};
    const loaded    encode = load(RSSM_OP_ENCODE, p), decode = load(RSSM_OP_DECODE, p);
    rssm_cpu_kernel *cpu[] = {rssm_builtin_find("mamba2_encode", p->activation_dtype, p->checkpoint_dtype),
                              rssm_builtin_find("mamba2_decode", p->activation_dtype, p->checkpoint_dtype)};
    float           *values = malloc(n_values), *got_values = malloc(n_values);
    unsigned char   *stored = malloc(n_state), *got = malloc(n_state);

    simt_reset();
    for (size_t i = 0; i < n_values / 4; i++) {   // every kind of number, ties and NaNs among them
        const uint32_t bits = (uint32_t)below(1 << 30) << 2 ^ (uint32_t)below(1 << 20);
        const uint32_t chosen = below(5) == 0   ? (bits & 0xffff0000u) | 0x8000u
                                : below(9) == 0 ? bits | 0x7f800000u
                                                : bits;
        memcpy(&values[i], &chosen, 4);
    }
    for (size_t i = 0; i < n_state; i++) stored[i] = (unsigned char)below(256);
    void *there = device(stored, n_state, false), *values_there = device(values, n_values, false);
    rssm_mamba2_state_kernel_args host = {.state = {stored, slot_stride},
                                          .value_stride = stride,
                                          .slots = slots,
                                          .n_rows = ROWS,
                                          .n_slots = SLOTS,
                                          .pad_slot = -1,
                                          .n_heads = (rssm_i32)p->n_heads,
                                          .head_dim = (rssm_i32)p->head_dim,
                                          .state_size = (rssm_i32)p->state_size};
    rssm_mamba2_state_kernel_args args = host;
    args.state.data = there;
    args.slots = device(slots, sizeof slots, false);
    for (int turn = 0; turn < 4; turn++) {   // encode, decode, encode zeros, decode
        const bool is_decode = turn % 2;
        host.values = turn == 2 ? NULL : values;
        args.values = turn == 2 ? NULL : values_there;
        launch(is_decode ? &decode : &encode, ROWS, &args);
        for (rssm_i64 task = 0; task < ROWS * (rssm_i64)p->n_heads; task++) cpu[is_decode](&host, task);
        simt_download(got, there, n_state);
        simt_download(got_values, values_there, n_values);
        cr_assert_eq(memcmp(got, stored, n_state), 0, "P %u N %u, turn %d: states", p->head_dim, p->state_size, turn);
        cr_assert_eq(memcmp(got_values, values, n_values), 0, "P %u N %u, turn %d: values", p->head_dim, p->state_size,
                     turn);
    }
    simt_kernel_unload(encode.kernel);
    simt_kernel_unload(decode.kernel);
    free(values);
    free(got_values);
    free(stored);
    free(got);
}

Test(slots, encode_and_decode_as_on_the_cpu, .timeout = 300)
{
    for (int i = 0; i < N_CASES; i++) {
        const rssm_problem p = problem_of(cases[i].P, cases[i].N, cases[i].act, cases[i].checkpoint);
        check_states(&p);
    }
}
