// A model step: a random batch of sequences and rows that must do nothing, advanced and stepped in every layer.
//
// Acceptance of a slot's last step comes with advance, with a commit just before an open, or with a commit earlier on:
// at once after the step, or in an event of its own. See game.h.
#include <string.h>

#include "tests/lifecycle/rows.h"

// ---------------------------------------------------------------------------------------------------------- the checks

static bool folds(const rssm_descriptor *d)
{
    return d->mode == RSSM_MODE_FOLD_HISTORY || d->mode == RSSM_MODE_FOLD_ALL;
}

// Folding rows first, each part in the order of the rows.
static rssm_status check_descriptors(life_game *g, const life_rows *b)
{
    int32_t at = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < b->n; i++) {
            const rssm_descriptor *want = &b->rows[i].want;
            rssm_descriptor        got;
            if (folds(want) != (pass == 0)) continue;
            const size_t offset = g->w.arrays[LIFE_DESCRIPTORS].offset + (size_t)at * sizeof got;
            memcpy(&got, g->w.actual + offset, sizeof got);
            if (memcmp(&got, want, sizeof got) != 0) {
                return life_wrong(&g->w,
                                  "descriptor %d is {slot %d, token %d, start %d, h %d, t %d, mode %d, pos %llu, nonce "
                                  "%llu}, want that of row %d: {slot %d, token %d, start %d, h %d, t %d, mode %d, pos "
                                  "%llu, nonce %llu}",
                                  at, got.slot, got.token, got.start, got.h, got.t, got.mode, got.pos, got.nonce, i,
                                  want->slot, want->token, want->start, want->h, want->t, want->mode, want->pos,
                                  want->nonce);
            }
            life_adopt(&g->w, offset, sizeof got);
            at++;
        }
    }
    return RSSM_OK;
}

// What the image must hold where the step has no choice: zeros, and the records' x and B.
static void expect_exact(life_game *g, const life_rows *b, const life_row *r)
{
    life_world            *w = &g->w;
    const rssm_descriptor *d = &r->want;
    const bool             computes = d->slot >= 0 && d->mode != RSSM_MODE_NONE && d->t > 0;
    const int32_t          n_zeros = d->token < 0 || computes ? 0 : d->t > 0 ? d->t : b->group->window.T;

    for (uint32_t layer = 0; layer < LIFE_LAYERS; layer++) {
        const life_layer *l = &w->layers[layer];
        for (int32_t i = 0; i < n_zeros; i++) {
            for (int64_t head = 0; head < l->out.n_heads; head++)
                memset(w->image + life_at(&l->out, d->token + i, head, 0), 0, life_run_bytes(&l->out));
        }
        for (int32_t i = 0; computes && d->mode != RSSM_MODE_FOLD_ALL && i < d->t; i++) {
            const life_tensor *rings[] = {&l->x_ring, &l->B_ring};
            for (int k = 0; k < 2; k++) {
                const unsigned char *bits = life_token_bits(w, r->ids[i], layer, k == 0 ? LIFE_X : LIFE_B);
                const size_t         n = life_run_bytes(rings[k]);
                for (int64_t head = 0; head < rings[k]->n_heads; head++)
                    memcpy(w->image + life_at(rings[k], d->slot, head, (d->start + d->h + i) % g->w.ring),
                           bits + (size_t)head * n, n);
            }
        }
    }
}

static void count_row(life_game *g, const life_row *r)
{
    const rssm_descriptor *d = &r->want;
    uint64_t              *n = g->traffic;
    n[LIFE_TRAFFIC_NULL_ROW] += !r->is_live && !r->issues;
    n[LIFE_TRAFFIC_REFUSED_ROW] += r->issues != 0;
    if (d->slot < 0) return;
    n[LIFE_TRAFFIC_APPEND] += d->mode == RSSM_MODE_APPEND;
    n[LIFE_TRAFFIC_FOLD_HISTORY] += d->mode == RSSM_MODE_FOLD_HISTORY;
    n[LIFE_TRAFFIC_FOLD_ALL] += d->mode == RSSM_MODE_FOLD_ALL;
    n[LIFE_TRAFFIC_FORCED] += folds(d) && r->forced;
    n[LIFE_TRAFFIC_IDLE] += d->mode == RSSM_MODE_NONE;
    n[LIFE_TRAFFIC_WRAP] += d->start + d->h + (d->mode != RSSM_MODE_FOLD_ALL ? d->t : 0) > g->w.ring;
}

