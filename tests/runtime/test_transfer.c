// Export and import on the CPU: what comes back, between other strides, rings and windows; and bytes that lie.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "runtime/blob.h"
#include "tests/runtime/slot_fixture.h"

enum { SLOTS = 4 };

static slot_fixture small(void)
{
    const rssm_problem problem = fixture_shape(2, 1, 3, 2, 4, RSSM_BF16, RSSM_F32);
    slot_fixture       f;
    fixture_open_slots(&f, &problem, 1, 2, SLOTS, FIXTURE_GAPS);
    fixture_randomise(&f, 11);
    f.cursors[1] = (rssm_cursor_record){.start = 3, .h = 3, .epoch = 4, .pos = 99, .nonce = 1234};
    return f;
}

// A copy of exactly the bytes that were exported, so that a sanitizer sees a read behind them.
static char *export_slot(const slot_fixture *f, int32_t slot, size_t *out_n)
{
    rssm_transfer_args a = RSSM_TRANSFER_ARGS_INIT;
    const size_t       capacity = rssm_blob_bytes(f->layers);
    char              *large = malloc(capacity), *exact;
    rssm_diag          diag = {0};

    a.slot = slot;
    memset(large, 0x77, capacity);
    cr_assert_eq(rssm_export(f->layers, &a, large, capacity, out_n, &diag), RSSM_OK, "%s", diag.text);
    cr_assert_leq(*out_n, capacity);
    exact = malloc(*out_n);
    memcpy(exact, large, *out_n);
    free(large);
    return exact;
}

static rssm_status import_slot(const slot_fixture *f, int32_t slot, uint32_t epoch, const void *blob, size_t n,
                               rssm_diag *diag)
{
    rssm_transfer_args a = RSSM_TRANSFER_ARGS_INIT;
    a.slot = slot;
    a.epoch = epoch;
    return rssm_import(f->layers, &a, blob, n, diag);
}

// Payload of slot `slot` of `from`, element by element, into slot `to` of the image of `f`.
static void model_import(const slot_fixture *from, int32_t slot, const slot_fixture *f, fixture_image *image,
                         int32_t to)
{
    const rssm_cursor_record *c = &from->cursors[slot];
    for (uint32_t i = 0; i < f->n_layers; i++)
        for (int k = 0; k < FIXTURE_TENSORS; k++) {
            const fixture_tensor *t = &from->tensor[i][k];
            const int64_t         n = k == FIXTURE_STATE ? 1 : c->h;
            for (int64_t head = 0; head < t->n[1]; head++)
                for (int64_t j = 0; j < n; j++)
                    memcpy(fixture_at(f, image, i, k, to, head, j),
                           fixture_at(from, NULL, i, k, slot, head, k == FIXTURE_STATE ? 0 : (c->start + j) % t->n[2]),
                           (size_t)(t->n[3] * t->element_bytes));
        }
    image->cursors[to] = (rssm_cursor_record){.h = c->h, .epoch = 31, .pos = c->pos, .nonce = c->nonce};
}

