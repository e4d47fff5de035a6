// Strict JSON grammar, without building anything: what passes here, cJSON can only refuse for want of memory.
//
// A scanner stops at its first mistake and keeps it; every function returns whether the scan goes on.
// Threads: thread-safe.
#include "base/json_scan.h"

#include <string.h>

enum { LONGEST_NUMBER = 63 }; // characters

typedef struct scanner {
    const char *text;
    size_t      at, n;
    const char *what; // the mistake, at `at`; NULL: none yet
} scanner;

static bool fail(scanner *s, const char *what)
{
    if (!s->what) s->what = what;
    return false;
}

// The next byte, or -1 at the end.
static int peek(const scanner *s)
{
    return s->at < s->n ? (unsigned char)s->text[s->at] : -1;
}

static void skip_space(scanner *s)
{
    for (int c = peek(s); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = peek(s))
        s->at++;
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool scan_digits(scanner *s)
{
    if (!is_digit(peek(s))) return fail(s, "expected a digit");
    while (is_digit(peek(s)))
        s->at++;
    return true;
}

static bool scan_number(scanner *s)
{
    const size_t begin = s->at;

    if (peek(s) == '-') s->at++;
    const bool is_zero = peek(s) == '0';
    if (is_zero) s->at++;
    if (is_zero && is_digit(peek(s))) return fail(s, "a number must not begin with 0");
    if (!is_zero && !scan_digits(s)) return false;
    if (peek(s) == '.') {
        s->at++;
        if (!scan_digits(s)) return false;
    }
    if (peek(s) == 'e' || peek(s) == 'E') {
        s->at++;
        if (peek(s) == '+' || peek(s) == '-') s->at++;
        if (!scan_digits(s)) return false;
    }
    return s->at - begin <= LONGEST_NUMBER ? true : fail(s, "the number is too long");
}

// Four hexadecimal digits, or -1.
static long hex4(scanner *s)
{
    long value = 0;

    for (int i = 0; i < 4; i++, s->at++) {
        const int c = peek(s), lower = c | 0x20;
        if (is_digit(c))
            value = value * 16 + (c - '0');
        else if (c >= 0 && lower >= 'a' && lower <= 'f')
            value = value * 16 + (lower - 'a' + 10);
        else
            return -1;
    }
    return value;
}

// Behind "\u": one code point, as one or two units.
static bool scan_unicode_escape(scanner *s)
{
    const long first = hex4(s);

    if (first < 0) return fail(s, "expected four hexadecimal digits");
    if (first == 0) return fail(s, "a string must not hold NUL");
    if (first >= 0xDC00 && first <= 0xDFFF) return fail(s, "a lone surrogate");
    if (first < 0xD800 || first > 0xDBFF) return true;
    if (s->n - s->at < 2 || memcmp(s->text + s->at, "\\u", 2) != 0) return fail(s, "a lone surrogate");
    s->at += 2;
    const long second = hex4(s);
    return second >= 0xDC00 && second <= 0xDFFF ? true : fail(s, "a lone surrogate");
}

static bool scan_escape(scanner *s)
{
    const int c = peek(s);

    if (c <= 0 || !strchr("\"\\/bfnrtu", c)) return fail(s, "an unknown escape in a string");
    s->at++;
    return c == 'u' ? scan_unicode_escape(s) : true;
}

static bool scan_string(scanner *s)
{
    if (peek(s) != '"') return fail(s, "expected a string");
    s->at++;
    for (;;) {
        const int c = peek(s);
        if (c < 0) return fail(s, "a string without its end");
        if (c < 0x20) return fail(s, "a control character in a string; write it as an escape");
        if (c == '"' || c == '\\') {
            s->at++;
            if (c == '"') return true;
            if (!scan_escape(s)) return false;
            continue;
        }
        const size_t length = rssm_utf8_length(s->text + s->at, s->n - s->at);
        if (length == 0) return fail(s, "invalid UTF-8 in a string");
        s->at += length;
    }
}

static bool scan_word(scanner *s, const char *word)
{
    const size_t n = strlen(word);

    if (s->n - s->at < n || memcmp(s->text + s->at, word, n) != 0) return fail(s, "expected a value");
    s->at += n;
    return true;
}

static bool scan_value(scanner *s, int depth);

// An array or an object: `close` is its last character.
static bool scan_members(scanner *s, char close, int depth)
{
    if (depth >= RSSM_JSON_DEPTH) return fail(s, "nested deeper than 64 levels");
    s->at++;
    skip_space(s);
    if (peek(s) == close) return s->at++, true;
    for (;;) {
        if (close == '}') {
            skip_space(s);
            if (!scan_string(s)) return false;
            skip_space(s);
            if (peek(s) != ':') return fail(s, "expected ':'");
            s->at++;
        }
        if (!scan_value(s, depth + 1)) return false;
        if (peek(s) == close) return s->at++, true;
        if (peek(s) != ',') return fail(s, close == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
        s->at++;
    }
}

// A value with the space around it. Recursion is bounded by RSSM_JSON_DEPTH.
static bool scan_value(scanner *s, int depth)
{
    bool ok;

    skip_space(s);
    switch (peek(s)) {
    case '{':
        ok = scan_members(s, '}', depth);
        break;
    case '[':
        ok = scan_members(s, ']', depth);
        break;
    case '"':
        ok = scan_string(s);
        break;
    case 't':
        ok = scan_word(s, "true");
        break;
    case 'f':
        ok = scan_word(s, "false");
        break;
    case 'n':
        ok = scan_word(s, "null");
        break;
    default:
        if (!is_digit(peek(s)) && peek(s) != '-') return fail(s, "expected a value");
        ok = scan_number(s);
    }
    if (ok) skip_space(s);
    return ok;
}

bool rssm_json_scan(const char *text, size_t n, rssm_json_mistake *out_mistake)
{
    scanner s = {.text = text, .n = n};

    if (scan_value(&s, 0) && s.at == n) return true;
    fail(&s, "text behind the end of the document");
    out_mistake->what = s.what;
    out_mistake->line = 1;
    out_mistake->column = 1;
    for (size_t i = 0; i < s.at && i < n; i++) {
        out_mistake->line += text[i] == '\n';
        out_mistake->column = text[i] == '\n' ? 1 : out_mistake->column + 1;
    }
    return false;
}

size_t rssm_utf8_length(const char *bytes, size_t n)
{
    const unsigned char *b = (const unsigned char *)bytes;
    size_t               length;
    unsigned char        low = 0x80, high = 0xBF; // of the second byte: keeps out long forms and surrogates

    if (b[0] < 0x80) return 1;
    if (b[0] >= 0xC2 && b[0] <= 0xDF)
        length = 2;
    else if (b[0] >= 0xE0 && b[0] <= 0xEF)
        length = 3;
    else if (b[0] >= 0xF0 && b[0] <= 0xF4)
        length = 4;
    else
        return 0;
    if (b[0] == 0xE0) low = 0xA0;
    if (b[0] == 0xED) high = 0x9F;
    if (b[0] == 0xF0) low = 0x90;
    if (b[0] == 0xF4) high = 0x8F;
    if (n < length || b[1] < low || b[1] > high) return 0;
    for (size_t i = 2; i < length; i++) {
        if ((b[i] & 0xC0) != 0x80) return 0;
    }
    return length;
}
