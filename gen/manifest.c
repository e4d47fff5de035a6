// Reads a manifest, section by section. The order matters: tunables, then derived values one by one, then everything
// that uses them, so that each expression is checked against exactly the names that exist where it is evaluated.
#include "gen/manifest.h"

#include <string.h>

#include "gen/manifest_loader.h"
#include "gen/manifest_serves.h"

#define OP_NAME(enumerator, name) name,
static const char *const op_names[] = {RSSM_OP_LIST(OP_NAME) NULL};
static const char *const backend_names[] = {"cpu", "cuda", NULL};
static const char *const recurrence_names[] = {"mamba2", "gdn", "kda", "any", NULL};
enum { ANY_INDEX = 3 };

// Rendered for every template, so no tunable or derived value may take these names.
static const char *const reserved_names[] = {"HEAD_DIM",    "STATE_SIZE", "GROUP_SIZE", "WINDOW",
                                             "RING_LENGTH", "MAX_TOKENS", "ARCH",       NULL};

static const char *const root_keys[] = {
    "schema", "name",    "version", "op",       "recurrence", "backend",     "source", "entry", "args",
    "doc",    "serves",  "align",   "tunables", "derived",    "constraints", "launch", "cost",  "scratch_bytes_per_row",
    "limits", "builtin", NULL};
static const char *const tunable_keys[] = {"name", "values", "default", "doc", NULL};
static const char *const derived_keys[] = {"name", "expr", NULL};
static const char *const constraint_keys[] = {"expr", "why", NULL};
static const char *const align_keys[] = {"state", "rings", "activations", NULL};
static const char *const launch_keys[] = {"grid", "block", "shared_bytes", NULL};
static const char *const cost_keys[] = {"replay_bytes", NULL};
static const char *const limit_keys[] = {"spill_bytes", "registers", NULL};

const char *rssm_op_name(rssm_op op)
{
    return (size_t)op < sizeof op_names / sizeof op_names[0] - 1 ? op_names[op] : "?";
}

const char *rssm_recurrence_name(uint32_t recurrence)
{
    if (recurrence == RSSM_RECURRENCE_ANY) return recurrence_names[ANY_INDEX];
    return recurrence < ANY_INDEX ? recurrence_names[recurrence] : "?";
}

const char *rssm_backend_name(rssm_backend backend)
{
    return backend == RSSM_CUDA ? "cuda" : "cpu";
}

static rssm_status fail_memory(rssm_loader *l)
{
    return RSSM_FAIL(l->diag, RSSM_E_NO_MEMORY, "no memory for a manifest");
}

// ----------------------------------------------------------------------------------------------------------- identity

// "source" is a file beside the manifest; the manifest keeps its name from the root of the set.
static rssm_status load_source(rssm_loader *l, rssm_json_value root, const char *file)
{
    rssm_status     st;
    rssm_json_value value;
    const char     *text;
    const char     *suffix = l->m->backend == RSSM_CUDA ? ".cu" : ".c";
    const char     *slash = strrchr(file, '/');
    size_t          n;

    RSSM_TRY(rssm_loader_text(l, root, "source", &text));
    RSSM_TRY(rssm_json_need(root, "source", &value, l->diag));
    n = strlen(text);
    if (strchr(text, '/') || n <= strlen(suffix) || strcmp(text + n - strlen(suffix), suffix) != 0) {
        st = rssm_json_fail(value, l->diag, "\"%s\" is not the name of a %s file beside the manifest", text, suffix);
        goto done;
    }
    l->m->source = rssm_arena_printf(l->arena, "%.*s%s", slash ? (int)(slash - file) + 1 : 0, file, text);
    if (!l->m->source) st = fail_memory(l);
done:
    return st;
}

// Cursors are the same for every recurrence; what touches a state is written for one. Probes are free.
static rssm_status check_recurrence(rssm_loader *l, rssm_json_value root)
{
    const rssm_op   op = l->m->op;
    const bool      is_any = l->m->recurrence == RSSM_RECURRENCE_ANY;
    const bool      moves_cursors = op == RSSM_OP_ADVANCE || op == RSSM_OP_SLOTS;
    rssm_status     st;
    rssm_json_value value;

    if (is_any == moves_cursors || op == RSSM_OP_PROBE) return RSSM_OK;
    if ((st = rssm_json_need(root, "recurrence", &value, l->diag)) != RSSM_OK) return st;
    return rssm_json_fail(value, l->diag, moves_cursors ? "op %s is the same for every recurrence: write \"any\""
                                                        : "op %s is written for one recurrence, not \"any\"",
                          rssm_op_name(op));
}

