// One formatted line to the host's callback. Allocates nothing; longer lines are cut.
// Threads: as the callback.
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

void rssm_log_printf(const rssm_log *log, rssm_log_level level, const char *format, ...)
{
    char    text[2048];
    va_list arguments;

    if (!log || !log->write) return;
    va_start(arguments, format);
    const int n = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (n >= 0) log->write(log->user, level, text);
}
