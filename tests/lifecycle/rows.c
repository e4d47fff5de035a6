// See rows.h.
#include "tests/lifecycle/rows.h"

#include <string.h>

int32_t life_draw_accepted(life_game *g, const rssm_cursor *c)
{
    if (c->pending_mode == RSSM_MODE_NONE) return (int32_t)life_below(g, LIFE_T_MAX + 1);
    if (c->pending_mode == RSSM_MODE_FOLD_ALL && !life_one_in(g, 24)) return c->pending_t + (int32_t)life_below(g, 2);
    if (life_one_in(g, 3)) return c->pending_t + (int32_t)life_below(g, 3);
    return (int32_t)life_below(g, (uint32_t)c->pending_t + 1);
}

static void draw_slot_row(life_game *g, const life_rows *b, int32_t slot, life_row *r)
{
    const uint32_t T = (uint32_t)b->group->window.T;
    memset(r, 0, sizeof *r);
    r->slot = slot;
    r->is_live = slot >= 0 && slot < LIFE_SLOTS && slot != b->pad_slot;
    r->t = 1 + (int32_t)life_below(g, T);
    if (life_one_in(g, 12)) r->t = 0;
    if (life_one_in(g, 10)) r->forced = 7;
    r->accepted = (int32_t)life_below(g, T + 1);
    r->epoch = (uint32_t)rssm_verify_next(&g->random);
    for (int i = 0; i <= LIFE_T_MAX; i++)
        r->ids[i] = g->next_token++;
    if (!r->is_live) return;
    r->epoch = g->slots[slot].epoch;
    r->accepted = life_draw_accepted(g, &g->mirror[slot]);
    if (life_one_in(g, 80)) r->t = (int32_t)T + 1;                 // refused
    if (life_one_in(g, 160) && !b->packed) r->t = -1 - (int32_t)T; // likewise
}

static bool may_step(const life_game *g, int32_t slot)
{
    return g->slots[slot].use == LIFE_LIVE;
}

static void draw_rows(life_game *g, life_rows *b, const life_step_options *o)
{
    int32_t candidates[LIFE_SLOTS], n = 0;
    for (int32_t slot = 0; slot < LIFE_SLOTS; slot++) {
        if (slot != o->slot && may_step(g, slot)) candidates[n++] = slot;
    }
    const int32_t n_wanted = o->flush || o->abandon ? 1 : 1 + (int32_t)life_below(g, LIFE_ROWS);
    const int32_t at_slot = (int32_t)life_below(g, (uint32_t)n_wanted);
    while (b->n < n_wanted) {
        life_row *r = &b->rows[b->n];
        int32_t   slot = b->pad_slot;
        if (o->slot >= 0 && b->n == at_slot) {
            slot = o->slot;
        } else if (n > 0 && !life_one_in(g, 8)) {
            const int32_t pick = (int32_t)life_below(g, (uint32_t)n);
            slot = candidates[pick];
            candidates[pick] = candidates[--n];
        } else if (life_one_in(g, 6)) {
            slot = life_one_in(g, 2) ? LIFE_SLOTS + (int32_t)life_below(g, 3) : -50;
        } else if (b->group->refuses_duplicates && b->n > 0 && life_one_in(g, 6)) {
            slot = b->rows[life_below(g, (uint32_t)b->n)].slot;
        }
        draw_slot_row(g, b, slot, r);
        if (o->flush) r->t = o->token ? 1 : 0, r->forced = 1;
        if (o->token) r->ids[0] = *o->token;
        for (int32_t i = 0; i < b->n && b->group->refuses_duplicates; i++)
            r->is_duplicate |= r->is_live && b->rows[i].slot == r->slot;
        b->n++;
    }
}

void life_rows_choose_arrays(life_game *g, life_rows *b)
{
    const int32_t T = b->group->window.T;
    bool          all_tokens = true, all_accepted = true, forced = false, fresh = false;
    int32_t       next = 0;

    if (!b->packed && life_one_in(g, 4)) {
        for (int32_t i = 0; i < b->n; i++)
            if (b->rows[i].t > 0 && b->rows[i].t <= T) b->rows[i].t = T;
    }
    for (int32_t i = 0; i < b->n; i++) {
        life_row *r = &b->rows[i];
        all_tokens &= r->t == T;
        forced |= r->forced != 0;
        if (r->is_live) {
            all_accepted &= r->accepted >= g->mirror[r->slot].pending_t;
            fresh |= g->slots[r->slot].fresh;
        }
        r->token = b->packed ? next : i * T;
        r->n_owned = b->packed ? r->t : T;
        next += r->n_owned;
    }
    b->pass_tokens = b->packed ? life_one_in(g, 2) : !all_tokens || life_one_in(g, 2);
    b->pass_accepted = !all_accepted || life_one_in(g, 2);
    b->pass_forced = forced || life_one_in(g, 2);
    b->pass_epochs = fresh || life_one_in(g, 2);
}

