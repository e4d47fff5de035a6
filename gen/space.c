// Configs: numbering, text, constraints. See space.h.
#include "gen/space.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"

// --------------------------------------------------------------------------------------------------------- numbering

// The position of a config's value among the tunable's. A config only ever holds values of its manifest.
static size_t value_index(const rssm_tunable *tunable, int64_t value)
{
    for (size_t i = 0; i < tunable->n_values; ++i) {
        if (tunable->values[i] == value) return i;
    }
    return 0;
}

rssm_config rssm_config_default(const rssm_manifest *manifest)
{
    rssm_config config = {.manifest = manifest};

    for (size_t i = 0; i < manifest->n_tunables; ++i) {
        config.values[i] = manifest->tunables[i].values[manifest->tunables[i].default_index];
    }
    return config;
}

bool rssm_config_equal(const rssm_config *a, const rssm_config *b)
{
    return a->manifest == b->manifest && memcmp(a->values, b->values, sizeof a->values) == 0;
}

uint64_t rssm_space_size(const rssm_manifest *manifest)
{
    uint64_t size = 1;

    for (size_t i = 0; i < manifest->n_tunables; ++i) {
        if (__builtin_mul_overflow(size, (uint64_t)manifest->tunables[i].n_values, &size)) return UINT64_MAX;
    }
    return size;
}

rssm_config rssm_space_at(const rssm_manifest *manifest, uint64_t index)
{
    rssm_config config = {.manifest = manifest};

    for (size_t i = manifest->n_tunables; i-- > 0;) {
        const rssm_tunable *tunable = &manifest->tunables[i];
        config.values[i] = tunable->values[index % tunable->n_values];
        index /= tunable->n_values;
    }
    return config;
}

uint64_t rssm_space_index(const rssm_config *config)
{
    const rssm_manifest *manifest = config->manifest;
    uint64_t             index = 0;

    for (size_t i = 0; i < manifest->n_tunables; ++i) {
        index = index * manifest->tunables[i].n_values + value_index(&manifest->tunables[i], config->values[i]);
    }
    return index;
}

bool rssm_space_next(const rssm_manifest *manifest, const rssm_facts *facts, uint64_t *cursor, rssm_config *out_config)
{
    const uint64_t size = rssm_space_size(manifest);

    while (*cursor < size) {
        const rssm_config config = rssm_space_at(manifest, (*cursor)++);
        if (rssm_config_check(&config, facts, NULL) != RSSM_OK) continue;
        *out_config = config;
        return true;
    }
    return false;
}

size_t rssm_config_neighbours(const rssm_config *config, rssm_config out_configs[RSSM_NEIGHBOURS_MAX])
{
    const rssm_manifest *manifest = config->manifest;
    size_t               n = 0;

    for (size_t i = 0; i < manifest->n_tunables; ++i) {
        const rssm_tunable *tunable = &manifest->tunables[i];
        const size_t        index = value_index(tunable, config->values[i]);
        if (index > 0) {
            out_configs[n] = *config;
            out_configs[n++].values[i] = tunable->values[index - 1];
        }
        if (index + 1 < tunable->n_values) {
            out_configs[n] = *config;
            out_configs[n++].values[i] = tunable->values[index + 1];
        }
    }
    return n;
}

// -------------------------------------------------------------------------------------------------------------- text

void rssm_config_text(const rssm_config *config, rssm_str *out)
{
    for (size_t i = 0; i < config->manifest->n_tunables; ++i) {
        rssm_str_printf(out, "%s%s=%lld", i ? " " : "", config->manifest->tunables[i].name,
                        (long long)config->values[i]);
    }
}

static rssm_status fail_name(const rssm_manifest *manifest, const char *name, rssm_diag *diag)
{
    const char *names[RSSM_TUNABLES_MAX + 1] = {0};
    const char *nearest;

    for (size_t i = 0; i < manifest->n_tunables; ++i)
        names[i] = manifest->tunables[i].name;
    nearest = rssm_nearest_word(name, names);
    return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "%s has no tunable %s%s%s%s", manifest->name, name,
                     nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

static rssm_status fail_value(const rssm_manifest *manifest, const rssm_tunable *tunable, const char *text,
                              rssm_diag *diag)
{
    rssm_str    list = {0};
    rssm_status st;

    for (size_t i = 0; i < tunable->n_values; ++i) {
        rssm_str_printf(&list, "%s%lld", i ? ", " : "", (long long)tunable->values[i]);
    }
    st = RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "%s: %s cannot be %s; its values are %s", manifest->name,
                   tunable->name, text, rssm_str_c(&list));
    rssm_str_free(&list);
    return st;
}