static rssm_status load_identity(rssm_loader *l, rssm_json_value root, const char *file)
{
    rssm_manifest *m = l->m;
    rssm_status    st;
    int64_t        number;
    uint32_t       index;

    RSSM_TRY(rssm_loader_integer(l, root, "schema", RSSM_MANIFEST_SCHEMA, RSSM_MANIFEST_SCHEMA, &number));
    RSSM_TRY(rssm_loader_word(l, root, "name", &m->name));
    RSSM_TRY(rssm_loader_integer(l, root, "version", 1, INT32_MAX, &number));
    m->version = (uint32_t)number;
    RSSM_TRY(rssm_loader_choice(l, root, "op", op_names, &index));
    m->op = (rssm_op)index;
    RSSM_TRY(rssm_loader_choice(l, root, "recurrence", recurrence_names, &index));
    m->recurrence = index == ANY_INDEX ? RSSM_RECURRENCE_ANY : index;
    RSSM_TRY(check_recurrence(l, root));
    RSSM_TRY(rssm_loader_choice(l, root, "backend", backend_names, &index));
    m->backend = index ? RSSM_CUDA : RSSM_CPU;
    RSSM_TRY(load_source(l, root, file));
    RSSM_TRY(rssm_loader_word(l, root, "entry", &m->entry));
    RSSM_TRY(rssm_loader_word(l, root, "args", &m->args));
    st = rssm_loader_text(l, root, "doc", &m->doc);
done:
    return st;
}

// -------------------------------------------------------------------------------------------- tunables, derived values

// The name of a tunable or derived value: in capitals, new, not reserved. It joins the known names.
static rssm_status load_config_name(rssm_loader *l, rssm_json_value object, const char **out_name)
{
    rssm_status     st;
    rssm_json_value value;
    const char     *name;

    RSSM_TRY(rssm_loader_text(l, object, "name", &name));
    RSSM_TRY(rssm_json_need(object, "name", &value, l->diag));
    if (!rssm_loader_is_word(name, true)) {
        st = rssm_json_fail(value, l->diag, "\"%s\" is not a name in capitals, such as ROWS_PER_TASK", name);
        goto done;
    }
    for (size_t i = 0; reserved_names[i]; ++i) {
        if (strcmp(reserved_names[i], name) != 0) continue;
        st = rssm_json_fail(value, l->diag, "CFG_%s is given to every template; choose another name", name);
        goto done;
    }
    if (rssm_loader_knows(l, name)) {
        st = rssm_json_fail(value, l->diag, "the name %s is used twice", name);
        goto done;
    }
    rssm_loader_add_name(l, name);
    *out_name = name;
done:
    return st;
}

static rssm_status load_values(rssm_loader *l, rssm_json_value array, rssm_tunable *tunable)
{
    rssm_status st;
    size_t      count;
    int64_t    *values, value, previous = -1;

    RSSM_TRY(rssm_json_as_array(array, &count, l->diag));
    if (count == 0 || count > RSSM_VALUES_MAX) {
        st = rssm_json_fail(array, l->diag, "expected 1 to %d values; found %zu", RSSM_VALUES_MAX, count);
        goto done;
    }
    values = rssm_arena_alloc(l->arena, count * sizeof *values);
    if (!values) return fail_memory(l);
    for (size_t i = 0; i < count; ++i) {
        RSSM_TRY(rssm_json_as_integer(rssm_json_at(array, i), 0, INT32_MAX, &value, l->diag));
        if (value <= previous) {
            st = rssm_json_fail(rssm_json_at(array, i), l->diag, "values must ascend: %lld comes behind %lld",
                                (long long)value, (long long)previous);
            goto done;
        }
        values[i] = previous = value;
    }
    tunable->values = values;
    tunable->n_values = count;
done:
    return st;
}

static rssm_status load_tunable(rssm_loader *l, rssm_json_value object, rssm_tunable *tunable)
{
    rssm_status     st;
    rssm_json_value value;
    int64_t         number;

    RSSM_TRY(rssm_json_as_object(object, l->diag));
    RSSM_TRY(rssm_json_only_keys(object, tunable_keys, l->diag));
    RSSM_TRY(load_config_name(l, object, &tunable->name));
    RSSM_TRY(rssm_json_need(object, "values", &value, l->diag));
    RSSM_TRY(load_values(l, value, tunable));
    RSSM_TRY(rssm_loader_text(l, object, "doc", &tunable->doc));
    RSSM_TRY(rssm_json_need(object, "default", &value, l->diag));
    RSSM_TRY(rssm_json_as_integer(value, 0, INT32_MAX, &number, l->diag));
    for (size_t i = 0; i < tunable->n_values; ++i) {
        if (tunable->values[i] != number) continue;
        tunable->default_index = i;
        return RSSM_OK;
    }
    st = rssm_json_fail(value, l->diag, "the default %lld is not among the values of %s", (long long)number,
                        tunable->name);
done:
    return st;
}

