// Folds on the CPU are one: a materialize writes the bits that a flush of the same records writes, whichever kernel
// flushes (one token or several, history alone or with the token), wherever the records lie in the ring, whatever the
// tunables, inside the library or compiled. Everything but the folded checkpoint stays as it was; what no kernel may
// read holds NaN.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/problem.h"
#include "tests/templates/cpu_layer.h"

enum { MAX_TOKENS = 4 };

typedef enum flush { FLUSH_HISTORY, FLUSH_ALL, FLUSH_TOKENS, FLUSH_TOKENS_ALONE } flush;

static const void *checkpoint_of(const cpu_layer *l, size_t slot)
{
    const size_t at = slot * (size_t)l->view.state.slot_stride;
    return (char *)cpu_payload(&l->state) + at * cpu_element_bytes(l->state.dtype);
}

static size_t checkpoint_bytes(const cpu_layer *l)
{
    return cpu_state_elements(&l->p) * cpu_element_bytes(l->p.checkpoint_dtype);
}

static void take_checkpoint(cpu_layer *l, size_t slot)
{
    cpu_take(&l->state, slot * (size_t)l->view.state.slot_stride, cpu_state_elements(&l->p));
}

// Folds n records of slot 2 by a step, into its own checkpoint. All of them lie in the ring but for FLUSH_ALL, whose
// last one is the token, of which dt is the processed one. The tokens of the others are NaN: no fold may take them.
static void flush_records(cpu_layer *l, const cpu_kernel *k, flush how, size_t start, size_t n)
{
    const bool                   all = how == FLUSH_ALL;
    const rssm_i16               t = how == FLUSH_TOKENS_ALONE ? 0 : how == FLUSH_TOKENS ? 3 : 1;
    const rssm_descriptor        d = {2, 0, (rssm_i16)start, (rssm_i16)(all ? n - 1 : n), t,
                                      all ? RSSM_MODE_FOLD_ALL : RSSM_MODE_FOLD_HISTORY, 0, 0};
    rssm_mamba2_step_kernel_args args = l->step;

    args.descriptors = &d;
    args.n_rows = 1;
    args.max_tokens = how >= FLUSH_TOKENS ? MAX_TOKENS : 1;
    args.dt_softplus = 0;
    args.dt_bias = NULL;
    cpu_put_sequence(l, 2, start, all ? n - 1 : n);
    if (all) cpu_put_token(l, 0, n - 1);
    cpu_remember(&l->state);
    cpu_launch(k, &args, 1, n);
    take_checkpoint(l, 2);
    cr_assert(cpu_is_as_before(&l->state), "step %d writes another checkpoint", how);
}

// -------------------------------------------------------------------------------------------------------- materialize

static void materialize(const cpu_kernel *k, const rssm_mamba2_layer *layers, const rssm_slot_move *moves,
                        rssm_i32 n_moves, rssm_i32 n_layers, const rssm_problem *p)
{
    const rssm_mamba2_layers_kernel_args args = {.sources = layers,
                                                 .destinations = layers,
                                                 .moves = moves,
                                                 .n_moves = n_moves,
                                                 .n_layers = n_layers,
                                                 .n_heads = (rssm_i32)p->n_heads,
                                                 .n_groups = (rssm_i32)p->n_groups,
                                                 .head_dim = (rssm_i32)p->head_dim,
                                                 .state_size = (rssm_i32)p->state_size,
                                                 .ring_length = (rssm_i32)p->ring_length};
    cpu_launch(k, &args, (rssm_i64)n_moves * n_layers, 3);
}

