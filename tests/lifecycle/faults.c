// See faults.h. On the CPU a device pointer is an ordinary one, so a faulty call can hand the library other arrays.
#include "tests/lifecycle/faults.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/lifecycle/game.h"

// X(enumerator, what is wrong)
#define FAULT_LIST(X)                                                                                                  \
    X(NONE, "nothing")                                                                                                 \
    X(SKIPS_COMMIT, "a commit is left out")                                                                            \
    X(SWAPS_ACCEPTED, "two rows get each other's accepted counts")                                                     \
    X(ACCEPTS_MORE, "one token more is accepted")                                                                      \
    X(SWAPS_EPOCHS, "two rows get each other's epochs")                                                                \
    X(IGNORES_EPOCHS, "a new sequence does not reset its slot")                                                        \
    X(IGNORES_FORCED, "forced folds are left out")                                                                     \
    X(SKIPS_LAYER, "a layer's step is left out")                                                                       \
    X(STEPS_TWICE, "a layer steps twice")                                                                              \
    X(STEPS_WITHOUT_OLDEST, "a step reads all records but the oldest")                                                 \
    X(STEPS_WITHOUT_FOLD, "a fold of the history is left out")                                                         \
    X(FOLDS_WITHOUT_OLDEST, "a fold leaves out the oldest record")                                                     \
    X(STEPS_NULL_ROWS, "a null row's outputs are left alone")                                                          \
    X(COPIES_ANOTHER, "a copy takes another slot's sequence")                                                          \
    X(COPIES_CURSOR_ONLY, "a copy's checkpoint stays as it was")                                                       \
    X(COPY_DROPS_RECORD, "a copy's newest record stays as it was")                                                     \
    X(MATERIALIZES_LESS, "materialize folds a record less")                                                            \
    X(MATERIALIZE_ROUNDS, "materialize is off by one ulp")                                                             \
    X(MATERIALIZE_EATS_SOURCE, "materialize takes the records of the source")                                          \
    X(TRUNCATES_MORE, "truncate drops one token more")                                                                 \
    X(TRUNCATES_SILENTLY, "the refusal of a truncation is not told")                                                   \
    X(RESET_IGNORES_COUNTS, "reset ignores the records")                                                               \
    X(ENCODES_NOTHING, "a prefill state is not stored")                                                                \
    X(INVALIDATES_NOTHING, "an abort is not remembered")                                                               \
    X(EXPORTS_ANOTHER, "export takes another slot")                                                                    \
    X(IMPORTS_NOTHING, "import stores nothing")                                                                        \
    X(IMPORT_FORGETS_DT, "import leaves out the dt of the oldest record")                                              \
    X(IMPORTS_DAMAGED, "import takes a damaged blob for a good one")                                                   \
    X(WRITES_GAP, "a step writes into a gap between slots")                                                            \
    X(WRITES_DEAD_RECORD, "a step writes into a dead record")                                                          \
    X(MODEL_SWAPS_RECORD, "(model) a record is another token")                                                         \
    X(MODEL_TOKEN_TWICE, "(model) the uninterrupted run has a token twice")                                            \
    X(MODEL_LOSES_TOKEN, "(model) an accepted token is not counted")

typedef enum fault {
#define FAULT_ENUM(name, text) FAULT_##name,
    FAULT_LIST(FAULT_ENUM)
#undef FAULT_ENUM
        N_FAULTS
} fault;

enum { WARM_UP_EVENTS = 60, MOST_EVENTS = 4000 };

// The calls take no pointer of the caller's, so what is broken stands here.
static struct {
    fault         which;
    life_cluster *c;
    uint64_t      calls;
} now;

static bool is_broken(fault which)
{
    return now.which == which && now.c->event > WARM_UP_EVENTS;
}

// --------------------------------------------------------------------------------------------------- calls on cursors

typedef struct other_rows {
    int32_t  accepted[LIFE_ROWS];
    uint32_t epochs[LIFE_ROWS];
} other_rows;

