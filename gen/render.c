// See render.h.
#include "gen/render.h"

#include <limits.h>

#include "base/dtype.h"
#include "gen/source.h"

typedef struct rendering {
    const rssm_render_input *input;
    rssm_facts               facts; // everything that expressions may use, tunables and derived values included
    rssm_str                 text;
    bool                     is_generic;
    rssm_diag               *diag;
} rendering;

static rssm_status put_constant(rendering *r, const char *name, int64_t value)
{
    if (value < INT_MIN || value > INT_MAX) {
        return RSSM_FAIL(r->diag, RSSM_E_UNSUPPORTED, "%s: CFG_%s = %lld does not fit an int",
                         r->input->config->manifest->name, name, (long long)value);
    }
    rssm_str_printf(&r->text, "    CFG_%s = %lld,\n", name, (long long)value);
    return RSSM_OK;
}

static rssm_status put_shape(rendering *r)
{
    const rssm_problem *p = r->input->problem;
    const struct {
        const char *name;
        int64_t     value;
    } constants[] = {
        {"HEAD_DIM", p ? p->head_dim : 0},
        {"STATE_SIZE", p ? p->state_size : 0},
        {"GROUP_SIZE", p && p->n_groups ? p->n_heads / p->n_groups : 0},
        {"WINDOW", p ? p->window : 0},
        {"RING_LENGTH", p ? p->ring_length : 0},
        {"MAX_TOKENS", p ? p->max_tokens : 0},
        {"ARCH", r->input->arch},
    };
    rssm_status st = RSSM_OK;

    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; ++i) {
        RSSM_TRY(put_constant(r, constants[i].name, constants[i].value));
    }
done:
    return st;
}

static bool has_fact(void *facts, const char *name, int column)
{
    int64_t value;

    (void)column;
    return rssm_facts_get(facts, name, &value);
}

// Derived values in order. In a generic header those over an unknown name are 0 and unknown in turn.
static rssm_status put_derived(rendering *r)
{
    const rssm_manifest *m = r->input->config->manifest;
    rssm_status          st = RSSM_OK;
    int64_t              value;

    for (size_t i = 0; i < m->n_derived; ++i) {
        const rssm_derived *derived = &m->derived[i];
        const bool          is_open = r->is_generic && !rssm_expr_names(derived->expr, has_fact, &r->facts);
        value = 0;
        if (!is_open) {
            RSSM_TRY(rssm_expr_eval(derived->expr, &r->facts, &value, r->diag));
            rssm_facts_set(&r->facts, derived->name, value);
        }
        RSSM_TRY(put_constant(r, derived->name, value));
    }
done:
    return st;
}

static rssm_status put_types(rendering *r)
{
    const rssm_problem *p = r->input->problem;
    const uint32_t      act = p ? p->activation_dtype : r->input->activation_dtype;
    const uint32_t      state = p ? p->checkpoint_dtype : r->input->state_dtype;
    const char         *act_type = rssm_dtype_typedef(act), *state_type = rssm_dtype_typedef(state);

    if (*act_type == '?' || *state_type == '?') {
        return RSSM_FAIL(r->diag, RSSM_E_INVALID_ARGUMENT, "unknown number format %u or %u", act, state);
    }
    if (r->is_generic) {
        rssm_facts_set(&r->facts, "activation_bytes", rssm_dtype_bytes(act));
        rssm_facts_set(&r->facts, "state_bytes", rssm_dtype_bytes(state));
    }
    rssm_str_printf(&r->text, "typedef %s T_act;\ntypedef %s T_state;\n\n", act_type, state_type);
    return RSSM_OK;
}

rssm_status rssm_render_config(const rssm_render_input *input, rssm_str *out, rssm_diag *diag)
{
    const rssm_config   *config = input->config;
    const rssm_manifest *m = config->manifest;
    rssm_status          st;
    rendering            r = {.input = input, .diag = diag};

    r.is_generic = !input->facts && !input->problem;
    if (input->facts) r.facts = *input->facts;
    if (input->problem) rssm_facts_add_problem(&r.facts, input->problem);
    rssm_str_printf(&r.text, "// %s version %u%s", m->name, m->version, m->n_tunables ? ": " : "");
    rssm_config_text(config, &r.text);
    rssm_str_puts(&r.text, "\n#ifndef RSSM_CONFIG_H\n#define RSSM_CONFIG_H\n\n");
    rssm_str_puts(&r.text, "#include \"" RSSM_CONFIG_HEADER_INCLUDE "\"\n\n");
    RSSM_TRY(put_types(&r));
    rssm_str_puts(&r.text, "enum {\n");
    RSSM_TRY(put_shape(&r));
    for (size_t i = 0; i < m->n_tunables; ++i) {
        rssm_facts_set(&r.facts, m->tunables[i].name, config->values[i]);
        RSSM_TRY(put_constant(&r, m->tunables[i].name, config->values[i]));
    }
    RSSM_TRY(put_derived(&r));
    rssm_str_puts(&r.text, "};\n\n#endif\n");
    RSSM_TRY(rssm_str_check(&r.text, diag));
    rssm_str_append(out, r.text.data, r.text.length);
    st = rssm_str_check(out, diag);
done:
    rssm_str_free(&r.text);
    return st;
}
