// Include closures. The scanner knows comments, string and character literals and line continuations, and takes every
// #include "…" whatever #if stands around it: a closure may hold a file too many, never one too few.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "gen/source.h"

// ----------------------------------------------------------------------------------------------------------- scanner

// Behind a backslash-newline, if one stands at `s`; else `s`.
static const char *skip_continuation(const char *s)
{
    for (;;) {
        if (s[0] == '\\' && s[1] == '\n') {
            s += 2;
        } else if (s[0] == '\\' && s[1] == '\r' && s[2] == '\n') {
            s += 3;
        } else {
            return s;
        }
    }
}

// Behind the comment that starts at `s`; `s` itself if none does. A line comment ends at its newline.
static const char *skip_comment(const char *s)
{
    if (s[0] != '/') return s;
    if (s[1] == '*') {
        const char *end = strstr(s + 2, "*/");
        return end ? end + 2 : s + strlen(s);
    }
    if (s[1] != '/') return s;
    while (*s && *s != '\n') {
        const char *next = skip_continuation(s);
        s = next == s ? s + 1 : next;
    }
    return s;
}

// Behind the literal that starts with the quote at `s`; an unfinished one ends with its line.
static const char *skip_literal(const char *s)
{
    const char quote = *s++;

    while (*s && *s != quote && *s != '\n') {
        if (*s == '\\' && s[1]) ++s;
        ++s;
    }
    return *s == quote ? s + 1 : s;
}

// Behind blanks and comments within a line.
static const char *skip_blank(const char *s)
{
    for (;;) {
        const char *start = s;
        while (*s == ' ' || *s == '\t' || *s == '\r')
            ++s;
        s = skip_continuation(s);
        if (s[0] == '/' && s[1] == '*') s = skip_comment(s);
        if (s == start) return s;
    }
}

// If a directive #include "name" starts at `s`, sets *out_name and *out_n. Returns where to go on.
static const char *scan_directive(const char *s, const char **out_name, size_t *out_n)
{
    const char *end;

    *out_name = NULL;
    s = skip_blank(s + 1); // behind '#'
    if (strncmp(s, "include", 7) != 0) return s;
    s = skip_blank(s + 7);
    if (*s != '"') return s;
    end = ++s;
    while (*end && *end != '"' && *end != '\n')
        ++end;
    if (*end != '"') return end;
    *out_name = s;
    *out_n = (size_t)(end - s);
    return end + 1;
}

// The next #include "name" at or behind `s`; NULL at the end of the text.
static const char *next_include(const char *s, const char **out_name, size_t *out_n)
{
    bool is_line_start = true; // `s` is the start of the text, or behind the previous directive and its newline

    while (*s) {
        const char *blank = skip_blank(s);
        const char *comment = skip_comment(blank);
        if (comment != s) {
            s = comment;
        } else if (*s == '#' && is_line_start) {
            s = scan_directive(s, out_name, out_n);
            is_line_start = false;
            if (*out_name) return s;
        } else if (*s == '"' || *s == '\'') {
            s = skip_literal(s);
            is_line_start = false;
        } else {
            is_line_start = *s++ == '\n';
        }
    }
    return NULL;
}

// ----------------------------------------------------------------------------------------------------------- closure

static bool contains(const rssm_closure *closure, const rssm_template_file *file)
{
    for (size_t i = 0; i < closure->n; ++i) {
        if (closure->files[i] == file) return true;
    }
    return false;
}

static rssm_status add_include(const rssm_template_set *set, const char *name, size_t n, const char *includer,
                               rssm_closure *closure, rssm_diag *diag)
{
    const rssm_template_file *file;
    char                      path[256];

    if (n < sizeof path) {
        memcpy(path, name, n);
        path[n] = '\0';
        if (strcmp(path, RSSM_CONFIG_HEADER) == 0) strcpy(path, RSSM_CONFIG_HEADER_INCLUDE);
        file = rssm_template_set_file(set, path);
        if (file && !contains(closure, file)) closure->files[closure->n++] = file;
        if (file) return RSSM_OK;
    }
    return RSSM_FAIL(diag, RSSM_E_NOT_FOUND,
                     "%s includes \"%.*s\", which is not among the templates (%s); name it from their root", includer,
                     (int)n, name, rssm_template_set_origin(set));
}

static rssm_status scan_file(const rssm_template_set *set, const rssm_template_file *file, rssm_closure *closure,
                             rssm_diag *diag)
{
    rssm_status st = RSSM_OK;
    const char *name;
    size_t      n;

    for (const char *s = file->bytes; (s = next_include(s, &name, &n));) {
        RSSM_TRY(add_include(set, name, n, file->name, closure, diag));
    }
done:
    return st;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const rssm_template_file *const *)a)->name, (*(const rssm_template_file *const *)b)->name);
}

rssm_status rssm_closure_scan(const rssm_template_set *set, const char *source, rssm_closure *out_closure,
                              rssm_diag *diag)
{
    rssm_status               st = RSSM_OK;
    rssm_closure              closure = {0};
    const rssm_template_file *file = rssm_template_set_file(set, source);

    if (!file) {
        return RSSM_FAIL(diag, RSSM_E_NOT_FOUND, "the templates (%s) hold no file %s", rssm_template_set_origin(set),
                         source);
    }
    closure.files = rssm_calloc(rssm_template_set_file_count(set), sizeof *closure.files); // none appears twice
    if (!closure.files) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for the includes of %s", source);
    closure.files[closure.n++] = file;
    for (size_t i = 0; i < closure.n; ++i)
        RSSM_TRY(scan_file(set, closure.files[i], &closure, diag));
    qsort(closure.files + 1, closure.n - 1, sizeof *closure.files, compare_names);
    *out_closure = closure;
    closure = (rssm_closure){0};
done:
    rssm_closure_free(&closure);
    return st;
}

void rssm_closure_free(rssm_closure *closure)
{
    if (!closure) return;
    rssm_free(closure->files);
    *closure = (rssm_closure){0};
}
