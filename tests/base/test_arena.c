// base/arena.h: alignment, zeroing, growth, reuse, failure.
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"

Test(arena, pieces_are_aligned_zeroed_and_apart)
{
    rssm_arena     a = {0};
    unsigned char *pieces[300];
    size_t         sizes[300];

    for (size_t i = 0; i < 300; i++) {
        sizes[i] = (i * 7919) % 1500;
        pieces[i] = rssm_arena_alloc(&a, sizes[i]);
        cr_assert_not_null(pieces[i]);
        cr_assert_eq((uintptr_t)pieces[i] % 16, 0);
        for (size_t k = 0; k < sizes[i]; k++)
            cr_assert_eq(pieces[i][k], 0);
        memset(pieces[i], (int)(i % 251) + 1, sizes[i]);
    }
    for (size_t i = 0; i < 300; i++) {
        for (size_t k = 0; k < sizes[i]; k++)
            cr_assert_eq(pieces[i][k], i % 251 + 1, "piece %zu was overwritten", i);
    }
    rssm_arena_free(&a);
}

Test(arena, large_pieces_and_reuse_after_free)
{
    rssm_arena a = {0};

    for (int round = 0; round < 2; round++) {
        char *small = rssm_arena_alloc(&a, 1), *large = rssm_arena_alloc(&a, 3 << 20);
        cr_assert(small && large);
        memset(large, 1, 3 << 20);
        cr_assert_eq(*small, 0);
        rssm_arena_free(&a);
        cr_assert_null(a.head);
    }
    rssm_arena_free(&a);
}

Test(arena, impossible_sizes_are_refused)
{
    rssm_arena a = {0};

    cr_assert_null(rssm_arena_alloc(&a, SIZE_MAX));
    cr_assert_null(rssm_arena_alloc(&a, SIZE_MAX - 20));
    cr_assert_null(rssm_arena_strndup(&a, "", SIZE_MAX));
    cr_assert_not_null(rssm_arena_alloc(&a, 5));
    rssm_arena_free(&a);
}

Test(arena, texts)
{
    rssm_arena a = {0};

    cr_assert_str_eq(rssm_arena_strndup(&a, "checkpoint", 5), "check");
    cr_assert_str_eq(rssm_arena_strndup(&a, NULL, 0), "");
    cr_assert_str_eq(rssm_arena_printf(&a, "$.%s[%d]", "a", 3), "$.a[3]");
    const char *wide = rssm_arena_printf(&a, "%*d", 9000, 1);
    cr_assert_eq(strlen(wide), 9000);
    rssm_arena_free(&a);
}

Test(arena, a_failed_block_leaves_the_arena_usable)
{
    rssm_arena a = {0};

    rssm_alloc_fail_after(1);
    cr_assert_null(rssm_arena_alloc(&a, 8));
    cr_assert_eq(rssm_alloc_fail_after(0), 1);
    char *p = rssm_arena_strndup(&a, "fine", 4);
    rssm_alloc_fail_after(1);
    cr_assert_null(rssm_arena_printf(&a, "%*d", 9000, 1));
    cr_assert_eq(rssm_alloc_fail_after(0), 1);
    cr_assert_str_eq(p, "fine");
    rssm_arena_free(&a);
}
