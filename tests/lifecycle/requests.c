// Batches of requests: reset, truncate, invalidate, copy, materialize. See game.h.
//
// Besides the requests that are meant, a call holds pads and slots out of range, or, where it has a list, entries that
// the list leaves out and that would do harm.
#include <string.h>

#include "templates/abi/slots.h"
#include "tests/lifecycle/game.h"

// Entries of the arrays, in order.
typedef struct entries {
    int32_t      n_rows, pad_slot;
    bool         listed;
    int32_t      n_listed, list[LIFE_ROWS];
    int32_t      item[LIFE_ROWS]; // of the batch; -1: not one of these
    bool         is_pad[LIFE_ROWS], is_beyond[LIFE_ROWS];
    life_request request[LIFE_ROWS];
} entries;

static const char *const kind_names[] = {"reset", "truncate", "invalidate", "copy", "materialize"};

static bool has_source(const life_batch *batch)
{
    return batch->kind == LIFE_COPY || batch->kind == LIFE_MATERIALIZE;
}

static void draw_entries(life_game *g, const life_batch *batch, entries *e)
{
    memset(e, 0, sizeof *e);
    e->n_rows = batch->n + (int32_t)life_below(g, (uint32_t)(LIFE_ROWS - batch->n + 1));
    e->listed = life_one_in(g, 2);
    e->pad_slot = life_one_in(g, 2) ? -1 : -7;
    if (g->slots[0].use == LIFE_FREE && life_one_in(g, 3)) e->pad_slot = 0;
    for (int32_t i = 0; i < batch->n; i++) {
        if (batch->items[i].destination == 0 || (has_source(batch) && batch->items[i].source == 0)) e->pad_slot = -1;
    }
    int32_t next = 0;
    for (int32_t i = 0; i < e->n_rows; i++) {
        const int32_t items_left = batch->n - next, rows_left = e->n_rows - i;
        e->item[i] = -1;
        if (life_below(g, (uint32_t)rows_left) < (uint32_t)items_left) {
            e->item[i] = next;
            e->request[i] = batch->items[next++];
            e->list[e->n_listed++] = i;
            continue;
        }
        life_request *r = &e->request[i];
        r->count = 1;
        r->epoch = 0xdead0000u + (uint32_t)i;
        r->source = r->destination = 1 + (int32_t)life_below(g, LIFE_SLOTS - 1); // harm, unless the list leaves it out
        if (e->listed && life_one_in(g, 2)) continue;
        e->is_pad[i] = life_one_in(g, 2);
        e->is_beyond[i] = !e->is_pad[i];
        r->destination = e->is_pad[i] ? e->pad_slot : life_one_in(g, 2) ? LIFE_SLOTS : -100;
        e->list[e->n_listed++] = i;
    }
    for (int32_t i = e->n_listed; i > 1; i--) { // the list has an order of its own
        const int32_t j = (int32_t)life_below(g, (uint32_t)i), swapped = e->list[j];
        e->list[j] = e->list[i - 1];
        e->list[i - 1] = swapped;
    }
}

static void write_entries(life_game *g, const life_batch *batch, const entries *e)
{
    static const life_array arrays[] = {LIFE_REQUESTS, LIFE_SOURCES,   LIFE_DESTINATIONS, LIFE_COUNTS,
                                        LIFE_EPOCHS,   LIFE_POSITIONS, LIFE_NONCES,       LIFE_MOVES};
    life_world             *w = &g->w;
    const int32_t           end = -1;
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        life_poison_array(w, arrays[i]);
    for (size_t i = 0; i < (size_t)e->n_rows; i++) {
        const life_request *r = &e->request[i];
        if (has_source(batch)) life_write_entry(w, LIFE_SOURCES, i, &r->source);
        life_write_entry(w, LIFE_DESTINATIONS, i, &r->destination);
        if (batch->pass_counts) life_write_entry(w, LIFE_COUNTS, i, &r->count);
        if (batch->pass_epochs) life_write_entry(w, LIFE_EPOCHS, i, &r->epoch);
        if (batch->pass_positions) life_write_entry(w, LIFE_POSITIONS, i, &r->position);
        if (batch->pass_nonces) life_write_entry(w, LIFE_NONCES, i, &r->nonce);
    }
    for (size_t i = 0; i < (size_t)e->n_listed && e->listed; i++)
        life_write_entry(w, LIFE_REQUESTS, i, &e->list[i]);
    if (e->listed && e->n_listed < e->n_rows) life_write_entry(w, LIFE_REQUESTS, (size_t)e->n_listed, &end);
}

