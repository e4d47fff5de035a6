#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/gen/fixture.h"

static rssm_status load(const char *text, rssm_arena *arena, const rssm_manifest **out_manifest, rssm_diag *diag)
{
    return rssm_manifest_load(text, strlen(text), "cpu/scale/scale.json", arena, out_manifest, diag);
}

Test(manifest, reads_everything)
{
    rssm_arena           arena = {0};
    rssm_diag            diag = {0};
    char                *text = fixture_text("cpu/scale/scale.json", NULL, NULL);
    const rssm_manifest *m = NULL;

    cr_assert_eq(load(text, &arena, &m, &diag), RSSM_OK, "%s", diag.text);
    rssm_free(text); // nothing of the text is kept
    cr_expect_str_eq(m->file, "cpu/scale/scale.json");
    cr_expect_str_eq(m->name, "scale_rows");
    cr_expect_eq(m->version, 3);
    cr_expect_eq(m->op, RSSM_OP_STEP);
    cr_expect_eq(m->recurrence, RSSM_MAMBA2);
    cr_expect_eq(m->backend, RSSM_CPU);
    cr_expect_str_eq(m->source, "cpu/scale/scale.c");
    cr_expect_str_eq(m->entry, "scale_rows");
    cr_expect_str_eq(m->args, "scale_args");
    cr_expect_eq(m->serves.checkpoint_modes, 1u << RSSM_CHECKPOINT_SHARED);
    cr_expect_eq(m->serves.checkpoint_dtypes, 1u << RSSM_F32 | 1u << RSSM_BF16);
    cr_expect_eq(m->serves.activation_dtypes, 1u << RSSM_F32 | 1u << RSSM_BF16 | 1u << RSSM_F16);
    cr_expect_eq(m->serves.roundings, 1u << RSSM_NEAREST);
    cr_expect_eq(m->serves.head_dim.low, 8);
    cr_expect_eq(m->serves.head_dim.high, 256);
    cr_assert_eq(m->n_tunables, 2);
    cr_expect_str_eq(m->tunables[0].name, "ROWS");
    cr_expect_str_eq(m->tunables[0].doc, "rows of a task");
    cr_expect_eq(m->tunables[0].n_values, 3);
    cr_expect_eq(m->tunables[0].values[2], 16);
    cr_expect_eq(m->tunables[0].default_index, 1);
    cr_expect_eq(m->tunables[1].values[0], 0);
    cr_assert_eq(m->n_derived, 2);
    cr_expect_str_eq(m->derived[1].name, "TASKS");
    cr_expect_str_eq(rssm_expr_text(m->derived[1].expr), "ceil_div(heads, ROWS)");
    cr_assert_eq(m->n_constraints, 4);
    cr_expect_str_eq(m->constraints[1].why, "vectors fill the rows");
    cr_expect_eq(m->align_state, 16);
    cr_expect_eq(m->align_rings, 1);
    cr_expect_eq(m->align_activations, 4);
    cr_expect_str_eq(rssm_expr_text(m->grid[0]), "rows * TASKS");
    cr_expect_eq(m->spill_limit_bytes, -1);
    cr_expect(m->is_builtin);
    rssm_arena_free(&arena);
}

// One change to the fixture's manifest, and what the message must hold.
typedef struct bad_manifest {
    const char *from, *to, *path, *message;
} bad_manifest;