// Every format and layout on both sides, another ring length and window, and twice the same bytes.
Test(transfer, moves_a_slot_between_memories)
{
    static const uint32_t act[] = {RSSM_F32, RSSM_BF16, RSSM_F16}, checkpoint[] = {RSSM_F32, RSSM_BF16};
    for (int c = 0; c < 6 * FIXTURE_N_LAYOUTS; c++) {
        const uint32_t a = act[c % 3], s = checkpoint[c / 3 % 2];
        rssm_problem   here[] = {fixture_shape(6, 3, 5, 7, 6, a, s), fixture_shape(2, 1, 16, 32, 6, a, s)};
        rssm_problem   there[] = {fixture_shape(6, 3, 5, 7, 9, a, s), fixture_shape(2, 1, 16, 32, 9, a, s)};
        slot_fixture   from, to;
        rssm_diag      diag = {0};
        there[0].window = there[1].window = 7;
        fixture_open_slots(&from, here, 2, 3, SLOTS, (fixture_layout)(c / 6));
        fixture_open_slots(&to, there, 2, 3, SLOTS, (fixture_layout)((c / 6 + 1) % FIXTURE_N_LAYOUTS));
        fixture_randomise(&to, (uint64_t)c + 1);
        fixture_randomise(&from, (uint64_t)c);
        for (int32_t slot = 0; slot < SLOTS; slot++) {
            size_t              n, n_again;
            char               *blob = export_slot(&from, slot, &n);
            const int32_t       target = (slot + 1) % SLOTS;
            fixture_image       image = fixture_image_of(&to), source = fixture_image_of(&from);
            cr_expect_eq(n, rssm_blob_total_bytes(from.layers, (uint32_t)from.cursors[slot].h));
            model_import(&from, slot, &to, &image, target);
            to.cursors[target].invalid = 1;   // as after an import that failed
            cr_assert_eq(import_slot(&to, target, 31, blob, n, &diag), RSSM_OK, "%s", diag.text);
            fixture_expect_memory(&to, &image, "import");
            fixture_expect_cursors(&to, &image, "import");
            fixture_expect_memory(&from, &source, "export");
            fixture_expect_cursors(&from, &source, "export");
            char *again = export_slot(&to, target, &n_again);
            cr_assert_eq(n, n_again);
            cr_expect_eq(memcmp(blob, again, n), 0, "a blob depends on nothing but the sequence");
            free(blob);
            free(again);
            fixture_image_free(&to, &image);
            fixture_image_free(&from, &source);
        }
        fixture_close_slots(&from);
        fixture_close_slots(&to);
    }
}

static void expect_refused(const slot_fixture *f, const fixture_image *image, const char *blob, size_t n,
                           rssm_status want, const char *what, size_t at)
{
    rssm_diag         diag = {0};
    const rssm_status st = import_slot(f, 2, 5, blob, n, &diag);
    cr_assert_neq(st, RSSM_OK, "%s %zu was taken", what, at);
    if (want != RSSM_OK) cr_assert_eq(st, want, "%s %zu: %s %s", what, at, rssm_status_name(st), diag.text);
    cr_assert_gt(strlen(diag.text), 20);
    fixture_expect_memory(f, image, what);
    fixture_expect_cursors(f, image, what);
}

Test(transfer, refuses_every_damage)
{
    slot_fixture  f = small();
    size_t        n;
    char         *blob = export_slot(&f, 1, &n);
    fixture_image image = fixture_image_of(&f);

    for (size_t i = 0; i < n; i++) {   // a flipped byte: every one, once in all its bits and once in one
        for (int k = 0; k < 2; k++) {
            const char mask = k ? (char)(1 << i % 8) : (char)0xFF;
            blob[i] ^= mask;
            expect_refused(&f, &image, blob, n,
                           i < 8    ? RSSM_E_FOREIGN
                           : i < 12 ? RSSM_OK
                                    : RSSM_E_CORRUPT,
                           "flipped byte", i);
            blob[i] ^= mask;
        }
    }
    for (size_t i = 0; i < n; i++) {
        char *cut = malloc(i + (i == 0));
        memcpy(cut, blob, i);
        expect_refused(&f, &image, cut, i, i < 8 ? RSSM_E_FOREIGN : RSSM_E_CORRUPT, "length", i);
        free(cut);
    }
    for (size_t more = 1; more <= 64; more++) {
        char *longer = calloc(1, n + more);
        memcpy(longer, blob, n);
        expect_refused(&f, &image, longer, n + more, RSSM_E_CORRUPT, "longer by", more);
        free(longer);
    }
    expect_refused(&f, &image, NULL, 0, RSSM_E_INVALID_ARGUMENT, "no blob", 0);
    cr_expect_eq(import_slot(&f, 2, 5, blob, n, NULL), RSSM_OK, "the undamaged one is taken");
    free(blob);
    fixture_image_free(&f, &image);
    fixture_close_slots(&f);
}

