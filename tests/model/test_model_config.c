// What a config says: fields of every architecture, defaults, formats, nesting, and how a wrong one is refused.
#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/model/model_fixture.h"

static void expect_config(const char *what, const rssm_model_config *got, const rssm_model_config *want)
{
    cr_expect_str_eq(got->architecture, want->architecture, "%s", what);
    cr_expect_eq(got->n_heads, want->n_heads, "%s: %u heads", what, got->n_heads);
    cr_expect_eq(got->head_dim, want->head_dim, "%s: head dim %u", what, got->head_dim);
    cr_expect_eq(got->state_size, want->state_size, "%s: state %u", what, got->state_size);
    cr_expect_eq(got->n_groups, want->n_groups, "%s: %u groups", what, got->n_groups);
    cr_expect_eq(got->n_layers, want->n_layers, "%s: %u layers", what, got->n_layers);
    cr_expect_eq(got->activation_dtype, want->activation_dtype, "%s: activation %u", what, got->activation_dtype);
    cr_expect_eq(got->checkpoint_dtype, want->checkpoint_dtype, "%s: checkpoint %u", what, got->checkpoint_dtype);
}

// Expects a refusal whose sentence holds the file's name and every word of the NULL-terminated list.
static void expect_refused(const char *what, const char *text, rssm_status want, const char *const *words)
{
    rssm_diag         diag = {0};
    rssm_model_config c, untouched;
    memset(&c, 0x5a, sizeof c);
    memcpy(&untouched, &c, sizeof c);
    const rssm_status st = parse(text, &c, &diag);
    cr_expect_eq(st, want, "%s: status %d, %s", what, st, diag.text);
    cr_expect_eq(diag.code, st, "%s", what);
    cr_expect_eq(memcmp(&c, &untouched, sizeof c), 0, "%s: the output was written", what);
    cr_expect_not_null(strstr(diag.text, "test.json: "), "%s: %s", what, diag.text);
    for (; *words != NULL; words++)
        cr_expect_not_null(strstr(diag.text, *words), "%s: no '%s' in: %s", what, *words, diag.text);
}

Test(model_config, reads_every_architecture)
{
    for (size_t i = 0; i < n_model_fixtures; i++) {
        const model_fixture *f = &model_fixtures[i];
        size_t               n;
        char                *text = fixture_text(f, &n);
        rssm_diag            diag = {0};
        rssm_model_config    c = {0};
        cr_expect_eq(parse(text, &c, &diag), RSSM_OK, "%s: %s", f->file, diag.text);
        if (c.architecture != NULL) expect_config(f->file, &c, &f->want);
        rssm_free(text);
    }
}

Test(model_config, names_a_missing_field)
{
    rssm_str text = {0};
    int      n_cases = 0;
    for (size_t i = 0; i < n_model_fixtures; i++) {
        const model_fixture *f = &model_fixtures[i];
        for (size_t k = 0; f->required[k] != NULL; k++) {
            fixture_with(f, f->required[k], NULL, &text);
            expect_refused(f->file, rssm_str_c(&text), RSSM_E_MODEL, (const char *[]){f->required[k], NULL});
            fixture_with(f, f->required[k], "null", &text);
            expect_refused(f->file, rssm_str_c(&text), RSSM_E_MODEL, (const char *[]){f->required[k], NULL});
            n_cases += 2;
        }
    }
    cr_expect_eq(n_cases, 70);
    rssm_str_free(&text);
}

Test(model_config, refuses_wrong_types_and_sizes)
{
    static const char *const values[] = {"\"128\"",   "0",  "-1", "1.5",  "1e999", "99999999999999999999",
                                         "1048577e9", "[]", "{}", "true", "[128]", "9007199254740993",
                                         "4294967424"};
    rssm_str                 text = {0};
    int                      n_cases = 0;
    for (size_t i = 0; i < n_model_fixtures; i++) {
        const model_fixture *f = &model_fixtures[i];
        for (size_t k = 0; k < 2 * MAX_KEYS; k++) {
            const char *key = k < MAX_KEYS ? f->required[k] : f->optional[k - MAX_KEYS];
            if (key == NULL) continue;
            for (size_t v = 0; v < sizeof values / sizeof values[0]; v++, n_cases++) {
                fixture_with(f, key, values[v], &text);
                expect_refused(values[v], rssm_str_c(&text), RSSM_E_MODEL, (const char *[]){key, NULL});
            }
        }
    }
    cr_expect_gt(n_cases, 700);
    rssm_str_free(&text);
}

