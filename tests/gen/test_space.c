#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/gen/fixture.h"

static const rssm_manifest *find(const rssm_template_set *set, const char *name)
{
    const rssm_manifest *m = rssm_template_set_find(set, name);

    cr_assert_not_null(m, "%s", name);
    return m;
}

static const char *config_text(const rssm_config *config, rssm_str *buffer)
{
    rssm_str_clear(buffer);
    rssm_config_text(config, buffer);
    return rssm_str_c(buffer);
}

// Index, config and text are three names of one thing, over the whole raw space.
Test(space, numbering_is_a_bijection)
{
    rssm_template_set   *set = fixture_open(NULL, NULL, NULL);
    const rssm_manifest *m = find(set, "scale_rows");
    rssm_str             text = {0};
    rssm_config          previous = {0};

    cr_assert_eq(rssm_space_size(m), 18);
    for (uint64_t i = 0; i < rssm_space_size(m); ++i) {
        const rssm_config config = rssm_space_at(m, i);
        rssm_config       parsed = {0};
        rssm_diag         diag = {0};
        cr_expect_eq(rssm_space_index(&config), i);
        cr_expect_not(rssm_config_equal(&config, &previous));
        cr_expect_eq(rssm_config_parse(m, config_text(&config, &text), &parsed, &diag), RSSM_OK, "%s", diag.text);
        cr_expect(rssm_config_equal(&config, &parsed), "%s", rssm_str_c(&text));
        previous = config;
    }
    previous = rssm_space_at(m, 1);
    cr_expect_str_eq(config_text(&previous, &text), "ROWS=4 VEC=1", "the last tunable is the fastest");
    rssm_str_free(&text);
    rssm_template_set_close(set);
}

Test(space, text)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"", "no value for ROWS"},
        {"ROWS=8", "no value for VEC"},
        {"ROWS=8 VEC=4 ROWS=8", "ROWS is given twice"},
        {"ROWS=8 VEC=0 VEC=0", "VEC is given twice"},
        {"ROWS=7 VEC=4", "ROWS cannot be 7; its values are 4, 8, 16"},
        {"ROWS=08 VEC=4", "ROWS cannot be 08"},
        {"ROWS= VEC=4", "ROWS cannot be ;"},
        {"ROWS VEC=4", "\"ROWS\" is not NAME=VALUE"},
        {"ROW=8 VEC=4", "no tunable ROW; did you mean ROWS?"},
        {"ROWS=8 VEC=4 WARPS=1", "no tunable WARPS"},
    };
    rssm_template_set   *set = fixture_open(NULL, NULL, NULL);
    const rssm_manifest *m = find(set, "scale_rows");
    rssm_config          config = rssm_config_default(m), parsed;
    rssm_str             text = {0};
    rssm_diag            diag = {0};

    cr_expect_str_eq(config_text(&config, &text), "ROWS=8 VEC=4");
    cr_expect_eq(rssm_config_parse(m, "  VEC=4\tROWS=8 ", &parsed, &diag), RSSM_OK, "%s", diag.text);
    cr_expect(rssm_config_equal(&config, &parsed));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        cr_expect_eq(rssm_config_parse(m, bad[i].text, &parsed, &diag), RSSM_E_INVALID_ARGUMENT, "%s", bad[i].text);
        cr_expect(strstr(diag.text, bad[i].message), "\"%s\": %s", bad[i].text, diag.text);
    }
    cr_expect(rssm_config_equal(&config, &parsed), "a failure wrote the result");
    rssm_str_free(&text);
    rssm_template_set_close(set);
}

Test(space, every_constraint_rejects_with_its_reason)
{
    static const struct {
        const char *config;
        uint32_t    head_dim;
        int64_t     vector_bytes;
        const char *message;
    } cases[] = {
        {"ROWS=8 VEC=0", 64, 32, "rejected: VEC > 0 (a vector holds something)"},
        {"ROWS=8 VEC=16", 64, 64, "rejected: ROWS % VEC == 0 (vectors fill the rows)"},
        {"ROWS=8 VEC=8", 68, 32, "rejected: head_dim % VEC == 0 (no partial vector)"},
        {"ROWS=8 VEC=8", 64, 16, "rejected: VEC * 4 <= dev.vector_bytes (a vector is a register)"},
    };
    rssm_template_set   *set = fixture_open(NULL, NULL, NULL);
    const rssm_manifest *m = find(set, "scale_rows");

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        rssm_problem problem = fixture_problem();
        rssm_facts   facts;
        rssm_config  config;
        rssm_diag    diag = {0};
        problem.head_dim = cases[i].head_dim;
        facts = fixture_facts(&problem);
        rssm_facts_set(&facts, "dev.vector_bytes", cases[i].vector_bytes);
        cr_assert_eq(rssm_config_parse(m, cases[i].config, &config, &diag), RSSM_OK, "%s", diag.text);
        cr_expect_eq(rssm_config_check(&config, &facts, &diag), RSSM_E_UNSUPPORTED);
        cr_expect_str_eq(diag.text, cases[i].message);
    }
    rssm_template_set_close(set);
}