static rssm_status load_derived(rssm_loader *l, rssm_json_value object, rssm_derived *derived)
{
    rssm_status     st;
    rssm_json_value value;

    RSSM_TRY(rssm_json_as_object(object, l->diag));
    RSSM_TRY(rssm_json_only_keys(object, derived_keys, l->diag));
    RSSM_TRY(rssm_json_need(object, "expr", &value, l->diag));
    RSSM_TRY(rssm_loader_expr(l, value, false, &derived->expr));
    st = load_config_name(l, object, &derived->name); // last: it must not name itself
done:
    return st;
}

static rssm_status load_constraint(rssm_loader *l, rssm_json_value object, rssm_constraint *constraint)
{
    rssm_status st;

    RSSM_TRY(rssm_json_as_object(object, l->diag));
    RSSM_TRY(rssm_json_only_keys(object, constraint_keys, l->diag));
    RSSM_TRY(rssm_loader_member_expr(l, object, "expr", false, &constraint->expr));
    st = rssm_loader_text(l, object, "why", &constraint->why);
done:
    return st;
}

// An optional array of at most `limit` objects: allocates `size` bytes for each. *out_items stays NULL if absent.
static rssm_status load_array(rssm_loader *l, rssm_json_value root, const char *key, size_t limit, size_t size,
                              rssm_json_value *out_array, void **out_items, size_t *out_count)
{
    rssm_status st;
    size_t      count;

    *out_count = 0;
    if (!rssm_json_get(root, key, out_array)) return RSSM_OK;
    RSSM_TRY(rssm_json_as_array(*out_array, &count, l->diag));
    if (count > limit) {
        st = rssm_json_fail(*out_array, l->diag, "at most %zu entries are allowed; found %zu", limit, count);
        goto done;
    }
    *out_items = rssm_arena_alloc(l->arena, count ? count * size : 1);
    if (!*out_items) return fail_memory(l);
    *out_count = count;
done:
    return st;
}

static rssm_status load_space(rssm_loader *l, rssm_json_value root)
{
    rssm_manifest  *m = l->m;
    rssm_status     st;
    rssm_json_value array = {0};
    void           *items = NULL;

    RSSM_TRY(load_array(l, root, "tunables", RSSM_TUNABLES_MAX, sizeof(rssm_tunable), &array, &items, &m->n_tunables));
    m->tunables = items;
    for (size_t i = 0; i < m->n_tunables; ++i) {
        RSSM_TRY(load_tunable(l, rssm_json_at(array, i), (rssm_tunable *)items + i));
    }
    RSSM_TRY(load_array(l, root, "derived", RSSM_DERIVED_MAX, sizeof(rssm_derived), &array, &items, &m->n_derived));
    m->derived = items;
    for (size_t i = 0; i < m->n_derived; ++i) {
        RSSM_TRY(load_derived(l, rssm_json_at(array, i), (rssm_derived *)items + i));
    }
    RSSM_TRY(load_array(l, root, "constraints", RSSM_CONSTRAINTS_MAX, sizeof(rssm_constraint), &array, &items,
                        &m->n_constraints));
    m->constraints = items;
    for (size_t i = 0; i < m->n_constraints; ++i) {
        RSSM_TRY(load_constraint(l, rssm_json_at(array, i), (rssm_constraint *)items + i));
    }
done:
    return st;
}

// ------------------------------------------------------------------------------------------------ launch and the rest

static rssm_status load_align(rssm_loader *l, rssm_json_value root)
{
    rssm_manifest  *m = l->m;
    uint32_t *const fields[] = {&m->align_state, &m->align_rings, &m->align_activations};
    rssm_status     st;
    rssm_json_value object, value;
    int64_t         number;

    m->align_state = m->align_rings = m->align_activations = 1;
    if (!rssm_json_get(root, "align", &object)) return RSSM_OK;
    RSSM_TRY(rssm_json_as_object(object, l->diag));
    RSSM_TRY(rssm_json_only_keys(object, align_keys, l->diag));
    for (size_t i = 0; align_keys[i]; ++i) {
        if (!rssm_json_get(object, align_keys[i], &value)) continue;
        RSSM_TRY(rssm_json_as_integer(value, 1, 256, &number, l->diag));
        if (number & (number - 1)) {
            st = rssm_json_fail(value, l->diag, "%lld is not a power of two", (long long)number);
            goto done;
        }
        *fields[i] = (uint32_t)number;
    }
done:
    return st;
}

