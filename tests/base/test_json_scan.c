// base/json_scan.h through rssm_json_parse: what is JSON, and the words for what is not.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static void check_accepted(const char *text)
{
    rssm_json *document = NULL;
    rssm_diag  diag = {0};

    cr_assert_eq(rssm_json_parse(text, strlen(text), "t.json", RSSM_E_MODEL, &document, &diag), RSSM_OK, "%s: %s", text,
                 diag.text);
    rssm_json_free(document);
}

Test(json_scan, accepted)
{
    const char *const texts[] = {
        "null",
        " true\n",
        "false",
        "0",
        "-0",
        "10",
        "-1.5e+3",
        "1E2",
        "0.5",
        "\"\"",
        "[]",
        "{}",
        "[ ]",
        "{ }",
        "[1,2 , 3]",
        "{\"a\":{\"b\":[{}]}}",
        "\"\\u00e9\\n\\/\\ud83d\\ude00\"",
        "\"\xC3\xA9\xF0\x9F\x98\x80\"",
        "\t\r\n[]\t\r\n",
        "{\"\":1}",
        "\"\x7F\"",
        "{\"a\":1,\"A\":2}",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        check_accepted(texts[i]);
}

static const struct {
    const char *text, *message;
} refused[] = {
    {"", "line 1, column 1: expected a value"},
    {"  ", "line 1, column 3: expected a value"},
    {"\xEF\xBB\xBF{}", "line 1, column 1: expected a value"},
    {"[1,]", "expected a value"},
    {"[1 2]", "expected ',' or ']'"},
    {"[1", "expected ',' or ']'"},
    {"{\"a\":1,}", "expected a string"},
    {"{\"a\" 1}", "expected ':'"},
    {"{\"a\":1 \"b\":2}", "expected ',' or '}'"},
    {"{a:1}", "expected a string"},
    {"{'a':1}", "expected a string"},
    {"[1]x", "line 1, column 4: text behind the end"},
    {"{}\n{}", "line 2, column 1: text behind the end"},
    {"nul", "expected a value"},
    {"True", "expected a value"},
    {"NaN", "expected a value"},
    {"Infinity", "expected a value"},
    {"-Infinity", "expected a digit"},
    {"01", "must not begin with 0"},
    {"-012", "must not begin with 0"},
    {"+1", "expected a value"},
    {".5", "expected a value"},
    {"1.", "expected a digit"},
    {"1e", "expected a digit"},
    {"-", "expected a digit"},
    {"0x10", "text behind the end"},
    {"1//c", "text behind the end"},
    {"/*c*/1", "expected a value"},
    {"1111111111222222222233333333334444444444555555555566666666667777", "too long"},
    {"\"abc", "without its end"},
    {"\"a\\", "unknown escape"},
    {"\"a\\x\"", "unknown escape"},
    {"\"a\nb\"", "control character"},
    {"\"a\tb\"", "control character"},
    {"\"\\u12\"", "four hexadecimal digits"},
    {"\"\\u0000\"", "NUL"},
    {"\"\\ud800\"", "lone surrogate"},
    {"\"\\udc00\"", "lone surrogate"},
    {"\"\\ud800\\ud800\"", "lone surrogate"},
    {"\"\\ud800\\n\"", "lone surrogate"},
    {"\"\xFF\"", "invalid UTF-8"},
    {"\"\xC0\x80\"", "invalid UTF-8"},
    {"\"\xED\xA0\x80\"", "invalid UTF-8"},
    {"\"\xE0\x80\x80\"", "invalid UTF-8"},
    {"\"\xF0\x80\x80\x80\"", "invalid UTF-8"},
    {"\"\xF4\x90\x80\x80\"", "invalid UTF-8"},
    {"\"\xE2\x82\"", "invalid UTF-8"},
    {"{\"a\":1,\"b\":2,\"a\":3}", "$: the key \"a\" is given twice"},
    {"{\"x\":[0,{\"b\":1,\"b\":2}]}", "$.x[1]: the key \"b\" is given twice"},
    {"{\"x\":{\"\\u0061\":1,\"a\":2}}", "$.x: the key \"a\" is given twice"},
    {"{\"odd key\":{\"b\":1,\"b\":2}}", "$[\"odd key\"]: the key"},
};

Test(json_scan, refused)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        rssm_json *document = NULL;
        rssm_diag  diag = {0};
        cr_assert_eq(
            rssm_json_parse(refused[i].text, strlen(refused[i].text), "t.json", RSSM_E_MODEL, &document, &diag),
            RSSM_E_MODEL, "%s was accepted", refused[i].text);
        cr_assert_null(document);
        cr_assert_eq(strncmp(diag.text, "t.json: ", 8), 0);
        cr_assert_neq(strstr(diag.text, refused[i].message), NULL, "%s gives: %s", refused[i].text, diag.text);
    }
}

Test(json_scan, nul_bytes_are_refused)
{
    const char texts[3][6] = {"1\0", "[1\0,2]", "\"a\0b\""};

    for (size_t i = 0; i < 3; i++) {
        rssm_json *document = NULL;
        cr_assert_eq(rssm_json_parse(texts[i], i == 0 ? 2 : 5, "t", RSSM_E_CORRUPT, &document, NULL), RSSM_E_CORRUPT);
    }
}

// The text need not end with NUL, and nothing behind n is read.
Test(json_scan, length_is_respected)
{
    char      *text = malloc(4);
    rssm_json *document = NULL;
    int64_t    value = 0;

    memcpy(text, "1234", 4);
    for (size_t n = 1; n <= 4; n++) {
        const int64_t expected[] = {0, 1, 12, 123, 1234};
        cr_assert_eq(rssm_json_parse(text, n, "t", RSSM_E_CORRUPT, &document, NULL), RSSM_OK);
        cr_assert_eq(rssm_json_as_integer(rssm_json_root(document), 0, 9999, &value, NULL), RSSM_OK);
        cr_assert_eq(value, expected[n]);
        rssm_json_free(document);
    }
    free(text);
}

Test(json_scan, depth)
{
    for (int depth = 63; depth <= 66; depth++) {
        char       text[200] = "";
        rssm_json *document = NULL;
        for (int i = 0; i < depth; i++)
            strcat(text, "[");
        for (int i = 0; i < depth; i++)
            strcat(text, "]");
        const rssm_status st = rssm_json_parse(text, strlen(text), "t", RSSM_E_CORRUPT, &document, NULL);
        cr_assert_eq(st, depth <= 64 ? RSSM_OK : RSSM_E_CORRUPT, "%d levels", depth);
        rssm_json_free(document);
    }
}

// Whatever is quoted reads back: every single byte and pair of bytes.
Test(json_scan, quoted_texts_parse)
{
    for (int a = 1; a < 256; a++) {
        const char text[3] = {(char)a, (char)(a * 7 % 255 + 1), 0};
        rssm_str   s = {0};
        rssm_json_quote(&s, text);
        check_accepted(rssm_str_c(&s));
        rssm_str_free(&s);
    }
}