// The mode by the words of SEMANTICS 0.2, told apart from cursor.h, which the library uses as well.
static int32_t expected_mode(const rssm_window *w, const life_row *r)
{
    const int32_t fold = w->T == 1 && r->t > 0 ? RSSM_MODE_FOLD_ALL : RSSM_MODE_FOLD_HISTORY;
    const int32_t h = r->want.h;
    if (r->t == 0) return h > 0 && r->forced ? fold : RSSM_MODE_NONE;
    if (r->forced || w->eager) return fold;
    return w->T == 1 ? (h >= w->L - 1 ? fold : RSSM_MODE_APPEND) : h + r->t <= w->L ? RSSM_MODE_APPEND : fold;
}

// Whether the row that cursor.h lets pass is what the sequence and the window allow.
static rssm_status check_descriptor(life_game *g, const life_rows *b, const life_row *r)
{
    const rssm_descriptor *d = &r->want;
    const life_sequence   *s = &g->slots[d->slot].s;
    if (d->h != s->n_records || d->pos != s->position)
        return life_wrong(&g->w,
                          "the descriptor of slot %d has h %d and pos %llu, but its sequence has %d records behind "
                          "%llu tokens",
                          d->slot, d->h, d->pos, s->n_records, (unsigned long long)s->position);
    if (g->slots[d->slot].use != LIFE_LIVE || d->mode != expected_mode(&b->group->window, r) ||
        (d->mode != RSSM_MODE_FOLD_ALL && d->h + d->t > g->w.ring))
        return life_wrong(&g->w, "a step of %d tokens of slot %d over %d records runs in mode %d (T %d, L %d, R %d)",
                          d->t, d->slot, d->h, d->mode, b->group->window.T, g->w.window, g->w.ring);
    return RSSM_OK;
}

static rssm_status check_row(life_game *g, const life_rows *b, const life_row *r)
{
    const rssm_descriptor *d = &r->want;
    const bool             all = d->mode == RSSM_MODE_FOLD_ALL, history = d->mode == RSSM_MODE_FOLD_HISTORY;
    rssm_status            st = RSSM_OK;

    count_row(g, r);
    expect_exact(g, b, r);
    if (d->slot < 0) return RSSM_OK;
    life_slot     *slot = &g->slots[d->slot];
    life_sequence *s = &slot->s;
    RSSM_TRY(check_descriptor(g, b, r));
    for (int32_t i = 0; i < d->t; i++) {
        s->records[s->n_records + i].token = r->ids[i];
        s->records[s->n_records + i].is_prefilled = false;
        if (!all) slot->is_dead[(d->start + d->h + i) % g->w.ring] = false;
    }
    const life_row_check c = {.s = s,
                              .from = d->slot,
                              .to = d->slot,
                              .n_records = d->h,
                              .fold = all       ? RSSM_ORACLE_FOLD_ALL
                                      : history ? RSSM_ORACLE_FOLD_RECORDS
                                                : RSSM_ORACLE_FOLD_NOTHING,
                              .t = d->t,
                              .tokens = r->ids,
                              .first_output = d->token,
                              .append_at = all ? -1 : d->start + d->h,
                              .what = all       ? "fold all"
                                      : history ? "fold history"
                                                : "append"};
    RSSM_TRY(life_check_row(&g->w, &g->work, &c));
    s->pending_t = d->t;
    s->pending_mode = d->mode;
    if (all || history) life_sequence_folded(s, d->h);
    if (all) s->position += (uint64_t)d->t;
done:
    return st;
}

// ------------------------------------------------------------------------------------------------------------ the
// calls

// After a call that moves cursors: everything it may have written is compared, and the step's inputs with it.
static rssm_status check_control(life_game *g, const life_rows *b, rssm_u32 issues)
{
    rssm_status st;
    RSSM_TRY(life_fetch(&g->w, false));
    RSSM_TRY(life_check_issues(g, issues));
    RSSM_TRY(life_check_cursors(g));
    if (b) RSSM_TRY(check_descriptors(g, b));
    RSSM_TRY(life_compare(&g->w, false));
done:
    return st;
}

typedef enum style { STYLE_ADVANCE, STYLE_COMMIT_AND_OPEN, STYLE_OPEN } style;

static style draw_style(life_game *g, const life_rows *b)
{
    bool pending = false;
    for (int32_t i = 0; i < b->n; i++)
        pending |= b->rows[i].is_live && g->mirror[b->rows[i].slot].pending_mode != RSSM_MODE_NONE;
    if (pending && !life_one_in(g, 24)) return life_one_in(g, 3) ? STYLE_COMMIT_AND_OPEN : STYLE_ADVANCE;
    return (style)life_below(g, 3);
}

