// Admissions: prefill states into slots, and new sequences in their cursors. See game.h.
#include <string.h>

#include "tests/lifecycle/game.h"

// A batch of prefill states.
typedef struct states {
    int32_t  n;
    int32_t  slots[LIFE_ROWS];
    uint64_t seeds[LIFE_ROWS];
    bool     zeros;
} states;

static size_t n_values(const life_layer *l)
{
    return (size_t)l->problem->n_heads * l->problem->head_dim * l->problem->state_size;
}

// Among the slots that are meant are some that must be skipped.
static void write_slots(life_game *g, const states *s, int32_t pad_slot, int32_t place[LIFE_ROWS], uint32_t *out_n)
{
    uint32_t n = 0;
    life_poison_array(&g->w, LIFE_SLOT_ARRAY);
    for (int32_t i = 0; i < s->n;) {
        int32_t slot = s->slots[i];
        if (n + (uint32_t)(s->n - i) < LIFE_ROWS && life_one_in(g, 4)) {
            slot = life_one_in(g, 2) ? pad_slot : LIFE_SLOTS + 3;
        } else {
            place[i++] = (int32_t)n;
        }
        life_write_entry(&g->w, LIFE_SLOT_ARRAY, n++, &slot);
    }
    *out_n = n;
}

static rssm_status encode_layer(life_game *g, const states *s, uint32_t layer)
{
    life_world       *w = &g->w;
    const life_layer *l = &w->layers[layer];
    const size_t      n = n_values(l), stored = w->stored_states.element_bytes;
    const int64_t     stride = (int64_t)(w->arrays[LIFE_VALUES].element_bytes / sizeof(float));
    rssm_state_args   a = RSSM_STATE_ARGS_INIT;
    int32_t           place[LIFE_ROWS];
    rssm_status       st;

    a.pad_slot = life_one_in(g, 2) ? -1 : -5;
    a.slots = life_device_array(w, LIFE_SLOT_ARRAY);
    a.values = s->zeros ? NULL : life_device_array(w, LIFE_VALUES);
    a.value_stride = stride;
    write_slots(g, s, a.pad_slot, place, &a.n_rows);
    life_poison_array(w, LIFE_VALUES);
    for (int32_t i = 0; i < s->n; i++) {
        const size_t from = s->zeros ? 0 : life_state_place(w, s->seeds[i], layer);
        const size_t to = w->arrays[LIFE_VALUES].offset + (size_t)place[i] * w->arrays[LIFE_VALUES].element_bytes;
        if (!s->zeros) life_write(w, to, w->pools[LIFE_POOL_STATE].bits + from * sizeof(float), n * sizeof(float));
    }
    RSSM_TRY(life_flush(w));
    const life_group *group = &w->groups[life_below(g, LIFE_GROUPS)];
    RSSM_TRY(life_expect_ok(w, w->calls->encode(group->layers, layer, &a, NULL), "rssm_encode"));
    for (int32_t i = 0; i < s->n; i++) {
        unsigned char *to = w->image + life_checkpoint_at(w, (int)layer, s->slots[i]);
        if (s->zeros) {
            memset(to, 0, n * stored);
        } else {
            memcpy(to, w->stored_states.bits + life_state_place(w, s->seeds[i], layer) * stored, n * stored);
        }
    }
    RSSM_TRY(life_settle(g, false));
done:
    return st;
}

static rssm_status encode(life_game *g, const states *s)
{
    rssm_status st = RSSM_OK;
    for (uint32_t layer = 0; layer < LIFE_LAYERS; layer++)
        RSSM_TRY(encode_layer(g, s, layer));
done:
    return st;
}

// Records that a prefill computed: the host writes them.
static void write_records(life_game *g, int32_t slot, int32_t n)
{
    life_sequence *s = &g->slots[slot].s;
    for (int32_t i = 0; i < n; i++) {
        life_record *r = &s->records[i];
        r->token = g->next_token++;
        r->is_prefilled = true;
        for (uint32_t layer = 0; layer < LIFE_LAYERS; layer++) {
            for (uint32_t head = 0; head < g->w.layers[layer].problem->n_heads; head++)
                r->dt[layer][head] = (float)life_exact_dt(&g->w, layer, head, r->token);
        }
        life_expect_record(g, slot, i, r);
        for (int layer = 0; layer < LIFE_LAYERS; layer++) {
            const life_layer  *l = &g->w.layers[layer];
            const life_tensor *rings[] = {&l->x_ring, &l->B_ring, &l->dt_ring};
            for (int k = 0; k < 3; k++) {
                for (int64_t head = 0; head < rings[k]->n_heads; head++)
                    life_dirty(&g->w, life_at(rings[k], slot, head, i), life_run_bytes(rings[k]));
            }
        }
    }
    s->n_records = n;
    s->accepted += (uint64_t)n;
}

