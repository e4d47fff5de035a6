// The lives of sequences: state, random choice of events, what is compared after each. See game.h.
#include "tests/lifecycle/game.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

void life_trace(const life_game *g, const char *format, ...)
{
    va_list arguments;
    if (!g->is_verbose) return;
    printf("%6llu  ", (unsigned long long)g->w.event);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
}

rssm_status life_impossible(life_game *g)
{
    g->is_impossible = true;
    return RSSM_OK;
}

// ------------------------------------------------------------------------------------------------------ create,
// destroy

static size_t all_checkpoint_bytes(const life_world *w)
{
    size_t n = 0;
    for (int i = 0; i < LIFE_LAYERS; i++)
        n += life_checkpoint_bytes(w, i);
    return n;
}

static rssm_status create_game(life_game *g, const life_machine *machine, const life_variant *variant,
                               const life_memory *memory, uint64_t seed, rssm_diag *diag)
{
    rssm_status st;
    RSSM_TRY(life_world_create(&g->w, machine, variant, memory, seed, diag));
    RSSM_TRY(life_work_create(&g->work, diag));
    for (int i = 0; i < LIFE_SLOTS; i++) {
        RSSM_TRY(life_sequence_create(&g->w, &g->slots[i].s, diag));
        memset(g->slots[i].is_dead, 1, sizeof g->slots[i].is_dead);
    }
    g->blob_capacity = machine->calls->blob_bytes(g->w.groups[0].layers);
    RSSM_TRY(life_settle(g, false));
done:
    return st;
}

static rssm_status create_blobs(life_cluster *c, rssm_diag *diag)
{
    const life_world *w = &c->hosts[0].w;
    size_t            capacity = 1;
    rssm_status       st = RSSM_OK;
    for (int i = 0; i < LIFE_HOSTS; i++)
        if (c->hosts[i].blob_capacity >= capacity) capacity = c->hosts[i].blob_capacity + 1;
    for (int i = 0; i < LIFE_HOSTS; i++) {
        c->hosts[i].damaged = rssm_alloc(capacity);
        if (!c->hosts[i].damaged) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for blobs");
    }
    for (int i = 0; i < LIFE_BLOBS; i++) {
        life_blob *b = &c->blobs[i];
        b->bytes = rssm_alloc(capacity);
        b->checkpoints = rssm_alloc(all_checkpoint_bytes(w));
        if (!b->bytes || !b->checkpoints) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for blobs");
        RSSM_TRY(life_sequence_create(w, &b->s, diag));
    }
done:
    return st;
}

rssm_status life_cluster_create(life_cluster *c, const life_machine *machine, const life_variant *variant,
                                uint64_t seed, bool is_verbose, rssm_diag *diag)
{
    static const life_memory memories[LIFE_HOSTS] = {{5, 11, {1, 4, 3, 1}, false},
                                                     {6, LIFE_RING_MAX, {1, 6, 2, 1}, true}};
    rssm_status              st;

    memset(c, 0, sizeof *c);
    c->random.state = ~seed;
    for (uint32_t i = 0; i < LIFE_HOSTS; i++) {
        life_game *g = c->active = &c->hosts[i];
        g->blobs = c->blobs;
        g->is_verbose = is_verbose;
        g->random.state = rssm_verify_mix(seed * LIFE_HOSTS + i + 1);
        g->next_epoch = 1;
        g->next_token = rssm_verify_mix(g->random.state) >> 1;
        RSSM_TRY(create_game(g, machine, variant, &memories[i], seed, diag));
    }
    RSSM_TRY(create_blobs(c, diag));
done:
    return st;
}

