// Sequences on the host: preempted into blobs, resumed from them, and blobs that must be refused. See game.h.
#include <string.h>

#include "tests/lifecycle/game.h"

static rssm_transfer_args make_args(const life_world *w, int32_t slot, uint32_t epoch)
{
    rssm_transfer_args a = RSSM_TRANSFER_ARGS_INIT;
    a.slot = slot;
    a.epoch = epoch;
    a.staging = life_device_array(w, LIFE_STAGING);
    return a;
}

// What passes through the staging memory is the library's affair.
static rssm_status settle(life_game *g)
{
    const life_tensor *staging = &g->w.arrays[LIFE_STAGING];
    rssm_status        st;
    RSSM_TRY(life_fetch(&g->w, true));
    if (staging->bytes) life_adopt(&g->w, staging->offset, staging->bytes);
    RSSM_TRY(life_settle(g, true));
done:
    return st;
}

static life_blob *pick_blob(life_game *g, bool used)
{
    const uint32_t first = life_below(g, LIFE_BLOBS);
    for (uint32_t i = 0; i < LIFE_BLOBS; i++) {
        life_blob *b = &g->blobs[(first + i) % LIFE_BLOBS];
        if (b->used == used) return b;
    }
    return NULL;
}

static rssm_layers *any_layers(life_game *g)
{
    return g->w.groups[life_below(g, LIFE_GROUPS)].layers;
}

// Often the slot with the most records: those are what a preemption may lose.
static int32_t pick_preempted(life_game *g)
{
    int32_t best = life_pick(g, life_one_in(g, 4) ? LIFE_CACHED : LIFE_LIVE, false, -1);
    for (int32_t slot = 0; slot < LIFE_SLOTS && best >= 0 && life_one_in(g, 2); slot++) {
        if (life_has_state(&g->slots[slot]) && !g->slots[slot].fresh && g->mirror[slot].h > g->mirror[best].h)
            best = slot;
    }
    return best;
}

rssm_status life_preempt(life_game *g, int32_t slot)
{
    life_blob  *b = pick_blob(g, false);
    size_t      at = 0;
    rssm_status st;

    if (!b || slot < 0 || g->slots[slot].fresh) return life_impossible(g);
    RSSM_TRY(life_settle_slot(g, slot));
    RSSM_TRY(life_flush(&g->w));
    life_trace(g, "preempt slot %d: h %d, pos %llu", slot, g->mirror[slot].h, g->mirror[slot].pos);
    const rssm_transfer_args a = make_args(&g->w, slot, 0);
    b->bytes[g->blob_capacity] = 0xa5;
    RSSM_TRY(life_expect_ok(&g->w,
                            g->w.calls->export_slot(any_layers(g), &a, b->bytes, g->blob_capacity, &b->n, g->w.diag),
                            "rssm_export"));
    if (b->n > g->blob_capacity || b->bytes[g->blob_capacity] != 0xa5)
        return life_wrong(&g->w, "rssm_export writes %zu bytes of %zu", b->n, g->blob_capacity);
    RSSM_TRY(settle(g));
    b->used = true;
    b->origin = g;
    b->cursor = g->mirror[slot];
    life_sequence_assign(&g->w, &b->s, &g->slots[slot].s);
    for (int layer = 0; layer < LIFE_LAYERS; layer++) {
        memcpy(b->checkpoints + at, g->w.image + life_checkpoint_at(&g->w, layer, slot),
               life_checkpoint_bytes(&g->w, layer));
        at += life_checkpoint_bytes(&g->w, layer);
    }
    if (!life_one_in(g, 4)) life_vacate(g, slot, LIFE_FREE); // else it was a backup
done:
    return st;
}

static rssm_status refuse_too_long(life_game *g, const rssm_transfer_args *a, const life_blob *b)
{
    rssm_diag         diag = {0};
    rssm_status       st;
    const rssm_status got = g->w.calls->import_slot(any_layers(g), a, b->bytes, b->n, &diag);
    if (got != RSSM_E_UNSUPPORTED)
        return life_wrong(&g->w, "%d records for a ring of %d are answered by %s", b->s.n_records, g->w.ring,
                          rssm_status_name(got));
    RSSM_TRY(settle(g));
done:
    return st;
}

// What was imported leaves again as the same bytes, whatever memory it went through.
static rssm_status send_on(life_game *g, int32_t slot, const life_blob *b)
{
    const rssm_transfer_args a = make_args(&g->w, slot, 0);
    size_t                   n = 0;
    rssm_status              st;
    g->traffic[LIFE_TRAFFIC_SENT_ON]++;
    RSSM_TRY(life_flush(&g->w));
    RSSM_TRY(life_expect_ok(
        &g->w, g->w.calls->export_slot(any_layers(g), &a, g->damaged, g->blob_capacity, &n, g->w.diag), "rssm_export"));
    if (n != b->n || memcmp(g->damaged, b->bytes, n) != 0)
        return life_wrong(&g->w, "an imported blob of %zu bytes leaves again as %zu other bytes", b->n, n);
    RSSM_TRY(settle(g));
done:
    return st;
}

rssm_status life_event_preempt(life_game *g)
{
    return life_preempt(g, pick_preempted(g));
}

