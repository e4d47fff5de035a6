// base/problem.h, the half in problem.c: validity, normal form, buckets, native layout.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/problem.h"

// Nemotron-3-Super on one device: 128 heads of 64 over 128 columns in 8 groups.
static rssm_problem super_problem(void)
{
    rssm_problem p = RSSM_PROBLEM_INIT;

    p.n_heads = 128;
    p.n_groups = 8;
    p.head_dim = 64;
    p.state_size = 128;
    return p;
}

static rssm_problem nano_4b_problem(void)
{
    rssm_problem p = super_problem();

    p.n_heads = 96;
    p.head_dim = 80;
    return p;
}

Test(problem, struct_size_and_null)
{
    rssm_problem p = super_problem(), out;
    rssm_diag    diag = {0};

    cr_assert_eq(rssm_problem_check(NULL, &diag), RSSM_E_INVALID_ARGUMENT);
    for (int delta = -4; delta <= 4; delta += 4) {
        p.struct_size = (uint32_t)((int)sizeof p + delta);
        cr_assert_eq(rssm_problem_normalise(&p, &out, &diag), delta ? RSSM_E_STRUCT_SIZE : RSSM_OK);
    }
    p.struct_size = 0;
    cr_assert_eq(rssm_problem_check(&p, &diag), RSSM_E_STRUCT_SIZE);
    cr_assert_neq(strstr(diag.text, "RSSM_PROBLEM_INIT"), NULL);
}

// One field of a valid problem, set to a value.
typedef struct change {
    size_t      offset;
    uint32_t    value;
    rssm_status expected;
    const char *word; // in the sentence of a refusal
} change;

#define FIELD(name) offsetof(rssm_problem, name)
#define BAD RSSM_E_INVALID_ARGUMENT

static void check_changes(const rssm_problem *valid, const change *changes, size_t n)
{
    cr_assert_eq(rssm_problem_check(valid, NULL), RSSM_OK);
    for (size_t i = 0; i < n; i++) {
        rssm_problem p = *valid, out;
        rssm_diag    diag = {0};

        memcpy((char *)&p + changes[i].offset, &changes[i].value, sizeof(uint32_t));
        memset(&out, 0xAB, sizeof out);
        const rssm_problem before = out;
        const rssm_status  st = rssm_problem_normalise(&p, &out, &diag);
        cr_assert_eq(st, changes[i].expected, "offset %zu = %u gives %d: %s", changes[i].offset, changes[i].value, st,
                     diag.text);
        if (st == RSSM_OK) continue;
        cr_assert_eq(memcmp(&out, &before, sizeof out), 0, "untouched on failure");
        cr_assert_neq(strstr(diag.text, changes[i].word), NULL, "%s", diag.text);
        cr_assert_eq(diag.code, st);
    }
}

Test(problem, ranges)
{
    const change changes[] = {
        {FIELD(recurrence), RSSM_GDN, RSSM_OK, ""},
        {FIELD(recurrence), RSSM_KDA, RSSM_OK, ""},
        {FIELD(recurrence), 3, BAD, "recurrence"},
        {FIELD(n_heads), 0, BAD, "n_heads"},
        {FIELD(n_heads), 65536, RSSM_OK, ""},
        {FIELD(n_heads), 65544, BAD, "n_heads"},
        {FIELD(n_heads), 12, BAD, "divide"},
        {FIELD(n_groups), 0, BAD, "n_groups"},
        {FIELD(n_groups), 128, RSSM_OK, ""},
        {FIELD(n_groups), 256, BAD, "n_groups"},
        {FIELD(n_groups), 3, BAD, "n_groups"},
        {FIELD(head_dim), 0, BAD, "head_dim"},
        {FIELD(head_dim), 1, RSSM_OK, ""},
        {FIELD(head_dim), 1024, RSSM_OK, ""},
        {FIELD(head_dim), 1025, BAD, "head_dim"},
        {FIELD(state_size), 0, BAD, "state_size"},
        {FIELD(state_size), 1, RSSM_OK, ""},
        {FIELD(state_size), 1024, RSSM_OK, ""},
        {FIELD(state_size), 1025, BAD, "state_size"},
        {FIELD(window), 0, BAD, "window"},
        {FIELD(window), 1, RSSM_OK, ""},
        {FIELD(window), 4096, RSSM_OK, ""},
        {FIELD(window), 4097, BAD, "window"},
        {FIELD(max_tokens), 0, BAD, "max_tokens"},
        {FIELD(max_tokens), 16, RSSM_OK, ""},
        {FIELD(max_tokens), 17, BAD, "max_tokens"},
        {FIELD(ring_length), 16, RSSM_OK, ""},
        {FIELD(ring_length), 15, BAD, "ring_length"},
        {FIELD(ring_length), 4000, RSSM_OK, ""},
        {FIELD(ring_length), 32768, BAD, "ring_length"},
        {FIELD(flags), RSSM_PROBLEM_EAGER_16BIT, BAD, "EAGER_16BIT"},
        {FIELD(flags), 2, BAD, "0x2"},
        {FIELD(flags), 1u << 31, BAD, "0x80000000"},
        {FIELD(philox_rounds), 17, BAD, "philox_rounds"},
    };
    const rssm_problem p = super_problem();

    check_changes(&p, changes, sizeof changes / sizeof changes[0]);
}

