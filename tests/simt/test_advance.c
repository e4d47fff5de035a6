// The CUDA template of advance against abi/cursor.h run row by row: every flag and optional array, rows below, at and
// above the number of threads, slots out of range, refused rows. (The verifier's traffic holds no row that must be
// refused.)
//
// Two rows of one slot are not tried: their writes race by definition, and the referee says so.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "abi/advance.h"
#include "tests/simt/suite.h"

enum { MOST_ROWS = 300, SLOTS = 320 };

typedef struct batch {
    rssm_cursor   cursors[SLOTS];
    rssm_i32      slots[MOST_ROWS], tokens[MOST_ROWS], cu_seqlens[MOST_ROWS + 1], accepted[MOST_ROWS];
    unsigned char forced[MOST_ROWS];
    rssm_u32      epochs[MOST_ROWS];
} batch;

typedef struct variant {
    rssm_i32 flags;
    bool     tokens, cu_seqlens, accepted, forced, epochs, issues;
    rssm_i32 T, eager, pad_slot;
} variant;

static uint64_t state;

static rssm_i32 below(rssm_i32 n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (rssm_i32)((state >> 33) % (uint64_t)n);
}

static void draw(batch *b, const rssm_window *w, bool duplicates)
{
    rssm_i32 order[SLOTS];
    memset(b, 0, sizeof *b);
    for (rssm_i32 i = 0; i < SLOTS; i++) {
        rssm_cursor *c = &b->cursors[i];
        c->start = below(w->R), c->h = below(w->L + 1), c->epoch = (rssm_u32)below(3), c->invalid = below(12) == 0;
        c->pending_mode = below(4), c->pending_t = c->pending_mode ? below(w->T + 1) : 0;
        if (c->h + c->pending_t > w->R) c->h = w->R - c->pending_t;
        c->pos = (rssm_u64)below(1000) << 33, c->nonce = (rssm_u64)below(1000) << 20;
        order[i] = i;
    }
    for (rssm_i32 i = SLOTS; i > 1; i--) {
        const rssm_i32 j = below(i), slot = order[i - 1];
        order[i - 1] = order[j], order[j] = slot;
    }
    for (rssm_i32 i = 0; i < MOST_ROWS; i++) {
        static const rssm_i32 wrong[] = {SLOTS, SLOTS + 7, -7, 0x7fffffff};
        b->slots[i] = order[i];
        if (below(9) == 0) b->slots[i] = -1;
        if (below(15) == 0) b->slots[i] = wrong[below(4)];
        if (duplicates && i > 0 && below(8) == 0) b->slots[i] = b->slots[below(i)];
        b->tokens[i] = below(12) ? below(w->T + 1) : w->T + 1;
        b->cu_seqlens[i + 1] = b->cu_seqlens[i] + below(w->T + 1);
        b->accepted[i] = below(w->T + 3) - 1;
        b->forced[i] = (unsigned char)(below(4) == 0 ? 200 : 0);
        b->epochs[i] = (rssm_u32)below(3);
    }
}

static bool is_duplicate(const batch *b, rssm_i32 row)
{
    for (rssm_i32 i = 0; i < row; i++)
        if (b->slots[i] == b->slots[row]) return true;
    return false;
}

// What advance must do, a row after the other. Of rows that name one slot only the first counts.
static rssm_u32 mirror(batch *b, const variant *v, const rssm_window *w, rssm_i32 n_rows, rssm_descriptor *out)
{
    static rssm_descriptor others[MOST_ROWS];
    rssm_i32               n_folds = 0, n_others = 0;
    rssm_u32               issues = 0;
    for (rssm_i32 i = 0; i < n_rows; i++) {
        const rssm_i32  token = v->cu_seqlens ? b->cu_seqlens[i] : i * w->T, slot = b->slots[i];
        const rssm_i32  t = v->cu_seqlens ? b->cu_seqlens[i + 1] - token : v->tokens ? b->tokens[i] : w->T;
        const rssm_i32  place = v->cu_seqlens && t <= 0 ? -1 : token;
        rssm_descriptor d;
        rssm_descriptor_null(&d, place);
        if (slot == v->pad_slot || slot < 0 || slot >= SLOTS) {
            if (slot != v->pad_slot) issues |= RSSM_ISSUE_SLOT_RANGE;
        } else if ((v->flags & RSSM_ADVANCE_CHECK_SLOTS) && is_duplicate(b, i)) {
            if (v->flags & RSSM_ADVANCE_OPEN) issues |= RSSM_ISSUE_DUPLICATE_SLOT;   // commit alone passes over it
        } else {
            rssm_cursor   *c = &b->cursors[slot];
            const rssm_u32 epoch = v->epochs ? b->epochs[i] : c->epoch;
            if ((v->flags & RSSM_ADVANCE_COMMIT) && epoch == c->epoch) {
                issues |= rssm_cursor_commit(c, w, v->accepted ? b->accepted[i] : c->pending_t);
            }
            if (v->flags & RSSM_ADVANCE_OPEN) {
                issues |= rssm_cursor_open(c, w, slot, place, t, v->forced && b->forced[i], epoch, &d);
            }
        }
        if (v->cu_seqlens) rssm_descriptor_own(&d, t);
        if (d.mode >= RSSM_MODE_FOLD_HISTORY)
            out[n_folds++] = d;
        else
            others[n_others++] = d;
    }
    memcpy(out + n_folds, others, (size_t)n_others * sizeof *out);
    return issues;
}

