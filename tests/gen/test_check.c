#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "gen/check/check.h"
#include "tests/gen/fixture.h"

static rssm_status check(const rssm_template_set *set, const char *name, rssm_diag *diag)
{
    const rssm_check_input input = {.set = set, .manifest = rssm_template_set_find(set, name)};

    cr_assert_not_null(input.manifest, "%s", name);
    return rssm_check_template(&input, diag);
}

Test(check, accepts_the_fixtures)
{
    rssm_template_set *set = fixture_open(NULL, NULL, NULL);
    rssm_diag          diag = {0};

    cr_expect_eq(check(set, "scale_rows", &diag), RSSM_OK, "%s", diag.text);
    cr_expect_eq(check(set, "scale_elements", &diag), RSSM_OK, "%s", diag.text);
    rssm_template_set_close(set);
}

// Every template of the library agrees with its manifest.
Test(check, accepts_the_templates)
{
    rssm_template_set *set = NULL;
    rssm_diag          diag = {0};

    cr_assert_eq(rssm_template_set_open(NULL, &set, &diag), RSSM_OK, "%s", diag.text);
    for (size_t i = 0; i < rssm_template_set_count(set); ++i) {
        const char *name = rssm_template_set_at(set, i)->name;
        cr_expect_eq(check(set, name, &diag), RSSM_OK, "%s: %s", name, diag.text);
    }
    rssm_template_set_close(set);
}

#define CPU "cpu/scale/scale.c"
#define CPU_JSON "cpu/scale/scale.json"
#define CUDA "cuda/scale/scale.cu"
#define CUDA_JSON "cuda/scale/scale.json"