void life_cluster_destroy(life_cluster *c)
{
    for (int i = 0; i < LIFE_BLOBS; i++) {
        life_sequence_destroy(&c->blobs[i].s);
        rssm_free(c->blobs[i].bytes);
        rssm_free(c->blobs[i].checkpoints);
    }
    for (int i = 0; i < LIFE_HOSTS; i++) {
        life_game *g = &c->hosts[i];
        for (int slot = 0; slot < LIFE_SLOTS; slot++)
            life_sequence_destroy(&g->slots[slot].s);
        rssm_free(g->damaged);
        life_work_destroy(&g->work);
        life_world_destroy(&g->w);
    }
}

// -------------------------------------------------------------------------------------------------------------
// choosing

static bool is_settled(const life_game *g, int32_t slot)
{
    return !g->slots[slot].fresh && g->mirror[slot].pending_mode == RSSM_MODE_NONE;
}

int32_t life_pick(life_game *g, life_use use, bool settled, int32_t except)
{
    const int32_t first = (int32_t)life_below(g, LIFE_SLOTS);
    for (int32_t i = 0; i < LIFE_SLOTS; i++) {
        const int32_t slot = (first + i) % LIFE_SLOTS;
        if (slot != except && g->slots[slot].use == use && (!settled || is_settled(g, slot))) return slot;
    }
    return -1;
}

int32_t life_pick_destination(life_game *g, int32_t except, int32_t and_except)
{
    const int32_t first = (int32_t)life_below(g, LIFE_SLOTS);
    const bool    takes_invalid = life_one_in(g, 4), takes_cached = life_one_in(g, 5), takes_live = life_one_in(g, 12);
    for (int32_t i = 0; i < LIFE_SLOTS; i++) {
        const int32_t  slot = (first + i) % LIFE_SLOTS;
        const life_use use = g->slots[slot].use;
        if (slot == except || slot == and_except) continue;
        if (use == LIFE_FREE || (use == LIFE_INVALID && takes_invalid) || (use == LIFE_CACHED && takes_cached) ||
            (use == LIFE_LIVE && takes_live))
            return slot;
    }
    return -1;
}

bool life_has_state(const life_slot *slot)
{
    return slot->use == LIFE_LIVE || slot->use == LIFE_CACHED;
}

void life_vacate(life_game *g, int32_t slot, life_use use)
{
    life_slot *s = &g->slots[slot];
    s->use = use;
    s->fresh = false;
    s->epoch = g->mirror[slot].epoch;
    for (int32_t i = 0; i < g->w.ring; i++) {
        life_poison_record(&g->w, slot, i);
        s->is_dead[i] = true;
    }
    life_poison_checkpoint(&g->w, slot);
}

void life_occupy(life_game *g, int32_t slot, life_use use)
{
    g->slots[slot].use = use;
    g->slots[slot].fresh = false;
    g->slots[slot].epoch = g->mirror[slot].epoch;
}

size_t life_checkpoint_at(const life_world *w, int layer, int32_t slot)
{
    return life_at(&w->layers[layer].state, slot, 0, 0);
}

size_t life_checkpoint_bytes(const life_world *w, int layer)
{
    const life_tensor *t = &w->layers[layer].state;
    return (size_t)(t->n_heads * t->n_records) * life_run_bytes(t);
}

void life_expect_record(life_game *g, int32_t slot, int32_t row, const life_record *record)
{
    life_world *w = &g->w;
    for (uint32_t layer = 0; layer < LIFE_LAYERS; layer++) {
        const life_layer  *l = &w->layers[layer];
        const life_tensor *rings[] = {&l->x_ring, &l->B_ring};
        for (int k = 0; k < 2; k++) {
            const unsigned char *bits = life_token_bits(w, record->token, layer, k == 0 ? LIFE_X : LIFE_B);
            const size_t         n = life_run_bytes(rings[k]);
            for (int64_t head = 0; head < rings[k]->n_heads; head++)
                memcpy(w->image + life_at(rings[k], slot, head, row), bits + (size_t)head * n, n);
        }
        for (int64_t head = 0; head < l->dt_ring.n_heads; head++)
            memcpy(w->image + life_at(&l->dt_ring, slot, head, row), &record->dt[layer][head], sizeof(float));
    }
    g->slots[slot].is_dead[row] = false;
}

