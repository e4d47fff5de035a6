// base/json.h: what is read, how refusals are worded, hostile documents. The grammar is in test_json_scan.c.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/thread.h"

static rssm_json *parse(const char *text)
{
    rssm_json *document = NULL;
    rssm_diag  diag = {0};

    cr_assert_eq(rssm_json_parse(text, strlen(text), "t.json", RSSM_E_MANIFEST, &document, &diag), RSSM_OK, "%s: %s",
                 text, diag.text);
    return document;
}

Test(json, integers)
{
    const struct {
        const char *text;
        bool        ok;
        int64_t     value;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"42", true, 42},
        {"-7", true, -7},
        {"1.0", true, 1},
        {"1e3", true, 1000},
        {"9007199254740991", true, 9007199254740991},
        {"-9007199254740991", true, -9007199254740991},
        {"9007199254740992", false, 0},
        {"9007199254740993", false, 0},
        {"-9007199254740992", false, 0},
        {"1e300", false, 0},
        {"1e999", false, 0},
        {"1.5", false, 0},
        {"-0.25", false, 0},
        {"1e-3", false, 0},
        {"\"1\"", false, 0},
        {"true", false, 0},
        {"null", false, 0},
        {"[1]", false, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rssm_json        *document = parse(cases[i].text);
        int64_t           value = 77;
        const rssm_status st = rssm_json_as_integer(rssm_json_root(document), INT64_MIN, INT64_MAX, &value, NULL);
        cr_assert_eq(st, cases[i].ok ? RSSM_OK : RSSM_E_MANIFEST, "%s", cases[i].text);
        cr_assert_eq(value, cases[i].ok ? cases[i].value : 77, "%s", cases[i].text);
        rssm_json_free(document);
    }
}

Test(json, integer_bounds_are_inclusive)
{
    rssm_json      *document = parse("[1,4,5]");
    rssm_json_value root = rssm_json_root(document);
    int64_t         value;
    rssm_diag       diag = {0};

    cr_assert_eq(rssm_json_as_integer(rssm_json_at(root, 0), 1, 4, &value, NULL), RSSM_OK);
    cr_assert_eq(rssm_json_as_integer(rssm_json_at(root, 1), 1, 4, &value, NULL), RSSM_OK);
    cr_assert_eq(rssm_json_as_integer(rssm_json_at(root, 2), 1, 4, &value, &diag), RSSM_E_MANIFEST);
    cr_assert_str_eq(diag.text, "t.json: $[2]: 5 is outside 1 .. 4");
    rssm_json_free(document);
}

Test(json, types_are_checked_with_path_and_words)
{
    rssm_json      *document = parse("{\"a\":{\"b\":[1,\"x\",true,null,2.5,{}]}}");
    rssm_json_value a, b;
    rssm_diag       diag = {0};
    const char     *text = NULL;
    double          number = 0;
    bool            flag = false;
    size_t          count = 0;

    cr_assert(rssm_json_get(rssm_json_root(document), "a", &a));
    cr_assert_eq(rssm_json_need(a, "b", &b, &diag), RSSM_OK);
    cr_assert_eq(rssm_json_as_array(b, &count, NULL), RSSM_OK);
    cr_assert_eq(count, 6);
    cr_assert_eq(rssm_json_as_string(rssm_json_at(b, 1), &text, NULL), RSSM_OK);
    cr_assert_str_eq(text, "x");
    cr_assert_eq(rssm_json_as_bool(rssm_json_at(b, 2), &flag, NULL), RSSM_OK);
    cr_assert(flag);
    cr_assert_eq(rssm_json_as_double(rssm_json_at(b, 4), &number, NULL), RSSM_OK);
    cr_assert_eq(number, 2.5);
    cr_assert(rssm_json_is_null(rssm_json_at(b, 3)) && !rssm_json_is_null(b));
    cr_assert(rssm_json_is_string(rssm_json_at(b, 1)) && !rssm_json_is_string(b));
    cr_assert(rssm_json_is_array(b) && !rssm_json_is_array(a));

    cr_assert_eq(rssm_json_as_string(rssm_json_at(b, 0), &text, &diag), RSSM_E_MANIFEST);
    cr_assert_str_eq(diag.text, "t.json: $.a.b[0]: expected a string, found a number");
    cr_assert_eq(rssm_json_as_bool(rssm_json_at(b, 3), &flag, &diag), RSSM_E_MANIFEST);
    cr_assert_str_eq(diag.text, "t.json: $.a.b[3]: expected true or false, found null");
    cr_assert_eq(rssm_json_as_object(b, &diag), RSSM_E_MANIFEST);
    cr_assert_str_eq(diag.text, "t.json: $.a.b: expected an object, found an array");
    cr_assert_eq(rssm_json_as_array(rssm_json_at(b, 5), &count, &diag), RSSM_E_MANIFEST);
    cr_assert_eq(rssm_json_as_double(rssm_json_at(b, 1), &number, &diag), RSSM_E_MANIFEST);
    cr_assert_eq(rssm_json_need(a, "c", &b, &diag), RSSM_E_MANIFEST);
    cr_assert_str_eq(diag.text, "t.json: $.a: the key \"c\" is missing");
    cr_assert_not(rssm_json_get(b, "a", &a), "an array has no keys");
    cr_assert_eq(rssm_json_fail(b, &diag, "must hold %d values", 2), RSSM_E_MANIFEST);
    cr_assert_str_eq(diag.text, "t.json: $.a.b: must hold 2 values");
    rssm_json_free(document);
    rssm_json_free(NULL);
}

