// What happens to slots between steps: forks, materialized prefixes, truncation, aborts, refusals. See game.h.
#include <string.h>

#include "tests/lifecycle/game.h"

// Draws what all requests of a batch may carry beside their slots.
static void draw_identities(life_game *g, life_batch *batch)
{
    batch->pass_epochs = life_one_in(g, 2);
    batch->pass_nonces = life_one_in(g, 2);
    for (int i = 0; i < batch->n; i++) {
        batch->items[i].epoch = g->next_epoch++;
        batch->items[i].nonce = rssm_verify_next(&g->random);
    }
}

static void expect_checkpoint(life_game *g, int32_t from, int32_t to)
{
    for (int layer = 0; layer < LIFE_LAYERS; layer++)
        memcpy(g->w.image + life_checkpoint_at(&g->w, layer, to), g->w.image + life_checkpoint_at(&g->w, layer, from),
               life_checkpoint_bytes(&g->w, layer));
}

// The records of `from`, those of a pending step among them, at the beginning of the rings of `to`.
static void expect_records(life_game *g, int32_t from, int32_t to, const rssm_cursor *source)
{
    for (int32_t i = 0; i < rssm_cursor_records(source); i++) {
        const int32_t row = (source->start + i) % g->w.ring;
        for (int layer = 0; layer < LIFE_LAYERS; layer++) {
            const life_layer  *l = &g->w.layers[layer];
            const life_tensor *rings[] = {&l->x_ring, &l->B_ring, &l->dt_ring};
            for (int k = 0; k < 3; k++) {
                for (int64_t head = 0; head < rings[k]->n_heads; head++)
                    memcpy(g->w.image + life_at(rings[k], to, head, i), g->w.image + life_at(rings[k], from, head, row),
                           life_run_bytes(rings[k]));
            }
        }
        g->slots[to].is_dead[i] = false;
    }
}

static rssm_status fork_to(life_game *g, const life_request *r)
{
    if (r->issues) return life_wrong(&g->w, "the mirror refuses a copy of slot %d", r->source);
    g->traffic[LIFE_TRAFFIC_PENDING_COPIED] += r->before.pending_mode != RSSM_MODE_NONE;
    expect_checkpoint(g, r->source, r->destination);
    expect_records(g, r->source, r->destination, &r->before);
    life_sequence_assign(&g->w, &g->slots[r->destination].s, &g->slots[r->source].s);
    life_occupy(g, r->destination, LIFE_LIVE);
    return RSSM_OK;
}

rssm_status life_event_fork(life_game *g, bool from_cache)
{
    life_batch    batch = {.kind = LIFE_COPY};
    const int32_t source = life_pick(g, from_cache ? LIFE_CACHED : LIFE_LIVE, from_cache, -1);
    const int     n_wanted = 1 + (int)life_below(g, 2);
    rssm_status   st = RSSM_OK;

    if (source < 0 || g->slots[source].fresh) return life_impossible(g);
    while (batch.n < n_wanted) { // one source may have several copies
        const int32_t slot = life_pick_destination(g, source, batch.n ? batch.items[0].destination : -1);
        if (slot < 0) break;
        batch.items[batch.n++] = (life_request){.source = source, .destination = slot};
    }
    if (batch.n == 0) return life_impossible(g);
    draw_identities(g, &batch);
    RSSM_TRY(life_batch_run(g, &batch));
    for (int i = 0; i < batch.n; i++)
        RSSM_TRY(fork_to(g, &batch.items[i]));
    RSSM_TRY(life_settle(g, true));
done:
    return st;
}

// -------------------------------------------------------------------------------------------------------- materialize

// The model's part of a materialize that was met.
static rssm_status materialized(life_game *g, const life_request *r)
{
    life_sequence *s = &g->slots[r->destination].s;
    const bool     in_place = r->source == r->destination;
    rssm_status    st = RSSM_OK;

    if (r->issues)
        return life_wrong(&g->w, "the mirror refuses to materialize %d records of slot %d", r->count, r->source);
    life_sequence_assign(&g->w, s, &g->slots[r->source].s);
    if (r->count == 0 && !in_place) expect_checkpoint(g, r->source, r->destination);
    const life_row_check c = {.s = s,
                              .from = r->source,
                              .to = r->destination,
                              .n_records = r->count,
                              .fold = RSSM_ORACLE_FOLD_RECORDS,
                              .append_at = -1,
                              .what = in_place ? "materialize in place" : "materialize"};
    RSSM_TRY(life_check_row(&g->w, &g->work, &c));
    life_sequence_folded(s, r->count);
    if (!in_place) {
        s->n_records = 0;
        s->accepted = s->position;
    }
    life_occupy(g, r->destination, in_place ? g->slots[r->destination].use : LIFE_CACHED);
done:
    return st;
}

