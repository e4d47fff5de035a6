// errno values as statuses and words. Only for files of base/ that make system calls.
#ifndef RSSM_BASE_SYSTEM_ERROR_H
#define RSSM_BASE_SYSTEM_ERROR_H

#include "base/status.h"

// The status that says best what an errno value means: E_PERMISSION, E_NOT_FOUND, E_READ_ONLY, E_NO_MEMORY, else E_IO.
rssm_status rssm_error_status(int error);

// The system's words for it, in the caller's buffer. Thread-safe, unlike strerror.
typedef struct rssm_error_text {
    char text[128];
} rssm_error_text;

rssm_error_text rssm_error_words(int error);

#endif