rssm_status life_event_resume(life_game *g)
{
    life_blob     *b = pick_blob(g, true);
    const int32_t  slot = life_pick_destination(g, -1, -1);
    const uint32_t epoch = g->next_epoch++;
    size_t         at = 0;
    rssm_status    st;

    if (!b || slot < 0) return life_impossible(g);
    life_trace(g, "resume into slot %d: h %d, pos %llu", slot, b->cursor.h, b->cursor.pos);
    RSSM_TRY(life_flush(&g->w));
    const rssm_transfer_args a = make_args(&g->w, slot, epoch);
    if (b->s.n_records > g->w.ring) {
        g->traffic[LIFE_TRAFFIC_TOO_LONG]++; // the other host may take it
        return refuse_too_long(g, &a, b);
    }
    RSSM_TRY(
        life_expect_ok(&g->w, g->w.calls->import_slot(any_layers(g), &a, b->bytes, b->n, g->w.diag), "rssm_import"));
    g->traffic[LIFE_TRAFFIC_MIGRATED] += b->origin != g;
    rssm_cursor_reset(&g->mirror[slot], epoch, b->cursor.pos, b->cursor.nonce);
    g->mirror[slot].h = b->cursor.h;
    life_sequence_assign(&g->w, &g->slots[slot].s, &b->s);
    for (int layer = 0; layer < LIFE_LAYERS; layer++) {
        memcpy(g->w.image + life_checkpoint_at(&g->w, layer, slot), b->checkpoints + at,
               life_checkpoint_bytes(&g->w, layer));
        at += life_checkpoint_bytes(&g->w, layer);
    }
    for (int32_t i = 0; i < b->s.n_records; i++)
        life_expect_record(g, slot, i, &b->s.records[i]);
    life_occupy(g, slot, LIFE_LIVE);
    RSSM_TRY(settle(g));
    if (life_one_in(g, 2)) RSSM_TRY(send_on(g, slot, b));
    if (life_one_in(g, 2)) b->used = false;
done:
    return st;
}

static bool is_refusal(rssm_status st)
{
    return st == RSSM_E_CORRUPT || st == RSSM_E_FOREIGN || st == RSSM_E_TOO_NEW || st == RSSM_E_UNSUPPORTED;
}

rssm_status life_event_damaged_blob(life_game *g)
{
    const life_blob *b = pick_blob(g, true);
    const int32_t    slot = (int32_t)life_below(g, LIFE_SLOTS);
    rssm_diag        diag = {0};
    rssm_status      st;

    if (!b) return life_impossible(g);
    size_t n = b->n;
    memcpy(g->damaged, b->bytes, n);
    if (life_one_in(g, 4)) {
        n = life_one_in(g, 2) ? life_below(g, (uint32_t)n) : n - 1 - life_below(g, 8);
    } else {
        // As often near the beginning, where lengths and kinds stand, as anywhere.
        const size_t at = life_below(g, life_one_in(g, 2) && n > 256 ? 256 : (uint32_t)n);
        g->damaged[at] ^= (unsigned char)(1u << life_below(g, 8));
        life_trace(g, "flip a bit of byte %zu of %zu", at, n);
    }
    RSSM_TRY(life_flush(&g->w));
    const rssm_transfer_args a = make_args(&g->w, slot, g->next_epoch++);
    const rssm_status        got = g->w.calls->import_slot(any_layers(g), &a, g->damaged, n, &diag);
    if (!is_refusal(got))
        return life_wrong(&g->w, "a damaged blob (%zu of %zu bytes) is answered by %s", n, b->n, rssm_status_name(got));
    if (diag.code != got || diag.text[0] == '\0')
        return life_wrong(&g->w, "a damaged blob is refused without a sentence: %s", rssm_status_name(got));
    RSSM_TRY(settle(g));
done:
    return st;
}

// Exports and imports that cannot be: of slots without a settled state, out of range, into too little memory.
rssm_status life_event_refused_export(life_game *g)
{
    const int32_t invalid = life_pick(g, LIFE_INVALID, false, -1), live = life_pick(g, LIFE_LIVE, false, -1);
    life_blob    *b = pick_blob(g, true);
    const int     kind = (int)life_below(g, 4);
    size_t        n = 77, capacity = g->blob_capacity;
    int32_t       slot = life_one_in(g, 2) ? LIFE_SLOTS : -1;
    rssm_diag     diag = {0};
    rssm_status   st, got;

    if (kind == 1) slot = invalid;
    if (kind == 2) slot = live;
    if ((kind == 1 && invalid < 0) || (kind == 2 && (live < 0 || g->slots[live].fresh)) || (kind == 3 && !b))
        return life_impossible(g);
    if (kind == 2 && g->mirror[live].pending_mode == RSSM_MODE_NONE) capacity = life_below(g, 200);
    RSSM_TRY(life_flush(&g->w));
    const rssm_transfer_args a = make_args(&g->w, slot, 1);
    memset(g->damaged, 0x5a, g->blob_capacity);
    if (kind == 3) {
        got = g->w.calls->import_slot(any_layers(g), &a, b->bytes, b->n, &diag);
    } else {
        got = g->w.calls->export_slot(any_layers(g), &a, g->damaged, capacity, &n, &diag);
    }
    if (got != RSSM_E_INVALID_ARGUMENT || n != 77)
        return life_wrong(&g->w, "%s of slot %d with %zu bytes returns %s and %zu bytes",
                          kind == 3 ? "an import" : "an export", slot, capacity, rssm_status_name(got), n);
    for (size_t i = capacity; i < g->blob_capacity; i++)
        if (g->damaged[i] != 0x5a) return life_wrong(&g->w, "a refused export writes behind its buffer");
    RSSM_TRY(settle(g));
done:
    return st;
}
