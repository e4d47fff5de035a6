#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "gen/expr.h"

static rssm_facts test_facts(void)
{
    rssm_facts facts = {0};

    rssm_facts_set(&facts, "head_dim", 64);
    rssm_facts_set(&facts, "ROWS", 8);
    rssm_facts_set(&facts, "zero", 0);
    rssm_facts_set(&facts, "minus", -7);
    rssm_facts_set(&facts, "big", INT64_MAX);
    rssm_facts_set(&facts, "small", INT64_MIN);
    rssm_facts_set(&facts, "dev.cores", 4);
    return facts;
}

static rssm_status run(const char *text, int64_t *out_value, rssm_diag *diag)
{
    rssm_arena       arena = {0};
    const rssm_expr *expr = NULL;
    const rssm_facts facts = test_facts();
    rssm_status      st = rssm_expr_parse(text, &arena, &expr, diag);

    if (st == RSSM_OK) {
        cr_assert_str_eq(rssm_expr_text(expr), text);
        st = rssm_expr_eval(expr, &facts, out_value, diag);
    }
    rssm_arena_free(&arena);
    return st;
}

Test(expr, values)
{
    static const struct {
        const char *text;
        int64_t     value;
    } cases[] = {
        {"0", 0},
        {"  42  ", 42},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775807 - 1", INT64_MIN},
        {"1 + 2 * 3", 7},
        {"(1 + 2) * 3", 9},
        {"10 - 4 - 3", 3},
        {"100 / 5 / 2", 10},
        {"100 / 7 % 4", 2},
        {"2 * 7 % 4", 2},
        {"-7 / 2", -3},
        {"-7 % 2", -1},
        {"- -3", 3},
        {"!0 + !5", 1},
        {"!!7", 1},
        {"-!0", -1},
        {"1 < 2", 1},
        {"2 <= 1", 0},
        {"1 + 1 > 1", 1},
        {"3 >= 3 == 1", 1},
        {"1 == 2 != 1", 1},
        {"1 < 2 == 1", 1},
        {"0 || 0 && 1", 0},
        {"1 || 0 && 0", 1},
        {"2 && 3", 1},
        {"0 || 5", 1},
        {"1 ? 2 : 3", 2},
        {"0 ? 2 : 3", 3},
        {"0 ? 1 : 0 ? 2 : 3", 3},
        {"1 ? 0 ? 4 : 5 : 6", 5},
        {"1 || 0 ? 7 : 8", 7},
        {"1 ? 2 : 3 + 10", 2},
        {"min(3, 2) + max(3, 2)", 5},
        {"min(-1, 1 ? 4 : 5)", -1},
        {"ceil_div(7, 2)", 4},
        {"ceil_div(8, 2)", 4},
        {"ceil_div(-7, 2)", -3},
        {"ceil_div(7, -2)", -3},
        {"ceil_div(-7, -2)", 4},
        {"ceil_div(0, 5)", 0},
        {"head_dim % ROWS == 0", 1},
        {"head_dim/ROWS*dev.cores", 32},
        {"minus", -7},
        {"big + small", -1},
        {"small / 1", INT64_MIN},
        {"small - small", 0},
        // What is not needed is not computed.
        {"zero != 0 && 1 / zero", 0},
        {"zero == 0 || 1 / zero", 1},
        {"zero ? 1 / zero : 5", 5},
        {"1 ? 5 : unknown_name", 5},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        rssm_diag diag = {0};
        int64_t   value = -12345;
        cr_expect_eq(run(cases[i].text, &value, &diag), RSSM_OK, "\"%s\": %s", cases[i].text, diag.text);
        cr_expect_eq(value, cases[i].value, "\"%s\" gave %lld", cases[i].text, (long long)value);
    }
}