rssm_status life_event_materialize(life_game *g, bool in_place)
{
    life_batch  batch = {.kind = LIFE_MATERIALIZE, .pass_counts = true};
    const int   n_wanted = 1 + (int)life_below(g, 2);
    rssm_status st = RSSM_OK;

    while (batch.n < n_wanted) {
        const life_request *first = batch.n ? &batch.items[0] : NULL;
        const life_use      use = life_one_in(g, 4) ? LIFE_CACHED : LIFE_LIVE;
        const int32_t       source = life_pick(g, use, batch.n > 0, first ? first->destination : -1);
        if (source < 0 || g->slots[source].fresh) break;
        const int32_t slot = in_place ? source : life_pick_destination(g, source, first ? first->destination : -1);
        if (slot < 0 || (first && (slot == first->source || (in_place && source == first->source)))) break;
        RSSM_TRY(life_settle_slot(g, source));
        const int32_t n = (int32_t)life_below(g, (uint32_t)g->mirror[source].h + 1);
        batch.items[batch.n++] = (life_request){.source = source, .destination = slot, .count = n};
    }
    if (batch.n == 0) return life_impossible(g);
    draw_identities(g, &batch);
    RSSM_TRY(life_batch_run(g, &batch));
    for (int i = 0; i < batch.n; i++)
        RSSM_TRY(materialized(g, &batch.items[i]));
    RSSM_TRY(life_settle(g, true));
done:
    return st;
}

static rssm_status run_one(life_game *g, life_batch *batch, life_request request)
{
    batch->n = 1;
    batch->items[0] = request;
    draw_identities(g, batch);
    return life_batch_run(g, batch);
}

// A prefix materialized in one slot, and the same prefix of a copy flushed by a step: the same bits, also where a step
// of one token folds the newest record as its token.
rssm_status life_event_twins(life_game *g)
{
    life_batch    fold = {.kind = LIFE_MATERIALIZE, .pass_counts = true}, copy = {.kind = LIFE_COPY};
    life_batch    cut = {.kind = LIFE_TRUNCATE, .pass_positions = true};
    const int32_t source = life_pick(g, LIFE_LIVE, true, -1);
    const int32_t a = life_pick_destination(g, source, -1), b = life_pick_destination(g, source, a);
    rssm_status   st;

    if (source < 0 || a < 0 || b < 0) return life_impossible(g);
    const int32_t      n = (int32_t)life_below(g, (uint32_t)g->mirror[source].h + 1);
    const life_record *newest = &g->slots[source].s.records[n > 0 ? n - 1 : 0];
    const uint64_t     token = newest->token;
    const bool         by_token = n > 0 && !newest->is_prefilled && life_one_in(g, 2);
    const uint64_t     position = g->mirror[source].pos + (uint64_t)(n - by_token);
    RSSM_TRY(run_one(g, &fold, (life_request){.source = source, .destination = a, .count = n}));
    RSSM_TRY(materialized(g, &fold.items[0]));
    RSSM_TRY(life_settle(g, true));
    RSSM_TRY(run_one(g, &copy, (life_request){.source = source, .destination = b}));
    RSSM_TRY(fork_to(g, &copy.items[0]));
    RSSM_TRY(life_settle(g, true));
    RSSM_TRY(run_one(g, &cut, (life_request){.destination = b, .position = position}));
    if (cut.items[0].issues) return life_wrong(&g->w, "the mirror refuses to truncate slot %d", b);
    g->slots[b].s.n_records = n - by_token;
    g->slots[b].s.accepted = position;
    RSSM_TRY(life_settle(g, true));
    const life_step_options flush = {by_token ? 0 : -1, b, true, false, by_token ? &token : NULL};
    g->traffic[LIFE_TRAFFIC_TWIN_TOKENS] += by_token;
    RSSM_TRY(life_step(g, &flush));
    for (int layer = 0; layer < LIFE_LAYERS; layer++) {
        if (memcmp(g->w.image + life_checkpoint_at(&g->w, layer, a), g->w.image + life_checkpoint_at(&g->w, layer, b),
                   life_checkpoint_bytes(&g->w, layer)) != 0) {
            st = life_wrong(&g->w,
                            "%d records of slot %d materialized (slot %d) and flushed (slot %d) differ in layer %d", n,
                            source, a, b, layer);
            goto done;
        }
    }
    life_vacate(g, b, LIFE_FREE);
done:
    return st;
}

