// Strict JSON: every error names the file and the JSON path ("stream.json: $.tunables[2].values"). Wraps cJSON.
// Values are small handles into their document and die with it. Not thread-safe per document.
#ifndef RSSM_BASE_JSON_H
#define RSSM_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"

typedef struct rssm_json rssm_json;

typedef struct rssm_json_value {
    rssm_json  *document;
    const void *node;
    const char *path;   // "$.a[2].b", owned by the document
} rssm_json_value;

// Parses one document; trailing text, duplicate keys, and depth above 64 are errors. `name` appears in messages.
// `code` is the status of every error from this document (RSSM_E_MANIFEST, RSSM_E_MODEL, RSSM_E_CORRUPT).
rssm_status     rssm_json_parse(const char *text, size_t n, const char *name, rssm_status code,
                                rssm_json **out_document, rssm_diag *diag);
void            rssm_json_free(rssm_json *document);
rssm_json_value rssm_json_root(rssm_json *document);

// Type checks and reads. Each fails with path, what was expected and what was found. Integers are exact: at most
// 2^53 - 1 in magnitude, and no fraction (1.0 and 1e3 are integers).
rssm_status rssm_json_as_object(rssm_json_value v, rssm_diag *diag);
rssm_status rssm_json_as_array(rssm_json_value v, size_t *out_count, rssm_diag *diag);
rssm_status rssm_json_as_integer(rssm_json_value v, int64_t low, int64_t high, int64_t *out_value, rssm_diag *diag);
rssm_status rssm_json_as_double(rssm_json_value v, double *out_value, rssm_diag *diag);
rssm_status rssm_json_as_bool(rssm_json_value v, bool *out_value, rssm_diag *diag);
rssm_status rssm_json_as_string(rssm_json_value v, const char **out_text, rssm_diag *diag);   // borrowed
bool        rssm_json_is_null(rssm_json_value v);
bool        rssm_json_is_string(rssm_json_value v);
bool        rssm_json_is_array(rssm_json_value v);

// Object and array access. `need` fails naming the missing key; `get` returns false where the key is absent.
bool            rssm_json_get(rssm_json_value object, const char *key, rssm_json_value *out_value);
rssm_status     rssm_json_need(rssm_json_value object, const char *key, rssm_json_value *out_value, rssm_diag *diag);
rssm_json_value rssm_json_at(rssm_json_value array_or_object, size_t index);   // in document order; index < count
size_t          rssm_json_count(rssm_json_value array_or_object);
const char     *rssm_json_key(rssm_json_value member);                         // its key in the enclosing object

// Fails on the first key of `object` that is not in the NULL-terminated list, suggesting the nearest known one.
rssm_status rssm_json_only_keys(rssm_json_value object, const char *const *keys, rssm_diag *diag);

// An error at this value, in the document's status: "name: path: sentence".
rssm_status rssm_json_fail(rssm_json_value v, rssm_diag *diag, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Appends `text` as a JSON string with quotes; invalid UTF-8 becomes U+FFFD.
void rssm_json_quote(rssm_str *out, const char *text);

// Which of a NULL-terminated list is nearest in edit distance to `word`; NULL where none is near. For "did you mean".
const char *rssm_nearest_word(const char *word, const char *const *list);

#endif
