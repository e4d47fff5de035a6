// Loading: presets, files and folders, tensor parallelism, options.
#include "tuner/model.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/problem.h"
#include "tests/model/model_fixture.h"
#include "tuner/presets.h"

static rssm_status load(const char *what, uint32_t tp, rssm_model *out_model, rssm_diag *diag)
{
    rssm_model_options options = RSSM_MODEL_OPTIONS_INIT;
    options.tp = tp;
    return rssm_model_load(what, &options, out_model, diag);
}

Test(model, knows_the_deployed_models)
{
    static const struct {
        const char *name;
        uint32_t    H, P, N, G, layers;
        double      state_mib; // fp32, one layer
    } cases[] = {
        {"nemotron-3-nano-4b", 96, 80, 128, 8, 21, 3.75},
        {"nemotron-3-nano-30b", 64, 64, 128, 8, 23, 2},
        {"nemotron-3.5-lightning", 64, 64, 128, 8, 23, 2},
        {"nemotron-3-super", 128, 64, 128, 8, 40, 4},
        {"nemotron-3-ultra", 256, 64, 128, 8, 48, 8},
        {"nemotron-h-8b", 128, 64, 128, 8, 24, 4},
        {"nemotron-nano-9b-v2", 128, 80, 128, 8, 27, 5},
        {"codestral-mamba-7b", 128, 64, 128, 8, 64, 4},
        {"bamba-9b", 128, 64, 128, 1, 29, 4},
        {"granite-4-h-micro", 64, 64, 128, 1, 36, 2},
        {"granite-4-h-tiny", 48, 64, 128, 1, 36, 1.5},
        {"granite-4-h-small", 128, 64, 128, 1, 36, 4},
        {"falcon-h1-0.5b", 24, 64, 128, 1, 36, .75},
        {"falcon-h1-1.5b", 48, 64, 256, 1, 24, 3},
        {"falcon-h1-1.5b-deep", 24, 64, 256, 1, 66, 1.5},
        {"falcon-h1-3b", 32, 128, 256, 1, 32, 4},
        {"falcon-h1-7b", 24, 128, 256, 1, 44, 3},
        {"falcon-h1-34b", 32, 128, 256, 2, 72, 4},
        {"zamba2-1.2b", 64, 64, 128, 1, 38, 2},
        {"zamba2-2.7b", 80, 64, 64, 1, 54, 1.25},
        {"zamba2-7b", 112, 64, 64, 2, 81, 1.75},
        {"mamba2-130m", 24, 64, 128, 1, 24, .75},
        {"mamba2-780m", 48, 64, 128, 1, 48, 1.5},
        {"mamba2-2.7b", 80, 64, 128, 1, 64, 2.5},
    };
    cr_expect_eq(rssm_preset_count(), sizeof cases / sizeof cases[0]);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rssm_diag  diag = {0};
        rssm_model m = {0};
        cr_expect_eq(load(cases[i].name, 1, &m, &diag), RSSM_OK, "%s", diag.text);
        const rssm_problem *p = &m.shapes[0].problem;
        cr_expect_str_eq(m.name, cases[i].name);
        cr_expect_eq(m.n_shapes, 1);
        cr_expect(p->n_heads == cases[i].H && p->head_dim == cases[i].P && p->state_size == cases[i].N &&
                      p->n_groups == cases[i].G && m.shapes[0].n_layers == cases[i].layers,
                  "%s: H=%u P=%u N=%u G=%u layers=%u", m.name, p->n_heads, p->head_dim, p->state_size, p->n_groups,
                  m.shapes[0].n_layers);
        cr_expect_float_eq(p->n_heads * (double)p->head_dim * p->state_size * 4 / (1 << 20), cases[i].state_mib, 1e-12);
        cr_expect(p->window == 16 && p->max_tokens == 1 && p->ring_length == 0 && p->recurrence == RSSM_MAMBA2);
        cr_expect(p->activation_dtype == RSSM_BF16 && p->dt_dtype == RSSM_BF16 && p->checkpoint_dtype == RSSM_F32 &&
                  p->parameter_dtype == RSSM_F32 && p->dt_softplus == 1);
    }
}