static rssm_advance_args break_advance(const rssm_advance_args *args, other_rows *o)
{
    rssm_advance_args a = *args;
    if (a.accepted) memcpy(o->accepted, a.accepted, a.n_rows * sizeof o->accepted[0]);
    if (a.epochs) memcpy(o->epochs, a.epochs, a.n_rows * sizeof o->epochs[0]);
    if (is_broken(FAULT_SWAPS_ACCEPTED) && a.accepted && a.n_rows > 1) {
        o->accepted[0] = args->accepted[1];
        o->accepted[1] = args->accepted[0];
        a.accepted = o->accepted;
    }
    if (is_broken(FAULT_ACCEPTS_MORE) && a.accepted) {
        for (uint32_t i = 0; i < a.n_rows; i++)
            o->accepted[i]++;
        a.accepted = o->accepted;
    }
    if (is_broken(FAULT_SWAPS_EPOCHS) && a.epochs && a.n_rows > 1) {
        o->epochs[0] = args->epochs[1];
        o->epochs[1] = args->epochs[0];
        a.epochs = o->epochs;
    }
    if (is_broken(FAULT_IGNORES_EPOCHS)) a.epochs = NULL;
    if (is_broken(FAULT_IGNORES_FORCED)) a.forced = NULL;
    return a;
}

static rssm_status broken_advance(const rssm_group *group, const rssm_advance_args *args, void *stream)
{
    other_rows              o;
    const rssm_advance_args a = break_advance(args, &o);
    return rssm_advance(group, &a, stream);
}

static rssm_status broken_commit(const rssm_group *group, const rssm_advance_args *args, void *stream)
{
    other_rows              o;
    const rssm_advance_args a = break_advance(args, &o);
    return is_broken(FAULT_SKIPS_COMMIT) ? RSSM_OK : rssm_commit(group, &a, stream);
}

static rssm_status broken_open(const rssm_group *group, const rssm_advance_args *args, void *stream)
{
    other_rows              o;
    const rssm_advance_args a = break_advance(args, &o);
    return rssm_open(group, &a, stream);
}

static rssm_status broken_reset(const rssm_group *group, const rssm_slot_args *args, void *stream)
{
    rssm_slot_args a = *args;
    if (is_broken(FAULT_RESET_IGNORES_COUNTS)) a.counts = NULL;
    return rssm_reset(group, &a, stream);
}

static rssm_status broken_truncate(const rssm_group *group, const rssm_slot_args *args, void *stream)
{
    uint64_t       positions[LIFE_ROWS];
    rssm_slot_args a = *args;
    memcpy(positions, args->positions, a.n_rows * sizeof positions[0]);
    for (uint32_t i = 0; i < a.n_rows; i++)
        if (is_broken(FAULT_TRUNCATES_MORE)) positions[i]--;
    if (is_broken(FAULT_TRUNCATES_MORE)) a.positions = positions;
    if (is_broken(FAULT_TRUNCATES_SILENTLY)) a.issues = NULL;
    return rssm_truncate(group, &a, stream);
}

static rssm_status broken_invalidate(const rssm_group *group, const rssm_slot_args *args, void *stream)
{
    return is_broken(FAULT_INVALIDATES_NOTHING) ? RSSM_OK : rssm_invalidate(group, args, stream);
}

// --------------------------------------------------------------------------------------------------------------- steps

// The step reads descriptors that differ from what advance left.
static void break_descriptors(rssm_descriptor *d, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const bool appends = d[i].mode == RSSM_MODE_APPEND, folds = d[i].mode == RSSM_MODE_FOLD_HISTORY;
        const bool oldest = (is_broken(FAULT_STEPS_WITHOUT_OLDEST) && appends) ||
                            (is_broken(FAULT_FOLDS_WITHOUT_OLDEST) && (folds || d[i].mode == RSSM_MODE_FOLD_ALL));
        if (oldest && d[i].h > 0) {
            d[i].start = (rssm_i16)((d[i].start + 1) % now.c->active->w.ring);
            d[i].h--;
        }
        if (is_broken(FAULT_STEPS_WITHOUT_FOLD) && folds) d[i].mode = d[i].t ? RSSM_MODE_APPEND : RSSM_MODE_NONE;
        if (is_broken(FAULT_STEPS_NULL_ROWS) && d[i].slot < 0) d[i].token = -1;
    }
}

