// Damaged configs and failing allocations: a status each time, never a crash, and a model only where it holds together.
#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/model/model_fixture.h"

static void expect_sane(const char *what, const rssm_model_config *c)
{
    cr_expect(c->n_heads >= 1 && c->n_heads <= RSSM_CONFIG_MAX_HEADS, "%s", what);
    cr_expect(c->head_dim >= 1 && c->head_dim <= RSSM_CONFIG_MAX_DIM, "%s", what);
    cr_expect(c->state_size >= 1 && c->state_size <= RSSM_CONFIG_MAX_DIM, "%s", what);
    cr_expect(c->n_layers >= 1 && c->n_layers <= RSSM_CONFIG_MAX_LAYERS, "%s", what);
    cr_expect(c->n_groups >= 1 && c->n_heads % c->n_groups == 0, "%s", what);
}

// Parses n bytes from memory of exactly that size, so that a sanitizer sees a read behind them.
static rssm_status parse_exact(const char *text, size_t n, rssm_model_config *out_config, rssm_diag *diag)
{
    const rssm_model_options options = RSSM_MODEL_OPTIONS_INIT;
    char                    *copy = rssm_alloc(n == 0 ? 1 : n);
    memcpy(copy, text, n);
    const rssm_status st = rssm_model_config_parse(copy, n, "test.json", &options, out_config, diag);
    rssm_free(copy);
    return st;
}

Test(model_untrusted, survives_truncation_at_every_byte)
{
    for (size_t i = 0; i < n_model_fixtures; i++) {
        size_t n;
        char  *text = fixture_text(&model_fixtures[i], &n);
        for (size_t keep = 0; keep <= n; keep++) {
            rssm_diag         diag = {0};
            rssm_model_config c = {0};
            const bool        is_whole = keep + 1 >= n; // the file ends in "}\n"
            const rssm_status st = parse_exact(text, keep, &c, &diag);
            cr_expect_eq(st, is_whole ? RSSM_OK : RSSM_E_MODEL, "%s cut to %zu bytes: %d %s", model_fixtures[i].file,
                         keep, st, diag.text);
            cr_expect_eq(st == RSSM_OK, diag.text[0] == '\0');
        }
        rssm_free(text);
    }
}

Test(model_untrusted, survives_any_changed_byte)
{
    static const char bytes[] = {'\0', '\xff', '"', '{', ']', '9', '-', '\\', 'e', ','};
    size_t            n_accepted = 0, n_refused = 0;
    for (size_t i = 0; i < n_model_fixtures; i++) {
        size_t n;
        char  *text = fixture_text(&model_fixtures[i], &n);
        for (size_t at = 0; at < n; at++) {
            const char kept = text[at];
            for (size_t b = 0; b < sizeof bytes; b++) {
                rssm_diag         diag = {0};
                rssm_model_config c = {0};
                text[at] = bytes[b];
                const rssm_status st = parse_exact(text, n, &c, &diag);
                cr_expect(st == RSSM_OK || st == RSSM_E_MODEL || st == RSSM_E_UNSUPPORTED, "%s byte %zu: %d",
                          model_fixtures[i].file, at, st);
                if (st == RSSM_OK) expect_sane(model_fixtures[i].file, &c);
                n_accepted += st == RSSM_OK;
                n_refused += st != RSSM_OK;
            }
            text[at] = kept;
        }
        rssm_free(text);
    }
    cr_expect(n_accepted > 1000 && n_refused > 10000, "%zu accepted, %zu refused", n_accepted, n_refused);
}

// Long lists must not take quadratic time, deep nesting must not exhaust the stack.
Test(model_untrusted, bounds_its_work, .timeout = 20)
{
    static const struct {
        const char *head, *unit, *tail;
        int         n;
    } cases[] = {
        {"{\"model_type\":\"bamba\",\"hidden_size\":96,\"mamba_n_heads\":3,\"mamba_d_state\":8,"
         "\"num_hidden_layers\":4096,\"attn_layer_indices\":[0",
         ",0", "]}", 500000},
        {"{\"model_type\":\"nemotron_h\",\"mamba_num_heads\":8,\"mamba_head_dim\":8,\"ssm_state_size\":8,"
         "\"layers_block_type\":[\"mamba\"",
         ",\"mamba\"", "]}", 100000},
        {"{\"model_type\":\"nemotron_h\",\"mamba_num_heads\":8,\"mamba_head_dim\":8,\"ssm_state_size\":8,"
         "\"hybrid_override_pattern\":\"",
         "M", "\"}", 1000000},
        {"", "[", "", 1000000},
        {"", "{\"text_config\":", "", 50000},
        {"\"", "\\", "", 999999},
        {"", "NaN", "", 300000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rssm_str          text = {0};
        rssm_diag         diag = {0};
        rssm_model_config c;
        rssm_str_puts(&text, cases[i].head);
        for (int k = 0; k < cases[i].n; k++)
            rssm_str_puts(&text, cases[i].unit);
        rssm_str_puts(&text, cases[i].tail);
        cr_expect_eq(parse_exact(rssm_str_c(&text), text.length, &c, &diag), RSSM_E_MODEL, "case %zu", i);
        rssm_str_free(&text);
    }
}

Test(model_untrusted, reports_failed_allocations)
{
    for (size_t i = 0; i < n_model_fixtures; i++) {
        size_t n;
        char  *text = fixture_text(&model_fixtures[i], &n);
        int    n_failed = 0;
        for (long nth = 1; nth < 10000; nth++) {
            rssm_diag                diag = {0};
            rssm_model_config        c = {0};
            const rssm_model_options options = RSSM_MODEL_OPTIONS_INIT;
            rssm_alloc_fail_after(nth);
            const rssm_status st = rssm_model_config_parse(text, n, "test.json", &options, &c, &diag);
            const int         fired = rssm_alloc_fail_after(0);
            cr_expect(st == RSSM_OK || (fired && st == RSSM_E_NO_MEMORY), "%s, allocation %ld: %d %s",
                      model_fixtures[i].file, nth, st, diag.text);
            cr_expect_eq(st == RSSM_OK, c.architecture != NULL);
            n_failed += st == RSSM_E_NO_MEMORY;
            if (!fired) break;
            cr_assert_lt(nth, 9999);
        }
        cr_expect_gt(n_failed, 0, "%s", model_fixtures[i].file);
        rssm_free(text);
    }
}
