// Strict JSON over cJSON: grammar by json_scan.c, tree by cJSON, paths and messages here. The only file that includes
// cJSON.
//
// cJSON keeps a global error pointer that every parse writes, so parses of this process are serialised; it is never
// read. Its allocator hooks are global too and belong to the host: cJSON allocates by malloc, not by base/alloc.h.
// Threads: documents are independent; one document belongs to one thread at a time, because reading makes paths.
#include "base/json.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/json_scan.h"

enum { LONGEST_PATH = 512 }; // bytes; a diagnostic holds 1024

// Largest magnitude of an integer: above, a double no longer tells neighbours apart.
static const int64_t largest_integer = ((int64_t)1 << 53) - 1;

struct rssm_json {
    cJSON      *root;
    const char *name; // in the arena, as all paths
    rssm_status code;
    rssm_arena  arena;
};

static pthread_mutex_t parse_mutex = PTHREAD_MUTEX_INITIALIZER; // guards: cJSON's global error pointer

static const cJSON *node_of(rssm_json_value v)
{
    return v.node;
}

static bool is_identifier(const char *key)
{
    const size_t n = strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

    return n > 0 && key[n] == '\0' && !(key[0] >= '0' && key[0] <= '9');
}

// The path of the child at `index`: ".key", "[\"odd key\"]" or "[3]". The enclosing path where there is no memory for
// it or it grows long: hostile documents must not multiply a long key by every value below it.
static const char *child_path(rssm_json_value parent, const cJSON *child, size_t index)
{
    rssm_arena *arena = &parent.document->arena;
    const char *path = NULL;
    rssm_str    quoted = {0};

    if (strlen(parent.path) + (child->string ? strlen(child->string) : 0) > LONGEST_PATH) return parent.path;
    if (!child->string) {
        path = rssm_arena_printf(arena, "%s[%zu]", parent.path, index);
    } else if (is_identifier(child->string)) {
        path = rssm_arena_printf(arena, "%s.%s", parent.path, child->string);
    } else {
        rssm_json_quote(&quoted, child->string);
        if (!quoted.failed) path = rssm_arena_printf(arena, "%s[%s]", parent.path, rssm_str_c(&quoted));
    }
    rssm_str_free(&quoted);
    return path ? path : parent.path;
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Fails where two members of one object have the same key. Sorting, because documents may be hostile.
static rssm_status check_object_keys(rssm_json_value v, rssm_diag *diag)
{
    rssm_status  st = RSSM_OK;
    const size_t n = rssm_json_count(v);
    const char **keys = rssm_calloc(n, sizeof *keys);
    size_t       i = 0;

    if (!keys) {
        st = RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "%s: out of memory while reading", v.document->name);
        goto done;
    }
    for (const cJSON *child = node_of(v)->child; child; child = child->next)
        keys[i++] = child->string;
    qsort(keys, n, sizeof *keys, compare_keys);
    for (i = 1; i < n; i++) {
        if (strcmp(keys[i - 1], keys[i]) == 0) {
            st = rssm_json_fail(v, diag, "the key \"%s\" is given twice", keys[i]);
            goto done;
        }
    }
done:
    rssm_free(keys);
    return st;
}

// Fails where any object at or below v repeats a key. Recursion is bounded by RSSM_JSON_DEPTH.
static rssm_status check_keys(rssm_json_value v, rssm_diag *diag)
{
    size_t      index = 0;
    rssm_status st = cJSON_IsObject(node_of(v)) ? check_object_keys(v, diag) : RSSM_OK;

    for (const cJSON *child = node_of(v)->child; child && st == RSSM_OK; child = child->next, index++) {
        if (!child->child) continue;
        st = check_keys((rssm_json_value){v.document, child, child_path(v, child, index)}, diag);
    }
    return st;
}