static rssm_status load_launch(rssm_loader *l, rssm_json_value root)
{
    rssm_manifest  *m = l->m;
    rssm_status     st;
    rssm_json_value object;

    RSSM_TRY(rssm_json_need(root, "launch", &object, l->diag));
    RSSM_TRY(rssm_json_as_object(object, l->diag));
    RSSM_TRY(rssm_json_only_keys(object, launch_keys, l->diag));
    RSSM_TRY(rssm_loader_triple(l, object, "grid", true, m->grid));
    RSSM_TRY(rssm_loader_triple(l, object, "block", false, m->block));
    RSSM_TRY(rssm_loader_bytes(l, object, "shared_bytes", &m->shared_bytes));
    RSSM_TRY(rssm_loader_bytes(l, root, "scratch_bytes_per_row", &m->scratch_bytes_per_row));
    if (rssm_json_get(root, "cost", &object)) {
        RSSM_TRY(rssm_json_as_object(object, l->diag));
        RSSM_TRY(rssm_json_only_keys(object, cost_keys, l->diag));
        RSSM_TRY(rssm_loader_member_expr(l, object, "replay_bytes", true, &m->replay_bytes));
    }
done:
    return st;
}

static rssm_status load_rest(rssm_loader *l, rssm_json_value root)
{
    rssm_manifest  *m = l->m;
    rssm_status     st;
    rssm_json_value value;

    m->serves = rssm_serves_everything();
    m->spill_limit_bytes = m->register_limit = -1;
    if (rssm_json_get(root, "serves", &value)) {
        if (m->recurrence == RSSM_RECURRENCE_ANY) {
            st = rssm_json_fail(value, l->diag, "a template for any recurrence serves every problem: leave it out");
            goto done;
        }
        RSSM_TRY(rssm_serves_load(value, &m->serves, l->diag));
    }
    RSSM_TRY(load_align(l, root));
    if (rssm_json_get(root, "limits", &value)) {
        RSSM_TRY(rssm_json_as_object(value, l->diag));
        RSSM_TRY(rssm_json_only_keys(value, limit_keys, l->diag));
        RSSM_TRY(rssm_loader_optional(l, value, "spill_bytes", 0, INT32_MAX, &m->spill_limit_bytes));
        RSSM_TRY(rssm_loader_optional(l, value, "registers", 1, 255, &m->register_limit));
    }
    st = RSSM_OK;
    if (rssm_json_get(root, "builtin", &value)) {
        RSSM_TRY(rssm_json_as_bool(value, &m->is_builtin, l->diag));
        if (m->is_builtin && m->backend != RSSM_CPU) {
            st = rssm_json_fail(value, l->diag, "only cpu templates are built into the library");
        }
    }
done:
    return st;
}

static void add_fact_names(rssm_loader *l)
{
    const char *const *names = rssm_device_fact_names(l->m->backend);

    for (size_t i = 0; names[i]; ++i)
        rssm_loader_add_name(l, names[i]);
    if (l->m->recurrence == RSSM_RECURRENCE_ANY) return; // launched for no problem in particular
    names = rssm_problem_fact_names();
    for (size_t i = 0; names[i]; ++i)
        rssm_loader_add_name(l, names[i]);
}

rssm_status rssm_manifest_load(const char *text, size_t n, const char *file, rssm_arena *arena,
                               const rssm_manifest **out_manifest, rssm_diag *diag)
{
    rssm_status     st;
    rssm_json      *document = NULL;
    rssm_json_value root;
    rssm_loader     l = {.arena = arena, .diag = diag};

    l.m = rssm_arena_alloc(arena, sizeof *l.m);
    if (!l.m) return fail_memory(&l);
    RSSM_TRY(rssm_json_parse(text, n, file, RSSM_E_MANIFEST, &document, diag));
    root = rssm_json_root(document);
    RSSM_TRY(rssm_json_as_object(root, diag));
    RSSM_TRY(rssm_json_only_keys(root, root_keys, diag));
    l.m->file = rssm_arena_strndup(arena, file, strlen(file));
    if (!l.m->file) {
        st = fail_memory(&l);
        goto done;
    }
    RSSM_TRY(load_identity(&l, root, file));
    add_fact_names(&l);
    RSSM_TRY(load_space(&l, root));
    RSSM_TRY(load_launch(&l, root));
    RSSM_TRY(load_rest(&l, root));
    *out_manifest = l.m;
done:
    rssm_json_free(document);
    return st;
}