// ------------------------------------------------------------------------------------------------------------
// comparing

void life_clear_issues(life_game *g)
{
    g->issues_before = life_one_in(g, 2) ? 1u << 30 : 0; // of an earlier call, which stay
    life_write_entry(&g->w, LIFE_ISSUES, 0, &g->issues_before);
}

rssm_status life_check_cursors(life_game *g)
{
    for (size_t slot = 0; slot < LIFE_SLOTS; slot++) {
        const rssm_cursor *want = &g->mirror[slot];
        rssm_cursor        got;
        memcpy(&got, g->w.actual + g->w.arrays[LIFE_CURSORS].offset + slot * sizeof got, sizeof got);
        if (memcmp(&got, want, sizeof got) == 0) continue;
        return life_wrong(
            &g->w,
            "the cursor of slot %zu is {start %d, h %d, pending %d in mode %d, epoch %u, invalid %d, pos %llu, "
            "nonce %llx}, want {start %d, h %d, pending %d in mode %d, epoch %u, invalid %d, pos %llu, nonce "
            "%llx}",
            slot, got.start, got.h, got.pending_t, got.pending_mode, got.epoch, got.invalid, got.pos, got.nonce,
            want->start, want->h, want->pending_t, want->pending_mode, want->epoch, want->invalid, want->pos,
            want->nonce);
    }
    memcpy(life_entry(&g->w, LIFE_CURSORS, 0), g->mirror, sizeof g->mirror);
    return RSSM_OK;
}

rssm_status life_check_issues(life_game *g, rssm_u32 issues)
{
    char     got_text[200], want_text[200];
    uint32_t got;
    issues |= g->issues_before;
    memcpy(&got, g->w.actual + g->w.arrays[LIFE_ISSUES].offset, sizeof got);
    if (got != issues) {
        rssm_issues_text(got, got_text, sizeof got_text);
        rssm_issues_text(issues, want_text, sizeof want_text);
        return life_wrong(&g->w, "the call tells the issues \"%s\" (%#x), want \"%s\" (%#x)", got_text, got, want_text,
                          issues);
    }
    memcpy(life_entry(&g->w, LIFE_ISSUES, 0), &issues, sizeof issues);
    return RSSM_OK;
}

static void bury(life_game *g, int32_t slot)
{
    life_slot         *s = &g->slots[slot];
    const rssm_cursor *c = &g->mirror[slot];
    const int32_t      n_live = life_has_state(s) && !s->fresh ? rssm_cursor_records(c) : 0;
    for (int32_t i = n_live; i < g->w.ring; i++) {
        const int32_t row = n_live ? (c->start + i) % g->w.ring : i;
        if (s->is_dead[row]) continue;
        life_poison_record(&g->w, slot, row);
        s->is_dead[row] = true;
    }
}

rssm_status life_settle(life_game *g, bool fetched)
{
    char        text[400];
    rssm_status st = RSSM_OK;
    if (!fetched) RSSM_TRY(life_fetch(&g->w, true));
    RSSM_TRY(life_check_cursors(g));
    RSSM_TRY(life_compare(&g->w, true));
    for (int32_t slot = 0; slot < LIFE_SLOTS; slot++) {
        const life_slot *s = &g->slots[slot];
        if (life_has_state(s) && !s->fresh && !life_sequence_agrees(&s->s, &g->mirror[slot], text, sizeof text)) {
            st = life_wrong(&g->w, "slot %d: %s", slot, text);
            goto done;
        }
        bury(g, slot);
    }
done:
    return st;
}

// ---------------------------------------------------------------------------------------------------------------
// events

static rssm_status retire(life_game *g)
{
    const int32_t slot = life_pick(g, life_one_in(g, 3) ? LIFE_CACHED : LIFE_LIVE, false, -1);
    if (slot < 0) return life_impossible(g);
    life_trace(g, "retire slot %d", slot);
    life_vacate(g, slot, LIFE_FREE);
    return RSSM_OK;
}