// A window's, or nearly all that the ring takes.
static int32_t draw_records(life_game *g)
{
    if (life_one_in(g, 2)) return g->w.ring - (int32_t)life_below(g, 2);
    return (int32_t)life_below(g, (uint32_t)(life_one_in(g, 4) ? g->w.ring : g->w.window) + 1);
}

static rssm_status reset(life_game *g, const states *s, bool with_records)
{
    life_batch  batch = {.kind = LIFE_RESET, .n = s->n};
    rssm_status st;

    batch.pass_counts = with_records || life_one_in(g, 3);
    batch.pass_positions = life_one_in(g, 2);
    batch.pass_epochs = !life_one_in(g, 4);
    batch.pass_nonces = life_one_in(g, 2);
    for (int32_t i = 0; i < s->n; i++) {
        life_request  *r = &batch.items[i];
        life_sequence *q = &g->slots[s->slots[i]].s;
        r->destination = s->slots[i];
        r->count = with_records ? draw_records(g) : 0;
        r->position = life_below(g, 1u << 20) + (life_one_in(g, 4) ? (uint64_t)1 << 40 : 0);
        r->epoch = g->next_epoch++;
        r->nonce = rssm_verify_next(&g->random);
        life_sequence_begin(&g->w, q, s->zeros ? 0 : s->seeds[i], batch.pass_positions ? r->position : 0);
        write_records(g, r->destination, r->count);
    }
    RSSM_TRY(life_batch_run(g, &batch));
    for (int32_t i = 0; i < s->n; i++) {
        if (batch.items[i].issues) return life_wrong(&g->w, "the mirror refuses a reset of slot %d", s->slots[i]);
        life_occupy(g, s->slots[i], LIFE_LIVE);
    }
    RSSM_TRY(life_settle(g, true));
done:
    return st;
}

rssm_status life_event_admit(life_game *g, life_event event)
{
    const int32_t n_wanted = 1 + (int32_t)life_below(g, 2);
    states        s = {0};
    rssm_status   st = RSSM_OK;

    while (s.n < n_wanted) {
        const int32_t slot = life_pick_destination(g, s.n ? s.slots[0] : -1, -1);
        if (slot < 0) break;
        s.seeds[s.n] = g->next_token++;
        s.slots[s.n++] = slot;
    }
    if (s.n == 0) return life_impossible(g);
    s.zeros = life_one_in(g, 4);
    for (int32_t i = 0; i < s.n; i++) {
        life_vacate(g, s.slots[i], LIFE_FREE);
        life_trace(g, "admit slot %d%s%s", s.slots[i], s.zeros ? " with zeros" : "",
                   event == LIFE_EVENT_ADMIT_EPOCH ? " by its epoch" : "");
    }
    if (event == LIFE_EVENT_ADMIT_EPOCH) {
        RSSM_TRY(encode(g, &s));
        for (int32_t i = 0; i < s.n; i++) {
            life_slot *slot = &g->slots[s.slots[i]];
            life_sequence_begin(&g->w, &slot->s, s.zeros ? 0 : s.seeds[i], 0);
            slot->use = LIFE_LIVE;
            slot->fresh = true;
            slot->epoch = g->next_epoch++;
        }
    } else if (life_one_in(g, 2)) {
        RSSM_TRY(encode(g, &s));
        RSSM_TRY(reset(g, &s, event == LIFE_EVENT_ADMIT_RECORDS));
    } else {
        RSSM_TRY(reset(g, &s, event == LIFE_EVENT_ADMIT_RECORDS));
        RSSM_TRY(encode(g, &s));
    }
    if (event == LIFE_EVENT_ADMIT_RECORDS && life_one_in(g, 2)) { // a host that only prefills
        RSSM_TRY(life_preempt(g, s.slots[0]));
        g->is_impossible = false;
    }
done:
    return st;
}
