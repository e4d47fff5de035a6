// Status names and texts, and the one way a diagnostic is written.
//
// Does not log and does not allocate: a failure can always be reported, out of memory included.
// Threads: functions of their arguments; a rssm_diag belongs to one thread at a time.
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define STRINGIFY(x) #x
#define VERSION_TEXT(major, minor, patch) STRINGIFY(major) "." STRINGIFY(minor) "." STRINGIFY(patch)

const char *rssm_version(void)
{
    return VERSION_TEXT(RSSM_VERSION_MAJOR, RSSM_VERSION_MINOR, RSSM_VERSION_PATCH);
}

const char *rssm_status_name(rssm_status status)
{
    switch (status) {
#define STATUS_NAME(name, value, text)                                                                                 \
    case RSSM_##name:                                                                                                  \
        return "RSSM_" #name;
        RSSM_STATUS_LIST(STATUS_NAME)
#undef STATUS_NAME
    }
    return "unknown status";
}

const char *rssm_status_text(rssm_status status)
{
    switch (status) {
#define STATUS_TEXT(name, value, text)                                                                                 \
    case RSSM_##name:                                                                                                  \
        return text;
        RSSM_STATUS_LIST(STATUS_TEXT)
#undef STATUS_TEXT
    }
    return "unknown status";
}

// Where a text was cut inside a multi-byte UTF-8 sequence, removes the sequence's first bytes too.
static void trim_partial_utf8(char *text)
{
    const size_t n = strlen(text);
    size_t       lead = n;

    while (lead > 0 && n - lead < 3 && ((unsigned char)text[lead - 1] & 0xC0) == 0x80)
        lead--;
    if (lead == 0) return;
    const unsigned char c = (unsigned char)text[lead - 1];
    const size_t        need = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
    if (n - (lead - 1) < need) text[lead - 1] = '\0';
}

// Formats through a local buffer, so that the arguments may point into the text that is replaced.
rssm_status rssm_fail(rssm_diag *diag, rssm_status code, const char *file, int line, const char *format, ...)
{
    char    text[sizeof diag->text];
    va_list arguments;

    if (!diag) return code;
    va_start(arguments, format);
    const int n = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (n < 0) text[0] = '\0';
    if (n >= (int)sizeof text) trim_partial_utf8(text);
    diag->code = code;
    diag->file = file;
    diag->line = line;
    memcpy(diag->text, text, strlen(text) + 1);
    return code;
}

void rssm_diag_prefix(rssm_diag *diag, const char *format, ...)
{
    char    text[sizeof diag->text];
    va_list arguments;

    if (!diag) return;
    va_start(arguments, format);
    int n = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (n < 0) return;
    if (n < (int)sizeof text) n += snprintf(text + n, sizeof text - (size_t)n, ": %s", diag->text);
    if (n >= (int)sizeof text) trim_partial_utf8(text);
    memcpy(diag->text, text, strlen(text) + 1);
}
