// What a manifest serves: reading the object, and comparing a problem with it. One table describes the fields of both.
#include "gen/manifest_serves.h"

#include <stddef.h>
#include <string.h>

#include "base/dtype.h"
#include "base/str.h"

static const char *mode_name(uint32_t mode)
{
    return mode == RSSM_CHECKPOINT_SHARED ? "shared" : "separate";
}

static const char *rounding_name(uint32_t rounding)
{
    return rounding == RSSM_NEAREST ? "nearest" : "stochastic";
}

// A field that is one of a few named values.
typedef struct choice_field {
    const char *key;
    size_t      mask_offset;    // in rssm_serves
    size_t      problem_offset; // in rssm_problem
    uint32_t    n_values;
    const char *(*name)(uint32_t value);
} choice_field;

static const choice_field choices[] = {
    {"checkpoint_mode", offsetof(rssm_serves, checkpoint_modes), offsetof(rssm_problem, checkpoint_mode), 2, mode_name},
    {"checkpoint_dtype", offsetof(rssm_serves, checkpoint_dtypes), offsetof(rssm_problem, checkpoint_dtype), 6,
     rssm_dtype_name},
    {"activation_dtype", offsetof(rssm_serves, activation_dtypes), offsetof(rssm_problem, activation_dtype), 6,
     rssm_dtype_name},
    {"rounding", offsetof(rssm_serves, roundings), offsetof(rssm_problem, rounding), 2, rounding_name},
};

// A field within a range. group_size is not stored in a problem: see problem_number.
typedef struct range_field {
    const char *key;
    size_t      range_offset;
    size_t      problem_offset;
} range_field;

enum { GROUP_SIZE_OFFSET = -1 };

static const range_field ranges[] = {
    {"max_tokens", offsetof(rssm_serves, max_tokens), offsetof(rssm_problem, max_tokens)},
    {"head_dim", offsetof(rssm_serves, head_dim), offsetof(rssm_problem, head_dim)},
    {"state_size", offsetof(rssm_serves, state_size), offsetof(rssm_problem, state_size)},
    {"group_size", offsetof(rssm_serves, group_size), (size_t)GROUP_SIZE_OFFSET},
    {"window", offsetof(rssm_serves, window), offsetof(rssm_problem, window)},
};

enum { N_CHOICES = sizeof choices / sizeof choices[0], N_RANGES = sizeof ranges / sizeof ranges[0] };

static uint32_t *mask_of(rssm_serves *serves, const choice_field *field)
{
    return (uint32_t *)((char *)serves + field->mask_offset);
}

static rssm_range *range_of(rssm_serves *serves, const range_field *field)
{
    return (rssm_range *)((char *)serves + field->range_offset);
}

static uint32_t problem_number(const rssm_problem *problem, size_t offset)
{
    if (offset == (size_t)GROUP_SIZE_OFFSET) return problem->n_groups ? problem->n_heads / problem->n_groups : 0;
    return *(const uint32_t *)((const char *)problem + offset);
}

rssm_serves rssm_serves_everything(void)
{
    rssm_serves serves;

    for (size_t i = 0; i < N_CHOICES; ++i)
        *mask_of(&serves, &choices[i]) = (1u << choices[i].n_values) - 1;
    for (size_t i = 0; i < N_RANGES; ++i)
        *range_of(&serves, &ranges[i]) = (rssm_range){1, UINT32_MAX};
    return serves;
}

static rssm_status load_choice_value(rssm_json_value value, const choice_field *field, uint32_t *mask, rssm_diag *diag)
{
    const char *text, *nearest;
    const char *names[8] = {0};
    rssm_status st = rssm_json_as_string(value, &text, diag);

    if (st != RSSM_OK) return st;
    for (uint32_t i = 0; i < field->n_values; ++i) {
        names[i] = field->name(i);
        if (strcmp(names[i], text) != 0) continue;
        if (*mask & 1u << i) return rssm_json_fail(value, diag, "\"%s\" is listed twice", text);
        *mask |= 1u << i;
        return RSSM_OK;
    }
    nearest = rssm_nearest_word(text, names);
    return rssm_json_fail(value, diag, "unknown %s \"%s\"; did you mean \"%s\"?", field->key, text,
                          nearest ? nearest : names[0]);
}

