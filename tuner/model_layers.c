// How many layers have a Mamba-2 mixer, per architecture.
#include <string.h>

#include "tuner/model_reader.h"

// What the words of a layer list mean. transformers 5 writes the long names, earlier versions the short ones.
typedef struct layer_word {
    const char *word; // NULL ends the list
    bool        has_mamba;
} layer_word;

static const layer_word hybrid_words[] = {
    {"mamba", true},      {"linear_attention", true},
    {"attention", false}, {"full_attention", false},
    {"mlp", false},       {"moe", false},
    {NULL, false},
};

// A hybrid layer of Zamba2 is a shared attention block followed by a Mamba-2 mixer.
static const layer_word zamba_words[] = {
    {"mamba", true},
    {"linear_attention", true},
    {"hybrid", true},
    {NULL, false},
};

static rssm_status count_listed(const rssm_model_reader *r, rssm_json_value list, const layer_word *words,
                                uint32_t *out_listed, uint32_t *out_mamba)
{
    rssm_status st;
    size_t      n;
    uint32_t    n_mamba = 0;
    RSSM_TRY(rssm_json_as_array(list, &n, r->diag));
    if (n > RSSM_CONFIG_MAX_LAYERS) {
        st =
            rssm_json_fail(list, r->diag, "%zu layers are more than the %d this tool reads", n, RSSM_CONFIG_MAX_LAYERS);
        goto done;
    }
    for (size_t i = 0; i < n; i++) {
        const rssm_json_value v = rssm_json_at(list, i);
        const char           *text;
        const layer_word     *w = words;
        RSSM_TRY(rssm_json_as_string(v, &text, r->diag));
        while (w->word != NULL && strcmp(w->word, text) != 0)
            w++;
        if (w->word == NULL) {
            st = rssm_json_fail(v, r->diag, "'%.40s' is not a layer type of %s that this tool knows", text,
                                r->family->model_type);
            goto done;
        }
        n_mamba += w->has_mamba;
    }
    *out_listed = (uint32_t)n;
    *out_mamba = n_mamba;
done:
    return st;
}

static rssm_status read_layers(const rssm_model_reader *r, const char *key, uint32_t *out_n)
{
    int64_t           n = 0;
    const rssm_status st = rssm_model_read_size(r, r->model, (rssm_model_field){key, NULL}, "the number of layers",
                                                RSSM_CONFIG_MAX_LAYERS, 0, &n);
    if (st == RSSM_OK) *out_n = (uint32_t)n;
    return st;
}

rssm_status rssm_model_count_every(const rssm_model_reader *r, uint32_t *out_n)
{
    return read_layers(r, "num_hidden_layers", out_n);
}

// A list of words beside num_hidden_layers; without the list every layer has a mixer.
static rssm_status count_with_list(const rssm_model_reader *r, rssm_model_field list_field, const layer_word *words,
                                   uint32_t *out_n)
{
    rssm_status     st;
    rssm_json_value list;
    uint32_t        n, n_listed, n_mamba;
    RSSM_TRY(read_layers(r, "num_hidden_layers", &n));
    n_mamba = n;
    if (rssm_model_get_field(r->model, list_field, &list)) {
        RSSM_TRY(count_listed(r, list, words, &n_listed, &n_mamba));
        if (n_listed != n) {
            st = rssm_json_fail(list, r->diag, "lists %u layers where num_hidden_layers says %u", n_listed, n);
            goto done;
        }
    }
    *out_n = n_mamba;
done:
    return st;
}

rssm_status rssm_model_count_granite(const rssm_model_reader *r, uint32_t *out_n)
{
    return count_with_list(r, (rssm_model_field){"layer_types", "layers_block_type"}, hybrid_words, out_n);
}

rssm_status rssm_model_count_zamba2(const rssm_model_reader *r, uint32_t *out_n)
{
    return count_with_list(r, (rssm_model_field){"layers_block_type", "layer_types"}, zamba_words, out_n);
}

static rssm_status count_pattern(const rssm_model_reader *r, rssm_json_value v, uint32_t *out_n)
{
    rssm_status st;
    const char *pattern;
    uint32_t    n_mamba = 0;
    RSSM_TRY(rssm_json_as_string(v, &pattern, r->diag));
    if (strlen(pattern) > RSSM_CONFIG_MAX_LAYERS) {
        st = rssm_json_fail(v, r->diag, "has more layers than the %d this tool reads", RSSM_CONFIG_MAX_LAYERS);
        goto done;
    }
    for (size_t i = 0; pattern[i] != '\0'; i++) {
        if (strchr("M*-E", pattern[i]) == NULL) {
            st = rssm_json_fail(v, r->diag,
                                "character %zu is none of M (Mamba-2), * (attention), - (MLP) and E (experts)", i + 1);
            goto done;
        }
        n_mamba += pattern[i] == 'M';
    }
    *out_n = n_mamba;
done:
    return st;
}

// The list, or else the older string of one character per layer. num_hidden_layers is deprecated beside them and
// ignored, as in transformers.
rssm_status rssm_model_count_nemotron(const rssm_model_reader *r, uint32_t *out_n)
{
    rssm_json_value v;
    uint32_t        n_listed;
    if (rssm_model_get_field(r->model, (rssm_model_field){"layers_block_type", "layer_types"}, &v))
        return count_listed(r, v, hybrid_words, &n_listed, out_n);
    if (rssm_model_get(r->model, "hybrid_override_pattern", &v)) return count_pattern(r, v, out_n);
    return rssm_model_fail_missing(r, r->model, "hybrid_override_pattern",
                                   "one character per layer (M: Mamba-2), or the list \"layers_block_type\"");
}

// All layers but the attention layers, which are listed by index.
static rssm_status count_unlisted(const rssm_model_reader *r, const char *layers_key, const char *attention_key,
                                  uint32_t *out_n)
{
    rssm_status     st;
    rssm_json_value list;
    uint32_t        n, n_attention = 0;
    size_t          n_listed = 0;
    bool            seen[RSSM_CONFIG_MAX_LAYERS] = {false};
    RSSM_TRY(read_layers(r, layers_key, &n));
    if (rssm_model_get(r->model, attention_key, &list)) RSSM_TRY(rssm_json_as_array(list, &n_listed, r->diag));
    if (n_listed > n) {
        st = rssm_json_fail(list, r->diag, "names %zu layers of a model of %u", n_listed, n);
        goto done;
    }
    for (size_t i = 0; i < n_listed; i++) {
        int64_t layer;
        RSSM_TRY(rssm_json_as_integer(rssm_json_at(list, i), 0, (int64_t)n - 1, &layer, r->diag));
        n_attention += !seen[layer];
        seen[layer] = true;
    }
    *out_n = n - n_attention;
done:
    return st;
}

rssm_status rssm_model_count_bamba(const rssm_model_reader *r, uint32_t *out_n)
{
    return count_unlisted(r, "num_hidden_layers", "attn_layer_indices", out_n);
}

rssm_status rssm_model_count_mamba_ssm(const rssm_model_reader *r, uint32_t *out_n)
{
    return count_unlisted(r, "n_layer", "attn_layer_idx", out_n);
}