static rssm_status move_cursors(life_game *g, life_rows *b)
{
    static const char *const names[] = {"rssm_advance", "rssm_commit", "rssm_open"};
    const life_calls        *calls = g->w.calls;
    const style              how = draw_style(g, b);
    rssm_u32                 issues = 0;
    rssm_status              st;

    g->traffic[LIFE_TRAFFIC_OPEN_ALONE] += how == STYLE_OPEN;
    for (int32_t i = 0; i < b->n && how != STYLE_OPEN; i++)
        g->traffic[LIFE_TRAFFIC_LATE] +=
            b->rows[i].is_live && g->mirror[b->rows[i].slot].pending_mode != RSSM_MODE_NONE;
    if (how != STYLE_OPEN) issues |= life_rows_mirror_commits(g, b);
    issues |= life_rows_mirror_opens(g, b);
    life_rows_write(g, b);
    life_rows_write_activations(g, b);
    life_clear_issues(g);
    RSSM_TRY(life_flush(&g->w));
    const rssm_advance_args args = life_rows_args(g, b);
    if (how == STYLE_COMMIT_AND_OPEN)
        RSSM_TRY(life_expect_ok(&g->w, calls->commit(b->group->group, &args, NULL), names[1]));
    RSSM_TRY(life_expect_ok(&g->w,
                            how == STYLE_ADVANCE ? calls->advance(b->group->group, &args, NULL)
                                                 : calls->open(b->group->group, &args, NULL),
                            names[how == STYLE_ADVANCE ? 0 : 2]));
    RSSM_TRY(check_control(g, b, issues));
done:
    return st;
}

static rssm_token_tensor token_view(const life_world *w, const life_tensor *t)
{
    return (rssm_token_tensor){life_device(w, t), t->outer_stride, t->head_stride};
}

static rssm_ring_tensor ring_view(const life_world *w, const life_tensor *t)
{
    return (rssm_ring_tensor){life_device(w, t), t->outer_stride, t->head_stride, t->record_stride};
}

static rssm_status step_layer(life_game *g, const life_rows *b, const life_layer *l)
{
    const life_world *w = &g->w;
    rssm_step_args    a = RSSM_STEP_ARGS_INIT;
    a.n_rows = (uint32_t)b->n;
    a.descriptors = life_device_array(w, LIFE_DESCRIPTORS);
    a.x = token_view(w, &l->x);
    a.z = token_view(w, &l->z);
    a.B = token_view(w, &l->B);
    a.C = token_view(w, &l->C);
    a.dt = token_view(w, &l->dt);
    a.out = token_view(w, &l->out);
    a.A = life_device(w, &l->A);
    a.D = life_device(w, &l->D);
    a.dt_bias = life_device(w, &l->dt_bias);
    a.state = (rssm_state_tensor){life_device(w, &l->state), l->state.outer_stride};
    a.x_ring = ring_view(w, &l->x_ring);
    a.B_ring = ring_view(w, &l->B_ring);
    a.dt_ring = ring_view(w, &l->dt_ring);
    a.scratch = life_device_array(w, LIFE_SCRATCH);
    return life_expect_ok(&g->w, w->calls->step(b->group->plans[l->shape], &a, NULL), "rssm_step");
}

// A step that ends after some of the layers. Whatever it wrote into its slot and outputs is no state.
static rssm_status abandon(life_game *g, const life_rows *b)
{
    const int     n = (int)life_below(g, LIFE_LAYERS);
    const int32_t slot = b->rows[0].slot;
    rssm_status   st = RSSM_OK;

    for (int i = 0; i < n; i++)
        RSSM_TRY(step_layer(g, b, &g->w.layers[i]));
    RSSM_TRY(life_fetch(&g->w, true));
    for (int i = 0; i < n; i++) {
        const life_layer  *l = &g->w.layers[i];
        const life_tensor *tensors[] = {&l->state, &l->x_ring, &l->B_ring, &l->dt_ring};
        life_adopt(&g->w, l->out.offset, l->out.bytes);
        for (int t = 0; t < 4; t++)
            life_adopt(&g->w, life_at(tensors[t], slot, 0, 0),
                       (size_t)tensors[t]->outer_stride * tensors[t]->element_bytes);
    }
    if (g->w.arrays[LIFE_SCRATCH].bytes)
        life_adopt(&g->w, g->w.arrays[LIFE_SCRATCH].offset, g->w.arrays[LIFE_SCRATCH].bytes);
    g->traffic[LIFE_TRAFFIC_HALF_WAY]++;
    RSSM_TRY(life_compare(&g->w, true));
done:
    return st;
}

