// Reset, truncate, invalidate, copy and materialize on the CPU: what must change changes in all layers, and nothing else.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/runtime/slot_fixture.h"

enum { MOST_ROWS = 16, SLOTS = 8 };

typedef struct request_list {
    int32_t  requests[MOST_ROWS], sources[MOST_ROWS], destinations[MOST_ROWS], counts[MOST_ROWS];
    uint32_t epochs[MOST_ROWS];
    uint64_t positions[MOST_ROWS], nonces[MOST_ROWS];
    uint32_t issues;
    _Alignas(16) unsigned char moves[MOST_ROWS * 32 + 16];
} request_list;

static rssm_slot_args args_of(request_list *l, uint32_t n_rows)
{
    rssm_slot_args a = RSSM_SLOT_ARGS_INIT;
    l->issues = 0;
    memset(l->moves, 0xA5, sizeof l->moves);
    a.n_rows = n_rows;
    a.source_slots = l->sources;
    a.destination_slots = l->destinations;
    a.counts = l->counts;
    a.positions = l->positions;
    a.moves = l->moves;
    a.issues = &l->issues;
    return a;
}

static int32_t move_source(const request_list *l, uint32_t place)
{
    int32_t source;
    memcpy(&source, l->moves + 32 * place, sizeof source);
    return source;
}

// Every pair of number formats, odd shapes and even ones, every layout, wraps, several requests of one source.
Test(slots, copies_checkpoints_and_live_records_and_nothing_else)
{
    static const uint32_t act[] = {RSSM_F32, RSSM_BF16, RSSM_F16}, checkpoint[] = {RSSM_F32, RSSM_BF16};

    for (int c = 0; c < 6 * FIXTURE_N_LAYOUTS; c++) {
        const uint32_t     a = act[c % 3], s = checkpoint[c / 3 % 2];
        const rssm_problem problems[] = {fixture_shape(6, 3, 5, 7, 6, a, s), fixture_shape(2, 1, 16, 32, 6, a, s)};
        slot_fixture       f;
        request_list       l = {0};
        fixture_open_slots(&f, problems, 2, 3, SLOTS, (fixture_layout)(c / 6));
        for (uint64_t seed = 0; seed < 6; seed++) {
            fixture_randomise(&f, seed * 100 + (uint64_t)c);
            fixture_image image = fixture_image_of(&f);
            for (int i = 0; i < 3; i++) {
                const rssm_cursor_record *from = &image.cursors[i / 2];
                l.sources[i] = i / 2;   // two forks of slot 0
                l.destinations[i] = 4 + i;
                fixture_model_copy(&f, &image, i / 2, 4 + i, from->start, from->h);
                image.cursors[4 + i] =
                    (rssm_cursor_record){.h = from->h, .epoch = from->epoch, .pos = from->pos, .nonce = from->nonce};
            }
            const rssm_slot_args args = args_of(&l, 3);
            cr_assert_eq(rssm_copy(f.layers, &args, NULL), RSSM_OK);
            cr_expect_eq(l.issues, 0);
            fixture_expect_memory(&f, &image, "copy");
            fixture_expect_cursors(&f, &image, "copy");
            cr_expect_eq(l.moves[3 * 32], 0xA5, "moves behind the rows are not touched");
            fixture_image_free(&f, &image);
        }
        fixture_close_slots(&f);
    }
}

// A step that waits for its accepted count goes along: its records lie behind the committed ones.
Test(slots, copies_a_pending_step)
{
    const rssm_problem problem = fixture_shape(2, 1, 4, 8, 6, RSSM_F32, RSSM_F32);
    slot_fixture       f;
    request_list       l = {.sources = {1}, .destinations = {2}, .epochs = {9}, .nonces = {77}};

    fixture_open_slots(&f, &problem, 1, 1, 4, FIXTURE_GAPS);
    fixture_randomise(&f, 3);
    f.cursors[1] =
        (rssm_cursor_record){.start = 4, .h = 3, .pending_t = 2, .pending_mode = 1, .epoch = 2, .pos = 40, .nonce = 6};
    fixture_image image = fixture_image_of(&f);
    fixture_model_copy(&f, &image, 1, 2, 4, 5);
    image.cursors[2] =
        (rssm_cursor_record){.h = 3, .pending_t = 2, .pending_mode = 1, .epoch = 9, .pos = 40, .nonce = 77};
    rssm_slot_args args = args_of(&l, 1);
    args.epochs = l.epochs;
    args.nonces = l.nonces;
    cr_assert_eq(rssm_copy(f.layers, &args, NULL), RSSM_OK);
    fixture_expect_memory(&f, &image, "copy");
    fixture_expect_cursors(&f, &image, "copy");
    fixture_image_free(&f, &image);
    fixture_close_slots(&f);
}