// -------------------------------------------------------------------------------------------------- truncate and abort

rssm_status life_event_truncate(life_game *g, bool refused)
{
    life_batch    batch = {.kind = LIFE_TRUNCATE, .pass_positions = true, .n = 1};
    life_request *r = &batch.items[0];
    const int32_t slot = life_pick(g, LIFE_LIVE, false, -1);
    rssm_status   st;

    if (slot < 0 || g->slots[slot].fresh) return life_impossible(g);
    RSSM_TRY(life_settle_slot(g, slot));
    const rssm_cursor *c = &g->mirror[slot];
    if (refused && c->pos == 0 && life_one_in(g, 2)) return life_impossible(g);
    const uint64_t far = life_one_in(g, 4) ? c->pos + 1 : 1;
    r->destination = slot;
    r->position = c->pos + life_below(g, (uint32_t)c->h + 1);
    if (refused)
        r->position = c->pos > 0 && life_one_in(g, 2) ? c->pos - far % (c->pos + 1) : c->pos + (uint64_t)c->h + 1;
    if (refused && r->position == c->pos) r->position = UINT64_MAX;
    RSSM_TRY(life_batch_run(g, &batch));
    if (r->issues != (refused ? RSSM_ISSUE_POSITION : 0u))
        return life_wrong(&g->w, "the mirror answers %#x to a truncation", r->issues);
    if (!refused) {
        g->slots[slot].s.n_records = (int32_t)(r->position - g->slots[slot].s.position);
        g->slots[slot].s.accepted = r->position;
    }
    RSSM_TRY(life_settle(g, true));
done:
    return st;
}

rssm_status life_event_abort(life_game *g)
{
    life_batch    batch = {.kind = LIFE_INVALIDATE, .n = 1};
    const int32_t slot = life_pick(g, LIFE_LIVE, false, -1);
    rssm_status   st;

    if (slot < 0) return life_impossible(g);
    const life_step_options half_a_step = {-1, slot, false, true, NULL};
    if (life_one_in(g, 2)) RSSM_TRY(life_step(g, &half_a_step));
    batch.items[0].destination = slot;
    RSSM_TRY(life_batch_run(g, &batch));
    g->slots[slot].use = LIFE_INVALID; // a step that was abandoned is not held against its sequence
    RSSM_TRY(life_settle(g, true));
    life_vacate(g, slot, LIFE_INVALID);
done:
    return st;
}

// ----------------------------------------------------------------------------------------------------------- refusals

