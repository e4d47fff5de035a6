// A growable string. Appends never fail loudly: after an allocation failure `failed` stays set and appends do
// nothing, so a builder checks once at its end with rssm_str_check.
#ifndef RSSM_BASE_STR_H
#define RSSM_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

typedef struct rssm_str {
    char  *data;   // NUL-terminated once anything was appended; NULL before
    size_t length, capacity;
    bool   failed;
} rssm_str;   // zero-initialise

void        rssm_str_append(rssm_str *s, const char *bytes, size_t n);
void        rssm_str_puts(rssm_str *s, const char *text);
void        rssm_str_printf(rssm_str *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *rssm_str_c(const rssm_str *s);                      // "" while empty
rssm_status rssm_str_check(const rssm_str *s, rssm_diag *diag);   // RSSM_E_NO_MEMORY after a failed append
void        rssm_str_clear(rssm_str *s);                        // keeps the memory
void        rssm_str_free(rssm_str *s);

#endif