#define NEMOTRON "\"model_type\":\"nemotron_h\",\"mamba_num_heads\":8,\"mamba_head_dim\":80,\"ssm_state_size\":16,"
#define GRANITE                                                                                                        \
    "\"model_type\":\"granitemoehybrid\",\"hidden_size\":256,\"num_hidden_layers\":2,\"mamba_n_heads\":8,"             \
    "\"mamba_d_state\":16,"

static const struct {
    const char *text, *words[4]; // words end in NULL
} contradictions[] = {
    {"{\"model_type\":\"mamba2\",\"hidden_size\":4000,\"num_heads\":128,\"head_dim\":64,\"state_size\":128,"
     "\"num_hidden_layers\":64}",
     {"128", "8000"}},
    {"{\"model_type\":\"mamba2\",\"hidden_size\":256,\"num_heads\":6,\"head_dim\":64,\"expand\":3,\"state_size\":1,"
     "\"n_groups\":4,\"num_hidden_layers\":1}",
     {"mixer's width 768"}},
    {"{" NEMOTRON "\"n_groups\":3,\"hybrid_override_pattern\":\"M\"}", {"8 heads", "3 groups"}},
    {"{" NEMOTRON "\"hybrid_override_pattern\":\"M-x\"}", {"hybrid_override_pattern", "character 3"}},
    {"{" NEMOTRON "\"hybrid_override_pattern\":\"*-E\"}", {"Mamba-2 layer"}},
    {"{" NEMOTRON "\"hybrid_override_pattern\":\"\"}", {"Mamba-2 layer"}},
    {"{" NEMOTRON "\"hybrid_override_pattern\":[\"M\"]}", {"hybrid_override_pattern", "string"}},
    {"{" NEMOTRON "\"num_hidden_layers\":2}", {"hybrid_override_pattern", "layers_block_type"}},
    {"{" NEMOTRON "\"layers_block_type\":\"M\"}", {"layers_block_type", "array"}},
    {"{" NEMOTRON "\"layers_block_type\":[\"mamba\",7]}", {"layers_block_type[1]", "string"}},
    {"{" NEMOTRON "\"layers_block_type\":[\"mamba\",\"mamba3\"]}", {"layers_block_type[1]", "mamba3"}},
    {"{" GRANITE "\"layer_types\":[\"attention\",\"attention\"]}", {"Mamba-2 layer"}},
    {"{" GRANITE "\"layer_types\":[\"mamba\"]}", {"layer_types", "lists 1", "says 2"}},
    {"{" GRANITE "\"layer_types\":{}}", {"layer_types", "array"}},
    {"{" GRANITE "\"mamba_d_head\":32}", {"8 heads", "32", "512"}},
    {"{" GRANITE "\"mamba_d_head\":\"Auto\"}", {"mamba_d_head", "integer"}},
    {"{" GRANITE "\"mamba_n_groups\":3}", {"3 groups"}},
    {"{\"model_type\":\"bamba\",\"hidden_size\":100,\"mamba_n_heads\":3,\"mamba_d_state\":8,"
     "\"num_hidden_layers\":2}",
     {"mamba_d_head", "200", "3"}},
    {"{\"model_type\":\"bamba\",\"hidden_size\":96,\"mamba_n_heads\":3,\"mamba_d_state\":8,"
     "\"num_hidden_layers\":2,\"attn_layer_indices\":[2]}",
     {"attn_layer_indices[0]", "2"}},
    {"{\"model_type\":\"bamba\",\"hidden_size\":96,\"mamba_n_heads\":3,\"mamba_d_state\":8,"
     "\"num_hidden_layers\":2,\"attn_layer_indices\":[0,1,0]}",
     {"attn_layer_indices", "3"}},
    {"{\"model_type\":\"bamba\",\"hidden_size\":96,\"mamba_n_heads\":3,\"mamba_d_state\":8,"
     "\"num_hidden_layers\":2,\"attn_layer_indices\":[0,1]}",
     {"Mamba-2 layer"}},
    {"{\"model_type\":\"falcon_h1\",\"hidden_size\":96,\"mamba_n_heads\":3,\"mamba_d_state\":8,\"mamba_d_head\":16,"
     "\"num_hidden_layers\":2,\"mamba_d_ssm\":64}",
     {"mixer's width 64"}},
    {"{\"model_type\":\"falcon_h1\",\"mamba_n_heads\":3,\"mamba_d_state\":8,\"num_hidden_layers\":2}",
     {"mamba_d_head", "mamba_d_ssm"}},
    {"{\"model_type\":\"zamba2\",\"hidden_size\":64,\"mamba_d_state\":8,\"num_hidden_layers\":2}", {"n_mamba_heads"}},
    {"{\"model_type\":\"zamba2\",\"hidden_size\":64,\"mamba_d_state\":8,\"num_hidden_layers\":1,"
     "\"n_mamba_heads\":2,\"layers_block_type\":[\"attention\"]}",
     {"layers_block_type[0]", "attention"}},
    {"{\"d_model\":100,\"n_layer\":1,\"ssm_cfg\":{\"layer\":\"Mamba2\"}}", {"nheads", "200", "64"}},
    {"{\"d_model\":64,\"n_layer\":1,\"ssm_cfg\":{\"layer\":2}}", {"ssm_cfg.layer", "string"}},
    {"{\"d_model\":64,\"n_layer\":1,\"ssm_cfg\":[]}", {"ssm_cfg", "object"}},
    {"{\"model_type\":7}", {"model_type", "string"}},
    {"{\"hidden_size\":7}", {"model_type", "ssm_cfg"}},
    {"{\"model_type\":\"x\",\"text_config\":{\"hidden_size\":7}}", {"$.text_config", "model_type"}},
    {"{\"model_type\":\"x\",\"text_config\":3}", {"text_config", "object"}},
    {"[]", {"object"}},
    {"7", {"object"}},
    {"", {"line 1"}},
    {"{\"model_type\":\"mamba2\",\"model_type\":\"mamba2\"}", {"twice"}},
    {"{" NEMOTRON "\"hybrid_override_pattern\":\"M\",\"dtype\":16}", {"$.dtype", "string"}},
    {"{" NEMOTRON "\"hybrid_override_pattern\":\"M\",\"dtype\":\"float8_e4m3fn\"}", {"$.dtype", "float8_e4m3fn"}},
    {"{" NEMOTRON "\"hybrid_override_pattern\":\"M\",\"mamba_ssm_cache_dtype\":\"int8\"}",
     {"mamba_ssm_cache_dtype", "int8"}},
};