static void check_layer(cpu_layer *l, const void *want, const char *what)
{
    const cpu_memory *rings[] = {&l->x_ring, &l->B_ring, &l->dt_ring};
    const size_t      n = checkpoint_bytes(l);
    cr_expect(memcmp(checkpoint_of(l, 4), want, n) == 0, "%s: another slot", what);
    cr_expect(memcmp(checkpoint_of(l, 3), want, n) == 0, "%s: in place", what);
    cr_expect(memcmp(checkpoint_of(l, 0), checkpoint_of(l, 1), n) == 0, "%s: copy", what);
    for (size_t slot = 0; slot < CPU_SLOTS; slot++)
        if (slot == 0 || slot == 3 || slot == 4) take_checkpoint(l, slot);
    cr_expect(cpu_is_as_before(&l->state), "%s: writes beyond its checkpoints", what);
    for (int r = 0; r < 3; r++)
        cr_expect(cpu_is_as_before(rings[r]), "%s: writes ring %d", what, r);
}

// In two layers: slot 1 to slot 4, in place in slot 3 whose later records stay, a copy of slot 1 to slot 0, and moves
// that do nothing.
static void check_materialize(const cpu_kernel *k, const rssm_problem *p, size_t start, size_t n, const void *want,
                              const char *what)
{
    cpu_layer               l[2] = {cpu_layer_make(p, 1), cpu_layer_make(p, 1)};
    const rssm_mamba2_layer views[] = {l[0].view, l[1].view};
    const rssm_i32          first = (rssm_i32)start, count = (rssm_i32)n;
    const rssm_slot_move    moves[] = {
        {-1, 4, 0, 3, 0, 0}, {1, 4, first, count, 5, 6}, {3, 3, 1, count, 5, 6}, {1, 0, 0, 0, 5, 6}, {1, 1, 0, 0, 5, 6},
    };
    for (int i = 0; i < 2; i++) {
        cpu_put_sequence(&l[i], 1, start, n);
        cpu_put_sequence(&l[i], 3, 1, n + 2 < p->ring_length ? n + 2 : p->ring_length);
        cpu_remember(&l[i].state);
        cpu_remember(&l[i].x_ring);
        cpu_remember(&l[i].B_ring);
        cpu_remember(&l[i].dt_ring);
    }
    materialize(k, views, moves, 5, 2, p);
    for (int i = 0; i < 2; i++) {
        check_layer(&l[i], want, what);
        cpu_layer_free(&l[i]);
    }
}

// -------------------------------------------------------------------------------------------------------------- tests

static rssm_problem problem_of(uint32_t P, uint32_t N, uint32_t H, uint32_t G, uint32_t R, uint32_t act, uint32_t state)
{
    rssm_problem p = RSSM_PROBLEM_INIT, normal;
    rssm_diag    diag = {0};
    p.head_dim = P;
    p.state_size = N;
    p.n_heads = H;
    p.n_groups = G;
    p.window = R > 20 ? 16 : R - 4;
    p.ring_length = R;
    p.activation_dtype = act;
    p.dt_dtype = RSSM_F32;
    p.checkpoint_dtype = state;
    cr_assert_eq(rssm_problem_normalise(&p, &normal, &diag), RSSM_OK, "%s", diag.text);
    return normal;
}

// Every flush from several places of the ring leaves the bits of *want, which the first one sets.
static void check_flush(const cpu_kernel *k, const rssm_problem *p, flush how, size_t n, void **want, const char *what)
{
    const size_t starts[] = {0, 3, p->ring_length - 2};
    for (size_t i = 0; i < 3; i++) {
        cpu_layer l = cpu_layer_make(p, MAX_TOKENS);
        flush_records(&l, k, how, starts[i], n);
        if (*want == NULL) {
            *want = malloc(checkpoint_bytes(&l));
            memcpy(*want, checkpoint_of(&l, 2), checkpoint_bytes(&l));
        }
        cr_expect(memcmp(*want, checkpoint_of(&l, 2), checkpoint_bytes(&l)) == 0,
                  "%s, flush %d of %zu records from %zu: other bits", what, how, n, starts[i]);
        cpu_layer_free(&l);
    }
}

