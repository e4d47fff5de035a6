// The architectures: those that are read, and those known but not built.
#include <string.h>

#include "base/str.h"
#include "tuner/model_reader.h"

static const rssm_model_family families[] = {
    {.model_type = "nemotron_h",
     .n_heads = {"mamba_num_heads", NULL},
     .head_dim = {"mamba_head_dim", NULL},
     .state_size = {"ssm_state_size", NULL},
     .n_groups = {"mamba_n_groups", "n_groups"}, // the first is a former name; transformers lets it win
     .default_groups = 8,
     .count_layers = rssm_model_count_nemotron},
    {.model_type = "mamba2",
     .n_heads = {"num_heads", NULL},
     .head_dim = {"head_dim", NULL},
     .state_size = {"state_size", NULL},
     .n_groups = {"n_groups", NULL},
     .hidden_size = "hidden_size",
     .expand = {"expand", NULL},
     .default_groups = 8,
     .count_layers = rssm_model_count_every},
    {.model_type = "falcon_h1",
     .n_heads = {"mamba_n_heads", NULL},
     .head_dim = {"mamba_d_head", NULL},
     .state_size = {"mamba_d_state", NULL},
     .n_groups = {"mamba_n_groups", NULL},
     .hidden_size = "hidden_size",
     .expand = {"mamba_expand", NULL},
     .width = "mamba_d_ssm",
     .flags = RSSM_FAMILY_HEAD_DIM_DERIVED | RSSM_FAMILY_WIDTH_UNKNOWN,
     .default_groups = 1,
     .count_layers = rssm_model_count_every},
    {.model_type = "bamba",
     .n_heads = {"mamba_n_heads", NULL},
     .head_dim = {"mamba_d_head", NULL},
     .state_size = {"mamba_d_state", NULL},
     .n_groups = {"mamba_n_groups", NULL},
     .hidden_size = "hidden_size",
     .expand = {"mamba_expand", NULL},
     .flags = RSSM_FAMILY_HEAD_DIM_DERIVED,
     .default_groups = 1,
     .count_layers = rssm_model_count_bamba},
    {.model_type = "granitemoehybrid",
     .n_heads = {"mamba_n_heads", NULL},
     .head_dim = {"mamba_d_head", NULL},
     .state_size = {"mamba_d_state", NULL},
     .n_groups = {"mamba_n_groups", NULL},
     .hidden_size = "hidden_size",
     .expand = {"mamba_expand", NULL},
     .flags = RSSM_FAMILY_HEAD_DIM_DERIVED,
     .default_groups = 1,
     .count_layers = rssm_model_count_granite},
    {.model_type = "zamba2", // the second names are those of files older than the architecture in transformers
     .n_heads = {"n_mamba_heads", NULL},
     .head_dim = {"mamba_headdim", NULL},
     .state_size = {"mamba_d_state", "state_size"},
     .n_groups = {"mamba_ngroups", NULL},
     .hidden_size = "hidden_size",
     .expand = {"mamba_expand", "expansion_factor"},
     .flags = RSSM_FAMILY_HEADS_DERIVED | RSSM_FAMILY_HEAD_DIM_DERIVED,
     .default_groups = 1,
     .count_layers = rssm_model_count_zamba2},
};
enum { N_FAMILIES = sizeof families / sizeof families[0] };

// The config of the mamba_ssm package: no model_type, the mixer's arguments under ssm_cfg with defaults for all.
static const rssm_model_family mamba_ssm = {.model_type = "mamba_ssm",
                                            .n_heads = {"nheads", NULL},
                                            .head_dim = {"headdim", NULL},
                                            .state_size = {"d_state", NULL},
                                            .n_groups = {"ngroups", NULL},
                                            .hidden_size = "d_model",
                                            .expand = {"expand", NULL},
                                            .width = "d_ssm",
                                            .flags = RSSM_FAMILY_HEADS_DERIVED,
                                            .default_groups = 1,
                                            .default_head_dim = 64,
                                            .default_state_size = 128,
                                            .count_layers = rssm_model_count_mamba_ssm};

#define IS_GDN "its layers are Gated DeltaNet, which is not built yet"
#define IS_KDA "its layers are Kimi Delta Attention, which is not built yet"
#define IS_MAMBA1 "its layers are Mamba-1, whose decay differs per channel; a replay needs one decay per head"

// Architectures with a state that are not built. A trailing * matches any ending.
static const struct {
    const char *model_type, *why;
} not_built[] = {
    {"qwen3_next", IS_GDN},  {"qwen3_5*", IS_GDN}, {"olmo_hybrid", IS_GDN},
    {"kimi_linear", IS_KDA}, {"kimi_k3*", IS_KDA}, {"mamba", IS_MAMBA1},
    {"jamba", IS_MAMBA1},    {"zamba", IS_MAMBA1}, {"falcon_mamba", IS_MAMBA1},
};