static rssm_status broken_step(const rssm_plan *plan, const rssm_step_args *args, void *stream)
{
    rssm_descriptor descriptors[LIFE_ROWS];
    rssm_step_args  a = *args;
    rssm_status     st;

    memcpy(descriptors, args->descriptors, a.n_rows * sizeof descriptors[0]);
    break_descriptors(descriptors, a.n_rows);
    a.descriptors = descriptors;
    now.calls++;
    if (is_broken(FAULT_SKIPS_LAYER) && now.calls % 7 == 0) return RSSM_OK;
    st = rssm_step(plan, &a, stream);
    if (st == RSSM_OK && is_broken(FAULT_STEPS_TWICE)) st = rssm_step(plan, &a, stream);
    const life_layer *l = &now.c->active->w.layers[0];
    if (is_broken(FAULT_WRITES_GAP)) {
        now.c->active->w.arena[life_at(&l->state, 3, l->state.n_heads, 0)] ^= 1;
    }
    for (int32_t row = 0; row < now.c->active->w.ring && is_broken(FAULT_WRITES_DEAD_RECORD); row++) {
        if (now.c->active->slots[2].is_dead[row]) now.c->active->w.arena[life_at(&l->x_ring, 2, 1, row) + 2] ^= 4;
    }
    return st;
}

// ------------------------------------------------------------------------------------------------- calls that move
// memory

// Bytes of a tensor's run before and after a call that must write it.
typedef struct kept {
    size_t        offset, n;
    unsigned char bytes[4096];
} kept;

static void keep(kept *k, const life_tensor *t, int32_t slot, int64_t record, size_t n)
{
    k->offset = life_at(t, slot, 0, record);
    k->n = n < sizeof k->bytes ? n : sizeof k->bytes;
    memcpy(k->bytes, now.c->active->w.arena + k->offset, k->n);
}

static void give_back(const kept *k)
{
    memcpy(now.c->active->w.arena + k->offset, k->bytes, k->n);
}

static rssm_status broken_copy(const rssm_layers *layers, const rssm_slot_args *args, void *stream)
{
    const int32_t     first = args->requests ? args->requests[0] : 0;
    const int32_t     to = args->destination_slots[first];
    const life_layer *l = &now.c->active->w.layers[1];
    int32_t           sources[LIFE_ROWS];
    rssm_slot_args    a = *args;
    kept              checkpoint = {0}, record = {0};

    if (to >= 0 && to < LIFE_SLOTS && args->source_slots[first] >= 0 && args->source_slots[first] < LIFE_SLOTS) {
        const int32_t n = rssm_cursor_records(&now.c->active->mirror[args->source_slots[first]]);
        keep(&checkpoint, &l->state, to, 0, life_checkpoint_bytes(&now.c->active->w, 1));
        if (n > 0) keep(&record, &l->dt_ring, to, n - 1, sizeof(float));
    }
    for (uint32_t i = 0; i < a.n_rows; i++)
        sources[i] = args->source_slots[i] >= 0 ? (args->source_slots[i] + 1) % LIFE_SLOTS : args->source_slots[i];
    if (is_broken(FAULT_COPIES_ANOTHER)) a.source_slots = sources;
    const rssm_status st = rssm_copy(layers, &a, stream);
    if (is_broken(FAULT_COPIES_CURSOR_ONLY)) give_back(&checkpoint);
    if (is_broken(FAULT_COPY_DROPS_RECORD)) give_back(&record);
    return st;
}

static rssm_status broken_materialize(const rssm_layers *layers, const rssm_slot_args *args, void *stream)
{
    const int32_t  first = args->requests ? args->requests[0] : 0;
    const int32_t  to = args->destination_slots[first], from = args->source_slots[first];
    int32_t        counts[LIFE_ROWS];
    rssm_slot_args a = *args;

    memcpy(counts, args->counts, a.n_rows * sizeof counts[0]);
    for (uint32_t i = 0; i < a.n_rows; i++)
        if (counts[i] > 0) counts[i]--;
    if (is_broken(FAULT_MATERIALIZES_LESS)) a.counts = counts;
    const rssm_status st = rssm_materialize(layers, &a, stream);
    if (first < 0 || to < 0 || to >= LIFE_SLOTS || from < 0 || from >= LIFE_SLOTS) return st;
    const size_t at = life_checkpoint_at(&now.c->active->w, 0, to);
    if (is_broken(FAULT_MATERIALIZE_ROUNDS) && args->counts[first] > 0) now.c->active->w.arena[at] ^= 1;
    if (is_broken(FAULT_MATERIALIZE_EATS_SOURCE)) {
        rssm_cursor *cursors = life_device_array(&now.c->active->w, LIFE_CURSORS);
        if (from != to) cursors[from].h = 0;
    }
    return st;
}

static rssm_status broken_encode(const rssm_layers *layers, uint32_t layer, const rssm_state_args *args, void *stream)
{
    return is_broken(FAULT_ENCODES_NOTHING) && layer == 2 ? RSSM_OK : rssm_encode(layers, layer, args, stream);
}