static void check_problem(const rssm_problem *p, const cpu_kernel *rows, const cpu_kernel *tokens,
                          const cpu_kernel *fold, size_t n, void **want, const char *what)
{
    check_flush(rows, p, FLUSH_HISTORY, n, want, what);
    check_flush(rows, p, FLUSH_ALL, n, want, what);
    check_flush(tokens, p, FLUSH_TOKENS, n, want, what);
    check_flush(tokens, p, FLUSH_TOKENS_ALONE, n, want, what);
    check_materialize(fold, p, 0, n, *want, what);
    check_materialize(fold, p, p->ring_length - 1, n, *want, what);
}

static const uint32_t activations[] = {RSSM_F32, RSSM_BF16, RSSM_F16};
static const uint32_t checkpoints[] = {RSSM_F32, RSSM_BF16};

Test(cpu_fold, built_in_kernels_agree_bit_by_bit)
{
    static const uint32_t shapes[][5] = {{16, 128, 6, 1, 20}, {7, 33, 4, 2, 9}, {24, 600, 2, 2, 8}, {8, 64, 9, 1, 60}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        for (int f = 0; f < 6; f++) {
            const uint32_t    *q = shapes[s];
            const rssm_problem p = problem_of(q[0], q[1], q[2], q[3], q[4], activations[f / 2], checkpoints[f % 2]);
            const cpu_kernel   rows = cpu_builtin("mamba2_step_rows", &p);
            const cpu_kernel   tokens = cpu_builtin("mamba2_step_tokens", &p);
            const cpu_kernel   fold = cpu_builtin("mamba2_materialize_fold", &p);
            const size_t       counts[] = {1, 2, 5, q[4] - 3};
            for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
                char  what[96];
                void *want = NULL;
                snprintf(what, sizeof what, "P %u N %u, formats %d, %zu records", q[0], q[1], f, counts[c]);
                check_problem(&p, &rows, &tokens, &fold, counts[c], &want, what);
                free(want);
            }
        }
    }
}

// Against the built-in ones: another compiler's, other vectors, another order of tasks.
static void check_compiled(uint32_t P, uint32_t N, uint32_t act, uint32_t state)
{
    static const char *const configs[] = {"VEC=8 FOLD_ROWS=1 HEADS=4 SPLIT=1 PREFETCH=3072",
                                          "VEC=16 FOLD_ROWS=2 HEADS=1 SPLIT=4 PREFETCH=0"};
    rssm_context_options     options = RSSM_CONTEXT_OPTIONS_INIT;
    rssm_problem             p = problem_of(P, N, 6, 2, 13, act, state);
    rssm_context            *context;
    rssm_diag                diag = {0};
    void                    *want = NULL;

    options.database = "/nonexistent/replayssm/tuned.db";
    cr_assert_eq(rssm_context_open(&options, &context, &diag), RSSM_OK, "%s", diag.text);
    const bool has_wide = rssm_device_fact_value(&context->devices[context->n_devices - 1], "dev.vector_bytes") >= 64;
    const cpu_kernel rows = cpu_builtin("mamba2_step_rows", &p);
    check_flush(&rows, &p, FLUSH_HISTORY, 9, &want, "built in");
    for (int c = 0; c < (has_wide ? 2 : 1); c++) {
        rssm_kernel  loaded[3];
        rssm_problem several = p;
        several.max_tokens = MAX_TOKENS;
        const cpu_kernel own[] = {
            cpu_compiled(context, "mamba2_step_rows", configs[c], &p, &loaded[0]),
            cpu_compiled(context, "mamba2_step_tokens", configs[c], &several, &loaded[1]),
            cpu_compiled(context, "mamba2_materialize_fold", configs[c], &p, &loaded[2]),
        };
        check_problem(&p, &own[0], &own[1], &own[2], 9, &want, configs[c]);
        for (int i = 0; i < 3; i++)
            rssm_kernel_unload_host(&loaded[i]);
    }
    free(want);
    rssm_context_close(context);
}

Test(cpu_fold, compiled_kernels_agree_with_built_in_ones)
{
    check_compiled(64, 128, RSSM_BF16, RSSM_F32);
    check_compiled(29, 72, RSSM_BF16, RSSM_BF16);
    check_compiled(29, 41, RSSM_F16, RSSM_F32);
}
