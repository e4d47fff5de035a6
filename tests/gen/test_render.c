#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/process.h"
#include "gen/render.h"
#include "tests/gen/fixture.h"

static const char golden[] = "// scale_rows version 3: ROWS=8 VEC=4\n"
                             "#ifndef RSSM_CONFIG_H\n"
                             "#define RSSM_CONFIG_H\n"
                             "\n"
                             "#include \"numerics/types.h\"\n"
                             "\n"
                             "typedef rssm_bf16 T_act;\n"
                             "typedef float T_state;\n"
                             "\n"
                             "enum {\n"
                             "    CFG_HEAD_DIM = 64,\n"
                             "    CFG_STATE_SIZE = 128,\n"
                             "    CFG_GROUP_SIZE = 8,\n"
                             "    CFG_WINDOW = 16,\n"
                             "    CFG_RING_LENGTH = 16,\n"
                             "    CFG_MAX_TOKENS = 1,\n"
                             "    CFG_ARCH = 0,\n"
                             "    CFG_ROWS = 8,\n"
                             "    CFG_VEC = 4,\n"
                             "    CFG_TASK_ELEMENTS = 512,\n"
                             "    CFG_TASKS = 2,\n"
                             "};\n"
                             "\n"
                             "#endif\n";

Test(render, golden)
{
    rssm_template_set *set = fixture_open(NULL, NULL, NULL);
    const rssm_problem problem = fixture_problem();
    const rssm_facts   facts = fixture_facts(&problem);
    const rssm_config  config = rssm_config_default(rssm_template_set_find(set, "scale_rows"));
    rssm_render_input  input = {.config = &config, .problem = &problem, .facts = &facts};
    rssm_str           text = {0};
    rssm_diag          diag = {0};

    cr_assert_eq(rssm_render_config(&input, &text, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_str_eq(rssm_str_c(&text), golden);
    input.facts = NULL; // the problem's facts suffice where no expression asks for a device
    rssm_str_clear(&text);
    cr_assert_eq(rssm_render_config(&input, &text, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_str_eq(rssm_str_c(&text), golden);
    rssm_str_free(&text);
    rssm_template_set_close(set);
}

Test(render, generic_takes_the_shape_from_the_arguments)
{
    static const char        more[] = "\"derived\": [{\"name\": \"VECTORS\", \"expr\": \"ROWS / VEC\"}, "
                                      "{\"name\": \"STATE_WORDS\", \"expr\": \"VECTORS * state_bytes\"},";
    rssm_template_set       *set = fixture_open("cpu/scale/scale.json", "\"derived\": [", more);
    const rssm_config        config = rssm_config_default(rssm_template_set_find(set, "scale_rows"));
    rssm_render_input        input = {.config = &config, .activation_dtype = RSSM_F16, .state_dtype = RSSM_BF16};
    rssm_str                 text = {0};
    rssm_diag                diag = {0};
    static const char *const lines[] = {
        "typedef rssm_f16 T_act;\n", "typedef rssm_bf16 T_state;\n", "CFG_HEAD_DIM = 0,\n",
        "CFG_STATE_SIZE = 0,\n",     "CFG_GROUP_SIZE = 0,\n",        "CFG_WINDOW = 0,\n",
        "CFG_RING_LENGTH = 0,\n",    "CFG_MAX_TOKENS = 0,\n",        "CFG_ROWS = 8,\n",
        "CFG_VECTORS = 2,\n",        "CFG_STATE_WORDS = 4,\n",       "CFG_TASK_ELEMENTS = 0,\n",
        "CFG_TASKS = 0,\n"};

    cr_assert_eq(rssm_render_config(&input, &text, &diag), RSSM_OK, "%s", diag.text);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; ++i) {
        cr_expect(strstr(rssm_str_c(&text), lines[i]), "no \"%s\" in\n%s", lines[i], rssm_str_c(&text));
    }
    rssm_str_free(&text);
    rssm_template_set_close(set);
}

Test(render, refuses_what_it_cannot_write)
{
    static const struct {
        const char *expr, *message;
    } cases[] = {
        {"ROWS * 300000000", "CFG_TASK_ELEMENTS = 2400000000 does not fit an int"},
        {"1 / (ROWS - 8)", "division by zero"},
        {"head_dim * 9223372036854775807", "does not fit 64 bits"},
    };
    const rssm_problem problem = fixture_problem();
    const rssm_facts   facts = fixture_facts(&problem);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        rssm_template_set *set = fixture_open("cpu/scale/scale.json", "ROWS * head_dim", cases[i].expr);
        const rssm_config  config = rssm_config_default(rssm_template_set_find(set, "scale_rows"));
        rssm_render_input  input = {.config = &config, .problem = &problem, .facts = &facts};
        rssm_str           text = {0};
        rssm_diag          diag = {0};
        cr_expect_eq(rssm_render_config(&input, &text, &diag), RSSM_E_UNSUPPORTED, "%s", cases[i].expr);
        cr_expect(strstr(diag.text, cases[i].message), "%s", diag.text);
        cr_expect_eq(text.length, 0, "a failure wrote text");
        rssm_str_free(&text);
        rssm_template_set_close(set);
    }
}

// The program that writes the built-in kernels' headers at build time is this renderer.
Test(render, program)
{
    static const char  manifest[] = FIXTURE_FOLDER "/cpu/scale/scale.json";
    rssm_template_set *set = fixture_open(NULL, NULL, NULL);
    const rssm_config  config = rssm_config_default(rssm_template_set_find(set, "scale_rows"));
    rssm_render_input  input = {.config = &config, .activation_dtype = RSSM_BF16, .state_dtype = RSSM_F32};
    rssm_str           path = {0}, expected = {0}, output = {0};
    char              *folder = NULL, *written = NULL;
    size_t             n;
    int                code = -1;

    cr_assert_eq(rssm_folder_temporary("rssm-test", &folder, NULL), RSSM_OK);
    rssm_str_printf(&path, "%s/rssm_config.h", folder);
    const char *const good[] = {RSSM_RENDER, manifest, "bf16", "f32", path.data, NULL};
    const char *const bad[] = {RSSM_RENDER, manifest, "bf17", "f32", path.data, NULL};
    cr_assert_eq(rssm_process_run(good, 10000, &output, &code, NULL), RSSM_OK);
    cr_expect_eq(code, 0, "%s", rssm_str_c(&output));
    cr_assert_eq(rssm_render_config(&input, &expected, NULL), RSSM_OK);
    cr_assert_eq(rssm_file_read(path.data, 1 << 16, &written, &n, NULL), RSSM_OK);
    cr_expect_str_eq(written, rssm_str_c(&expected));
    cr_assert_eq(rssm_process_run(bad, 10000, &output, &code, NULL), RSSM_OK);
    cr_expect_eq(code, RSSM_E_INVALID_ARGUMENT);
    cr_expect(strstr(rssm_str_c(&output), "bf17"));
    rssm_folder_remove(folder);
    rssm_free(folder);
    rssm_free(written);
    rssm_str_free(&path);
    rssm_str_free(&expected);
    rssm_str_free(&output);
    rssm_template_set_close(set);
}