static void seal_again(char *blob, size_t n)
{
    const rssm_hash hash = rssm_hash_bytes(blob, n - sizeof hash);
    memcpy(blob + n - sizeof hash, &hash, sizeof hash);
}

// Bytes that somebody sealed, with numbers that would read or write elsewhere: offsets as in runtime/blob.h.
Test(transfer, refuses_sealed_lies)
{
    static const struct {
        size_t      at, n;
        uint64_t    value;
        rssm_status status;
        const char *words;
    } lies[] = {
        {8, 4, 2, RSSM_E_TOO_NEW, "format 2"},
        {8, 4, 0, RSSM_E_CORRUPT, ""},
        {12, 4, 0, RSSM_E_CORRUPT, "header"},
        {12, 4, UINT32_MAX, RSSM_E_CORRUPT, "header"},
        {16, 8, UINT64_MAX, RSSM_E_CORRUPT, "says that it has"},
        {16, 8, 0, RSSM_E_CORRUPT, "says that it has"},
        {24, 4, 0, RSSM_E_UNSUPPORTED, "layers"},
        {24, 4, UINT32_MAX, RSSM_E_UNSUPPORTED, "layers"},
        {24, 4, 1, RSSM_E_UNSUPPORTED, "1 layers, this model 2"},
        {28, 4, 5, RSSM_E_UNSUPPORTED, "5 records"},
        {28, 4, UINT32_MAX, RSSM_E_UNSUPPORTED, "records"},
        {28, 4, 0x80000000u, RSSM_E_UNSUPPORTED, "records"},
        {28, 4, 2, RSSM_E_CORRUPT, "2 records"},
        {28, 4, 0, RSSM_E_CORRUPT, "0 records"},
        {48, 4, 1, RSSM_E_UNSUPPORTED, "recurrence of layer 0"},
        {52, 4, 3, RSSM_E_UNSUPPORTED, "n_heads of layer 0 is 3 there and 2 here"},
        {56, 4, 2, RSSM_E_UNSUPPORTED, "n_groups"},
        {60, 4, UINT32_MAX, RSSM_E_UNSUPPORTED, "head_dim"},
        {64, 4, 0, RSSM_E_UNSUPPORTED, "state_size"},
        {68, 4, RSSM_F16, RSSM_E_UNSUPPORTED, "activation_dtype"},
        {72, 4, 1, RSSM_E_UNSUPPORTED, "checkpoint_mode"},
        {76, 4, RSSM_BF16, RSSM_E_UNSUPPORTED, "checkpoint_dtype"},
        {80, 4, 1, RSSM_E_UNSUPPORTED, "read_dtype"},
        {88, 4, 7, RSSM_E_UNSUPPORTED, "n_heads of layer 1"},
    };
    slot_fixture  f = small();
    size_t        n;
    char         *blob = export_slot(&f, 1, &n);
    fixture_image image = fixture_image_of(&f);

    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        char     *lie = malloc(n);
        rssm_diag diag = {0};
        memcpy(lie, blob, n);
        memcpy(lie + lies[i].at, &lies[i].value, lies[i].n);
        seal_again(lie, n);
        expect_refused(&f, &image, lie, n, lies[i].status, "lie", i);
        import_slot(&f, 2, 5, lie, n, &diag);
        cr_expect(strstr(diag.text, lies[i].words), "lie %zu: %s", i, diag.text);
        free(lie);
    }
    free(blob);
    fixture_image_free(&f, &image);
    fixture_close_slots(&f);
}