Test(check, refuses)
{
    static const struct {
        const char *file, *from, *to;
        rssm_status status;
        const char *message;
    } cases[] = {
        // The entry.
        {CPU, "void scale_rows", "void scale_row", RSSM_E_MISMATCH, "does not define the entry scale_rows"},
        {CPU, "void scale_rows", "static void scale_rows", RSSM_E_MISMATCH, "external function"},
        {CPU, "void scale_rows", "int scale_rows", RSSM_E_MISMATCH, "external function"},
        {CPU, "const scale_args *args", "scale_args *args", RSSM_E_MISMATCH, "void (const ARGS *, rssm_i64)"},
        {CPU, "const scale_args *args", "const struct other *args", RSSM_E_COMPILE, "incomplete"},
        {CPU, "rssm_i64 task)", "int task)", RSSM_E_MISMATCH, "void (const ARGS *, rssm_i64)"},
        {CPU, "rssm_i64 task)", "rssm_i64 task, int n)", RSSM_E_MISMATCH, "void (const ARGS *, rssm_i64)"},
        {CPU_JSON, "\"scale_args\"", "\"step_args\"", RSSM_E_MISMATCH, "ARGS = step_args"},
        {CUDA, "scale_elements(const", "scale_element(const", RSSM_E_MISMATCH, "does not define the entry"},
        {CUDA, "extern \"C\" ", "", RSSM_E_MISMATCH, "extern \"C\" __global__ void (ARGS)"},
        {CUDA, "__global__ ", "__device__ ", RSSM_E_MISMATCH, "extern \"C\" __global__ void (ARGS)"},
        {CUDA, "scale_args args)", "scale_args args, int n)", RSSM_E_MISMATCH, "extern \"C\" __global__ void (ARGS)"},
        {CUDA_JSON, "\"scale_args\"", "\"step_args\"", RSSM_E_MISMATCH, "ARGS = step_args"},
        // Names.
        {CPU, "CFG_ROWS % CFG_VEC", "CFG_ROW % CFG_VEC", RSSM_E_MISMATCH,
         "CFG_ROW, which cpu/scale/scale.json does not"},
        {CPU, "#include \"rssm_config.h\"", "#include \"rssm_config.h\"\n#if CFG_SECRET\n#endif", RSSM_E_MISMATCH,
         "CFG_SECRET"},
        {"abi/base.h", "#endif", "enum { size = CFG_WIDTH };\n#endif", RSSM_E_MISMATCH, "CFG_WIDTH"},
        {CPU_JSON, "\"tunables\": [",
         "\"tunables\": [{\"name\": \"IDLE\", \"values\": [1], \"default\": 1, \"doc\": \"d\"},", RSSM_E_MISMATCH,
         "the tunable IDLE"},
        {CPU_JSON, "\"derived\": [", "\"derived\": [{\"name\": \"IDLE\", \"expr\": \"1\"},", RSSM_E_MISMATCH,
         "the derived value IDLE"},
        {CUDA_JSON, "\"derived\": [", "\"derived\": [{\"name\": \"IDLE\", \"expr\": \"WARPS\"},", RSSM_E_MISMATCH,
         "the derived value IDLE"},
        // Assertions and errors.
        {CPU_JSON, "ROWS * head_dim", "ROWS * state_size", RSSM_E_MISMATCH, "cpu/scale/scale.c:7"},
        {CUDA_JSON, "32 * WARPS", "31 * WARPS", RSSM_E_MISMATCH, "whole warps"},
        {CPU, "args->factor *", "args->facto *", RSSM_E_COMPILE, "cpu/scale/scale.c:14"},
        {CUDA, "args.factor *", "args.facto *", RSSM_E_COMPILE, "cuda/scale/scale.cu:14"},
        {CPU, "\"abi/scale.h\"", "\"abi/scales.h\"", RSSM_E_NOT_FOUND, "abi/scales.h"},
        {CPU, "CFG_ROWS % CFG_VEC == 0", "CFG_ROWS % CFG_VEC == 0 && CFG_HEAD_DIM >= 8", RSSM_E_MISMATCH,
         "header of the built-in kernel"},
        // The manifest by itself.
        {CPU_JSON, "VEC > 0", "VEC > 99", RSSM_E_UNSUPPORTED, "rejected: VEC > 99"},
        {CPU_JSON, "rows * TASKS", "rows * rows * TASKS", RSSM_E_MANIFEST, "not linear"},
        {CPU_JSON, "\"state_size\": [16, 256]", "\"state_size\": [4000000, 4000001]", RSSM_E_MISMATCH,
         "serves nothing"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        rssm_template_set *set = fixture_open(cases[i].file, cases[i].from, cases[i].to);
        const bool         is_cuda = strncmp(cases[i].file, "cuda", 4) == 0;
        rssm_diag          diag = {0};
        cr_expect_eq(check(set, is_cuda ? "scale_elements" : "scale_rows", &diag), cases[i].status, "%s: status %d: %s",
                     cases[i].to, diag.code, diag.text);
        cr_expect(strstr(diag.text, cases[i].message), "%s: no \"%s\" in: %s", cases[i].to, cases[i].message,
                  diag.text);
        rssm_template_set_close(set);
    }
}

// Uses that are no identifiers of the template, or none of its own, do not count.
Test(check, tokens_not_text)
{
    rssm_template_set *set =
        fixture_open(CPU, "#include \"abi/scale.h\"",
                     "#include \"abi/scale.h\"\n// CFG_COMMENT\nstatic const char *name = \"CFG_TEXT\";");
    rssm_diag diag = {0};

    cr_expect_eq(check(set, "scale_rows", &diag), RSSM_OK, "%s", diag.text);
    rssm_template_set_close(set);
}

Test(check, samples_lie_within_what_is_served)
{
    static const char *const changes[][2] = {
        {"\"head_dim\": [8, 256]", "\"head_dim\": [128, 256]"},
        {"\"head_dim\": [8, 256]", "\"head_dim\": [8, 32]"},
        {"\"group_size\": [1, 64]", "\"group_size\": [16, 16]"},
        {"[\"f32\", \"bf16\", \"f16\"]", "[\"f16\"]"},
        {"\"checkpoint_dtype\": [\"f32\", \"bf16\"]", "\"checkpoint_dtype\": [\"bf16\"]"},
        {"\"window\": [1, 64]", "\"window\": [32, 64]"},
    };

    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; ++i) {
        rssm_template_set   *set = fixture_open(CPU_JSON, changes[i][0], changes[i][1]);
        const rssm_manifest *m = rssm_template_set_find(set, "scale_rows");
        rssm_problem         problem;
        rssm_facts           facts;
        rssm_diag            diag = {0};
        cr_expect_eq(rssm_check_sample(m, &problem, &facts, &diag), RSSM_OK, "%s", diag.text);
        cr_expect_eq(rssm_manifest_serves(m, &problem, &diag), RSSM_OK, "%s", diag.text);
        rssm_template_set_close(set);
    }
}
