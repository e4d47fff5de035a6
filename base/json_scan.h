// The grammar check that runs before cJSON, which accepts more than JSON. Only for json.c.
#ifndef RSSM_BASE_JSON_SCAN_H
#define RSSM_BASE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct rssm_json_mistake {
    size_t      line, column; // from 1; columns count bytes
    const char *what;         // static: "expected ',' or '}'"
} rssm_json_mistake;

enum { RSSM_JSON_DEPTH = 64 }; // deepest nesting of arrays and objects

// Whether the n bytes are exactly one JSON text (RFC 8259) in valid UTF-8, without NUL in any spelling, without lone
// surrogates, with numbers of at most 63 characters (cJSON's own buffer) and at most RSSM_JSON_DEPTH levels.
bool rssm_json_scan(const char *text, size_t n, rssm_json_mistake *out_mistake);

// Bytes of the valid UTF-8 sequence at the beginning of n bytes; 0 where it is not valid. n > 0.
size_t rssm_utf8_length(const char *bytes, size_t n);

#endif