static const bad_manifest bad_manifests[] = {
    // The document.
    {"{\n  \"schema\"", "\"schema\"", "cpu/scale/scale.json", ""},
    {"\"schema\": 1", "\"schema\": 2", "$.schema", "1"},
    {"\"schema\": 1", "\"schema\": \"1\"", "$.schema", ""},
    {"\"version\": 3", "\"version\": 0", "$.version", ""},
    {"\"version\": 3,", "", "$", "version"},
    {"\"doc\": \"A small template for tests.\",\n  \"serves\"", "\"serves\"", "$", "doc"},
    {"A small template for tests.", "", "$.doc", "empty"},
    {"\"version\": 3", "\"verison\": 3", "$", "did you mean"},
    // Identity.
    {"\"name\": \"scale_rows\"", "\"name\": \"scale rows\"", "$.name", "identifier"},
    {"\"op\": \"step\"", "\"op\": \"stepp\"", "$.op", "\"step\""},
    {"\"op\": \"step\"", "\"op\": \"advance\"", "$.recurrence", "any"},
    {"\"op\": \"step\"", "\"op\": \"slots\"", "$.recurrence", "any"},
    {"\"op\": \"step\"", "\"op\": \"reset\"", "$.op", ""},
    {"\"recurrence\": \"mamba2\"", "\"recurrence\": \"mamba\"", "$.recurrence", "\"mamba2\""},
    {"\"recurrence\": \"mamba2\"", "\"recurrence\": \"any\"", "$.recurrence", "one recurrence"},
    {"\"backend\": \"cpu\"", "\"backend\": \"gpu\"", "$.backend", "\"cpu\""},
    {"\"source\": \"scale.c\"", "\"source\": \"scale.cu\"", "$.source", ".c file"},
    {"\"source\": \"scale.c\"", "\"source\": \"../scale.c\"", "$.source", "beside"},
    {"\"entry\": \"scale_rows\"", "\"entry\": \"7rows\"", "$.entry", "identifier"},
    {"\"args\": \"scale_args\"", "\"args\": \"struct scale_args\"", "$.args", "identifier"},
    // What it serves.
    {"[\"shared\"]", "[\"shard\"]", "$.serves.checkpoint_mode[0]", "\"shared\""},
    {"[\"shared\"]", "[\"shared\", \"shared\"]", "$.serves.checkpoint_mode[1]", "twice"},
    {"[\"shared\"]", "[]", "$.serves.checkpoint_mode", "serves nothing"},
    {"[\"f32\", \"bf16\"]", "[\"f32\", \"float\"]", "$.serves.checkpoint_dtype[1]", "unknown checkpoint_dtype"},
    {"\"max_tokens\": [1, 1]", "\"max_tokens\": [1]", "$.serves.max_tokens", "range"},
    {"\"max_tokens\": [1, 1]", "\"max_tokens\": [2, 1]", "$.serves.max_tokens[1]", ""},
    {"\"max_tokens\"", "\"max_token\"", "$.serves", "max_tokens"},
    // Tunables.
    {"\"name\": \"ROWS\"", "\"name\": \"rows\"", "$.tunables[0].name", "capitals"},
    {"\"name\": \"ROWS\"", "\"name\": \"WINDOW\"", "$.tunables[0].name", "given to every template"},
    {"\"name\": \"VEC\"", "\"name\": \"ROWS\"", "$.tunables[1].name", "twice"},
    {"[4, 8, 16]", "[4, 16, 8]", "$.tunables[0].values[2]", "ascend"},
    {"[4, 8, 16]", "[4, 8, 8]", "$.tunables[0].values[2]", "ascend"},
    {"[4, 8, 16]", "[-4, 8, 16]", "$.tunables[0].values[0]", ""},
    {"[4, 8, 16]", "[4, 8.5, 16]", "$.tunables[0].values[1]", ""},
    {"[4, 8, 16]", "[]", "$.tunables[0].values", "1 to 64"},
    {"\"default\": 8", "\"default\": 9", "$.tunables[0].default", "not among the values of ROWS"},
    {"\"default\": 8,", "", "$.tunables[0]", "default"},
    // Expressions and their names.
    {"\"ROWS * head_dim\"", "\"ROWS * head_dmi\"", "$.derived[0].expr", "did you mean 'head_dim'?"},
    {"\"ROWS * head_dim\"", "\"ROWS * TASKS\"", "$.derived[0].expr", "unknown name 'TASKS'"},
    {"\"ROWS * head_dim\"", "\"TASK_ELEMENTS\"", "$.derived[0].expr", "unknown name 'TASK_ELEMENTS'"},
    {"\"ROWS * head_dim\"", "\"ROWS *\"", "$.derived[0].expr", "column 7"},
    {"\"ROWS * head_dim\"", "\"rows * head_dim\"", "$.derived[0].expr", "rows may appear"},
    {"\"ROWS * head_dim\"", "7", "$.derived[0].expr", ""},
    {"\"name\": \"TASKS\"", "\"name\": \"VEC\"", "$.derived[1].name", "twice"},
    {"dev.vector_bytes", "dev.shared_optin", "$.constraints[3].expr", "unknown name 'dev.shared_optin'"},
    {"\"expr\": \"VEC > 0\"", "\"expr\": \"VEC > rows\"", "$.constraints[0].expr", "rows may appear"},
    {"\"why\": \"no partial vector\"", "\"why\": \"\"", "$.constraints[2].why", "empty"},
    {", \"why\": \"no partial vector\"", "", "$.constraints[2]", "why"},
    // Launch and the rest.
    {"\"rows * TASKS\"", "\"rows * TASK\"", "$.launch.grid[0]", "did you mean 'TASKS'?"},
    {"[\"rows * TASKS\", \"1\", \"1\"]", "[\"rows * TASKS\", \"1\"]", "$.launch.grid", "three"},
    {"\"block\": [\"1\", \"1\", \"1\"]", "\"block\": [\"1\", \"rows\", \"1\"]", "$.launch.block[1]", "rows may appear"},
    {"\"shared_bytes\": \"0\"", "\"shared_bytes\": \"rows\"", "$.launch.shared_bytes", "rows may appear"},
    {"\"scratch_bytes_per_row\": \"4 * head_dim\"", "\"scratch_bytes_per_row\": \"rows\"", "$.scratch_bytes_per_row",
     "rows may appear"},
    {"\"replay_bytes\": \"rows", "\"replay_bytes\": \"row", "$.cost.replay_bytes", "unknown name 'row'"},
    {"\"state\": 16", "\"state\": 12", "$.align.state", "power of two"},
    {"\"state\": 16", "\"states\": 16", "$.align", "state"},
    {"\"builtin\": true", "\"limits\": {\"registers\": 256}", "$.limits.registers", ""},
    {"\"builtin\": true", "\"builtin\": 1", "$.builtin", ""},
};

