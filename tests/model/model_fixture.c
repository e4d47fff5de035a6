#include "tests/model/model_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

#define UNSAID RSSM_MODEL_FROM_CONFIG

const model_fixture model_fixtures[] = {
    {"nemotron_h.json",
     {"nemotron_h", 96, 80, 128, 8, 21, RSSM_BF16, RSSM_F32},
     "{",
     {"mamba_num_heads", "mamba_head_dim", "ssm_state_size"},
     {"n_groups"}},
    {"nemotron_h_list.json",
     {"nemotron_h", 64, 64, 128, 8, 23, RSSM_BF16, RSSM_F32},
     "{",
     {"mamba_num_heads", "mamba_head_dim", "ssm_state_size"},
     {"n_groups"}},
    {"nemotron_h_omni.json",
     {"nemotron_h", 64, 64, 128, 8, 23, RSSM_F16, UNSAID},
     "\"text_config\": {",
     {"mamba_num_heads", "mamba_head_dim", "ssm_state_size"},
     {"n_groups"}},
    {"mamba2.json",
     {"mamba2", 128, 64, 128, 8, 64, RSSM_BF16, UNSAID},
     "{",
     {"num_heads", "head_dim", "state_size", "hidden_size", "num_hidden_layers"},
     {"n_groups", "expand"}},
    {"mamba_ssm.json", {"mamba_ssm", 80, 64, 128, 1, 64, UNSAID, UNSAID}, "{", {"d_model", "n_layer"}, {NULL}},
    {"mamba_ssm_hybrid.json",
     {"mamba_ssm", 64, 128, 64, 4, 29, UNSAID, UNSAID},
     "\"ssm_cfg\": {",
     {NULL},
     {"d_state", "headdim", "expand", "ngroups"}},
    {"falcon_h1.json",
     {"falcon_h1", 24, 128, 256, 1, 44, RSSM_BF16, UNSAID},
     "{",
     {"mamba_n_heads", "mamba_d_state", "num_hidden_layers"},
     {"mamba_d_head", "mamba_d_ssm", "mamba_n_groups"}},
    {"falcon_h1_auto.json",
     {"falcon_h1", 32, 128, 256, 2, 72, RSSM_F16, UNSAID},
     "{",
     {"mamba_n_heads", "mamba_d_state", "num_hidden_layers"},
     {"mamba_d_ssm", "mamba_n_groups"}},
    {"bamba.json",
     {"bamba", 128, 64, 128, 1, 29, RSSM_BF16, UNSAID},
     "{",
     {"mamba_n_heads", "mamba_d_state", "hidden_size", "num_hidden_layers"},
     {"mamba_expand", "mamba_n_groups"}},
    {"granitemoehybrid.json",
     {"granitemoehybrid", 48, 64, 128, 1, 36, RSSM_BF16, UNSAID},
     "{",
     {"mamba_n_heads", "mamba_d_state", "hidden_size", "num_hidden_layers"},
     {"mamba_d_head", "mamba_expand", "mamba_n_groups"}},
    {"zamba2.json",
     {"zamba2", 112, 64, 64, 2, 81, RSSM_BF16, UNSAID},
     "{",
     {"mamba_d_state", "hidden_size", "num_hidden_layers"},
     {"n_mamba_heads", "mamba_headdim", "mamba_expand", "mamba_ngroups"}},
    {"zamba2_older.json",
     {"zamba2", 80, 64, 64, 1, 54, RSSM_F32, UNSAID},
     "{",
     {"hidden_size", "num_hidden_layers"},
     {"state_size", "expansion_factor", "mamba_headdim"}},
};
const size_t n_model_fixtures = sizeof model_fixtures / sizeof model_fixtures[0];

char *fixture_text(const model_fixture *f, size_t *out_n)
{
    char      path[1024];
    char     *text = NULL;
    rssm_diag diag = {0};
    snprintf(path, sizeof path, "%s/%s", RSSM_MODEL_FIXTURES, f->file);
    cr_assert_eq(rssm_file_read(path, RSSM_CONFIG_MAX_BYTES, &text, out_n, &diag), RSSM_OK, "%s", diag.text);
    return text;
}

rssm_status parse(const char *text, rssm_model_config *out_config, rssm_diag *diag)
{
    const rssm_model_options options = RSSM_MODEL_OPTIONS_INIT;
    return rssm_model_config_parse(text, strlen(text), "test.json", &options, out_config, diag);
}

void fixture_with(const model_fixture *f, const char *key, const char *value, rssm_str *out)
{
    size_t      n;
    char       *text = fixture_text(f, &n);
    char        quoted[128];
    const char *opening = strstr(text, f->mixer_opening), *at;
    cr_assert_not_null(opening, "%s", f->file);
    opening += strlen(f->mixer_opening);
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    at = strstr(opening, quoted);
    cr_assert_not_null(at, "%s has no %s behind %s", f->file, key, f->mixer_opening);

    rssm_str_clear(out);
    rssm_str_append(out, text, (size_t)(opening - text));
    if (value != NULL) rssm_str_printf(out, "%s %s,", quoted, value);
    rssm_str_append(out, opening, (size_t)(at - opening));
    rssm_str_printf(out, "\"not_%s", quoted + 1);
    rssm_str_puts(out, at + strlen(quoted));
    rssm_free(text);
}
