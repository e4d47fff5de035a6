// base/alloc.h: sizes, overflow, and the failure that tests arm.
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"

Test(alloc, zero_bytes_are_memory)
{
    void *a = rssm_alloc(0), *b = rssm_calloc(0, 8), *c = rssm_calloc(8, 0);

    cr_assert(a && b && c);
    rssm_free(b);
    rssm_free(c);
    a = rssm_realloc(a, 0);
    cr_assert_not_null(a);
    rssm_free(a);
    rssm_free(NULL);
}

Test(alloc, calloc_zeroes_and_refuses_overflow)
{
    unsigned char *p = rssm_calloc(100, 7);

    cr_assert_not_null(p);
    for (int i = 0; i < 700; i++)
        cr_assert_eq(p[i], 0);
    rssm_free(p);
    cr_assert_null(rssm_calloc(SIZE_MAX / 2 + 1, 2));
    cr_assert_null(rssm_calloc(2, SIZE_MAX / 2 + 1));
}

Test(alloc, strdup_copies)
{
    char  text[] = "window";
    char *copy = rssm_strdup(text);

    text[0] = 'W';
    cr_assert_str_eq(copy, "window");
    rssm_free(copy);
}

Test(alloc, the_nth_call_fails_once)
{
    for (long n = 1; n <= 4; n++) {
        void *p[4] = {0};

        rssm_alloc_fail_after(n);
        p[0] = rssm_alloc(8);
        p[1] = rssm_calloc(1, 8);
        p[2] = rssm_realloc(NULL, 8);
        p[3] = rssm_strdup("8");
        for (int i = 0; i < 4; i++) {
            cr_assert_eq(p[i] == NULL, i == n - 1, "call %d with failure %ld", i + 1, n);
            rssm_free(p[i]);
        }
        cr_assert_eq(rssm_alloc_fail_after(0), 1);
        cr_assert_eq(rssm_alloc_fail_after(0), 0, "reported once");
    }
}

Test(alloc, a_disarmed_failure_does_not_fire)
{
    rssm_alloc_fail_after(1);
    cr_assert_eq(rssm_alloc_fail_after(0), 0);
    void *p = rssm_alloc(1);
    cr_assert_not_null(p);
    rssm_free(p);
}

Test(alloc, a_failed_realloc_keeps_the_block)
{
    char *p = rssm_strdup("kept");

    rssm_alloc_fail_after(1);
    cr_assert_null(rssm_realloc(p, 1 << 20));
    cr_assert_str_eq(p, "kept");
    rssm_free(p);
}
