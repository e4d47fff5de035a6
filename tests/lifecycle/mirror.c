// What commit and open make of a batch, by the transitions of cursor.h, and what a sequence makes of its acceptance.
#include "tests/lifecycle/rows.h"

rssm_u32 life_rows_mirror_commits(life_game *g, const life_rows *b)
{
    rssm_u32 issues = 0;
    for (int32_t i = 0; i < b->n; i++) {
        const life_row *r = &b->rows[i];
        if (!r->is_live && r->slot != b->pad_slot) issues |= RSSM_ISSUE_SLOT_RANGE;
        if (!r->is_live || r->is_duplicate) continue;
        life_slot   *slot = &g->slots[r->slot];
        rssm_cursor *c = &g->mirror[r->slot];
        if (b->pass_epochs && c->epoch != r->epoch) continue;
        const int32_t accepted = b->pass_accepted ? r->accepted : c->pending_t;
        if (c->pending_mode != RSSM_MODE_NONE) {
            g->traffic[LIFE_TRAFFIC_REJECTED] += accepted < c->pending_t;
            g->traffic[LIFE_TRAFFIC_ALL_REJECTED] += accepted == 0 && c->pending_t > 0;
            g->traffic[LIFE_TRAFFIC_LOST_TOKEN] += accepted == 0 && c->pending_mode == RSSM_MODE_FOLD_ALL;
        }
        if (life_has_state(slot) && !slot->fresh) life_sequence_commit(&slot->s, accepted);
        issues |= rssm_cursor_commit(c, &b->group->window, accepted);
    }
    return issues;
}

rssm_u32 life_rows_mirror_opens(life_game *g, life_rows *b)
{
    rssm_u32 issues = 0;
    for (int32_t i = 0; i < b->n; i++) {
        life_row     *r = &b->rows[i];
        const int32_t token = b->packed && r->t <= 0 ? -1 : r->token;
        rssm_descriptor_null(&r->want, token);
        r->issues = 0;
        if (!r->is_live) {
            r->issues = r->slot != b->pad_slot ? RSSM_ISSUE_SLOT_RANGE : 0;
        } else if (r->is_duplicate) {
            r->issues = RSSM_ISSUE_DUPLICATE_SLOT;
        } else {
            rssm_cursor   *c = &g->mirror[r->slot];
            const uint32_t epoch = b->pass_epochs ? r->epoch : c->epoch;
            g->traffic[LIFE_TRAFFIC_PENDING_DISCARDED] += c->epoch != epoch && c->pending_mode != RSSM_MODE_NONE;
            r->issues = rssm_cursor_open(c, &b->group->window, r->slot, token, r->t, r->forced, epoch, &r->want);
            if (!r->issues) g->slots[r->slot].fresh = false;
        }
        if (b->packed && r->want.slot < 0) r->want.t = (rssm_i16)(r->t > 0 ? r->t : 0);
        issues |= r->issues;
    }
    return issues;
}