static rssm_slot_args make_args(const life_game *g, const life_batch *batch, const entries *e)
{
    const life_world *w = &g->w;
    rssm_slot_args    a = RSSM_SLOT_ARGS_INIT;
    a.n_rows = (uint32_t)e->n_rows;
    if (e->listed) a.requests = life_device_array(w, LIFE_REQUESTS);
    if (has_source(batch)) a.source_slots = life_device_array(w, LIFE_SOURCES);
    a.destination_slots = life_device_array(w, LIFE_DESTINATIONS);
    if (batch->pass_counts) a.counts = life_device_array(w, LIFE_COUNTS);
    if (batch->pass_epochs) a.epochs = life_device_array(w, LIFE_EPOCHS);
    if (batch->pass_positions) a.positions = life_device_array(w, LIFE_POSITIONS);
    if (batch->pass_nonces) a.nonces = life_device_array(w, LIFE_NONCES);
    if (has_source(batch)) a.moves = life_device_array(w, LIFE_MOVES);
    a.issues = life_device_array(w, LIFE_ISSUES);
    a.pad_slot = e->pad_slot;
    return a;
}

static rssm_status call(life_game *g, const life_batch *batch, const rssm_slot_args *args)
{
    const life_calls *c = g->w.calls;
    const life_group *group = &g->w.groups[life_below(g, LIFE_GROUPS)];
    switch (batch->kind) {
    case LIFE_RESET:
        return c->reset(group->group, args, NULL);
    case LIFE_TRUNCATE:
        return c->truncate(group->group, args, NULL);
    case LIFE_INVALIDATE:
        return c->invalidate(group->group, args, NULL);
    case LIFE_COPY:
        return c->copy(group->layers, args, NULL);
    default:
        return c->materialize(group->layers, args, NULL);
    }
}

// What the header promises, by the transitions of cursor.h. Returns the issues.
static rssm_u32 mirror_request(life_game *g, const life_batch *batch, life_request *r)
{
    const bool beyond = has_source(batch) && (r->source < 0 || r->source >= LIFE_SLOTS);
    if (beyond) return RSSM_ISSUE_SLOT_RANGE;
    rssm_cursor   *to = &g->mirror[r->destination], *from = has_source(batch) ? &g->mirror[r->source] : to;
    const uint32_t kept_epoch = batch->kind == LIFE_COPY ? from->epoch : to->epoch;
    const uint32_t epoch = batch->pass_epochs ? r->epoch : kept_epoch;
    const uint64_t nonce = batch->pass_nonces ? r->nonce : from->nonce;
    const int32_t  count = batch->pass_counts ? r->count : 0;
    rssm_u32       issues = 0;

    r->before = *from;
    switch (batch->kind) {
    case LIFE_RESET:
        if (count < 0 || count > g->w.ring) return RSSM_ISSUE_RECORDS;
        rssm_cursor_reset(to, epoch, batch->pass_positions ? r->position : 0, batch->pass_nonces ? r->nonce : epoch);
        to->h = count;
        break;
    case LIFE_TRUNCATE:
        issues = rssm_cursor_truncate(to, r->position);
        break;
    case LIFE_INVALIDATE:
        to->invalid = 1;
        break;
    case LIFE_COPY:
        issues = rssm_cursor_copy(from, epoch, nonce, to);
        break;
    default:
        if (from == to) {
            issues = rssm_cursor_materialize_in_place(to, count, g->w.ring);
            if (!issues) to->epoch = epoch, to->nonce = nonce;
        } else {
            issues = rssm_cursor_materialize(from, count, epoch, nonce, to);
        }
        break;
    }
    return issues;
}

rssm_status life_batch_run(life_game *g, life_batch *batch)
{
    rssm_u32    issues = 0;
    entries     e;
    rssm_status st;

    draw_entries(g, batch, &e);
    write_entries(g, batch, &e);
    life_clear_issues(g);
    RSSM_TRY(life_flush(&g->w));
    const rssm_slot_args args = make_args(g, batch, &e);
    RSSM_TRY(life_expect_ok(&g->w, call(g, batch, &args), kind_names[batch->kind]));
    for (int32_t i = 0; i < e.n_rows; i++) {
        if (e.is_beyond[i]) issues |= RSSM_ISSUE_SLOT_RANGE;
        if (e.item[i] < 0) continue;
        life_request *r = &batch->items[e.item[i]];
        r->issues = mirror_request(g, batch, r);
        issues |= r->issues;
        life_trace(g, "%s: %d -> %d, count %d, position %llu, epoch %u: issues %#x", kind_names[batch->kind],
                   has_source(batch) ? r->source : -1, r->destination, r->count, (unsigned long long)r->position,
                   r->epoch, r->issues);
    }
    RSSM_TRY(life_fetch(&g->w, true));
    if (args.moves) { // between the library's own launches
        life_adopt(&g->w, g->w.arrays[LIFE_MOVES].offset, (size_t)e.n_rows * sizeof(rssm_slot_move));
    }
    RSSM_TRY(life_check_issues(g, issues));
    RSSM_TRY(life_check_cursors(g));
done:
    return st;
}
