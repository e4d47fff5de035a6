// Statuses and diagnostics: how every fallible function of the project fails. Codes and texts are in replayssm.h.
#ifndef RSSM_BASE_STATUS_H
#define RSSM_BASE_STATUS_H

#include "include/replayssm.h"

// Fills `diag` (may be NULL) with one sentence and returns `code`: `return RSSM_FAIL(diag, RSSM_E_IO, "…", …);`
#define RSSM_FAIL(diag, code, ...) (rssm_fail((diag), (code), __FILE__, __LINE__, __VA_ARGS__), (code))

rssm_status rssm_fail(rssm_diag *diag, rssm_status code, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

// Puts "prefix: " before the sentence that is already in `diag`, e.g. the file a parser was reading.
void rssm_diag_prefix(rssm_diag *diag, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The only control-flow macro: needs `rssm_status st` and a `done:` label that frees and returns.
#define RSSM_TRY(call)                     \
    do {                                   \
        if ((st = (call)) != RSSM_OK) {    \
            goto done;                     \
        }                                  \
    } while (0)

#endif
