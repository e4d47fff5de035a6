// base/log.h: one call per line, silence without a callback.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

typedef struct capture {
    int            n;
    rssm_log_level level;
    char           text[4096];
} capture;

static void keep(void *user, rssm_log_level level, const char *text)
{
    capture *c = user;

    c->n++;
    c->level = level;
    snprintf(c->text, sizeof c->text, "%s", text);
}

Test(log, formats_into_the_callback)
{
    capture        c = {0};
    const rssm_log log = {keep, &c}, silent = {0};

    rssm_log_printf(NULL, RSSM_LOG_WARN, "nobody");
    rssm_log_printf(&silent, RSSM_LOG_WARN, "nobody");
    cr_assert_eq(c.n, 0);
    rssm_log_printf(&log, RSSM_LOG_WARN, "%s: %d", "rows", 3);
    cr_assert_eq(c.n, 1);
    cr_assert_eq(c.level, RSSM_LOG_WARN);
    cr_assert_str_eq(c.text, "rows: 3");
    rssm_log_printf(&log, RSSM_LOG_DEBUG, "%*d", 5000, 1);
    cr_assert_eq(strlen(c.text), 2047);
}