static rssm_status load_choice(rssm_json_value value, const choice_field *field, uint32_t *out_mask, rssm_diag *diag)
{
    rssm_status st;
    size_t      count;
    uint32_t    mask = 0;

    RSSM_TRY(rssm_json_as_array(value, &count, diag));
    if (count == 0) {
        st = rssm_json_fail(value, diag, "an empty list serves nothing; leave the key out to serve everything");
        goto done;
    }
    for (size_t i = 0; i < count; ++i)
        RSSM_TRY(load_choice_value(rssm_json_at(value, i), field, &mask, diag));
    *out_mask = mask;
done:
    return st;
}

static rssm_status load_range(rssm_json_value value, rssm_range *out_range, rssm_diag *diag)
{
    rssm_status st;
    size_t      count;
    rssm_range  range = {0, 0};

    RSSM_TRY(rssm_json_as_array(value, &count, diag));
    if (count != 2) {
        st = rssm_json_fail(value, diag, "a range is [lowest, highest], both included; found %zu values", count);
        goto done;
    }
    RSSM_TRY(rssm_json_as_integer(rssm_json_at(value, 0), 1, UINT32_MAX, &range.low, diag));
    RSSM_TRY(rssm_json_as_integer(rssm_json_at(value, 1), range.low, UINT32_MAX, &range.high, diag));
    *out_range = range;
done:
    return st;
}

rssm_status rssm_serves_load(rssm_json_value object, rssm_serves *serves, rssm_diag *diag)
{
    rssm_status     st;
    const char     *keys[N_CHOICES + N_RANGES + 1] = {0};
    rssm_json_value value;

    for (size_t i = 0; i < N_CHOICES; ++i)
        keys[i] = choices[i].key;
    for (size_t i = 0; i < N_RANGES; ++i)
        keys[N_CHOICES + i] = ranges[i].key;
    RSSM_TRY(rssm_json_as_object(object, diag));
    RSSM_TRY(rssm_json_only_keys(object, keys, diag));
    for (size_t i = 0; i < N_CHOICES; ++i) {
        if (!rssm_json_get(object, choices[i].key, &value)) continue;
        RSSM_TRY(load_choice(value, &choices[i], mask_of(serves, &choices[i]), diag));
    }
    for (size_t i = 0; i < N_RANGES; ++i) {
        if (!rssm_json_get(object, ranges[i].key, &value)) continue;
        RSSM_TRY(load_range(value, range_of(serves, &ranges[i]), diag));
    }
done:
    return st;
}

static rssm_status refuse_choice(const rssm_manifest *m, const choice_field *field, uint32_t value, uint32_t mask,
                                 rssm_diag *diag)
{
    rssm_str    list = {0};
    rssm_status st;

    for (uint32_t i = 0; i < field->n_values; ++i) {
        if (mask & 1u << i) rssm_str_printf(&list, "%s%s", list.length ? ", " : "", field->name(i));
    }
    st = RSSM_FAIL(diag, RSSM_E_UNSUPPORTED, "%s does not serve %s %s; it serves %s", m->name, field->key,
                   field->name(value), rssm_str_c(&list));
    rssm_str_free(&list);
    return st;
}

rssm_status rssm_manifest_serves(const rssm_manifest *m, const rssm_problem *problem, rssm_diag *diag)
{
    rssm_serves serves = m->serves;

    if (m->recurrence == RSSM_RECURRENCE_ANY) return RSSM_OK;
    if (m->recurrence != problem->recurrence) {
        return RSSM_FAIL(diag, RSSM_E_UNSUPPORTED, "%s serves the recurrence %s, not %s", m->name,
                         rssm_recurrence_name(m->recurrence), rssm_recurrence_name(problem->recurrence));
    }
    for (size_t i = 0; i < N_CHOICES; ++i) {
        const uint32_t value = problem_number(problem, choices[i].problem_offset);
        const uint32_t mask = *mask_of(&serves, &choices[i]);
        if (value < choices[i].n_values && mask & 1u << value) continue;
        return refuse_choice(m, &choices[i], value, mask, diag);
    }
    for (size_t i = 0; i < N_RANGES; ++i) {
        const int64_t    value = problem_number(problem, ranges[i].problem_offset);
        const rssm_range range = *range_of(&serves, &ranges[i]);
        if (value >= range.low && value <= range.high) continue;
        return RSSM_FAIL(diag, RSSM_E_UNSUPPORTED, "%s serves %s %lld to %lld, not %lld", m->name, ranges[i].key,
                         (long long)range.low, (long long)range.high, (long long)value);
    }
    return RSSM_OK;
}
