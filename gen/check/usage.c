// CFG_ names: those that a template uses against those that its manifest defines. See check.h.
#include <string.h>

#include "base/json.h"
#include "gen/check/parts.h"

enum { PREFIX_LENGTH = 4 }; // of "CFG_"

static const char *const given_names[] = {"HEAD_DIM",    "STATE_SIZE", "GROUP_SIZE", "WINDOW",
                                          "RING_LENGTH", "MAX_TOKENS", "ARCH"};
enum { N_GIVEN = sizeof given_names / sizeof given_names[0] };

static bool is_defined(const char *name, const char *const *defined)
{
    for (size_t i = 0; defined[i]; ++i) {
        if (strcmp(defined[i], name) == 0) return true;
    }
    return false;
}

// Everything a rendered header defines, without CFG_.
static void list_defined(const rssm_manifest *m, const char **names)
{
    for (size_t i = 0; i < N_GIVEN; ++i)
        *names++ = given_names[i];
    for (size_t i = 0; i < m->n_tunables; ++i)
        *names++ = m->tunables[i].name;
    for (size_t i = 0; i < m->n_derived; ++i)
        *names++ = m->derived[i].name;
    *names = NULL;
}

static rssm_status check_defined(const rssm_manifest *m, const rssm_parsed *parsed, rssm_diag *diag)
{
    const char *defined[N_GIVEN + RSSM_TUNABLES_MAX + RSSM_DERIVED_MAX + 1];
    const char *nearest;

    list_defined(m, defined);
    for (size_t i = 0; i < parsed->n_cfg_names; ++i) {
        const char *name = parsed->cfg_names[i] + PREFIX_LENGTH;
        if (is_defined(name, defined)) continue;
        nearest = rssm_nearest_word(name, defined);
        return RSSM_FAIL(diag, RSSM_E_MISMATCH, "%s uses CFG_%s, which %s does not define%s%s%s", m->source, name,
                         m->file, nearest ? "; did you mean CFG_" : "", nearest ? nearest : "", nearest ? "?" : "");
    }
    return RSSM_OK;
}

typedef struct name_list {
    const char *names[RSSM_TUNABLES_MAX + RSSM_DERIVED_MAX + RSSM_FACTS_MAX];
    size_t      n;
} name_list;

static bool has_name(const name_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; ++i) {
        if (strcmp(list->names[i], name) == 0) return true;
    }
    return false;
}

static bool add_name(void *context, const char *name, int column)
{
    name_list *list = context;

    (void)column;
    if (!has_name(list, name) && list->n < sizeof list->names / sizeof list->names[0]) list->names[list->n++] = name;
    return true;
}

static void add_launch(const rssm_manifest *m, name_list *list)
{
    for (int i = 0; i < 3; ++i) {
        rssm_expr_names(m->grid[i], add_name, list);
        rssm_expr_names(m->block[i], add_name, list);
    }
    rssm_expr_names(m->shared_bytes, add_name, list);
    rssm_expr_names(m->scratch_bytes_per_row, add_name, list);
}

static void add_conditions(const rssm_manifest *m, name_list *list)
{
    for (size_t i = 0; i < m->n_constraints; ++i)
        rssm_expr_names(m->constraints[i].expr, add_name, list);
    if (m->replay_bytes) rssm_expr_names(m->replay_bytes, add_name, list);
}

// A tunable must change the kernel or its launch. A derived value may also exist for a constraint or the cost alone.
rssm_status rssm_check_usage(const rssm_manifest *m, const rssm_parsed *parsed, rssm_diag *diag)
{
    rssm_status st;
    name_list   effective = {.n = 0}, conditions = {.n = 0};

    RSSM_TRY(check_defined(m, parsed, diag));
    for (size_t i = 0; i < parsed->n_cfg_names; ++i)
        add_name(&effective, parsed->cfg_names[i] + PREFIX_LENGTH, 0);
    add_launch(m, &effective);
    add_conditions(m, &conditions);
    for (size_t i = m->n_derived; i-- > 0;) { // backwards: a derived value uses earlier ones only
        const rssm_derived *derived = &m->derived[i];
        if (has_name(&effective, derived->name)) {
            rssm_expr_names(derived->expr, add_name, &effective);
        } else if (has_name(&conditions, derived->name)) {
            rssm_expr_names(derived->expr, add_name, &conditions);
        } else {
            return RSSM_FAIL(diag, RSSM_E_MISMATCH,
                             "%s defines the derived value %s, which neither %s nor the manifest "
                             "uses",
                             m->file, derived->name, m->source);
        }
    }
    for (size_t i = 0; i < m->n_tunables; ++i) {
        if (has_name(&effective, m->tunables[i].name)) continue;
        return RSSM_FAIL(diag, RSSM_E_MISMATCH, "%s defines the tunable %s, but neither %s nor the launch uses it",
                         m->file, m->tunables[i].name, m->source);
    }
done:
    return st;
}
