// Property test of the transitions between steps (abi/cursor.h, abi/slots_request.h) against a model that keeps every
// token by name: what a slot's checkpoint and its ring hold is moved as a kernel would move it by the moves, and after
// each operation every slot must still be a sequence: pos tokens folded, then h records in order.
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "templates/abi/slots_request.h"

enum { SLOTS = 6, MAX_RING = 40, MAX_REQUESTS = 4 };

// A sequence is a family: its token i is family * 2^32 + i. A fork shares the tokens up to where it forked.
typedef struct model_slot {
    int64_t folded[4096];   // [n_folded] tokens in the checkpoint, in order
    int64_t ring[MAX_RING]; // token in each record; -1: none
    int64_t n_folded;
    int64_t sequence[4096];   // [n_accepted] the tokens that the slot stands for
    int64_t n_accepted;
    int     is_valid;
} model_slot;

static model_slot   slots_model[SLOTS];
static rssm_cursor  cursors[SLOTS];
static uint64_t     state;
static int64_t      next_token;
static const char  *last_operation;

static int32_t below(int32_t n)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (int32_t)((state >> 33) % (uint64_t)n);
}

static void check_slots(const rssm_window *w)
{
    for (int s = 0; s < SLOTS; s++) {
        const rssm_cursor *c = &cursors[s];
        const model_slot  *m = &slots_model[s];
        cr_assert(c->h >= 0 && c->h <= w->R && c->start >= 0 && c->start < w->R, "%s: slot %d", last_operation, s);
        cr_assert_eq(!c->invalid, m->is_valid, "%s: slot %d", last_operation, s);
        if (!m->is_valid || c->pending_mode != RSSM_MODE_NONE) continue;
        cr_assert_eq((int64_t)c->pos, m->n_folded, "%s: slot %d", last_operation, s);
        cr_assert_eq((int64_t)c->pos + c->h, m->n_accepted, "%s: slot %d", last_operation, s);
        cr_assert_eq(memcmp(m->folded, m->sequence, (size_t)m->n_folded * 8), 0, "%s: slot %d", last_operation, s);
        for (int j = 0; j < c->h; j++)
            cr_assert_eq(m->ring[(c->start + j) % w->R], m->sequence[m->n_folded + j], "%s: slot %d, record %d",
                         last_operation, s, j);
    }
}

// Opens a step, writes what it writes, and commits some of it at once or leaves it pending.
static void step(const rssm_window *w)
{
    const int32_t   s = below(SLOTS);
    rssm_cursor    *c = &cursors[s];
    model_slot     *m = &slots_model[s];
    rssm_descriptor d;
    if (m->n_accepted > 4000 || c->pending_mode != RSSM_MODE_NONE) return;
    const rssm_i32 t = w->T == 1 ? 1 : below(w->T + 1);
    const rssm_u32 issues = rssm_cursor_open(c, w, s, 0, t, below(6) == 0, c->epoch, &d);
    last_operation = "open";
    cr_assert_eq(!m->is_valid, (issues & RSSM_ISSUE_INVALID_SLOT) != 0);
    if (issues || d.mode == RSSM_MODE_NONE) return;
    int64_t tokens[16] = {0};
    for (int i = 0; i < t; i++) tokens[i] = next_token++;
    if (d.mode == RSSM_MODE_FOLD_HISTORY || d.mode == RSSM_MODE_FOLD_ALL)
        for (int j = 0; j < d.h; j++) m->folded[m->n_folded++] = m->ring[(d.start + j) % w->R];
    if (d.mode == RSSM_MODE_FOLD_ALL) {
        m->folded[m->n_folded++] = tokens[0];
    } else {
        for (int i = 0; i < t; i++) m->ring[(d.start + d.h + i) % w->R] = tokens[i];
    }
    const int accepted = d.mode == RSSM_MODE_FOLD_ALL ? t : t ? 1 + below(t) : 0;
    for (int i = 0; i < accepted; i++) m->sequence[m->n_accepted++] = tokens[i];
    if (below(8) == 0) return;   // stays pending: the sequence already counts what commit_pending accepts
    rssm_cursor_commit(c, w, accepted);
}

// A pending step accepts what the model took for it.
static void commit_pending(const rssm_window *w)
{
    for (int s = 0; s < SLOTS; s++) {
        rssm_cursor *c = &cursors[s];
        if (c->pending_mode == RSSM_MODE_NONE) continue;
        const int64_t committed = (int64_t)c->pos + c->h;   // FOLD_HISTORY leaves pos until now, but not the total
        last_operation = "commit";
        rssm_cursor_commit(c, w, (rssm_i32)(slots_model[s].n_accepted - committed));
    }
}

