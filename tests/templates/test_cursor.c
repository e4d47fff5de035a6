// Property test of templates/abi/cursor.h against a model that keeps every token by name.
//
// The model knows for each slot which token numbers were accepted, which of them the checkpoint holds and which ring
// record holds which token. Each random operation is applied to both; then C1 to C5 of cursor.h are checked.

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "templates/abi/cursor.h"

enum { MAX_RING = 96, MAX_TOKENS = 100000 };

typedef struct model {
    int64_t ring[MAX_RING];   // token number each ring record holds; -1: nothing yet
    int64_t folded;           // tokens 0 .. folded-1 are in the checkpoint
    int64_t accepted;         // tokens 0 .. accepted-1 are the sequence
    int64_t next_token;       // number the step's first candidate gets: == accepted
    int     fold_all_pending;
} model;

static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((random_state >> 33) % n);
}

static void model_reset(model *m)
{
    memset(m, 0, sizeof *m);
    for (int i = 0; i < MAX_RING; i++) m->ring[i] = -1;
}

// The live records of the cursor must be exactly the accepted tokens that are not folded yet, in order.
static void check_slot(const rssm_cursor *c, const rssm_window *w, const model *m)
{
    cr_assert(c->h >= 0 && c->h <= w->R, "C1: h = %d of R = %d", c->h, w->R);
    cr_assert(c->start >= 0 && c->start < w->R, "C1: start = %d", c->start);
    cr_assert_eq((int64_t)c->pos, m->folded, "C2: pos %llu, folded %lld", c->pos, (long long)m->folded);
    if (c->pending_mode != RSSM_MODE_NONE) return;   // between open and commit the checkpoint runs ahead of pos
    cr_assert_eq((int64_t)c->pos + c->h, m->accepted, "C2: %llu folded + %d live != %lld accepted", c->pos, c->h,
                 (long long)m->accepted);
    for (int j = 0; j < c->h; j++)
        cr_assert_eq(m->ring[rssm_ring_index(c->start, j, w->R)], m->folded + j, "C2: record %d", j);
}

// What a step kernel does with the descriptor, on token numbers.
static void model_step(model *m, const rssm_window *w, const rssm_descriptor *d)
{
    if (d->mode == RSSM_MODE_NONE) return;
    for (int j = 0; j < d->h; j++)
        cr_assert_eq(m->ring[rssm_ring_index(d->start, j, w->R)], m->folded + j, "live record %d was lost", j);
    cr_assert_eq((int64_t)d->pos, m->folded);
    if (d->mode == RSSM_MODE_FOLD_ALL) return;
    cr_assert(d->h + d->t <= w->R, "C1: append of %d behind %d in %d", d->t, d->h, w->R);
    for (int i = 0; i < d->t; i++) m->ring[rssm_ring_index(d->start, d->h + i, w->R)] = m->accepted + i;
}

static void model_commit(model *m, const rssm_descriptor *d, int accepted)
{
    const int a = accepted < 0 ? 0 : accepted < d->t ? accepted : d->t;
    if (d->mode == RSSM_MODE_FOLD_HISTORY) m->folded += d->h;
    if (d->mode == RSSM_MODE_FOLD_ALL) m->folded += d->h + d->t;
    m->accepted += d->mode == RSSM_MODE_FOLD_ALL ? d->t : a;
}

static void run_window(rssm_window w, int n_steps, uint64_t seed)
{
    rssm_cursor     c = {0};
    rssm_descriptor d = {0};
    model           m;
    uint32_t        epoch = 0;
    int             pending = 0;

    random_state = seed;
    model_reset(&m);
    for (int step = 0; step < n_steps; step++) {
        const rssm_cursor before = c;
        const int         t = (int)random_below((uint32_t)w.T + 1);
        const int         forced = random_below(8) == 0;
        rssm_descriptor   next;
        uint32_t          issues;

        if (w.T == 1) w.eager = random_below(16) == 0;   // eager switches meet non-empty rings
        if (pending && random_below(10) == 0) {          // opened too early: refused, nothing changes (C5)
            issues = rssm_cursor_open(&c, &w, 3, 0, t, forced, epoch, &next);
            cr_assert(issues & RSSM_ISSUE_UNCOMMITTED);
            cr_assert(next.slot == -1 && memcmp(&before, &c, sizeof c) == 0);
        }
        if (pending && random_below(12) != 0) {          // else: an epoch change must beat the pending step
            const int accepted = d.mode == RSSM_MODE_FOLD_ALL ? 1 : (int)random_below((uint32_t)w.T + 3) - 1;
            cr_assert_eq(rssm_cursor_commit(&c, &w, accepted), 0);
            model_commit(&m, &d, accepted);
            pending = 0;
            check_slot(&c, &w, &m);
            const rssm_cursor once = c;
            cr_assert_eq(rssm_cursor_commit(&c, &w, (int)random_below(5)), 0);
            cr_assert(memcmp(&once, &c, sizeof c) == 0, "C3: a second commit changed the cursor");
        } else if (pending) {
            epoch++;
        }
        if (random_below(40) == 0) epoch++;
        issues = rssm_cursor_open(&c, &w, 3, 7, t, forced, epoch, &next);
        cr_assert_eq(issues, 0, "issues %x at step %d", issues, step);
        cr_assert(next.slot == 3 && next.token == 7 && next.t == t);
        if (before.epoch != epoch) {
            model_reset(&m);
            cr_assert(next.h == 0 && next.pos == 0);
        }
        d = next;
        pending = d.mode != RSSM_MODE_NONE;
        if (t == 0) cr_assert(d.mode == (forced && d.h ? RSSM_MODE_FOLD_HISTORY : RSSM_MODE_NONE));
        if (t > 0 && forced) cr_assert(d.mode != RSSM_MODE_APPEND);
        model_step(&m, &w, &d);
        check_slot(&c, &w, &m);
    }
}