Test(problem, windows_of_several_tokens)
{
    rssm_problem p = super_problem();
    const change changes[] = {
        {FIELD(window), 3, BAD, "max_tokens"},        {FIELD(window), 4, RSSM_OK, ""},
        {FIELD(ring_length), 19, BAD, "at least 20"}, {FIELD(ring_length), 20, RSSM_OK, ""},
        {FIELD(ring_length), 32, RSSM_OK, ""},        {FIELD(max_tokens), 5, BAD, "ring_length"},
    };

    p.max_tokens = 4;
    check_changes(&p, changes, 5);
    p.ring_length = 20;
    check_changes(&p, changes + 5, 1);
}

Test(problem, number_formats)
{
    const change changes[] = {
        {FIELD(activation_dtype), RSSM_F16, BAD, "dt_dtype"}, // dt is bf16 in the valid one
        {FIELD(activation_dtype), RSSM_FP8_E4M3, BAD, "activation_dtype"},
        {FIELD(activation_dtype), 6, BAD, "activation_dtype"},
        {FIELD(dt_dtype), RSSM_F32, RSSM_OK, ""},
        {FIELD(dt_dtype), RSSM_F16, BAD, "dt_dtype"},
        {FIELD(dt_dtype), RSSM_INT8, BAD, "dt_dtype"},
        {FIELD(parameter_dtype), RSSM_BF16, RSSM_OK, ""},
        {FIELD(parameter_dtype), RSSM_F16, BAD, "parameter_dtype"},
        {FIELD(checkpoint_dtype), RSSM_BF16, RSSM_OK, ""},
        {FIELD(checkpoint_dtype), RSSM_F16, RSSM_OK, ""},
        {FIELD(checkpoint_dtype), RSSM_FP8_E4M3, RSSM_OK, ""},
        {FIELD(checkpoint_dtype), RSSM_INT8, RSSM_OK, ""},
        {FIELD(checkpoint_dtype), RSSM_NVFP4, RSSM_E_UNSUPPORTED, "nvfp4"},
        {FIELD(checkpoint_dtype), 6, BAD, "checkpoint_dtype"},
        {FIELD(checkpoint_mode), 2, BAD, "checkpoint_mode"},
        {FIELD(read_dtype), RSSM_FP8_E4M3, BAD, "read_dtype"},
        {FIELD(rounding), RSSM_STOCHASTIC, BAD, "narrower than f32"},
        {FIELD(rounding), 2, BAD, "rounding"},
    };
    const rssm_problem p = super_problem();

    check_changes(&p, changes, sizeof changes / sizeof changes[0]);
}

Test(problem, sixteen_bit_checkpoints)
{
    rssm_problem p = super_problem();
    const change changes[] = {
        {FIELD(flags), RSSM_PROBLEM_EAGER_16BIT, RSSM_OK, ""},
        {FIELD(rounding), RSSM_STOCHASTIC, RSSM_OK, ""},
        {FIELD(philox_rounds), 10, RSSM_OK, ""},
    };

    p.checkpoint_dtype = RSSM_F16;
    check_changes(&p, changes, 3);
    p.checkpoint_dtype = RSSM_FP8_E4M3;
    p.flags = RSSM_PROBLEM_EAGER_16BIT;
    cr_assert_eq(rssm_problem_check(&p, NULL), BAD, "eight bits are not sixteen");
}