Test(transfer, refuses_slots_that_hold_no_state)
{
    slot_fixture       f = small();
    const size_t       capacity = rssm_blob_bytes(f.layers);
    char              *blob = malloc(capacity);
    size_t             n = 7;
    rssm_transfer_args a = RSSM_TRANSFER_ARGS_INIT;
    rssm_diag          diag = {0};
    const struct {
        rssm_cursor_record cursor;
        rssm_status        status;
        const char        *words;
    } cases[] = {
        {{.invalid = 1}, RSSM_E_INVALID_ARGUMENT, "invalid"},
        {{.pending_mode = 1, .pending_t = 1}, RSSM_E_INVALID_ARGUMENT, "commit it"},
        {{.h = 5}, RSSM_E_CORRUPT, "cursor"},
        {{.h = -1}, RSSM_E_CORRUPT, "cursor"},
        {{.start = 4}, RSSM_E_CORRUPT, "cursor"},
        {{.start = -1}, RSSM_E_CORRUPT, "cursor"},
    };
    a.slot = 3;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        f.cursors[3] = cases[i].cursor;
        cr_expect_eq(rssm_export(f.layers, &a, blob, capacity, &n, &diag), cases[i].status, "case %zu", i);
        cr_expect(strstr(diag.text, cases[i].words), "case %zu: %s", i, diag.text);
    }
    f.cursors[3] = (rssm_cursor_record){0};
    const size_t exact = rssm_blob_total_bytes(f.layers, 0);
    for (int i = 0; i < 7; i++) {
        rssm_transfer_args b = a;
        rssm_status        want = RSSM_E_INVALID_ARGUMENT;
        if (i == 0) b.slot = -1;
        if (i == 1) b.slot = SLOTS;
        if (i == 2) b.struct_size--, want = RSSM_E_STRUCT_SIZE;
        if (i == 3) b.stream = &a;
        cr_expect_eq(rssm_export(f.layers, &b, i == 4 ? NULL : blob, i == 5 ? exact - 1 : exact, &n, &diag),
                     i == 6 ? RSSM_OK : want, "case %d: %s", i, diag.text);
        cr_expect_eq(n, i == 6 ? exact : 7, "written on success only");
        if (i < 4) cr_expect_eq(rssm_import(f.layers, &b, blob, exact, &diag), want, "case %d", i);
    }
    free(blob);
    fixture_close_slots(&f);
}

// A group without the kernel, and no memory for the views.
Test(transfer, says_what_it_lacks)
{
    slot_fixture       f = small();
    size_t             n;
    char              *blob = export_slot(&f, 1, &n);
    fixture_image      image = fixture_image_of(&f);
    rssm_diag          diag = {0};
    rssm_group_options o = RSSM_GROUP_OPTIONS_INIT;
    rssm_transfer_args a = RSSM_TRANSFER_ARGS_INIT;
    rssm_group        *group;
    rssm_layers       *layers;

    rssm_alloc_fail_after(1);
    cr_expect_eq(rssm_export(f.layers, &a, blob, n, &n, &diag), RSSM_E_NO_MEMORY);
    cr_expect(!rssm_alloc_fail_after(0) || diag.text[0]);
    fixture_expect_memory(&f, &image, "no memory");
    o.device = f.device;
    o.problems = f.problems;
    o.n_problems = 1;
    o.n_slots = SLOTS;
    o.max_rows = 1;
    o.cursors = f.cursors;
    o.steps_only = 1;
    cr_assert_eq(rssm_group_create(f.context, &o, &group, &diag), RSSM_OK, "%s", diag.text);
    cr_assert_eq(rssm_layers_create(group, f.layer, 2, f.table, &layers, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_eq(rssm_export(layers, &a, blob, n, &n, &diag), RSSM_E_UNSUPPORTED);
    cr_expect(strstr(diag.text, "steps_only"), "%s", diag.text);
    cr_expect_eq(rssm_import(layers, &a, blob, n, &diag), RSSM_E_UNSUPPORTED);
    fixture_expect_cursors(&f, &image, "no kernel");
    rssm_layers_destroy(layers);
    rssm_group_destroy(group);
    free(blob);
    fixture_image_free(&f, &image);
    fixture_close_slots(&f);
}
