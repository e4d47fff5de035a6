// The traffic of a verification run; see verify_schedule.h.
#include "tuner/verify_schedule.h"

#include <string.h>

#include "base/alloc.h"

rssm_status rssm_verify_schedule_create(rssm_verify_schedule *s, const rssm_verify_request *request,
                                        const rssm_problem *problem, rssm_verify_report *report, rssm_diag *diag)
{
    const bool     pad_zero = request->flags & RSSM_VERIFY_PAD_ZERO;
    const uint32_t n_rows = request->n_rows, n_slots = request->n_slots;

    memset(s, 0, sizeof *s);
    s->request = request;
    s->report = report;
    s->window = (rssm_window){(int32_t)problem->window, (int32_t)problem->ring_length, (int32_t)problem->max_tokens,
                              request->eager != 0};
    s->pad_slot = pad_zero ? 0 : -1;
    s->random.state = request->seed;
    s->mirror = rssm_calloc(n_slots, sizeof *s->mirror);
    s->sequences = rssm_calloc(n_rows, sizeof *s->sequences);
    s->order = rssm_calloc(n_rows, sizeof *s->order);
    s->free_slots = rssm_calloc(n_slots, sizeof *s->free_slots);
    s->rows = rssm_calloc(n_rows, sizeof *s->rows);
    if (!s->mirror || !s->sequences || !s->order || !s->free_slots || !s->rows) {
        return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for traffic of %u rows over %u slots", n_rows, n_slots);
    }
    for (uint32_t slot = pad_zero ? 1 : 0; slot < n_slots; slot++)
        s->free_slots[s->n_free++] = (int32_t)slot;
    for (uint32_t i = 0; i < n_rows; i++) {
        const uint32_t pick = rssm_verify_below(&s->random, s->n_free);
        // Sequence 0 has epoch 0, that of zeroed cursors, so nothing resets its slot.
        s->sequences[i] = (rssm_verify_sequence){s->free_slots[pick], i, 0, true};
        if (i > 0 && rssm_verify_one_in(&s->random, 2)) {
            s->sequences[i].starts_at = rssm_verify_below(&s->random, problem->window);
        }
        s->free_slots[pick] = s->free_slots[--s->n_free];
        s->order[i] = i;
    }
    s->next_epoch = n_rows;
    return RSSM_OK;
}

void rssm_verify_schedule_destroy(rssm_verify_schedule *s)
{
    rssm_free(s->mirror);
    rssm_free(s->sequences);
    rssm_free(s->order);
    rssm_free(s->free_slots);
    rssm_free(s->rows);
    memset(s, 0, sizeof *s);
}

bool rssm_verify_row_folds(const rssm_verify_row *row)
{
    return row->want.mode == RSSM_MODE_FOLD_ALL || (row->want.mode == RSSM_MODE_FOLD_HISTORY && row->want.h > 0);
}

static void shuffle_rows(rssm_verify_schedule *s)
{
    for (uint32_t i = s->request->n_rows; i > 1; i--) {
        const uint32_t j = rssm_verify_below(&s->random, i), swapped = s->order[j];
        s->order[j] = s->order[i - 1];
        s->order[i - 1] = swapped;
    }
}

// A new sequence takes over, in the same slot or in a free one.
static void replace_sequence(rssm_verify_schedule *s, rssm_verify_sequence *sequence)
{
    sequence->epoch = s->next_epoch++;
    sequence->is_fresh = true;
    s->report->n_resets++;
    if (s->n_free > 0 && rssm_verify_one_in(&s->random, 2)) {
        const uint32_t pick = rssm_verify_below(&s->random, s->n_free);
        const int32_t  slot = s->free_slots[pick];
        s->free_slots[pick] = sequence->slot;
        sequence->slot = slot;
    }
}

// How much of the slot's last step is kept. The count of a fresh sequence belongs to nobody and must not matter.
static int32_t draw_accepted(rssm_verify_schedule *s, const rssm_cursor *c, bool steady, bool is_fresh)
{
    const uint32_t T = (uint32_t)s->window.T;
    if (is_fresh || c->pending_mode == RSSM_MODE_NONE) return (int32_t)(1 + rssm_verify_below(&s->random, T));
    if (c->pending_mode != RSSM_MODE_FOLD_ALL) {
        if (!steady && rssm_verify_one_in(&s->random, 12)) return 0;
        if (c->pending_t > 1 && rssm_verify_one_in(&s->random, 2)) {
            return 1 + (int32_t)rssm_verify_below(&s->random, (uint32_t)c->pending_t);
        }
    }
    return c->pending_t + (int32_t)rssm_verify_below(&s->random, 3); // more than all is all
}

