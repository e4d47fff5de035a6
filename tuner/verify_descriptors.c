// What advance must have left: descriptors, issues and cursors, compared with the host mirror.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tuner/verify_session.h"

static void describe(const rssm_descriptor *d, char *out_text, size_t n)
{
    snprintf(out_text, n, "{slot %d, token %d, start %d, h %d, t %d, mode %d, pos %llu, nonce %llu}", d->slot, d->token,
             d->start, d->h, d->t, d->mode, d->pos, d->nonce);
}

// A row without a token in the activations has no place there: its `token` may also be negative, which spares the step
// from taking the next row's place for its own.
static bool token_matches(const rssm_verify_row *row, const rssm_descriptor *d)
{
    return d->token == row->token || (row->n_owned == 0 && d->token < 0);
}

static bool matches(const rssm_verify_row *row, const rssm_descriptor *d)
{
    const rssm_descriptor *want = &row->want;
    if (!token_matches(row, d)) return false;
    // Of a null row only this matters; it may name how many outputs it owns.
    if (row->is_null) return d->slot < 0 && d->mode == RSSM_MODE_NONE && (d->t == 0 || d->t == row->n_owned);
    return d->slot == want->slot && d->start == want->start && d->h == want->h && d->t == want->t &&
           d->mode == want->mode && d->pos == want->pos && d->nonce == want->nonce;
}

static rssm_status report_descriptor(rssm_verify_session *s, uint32_t index, const rssm_descriptor *d)
{
    char got[160], want[160];
    describe(d, got, sizeof got);
    for (uint32_t i = 0; i < s->request->n_rows; i++) {
        const rssm_verify_row *row = &s->schedule.rows[i];
        if (!token_matches(row, d) && (row->is_null || row->slot != d->slot)) continue;
        describe(&row->want, want, sizeof want);
        return rssm_verify_wrong(s, "descriptor %u is %s, row %u wants %s", index, got, i, want);
    }
    return rssm_verify_wrong(s, "descriptor %u is %s, which is no row's", index, got);
}

// Every descriptor is exactly one row's, and those that fold come first.
static rssm_status check_descriptors(rssm_verify_session *s)
{
    const rssm_verify_tensor *t = &s->buffers[RSSM_VERIFY_DESCRIPTORS];
    const uint32_t            n = s->request->n_rows;
    rssm_status               st = RSSM_OK;
    bool                      others_began = false;
    bool                     *taken = rssm_calloc(n, sizeof *taken);

    if (!taken) return RSSM_FAIL(s->diag, RSSM_E_NO_MEMORY, "no memory to match %u descriptors", n);
    for (uint32_t i = 0; i < n && st == RSSM_OK; i++) {
        rssm_descriptor d;
        uint32_t        row = 0;
        memcpy(&d, t->actual + rssm_verify_run_at(t, i, 0, 0), sizeof d);
        while (row < n && (taken[row] || !matches(&s->schedule.rows[row], &d)))
            row++;
        if (row == n) {
            st = report_descriptor(s, i, &d);
            break;
        }
        taken[row] = true;
        const bool folds = d.mode == RSSM_MODE_FOLD_HISTORY || d.mode == RSSM_MODE_FOLD_ALL;
        if (folds && others_began) {
            st = rssm_verify_wrong(s, "descriptor %u (slot %d) folds, but stands behind one that does not", i, d.slot);
        }
        others_began |= !folds;
    }
    rssm_free(taken);
    return st;
}

static rssm_status check_cursors(rssm_verify_session *s)
{
    rssm_verify_tensor *t = &s->buffers[RSSM_VERIFY_CURSORS];
    for (uint32_t slot = 0; slot < s->request->n_slots; slot++) {
        const rssm_cursor *want = &s->schedule.mirror[slot];
        rssm_cursor        got;
        memcpy(&got, t->actual + rssm_verify_run_at(t, slot, 0, 0), sizeof got);
        if (memcmp(&got, want, sizeof got) != 0) {
            return rssm_verify_wrong(s,
                                     "the cursor of slot %u is {start %d, h %d, pending %d in mode %d, epoch %u, pos "
                                     "%llu}, want {start %d, h %d, pending %d in mode %d, epoch %u, pos %llu}",
                                     slot, got.start, got.h, got.pending_t, got.pending_mode, got.epoch, got.pos,
                                     want->start, want->h, want->pending_t, want->pending_mode, want->epoch, want->pos);
        }
    }
    memcpy(t->image, s->schedule.mirror, t->total_bytes);
    return RSSM_OK;
}

rssm_status rssm_verify_check_advance(rssm_verify_session *s)
{
    rssm_verify_tensor *issues = &s->buffers[RSSM_VERIFY_ISSUES], *cursors = &s->buffers[RSSM_VERIFY_CURSORS];
    rssm_verify_tensor *descriptors = &s->buffers[RSSM_VERIFY_DESCRIPTORS];
    rssm_status         st;
    uint32_t            bits;

    RSSM_TRY(rssm_verify_tensor_download(issues, &s->memory, s->diag));
    RSSM_TRY(rssm_verify_tensor_download(cursors, &s->memory, s->diag));
    RSSM_TRY(rssm_verify_tensor_download(descriptors, &s->memory, s->diag));
    memcpy(&bits, issues->actual + rssm_verify_run_at(issues, 0, 0, 0), sizeof bits);
    if (bits) return rssm_verify_wrong(s, "advance reports issues %#x where there are none", bits);
    RSSM_TRY(check_descriptors(s));
    RSSM_TRY(check_cursors(s));
    for (uint32_t i = 0; i < s->request->n_rows; i++)
        rssm_verify_run_adopt(descriptors, i, 0, 0);
done:
    return st;
}