// A refused or skipped request changes nothing, says why, and leaves the others alone.
Test(slots, refuses_one_request_at_a_time)
{
    static const struct {
        int32_t  source, destination;
        uint32_t issue;
    } cases[] = {
        {0, 8, 1},  {8, 1, 1}, {-2, 1, 1}, {0, INT32_MAX, 1},   // out of range
        {-1, 1, 0}, {0, -1, 0},                                 // the pad value
        {2, 1, 1 << 5},                                         // an invalid source
        {3, 3, 0},                                              // onto itself: nothing to move
    };
    const rssm_problem problem = fixture_shape(3, 1, 5, 7, 5, RSSM_BF16, RSSM_BF16);
    slot_fixture       f;

    fixture_open_slots(&f, &problem, 1, 2, SLOTS, FIXTURE_TOKEN_MAJOR);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        request_list l = {.sources = {cases[i].source, 4}, .destinations = {cases[i].destination, 5}};
        fixture_randomise(&f, i);
        f.cursors[2].invalid = 1;
        fixture_image image = fixture_image_of(&f);
        fixture_model_copy(&f, &image, 4, 5, f.cursors[4].start, f.cursors[4].h);
        image.cursors[5] = image.cursors[4];
        image.cursors[5].start = 0;
        const rssm_slot_args args = args_of(&l, 2);
        cr_assert_eq(rssm_copy(f.layers, &args, NULL), RSSM_OK);
        cr_expect_eq(l.issues, cases[i].issue, "case %zu: 0x%x", i, l.issues);
        cr_expect_eq(move_source(&l, 0), -1, "case %zu", i);
        fixture_expect_memory(&f, &image, "copy");
        fixture_expect_cursors(&f, &image, "copy");
        fixture_image_free(&f, &image);
    }
    fixture_close_slots(&f);
}

// The list of requests: any order, ended by its first negative entry, whatever stands behind it.
Test(slots, follows_a_compacted_list)
{
    const rssm_problem problem = fixture_shape(2, 2, 4, 4, 5, RSSM_F32, RSSM_F32);
    slot_fixture       f;

    fixture_open_slots(&f, &problem, 1, 1, SLOTS, FIXTURE_NATIVE);
    for (int n_live = 0; n_live <= 3; n_live++) {
        request_list l = {.requests = {2, 0, 3, 1}, .sources = {0, 0, 1, 1}, .destinations = {4, 5, 6, 7}};
        l.requests[n_live] = -1 - n_live;
        fixture_randomise(&f, 50);
        fixture_image image = fixture_image_of(&f);
        for (int i = 0; i < n_live; i++) {
            const int32_t r = l.requests[i], from = l.sources[r], to = l.destinations[r];
            fixture_model_copy(&f, &image, from, to, f.cursors[from].start, f.cursors[from].h);
            image.cursors[to] = image.cursors[from];
            image.cursors[to].start = 0;
        }
        rssm_slot_args args = args_of(&l, 4);
        args.requests = l.requests;
        cr_assert_eq(rssm_copy(f.layers, &args, NULL), RSSM_OK);
        cr_expect_eq(l.issues, 0);
        for (int i = 0; i < 4; i++)
            cr_expect_eq(move_source(&l, (uint32_t)i) >= 0, i < n_live, "place %d of %d", i, n_live);
        fixture_expect_memory(&f, &image, "compacted");
        fixture_expect_cursors(&f, &image, "compacted");
        fixture_image_free(&f, &image);
    }
    request_list l = {.requests = {0, 4, 1}, .destinations = {1, 2, 3, 4}};
    fixture_randomise(&f, 51);
    fixture_image  image = fixture_image_of(&f);
    rssm_slot_args args = args_of(&l, 4);
    args.requests = l.requests;
    args.n_rows = 3;
    image.cursors[1] = (rssm_cursor_record){.epoch = image.cursors[1].epoch, .nonce = image.cursors[1].epoch};
    image.cursors[2] = (rssm_cursor_record){.epoch = image.cursors[2].epoch, .nonce = image.cursors[2].epoch};
    args.counts = NULL;
    args.positions = NULL;
    cr_assert_eq(rssm_reset(f.group, &args, NULL), RSSM_OK);
    cr_expect_eq(l.issues, 1, "an index behind the arrays");
    fixture_expect_cursors(&f, &image, "an index behind the arrays");
    fixture_image_free(&f, &image);
    fixture_close_slots(&f);
}