rssm_status rssm_json_parse(const char *text, size_t n, const char *name, rssm_status code, rssm_json **out_document,
                            rssm_diag *diag)
{
    rssm_status       st = RSSM_OK;
    rssm_json_mistake mistake = {0};
    rssm_json        *document = NULL;

    if (!rssm_json_scan(text, n, &mistake)) {
        return RSSM_FAIL(diag, code, "%s: line %zu, column %zu: %s", name, mistake.line, mistake.column, mistake.what);
    }
    document = rssm_calloc(1, sizeof *document);
    if (document) {
        document->code = code;
        document->name = rssm_arena_strndup(&document->arena, name, strlen(name));
    }
    if (document && document->name) {
        pthread_mutex_lock(&parse_mutex);
        document->root = cJSON_ParseWithLength(text, n);
        pthread_mutex_unlock(&parse_mutex);
    }
    if (!document || !document->root) {
        st = RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "%s: out of memory while reading", name);
        goto done;
    }
    RSSM_TRY(check_keys(rssm_json_root(document), diag));
    *out_document = document;
    document = NULL;
done:
    rssm_json_free(document);
    return st;
}

void rssm_json_free(rssm_json *document)
{
    if (!document) return;
    cJSON_Delete(document->root);
    rssm_arena_free(&document->arena);
    rssm_free(document);
}

rssm_json_value rssm_json_root(rssm_json *document)
{
    return (rssm_json_value){document, document->root, "$"};
}

rssm_status rssm_json_fail(rssm_json_value v, rssm_diag *diag, const char *format, ...)
{
    char    text[sizeof diag->text];
    va_list arguments;

    va_start(arguments, format);
    const int n = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return RSSM_FAIL(diag, v.document->code, "%s: %s: %s", v.document->name, v.path, n < 0 ? "" : text);
}

static const char *type_of(const cJSON *node)
{
    return cJSON_IsObject(node)   ? "an object"
           : cJSON_IsArray(node)  ? "an array"
           : cJSON_IsString(node) ? "a string"
           : cJSON_IsNumber(node) ? "a number"
           : cJSON_IsBool(node)   ? "true or false"
                                  : "null";
}

static rssm_status fail_type(rssm_json_value v, const char *expected, rssm_diag *diag)
{
    return rssm_json_fail(v, diag, "expected %s, found %s", expected, type_of(node_of(v)));
}

rssm_status rssm_json_as_object(rssm_json_value v, rssm_diag *diag)
{
    return cJSON_IsObject(node_of(v)) ? RSSM_OK : fail_type(v, "an object", diag);
}

rssm_status rssm_json_as_array(rssm_json_value v, size_t *out_count, rssm_diag *diag)
{
    if (!cJSON_IsArray(node_of(v))) return fail_type(v, "an array", diag);
    *out_count = rssm_json_count(v);
    return RSSM_OK;
}

rssm_status rssm_json_as_integer(rssm_json_value v, int64_t low, int64_t high, int64_t *out_value, rssm_diag *diag)
{
    if (!cJSON_IsNumber(node_of(v))) return fail_type(v, "an integer", diag);
    const double d = node_of(v)->valuedouble;
    if (!(fabs(d) <= (double)largest_integer))
        return rssm_json_fail(v, diag, "%.17g is too large for an exact integer (2^53 - 1 at most)", d);
    if (d != floor(d)) return rssm_json_fail(v, diag, "expected an integer, found %.17g", d);
    const int64_t value = (int64_t)d;
    if (value < low || value > high) {
        return rssm_json_fail(v, diag, "%lld is outside %lld .. %lld", (long long)value, (long long)low,
                              (long long)high);
    }
    *out_value = value;
    return RSSM_OK;
}

rssm_status rssm_json_as_double(rssm_json_value v, double *out_value, rssm_diag *diag)
{
    if (!cJSON_IsNumber(node_of(v))) return fail_type(v, "a number", diag);
    if (!isfinite(node_of(v)->valuedouble)) return rssm_json_fail(v, diag, "the number is too large");
    *out_value = node_of(v)->valuedouble;
    return RSSM_OK;
}