Test(model_config, refuses_contradictions)
{
    for (size_t i = 0; i < sizeof contradictions / sizeof contradictions[0]; i++)
        expect_refused(contradictions[i].text, contradictions[i].text, RSSM_E_MODEL, contradictions[i].words);
}

Test(model_config, says_why_an_architecture_is_not_built)
{
    static const struct {
        const char *model_type, *why;
    } cases[] = {
        {"qwen3_next", "Gated DeltaNet"},
        {"qwen3_5", "Gated DeltaNet"},
        {"qwen3_5_text", "Gated DeltaNet"},
        {"qwen3_5_moe", "Gated DeltaNet"},
        {"olmo_hybrid", "Gated DeltaNet"},
        {"kimi_linear", "Kimi Delta Attention"},
        {"kimi_k3", "Kimi Delta Attention"},
        {"jamba", "Mamba-1"},
        {"mamba", "Mamba-1"},
        {"falcon_mamba", "Mamba-1"},
        {"zamba", "Mamba-1"},
    };
    rssm_str text = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const words[] = {cases[i].model_type, cases[i].why, NULL};
        rssm_str_clear(&text);
        rssm_str_printf(&text, "{\"model_type\": \"%s\", \"hidden_size\": 64}", cases[i].model_type);
        expect_refused(cases[i].model_type, rssm_str_c(&text), RSSM_E_UNSUPPORTED, words);
        rssm_str_clear(&text);
        rssm_str_printf(&text, "{\"model_type\": \"vl\", \"text_config\": {\"model_type\": \"%s\"}}",
                        cases[i].model_type);
        expect_refused(cases[i].model_type, rssm_str_c(&text), RSSM_E_UNSUPPORTED, words);
    }
    expect_refused("the package's default layer", "{\"d_model\":64,\"n_layer\":1,\"ssm_cfg\":{}}", RSSM_E_UNSUPPORTED,
                   (const char *[]){"Mamba1", NULL});
    expect_refused("no ssm_cfg", "{\"d_model\":64,\"n_layer\":1}", RSSM_E_UNSUPPORTED,
                   (const char *[]){"Mamba1", NULL});
    expect_refused("Mamba3", "{\"d_model\":64,\"n_layer\":1,\"ssm_cfg\":{\"layer\":\"Mamba3\"}}", RSSM_E_UNSUPPORTED,
                   (const char *[]){"Mamba3", NULL});
    rssm_str_free(&text);
}