Test(cursor, keeps_every_token_exactly_once_in_every_window)
{
    uint64_t seed = 1;
    for (int T = 1; T <= 16; T++)
        for (int L = T; L <= 40; L += L < 4 ? 1 : 5)
            for (int extra = 0; extra < 3; extra++) {
                const int R = (T == 1 && extra == 0 ? L : L + T) + (extra == 2 ? 3 : 0);
                run_window((rssm_window){.L = L, .R = R, .T = T}, 2000, seed++);
            }
}

Test(cursor, folds_every_L_tokens_when_decoding_one_at_a_time)
{
    for (int L = 1; L <= 33; L++) {
        const rssm_window w = {.L = L, .R = L, .T = 1};
        rssm_cursor       c = {0};
        rssm_descriptor   d;
        for (int i = 0; i < 5 * L; i++) {
            cr_assert_eq(rssm_cursor_open(&c, &w, 0, 0, 1, 0, 0, &d), 0);
            cr_assert_eq(d.h, i % L, "C4: L = %d, token %d", L, i);
            cr_assert_eq(d.mode == RSSM_MODE_FOLD_ALL, i % L == L - 1, "C4: L = %d, token %d", L, i);
            rssm_cursor_commit(&c, &w, 1);
        }
    }
}

Test(cursor, refuses_a_row_that_would_overwrite_a_live_record)
{
    const rssm_window w = {.L = 8, .R = 8, .T = 4};   // R is too small for T = 4
    rssm_cursor       c = {.h = 6};
    rssm_descriptor   d;
    const rssm_cursor before = c;
    cr_assert_eq(rssm_cursor_open(&c, &w, 2, 0, 4, 0, 0, &d), RSSM_ISSUE_CAPACITY);
    cr_assert(d.slot == -1 && d.mode == RSSM_MODE_NONE && memcmp(&before, &c, sizeof c) == 0);
}

Test(cursor, refuses_bad_token_counts_and_invalid_slots)
{
    const rssm_window w = {.L = 8, .R = 12, .T = 4};
    rssm_cursor       c = {.invalid = 1};
    rssm_descriptor   d;
    cr_assert_eq(rssm_cursor_open(&c, &w, 0, 0, 5, 0, 0, &d), RSSM_ISSUE_TOKENS);
    cr_assert_eq(rssm_cursor_open(&c, &w, 0, 0, -1, 0, 0, &d), RSSM_ISSUE_TOKENS);
    cr_assert_eq(rssm_cursor_open(&c, &w, 0, 0, 2, 0, 0, &d), RSSM_ISSUE_INVALID_SLOT);
    cr_assert_eq(rssm_cursor_open(&c, &w, 0, 0, 2, 0, 9, &d), 0, "a new epoch makes the slot valid again");
    cr_assert_eq(c.invalid, 0);
}

Test(cursor, reports_a_token_lost_after_a_fold_of_everything)
{
    const rssm_window w = {.L = 1, .R = 1, .T = 1};
    rssm_cursor       c = {0};
    rssm_descriptor   d;
    cr_assert_eq(rssm_cursor_open(&c, &w, 0, 0, 1, 0, 0, &d), 0);
    cr_assert_eq(d.mode, RSSM_MODE_FOLD_ALL);
    cr_assert_eq(rssm_cursor_commit(&c, &w, 0), RSSM_ISSUE_LOST_TOKEN);
    cr_assert_eq(c.pos, 1, "the checkpoint holds the token all the same");
}

Test(cursor, retires_history_even_when_every_candidate_is_rejected)
{
    const rssm_window w = {.L = 4, .R = 6, .T = 2};
    rssm_cursor       c = {.start = 5, .h = 4};
    rssm_descriptor   d;
    cr_assert_eq(rssm_cursor_open(&c, &w, 0, 0, 2, 0, 0, &d), 0);
    cr_assert_eq(d.mode, RSSM_MODE_FOLD_HISTORY);
    cr_assert_eq(rssm_cursor_commit(&c, &w, 0), 0);
    cr_assert(c.start == 3 && c.h == 0 && c.pos == 4);
}

Test(cursor, materialisable_prefix_follows_the_committed_count)
{
    // State after token 123, 7 accepted, block size 128: the block boundary lies 5 records behind the checkpoint.
    const rssm_window w = {.L = 16, .R = 24, .T = 8};
    rssm_cursor       c = {.pos = 123};
    rssm_descriptor   d;
    cr_assert_eq(rssm_cursor_open(&c, &w, 0, 0, 8, 0, 0, &d), 0);
    rssm_cursor_commit(&c, &w, 7);
    cr_assert_eq(128 - (int)c.pos, 5);
    cr_assert(128 - (int)c.pos <= c.h);
}