// Fills everything of a row but its place in the activations and its descriptor.
static void draw_row(rssm_verify_schedule *s, uint32_t i, uint32_t step)
{
    rssm_verify_row      *row = &s->rows[i];
    rssm_verify_sequence *sequence = &s->sequences[s->order[i]];
    const uint32_t        T = (uint32_t)s->window.T;
    // With a single row, the steady sequence gets its chance first.
    const bool steady = s->order[i] == 0 && (s->request->n_rows > 1 || step < (uint32_t)s->window.L + 4);

    memset(row, 0, sizeof *row);
    if (step < sequence->starts_at || (!steady && rssm_verify_one_in(&s->random, 8))) {
        row->is_null = true;
        row->slot = s->pad_slot;
        row->t = (int32_t)rssm_verify_below(&s->random, T + 1);
        row->forced = (uint8_t)rssm_verify_below(&s->random, 2);
        row->epoch = (uint32_t)rssm_verify_next(&s->random);
        row->accepted = (int32_t)rssm_verify_below(&s->random, T + 1);
        return;
    }
    if (!steady && !sequence->is_fresh && rssm_verify_one_in(&s->random, 16)) replace_sequence(s, sequence);
    row->slot = sequence->slot;
    row->epoch = sequence->epoch;
    row->is_fresh = sequence->is_fresh;
    row->accepted = draw_accepted(s, &s->mirror[row->slot], steady, row->is_fresh);
    row->t = 1 + (int32_t)rssm_verify_below(&s->random, T);
    if (!steady && rssm_verify_one_in(&s->random, 10)) row->t = 0;
    if (!steady && s->order[i] % 2 == 1 && rssm_verify_one_in(&s->random, 6)) row->forced = 200;
    sequence->is_fresh = false;
}

// Decides which optional arrays this step passes, where leaving one out can mean the same.
static void choose_arrays(rssm_verify_schedule *s)
{
    const bool packed = s->request->flags & RSSM_VERIFY_PACKED;
    bool       all_tokens = true, fresh = false, forced = false, all_accepted = rssm_verify_one_in(&s->random, 4);

    for (uint32_t i = 0; i < s->request->n_rows; i++) {
        rssm_verify_row *row = &s->rows[i];
        if (row->is_null) continue;
        all_tokens &= row->t == s->window.T;
        fresh |= row->is_fresh && row->epoch != s->mirror[row->slot].epoch;
        forced |= row->forced != 0;
        if (all_accepted && row->accepted < s->mirror[row->slot].pending_t) {
            row->accepted = s->mirror[row->slot].pending_t;
        }
    }
    // Packed token counts come from cu_seqlens: `tokens` must be ignored then.
    s->pass_tokens = packed ? rssm_verify_one_in(&s->random, 2) : !all_tokens || rssm_verify_one_in(&s->random, 2);
    s->pass_accepted = !all_accepted;
    s->pass_forced = forced || rssm_verify_one_in(&s->random, 2);
    s->pass_epochs = fresh || rssm_verify_one_in(&s->random, 2);
}

static void place_tokens(rssm_verify_schedule *s)
{
    const bool packed = s->request->flags & RSSM_VERIFY_PACKED;
    int32_t    next = 0;
    for (uint32_t i = 0; i < s->request->n_rows; i++) {
        s->rows[i].token = next;
        s->rows[i].n_owned = packed ? s->rows[i].t : s->window.T;
        next += s->rows[i].n_owned;
    }
}

static void count_row(rssm_verify_report *report, const rssm_verify_row *row, const rssm_window *w, bool rejected)
{
    const int32_t last = row->want.start + row->want.h - 1 + (row->want.mode != RSSM_MODE_FOLD_ALL ? row->want.t : 0);
    report->n_null += row->is_null;
    if (row->is_null) return;
    report->n_idle += row->t == 0;
    report->n_appends += row->want.mode == RSSM_MODE_APPEND;
    report->n_folds += rssm_verify_row_folds(row);
    report->n_full_folds += rssm_verify_row_folds(row) && !row->forced && !w->eager;
    report->n_forced += rssm_verify_row_folds(row) && row->forced;
    report->n_wraps += last >= w->R;
    report->n_rejections += rejected;
}

rssm_status rssm_verify_schedule_next(rssm_verify_schedule *s, uint32_t step, rssm_diag *diag)
{
    shuffle_rows(s);
    for (uint32_t i = 0; i < s->request->n_rows; i++)
        draw_row(s, i, step);
    choose_arrays(s);
    place_tokens(s);
    for (uint32_t i = 0; i < s->request->n_rows; i++) {
        rssm_verify_row *row = &s->rows[i];
        bool             rejected = false;
        rssm_u32         issues = 0;
        if (row->is_null) {
            rssm_descriptor_null(&row->want, row->token);
        } else {
            rssm_cursor *c = &s->mirror[row->slot];
            if (c->epoch == row->epoch) {
                rejected = row->accepted < c->pending_t;
                issues = rssm_cursor_commit(c, &s->window, row->accepted);
            }
            issues |=
                rssm_cursor_open(c, &s->window, row->slot, row->token, row->t, row->forced, row->epoch, &row->want);
        }
        if (issues) {
            return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT,
                             "step %u: the window L=%d R=%d T=%d refuses row %u with issues %#x; use a ring that "
                             "serves the window",
                             step, s->window.L, s->window.R, s->window.T, i, issues);
        }
        count_row(s->report, row, &s->window, rejected);
    }
    return RSSM_OK;
}
