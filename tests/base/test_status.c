// base/status.h and the status functions of the public header.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

Test(status, names_texts_and_version)
{
    char version[32];

    cr_assert_str_eq(rssm_status_name(RSSM_OK), "RSSM_OK");
    cr_assert_str_eq(rssm_status_name(RSSM_E_IO), "RSSM_E_IO");
    cr_assert_str_eq(rssm_status_text(RSSM_E_MISS), "no tuned kernel for this problem");
    cr_assert_str_eq(rssm_status_name((rssm_status)9999), "unknown status");
    cr_assert_str_eq(rssm_status_text((rssm_status)9999), "unknown status");
    snprintf(version, sizeof version, "%d.%d.%d", RSSM_VERSION_MAJOR, RSSM_VERSION_MINOR, RSSM_VERSION_PATCH);
    cr_assert_str_eq(rssm_version(), version);
}

Test(status, fail_fills_a_diagnostic_and_takes_null)
{
    rssm_diag diag = {0};

    cr_assert_eq(RSSM_FAIL(NULL, RSSM_E_IO, "%s", "x"), RSSM_E_IO);
    cr_assert_eq(RSSM_FAIL(&diag, RSSM_E_BUSY, "slot %d is busy", 7), RSSM_E_BUSY);
    cr_assert_eq(diag.code, RSSM_E_BUSY);
    cr_assert_str_eq(diag.text, "slot 7 is busy");
    cr_assert_neq(strstr(diag.file, "test_status.c"), NULL);
    cr_assert_gt(diag.line, 0);
}

Test(status, a_diagnostic_may_quote_itself)
{
    rssm_diag diag = {0};

    (void)RSSM_FAIL(&diag, RSSM_E_IO, "cause");
    (void)RSSM_FAIL(&diag, RSSM_E_IO, "effect: %s", diag.text);
    cr_assert_str_eq(diag.text, "effect: cause");
    rssm_diag_prefix(&diag, "rows.json (%d)", 2);
    cr_assert_str_eq(diag.text, "rows.json (2): effect: cause");
    rssm_diag_prefix(NULL, "nobody");
}

Test(status, long_texts_are_cut_between_characters)
{
    char text[3000];

    for (size_t shift = 0; shift < 4; shift++) {
        rssm_diag diag = {0};
        memset(text, 'x', shift);
        for (size_t i = shift; i + 3 < sizeof text; i += 3)
            memcpy(text + i, "\xE2\x82\xAC", 4); // the euro sign, three bytes
        (void)RSSM_FAIL(&diag, RSSM_E_IO, "%s", text);
        const size_t n = strlen(diag.text);
        cr_assert_gt(n, sizeof diag.text - 4);
        cr_assert_lt(n, sizeof diag.text);
        cr_assert_eq((n - shift) % 3, 0, "a character was cut at shift %zu", shift);
        rssm_diag_prefix(&diag, "0123456789");
        cr_assert_lt(strlen(diag.text), sizeof diag.text);
        cr_assert_eq((strlen(diag.text) - shift - 12) % 3, 0, "a character was cut behind a prefix");
    }
}

static rssm_status tried(rssm_status first, int *out_reached)
{
    rssm_status st;

    RSSM_TRY(first);
    *out_reached = 1;
done:
    return st;
}

Test(status, try_leaves_on_failure_only)
{
    int reached = 0;

    cr_assert_eq(tried(RSSM_E_IO, &reached), RSSM_E_IO);
    cr_assert_eq(reached, 0);
    cr_assert_eq(tried(RSSM_OK, &reached), RSSM_OK);
    cr_assert_eq(reached, 1);
}