rssm_status rssm_json_as_bool(rssm_json_value v, bool *out_value, rssm_diag *diag)
{
    if (!cJSON_IsBool(node_of(v))) return fail_type(v, "true or false", diag);
    *out_value = cJSON_IsTrue(node_of(v));
    return RSSM_OK;
}

rssm_status rssm_json_as_string(rssm_json_value v, const char **out_text, rssm_diag *diag)
{
    if (!cJSON_IsString(node_of(v))) return fail_type(v, "a string", diag);
    *out_text = node_of(v)->valuestring;
    return RSSM_OK;
}

bool rssm_json_is_null(rssm_json_value v)
{
    return cJSON_IsNull(node_of(v));
}

bool rssm_json_is_string(rssm_json_value v)
{
    return cJSON_IsString(node_of(v));
}

bool rssm_json_is_array(rssm_json_value v)
{
    return cJSON_IsArray(node_of(v));
}

bool rssm_json_get(rssm_json_value object, const char *key, rssm_json_value *out_value)
{
    if (!cJSON_IsObject(node_of(object))) return false;
    for (const cJSON *child = node_of(object)->child; child; child = child->next) {
        if (strcmp(child->string, key) == 0) {
            *out_value = (rssm_json_value){object.document, child, child_path(object, child, 0)};
            return true;
        }
    }
    return false;
}

rssm_status rssm_json_need(rssm_json_value object, const char *key, rssm_json_value *out_value, rssm_diag *diag)
{
    if (!cJSON_IsObject(node_of(object))) return fail_type(object, "an object", diag);
    if (rssm_json_get(object, key, out_value)) return RSSM_OK;
    return rssm_json_fail(object, diag, "the key \"%s\" is missing", key);
}

rssm_json_value rssm_json_at(rssm_json_value array_or_object, size_t index)
{
    const cJSON *child = node_of(array_or_object)->child;

    for (size_t i = 0; child && i < index; i++)
        child = child->next;
    assert(child);
    return (rssm_json_value){array_or_object.document, child, child_path(array_or_object, child, index)};
}

size_t rssm_json_count(rssm_json_value array_or_object)
{
    size_t n = 0;

    for (const cJSON *child = node_of(array_or_object)->child; child; child = child->next)
        n++;
    return n;
}

const char *rssm_json_key(rssm_json_value member)
{
    return node_of(member)->string ? node_of(member)->string : "";
}

rssm_status rssm_json_only_keys(rssm_json_value object, const char *const *keys, rssm_diag *diag)
{
    if (!cJSON_IsObject(node_of(object))) return fail_type(object, "an object", diag);
    for (const cJSON *child = node_of(object)->child; child; child = child->next) {
        const char *const *key = keys;
        while (*key && strcmp(*key, child->string) != 0)
            key++;
        if (*key) continue;
        const char *near = rssm_nearest_word(child->string, keys);
        if (near) return rssm_json_fail(object, diag, "unknown key \"%s\"; did you mean \"%s\"?", child->string, near);
        return rssm_json_fail(object, diag, "unknown key \"%s\"", child->string);
    }
    return RSSM_OK;
}

static void quote_character(rssm_str *out, const char *bytes, size_t length)
{
    static const char plain[] = "\"\\\b\f\n\r\t", escaped[] = "\"\\bfnrt";
    const char       *special = length == 1 ? strchr(plain, bytes[0]) : NULL;

    if (length == 0)
        rssm_str_puts(out, "\xEF\xBF\xBD"); // U+FFFD
    else if (special)
        rssm_str_printf(out, "\\%c", escaped[special - plain]);
    else if (length == 1 && (unsigned char)bytes[0] < 0x20)
        rssm_str_printf(out, "\\u%04x", bytes[0]);
    else
        rssm_str_append(out, bytes, length);
}

void rssm_json_quote(rssm_str *out, const char *text)
{
    size_t rest = strlen(text);

    rssm_str_puts(out, "\"");
    while (rest > 0) {
        const size_t length = rssm_utf8_length(text, rest), step = length ? length : 1;
        quote_character(out, text, length);
        text += step;
        rest -= step;
    }
    rssm_str_puts(out, "\"");
}