Test(problem, separate_copies)
{
    rssm_problem p = super_problem();
    const change changes[] = {
        {FIELD(read_dtype), RSSM_NVFP4, RSSM_OK, ""},
        {FIELD(read_dtype), RSSM_INT8, RSSM_OK, ""},
        {FIELD(read_dtype), RSSM_F32, RSSM_E_UNSUPPORTED, "read_dtype"},
        {FIELD(read_dtype), RSSM_F16, RSSM_E_UNSUPPORTED, "read_dtype"},
        {FIELD(read_dtype), 9, RSSM_E_UNSUPPORTED, "read_dtype"},
        {FIELD(checkpoint_dtype), RSSM_FP8_E4M3, RSSM_E_UNSUPPORTED, "checkpoint_dtype"},
        {FIELD(checkpoint_dtype), RSSM_BF16, RSSM_OK, ""},
        {FIELD(flags), RSSM_PROBLEM_EAGER_16BIT, BAD, "EAGER_16BIT"},
        {FIELD(state_size), 120, RSSM_OK, ""},
    };

    p.checkpoint_mode = RSSM_CHECKPOINT_SEPARATE;
    p.checkpoint_dtype = RSSM_F16;
    p.read_dtype = RSSM_FP8_E4M3;
    p.rounding = RSSM_STOCHASTIC;
    check_changes(&p, changes, sizeof changes / sizeof changes[0]);
    p.read_dtype = RSSM_NVFP4;
    p.state_size = 120;
    cr_assert_eq(rssm_problem_check(&p, NULL), RSSM_E_UNSUPPORTED, "nvfp4 scales cover 16 columns");
}

Test(problem, a_slot_stays_below_2_to_the_31)
{
    rssm_problem p = super_problem();
    rssm_diag    diag = {0};

    p.n_heads = 2048;
    p.n_groups = 2048;
    p.head_dim = 1024;
    p.state_size = 1024; // exactly 2^31
    cr_assert_eq(rssm_problem_check(&p, &diag), BAD);
    cr_assert_neq(strstr(diag.text, "checkpoint of one slot has 2147483648"), NULL);
    p.n_heads = p.n_groups = 2047;
    cr_assert_eq(rssm_problem_check(&p, NULL), RSSM_OK);
    p = super_problem();
    p.n_heads = 65536;
    p.head_dim = 1024;
    p.state_size = 1;
    p.ring_length = 32;
    cr_assert_eq(rssm_problem_check(&p, &diag), BAD);
    cr_assert_neq(strstr(diag.text, "x ring"), NULL);
    p.n_groups = 65536;
    p.head_dim = 1;
    p.state_size = 1024;
    cr_assert_eq(rssm_problem_check(&p, &diag), BAD);
    cr_assert_neq(strstr(diag.text, "B ring"), NULL);
    p.head_dim = p.state_size = 1;
    p.ring_length = 32767;
    cr_assert_eq(rssm_problem_check(&p, NULL), RSSM_OK, "2^31 - 65536 records");
}

Test(problem, normal_form)
{
    rssm_problem p = super_problem(), out;

    p.dt_softplus = 42;
    p.philox_rounds = 9;
    cr_assert_eq(rssm_problem_normalise(&p, &out, NULL), RSSM_OK);
    cr_assert_eq(out.ring_length, 16);
    cr_assert_eq(out.philox_rounds, 0, "nearest rounding has none");
    cr_assert_eq(out.dt_softplus, 1);
    p.max_tokens = 4;
    p.checkpoint_dtype = RSSM_F16;
    p.rounding = RSSM_STOCHASTIC;
    p.philox_rounds = 0;
    cr_assert_eq(rssm_problem_normalise(&p, &out, NULL), RSSM_OK);
    cr_assert_eq(out.ring_length, 20);
    cr_assert_eq(out.philox_rounds, 7);
    rssm_problem again;
    cr_assert_eq(rssm_problem_normalise(&out, &again, NULL), RSSM_OK);
    cr_assert_eq(memcmp(&out, &again, sizeof out), 0, "a normal form is its own");
    cr_assert_eq(rssm_problem_normalise(&out, &out, NULL), RSSM_OK, "in place");
}