Test(json, members_keep_their_order)
{
    rssm_json        *document = parse("{\"z\":1,\"a\":2,\"odd key\":3}");
    rssm_json_value   root = rssm_json_root(document);
    const char *const keys[] = {"z", "a", "odd key"}, *const paths[] = {"$.z", "$.a", "$[\"odd key\"]"};

    cr_assert_eq(rssm_json_count(root), 3);
    for (size_t i = 0; i < 3; i++) {
        int64_t value;
        cr_assert_str_eq(rssm_json_key(rssm_json_at(root, i)), keys[i]);
        cr_assert_str_eq(rssm_json_at(root, i).path, paths[i]);
        cr_assert_eq(rssm_json_as_integer(rssm_json_at(root, i), 0, 9, &value, NULL), RSSM_OK);
        cr_assert_eq(value, (int64_t)i + 1);
    }
    cr_assert_str_eq(rssm_json_key(root), "");
    rssm_json_free(document);
}

Test(json, strings_decode)
{
    rssm_json  *document = parse("\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\"");
    const char *text = NULL;

    cr_assert_eq(rssm_json_as_string(rssm_json_root(document), &text, NULL), RSSM_OK);
    cr_assert_str_eq(text, "a\"\\/\b\f\n\r\t\xC3\xA9\xF0\x9F\x98\x80");
    rssm_json_free(document);
}

Test(json, unknown_keys_suggest_the_nearest)
{
    const char *const keys[] = {"name", "version", "tunables", NULL};
    const struct {
        const char *text, *message;
    } cases[] = {
        {"{\"nmae\":1}", "t.json: $: unknown key \"nmae\""},
        {"{\"nam\":1}", "did you mean \"name\"?"},
        {"{\"tunable\":1}", "did you mean \"tunables\"?"},
        {"{\"versoin\":1}", "did you mean \"version\"?"},
        {"{\"zzz\":1}", "unknown key \"zzz\""},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rssm_json *document = parse(cases[i].text);
        rssm_diag  diag = {0};
        cr_assert_eq(rssm_json_only_keys(rssm_json_root(document), keys, &diag), RSSM_E_MANIFEST);
        cr_assert_neq(strstr(diag.text, cases[i].message), NULL, "%s", diag.text);
        rssm_json_free(document);
    }
    rssm_json *document = parse("{\"version\":1,\"name\":2}");
    cr_assert_eq(rssm_json_only_keys(rssm_json_root(document), keys, NULL), RSSM_OK);
    rssm_json_free(document);
}

Test(json, nearest_word)
{
    const char *const list[] = {"ROWS", "VEC", "STAGES",
                                "a-word-that-is-much-longer-than-the-sixty-three-bytes-that-fit-the-table", NULL};
    const char *const none[] = {NULL};

    cr_assert_str_eq(rssm_nearest_word("ROW", list), "ROWS");
    cr_assert_str_eq(rssm_nearest_word("ROWS", list), "ROWS");
    cr_assert_str_eq(rssm_nearest_word("STAGE", list), "STAGES");
    cr_assert_str_eq(rssm_nearest_word("STGAES", list), "STAGES");
    cr_assert_null(rssm_nearest_word("columns", list));
    cr_assert_null(rssm_nearest_word("", list));
    cr_assert_null(rssm_nearest_word("ROWS", none));
    cr_assert_null(rssm_nearest_word(list[3], list));
}

