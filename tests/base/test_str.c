// base/str.h: growth, formatting, the sticky failure.
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

Test(str, empty)
{
    rssm_str s = {0};

    cr_assert_str_eq(rssm_str_c(&s), "");
    cr_assert_eq(rssm_str_check(&s, NULL), RSSM_OK);
    rssm_str_clear(&s);
    cr_assert_null(s.data);
    rssm_str_puts(&s, "");
    cr_assert_not_null(s.data);
    cr_assert_str_eq(s.data, "");
    rssm_str_free(&s);
    rssm_str_free(&s);
}

Test(str, many_appends_equal_one_text)
{
    rssm_str s = {0};
    char     expected[4000] = "";
    size_t   n = 0;

    for (int i = 0; i < 500; i++) {
        n += (size_t)snprintf(expected + n, sizeof expected - n, "%d,", i);
        if (i % 3 == 0)
            rssm_str_printf(&s, "%d,", i);
        else if (i % 3 == 1)
            rssm_str_append(&s, expected + n - snprintf(NULL, 0, "%d,", i), snprintf(NULL, 0, "%d,", i));
        else {
            char text[8];
            snprintf(text, sizeof text, "%d,", i);
            rssm_str_puts(&s, text);
        }
        cr_assert_eq(s.length, n);
        cr_assert_lt(s.length, s.capacity);
        cr_assert_eq(s.data[n], '\0');
    }
    cr_assert_str_eq(rssm_str_c(&s), expected);
    rssm_str_free(&s);
}

Test(str, append_takes_bytes_and_clear_keeps_memory)
{
    rssm_str s = {0};

    rssm_str_append(&s, "a\0b", 3);
    cr_assert_eq(s.length, 3);
    cr_assert_eq(memcmp(s.data, "a\0b", 4), 0);
    char *data = s.data;
    rssm_str_clear(&s);
    cr_assert_str_eq(rssm_str_c(&s), "");
    rssm_str_printf(&s, "%s", "again");
    cr_assert_eq(s.data, data);
    cr_assert_str_eq(s.data, "again");
    rssm_str_free(&s);
}

// Lengths around every doubling.
Test(str, printf_at_capacity_edges)
{
    for (int width = 1; width < 300; width++) {
        rssm_str s = {0};
        rssm_str_printf(&s, "%*d", width, 7);
        rssm_str_printf(&s, "%*d", width, 8);
        cr_assert_eq(s.length, (size_t)width * 2);
        cr_assert_eq(s.data[width - 1], '7');
        cr_assert_eq(s.data[2 * width - 1], '8');
        rssm_str_free(&s);
    }
}

Test(str, every_failed_allocation_sticks_and_keeps_the_text)
{
    for (long n = 1;; n++) {
        rssm_str  s = {0};
        rssm_diag diag = {0};

        rssm_alloc_fail_after(n);
        for (int i = 0; i < 100; i++) {
            rssm_str_puts(&s, "0123456789");
            rssm_str_printf(&s, "%d", i % 10);
        }
        if (!rssm_alloc_fail_after(0)) {
            cr_assert_eq(rssm_str_check(&s, &diag), RSSM_OK);
            cr_assert_eq(s.length, 1100);
            cr_assert_gt(n, 3, "several growths were tested");
            rssm_str_free(&s);
            break;
        }
        cr_assert_eq(rssm_str_check(&s, &diag), RSSM_E_NO_MEMORY);
        cr_assert_neq(strstr(diag.text, "memory"), NULL);
        const size_t length = s.length;
        rssm_str_puts(&s, "more");
        cr_assert_eq(s.length, length);
        rssm_str_free(&s);
        cr_assert_eq(rssm_str_check(&s, NULL), RSSM_OK, "free makes a fresh string");
    }
}

Test(str, an_impossible_length_fails)
{
    rssm_str s = {0};

    rssm_str_append(&s, "x", SIZE_MAX - 1);
    cr_assert(s.failed);
    rssm_str_free(&s);
}