Test(slots, resets_truncates_and_invalidates)
{
    const rssm_problem problem = fixture_shape(2, 2, 4, 4, 5, RSSM_F32, RSSM_F32);
    slot_fixture       f;
    request_list       l = {.destinations = {1, 2, 3, 4}, .counts = {0, 5, 6, -1}, .epochs = {10, 11, 12, 13},
                            .positions = {100, 200, 300, 400}, .nonces = {7, 8, 9, 10}};

    fixture_open_slots(&f, &problem, 1, 1, SLOTS, FIXTURE_NATIVE);
    fixture_randomise(&f, 1);
    f.cursors[1].invalid = 1;
    f.cursors[2].pending_mode = 1, f.cursors[2].pending_t = 1;
    fixture_image  image = fixture_image_of(&f);
    rssm_slot_args args = args_of(&l, 4);
    args.epochs = l.epochs;
    args.nonces = l.nonces;
    args.moves = NULL;
    args.source_slots = NULL;
    image.cursors[1] = (rssm_cursor_record){.epoch = 10, .pos = 100, .nonce = 7};
    image.cursors[2] = (rssm_cursor_record){.h = 5, .epoch = 11, .pos = 200, .nonce = 8};
    cr_assert_eq(rssm_reset(f.group, &args, NULL), RSSM_OK);
    cr_expect_eq(l.issues, 1 << 7, "more records than the ring holds, or fewer than none");
    fixture_expect_cursors(&f, &image, "reset");

    args.nonces = NULL;
    args.positions = NULL;
    args.counts = NULL;
    args.n_rows = 1;
    image.cursors[1] = (rssm_cursor_record){.epoch = 10, .nonce = 10};
    cr_assert_eq(rssm_reset(f.group, &args, NULL), RSSM_OK);
    fixture_expect_cursors(&f, &image, "reset with defaults");

    args = args_of(&l, 4);   // of slot 2: pos 200, h 5
    l.destinations[0] = 2, l.positions[0] = 203;
    l.destinations[1] = 3, l.positions[1] = f.cursors[3].pos + (uint64_t)f.cursors[3].h + 1;
    l.destinations[2] = 4, l.positions[2] = f.cursors[4].pos - 1;
    l.destinations[3] = 5, l.positions[3] = f.cursors[5].pos;
    image.cursors[2].h = 3;
    image.cursors[5].h = 0;
    cr_assert_eq(rssm_truncate(f.group, &args, NULL), RSSM_OK);
    cr_expect_eq(l.issues, 1 << 8);
    fixture_expect_cursors(&f, &image, "truncate");

    args = args_of(&l, 2);
    image.cursors[2].invalid = image.cursors[3].invalid = 1;
    cr_assert_eq(rssm_invalidate(f.group, &args, NULL), RSSM_OK);
    cr_expect_eq(l.issues, 0);
    fixture_expect_cursors(&f, &image, "invalidate");
    cr_assert_eq(rssm_truncate(f.group, &args, NULL), RSSM_OK);
    cr_expect_eq(l.issues, 1 << 5, "nothing can be cut from what is no state");
    fixture_expect_memory(&f, &image, "cursors only");
    fixture_image_free(&f, &image);
    fixture_close_slots(&f);
}