// What kernels do with a move.
static void move_memory(const rssm_window *w, const rssm_slot_move *move, int is_copy)
{
    if (move->source < 0) return;
    const model_slot from = slots_model[move->source];
    model_slot      *to = &slots_model[move->destination];
    if (is_copy) {
        *to = from;
        for (int j = 0; j < w->R; j++) to->ring[j] = -1;
        for (int j = 0; j < move->n; j++) to->ring[j] = from.ring[(move->start + j) % w->R];
        return;
    }
    if (move->source != move->destination) *to = from;
    to->n_folded = from.n_folded;
    for (int j = 0; j < move->n; j++) to->folded[to->n_folded++] = from.ring[(move->start + j) % w->R];
    if (move->source == move->destination) return;
    to->n_accepted = to->n_folded;   // the destination holds no record
    for (int j = 0; j < w->R; j++) to->ring[j] = -1;
}

typedef struct request {
    rssm_i32 source, destination, count;
    rssm_u64 position;
} request;

// Whether it must be met, from the cursors before.
static rssm_u32 expected_issue(int kind, const request *r, const rssm_window *w)
{
    const rssm_cursor *from = &cursors[r->source], *to = &cursors[r->destination];
    const int          is_pending = from->pending_mode != RSSM_MODE_NONE;
    if (kind == RSSM_SLOTS_RESET) return r->count < 0 || r->count > w->R ? RSSM_ISSUE_RECORDS : 0;
    if (kind == RSSM_SLOTS_INVALIDATE) return 0;
    if (kind == RSSM_SLOTS_COPY) return from->invalid ? RSSM_ISSUE_INVALID_SLOT : 0;
    if (kind == RSSM_SLOTS_MATERIALIZE) {
        if (from->invalid) return RSSM_ISSUE_INVALID_SLOT;
        if (is_pending) return RSSM_ISSUE_UNCOMMITTED;
        return r->count < 0 || r->count > from->h ? RSSM_ISSUE_RECORDS : 0;
    }
    if (to->invalid) return RSSM_ISSUE_INVALID_SLOT;
    if (to->pending_mode != RSSM_MODE_NONE) return RSSM_ISSUE_UNCOMMITTED;
    return r->position < to->pos || r->position > to->pos + (rssm_u64)to->h ? RSSM_ISSUE_POSITION : 0;
}

static void apply_to_model(int kind, const request *r, const rssm_window *w, const rssm_slot_move *move)
{
    model_slot *to = &slots_model[r->destination];
    switch (kind) {
    case RSSM_SLOTS_RESET:   // a sequence of `position` folded tokens and `count` records, which the host has written
        memset(to, 0, sizeof *to);
        to->is_valid = 1;
        for (int j = 0; j < w->R; j++) to->ring[j] = -1;
        for (rssm_u64 i = 0; i < r->position; i++)
            to->sequence[to->n_accepted++] = to->folded[to->n_folded++] = next_token++;
        for (int j = 0; j < r->count; j++) to->sequence[to->n_accepted++] = to->ring[j] = next_token++;
        break;
    case RSSM_SLOTS_TRUNCATE:
        to->n_accepted = (int64_t)r->position;
        break;
    case RSSM_SLOTS_INVALIDATE:
        to->is_valid = 0;
        break;
    default:
        move_memory(w, move, kind == RSSM_SLOTS_COPY);
        break;
    }
}

// One launch of random requests; no destination takes part twice.
static void operate(const rssm_window *w)
{
    static const char *const names[] = {"reset", "copy", "materialize", "truncate", "invalidate"};
    const int                kind = below(8) == 0 ? RSSM_SLOTS_INVALIDATE : below(4);
    rssm_i32                 order[SLOTS], sources[MAX_REQUESTS], destinations[MAX_REQUESTS], counts[MAX_REQUESTS];
    rssm_u64                 positions[MAX_REQUESTS];
    request                  requests[MAX_REQUESTS];
    const int                n = 1 + below(3);

    for (int i = 0; i < SLOTS; i++) order[i] = i;
    for (int i = SLOTS; i > 1; i--) {
        const int      j = below(i);
        const rssm_i32 slot = order[i - 1];
        order[i - 1] = order[j], order[j] = slot;
    }
    for (int i = 0; i < n; i++) {   // sources come from the other half, or are the destination itself
        const rssm_i32     to = order[i], from = below(4) == 0 ? to : order[3 + below(3)];
        const rssm_cursor *c = &cursors[kind == RSSM_SLOTS_TRUNCATE ? to : from];
        requests[i] = (request){from, to, below(c->h + 3) - 1, kind == RSSM_SLOTS_TRUNCATE
                                                                   ? c->pos + (rssm_u64)below(c->h + 3) - 1
                                                                   : (rssm_u64)below(9)};
        sources[i] = from, destinations[i] = to, counts[i] = requests[i].count, positions[i] = requests[i].position;
    }
    const rssm_slots_kernel_args args = {.cursors = cursors, .sources = sources, .destinations = destinations,
                                         .counts = counts, .positions = positions, .kind = kind, .ring_length = w->R,
                                         .n_rows = n, .n_slots = SLOTS, .pad_slot = -1};
    last_operation = names[kind];
    for (int i = 0; i < n; i++) {
        const rssm_u32    want = expected_issue(kind, &requests[i], w);
        const rssm_cursor before = cursors[destinations[i]];
        rssm_slot_move    move;
        cr_assert_eq(rssm_slots_run(&args, i, &move), want, "%s of slot %d to %d", names[kind], sources[i],
                     destinations[i]);
        if (want) {
            cr_assert_eq(memcmp(&before, &cursors[destinations[i]], sizeof before), 0, "%s was refused", names[kind]);
            cr_assert_lt(move.source, 0);
            continue;
        }
        apply_to_model(kind, &requests[i], w, &move);
    }
}

