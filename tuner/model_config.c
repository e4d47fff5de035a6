#include "tuner/model_config.h"

#include <string.h>

#include "base/dtype.h"
#include "base/str.h"
#include "tuner/model_reader.h"

// ------------------------------------------------------------------------------------------------------------- fields

bool rssm_model_get(rssm_json_value object, const char *key, rssm_json_value *out_value)
{
    return key != NULL && rssm_json_get(object, key, out_value) && !rssm_json_is_null(*out_value);
}

bool rssm_model_get_field(rssm_json_value object, rssm_model_field f, rssm_json_value *out_value)
{
    return rssm_model_get(object, f.key, out_value) || rssm_model_get(object, f.other, out_value);
}

rssm_status rssm_model_fail_missing(const rssm_model_reader *r, rssm_json_value object, const char *key,
                                    const char *meaning)
{
    return rssm_json_fail(object, r->diag, "a %s config needs \"%s\", %s; is this the model's own config.json?",
                          r->family->model_type, key, meaning);
}

rssm_status rssm_model_read_size(const rssm_model_reader *r, rssm_json_value object, rssm_model_field f,
                                 const char *meaning, int64_t high, uint32_t fallback, int64_t *out_value)
{
    rssm_json_value v;
    if (rssm_model_get_field(object, f, &v)) return rssm_json_as_integer(v, 1, high, out_value, r->diag);
    if (fallback == 0) return rssm_model_fail_missing(r, object, f.key, meaning);
    *out_value = fallback;
    return RSSM_OK;
}

// -------------------------------------------------------------------------------------------------------------- shape

// Channels of the mixer, n_heads * head_dim; 0 where the config does not tie them to anything.
static rssm_status read_width(const rssm_model_reader *r, int64_t *out_width)
{
    rssm_status              st = RSSM_OK;
    rssm_json_value          v;
    const rssm_model_family *f = r->family;
    const int64_t            high = (int64_t)RSSM_CONFIG_MAX_HIDDEN * RSSM_CONFIG_MAX_EXPAND;
    int64_t                  hidden, expand;
    *out_width = 0;
    if (f->hidden_size == NULL) return RSSM_OK;
    if (rssm_model_get(r->mixer, f->width, &v)) return rssm_json_as_integer(v, 1, high, out_width, r->diag);
    if ((f->flags & RSSM_FAMILY_WIDTH_UNKNOWN) != 0 && !rssm_json_get(r->mixer, f->width, &v)) return RSSM_OK;
    RSSM_TRY(rssm_model_read_size(r, r->model, (rssm_model_field){f->hidden_size, NULL}, "the width of the model",
                                  RSSM_CONFIG_MAX_HIDDEN, 0, &hidden));
    RSSM_TRY(rssm_model_read_size(r, r->mixer, f->expand, "the expansion factor", RSSM_CONFIG_MAX_EXPAND, 2, &expand));
    *out_width = hidden * expand;
done:
    return st;
}

// One factor of the width from the other.
static rssm_status derive(const rssm_model_reader *r, int64_t width, int64_t divisor, const char *key, int64_t high,
                          int64_t *out_value)
{
    if (width == 0)
        return rssm_json_fail(r->mixer, r->diag, "\"%s\" is to be worked out, but \"%s\" is absent", key,
                              r->family->width);
    if (width % divisor != 0 || width / divisor > high)
        return rssm_json_fail(r->mixer, r->diag,
                              "\"%s\" is to be worked out as an integer up to %lld, but the mixer's width is %lld over "
                              "%lld",
                              key, (long long)high, (long long)width, (long long)divisor);
    *out_value = width / divisor;
    return RSSM_OK;
}