static rssm_status donate(life_game *g)
{
    const int32_t slot = life_pick(g, LIFE_LIVE, false, -1);
    rssm_status   st;
    if (slot < 0 || g->slots[slot].fresh) return life_impossible(g);
    RSSM_TRY(life_settle_slot(g, slot));
    life_trace(g, "slot %d becomes a cache entry", slot);
    g->slots[slot].use = LIFE_CACHED;
done:
    return st;
}

static rssm_status step_on(life_game *g, life_use use, bool flush)
{
    const life_step_options options = {-1, life_pick(g, use, false, -1), flush, false, NULL};
    if (options.slot < 0) return life_impossible(g);
    return life_step(g, &options);
}

static rssm_status happen(life_game *g, life_event event)
{
    static const life_step_options any = {-1, -1, false, false, NULL};
    switch (event) {
    case LIFE_EVENT_STEP:
        return life_step(g, &any);
    case LIFE_EVENT_COMMIT:
        return life_commit_late(g, -1);
    case LIFE_EVENT_FLUSH:
        return step_on(g, LIFE_LIVE, true);
    case LIFE_EVENT_STEP_ON_ABORTED:
        return step_on(g, LIFE_INVALID, false);
    case LIFE_EVENT_PREEMPT:
        return life_event_preempt(g);
    case LIFE_EVENT_RESUME:
        return life_event_resume(g);
    case LIFE_EVENT_DAMAGED_BLOB:
        return life_event_damaged_blob(g);
    case LIFE_EVENT_REFUSED_EXPORT:
        return life_event_refused_export(g);
    case LIFE_EVENT_FORK:
        return life_event_fork(g, false);
    case LIFE_EVENT_ADMIT_CACHED:
        return life_event_fork(g, true);
    case LIFE_EVENT_CACHE:
        return life_event_materialize(g, false);
    case LIFE_EVENT_FOLD_IN_PLACE:
        return life_event_materialize(g, true);
    case LIFE_EVENT_TWINS:
        return life_event_twins(g);
    case LIFE_EVENT_DONATE:
        return donate(g);
    case LIFE_EVENT_TRUNCATE:
        return life_event_truncate(g, false);
    case LIFE_EVENT_TRUNCATE_REFUSED:
        return life_event_truncate(g, true);
    case LIFE_EVENT_ABORT:
        return life_event_abort(g);
    case LIFE_EVENT_REFUSED_REQUEST:
        return life_event_refused_request(g);
    case LIFE_EVENT_RETIRE:
        return retire(g);
    case LIFE_EVENT_READ_BACK:
        return life_event_read_back(g);
    default:
        return life_event_admit(g, event);
    }
}

static rssm_status play(life_game *g)
{
    static const uint32_t weights[] = {
#define LIFE_EVENT_WEIGHT(name, text, weight) weight,
        LIFE_EVENT_LIST(LIFE_EVENT_WEIGHT)
#undef LIFE_EVENT_WEIGHT
    };
    uint32_t    total = 0;
    rssm_status st;
    for (int i = 0; i < LIFE_N_EVENTS; i++)
        total += weights[i];
    for (;;) {
        uint32_t ticket = life_below(g, total);
        int      event = 0;
        while (ticket >= weights[event])
            ticket -= weights[event++];
        g->is_impossible = false;
        st = happen(g, (life_event)event);
        if (st != RSSM_OK || g->is_impossible) {
            if (st != RSSM_OK) return st;
            continue;
        }
        g->events[event]++;
        return st;
    }
}

rssm_status life_cluster_play(life_cluster *c)
{
    c->active = &c->hosts[rssm_verify_below(&c->random, LIFE_HOSTS)];
    c->active->w.event = ++c->event;
    return play(c->active);
}