Test(json, quote)
{
    const struct {
        const char *text, *quoted;
    } cases[] = {
        {"", "\"\""},
        {"plain", "\"plain\""},
        {"a\"b\\c/", "\"a\\\"b\\\\c/\""},
        {"\b\f\n\r\t\x01\x1F", "\"\\b\\f\\n\\r\\t\\u0001\\u001f\""},
        {"\xC3\xA9", "\"\xC3\xA9\""},
        {"\xFFx", "\"\xEF\xBF\xBDx\""},
        {"\xE2\x82", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"\xED\xA0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rssm_str s = {0};
        rssm_json_quote(&s, cases[i].text);
        cr_assert_str_eq(rssm_str_c(&s), cases[i].quoted);
        rssm_json_free(parse(rssm_str_c(&s)));
        rssm_str_free(&s);
    }
}

// A long key above many objects must not be copied for each of them.
Test(json, a_long_key_costs_once)
{
    rssm_str s = {0};

    rssm_str_puts(&s, "{\"");
    for (int i = 0; i < 100000; i++)
        rssm_str_puts(&s, "k");
    rssm_str_puts(&s, "\":[");
    for (int i = 0; i < 50000; i++)
        rssm_str_puts(&s, i ? ",{\"a\":1}" : "{\"a\":1}");
    rssm_str_puts(&s, "]}");
    rssm_json      *document = parse(rssm_str_c(&s));
    rssm_json_value list = rssm_json_at(rssm_json_root(document), 0);
    cr_assert_lt(strlen(rssm_json_at(list, 7).path), 1000);
    rssm_json_free(document);
    rssm_str_free(&s);
}

// Many distinct keys stay cheap; the pair that repeats is found wherever it stands.
Test(json, many_keys)
{
    for (int repeat = 0; repeat < 2; repeat++) {
        rssm_str   s = {0};
        rssm_json *document = NULL;
        for (int i = 0; i < 50000; i++)
            rssm_str_printf(&s, "%c\"k%d\":%d", i ? ',' : '{', i, i);
        rssm_str_puts(&s, repeat ? ",\"k123\":0}" : "}");
        const rssm_status st = rssm_json_parse(s.data, s.length, "t", RSSM_E_CORRUPT, &document, NULL);
        cr_assert_eq(st, repeat ? RSSM_E_CORRUPT : RSSM_OK);
        rssm_json_free(document);
        rssm_str_free(&s);
    }
}

Test(json, every_failed_allocation_is_clean)
{
    const char *text = "{\"a\":[1,{\"b\":2}],\"odd key\":{\"c\":{\"d\":3}}}";
    int         n_failed = 0;

    for (long n = 1;; n++) {
        rssm_json *document = NULL;
        rssm_alloc_fail_after(n);
        const rssm_status st = rssm_json_parse(text, strlen(text), "t", RSSM_E_CORRUPT, &document, NULL);
        const int         fired = rssm_alloc_fail_after(0);
        cr_assert(st == RSSM_OK || (fired && st == RSSM_E_NO_MEMORY));
        cr_assert_eq(document != NULL, st == RSSM_OK, "a path may be missing, a tree may not");
        rssm_json_free(document);
        if (!fired) break;
        n_failed++;
    }
    cr_assert_gt(n_failed, 2);
}

static void parse_some(void *context, int i)
{
    char       text[64];
    rssm_json *document = NULL;
    int64_t    value = -1;

    snprintf(text, sizeof text, "[%d,%s]", i, i % 2 ? "null" : "{\"a\":1}");
    if (rssm_json_parse(text, strlen(text), "t", RSSM_E_CORRUPT, &document, NULL) != RSSM_OK ||
        rssm_json_as_integer(rssm_json_at(rssm_json_root(document), 0), 0, 10000, &value, NULL) != RSSM_OK ||
        value != i)
        __atomic_fetch_add((int *)context, 1, __ATOMIC_RELAXED);
    rssm_json_free(document);
}

Test(json, documents_of_many_threads)
{
    int n_wrong = 0;

    rssm_parallel_for(8, 2000, parse_some, &n_wrong);
    cr_assert_eq(n_wrong, 0);
}