// One "NAME=VALUE". `word` is a copy that may be cut.
static rssm_status parse_assignment(char *word, rssm_config *config, bool *is_set, rssm_diag *diag)
{
    const rssm_manifest *manifest = config->manifest;
    char                *value = strchr(word, '=');
    char                 canonical[24];

    if (!value) return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "\"%s\" is not NAME=VALUE", word);
    *value++ = '\0';
    for (size_t i = 0; i < manifest->n_tunables; ++i) {
        const rssm_tunable *tunable = &manifest->tunables[i];
        if (strcmp(tunable->name, word) != 0) continue;
        if (is_set[i]) {
            return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "%s: %s is given twice", manifest->name, word);
        }
        for (size_t j = 0; j < tunable->n_values; ++j) {
            snprintf(canonical, sizeof canonical, "%lld", (long long)tunable->values[j]);
            if (strcmp(canonical, value) != 0) continue;
            config->values[i] = tunable->values[j];
            is_set[i] = true;
            return RSSM_OK;
        }
        return fail_value(manifest, tunable, value, diag);
    }
    return fail_name(manifest, word, diag);
}

rssm_status rssm_config_parse(const rssm_manifest *manifest, const char *text, rssm_config *out_config, rssm_diag *diag)
{
    rssm_status st = RSSM_OK;
    rssm_config config = {.manifest = manifest};
    bool        is_set[RSSM_TUNABLES_MAX] = {0};
    rssm_str    word = {0};

    for (const char *s = text + strspn(text, " \t\n"); *s; s += strspn(s, " \t\n")) {
        const size_t n = strcspn(s, " \t\n");
        rssm_str_clear(&word);
        rssm_str_append(&word, s, n);
        RSSM_TRY(rssm_str_check(&word, diag));
        RSSM_TRY(parse_assignment(word.data, &config, is_set, diag));
        s += n;
    }
    for (size_t i = 0; i < manifest->n_tunables; ++i) {
        if (is_set[i]) continue;
        st = RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "%s: the config \"%s\" gives no value for %s", manifest->name,
                       text, manifest->tunables[i].name);
        goto done;
    }
    *out_config = config;
done:
    rssm_str_free(&word);
    return st;
}

// ---------------------------------------------------------------------------------------------------------- validity

rssm_status rssm_config_facts(const rssm_config *config, const rssm_facts *facts, rssm_facts *out_facts,
                              rssm_diag *diag)
{
    const rssm_manifest *manifest = config->manifest;
    rssm_status          st = RSSM_OK;
    rssm_facts           all = *facts;
    int64_t              value;

    for (size_t i = 0; i < manifest->n_tunables; ++i) {
        rssm_facts_set(&all, manifest->tunables[i].name, config->values[i]);
    }
    for (size_t i = 0; i < manifest->n_derived; ++i) {
        RSSM_TRY(rssm_expr_eval(manifest->derived[i].expr, &all, &value, diag));
        rssm_facts_set(&all, manifest->derived[i].name, value);
    }
    *out_facts = all;
done:
    if (st != RSSM_OK) rssm_diag_prefix(diag, "%s", manifest->name);
    return st;
}

rssm_status rssm_config_check(const rssm_config *config, const rssm_facts *facts, rssm_diag *diag)
{
    const rssm_manifest *manifest = config->manifest;
    rssm_status          st;
    rssm_facts           all;
    int64_t              value;

    RSSM_TRY(rssm_config_facts(config, facts, &all, diag));
    for (size_t i = 0; i < manifest->n_constraints; ++i) {
        const rssm_constraint *constraint = &manifest->constraints[i];
        RSSM_TRY(rssm_expr_eval(constraint->expr, &all, &value, diag));
        if (value) continue;
        st =
            RSSM_FAIL(diag, RSSM_E_UNSUPPORTED, "rejected: %s (%s)", rssm_expr_text(constraint->expr), constraint->why);
        goto done;
    }
done:
    return st;
}