// A request that must be refused; false: there is no slot to make it of.
static bool draw_refused(life_game *g, life_batch *batch)
{
    life_request *r = &batch->items[0];
    const int32_t invalid = life_pick(g, LIFE_INVALID, false, -1), live = life_pick(g, LIFE_LIVE, false, -1);
    const int32_t free_slot = life_pick(g, LIFE_FREE, false, -1);
    const int32_t bad_slot = life_one_in(g, 2) ? LIFE_SLOTS : INT32_MIN;

    batch->n = 1;
    switch (life_below(g, 7)) {
    case 0: // copies of what is no state
        batch->kind = LIFE_COPY;
        *r = (life_request){.source = invalid, .destination = free_slot};
        return invalid >= 0 && free_slot >= 0;
    case 1:
        batch->kind = LIFE_MATERIALIZE;
        *r = (life_request){.source = invalid, .destination = free_slot};
        return invalid >= 0 && free_slot >= 0;
    case 2: // more records than there are; or of a step that nobody committed
        batch->kind = LIFE_MATERIALIZE;
        if (live < 0 || g->slots[live].fresh) return false;
        *r = (life_request){.source = live, .destination = life_one_in(g, 2) ? live : free_slot};
        r->count = life_one_in(g, 2) ? g->mirror[live].h + 1 : -1;
        if (g->mirror[live].pending_mode != RSSM_MODE_NONE) r->count = 0;
        return r->destination >= 0;
    case 3:
        batch->kind = LIFE_RESET;
        *r = (life_request){.destination = live >= 0 ? live : free_slot};
        r->count = life_one_in(g, 2) ? g->w.ring + 1 : -1;
        return r->destination >= 0;
    case 4:
        batch->kind = LIFE_TRUNCATE;
        *r = (life_request){.destination = invalid};
        r->position = invalid >= 0 ? g->mirror[invalid].pos : 0;
        return invalid >= 0;
    case 5:
        batch->kind = life_one_in(g, 2) ? LIFE_COPY : LIFE_MATERIALIZE;
        *r = (life_request){.source = bad_slot, .destination = live};
        return live >= 0;
    default:
        batch->kind = LIFE_TRUNCATE;
        if (live < 0 || g->mirror[live].pending_mode == RSSM_MODE_NONE) return false;
        *r = (life_request){.destination = live, .position = g->mirror[live].pos};
        return !g->slots[live].fresh;
    }
}

rssm_status life_event_refused_request(life_game *g)
{
    life_batch  batch = {.pass_counts = true, .pass_positions = true};
    rssm_status st;

    if (!draw_refused(g, &batch)) return life_impossible(g);
    draw_identities(g, &batch);
    RSSM_TRY(life_batch_run(g, &batch));
    if (!batch.items[0].issues) return life_wrong(&g->w, "the mirror does not refuse request kind %d", batch.kind);
    RSSM_TRY(life_settle(g, true));
done:
    return st;
}

// ---------------------------------------------------------------------------------------------------------- read back

// Checkpoints as floats: exact values of what is stored.
rssm_status life_event_read_back(life_game *g)
{
    const uint32_t    layer = life_below(g, LIFE_LAYERS);
    life_world       *w = &g->w;
    const life_layer *l = &w->layers[layer];
    const size_t      n = (size_t)(l->state.n_heads * l->state.n_records * l->state.n_dense);
    rssm_state_args   a = RSSM_STATE_ARGS_INIT;
    int32_t           slots[LIFE_ROWS];
    rssm_status       st;

    a.n_rows = 1 + life_below(g, LIFE_ROWS);
    a.slots = life_device_array(w, LIFE_SLOT_ARRAY);
    a.values = life_device_array(w, LIFE_VALUES);
    a.value_stride = (int64_t)(w->arrays[LIFE_VALUES].element_bytes / sizeof(float));
    life_poison_array(w, LIFE_SLOT_ARRAY);
    life_poison_array(w, LIFE_VALUES);
    for (size_t i = 0; i < a.n_rows; i++) {
        slots[i] = life_one_in(g, 6) ? -1 : life_one_in(g, 8) ? LIFE_SLOTS + 1 : (int32_t)life_below(g, LIFE_SLOTS);
        if (slots[i] >= 0 && slots[i] < LIFE_SLOTS && !life_has_state(&g->slots[slots[i]])) slots[i] = -1;
        life_write_entry(w, LIFE_SLOT_ARRAY, i, &slots[i]);
    }
    RSSM_TRY(life_flush(w));
    const life_group *group = &w->groups[life_below(g, LIFE_GROUPS)];
    RSSM_TRY(life_expect_ok(w, w->calls->decode(group->layers, layer, &a, NULL), "rssm_decode"));
    for (size_t i = 0; i < a.n_rows; i++) {
        if (slots[i] < 0 || slots[i] >= LIFE_SLOTS) continue;
        unsigned char       *to = w->image + w->arrays[LIFE_VALUES].offset + i * w->arrays[LIFE_VALUES].element_bytes;
        const unsigned char *from = w->image + life_checkpoint_at(w, (int)layer, slots[i]);
        for (size_t k = 0; k < n; k++) {
            double exact;
            life_decode(&w->decoder, l->state.dtype, from + k * l->state.element_bytes, 1, &exact);
            const float value = (float)exact;
            memcpy(to + k * sizeof value, &value, sizeof value);
        }
    }
    RSSM_TRY(life_settle(g, false));
done:
    return st;
}