static void *device(const void *from, size_t n, bool wanted)
{
    void *pointer = NULL;
    if (!wanted) return NULL;
    cr_assert_eq(simt_alloc(n, &pointer, NULL), RSSM_OK);
    simt_upload(pointer, from, n, false);
    return pointer;
}

static void check(const simt_kernel *kernel, const rssm_launch *l, const variant *v, rssm_i32 n_rows)
{
    const rssm_window      w = {5, 5 + v->T, v->T, v->eager};
    const rssm_i32         has_open = v->flags & RSSM_ADVANCE_OPEN;
    static batch           b;
    static rssm_descriptor want[MOST_ROWS], got[MOST_ROWS];
    static rssm_cursor     cursors[SLOTS];
    rssm_u32               before = 1u << 30, issues = before;
    simt_report            report;
    const size_t           n = (size_t)n_rows;

    draw(&b, &w, v->flags & RSSM_ADVANCE_CHECK_SLOTS);
    simt_reset();
    memset(got, 0x55, sizeof got);
    const rssm_advance_kernel_args args = {
        .cursors = device(b.cursors, sizeof b.cursors, true),
        .descriptors = device(got, n * sizeof *got, has_open),
        .slots = device(b.slots, n * 4, true),
        .tokens = device(b.tokens, n * 4, v->tokens),
        .cu_seqlens = device(b.cu_seqlens, n * 4 + 4, v->cu_seqlens),
        .accepted = device(b.accepted, n * 4, v->accepted),
        .forced = device(b.forced, n, v->forced),
        .epochs = device(b.epochs, n * 4, v->epochs),
        .issues = device(&before, 4, v->issues),
        .window = w,
        .n_rows = n_rows,
        .n_slots = SLOTS,
        .pad_slot = v->pad_slot,
        .flags = v->flags,
    };
    const simt_launch_options options = {{1, 1, 1}, {l->block[0], 1, 1}, l->shared_bytes, (uint64_t)n_rows, false};
    cr_assert(simt_launch(kernel, &options, &args, &report), "%s", report.text);
    const rssm_u32 found = mirror(&b, v, &w, n_rows, want);
    simt_download(cursors, args.cursors, sizeof cursors);
    if (has_open) simt_download(got, args.descriptors, n * sizeof *got);
    if (v->issues) simt_download(&issues, args.issues, 4);
    if (v->issues) cr_expect_eq(issues, found | before, "issues 0x%x, not 0x%x", issues, found | before);
    for (rssm_i32 i = 0; i < SLOTS; i++)
        cr_assert_eq(memcmp(&cursors[i], &b.cursors[i], sizeof *cursors), 0, "cursor %d of %d rows, flags %d", i,
                     n_rows, v->flags);
    for (rssm_i32 i = 0; has_open && i < n_rows; i++)
        cr_assert_eq(memcmp(&got[i], &want[i], sizeof *got), 0, "descriptor %d of %d rows, flags %d", i, n_rows,
                     v->flags);
}

Test(templates, advance_does_what_the_cursors_say, .timeout = 300)
{
    enum { COMMIT = RSSM_ADVANCE_COMMIT, OPEN = RSSM_ADVANCE_OPEN, CHECK = RSSM_ADVANCE_CHECK_SLOTS };
    static const variant variants[] = {
        // flags                 tokens packed accepted forced epochs issues T  eager pad
        {COMMIT | OPEN | CHECK, true, false, true, true, true, true, 1, 0, -1},
        {COMMIT | OPEN, false, false, false, false, false, true, 1, 0, 3},
        {COMMIT, false, false, true, false, true, true, 4, 0, -1},
        {OPEN | CHECK, true, true, false, true, true, true, 4, 0, -1},
        {COMMIT | OPEN, false, true, true, true, false, false, 1, 1, 0},
        {COMMIT | OPEN, true, false, true, true, true, true, 3, 0, -1},
        {0, false, false, false, false, false, true, 1, 0, -1},
        {COMMIT | CHECK, true, false, true, false, true, true, 4, 0, -1},
    };
    rssm_template_set   *set = simt_open_templates();
    const rssm_manifest *m = rssm_template_set_next(set, RSSM_OP_ADVANCE, RSSM_MAMBA2, RSSM_CUDA, NULL);
    rssm_problem         problem = RSSM_PROBLEM_INIT;
    rssm_config          configs[SIMT_CONFIGS_MAX];

    problem.n_heads = 1, problem.head_dim = 16, problem.state_size = 16, problem.ring_length = 16;
    const rssm_facts facts = simt_facts(&problem);
    for (; m; m = rssm_template_set_next(set, RSSM_OP_ADVANCE, RSSM_MAMBA2, RSSM_CUDA, m)) {
        const size_t n_configs = simt_corner_configs(m, &problem, configs);
        cr_expect_geq(n_configs, 1);
        for (size_t i = 0; i < n_configs; i++) {
            simt_kernel *kernel = NULL;
            rssm_launch  l;
            rssm_diag    diag = {0};
            cr_assert_eq(simt_template_load(simt_template_root(), &configs[i], NULL, &facts, NULL, &kernel, &l, &diag),
                         RSSM_OK, "%s", diag.text);
            const rssm_i32 threads = (rssm_i32)l.block[0];
            const rssm_i32 rows[] = {1, 33, threads, threads + 1, MOST_ROWS};
            for (size_t k = 0; k < sizeof variants / sizeof variants[0]; k++)
                for (size_t j = 0; j < 5; j++)
                    if (rows[j] <= MOST_ROWS) check(kernel, &l, &variants[k], rows[j]);
            simt_kernel_unload(kernel);
        }
    }
    rssm_template_set_close(set);
}