Test(expr, errors)
{
    static const struct {
        const char *text;
        rssm_status status;
        int         column;
        const char *message;
    } cases[] = {
        {"", RSSM_E_MANIFEST, 1, "expected a number"},
        {"1 +", RSSM_E_MANIFEST, 4, "expected a number"},
        {"1 + * 2", RSSM_E_MANIFEST, 5, "expected a number"},
        {"1 2", RSSM_E_MANIFEST, 3, "expected an operator"},
        {"(1", RSSM_E_MANIFEST, 3, "expected ')'"},
        {"1)", RSSM_E_MANIFEST, 2, "expected an operator"},
        {"1 ? 2", RSSM_E_MANIFEST, 6, "expected ':'"},
        {"1 << 2", RSSM_E_MANIFEST, 4, "expected a number"},
        {"1 & 2", RSSM_E_MANIFEST, 3, "expected an operator"},
        {"a = 2", RSSM_E_MANIFEST, 3, "expected an operator"},
        {"+1", RSSM_E_MANIFEST, 1, "expected a number"},
        {"0x10", RSSM_E_MANIFEST, 1, "decimal"},
        {"1.5", RSSM_E_MANIFEST, 1, "decimal"},
        {"9223372036854775808", RSSM_E_MANIFEST, 1, "does not fit"},
        {"99999999999999999999", RSSM_E_MANIFEST, 1, "does not fit"},
        {"mid(1, 2)", RSSM_E_MANIFEST, 1, "unknown function"},
        {"min(1)", RSSM_E_MANIFEST, 6, "expected ','"},
        {"min(1, 2, 3)", RSSM_E_MANIFEST, 9, "expected ')'"},
        {"\"text\"", RSSM_E_MANIFEST, 1, "expected a number"},
        {"head_dmi + 1", RSSM_E_MANIFEST, 1, "did you mean 'head_dim'?"},
        {"1 + dev.core", RSSM_E_MANIFEST, 5, "did you mean 'dev.cores'?"},
        {"qqqqqqqqqq", RSSM_E_MANIFEST, 1, "unknown name 'qqqqqqqqqq'"},
        {"1 / zero", RSSM_E_UNSUPPORTED, 3, "division by zero"},
        {"1 % zero", RSSM_E_UNSUPPORTED, 3, "division by zero"},
        {"ceil_div(1, zero)", RSSM_E_UNSUPPORTED, 1, "division by zero"},
        {"big + 1", RSSM_E_UNSUPPORTED, 5, "does not fit"},
        {"small - 1", RSSM_E_UNSUPPORTED, 7, "does not fit"},
        {"big * 2", RSSM_E_UNSUPPORTED, 5, "does not fit"},
        {"small / -1", RSSM_E_UNSUPPORTED, 7, "does not fit"},
        {"small % -1", RSSM_E_UNSUPPORTED, 7, "does not fit"},
        {"ceil_div(small, -1)", RSSM_E_UNSUPPORTED, 1, "does not fit"},
        {"-small", RSSM_E_UNSUPPORTED, 1, "does not fit"},
        {"1 && big + big", RSSM_E_UNSUPPORTED, 10, "does not fit"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        rssm_diag diag = {0};
        int64_t   value = -12345;
        char      column[32];
        snprintf(column, sizeof column, "column %d:", cases[i].column);
        cr_expect_eq(run(cases[i].text, &value, &diag), cases[i].status, "\"%s\"", cases[i].text);
        cr_expect_eq(value, -12345, "\"%s\" wrote its result", cases[i].text);
        cr_expect(strstr(diag.text, column), "\"%s\": no \"%s\" in: %s", cases[i].text, column, diag.text);
        cr_expect(strstr(diag.text, cases[i].message), "\"%s\": %s", cases[i].text, diag.text);
        cr_expect(strstr(diag.text, cases[i].text), "\"%s\" is not cited: %s", cases[i].text, diag.text);
    }
}

// Text of n times `open`, then "1", then n times `close`.
static char *nest(char *buffer, int n, const char *open, const char *close)
{
    buffer[0] = '\0';
    for (int i = 0; i < n; ++i)
        strcat(buffer, open);
    strcat(buffer, "1");
    for (int i = 0; i < n; ++i)
        strcat(buffer, close);
    return buffer;
}

Test(expr, depth_is_bounded)
{
    static char text[1 << 20];
    int64_t     value;
    rssm_diag   diag = {0};

    cr_expect_eq(run(nest(text, 20, "(", ")"), &value, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_eq(run(nest(text, 50, "", " + 1"), &value, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_eq(value, 51);
    cr_expect_eq(run(nest(text, 5000, "(", ")"), &value, &diag), RSSM_E_MANIFEST);
    cr_expect(strstr(diag.text, "nested too deeply"));
    cr_expect_eq(run(nest(text, 5000, "-", ""), &value, &diag), RSSM_E_MANIFEST);
    cr_expect_eq(run(nest(text, 5000, "1 ? 1 : ", ""), &value, &diag), RSSM_E_MANIFEST);
    cr_expect_eq(run(nest(text, 5000, "min(1, ", ")"), &value, &diag), RSSM_E_MANIFEST);
    cr_expect_eq(run(nest(text, 5000, "", " + 1"), &value, &diag), RSSM_E_MANIFEST);
}

typedef struct seen {
    char text[128];
    int  stop_after;
} seen;

static bool record_name(void *context, const char *name, int column)
{
    seen *s = context;
    char  word[64];

    snprintf(word, sizeof word, "%s@%d ", name, column);
    strcat(s->text, word);
    return --s->stop_after != 0;
}

Test(expr, names_in_order)
{
    rssm_arena       arena = {0};
    const rssm_expr *expr = NULL;
    seen             all = {.stop_after = 0}, some = {.stop_after = 2};

    cr_assert_eq(rssm_expr_parse("a * (b + min(c, 1)) > 0 ? a : d", &arena, &expr, NULL), RSSM_OK);
    cr_expect(rssm_expr_names(expr, record_name, &all));
    cr_expect_str_eq(all.text, "a@1 b@6 c@14 a@27 d@31 ");
    cr_expect_not(rssm_expr_names(expr, record_name, &some));
    cr_expect_str_eq(some.text, "a@1 b@6 ");
    rssm_arena_free(&arena);
}

Test(expr, facts_replace_and_fill)
{
    rssm_facts facts = test_facts();
    int64_t    value = 0;
    size_t     n = facts.n;

    rssm_facts_set(&facts, "ROWS", 16);
    cr_expect_eq(facts.n, n);
    cr_expect(rssm_facts_get(&facts, "ROWS", &value));
    cr_expect_eq(value, 16);
    cr_expect_not(rssm_facts_get(&facts, "COLUMNS", &value));
    cr_expect_str_eq(rssm_problem_fact_names()[0], "head_dim");
    cr_expect_str_eq(rssm_device_fact_names(RSSM_CPU)[0], "dev.cores");
    cr_expect_null(rssm_device_fact_names(RSSM_CPU)[3]);
    cr_expect_str_eq(rssm_device_fact_names(RSSM_CUDA)[0], "dev.multiprocessors");
    cr_expect_null(rssm_device_fact_names(RSSM_CUDA)[6]);
}
