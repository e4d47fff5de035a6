// See compile_log.h.
#include "gen/compile_log.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// "error:" of clang and NVRTC, "error   :" of ptxas, what GNU ld and lld say, and clang about a missing linker.
static const char *const error_marks[] = {"error:",           "error   :", "undefined reference",
                                          "undefined symbol", "ld: ",      "fatal   :"};

static bool is_error_line(const char *line, size_t n)
{
    for (size_t i = 0; i < sizeof error_marks / sizeof error_marks[0]; ++i) {
        const char *found = strstr(line, error_marks[i]);
        if (found && found < line + n) return true;
    }
    return false;
}

void rssm_log_first_error(const char *log, rssm_str *out)
{
    const char *line = log + strspn(log, "\r\n");

    for (const char *s = line; *s; s += strspn(s, "\r\n")) {
        const size_t n = strcspn(s, "\r\n");
        if (is_error_line(s, n)) {
            line = s;
            break;
        }
        s += n;
    }
    if (!*line) {
        rssm_str_puts(out, "the compiler said nothing");
        return;
    }
    rssm_str_append(out, line, strcspn(line, "\r\n"));
}

void rssm_log_replace(const char *log, const char *from, const char *to, rssm_str *out)
{
    for (const char *found; (found = strstr(log, from)); log = found + strlen(from)) {
        rssm_str_append(out, log, (size_t)(found - log));
        rssm_str_puts(out, to);
    }
    rssm_str_puts(out, log);
}

// The number that stands before `what` between `start` and `end`, as in "Used 32 registers"; 0 if there is none.
static uint32_t number_before(const char *start, const char *end, const char *what)
{
    const char *found = strstr(start, what);
    const char *digit = found;

    if (!found || (end && found >= end)) return 0;
    while (digit > start && digit[-1] >= '0' && digit[-1] <= '9')
        --digit;
    return digit < found ? (uint32_t)strtoul(digit, NULL, 10) : 0;
}

rssm_log_resources rssm_log_find_resources(const char *log, const char *entry)
{
    static const char  mark[] = "Compiling entry function '";
    rssm_log_resources resources = {0};
    const size_t       n = strlen(entry);
    const char        *end;

    for (const char *s = log; (s = strstr(s, mark));) {
        s += sizeof mark - 1;
        if (strncmp(s, entry, n) != 0 || s[n] != '\'') continue;
        end = strstr(s, mark);
        resources.registers = number_before(s, end, " registers");
        resources.shared_bytes = number_before(s, end, " bytes smem");
        resources.spill_bytes =
            number_before(s, end, " bytes spill stores") + number_before(s, end, " bytes spill loads");
        break;
    }
    return resources;
}