Test(model, presets_are_valid_problems_with_distinct_names)
{
    for (size_t i = 0; i < rssm_preset_count(); i++) {
        rssm_diag    diag = {0};
        rssm_model   m = {0};
        rssm_problem normal;
        cr_assert_eq(load(rssm_preset_at(i)->name, 1, &m, &diag), RSSM_OK, "%s", diag.text);
        cr_expect_eq(rssm_problem_normalise(&m.shapes[0].problem, &normal, &diag), RSSM_OK, "%s", diag.text);
        for (size_t k = 0; k < i; k++)
            cr_expect_str_neq(rssm_preset_at(i)->name, rssm_preset_at(k)->name);
    }
}

Test(model, the_table_lists_every_preset)
{
    rssm_str table = {0};
    rssm_preset_table(&table);
    for (size_t i = 0; i < rssm_preset_count(); i++)
        cr_expect_not_null(strstr(rssm_str_c(&table), rssm_preset_at(i)->name), "%s", rssm_preset_at(i)->name);
    cr_expect_not_null(
        strstr(rssm_str_c(&table), "nemotron-3-nano-4b          96       80   128      8     21  NVIDIA"), "%s",
        rssm_str_c(&table));
    rssm_str_free(&table);
}

Test(model, fixtures_agree_with_their_presets)
{
    static const char *const pairs[][2] = {
        {"nemotron_h.json", "nemotron-3-nano-4b"},
        {"nemotron_h_list.json", "nemotron-3.5-lightning"},
        {"mamba2.json", "codestral-mamba-7b"},
        {"mamba_ssm.json", "mamba2-2.7b"},
        {"falcon_h1.json", "falcon-h1-7b"},
        {"falcon_h1_auto.json", "falcon-h1-34b"},
        {"bamba.json", "bamba-9b"},
        {"granitemoehybrid.json", "granite-4-h-tiny"},
        {"zamba2.json", "zamba2-7b"},
        {"zamba2_older.json", "zamba2-2.7b"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char               path[1024];
        rssm_diag          diag = {0};
        rssm_model         a = {0}, b = {0};
        rssm_model_options options = RSSM_MODEL_OPTIONS_INIT;
        options.activation_dtype = RSSM_BF16;
        snprintf(path, sizeof path, "%s/%s", RSSM_MODEL_FIXTURES, pairs[i][0]);
        cr_assert_eq(rssm_model_load(path, &options, &a, &diag), RSSM_OK, "%s", diag.text);
        cr_assert_eq(rssm_model_load(pairs[i][1], &options, &b, &diag), RSSM_OK, "%s", diag.text);
        cr_expect_str_eq(a.architecture, b.architecture);
        cr_expect_eq(memcmp(&a.shapes[0], &b.shapes[0], sizeof a.shapes[0]), 0, "%s", path);
        cr_expect(strncmp(pairs[i][0], a.name, strlen(a.name)) == 0 && pairs[i][0][strlen(a.name)] == '.', "%s",
                  a.name);
    }
}

Test(model, slices_heads_and_groups)
{
    static const struct {
        const char *name;
        uint32_t    tp, H, G; // H = 0: refused
    } cases[] = {
        {"nemotron-3-super", 1, 128, 8},  {"nemotron-3-super", 4, 32, 2},   {"nemotron-3-super", 8, 16, 1},
        {"nemotron-3-super", 16, 8, 1},   {"nemotron-3-super", 128, 1, 1},  {"nemotron-3-super", 3, 0, 0},
        {"nemotron-3-super", 256, 0, 0},  {"nemotron-3-super", 0, 0, 0},    {"nemotron-3-ultra", 8, 32, 1},
        {"nemotron-3-nano-4b", 2, 48, 4}, {"nemotron-3-nano-4b", 4, 24, 2}, {"nemotron-3-nano-4b", 8, 12, 1},
        {"nemotron-3-nano-4b", 3, 0, 0},  {"nemotron-3-nano-4b", 12, 0, 0}, {"nemotron-3-nano-4b", 16, 6, 1},
        {"granite-4-h-small", 8, 16, 1},  {"granite-4-h-tiny", 3, 16, 1},   {"falcon-h1-34b", 2, 16, 1},
        {"falcon-h1-34b", 8, 4, 1},       {"zamba2-7b", 2, 56, 1},          {"zamba2-7b", 7, 0, 0},
        {"zamba2-7b", 14, 8, 1},          {"codestral-mamba-7b", 2, 64, 4}, {"bamba-9b", 4, 32, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rssm_diag         diag = {0};
        rssm_model        m = {0};
        const rssm_status st = load(cases[i].name, cases[i].tp, &m, &diag);
        if (cases[i].H == 0) {
            cr_expect_eq(st, RSSM_E_INVALID_ARGUMENT, "%s tp %u", cases[i].name, cases[i].tp);
            cr_expect_eq(m.n_shapes, 0, "the output was written");
            continue;
        }
        cr_expect_eq(st, RSSM_OK, "%s", diag.text);
        cr_expect_eq(m.tp, cases[i].tp);
        cr_expect(m.shapes[0].problem.n_heads == cases[i].H && m.shapes[0].problem.n_groups == cases[i].G,
                  "%s tp %u: %u heads, %u groups", cases[i].name, cases[i].tp, m.shapes[0].problem.n_heads,
                  m.shapes[0].problem.n_groups);
    }
}

// Whether every rank's heads touch the same number of groups in runs of the same length; by counting, head by head.
static bool ranks_are_alike(uint32_t n_heads, uint32_t n_groups, uint32_t tp, uint32_t *out_groups)
{
    const uint32_t h = n_heads / tp, r = n_heads / n_groups;
    uint32_t       alike = 0;
    for (uint32_t rank = 0; rank < tp; rank++) {
        uint32_t n = 0, run = 0, first_run = 0;
        for (uint32_t i = 0; i < h; i++) {
            const uint32_t head = rank * h + i;
            run++;
            if (i + 1 < h && (head + 1) / r == head / r) continue;
            if (n++ == 0) first_run = run;
            if (run != first_run) return false;
            run = 0;
        }
        if (rank == 0) alike = n;
        if (n != alike) return false;
    }
    *out_groups = alike;
    return true;
}

Test(model, slices_exactly_where_all_ranks_are_alike)
{
    uint32_t n_sliced = 0, n_straddling = 0;
    for (size_t i = 0; i < rssm_preset_count(); i++) {
        const rssm_preset *preset = rssm_preset_at(i);
        for (uint32_t tp = 1; tp <= preset->config.n_heads; tp++) {
            rssm_diag         diag = {0};
            rssm_model        m = {0};
            uint32_t          groups = 0;
            const rssm_status st = load(preset->name, tp, &m, &diag);
            const bool        divides = preset->config.n_heads % tp == 0;
            const bool alike = divides && ranks_are_alike(preset->config.n_heads, preset->config.n_groups, tp, &groups);
            cr_expect_eq(st, alike ? RSSM_OK : RSSM_E_INVALID_ARGUMENT, "%s tp %u", preset->name, tp);
            if (alike) cr_expect_eq(m.shapes[0].problem.n_groups, groups, "%s tp %u", preset->name, tp);
            n_sliced += alike;
            n_straddling += divides && !alike;
        }
    }
    cr_expect(n_sliced > 100 && n_straddling == 4, "%u sliced, %u straddling", n_sliced, n_straddling);
}

Test(model, names_both_numbers_of_a_bad_tp)
{
    rssm_diag  diag = {0};
    rssm_model m;
    load("nemotron-3-super", 3, &m, &diag);
    cr_expect(strstr(diag.text, "128") && strstr(diag.text, "tp = 3") && strstr(diag.text, "nemotron-3-super"), "%s",
              diag.text);
    load("nemotron-3-nano-4b", 3, &m, &diag);
    cr_expect(strstr(diag.text, "8 groups") && strstr(diag.text, "tp = 3") && strstr(diag.text, "32 heads"), "%s",
              diag.text);
}

Test(model, takes_options_before_the_config)
{
    char               path[1024];
    rssm_diag          diag = {0};
    rssm_model         m;
    rssm_model_options o = {2, 8, 4, RSSM_F32, RSSM_BF16, RSSM_MODEL_FROM_CONFIG, RSSM_F32};
    snprintf(path, sizeof path, "%s/nemotron_h.json", RSSM_MODEL_FIXTURES);
    cr_assert_eq(rssm_model_load(path, &o, &m, &diag), RSSM_OK, "%s", diag.text);
    const rssm_problem *p = &m.shapes[0].problem;
    cr_expect(p->window == 8 && p->max_tokens == 4 && p->n_heads == 48 && p->n_groups == 4);
    cr_expect(p->activation_dtype == RSSM_F32 && p->dt_dtype == RSSM_F32 && p->checkpoint_dtype == RSSM_BF16);
    o.activation_dtype = RSSM_F16;
    o.dt_dtype = RSSM_F32;
    o.parameter_dtype = RSSM_F16;
    cr_assert_eq(rssm_model_load("bamba-9b", &o, &m, &diag), RSSM_OK, "%s", diag.text);
    cr_expect(p->activation_dtype == RSSM_F16 && p->dt_dtype == RSSM_F32 && p->parameter_dtype == RSSM_F16);
}

Test(model, suggests_the_nearest_preset)
{
    rssm_diag  diag = {0};
    rssm_model m = {0};
    cr_expect_eq(load("nemotron-3-nano4b", 1, &m, &diag), RSSM_E_NOT_FOUND);
    cr_expect(strstr(diag.text, "'nemotron-3-nano4b'") && strstr(diag.text, "nemotron-3-nano-4b") &&
                  strstr(diag.text, "--model help"),
              "%s", diag.text);
    cr_expect_eq(load("falcon", 1, &m, &diag), RSSM_E_NOT_FOUND);
    cr_expect_not_null(strstr(diag.text, "did you mean falcon-h1-0.5b?"), "%s", diag.text);
    cr_expect_eq(load("gpt", 1, &m, &diag), RSSM_E_NOT_FOUND);
    cr_expect(strstr(diag.text, "--model help") && !strstr(diag.text, "did you mean"), "%s", diag.text);
    cr_expect_eq(load("", 1, &m, &diag), RSSM_E_NOT_FOUND, "%s", diag.text);
    cr_expect_eq(m.n_shapes, 0);
    cr_expect_eq(load("Nemotron-3-Nano-4B", 1, &m, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_str_eq(m.name, "nemotron-3-nano-4b");
}

Test(model, finds_files_and_folders)
{
    rssm_diag  diag = {0};
    rssm_model m = {0};
    char      *folder = NULL, path[1100];
    cr_assert_eq(rssm_folder_temporary("model", &folder, &diag), RSSM_OK, "%s", diag.text);
    cr_assert_eq(chdir(folder), 0);
    cr_assert(mkdir("My-Model-7B", 0700) == 0 && mkdir("empty", 0700) == 0);
    size_t n;
    char  *text = fixture_text(&model_fixtures[0], &n);
    cr_assert_eq(rssm_file_write("My-Model-7B/config.json", text, n, &diag), RSSM_OK, "%s", diag.text);
    cr_assert_eq(rssm_file_write("bamba-9b", "{}", 2, &diag), RSSM_OK);
    cr_assert_eq(rssm_file_write("other", text, n, &diag), RSSM_OK);

    for (const char *const *name =
             (const char *const[]){"My-Model-7B", "My-Model-7B/", "./My-Model-7B", "My-Model-7B/config.json", NULL};
         *name != NULL; name++) {
        cr_expect_eq(load(*name, 1, &m, &diag), RSSM_OK, "%s: %s", *name, diag.text);
        cr_expect_str_eq(m.name, "My-Model-7B", "%s: %s", *name, m.name);
    }
    cr_expect(load("other", 1, &m, &diag) == RSSM_OK && strcmp(m.name, "other") == 0, "%s", diag.text);
    cr_expect(load("bamba-9b", 1, &m, &diag) == RSSM_OK && strcmp(m.architecture, "bamba") == 0, "%s", diag.text);
    cr_expect_eq(load("./bamba-9b", 1, &m, &diag), RSSM_E_MODEL);
    cr_expect_not_null(strstr(diag.text, "./bamba-9b: "), "%s", diag.text);
    cr_expect_eq(load("empty", 1, &m, &diag), RSSM_E_NOT_FOUND, "%s", diag.text);
    cr_expect_not_null(strstr(diag.text, "empty/config.json"), "%s", diag.text);
    cr_expect_eq(load("gone/config.json", 1, &m, &diag), RSSM_E_NOT_FOUND, "%s", diag.text);
    cr_expect_eq(load("gone.json", 1, &m, &diag), RSSM_E_NOT_FOUND, "%s", diag.text);

    const int fd = open("large.json", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    cr_assert(fd >= 0 && ftruncate(fd, RSSM_CONFIG_MAX_BYTES + 1) == 0);
    close(fd);
    const rssm_status st = load("large.json", 1, &m, &diag);
    cr_expect(st != RSSM_OK && strstr(diag.text, "large.json"), "%d %s", st, diag.text);

    snprintf(path, sizeof path, "%0200d.json", 7);
    cr_assert_eq(rssm_file_write(path, text, n, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_eq(load(path, 1, &m, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_eq(strlen(m.name), RSSM_MODEL_NAME_MAX - 1);
    rssm_free(text);
    rssm_folder_remove(folder);
    rssm_free(folder);
}
