// Causes to statuses and sentences.
#define _GNU_SOURCE // strerror_r that returns text
#include "db/failure.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static const struct {
    rssm_status status;
    const char *what, *remedy;
} FAILURES[] = {
#define ENTRY(cause, status, what, remedy) {status, what, remedy},
    RSSM_FAILURE_LIST(ENTRY)
#undef ENTRY
};

rssm_status rssm_failure_report(rssm_failure cause, const char *path, const char *doing, const char *detail,
                                rssm_diag *diag)
{
    bool has_detail = detail != NULL;
    return RSSM_FAIL(diag, FAILURES[cause].status, "'%s': %s %s%s%s%s; %s", path, doing, FAILURES[cause].what,
                     has_detail ? " (" : "", has_detail ? detail : "", has_detail ? ")" : "", FAILURES[cause].remedy);
}

rssm_status rssm_failure_errno(int os_error, const char *path, const char *doing, rssm_diag *diag)
{
    static const struct {
        int          os_error;
        rssm_failure cause;
    } CAUSES[] = {
        {ENOMEM, RSSM_FAILURE_MEMORY},   {ENOSPC, RSSM_FAILURE_FULL},       {EDQUOT, RSSM_FAILURE_FULL},
        {EROFS, RSSM_FAILURE_READ_ONLY}, {EACCES, RSSM_FAILURE_PERMISSION}, {EPERM, RSSM_FAILURE_PERMISSION},
        {ENOENT, RSSM_FAILURE_ABSENT},   {ENOTDIR, RSSM_FAILURE_ABSENT},
    };
    char words[128];
    for (size_t i = 0; i < sizeof(CAUSES) / sizeof(CAUSES[0]); i++) {
        if (CAUSES[i].os_error == os_error) {
            return rssm_failure_report(CAUSES[i].cause, path, doing, NULL, diag);
        }
    }
    return rssm_failure_report(RSSM_FAILURE_OTHER, path, doing,
                               os_error != 0 ? strerror_r(os_error, words, sizeof(words)) : "input or output error",
                               diag);
}