Test(manifest, refuses_with_the_path)
{
    for (size_t i = 0; i < sizeof bad_manifests / sizeof bad_manifests[0]; ++i) {
        const bad_manifest  *bad = &bad_manifests[i];
        rssm_arena           arena = {0};
        rssm_diag            diag = {0};
        const rssm_manifest *m = NULL;
        char                *text = fixture_text("cpu/scale/scale.json", bad->from, bad->to);
        char                 place[128];

        cr_expect_eq(load(text, &arena, &m, &diag), RSSM_E_MANIFEST, "%s -> %s was taken", bad->from, bad->to);
        cr_expect_null(m);
        snprintf(place, sizeof place, bad->path[0] == '$' ? "cpu/scale/scale.json: %s:" : "%s", bad->path);
        cr_expect(strstr(diag.text, place), "%s -> %s: no \"%s\" in: %s", bad->from, bad->to, place, diag.text);
        cr_expect(strstr(diag.text, bad->message), "%s -> %s: no \"%s\" in: %s", bad->from, bad->to, bad->message,
                  diag.text);
        rssm_free(text);
        rssm_arena_free(&arena);
    }
}

// Cursors belong to no recurrence, states do; a probe may be either.
Test(manifest, recurrence_of_every_op)
{
    static const struct {
        const char *op;
        bool        takes_any, takes_one;
    } ops[] = {
        {"advance", true, false}, {"slots", true, false}, {"step", false, true},  {"materialize", false, true},
        {"copy", false, true},    {"encode", false, true}, {"decode", false, true}, {"probe", true, true},
    };
    static const char format[] =
        "{\"schema\": 1, \"name\": \"a\", \"version\": 1, \"op\": \"%s\", \"recurrence\": \"%s\", "
        "\"backend\": \"cpu\", \"source\": \"a.c\", \"entry\": \"a\", \"args\": \"t\", \"doc\": \"d\", "
        "\"launch\": {\"grid\": [\"1\", \"1\", \"1\"], \"block\": [\"1\", \"1\", \"1\"], \"shared_bytes\": \"0\"}, "
        "\"scratch_bytes_per_row\": \"0\"}";

    for (size_t i = 0; i < 2 * (sizeof ops / sizeof ops[0]); ++i) {
        const bool           is_any = i % 2 == 0;
        const bool           is_good = is_any ? ops[i / 2].takes_any : ops[i / 2].takes_one;
        char                 text[1024];
        rssm_arena           arena = {0};
        rssm_diag            diag = {0};
        const rssm_manifest *m = NULL;
        snprintf(text, sizeof text, format, ops[i / 2].op, is_any ? "any" : "mamba2");
        cr_expect_eq(load(text, &arena, &m, &diag), is_good ? RSSM_OK : RSSM_E_MANIFEST, "%s %d: %s", ops[i / 2].op,
                     is_any, diag.text);
        rssm_arena_free(&arena);
    }
}