// What materialize leaves behind, apart from the numbers of a fold (tests/lifecycle): whole checkpoints where there is
// nothing to fold, cursors, rings, and slots that take no part.
Test(slots, materializes)
{
    const rssm_problem problems[] = {fixture_shape(6, 3, 5, 7, 6, RSSM_BF16, RSSM_BF16),
                                     fixture_shape(2, 1, 16, 32, 6, RSSM_BF16, RSSM_BF16)};
    slot_fixture       f;
    request_list       l = {.sources = {0, 1, 2, 3, 3}, .destinations = {4, 1, 2, 5, 6}, .counts = {0, 0, 2, 3, -1}};

    fixture_open_slots(&f, problems, 2, 3, SLOTS, FIXTURE_GAPS);
    fixture_randomise(&f, 9);
    f.cursors[2].start = 5, f.cursors[2].h = 3;
    f.cursors[3].h = 2;
    fixture_image  image = fixture_image_of(&f);
    rssm_slot_args args = args_of(&l, 5);
    image.cursors[4] = (rssm_cursor_record){.epoch = image.cursors[4].epoch, .pos = image.cursors[0].pos,
                                            .nonce = image.cursors[0].nonce};
    image.cursors[2].start = 1, image.cursors[2].h = 1, image.cursors[2].pos += 2;
    cr_assert_eq(rssm_materialize(f.layers, &args, NULL), RSSM_OK);
    cr_expect_eq(l.issues, 1 << 7, "three of two records, and fewer than none");
    fixture_expect_cursors(&f, &image, "materialize");
    fixture_model_copy(&f, &image, 0, 4, 0, 0);
    for (uint32_t i = 0; i < f.n_layers; i++) {   // a fold was computed into slot 2: of its checkpoint that is all
        const fixture_tensor *t = &f.tensor[i][FIXTURE_STATE];
        memcpy(fixture_at(&f, &image, i, FIXTURE_STATE, 2, 0, 0), fixture_at(&f, NULL, i, FIXTURE_STATE, 2, 0, 0),
               (size_t)(t->n[3] * t->element_bytes));
    }
    fixture_expect_memory(&f, &image, "materialize");
    fixture_image_free(&f, &image);
    fixture_close_slots(&f);
}

Test(slots, refuses_bad_arguments_before_anything_moves)
{
    const rssm_problem problem = fixture_shape(2, 2, 4, 4, 5, RSSM_F32, RSSM_F32);
    slot_fixture       f;
    request_list       l = {.sources = {0}, .destinations = {1}};

    fixture_open_slots(&f, &problem, 1, 1, SLOTS, FIXTURE_NATIVE);
    fixture_randomise(&f, 1);
    fixture_image        image = fixture_image_of(&f);
    const rssm_slot_args good = args_of(&l, 1);
    for (int i = 0; i < 8; i++) {
        rssm_slot_args a = good;
        rssm_status    want = RSSM_E_INVALID_ARGUMENT;
        void          *stream = NULL;
        if (i == 0) a.struct_size--, want = RSSM_E_STRUCT_SIZE;
        if (i == 1) a.n_rows = f.max_rows + 1;
        if (i == 2) a.destination_slots = NULL;
        if (i == 3) a.source_slots = NULL;
        if (i == 4) a.moves = NULL;
        if (i == 5) a.moves = l.moves + 8;
        if (i == 6) stream = &l;
        if (i == 7) a.n_rows = 0, want = RSSM_OK;
        cr_expect_eq(rssm_copy(f.layers, &a, stream), want, "copy, case %d", i);
        if (i < 3 || i > 5) cr_expect_eq(rssm_reset(f.group, &a, stream), want, "reset, case %d", i);
    }
    rssm_slot_args a = good;
    a.positions = NULL;
    cr_expect_eq(rssm_truncate(f.group, &a, NULL), RSSM_E_INVALID_ARGUMENT);
    a = good;
    a.counts = NULL;
    cr_expect_eq(rssm_materialize(f.layers, &a, NULL), RSSM_E_INVALID_ARGUMENT);
    fixture_expect_memory(&f, &image, "refused");
    fixture_expect_cursors(&f, &image, "refused");
    fixture_image_free(&f, &image);
    fixture_close_slots(&f);
}

Test(slots, names_its_issues)
{
    char text[256];
    rssm_issues_text(1 << 7 | 1 << 8, text, sizeof text);
    cr_expect_str_eq(text, "more records than there are; position that cannot be reached");
}