Test(cursor_slots, keeps_every_slot_a_sequence)
{
    static const rssm_window windows[] = {{4, 4, 1, 0}, {16, 17, 1, 0}, {4, 8, 4, 0}, {7, 23, 7, 0}, {1, 2, 1, 0},
                                          {16, 40, 8, 0}};
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        const rssm_window *w = &windows[i];
        memset(cursors, 0, sizeof cursors);
        memset(slots_model, 0, sizeof slots_model);
        for (int s = 0; s < SLOTS; s++) slots_model[s].is_valid = 1;
        state = i + 1;
        for (int n = 0; n < 6000; n++) {
            if (below(3)) {
                step(w);
            } else if (below(2)) {
                operate(w);
            } else {
                commit_pending(w);
            }
            check_slots(w);
        }
    }
}

// Epochs and nonces: whose they are when nothing is said, and that what is said is taken.
Test(cursor_slots, keeps_or_takes_epochs_and_nonces)
{
    enum { KEPT, SOURCES, EPOCH };
    static const struct {
        int kind, in_place, epoch_from, nonce_from;
    } cases[] = {
        {RSSM_SLOTS_RESET, 1, KEPT, EPOCH},
        {RSSM_SLOTS_COPY, 0, SOURCES, SOURCES},
        {RSSM_SLOTS_COPY, 1, KEPT, KEPT},
        {RSSM_SLOTS_MATERIALIZE, 0, KEPT, SOURCES},
        {RSSM_SLOTS_MATERIALIZE, 1, KEPT, KEPT},
        {RSSM_SLOTS_TRUNCATE, 1, KEPT, KEPT},
        {RSSM_SLOTS_INVALIDATE, 1, KEPT, KEPT},
    };
    const rssm_i32 zero = 0, one = 1, count = 1;
    const rssm_u32 epoch = 50;
    const rssm_u64 nonce = 60, position = 9;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int given = 0; given < 4; given++) {
            const int   sets = cases[i].kind != RSSM_SLOTS_TRUNCATE && cases[i].kind != RSSM_SLOTS_INVALIDATE;
            rssm_cursor two[2] = {{.h = 2, .epoch = 3, .pos = 8, .nonce = 4},
                                  {.h = 1, .epoch = 5, .pos = 8, .nonce = 6}};
            rssm_slot_move               move;
            const rssm_slots_kernel_args args = {
                .cursors = two, .sources = cases[i].in_place ? &one : &zero, .destinations = &one, .counts = &count,
                .positions = &position, .epochs = given & 1 ? &epoch : NULL, .nonces = given & 2 ? &nonce : NULL,
                .kind = cases[i].kind, .ring_length = 4, .n_rows = 1, .n_slots = 2, .pad_slot = -1};
            cr_assert_eq(rssm_slots_run(&args, 0, &move), 0, "case %zu", i);
            const rssm_u32 want_epoch = sets && given & 1 ? 50 : cases[i].epoch_from == KEPT ? 5 : 3;
            const rssm_u64 usual = cases[i].nonce_from == KEPT ? 6 : cases[i].nonce_from == EPOCH ? want_epoch : 4;
            cr_expect_eq(two[1].epoch, want_epoch, "case %zu, given %d: %u", i, given, two[1].epoch);
            cr_expect_eq(two[1].nonce, sets && given & 2 ? 60 : usual, "case %zu, given %d", i, given);
            cr_expect_eq(two[0].epoch, 3);
            if (cases[i].kind == RSSM_SLOTS_MATERIALIZE) {
                cr_expect_eq(move.nonce, cases[i].in_place ? 6 : 4, "rounding is that of the source's sequence");
                cr_expect_eq(move.pos, 8);
            }
        }
    }
}