// The written-out constraints of the fixture.
static bool is_valid(const rssm_config *config, uint32_t head_dim, int64_t vector_bytes)
{
    const int64_t rows = config->values[0], vec = config->values[1];

    return vec > 0 && rows % vec == 0 && head_dim % vec == 0 && vec * 4 <= vector_bytes;
}

Test(space, iteration_yields_exactly_the_valid_configs)
{
    static const uint32_t head_dims[] = {8, 36, 64, 97, 128};
    rssm_template_set    *set = fixture_open(NULL, NULL, NULL);
    const rssm_manifest  *m = find(set, "scale_rows");

    for (size_t i = 0; i < sizeof head_dims / sizeof head_dims[0]; ++i) {
        for (int64_t vector_bytes = 2; vector_bytes <= 64; vector_bytes *= 2) {
            rssm_problem problem = fixture_problem();
            rssm_facts   facts;
            rssm_config  config;
            uint64_t     cursor = 0, next = 0;
            problem.head_dim = head_dims[i];
            facts = fixture_facts(&problem);
            rssm_facts_set(&facts, "dev.vector_bytes", vector_bytes);
            while (rssm_space_next(m, &facts, &cursor, &config)) {
                const uint64_t index = rssm_space_index(&config);
                cr_expect(is_valid(&config, head_dims[i], vector_bytes));
                cr_expect_geq(index, next, "out of order");
                for (; next < index; ++next) { // those in between were left out for a reason
                    const rssm_config skipped = rssm_space_at(m, next);
                    cr_expect_not(is_valid(&skipped, head_dims[i], vector_bytes));
                }
                ++next;
            }
            for (; next < rssm_space_size(m); ++next) {
                const rssm_config skipped = rssm_space_at(m, next);
                cr_expect_not(is_valid(&skipped, head_dims[i], vector_bytes));
            }
            cr_expect_eq(cursor, rssm_space_size(m));
        }
    }
    rssm_template_set_close(set);
}

Test(space, neighbours_are_one_step_away_and_mutual)
{
    rssm_template_set   *set = fixture_open(NULL, NULL, NULL);
    const rssm_manifest *m = find(set, "scale_rows");

    for (uint64_t i = 0; i < rssm_space_size(m); ++i) {
        const rssm_config config = rssm_space_at(m, i);
        rssm_config       near[RSSM_NEIGHBOURS_MAX], back[RSSM_NEIGHBOURS_MAX];
        const size_t      n = rssm_config_neighbours(&config, near);
        cr_expect(n >= 2 && n <= 4);
        for (size_t j = 0; j < n; ++j) {
            const size_t n_back = rssm_config_neighbours(&near[j], back);
            int          n_different = 0;
            bool         is_mutual = false;
            for (size_t k = 0; k < m->n_tunables; ++k)
                n_different += near[j].values[k] != config.values[k];
            for (size_t k = 0; k < n_back; ++k)
                is_mutual = is_mutual || rssm_config_equal(&back[k], &config);
            cr_expect_eq(n_different, 1);
            cr_expect(is_mutual);
        }
    }
    rssm_template_set_close(set);
}