// Templates for any recurrence are launched for no problem in particular.
Test(manifest, any_recurrence)
{
    static const char format[] =
        "{\"schema\": 1, \"name\": \"advance\", \"version\": 1, \"op\": \"advance\", "
        "\"recurrence\": \"any\", \"backend\": \"cpu\", \"source\": \"a.c\", \"entry\": \"a\", "
        "\"args\": \"t\", \"doc\": \"d\", %s \"launch\": {\"grid\": [\"%s\", \"1\", \"1\"], "
        "\"block\": [\"1\", \"1\", \"1\"], \"shared_bytes\": \"0\"}, "
        "\"scratch_bytes_per_row\": \"0\"}";
    char                 text[1024];
    rssm_arena           arena = {0};
    rssm_diag            diag = {0};
    const rssm_manifest *m = NULL;
    const rssm_problem   problem = fixture_problem();

    snprintf(text, sizeof text, format, "", "1");
    cr_assert_eq(load(text, &arena, &m, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_eq(m->recurrence, RSSM_RECURRENCE_ANY);
    cr_expect_eq(rssm_manifest_serves(m, &problem, &diag), RSSM_OK);
    snprintf(text, sizeof text, format, "", "heads");
    cr_expect_eq(load(text, &arena, &m, &diag), RSSM_E_MANIFEST);
    cr_expect(strstr(diag.text, "$.launch.grid[0]"), "%s", diag.text);
    snprintf(text, sizeof text, format, "\"serves\": {},", "1");
    cr_expect_eq(load(text, &arena, &m, &diag), RSSM_E_MANIFEST);
    cr_expect(strstr(diag.text, "$.serves"), "%s", diag.text);
    rssm_arena_free(&arena);
}

Test(manifest, serves)
{
    static const struct {
        size_t      offset;
        uint32_t    value;
        const char *message;
    } changes[] = {
        {offsetof(rssm_problem, recurrence), RSSM_GDN, "serves the recurrence mamba2, not gdn"},
        {offsetof(rssm_problem, checkpoint_mode), RSSM_CHECKPOINT_SEPARATE,
         "checkpoint_mode separate; it serves shared"},
        {offsetof(rssm_problem, checkpoint_dtype), RSSM_FP8_E4M3, "checkpoint_dtype fp8; it serves f32, bf16"},
        {offsetof(rssm_problem, activation_dtype), RSSM_INT8, "activation_dtype int8; it serves f32, bf16, f16"},
        {offsetof(rssm_problem, activation_dtype), 77, "activation_dtype ?"},
        {offsetof(rssm_problem, rounding), RSSM_STOCHASTIC, "rounding stochastic; it serves nearest"},
        {offsetof(rssm_problem, max_tokens), 4, "max_tokens 1 to 1, not 4"},
        {offsetof(rssm_problem, head_dim), 7, "head_dim 8 to 256, not 7"},
        {offsetof(rssm_problem, head_dim), 257, "head_dim 8 to 256, not 257"},
        {offsetof(rssm_problem, state_size), 8, "state_size 16 to 256, not 8"},
        {offsetof(rssm_problem, n_heads), 256, "group_size 1 to 64, not 128"},
        {offsetof(rssm_problem, window), 65, "window 1 to 64, not 65"},
    };
    rssm_template_set   *set = fixture_open(NULL, NULL, NULL);
    const rssm_manifest *m = rssm_template_set_find(set, "scale_rows");
    rssm_problem         problem = fixture_problem();
    rssm_diag            diag = {0};

    cr_assert_not_null(m);
    cr_expect_eq(rssm_manifest_serves(m, &problem, &diag), RSSM_OK, "%s", diag.text);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; ++i) {
        problem = fixture_problem();
        *(uint32_t *)((char *)&problem + changes[i].offset) = changes[i].value;
        cr_expect_eq(rssm_manifest_serves(m, &problem, &diag), RSSM_E_UNSUPPORTED, "case %zu", i);
        cr_expect(strstr(diag.text, changes[i].message), "case %zu: %s", i, diag.text);
    }
    rssm_template_set_close(set);
}

Test(manifest, survives_every_failed_allocation)
{
    char *text = fixture_text("cpu/scale/scale.json", NULL, NULL);
    long  n_failures = 0;

    for (long n = 1; n < 10000; ++n) {
        rssm_arena           arena = {0};
        rssm_diag            diag = {0};
        const rssm_manifest *m = NULL;
        rssm_status          st;

        rssm_alloc_fail_after(n);
        st = load(text, &arena, &m, &diag);
        const bool has_failed = rssm_alloc_fail_after(0);
        rssm_arena_free(&arena);
        if (!has_failed) {
            cr_expect_eq(st, RSSM_OK);
            break;
        }
        n_failures++;
        cr_expect_eq(st, RSSM_E_NO_MEMORY, "allocation %ld: status %d: %s", n, st, diag.text);
    }
    cr_expect_gt(n_failures, 10);
    rssm_free(text);
}