void life_rows_write(life_game *g, const life_rows *b)
{
    static const life_array arrays[] = {LIFE_SLOT_ARRAY, LIFE_TOKEN_COUNTS, LIFE_CU_SEQLENS, LIFE_ACCEPTED,
                                        LIFE_FORCED,     LIFE_EPOCHS,       LIFE_DESCRIPTORS};
    life_world             *w = &g->w;
    int32_t                 next = 0;
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        life_poison_array(w, arrays[i]);
    for (size_t i = 0; i < (size_t)b->n; i++) {
        const life_row *r = &b->rows[i];
        life_write_entry(w, LIFE_SLOT_ARRAY, i, &r->slot);
        if (b->pass_tokens && !b->packed) life_write_entry(w, LIFE_TOKEN_COUNTS, i, &r->t);
        if (b->packed) life_write_entry(w, LIFE_CU_SEQLENS, i, &r->token);
        if (b->pass_accepted) life_write_entry(w, LIFE_ACCEPTED, i, &r->accepted);
        if (b->pass_forced) life_write_entry(w, LIFE_FORCED, i, &r->forced);
        if (b->pass_epochs) life_write_entry(w, LIFE_EPOCHS, i, &r->epoch);
        next = r->token + r->n_owned;
    }
    if (b->packed) life_write_entry(w, LIFE_CU_SEQLENS, (size_t)b->n, &next);
}

static void write_token(life_game *g, const life_row *r, int32_t i)
{
    life_world *w = &g->w;
    for (uint32_t layer = 0; layer < LIFE_LAYERS; layer++) {
        const life_layer  *l = &w->layers[layer];
        const life_tensor *tensors[] = {&l->x, &l->z, &l->B, &l->C, &l->dt};
        for (int which = LIFE_X; which <= LIFE_DT; which++) {
            const life_tensor   *t = tensors[which];
            const unsigned char *bits = life_token_bits(w, r->ids[i], layer, which);
            const size_t         n = life_run_bytes(t);
            for (int64_t head = 0; head < t->n_heads && t->bytes; head++)
                life_write(w, life_at(t, r->token + i, head, 0), bits + (size_t)head * n, n);
        }
    }
}

void life_rows_write_activations(life_game *g, const life_rows *b)
{
    for (int i = 0; i < LIFE_LAYERS; i++) {
        const life_layer  *l = &g->w.layers[i];
        const life_tensor *tensors[] = {&l->x, &l->z, &l->B, &l->C, &l->dt, &l->out};
        for (int t = 0; t < 6; t++)
            life_poison(&g->w, tensors[t]->offset, tensors[t]->bytes);
    }
    for (int32_t i = 0; i < b->n; i++) {
        for (int32_t k = 0; k < b->rows[i].want.t && b->rows[i].want.slot >= 0; k++)
            write_token(g, &b->rows[i], k);
    }
}

rssm_advance_args life_rows_args(const life_game *g, const life_rows *b)
{
    const life_world *w = &g->w;
    rssm_advance_args a = RSSM_ADVANCE_ARGS_INIT;
    a.n_rows = (uint32_t)b->n;
    a.slots = life_device_array(w, LIFE_SLOT_ARRAY);
    if (b->pass_tokens) a.tokens = life_device_array(w, LIFE_TOKEN_COUNTS);
    if (b->packed) a.cu_seqlens = life_device_array(w, LIFE_CU_SEQLENS);
    if (b->pass_accepted) a.accepted = life_device_array(w, LIFE_ACCEPTED);
    if (b->pass_forced) a.forced = life_device_array(w, LIFE_FORCED);
    if (b->pass_epochs) a.epochs = life_device_array(w, LIFE_EPOCHS);
    a.descriptors = life_device_array(w, LIFE_DESCRIPTORS);
    a.issues = life_device_array(w, LIFE_ISSUES);
    a.pad_slot = b->pad_slot;
    return a;
}

void life_rows_draw(life_game *g, const life_step_options *o, life_rows *b)
{
    memset(b, 0, sizeof *b);
    b->group_index = o->group >= 0 ? o->group : (int32_t)life_below(g, LIFE_GROUPS);
    b->group = &g->w.groups[b->group_index];
    b->packed = life_one_in(g, 2);
    b->pad_slot = life_one_in(g, 2) ? -1 : -3;
    if (g->slots[0].use == LIFE_FREE && o->slot != 0 && life_one_in(g, 2)) b->pad_slot = 0;
    draw_rows(g, b, o);
    life_rows_choose_arrays(g, b);
}