Test(space, launch)
{
    rssm_template_set *set = fixture_open(NULL, NULL, NULL);
    const rssm_problem problem = fixture_problem();
    rssm_facts         facts = fixture_facts(&problem);
    rssm_config        config = rssm_config_default(find(set, "scale_rows"));
    rssm_launch        launch;
    rssm_diag          diag = {0};
    int64_t            bytes = 0;

    cr_assert_eq(rssm_launch_plan(&config, &facts, &launch, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_eq(launch.grid[0].constant, 0);
    cr_expect_eq(launch.grid[0].per_row, 2);
    cr_expect_eq(launch.grid[1].constant, 1);
    cr_expect_eq(launch.grid[1].per_row, 0);
    cr_expect_eq(launch.scratch_bytes_per_row, 256);
    cr_expect_eq(rssm_config_replay_bytes(&config, &facts, 3, &bytes, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_eq(bytes, 3 * 16 * 64 * 8);

    config = rssm_config_default(find(set, "scale_elements"));
    cr_assert_eq(rssm_launch_plan(&config, &facts, &launch, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_eq(launch.grid[0].constant, 16);
    cr_expect_eq(launch.grid[1].per_row, 1);
    cr_expect_eq(launch.block[0], 64);
    cr_expect_eq(rssm_config_replay_bytes(&config, &facts, 3, &bytes, &diag), RSSM_E_NOT_FOUND);
    rssm_template_set_close(set);
}

Test(space, launch_refuses)
{
    static const struct {
        const char *file, *from, *to;
        rssm_status status;
        const char *message;
    } cases[] = {
        {"cpu/scale/scale.json", "rows * TASKS", "rows * rows", RSSM_E_MANIFEST, "not linear in rows"},
        {"cpu/scale/scale.json", "rows * TASKS", "ceil_div(rows, 2)", RSSM_E_MANIFEST, "not linear in rows"},
        {"cpu/scale/scale.json", "rows * TASKS", "min(rows, 3)", RSSM_E_MANIFEST, "not linear in rows"},
        {"cpu/scale/scale.json", "rows * TASKS", "8 - rows", RSSM_E_UNSUPPORTED, "shrink"},
        {"cpu/scale/scale.json", "rows * TASKS", "rows - 1", RSSM_E_UNSUPPORTED, "negative"},
        {"cpu/scale/scale.json", "rows * TASKS", "0", RSSM_E_UNSUPPORTED, "empty for one row"},
        {"cpu/scale/scale.json", "rows * TASKS", "rows * 3000000000", RSSM_E_UNSUPPORTED, "31 bits"},
        {"cpu/scale/scale.json", "rows * TASKS", "rows / (ROWS - 8)", RSSM_E_UNSUPPORTED, "division by zero"},
        {"cpu/scale/scale.json", "TASKS\", \"1\", \"1\"", "TASKS\", \"rows\", \"1\"", RSSM_E_MANIFEST, "grid.y"},
        {"cpu/scale/scale.json", "\"block\": [\"1\"", "\"block\": [\"2\"", RSSM_E_MANIFEST, "block.x"},
        {"cpu/scale/scale.json", "4 * head_dim", "0 - head_dim", RSSM_E_UNSUPPORTED, "scratch_bytes_per_row"},
        {"cuda/scale/scale.json", "\"block\": [\"THREADS\"", "\"block\": [\"0\"", RSSM_E_UNSUPPORTED, "block.x"},
        {"cuda/scale/scale.json", "\"block\": [\"THREADS\"", "\"block\": [\"2000\"", RSSM_E_UNSUPPORTED, "1..1024"},
        {"cuda/scale/scale.json", "[\"THREADS\", \"1\"", "[\"THREADS\", \"32\"", RSSM_E_UNSUPPORTED, "2048 threads"},
        {"cuda/scale/scale.json", "\"shared_bytes\": \"0\"", "\"shared_bytes\": \"1025\"", RSSM_E_UNSUPPORTED,
         "0..1024"},
    };
    const rssm_problem problem = fixture_problem();
    rssm_facts         facts = fixture_facts(&problem);

    rssm_facts_set(&facts, "dev.shared_optin", 1024);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        rssm_template_set *set = fixture_open(cases[i].file, cases[i].from, cases[i].to);
        const bool         is_cpu = strncmp(cases[i].file, "cpu", 3) == 0;
        rssm_config        config = rssm_config_default(find(set, is_cpu ? "scale_rows" : "scale_elements"));
        rssm_launch        launch;
        rssm_diag          diag = {0};
        cr_expect_eq(rssm_launch_plan(&config, &facts, &launch, &diag), cases[i].status, "%s: %s", cases[i].to,
                     diag.text);
        cr_expect(strstr(diag.text, cases[i].message), "%s: %s", cases[i].to, diag.text);
        rssm_template_set_close(set);
    }
}