Test(problem, buckets)
{
    const uint32_t rows[][2] = {{0, 1},
                                {1, 1},
                                {2, 2},
                                {3, 4},
                                {4, 4},
                                {5, 8},
                                {255, 256},
                                {256, 256},
                                {257, 512},
                                {1u << 31, 1u << 31},
                                {UINT32_MAX, 1u << 31}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cr_assert_eq(rssm_batch_bucket(rows[i][0]), rows[i][1], "%u", rows[i][0]);
}

// SEMANTICS 7.2: fp32 states of 3.75 and 4 MiB.
Test(problem, layouts_of_real_models)
{
    rssm_problem p = nano_4b_problem();
    rssm_layout  l = RSSM_LAYOUT_INIT;

    cr_assert_eq(rssm_layout_get(&p, &l, NULL), RSSM_OK);
    cr_assert_eq(l.state_bytes, (15u << 20) / 4);
    cr_assert_eq(l.x_ring_bytes, 96 * 16 * 80 * 2);
    cr_assert_eq(l.B_ring_bytes, 8 * 16 * 128 * 2);
    cr_assert_eq(l.dt_ring_bytes, 96 * 16 * 4);
    cr_assert_eq(l.ring_length, 16);
    cr_assert_eq(l.state_slot_stride, 96 * 80 * 128);
    cr_assert(l.x_slot_stride == 96 * 16 * 80 && l.x_head_stride == 16 * 80 && l.x_record_stride == 80);
    cr_assert(l.B_slot_stride == 8 * 16 * 128 && l.B_head_stride == 16 * 128 && l.B_record_stride == 128);
    cr_assert(l.dt_slot_stride == 96 * 16 && l.dt_head_stride == 16 && l.dt_record_stride == 1);
    cr_assert(l.cursor_bytes == 40 && l.descriptor_bytes == 32 && l.scratch_bytes_per_row == 0);

    p = super_problem();
    cr_assert_eq(rssm_layout_get(&p, &l, NULL), RSSM_OK);
    cr_assert_eq(l.state_bytes, 4u << 20);
    p.checkpoint_dtype = RSSM_BF16;
    cr_assert_eq(rssm_layout_get(&p, &l, NULL), RSSM_OK);
    cr_assert_eq(l.state_bytes, 2u << 20);
    cr_assert_eq(l.struct_size, sizeof l);
}

// Shapes of no alignment: every slot still begins on 16 bytes, and holds what it must.
Test(problem, odd_slots_are_aligned)
{
    for (uint32_t dims = 1; dims <= 40; dims++) {
        for (uint32_t act = RSSM_F32; act <= RSSM_F16; act++) {
            rssm_problem p = RSSM_PROBLEM_INIT;
            rssm_layout  l = RSSM_LAYOUT_INIT;
            p.n_heads = dims % 3 + 1;
            p.head_dim = dims;
            p.state_size = 41 - dims;
            p.window = dims % 5 + 1;
            p.activation_dtype = p.dt_dtype = p.checkpoint_dtype = act;
            cr_assert_eq(rssm_layout_get(&p, &l, NULL), RSSM_OK);
            const uint64_t size = rssm_dtype_bytes(act), H = p.n_heads, R = l.ring_length;
            cr_assert_eq(l.state_slot_stride * (int64_t)size % 16, 0);
            cr_assert_eq(l.x_slot_stride * (int64_t)size % 16, 0);
            cr_assert_eq(l.B_slot_stride * (int64_t)size % 16, 0);
            cr_assert_eq(l.dt_slot_stride * 4 % 16, 0);
            cr_assert_eq(l.state_bytes, (uint64_t)l.state_slot_stride * size);
            cr_assert(l.state_bytes >= H * p.head_dim * p.state_size * size &&
                      l.state_bytes < H * p.head_dim * p.state_size * size + 16);
            cr_assert(l.x_ring_bytes >= H * R * p.head_dim * size && l.x_ring_bytes < H * R * p.head_dim * size + 16);
            cr_assert(l.B_ring_bytes >= R * p.state_size * size && l.B_ring_bytes < R * p.state_size * size + 16);
            cr_assert(l.dt_ring_bytes >= H * R * 4 && l.dt_ring_bytes < H * R * 4 + 16);
        }
    }
}

Test(problem, layouts_that_are_refused)
{
    rssm_problem p = super_problem();
    rssm_layout  l = RSSM_LAYOUT_INIT, before;
    rssm_diag    diag = {0};

    cr_assert_eq(rssm_layout_get(&p, NULL, &diag), RSSM_E_INVALID_ARGUMENT);
    cr_assert_eq(rssm_layout_get(NULL, &l, &diag), RSSM_E_INVALID_ARGUMENT);
    l.struct_size = 8;
    before = l;
    cr_assert_eq(rssm_layout_get(&p, &l, &diag), RSSM_E_STRUCT_SIZE);
    cr_assert_eq(memcmp(&l, &before, sizeof l), 0);
    l.struct_size = sizeof l;
    p.head_dim = 0;
    cr_assert_eq(rssm_layout_get(&p, &l, &diag), RSSM_E_INVALID_ARGUMENT);
    p = super_problem();
    p.recurrence = RSSM_GDN;
    cr_assert_eq(rssm_layout_get(&p, &l, &diag), RSSM_E_NOT_IMPLEMENTED);
    p = super_problem();
    p.checkpoint_dtype = RSSM_INT8;
    cr_assert_eq(rssm_layout_get(&p, &l, &diag), RSSM_E_NOT_IMPLEMENTED);
}
