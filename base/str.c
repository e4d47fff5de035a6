// A growable string: doubling capacity, sticky failure.
//
// Invariants. S1: data is NULL exactly while nothing was appended; else data[length] == '\0' and length < capacity.
// S2: once `failed` is set the text no longer changes until rssm_str_free.
// Threads: one at a time per string.
#include "base/str.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { FIRST_CAPACITY = 64 }; // bytes

// Makes room for n more bytes and the NUL.
static bool reserve(rssm_str *s, size_t n)
{
    size_t capacity = s->capacity ? s->capacity : FIRST_CAPACITY;
    char  *data;

    if (s->failed) return false;
    if (n >= SIZE_MAX / 2 - s->length) goto failed;
    while (capacity < s->length + n + 1)
        capacity *= 2;
    if (capacity == s->capacity) return true;
    data = rssm_realloc(s->data, capacity);
    if (!data) goto failed;
    s->data = data;
    s->capacity = capacity;
    return true;
failed:
    s->failed = true;
    return false;
}

void rssm_str_append(rssm_str *s, const char *bytes, size_t n)
{
    if (!reserve(s, n)) return;
    if (n) memcpy(s->data + s->length, bytes, n);
    s->length += n;
    s->data[s->length] = '\0';
}

void rssm_str_puts(rssm_str *s, const char *text)
{
    rssm_str_append(s, text, strlen(text));
}

void rssm_str_printf(rssm_str *s, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    const int n = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (n < 0) s->failed = true;
    if (n < 0 || !reserve(s, (size_t)n)) return;
    va_start(arguments, format);
    vsnprintf(s->data + s->length, (size_t)n + 1, format, arguments);
    va_end(arguments);
    s->length += (size_t)n;
}

const char *rssm_str_c(const rssm_str *s)
{
    return s->data ? s->data : "";
}

rssm_status rssm_str_check(const rssm_str *s, rssm_diag *diag)
{
    if (!s->failed) return RSSM_OK;
    return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "out of memory while building a text of more than %zu bytes", s->length);
}

void rssm_str_clear(rssm_str *s)
{
    s->length = 0;
    if (s->data) s->data[0] = '\0';
}

void rssm_str_free(rssm_str *s)
{
    rssm_free(s->data);
    *s = (rssm_str){0};
}
