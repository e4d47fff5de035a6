// errno to status and words. Threads: thread-safe.
#define _GNU_SOURCE
#include "base/system_error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

rssm_status rssm_error_status(int error)
{
    switch (error) {
    case EACCES:
    case EPERM:
        return RSSM_E_PERMISSION;
    case ENOENT:
    case ENOTDIR:
        return RSSM_E_NOT_FOUND;
    case EROFS:
        return RSSM_E_READ_ONLY;
    case ENOMEM:
        return RSSM_E_NO_MEMORY;
    default:
        return RSSM_E_IO;
    }
}

rssm_error_text rssm_error_words(int error)
{
    rssm_error_text words;
    char            buffer[128];

    snprintf(words.text, sizeof words.text, "%s", strerror_r(error, buffer, sizeof buffer));
    return words;
}
