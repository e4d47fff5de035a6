// A log destination: the host's callback, or nothing. Library code never writes to stdio.
#ifndef RSSM_BASE_LOG_H
#define RSSM_BASE_LOG_H

#include "base/status.h"

typedef struct rssm_log {
    rssm_log_fn *write;   // NULL: silent
    void        *user;
} rssm_log;

void rssm_log_printf(const rssm_log *log, rssm_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