static rssm_status broken_export(const rssm_layers *layers, const rssm_transfer_args *args, void *out_blob,
                                 size_t capacity, size_t *out_bytes, rssm_diag *diag)
{
    rssm_transfer_args a = *args;
    const int32_t      other = life_pick(now.c->active, LIFE_LIVE, true, a.slot);
    if (is_broken(FAULT_EXPORTS_ANOTHER) && other >= 0) a.slot = other;
    return rssm_export(layers, &a, out_blob, capacity, out_bytes, diag);
}

static rssm_status broken_import(const rssm_layers *layers, const rssm_transfer_args *args, const void *blob,
                                 size_t n_bytes, rssm_diag *diag)
{
    kept record = {0};
    if (is_broken(FAULT_IMPORTS_NOTHING)) return RSSM_OK;
    if (args->slot >= 0 && args->slot < LIFE_SLOTS)
        keep(&record, &now.c->active->w.layers[2].dt_ring, args->slot, 0, 4);
    const rssm_status st = rssm_import(layers, args, blob, n_bytes, diag);
    if (is_broken(FAULT_IMPORT_FORGETS_DT)) give_back(&record);
    return is_broken(FAULT_IMPORTS_DAMAGED) ? RSSM_OK : st;
}

// ---------------------------------------------------------------------------------------------------------------- runs

static void break_model(life_game *g)
{
    const int32_t  slot = life_pick(g, LIFE_LIVE, true, -1);
    life_sequence *s = slot >= 0 ? &g->slots[slot].s : NULL;
    if (!s || s->n_records == 0) return;
    if (is_broken(FAULT_MODEL_SWAPS_RECORD)) s->records[0].token++;
    if (is_broken(FAULT_MODEL_TOKEN_TWICE)) {
        for (uint32_t head = 0; head < g->w.layers[0].problem->n_heads; head++)
            life_apply(&g->w, 0, head, s->records[0].token, NULL, s->state + head * 512, s->error + head * 512);
    }
    if (is_broken(FAULT_MODEL_LOSES_TOKEN)) s->accepted--;
}

static rssm_status play_broken(life_cluster *c, const life_machine *machine, const life_variant *variant, uint64_t seed,
                               rssm_diag *diag)
{
    life_calls   calls = *machine->calls;
    life_machine broken = *machine;
    rssm_status  st;
    calls.advance = broken_advance;
    calls.commit = broken_commit;
    calls.open = broken_open;
    calls.step = broken_step;
    calls.reset = broken_reset;
    calls.truncate = broken_truncate;
    calls.invalidate = broken_invalidate;
    calls.copy = broken_copy;
    calls.materialize = broken_materialize;
    calls.encode = broken_encode;
    calls.export_slot = broken_export;
    calls.import_slot = broken_import;
    broken.calls = &calls;
    RSSM_TRY(life_cluster_create(c, &broken, variant, seed, false, diag));
    for (int i = 0; i < MOST_EVENTS; i++) {
        if (now.which >= FAULT_MODEL_SWAPS_RECORD && i % 10 == 0) break_model(c->active);
        RSSM_TRY(life_cluster_play(c));
    }
done:
    life_cluster_destroy(c);
    return st;
}

rssm_status life_self_test(const life_machine *machine, const life_variant *variant, uint64_t seed, bool is_verbose)
{
    static const char *const texts[] = {
#define FAULT_TEXT(name, text) text,
        FAULT_LIST(FAULT_TEXT)
#undef FAULT_TEXT
    };
    life_cluster *c = rssm_alloc(sizeof *c);
    rssm_status   st = c ? RSSM_OK : RSSM_E_NO_MEMORY;
    int           n_found = 0;

    for (int i = 0; i < N_FAULTS && c; i++) {
        rssm_diag diag = {0};
        now.which = (fault)i;
        now.c = c;
        const rssm_status got = play_broken(c, machine, variant, seed, &diag);
        const bool        found = got == RSSM_E_WRONG_RESULT;
        if (i == FAULT_NONE ? got != RSSM_OK : !found) {
            fprintf(stderr, "lifecycle: %s: %s\n", texts[i], got == RSSM_OK ? "nobody noticed" : diag.text);
            st = RSSM_E_WRONG_RESULT;
        }
        n_found += found;
        if (is_verbose) printf("%-55s %s\n", texts[i], got == RSSM_OK ? "-" : diag.text);
    }
    printf("%d of %d faults found\n", n_found, N_FAULTS - 1);
    rssm_free(c);
    return st;
}