// The head dim as given; 0 where it is to be worked out.
static rssm_status read_head_dim(const rssm_model_reader *r, int64_t *out_head_dim)
{
    const rssm_model_family *f = r->family;
    const bool               may_derive = (f->flags & RSSM_FAMILY_HEAD_DIM_DERIVED) != 0;
    rssm_json_value          v;
    const char              *text;
    *out_head_dim = f->default_head_dim;
    if (!rssm_model_get_field(r->mixer, f->head_dim, &v))
        return may_derive || f->default_head_dim != 0
                   ? RSSM_OK
                   : rssm_model_fail_missing(r, r->mixer, f->head_dim.key, "the channels of a Mamba-2 head");
    if (may_derive && rssm_json_is_string(v) && rssm_json_as_string(v, &text, r->diag) == RSSM_OK &&
        strcmp(text, "auto") == 0)
        return RSSM_OK;
    return rssm_json_as_integer(v, 1, RSSM_CONFIG_MAX_DIM, out_head_dim, r->diag);
}

static rssm_status read_heads(const rssm_model_reader *r, rssm_model_config *c)
{
    rssm_status              st;
    const rssm_model_family *f = r->family;
    int64_t                  width, head_dim, n_heads = 0;
    rssm_json_value          v;
    RSSM_TRY(read_width(r, &width));
    RSSM_TRY(read_head_dim(r, &head_dim));
    if (rssm_model_get_field(r->mixer, f->n_heads, &v)) {
        RSSM_TRY(rssm_json_as_integer(v, 1, RSSM_CONFIG_MAX_HEADS, &n_heads, r->diag));
    } else if ((f->flags & RSSM_FAMILY_HEADS_DERIVED) == 0 || head_dim == 0) {
        st = rssm_model_fail_missing(r, r->mixer, f->n_heads.key, "the number of Mamba-2 heads");
        goto done;
    }
    if (n_heads == 0) RSSM_TRY(derive(r, width, head_dim, f->n_heads.key, RSSM_CONFIG_MAX_HEADS, &n_heads));
    if (head_dim == 0) RSSM_TRY(derive(r, width, n_heads, f->head_dim.key, RSSM_CONFIG_MAX_DIM, &head_dim));
    if (width != 0 && n_heads * head_dim != width) {
        st = rssm_json_fail(r->mixer, r->diag, "%lld heads (\"%s\") of %lld channels are not the mixer's width %lld",
                            (long long)n_heads, f->n_heads.key, (long long)head_dim, (long long)width);
        goto done;
    }
    c->n_heads = (uint32_t)n_heads;
    c->head_dim = (uint32_t)head_dim;
done:
    return st;
}

static rssm_status read_shape(const rssm_model_reader *r, rssm_model_config *c)
{
    rssm_status              st;
    const rssm_model_family *f = r->family;
    int64_t                  state_size, n_groups;
    RSSM_TRY(read_heads(r, c));
    RSSM_TRY(rssm_model_read_size(r, r->mixer, f->state_size, "the size of the state per channel", RSSM_CONFIG_MAX_DIM,
                                  f->default_state_size, &state_size));
    RSSM_TRY(rssm_model_read_size(r, r->mixer, f->n_groups, "the groups of B and C", RSSM_CONFIG_MAX_HEADS,
                                  f->default_groups, &n_groups));
    if (c->n_heads % n_groups != 0) {
        st = rssm_json_fail(r->mixer, r->diag, "%u heads do not divide into %lld groups", c->n_heads,
                            (long long)n_groups);
        goto done;
    }
    c->state_size = (uint32_t)state_size;
    c->n_groups = (uint32_t)n_groups;
    RSSM_TRY(f->count_layers(r, &c->n_layers));
    if (c->n_layers == 0)
        st = rssm_json_fail(r->model, r->diag,
                            "none of this %s model's layers is a Mamba-2 layer; there is nothing to tune",
                            f->model_type);
done:
    return st;
}

// ------------------------------------------------------------------------------------------------------------ formats

