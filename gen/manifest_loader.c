// See manifest_loader.h.
#include "gen/manifest_loader.h"

#include <ctype.h>
#include <string.h>

// -------------------------------------------------------------------------------------------------------------- words

bool rssm_loader_is_word(const char *text, bool is_capital)
{
    const size_t n = strlen(text);

    if (n == 0 || n > RSSM_WORD_MAX || isdigit((unsigned char)text[0])) return false;
    for (size_t i = 0; i < n; ++i) {
        const unsigned char c = (unsigned char)text[i];
        if (c != '_' && !isdigit(c) && !(is_capital ? isupper(c) : isalpha(c))) return false;
    }
    return true;
}

rssm_status rssm_loader_text(rssm_loader *l, rssm_json_value object, const char *key, const char **out_text)
{
    rssm_status     st;
    rssm_json_value value;
    const char     *text;

    RSSM_TRY(rssm_json_need(object, key, &value, l->diag));
    RSSM_TRY(rssm_json_as_string(value, &text, l->diag));
    if (!*text) {
        st = rssm_json_fail(value, l->diag, "must not be empty");
        goto done;
    }
    *out_text = rssm_arena_strndup(l->arena, text, strlen(text));
    if (!*out_text) st = RSSM_FAIL(l->diag, RSSM_E_NO_MEMORY, "no memory for a manifest");
done:
    return st;
}

rssm_status rssm_loader_word(rssm_loader *l, rssm_json_value object, const char *key, const char **out_word)
{
    rssm_status     st;
    rssm_json_value value;

    RSSM_TRY(rssm_loader_text(l, object, key, out_word));
    RSSM_TRY(rssm_json_need(object, key, &value, l->diag));
    if (!rssm_loader_is_word(*out_word, false)) {
        st = rssm_json_fail(value, l->diag, "\"%s\" is not a C identifier of at most %d characters", *out_word,
                            RSSM_WORD_MAX);
    }
done:
    return st;
}

rssm_status rssm_loader_choice(rssm_loader *l, rssm_json_value object, const char *key, const char *const *words,
                               uint32_t *out_index)
{
    rssm_status     st;
    rssm_json_value value;
    const char     *text, *nearest;

    RSSM_TRY(rssm_json_need(object, key, &value, l->diag));
    RSSM_TRY(rssm_json_as_string(value, &text, l->diag));
    for (uint32_t i = 0; words[i]; ++i) {
        if (strcmp(words[i], text) != 0) continue;
        *out_index = i;
        return RSSM_OK;
    }
    nearest = rssm_nearest_word(text, words);
    st = rssm_json_fail(value, l->diag, "unknown %s \"%s\"; did you mean \"%s\"?", key, text,
                        nearest ? nearest : words[0]);
done:
    return st;
}

rssm_status rssm_loader_integer(rssm_loader *l, rssm_json_value object, const char *key, int64_t low, int64_t high,
                                int64_t *out_value)
{
    rssm_status     st;
    rssm_json_value value;

    RSSM_TRY(rssm_json_need(object, key, &value, l->diag));
    st = rssm_json_as_integer(value, low, high, out_value, l->diag);
done:
    return st;
}

rssm_status rssm_loader_optional(rssm_loader *l, rssm_json_value object, const char *key, int64_t low, int64_t high,
                                 int64_t *value)
{
    rssm_json_value member;

    if (!rssm_json_get(object, key, &member)) return RSSM_OK;
    return rssm_json_as_integer(member, low, high, value, l->diag);
}

// -------------------------------------------------------------------------------------------------------- expressions

bool rssm_loader_knows(const rssm_loader *l, const char *name)
{
    for (size_t i = 0; i < l->n_names; ++i) {
        if (strcmp(l->names[i], name) == 0) return true;
    }
    return false;
}

void rssm_loader_add_name(rssm_loader *l, const char *name)
{
    if (l->n_names < RSSM_NAMES_MAX) l->names[l->n_names++] = name;
}

typedef struct name_check {
    rssm_loader    *l;
    rssm_json_value value;
    const char     *text;
    bool            can_use_rows;
    rssm_status     st;
} name_check;

static bool check_name(void *context, const char *name, int column)
{
    name_check *check = context;
    const char *nearest;

    if (strcmp(name, "rows") == 0) {
        if (check->can_use_rows) return true;
        check->st = rssm_json_fail(check->value, check->l->diag,
                                   "expression \"%s\", column %d: rows may appear in the grid and in the cost only",
                                   check->text, column);
        return false;
    }
    if (rssm_loader_knows(check->l, name)) return true;
    nearest = rssm_nearest_word(name, check->l->names);
    check->st = rssm_json_fail(check->value, check->l->diag, "expression \"%s\", column %d: unknown name '%s'%s%s%s",
                               check->text, column, name, nearest ? "; did you mean '" : "", nearest ? nearest : "",
                               nearest ? "'?" : "");
    return false;
}

rssm_status rssm_loader_expr(rssm_loader *l, rssm_json_value value, bool can_use_rows, const rssm_expr **out_expr)
{
    rssm_status st;
    rssm_diag   inner = {0};
    const char *text;
    name_check  check = {.l = l, .value = value, .can_use_rows = can_use_rows};

    RSSM_TRY(rssm_json_as_string(value, &text, l->diag));
    st = rssm_expr_parse(text, l->arena, out_expr, &inner);
    if (st == RSSM_E_MANIFEST) {
        st = rssm_json_fail(value, l->diag, "%s", inner.text);
    } else if (st != RSSM_OK && l->diag) {
        *l->diag = inner;
    }
    if (st != RSSM_OK) goto done;
    check.text = text;
    if (!rssm_expr_names(*out_expr, check_name, &check)) st = check.st;
done:
    return st;
}

rssm_status rssm_loader_member_expr(rssm_loader *l, rssm_json_value object, const char *key, bool can_use_rows,
                                    const rssm_expr **out_expr)
{
    rssm_status     st;
    rssm_json_value value;

    RSSM_TRY(rssm_json_need(object, key, &value, l->diag));
    st = rssm_loader_expr(l, value, can_use_rows, out_expr);
done:
    return st;
}

rssm_status rssm_loader_bytes(rssm_loader *l, rssm_json_value object, const char *key, const rssm_expr **out_expr)
{
    rssm_json_value value;

    if (!rssm_json_get(object, key, &value)) return rssm_expr_parse("0", l->arena, out_expr, l->diag);
    return rssm_loader_expr(l, value, false, out_expr);
}

rssm_status rssm_loader_triple(rssm_loader *l, rssm_json_value object, const char *key, bool can_use_rows,
                               const rssm_expr *out_exprs[3])
{
    rssm_status     st;
    rssm_json_value array;
    size_t          count;

    RSSM_TRY(rssm_json_need(object, key, &array, l->diag));
    RSSM_TRY(rssm_json_as_array(array, &count, l->diag));
    if (count != 3) {
        st = rssm_json_fail(array, l->diag, "expected the three expressions of x, y and z; found %zu", count);
        goto done;
    }
    for (size_t i = 0; i < 3; ++i)
        RSSM_TRY(rssm_loader_expr(l, rssm_json_at(array, i), can_use_rows, &out_exprs[i]));
done:
    return st;
}