Test(model_config, names_an_unknown_architecture_and_what_is_known)
{
    expect_refused("llama", "{\"model_type\":\"llama\"}", RSSM_E_MODEL,
                   (const char *[]){"$.model_type", "'llama'", "nemotron_h", "zamba2", NULL});
    expect_refused("a typo", "{\"model_type\":\"nemotronh\"}", RSSM_E_MODEL,
                   (const char *[]){"did you mean nemotron_h?", NULL});
    expect_refused("too deep", "{\"model_type\":\"a\",\"text_config\":{\"text_config\":{\"model_type\":\"mamba2\"}}}",
                   RSSM_E_MODEL, (const char *[]){"$.text_config: has no \"model_type\"", NULL});
    expect_refused("nested", "{\"model_type\":\"a\",\"llm_config\":{\"model_type\":\"gpt2\"}}", RSSM_E_MODEL,
                   (const char *[]){"$.llm_config.model_type", "'gpt2'", NULL});
}

Test(model_config, fills_what_may_be_absent)
{
    static const struct {
        const char       *text;
        rssm_model_config want;
    } cases[] = {
        {"{" NEMOTRON "\"hybrid_override_pattern\":\"ME*M-M\"}",
         {"nemotron_h", 8, 80, 16, 8, 3, RSSM_MODEL_FROM_CONFIG, RSSM_MODEL_FROM_CONFIG}},
        {"{" NEMOTRON "\"n_groups\":8,\"mamba_n_groups\":2,\"layer_types\":[\"linear_attention\",\"moe\",\"mlp\","
         "\"full_attention\"],\"hybrid_override_pattern\":\"MM\"}",
         {"nemotron_h", 8, 80, 16, 2, 1, RSSM_MODEL_FROM_CONFIG, RSSM_MODEL_FROM_CONFIG}},
        {"{" NEMOTRON
         "\"layers_block_type\":null,\"hybrid_override_pattern\":\"MM\",\"mamba_ssm_cache_dtype\":\"auto\","
         "\"dtype\":null,\"torch_dtype\":\"torch.float16\"}",
         {"nemotron_h", 8, 80, 16, 8, 2, RSSM_F16, RSSM_MODEL_FROM_CONFIG}},
        {"{" GRANITE "\"mamba_ssm_dtype\":\"bfloat16\",\"dtype\":\"float32\",\"torch_dtype\":\"float16\"}",
         {"granitemoehybrid", 8, 64, 16, 1, 2, RSSM_F32, RSSM_BF16}},
        {"{" GRANITE "\"layers_block_type\":[\"linear_attention\",\"full_attention\"],\"mamba_expand\":4}",
         {"granitemoehybrid", 8, 128, 16, 1, 1, RSSM_MODEL_FROM_CONFIG, RSSM_MODEL_FROM_CONFIG}},
        {"{\"model_type\":\"falcon_h1\",\"hidden_size\":96,\"mamba_n_heads\":3,\"mamba_d_state\":8,\"mamba_d_ssm\":"
         "null,"
         "\"num_hidden_layers\":2}",
         {"falcon_h1", 3, 64, 8, 1, 2, RSSM_MODEL_FROM_CONFIG, RSSM_MODEL_FROM_CONFIG}},
        {"{\"model_type\":\"falcon_h1\",\"mamba_n_heads\":3,\"mamba_d_state\":8,\"mamba_d_head\":16,"
         "\"num_hidden_layers\":2}",
         {"falcon_h1", 3, 16, 8, 1, 2, RSSM_MODEL_FROM_CONFIG, RSSM_MODEL_FROM_CONFIG}},
        {"{\"model_type\":\"zamba2\",\"hidden_size\":64,\"mamba_d_state\":8,\"num_hidden_layers\":3,"
         "\"n_mamba_heads\":2,\"layers_block_type\":[\"mamba\",\"hybrid\",\"linear_attention\"]}",
         {"zamba2", 2, 64, 8, 1, 3, RSSM_MODEL_FROM_CONFIG, RSSM_MODEL_FROM_CONFIG}},
        {"{\"d_model\":128,\"n_layer\":3,\"ssm_cfg\":{\"layer\":\"Mamba2\",\"d_ssm\":192},\"attn_layer_idx\":[1,1]}",
         {"mamba_ssm", 3, 64, 128, 1, 2, RSSM_MODEL_FROM_CONFIG, RSSM_MODEL_FROM_CONFIG}},
        {"{\"model_type\":\"NemotronH_Nano_VL\",\"torch_dtype\":\"bfloat16\",\"mamba_ssm_cache_dtype\":\"float32\","
         "\"llm_config\":{" NEMOTRON "\"hybrid_override_pattern\":\"M\"}}",
         {"nemotron_h", 8, 80, 16, 8, 1, RSSM_BF16, RSSM_F32}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rssm_diag         diag = {0};
        rssm_model_config c = {0};
        cr_expect_eq(parse(cases[i].text, &c, &diag), RSSM_OK, "%s: %s", cases[i].text, diag.text);
        if (c.architecture != NULL) expect_config(cases[i].text, &c, &cases[i].want);
    }
}

// json.dumps of Python writes these words; they are not JSON.
Test(model_config, reads_bare_infinities_and_leaves_strings_alone)
{
    rssm_diag         diag = {0};
    rssm_model_config c = {0};
    cr_expect_eq(parse("{" NEMOTRON "\"hybrid_override_pattern\":\"M\",\"NaN\":[NaN,-Infinity,Infinity],"
                       "\"note\":\"\\\"NaN\\\\\",\"dtype\":\"Infinity\"}",
                       &c, &diag),
                 RSSM_E_MODEL);
    cr_expect_not_null(strstr(diag.text, "'Infinity' is none of"), "%s", diag.text);
    cr_expect_eq(parse("{" NEMOTRON "\"hybrid_override_pattern\":\"M\",\"a\":[NaN,-Infinity,Infinity]}", &c, &diag),
                 RSSM_OK, "%s", diag.text);
    cr_expect_eq(parse("{" NEMOTRON "\"hybrid_override_pattern\":\"M\",\"a\":-NaN}", &c, &diag), RSSM_E_MODEL);
    cr_expect_eq(parse("{" NEMOTRON "\"hybrid_override_pattern\":\"M\",\"n_groups\":Infinity}", &c, &diag), RSSM_OK);
    cr_expect_eq(c.n_groups, 8);
    cr_expect_eq(parse("{\"model_type\":\"mamba2\",\"num_heads\":Infinity}", &c, &diag), RSSM_E_MODEL);
}