static rssm_status step_layers(life_game *g, const life_rows *b)
{
    const int   first = (int)life_below(g, LIFE_LAYERS);
    rssm_status st = RSSM_OK;
    for (int i = 0; i < LIFE_LAYERS; i++)
        RSSM_TRY(step_layer(g, b, &g->w.layers[(first + i) % LIFE_LAYERS]));
    RSSM_TRY(life_fetch(&g->w, true));
    if (g->w.arrays[LIFE_SCRATCH].bytes)
        life_adopt(&g->w, g->w.arrays[LIFE_SCRATCH].offset, g->w.arrays[LIFE_SCRATCH].bytes);
    for (int32_t i = 0; i < b->n; i++)
        RSSM_TRY(check_row(g, b, &b->rows[i]));
done:
    return st;
}

// The rows' acceptance, told by a call of its own.
static rssm_status commit_rows(life_game *g, life_rows *b)
{
    rssm_u32    issues;
    rssm_status st;
    for (int32_t i = 0; i < b->n; i++) {
        life_row *r = &b->rows[i];
        if (r->is_live) r->accepted = life_draw_accepted(g, &g->mirror[r->slot]);
        life_trace(g, "commit: slot %d accepts %d of %d", r->slot, r->accepted,
                   r->is_live ? g->mirror[r->slot].pending_t : 0);
    }
    b->pass_accepted = true;
    b->packed = false;
    life_rows_write(g, b);
    life_clear_issues(g);
    RSSM_TRY(life_flush(&g->w));
    rssm_advance_args args = life_rows_args(g, b);
    args.descriptors = NULL;
    issues = life_rows_mirror_commits(g, b);
    RSSM_TRY(life_expect_ok(&g->w, g->w.calls->commit(b->group->group, &args, NULL), "rssm_commit"));
    RSSM_TRY(check_control(g, NULL, issues));
done:
    return st;
}

static void trace_rows(const life_game *g, const life_rows *b)
{
    static const char *const modes[] = {"nothing", "append", "fold history", "fold all"};
    if (!g->is_verbose) return;
    for (int32_t i = 0; i < b->n; i++) {
        const life_row *r = &b->rows[i];
        life_trace(g, "  row %d: slot %d, accepted %d, t %d%s, epoch %u: %s at start %d, h %d, pos %llu, issues %#x", i,
                   r->slot, r->accepted, r->t, r->forced ? " forced" : "", r->epoch, modes[r->want.mode], r->want.start,
                   r->want.h, r->want.pos, r->issues);
    }
}

rssm_status life_step(life_game *g, const life_step_options *options)
{
    life_rows   b;
    rssm_status st;

    life_rows_draw(g, options, &b);
    g->traffic[LIFE_TRAFFIC_STEPS_1 + b.group_index]++;
    g->traffic[b.packed ? LIFE_TRAFFIC_PACKED : LIFE_TRAFFIC_DENSE]++;
    life_trace(g, "step: T=%d%s, %s, %d rows, %s accepted, %s epochs", b.group->window.T,
               b.group->window.eager ? " eager" : "", b.packed ? "packed" : "dense", b.n,
               b.pass_accepted ? "given" : "all", b.pass_epochs ? "given" : "own");
    RSSM_TRY(move_cursors(g, &b));
    trace_rows(g, &b);
    if (options->abandon) return abandon(g, &b);
    RSSM_TRY(step_layers(g, &b));
    RSSM_TRY(life_settle(g, true));
    if (!life_one_in(g, 2)) goto done;
    g->traffic[LIFE_TRAFFIC_AT_ONCE]++;
    RSSM_TRY(commit_rows(g, &b));
    RSSM_TRY(life_settle(g, false));
done:
    return st;
}

rssm_status life_settle_slot(life_game *g, int32_t slot)
{
    return g->mirror[slot].pending_mode == RSSM_MODE_NONE ? RSSM_OK : life_commit_late(g, slot);
}

rssm_status life_commit_late(life_game *g, int32_t slot)
{
    life_rows   b;
    rssm_status st;
    memset(&b, 0, sizeof b);
    b.group_index = (int32_t)life_below(g, LIFE_GROUPS);
    b.group = &g->w.groups[b.group_index];
    b.pad_slot = -1;
    b.pass_epochs = life_one_in(g, 2);
    for (int32_t i = 0; i < LIFE_SLOTS && b.n < LIFE_ROWS; i++) {
        if (slot >= 0 ? i != slot : g->slots[i].use != LIFE_LIVE || g->slots[i].fresh || life_one_in(g, 3)) continue;
        b.rows[b.n++] = (life_row){.slot = i, .is_live = true, .epoch = g->slots[i].epoch};
    }
    if (b.n == 0) return RSSM_OK;
    RSSM_TRY(commit_rows(g, &b));
    RSSM_TRY(life_settle(g, false));
done:
    return st;
}