static const char *reason_not_built(const char *model_type)
{
    for (size_t i = 0; i < sizeof not_built / sizeof not_built[0]; i++) {
        const char  *pattern = not_built[i].model_type;
        const size_t n = strcspn(pattern, "*");
        if (strncmp(pattern, model_type, n) == 0 && (pattern[n] == '*' || model_type[n] == '\0'))
            return not_built[i].why;
    }
    return NULL;
}

// Turns the failure just written into RSSM_E_UNSUPPORTED: the document's own code is RSSM_E_MODEL.
static rssm_status as_unsupported(const rssm_model_reader *r)
{
    if (r->diag != NULL) r->diag->code = RSSM_E_UNSUPPORTED;
    return RSSM_E_UNSUPPORTED;
}

static rssm_status fail_unknown(const rssm_model_reader *r, rssm_json_value model_type_value, const char *model_type)
{
    rssm_str    known = {0};
    const char *names[N_FAMILIES + 1] = {NULL};
    const char *nearest;
    rssm_status st;
    for (size_t i = 0; i < N_FAMILIES; i++) {
        names[i] = families[i].model_type;
        rssm_str_printf(&known, "%s%s", i == 0 ? "" : ", ", names[i]);
    }
    nearest = rssm_nearest_word(model_type, names);
    st = rssm_json_fail(model_type_value, r->diag,
                        "'%.60s' is not an architecture with Mamba-2 layers that this tool knows (%s)%s%s%s",
                        model_type, rssm_str_c(&known), nearest == NULL ? "" : "; did you mean ",
                        nearest == NULL ? "" : nearest, nearest == NULL ? "" : "?");
    rssm_str_free(&known);
    return st;
}

// Selects the mamba_ssm family where `object` is a config of that package; leaves r->family NULL where it is not.
static rssm_status try_mamba_ssm(rssm_model_reader *r, rssm_json_value object)
{
    rssm_status     st = RSSM_OK;
    rssm_json_value ssm_cfg = object, v;
    const char     *layer = "Mamba1"; // the package's default
    const bool      has_cfg = rssm_model_get(object, "ssm_cfg", &ssm_cfg);
    if (!has_cfg && (rssm_model_get(object, "model_type", &v) || !rssm_model_get(object, "d_model", &v)))
        return RSSM_OK;
    if (has_cfg) {
        RSSM_TRY(rssm_json_as_object(ssm_cfg, r->diag));
        if (rssm_model_get(ssm_cfg, "layer", &v)) RSSM_TRY(rssm_json_as_string(v, &layer, r->diag));
    }
    if (strcmp(layer, "Mamba2") != 0) {
        rssm_json_fail(ssm_cfg, r->diag, "its layers are %.40s (\"layer\" in ssm_cfg); only Mamba2 is supported",
                       layer);
        return as_unsupported(r);
    }
    r->family = &mamba_ssm;
    r->model = object;
    r->mixer = ssm_cfg;
done:
    return st;
}

static const rssm_model_family *find_family(const char *model_type)
{
    for (size_t i = 0; i < N_FAMILIES; i++)
        if (strcmp(families[i].model_type, model_type) == 0) return &families[i];
    return NULL;
}

rssm_status rssm_model_select_family(rssm_model_reader *r)
{
    rssm_status     st;
    rssm_json_value object = r->root, inner, v;
    const char     *model_type = NULL;
    RSSM_TRY(rssm_json_as_object(r->root, r->diag));
    for (int depth = 0;; depth++) {
        RSSM_TRY(try_mamba_ssm(r, object));
        if (r->family != NULL) goto done;
        model_type = NULL;
        if (rssm_model_get(object, "model_type", &v)) {
            RSSM_TRY(rssm_json_as_string(v, &model_type, r->diag));
            r->family = find_family(model_type);
            if (r->family != NULL) {
                r->model = r->mixer = object;
                goto done;
            }
            if (reason_not_built(model_type) != NULL) {
                rssm_json_fail(v, r->diag, "'%s' is not supported: %s", model_type, reason_not_built(model_type));
                st = as_unsupported(r);
                goto done;
            }
        }
        if (depth == 1 || !rssm_model_get_field(object, (rssm_model_field){"text_config", "llm_config"}, &inner)) break;
        RSSM_TRY(rssm_json_as_object(inner, r->diag));
        object = inner;
    }
    st = model_type != NULL
             ? fail_unknown(r, v, model_type)
             : rssm_json_fail(object, r->diag,
                              "has no \"model_type\" (a string such as \"nemotron_h\") and no \"ssm_cfg\"; is this a "
                              "model's config.json?");
done:
    return st;
}