// Reads a dtype, from the model's object before the file's. RSSM_MODEL_FROM_CONFIG where there is none or "auto".
static rssm_status read_dtype(const rssm_model_reader *r, rssm_model_field f, const char *what, uint32_t *out_dtype)
{
    rssm_status     st;
    rssm_json_value v;
    const char     *text;
    uint32_t        dtype;
    *out_dtype = RSSM_MODEL_FROM_CONFIG;
    if (!rssm_model_get_field(r->model, f, &v) && !rssm_model_get_field(r->root, f, &v)) return RSSM_OK;
    RSSM_TRY(rssm_json_as_string(v, &text, r->diag));
    if (strcmp(text, "auto") == 0) goto done;
    if (strncmp(text, "torch.", 6) == 0) text += 6;
    if (!rssm_dtype_parse(text, &dtype) || (dtype != RSSM_F32 && dtype != RSSM_BF16 && dtype != RSSM_F16)) {
        st = rssm_json_fail(v, r->diag, "'%.40s' is none of float32, bfloat16 and float16; say which %s to tune for",
                            text, what);
        goto done;
    }
    *out_dtype = dtype;
done:
    return st;
}

static rssm_status read_dtypes(const rssm_model_reader *r, rssm_model_config *c)
{
    rssm_status st = RSSM_OK;
    c->activation_dtype = c->checkpoint_dtype = RSSM_MODEL_FROM_CONFIG;
    if (r->options->activation_dtype == RSSM_MODEL_FROM_CONFIG)
        RSSM_TRY(read_dtype(r, (rssm_model_field){"dtype", "torch_dtype"}, "activation format", &c->activation_dtype));
    if (r->options->checkpoint_dtype == RSSM_MODEL_FROM_CONFIG)
        RSSM_TRY(read_dtype(r, (rssm_model_field){"mamba_ssm_cache_dtype", "mamba_ssm_dtype"}, "checkpoint format",
                            &c->checkpoint_dtype));
done:
    return st;
}

// --------------------------------------------------------------------------------------------------------------- text

// Length of the bare word that begins the text, or 0.
static size_t bare_word(const char *text, size_t n)
{
    static const char *const words[] = {"Infinity", "-Infinity", "NaN"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t length = strlen(words[i]);
        if (length <= n && memcmp(text, words[i], length) == 0) return length;
    }
    return 0;
}

// Copies the text with bare words outside strings replaced by null, which makes Python's output JSON.
static void replace_bare_words(const char *text, size_t n, rssm_str *out)
{
    bool   in_string = false;
    size_t from = 0, i = 0;
    while (i < n) {
        const size_t length = in_string ? 0 : bare_word(text + i, n - i);
        if (length != 0) {
            rssm_str_append(out, text + from, i - from);
            rssm_str_puts(out, "null");
            i += length;
            from = i;
            continue;
        }
        if (in_string && text[i] == '\\')
            i++; // whatever it escapes, it does not end the string
        else if (text[i] == '"')
            in_string = !in_string;
        i++;
    }
    if (from < n) rssm_str_append(out, text + from, n - from);
}

rssm_status rssm_model_config_parse(const char *text, size_t n, const char *name, const rssm_model_options *options,
                                    rssm_model_config *out_config, rssm_diag *diag)
{
    rssm_status       st;
    rssm_str          clean = {0};
    rssm_json        *document = NULL;
    rssm_model_reader r = {.options = options, .diag = diag};
    rssm_model_config c = {0};

    replace_bare_words(text, n, &clean);
    RSSM_TRY(rssm_str_check(&clean, diag));
    RSSM_TRY(rssm_json_parse(rssm_str_c(&clean), clean.length, name, RSSM_E_MODEL, &document, diag));
    r.root = r.model = r.mixer = rssm_json_root(document);
    RSSM_TRY(rssm_model_select_family(&r));
    RSSM_TRY(read_shape(&r, &c));
    RSSM_TRY(read_dtypes(&r, &c));
    c.architecture = r.family->model_type;
    *out_config = c;
done:
    rssm_json_free(document);
    rssm_str_free(&clean);
    return st;
}
