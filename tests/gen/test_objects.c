// What is read out of objects and logs.
#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "gen/build.h"
#include "gen/compile_log.h"
#include "gen/host_object.h"
#include "tests/gen/fixture.h"

// Any single damaged byte or cut gives a status, never a crash.
Test(objects, damaged_objects_are_refused)
{
    rssm_toolchain *toolchain = fixture_clang();
    rssm_object     object = {0};
    fixture_bench   b;
    unsigned        random = 12345;
    int             n_refused = 0;

    fixture_bench_open(&b, "scale_rows", NULL, NULL, NULL);
    cr_assert_eq(rssm_build(&b.input, toolchain, &object, NULL, NULL), RSSM_OK);
    cr_expect_eq(rssm_host_object_check(object.bytes, object.n, "scale_rows", NULL), RSSM_OK);
    cr_expect_eq(rssm_host_object_check(object.bytes, object.n, "scale_row", NULL), RSSM_E_MISMATCH);
    cr_expect_eq(rssm_host_object_check((const uint8_t *)"", 0, "scale_rows", NULL), RSSM_E_CORRUPT);
    for (size_t n = 0; n < object.n; n += 7) { // a copy of exactly n bytes, so that a sanitizer sees its end
        uint8_t *cut = rssm_alloc(n ? n : 1);
        memcpy(cut, object.bytes, n);
        cr_expect_neq(rssm_host_object_check(cut, n, "scale_rows", NULL), RSSM_OK, "%zu bytes", n);
        rssm_free(cut);
    }
    for (int i = 0; i < 20000; ++i) {
        size_t  at;
        uint8_t old;
        random = random * 1664525u + 1013904223u;
        at = i % 2 ? (random >> 8) % 64 : (random >> 8) % object.n;
        old = object.bytes[at];
        object.bytes[at] = (uint8_t)(random >> 24);
        n_refused += rssm_host_object_check(object.bytes, object.n, "scale_rows", NULL) != RSSM_OK;
        object.bytes[at] = old;
    }
    cr_expect_gt(n_refused, 1000);
    rssm_object_free(&object);
    fixture_bench_close(&b);
    rssm_toolchain_close(toolchain);
}

Test(objects, compiler_logs)
{
    static const struct {
        const char *log, *first;
    } cases[] = {
        {"", "the compiler said nothing"},
        {"\n\n", "the compiler said nothing"},
        {"odd\nlines\n", "odd"},
        {"a.c:1:2: warning: w\n  code\na.c:3:4: error: e\nmore\n", "a.c:3:4: error: e"},
        {"a.cu(3): error: x\r\n", "a.cu(3): error: x"},
        {"ptxas info : y\nptxas error   : out of registers\n", "ptxas error   : out of registers"},
        {"note\n/usr/bin/ld: a.o: undefined reference to `f'\n", "/usr/bin/ld: a.o: undefined reference to `f'"},
    };
    static const char ptxas[] =
        "ptxas info    : Compiling entry function 'other' for 'sm_90a'\n"
        "ptxas         .     8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n"
        "ptxas info    : Used 99 registers\n"
        "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
        "ptxas         .     0 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
        "ptxas info    : Used 32 registers, used 1 barriers, 1024 bytes smem, 400 bytes cmem[0]\n"
        "ptxas info    : Compiling entry function 'k2' for 'sm_90a'\n"
        "ptxas info    : Used 7 registers\n";
    rssm_str           out = {0};
    rssm_log_resources r;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        rssm_str_clear(&out);
        rssm_log_first_error(cases[i].log, &out);
        cr_expect_str_eq(rssm_str_c(&out), cases[i].first);
    }
    rssm_str_clear(&out);
    rssm_log_replace("/t/a:1 /t/b /t", "/t/", "", &out);
    cr_expect_str_eq(rssm_str_c(&out), "a:1 b /t");
    rssm_str_free(&out);
    r = rssm_log_find_resources(ptxas, "k");
    cr_expect_eq(r.registers, 32);
    cr_expect_eq(r.shared_bytes, 1024);
    cr_expect_eq(r.spill_bytes, 28);
    r = rssm_log_find_resources(ptxas, "k2");
    cr_expect_eq(r.registers, 7);
    cr_expect_eq(r.spill_bytes, 0);
    r = rssm_log_find_resources(ptxas, "unknown");
    cr_expect_eq(r.registers, 0);
}
