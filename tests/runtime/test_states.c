// Encode and decode on the CPU: rounded once to nearest, exact the other way, and nothing else is touched.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/runtime/slot_fixture.h"

enum { SLOTS = 8, ROWS = 5, GAP = 3 };

static const int32_t slots[ROWS] = {6, -1, 0, SLOTS, 3};   // a pad and one that does not exist: the odd rows

// The nearest bf16 by comparing distances; ties to the even one.
static uint16_t nearest_bf16(float value)
{
    uint32_t bits;
    float    low, high;
    memcpy(&bits, &value, 4);
    const uint32_t down = bits & 0xffff0000u, up = down + 0x10000u;
    memcpy(&low, &down, 4);
    memcpy(&high, &up, 4);
    if (bits == down) return (uint16_t)(bits >> 16);
    const double top = (up & 0x7fffffffu) == 0x7f800000u ? copysign(ldexp(1.0, 128), value) : (double)high;
    const double to_low = fabs((double)value - (double)low), to_high = fabs(top - (double)value);
    const bool   takes_high = to_high < to_low || (to_high == to_low && down >> 16 & 1);
    return (uint16_t)((takes_high ? up : down) >> 16);
}

// Any bits, so every kind of number; ties more often than chance has them.
static float random_float(void)
{
    const uint32_t bits = (uint32_t)(fixture_random() >> 16) & (fixture_below(8) ? 0xffffffffu : 0xffff8000u);
    float          value;
    memcpy(&value, &bits, 4);
    return value;
}

// One layer of a fixture, and fp32 values of its rows.
typedef struct states {
    slot_fixture f;
    uint32_t     layer;
    int64_t      n, stride, element_bytes;
    float       *values, *back;
} states;

static char *state_of(const states *s, const fixture_image *image, int row)
{
    return fixture_at(&s->f, image, s->layer, FIXTURE_STATE, slots[row], 0, 0);
}

static states open_states(int c)
{
    const uint32_t     checkpoint = c % 2 ? RSSM_BF16 : RSSM_F32;
    const rssm_problem problems[] = {fixture_shape(6, 3, 5, 7, 6, RSSM_F16, checkpoint),
                                     fixture_shape(2, 1, 16, 32, 6, RSSM_F16, checkpoint)};
    states             s = {.layer = c / 2 % 2 ? 2 : 1};

    fixture_open_slots(&s.f, problems, 2, 3, SLOTS, (fixture_layout)(c / 2));
    fixture_randomise(&s.f, (uint64_t)c);
    s.n = s.f.tensor[s.layer][FIXTURE_STATE].n[3];
    s.stride = s.n + GAP;
    s.element_bytes = checkpoint == RSSM_BF16 ? 2 : 4;
    s.values = malloc((size_t)(ROWS * s.stride) * 4);
    s.back = malloc((size_t)(ROWS * s.stride) * 4);
    for (int64_t i = 0; i < ROWS * s.stride; i++) s.values[i] = random_float(), s.back[i] = 12345.0f;
    return s;
}

// What encode must have stored. A NaN may be any NaN: the image takes the one that is there.
static void model_encode(const states *s, fixture_image *image, int row)
{
    char *to = state_of(s, image, row);
    for (int64_t i = 0; i < s->n; i++) {
        const float value = s->values[row * s->stride + i];
        uint16_t    bits;
        if (s->element_bytes == 4) {
            memcpy(to + 4 * i, &value, 4);
            continue;
        }
        memcpy(&bits, state_of(s, NULL, row) + 2 * i, 2);
        if (isnan(value)) {
            cr_assert_gt(bits & 0x7fff, 0x7f80, "a NaN became 0x%04x", bits);
        } else {
            bits = nearest_bf16(value);
        }
        memcpy(to + 2 * i, &bits, 2);
    }
}

static void expect_decoded(const states *s)
{
    for (int row = 0; row < ROWS; row++)
        for (int64_t i = 0; i < s->stride; i++) {
            float want = 12345.0f;
            if (row % 2 == 0 && i < s->n) {
                uint32_t bits = 0;   // a bf16 is the upper half of a float
                memcpy((char *)&bits + 4 - s->element_bytes, state_of(s, NULL, row) + i * s->element_bytes,
                       (size_t)s->element_bytes);
                memcpy(&want, &bits, 4);
            }
            cr_assert_eq(memcmp(&s->back[row * s->stride + i], &want, 4), 0, "row %d, value %lld", row, (long long)i);
        }
}

Test(states, encode_and_decode)
{
    for (int c = 0; c < 2 * FIXTURE_N_LAYOUTS; c++) {
        states          s = open_states(c);
        fixture_image   image = fixture_image_of(&s.f);
        rssm_state_args a = RSSM_STATE_ARGS_INIT;

        a.n_rows = ROWS, a.slots = slots, a.values = s.values, a.value_stride = s.stride;
        cr_assert_eq(rssm_encode(s.f.layers, s.layer, &a, NULL), RSSM_OK);
        for (int row = 0; row < ROWS; row += 2) model_encode(&s, &image, row);
        fixture_expect_memory(&s.f, &image, "encode");
        fixture_expect_cursors(&s.f, &image, "encode");
        a.values = s.back;
        cr_assert_eq(rssm_decode(s.f.layers, s.layer, &a, NULL), RSSM_OK);
        expect_decoded(&s);
        fixture_expect_memory(&s.f, &image, "decode");
        a.values = NULL;
        for (int row = 0; row < ROWS; row += 2) memset(state_of(&s, &image, row), 0, (size_t)(s.n * s.element_bytes));
        cr_assert_eq(rssm_encode(s.f.layers, s.layer, &a, NULL), RSSM_OK);
        fixture_expect_memory(&s.f, &image, "encode zeros");
        cr_expect_eq(rssm_decode(s.f.layers, s.layer, &a, NULL), RSSM_E_INVALID_ARGUMENT);
        fixture_image_free(&s.f, &image);
        fixture_close_slots(&s.f);
        free(s.values);
        free(s.back);
    }
}

Test(states, refuse_bad_arguments)
{
    states        s = open_states(0);
    fixture_image image = fixture_image_of(&s.f);

    for (int i = 0; i < 8; i++) {
        rssm_state_args a = RSSM_STATE_ARGS_INIT;
        rssm_status     want = RSSM_E_INVALID_ARGUMENT;
        uint32_t        layer = s.layer;
        a.n_rows = 2, a.slots = slots, a.values = s.values, a.value_stride = s.stride;
        if (i == 0) a.struct_size--, want = RSSM_E_STRUCT_SIZE;
        if (i == 1) a.n_rows = s.f.max_rows + 1;
        if (i == 2) a.slots = NULL;
        if (i == 3) a.values = (float *)(void *)((char *)s.values + 1);
        if (i == 4) a.value_stride = s.n - 1;
        if (i == 5) layer = 3;
        if (i == 6) a.n_rows = 0, want = RSSM_OK;
        cr_expect_eq(rssm_encode(s.f.layers, layer, &a, i == 7 ? s.values : NULL), want, "encode, case %d", i);
        cr_expect_eq(rssm_decode(s.f.layers, layer, &a, i == 7 ? s.values : NULL), want, "decode, case %d", i);
    }
    fixture_expect_memory(&s.f, &image, "refused");
    fixture_image_free(&s.f, &image);
    fixture_close_slots(&s.f);
    free(s.values);
    free(s.back);
}
