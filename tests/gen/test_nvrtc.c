// NVRTC for real. It needs no GPU; where it is missing these tests fail and say how to get it.
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gen/build.h"
#include "tests/gen/fixture.h"

Test(nvrtc, compiles_for_every_generation)
{
    static const char *const archs[] = {"sm_80", "sm_90a", "sm_100a", "sm_120a"};
    rssm_toolchain          *toolchain = fixture_nvrtc();
    rssm_hash                keys[4];
    fixture_bench            b;

    fixture_bench_open(&b, "scale_elements", NULL, NULL, NULL);
    b.input.want_resources = true;
    cr_expect_eq(strncmp(rssm_toolchain_text(toolchain), "NVRTC ", 6), 0);
    for (int i = 0; i < 4; ++i) {
        rssm_object object = {0};
        rssm_diag   diag = {0};
        b.input.arch = archs[i];
        cr_expect_eq(rssm_toolchain_check_arch(toolchain, archs[i], &diag), RSSM_OK, "%s", diag.text);
        cr_assert_eq(rssm_build(&b.input, toolchain, &object, NULL, &diag), RSSM_OK, "%s", diag.text);
        cr_expect_eq(object.kind, RSSM_OBJECT_CUBIN);
        cr_expect(object.n > 4 && memcmp(object.bytes,
                                         "\x7f"
                                         "ELF",
                                         4) == 0);
        cr_expect(object.registers > 0 && object.registers < 64, "%u registers", object.registers);
        cr_expect_eq(object.spill_bytes, 0);
        cr_expect_geq(object.shared_bytes, 64 * 4);
        cr_expect(strstr(object.log, "scale_elements"), "%s", object.log);
        keys[i] = object.identity.build_key;
        for (int j = 0; j < i; ++j)
            cr_expect_not(rssm_hash_equal(&keys[i], &keys[j]));
        rssm_object_free(&object);
    }
    fixture_bench_close(&b);
    rssm_toolchain_close(toolchain);
}

Test(nvrtc, equal_inputs_give_equal_bytes)
{
    rssm_toolchain *toolchain = fixture_nvrtc();
    rssm_object     a = {0}, c = {0};
    rssm_diag       diag = {0};
    fixture_bench   b;

    fixture_bench_open(&b, "scale_elements", NULL, NULL, NULL);
    cr_assert_eq(rssm_build(&b.input, toolchain, &a, NULL, &diag), RSSM_OK, "%s", diag.text);
    cr_assert_eq(chdir("/"), 0);
    cr_assert_eq(rssm_build(&b.input, toolchain, &c, NULL, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_eq(a.n, c.n);
    cr_expect(memcmp(a.bytes, c.bytes, a.n) == 0);
    cr_expect(rssm_hash_equal(&a.identity.build_key, &c.identity.build_key));
    rssm_object_free(&a);
    rssm_object_free(&c);
    fixture_bench_close(&b);
    rssm_toolchain_close(toolchain);
}

Test(nvrtc, options_are_in_the_key)
{
    rssm_toolchain     *toolchain = fixture_nvrtc();
    rssm_build_identity keys[4];
    fixture_bench       b;

    fixture_bench_open(&b, "scale_elements", NULL, NULL, NULL);
    for (int i = 0; i < 4; ++i) {
        b.input.want_resources = i & 1;
        b.input.want_lines = i & 2;
        cr_assert_eq(rssm_build_identify(&b.input, toolchain, &keys[i], NULL), RSSM_OK);
        for (int j = 0; j < i; ++j)
            cr_expect_not(rssm_hash_equal(&keys[i].build_key, &keys[j].build_key));
    }
    fixture_bench_close(&b);
    rssm_toolchain_close(toolchain);
}

Test(nvrtc, errors_cite_the_template)
{
    static const struct {
        const char *name, *from, *to, *message;
    } cases[] = {
        {"cuda/scale/scale.cu", "args.factor", "args.facto", "cuda/scale/scale.cu(14): error:"},
        {"cuda/scale/scale.cu", "CFG_THREADS % 32 == 0", "CFG_THREADS == 7", "cuda/scale/scale.cu(6): error:"},
        {"abi/scale.h", "rssm_i32     n;", "rssm_i99     n;", "abi/scale.h(10): error:"},
    };
    rssm_toolchain *toolchain = fixture_nvrtc();

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        rssm_object   object = {0};
        rssm_str      log = {0};
        rssm_diag     diag = {0};
        fixture_bench b;
        fixture_bench_open(&b, "scale_elements", cases[i].name, cases[i].from, cases[i].to);
        cr_expect_eq(rssm_build(&b.input, toolchain, &object, &log, &diag), RSSM_E_COMPILE);
        cr_expect(strstr(diag.text, cases[i].message), "%s", diag.text);
        cr_expect(strstr(rssm_str_c(&log), "error detected"), "%s", rssm_str_c(&log));
        rssm_str_free(&log);
        fixture_bench_close(&b);
    }
    rssm_toolchain_close(toolchain);
}

Test(nvrtc, refuses_unknown_architectures)
{
    rssm_toolchain *toolchain = fixture_nvrtc();
    rssm_object     object = {0};
    rssm_diag       diag = {0};
    fixture_bench   b;

    fixture_bench_open(&b, "scale_elements", NULL, NULL, NULL);
    b.input.arch = "sm_20";
    cr_expect_eq(rssm_build(&b.input, toolchain, &object, NULL, &diag), RSSM_E_UNSUPPORTED);
    cr_expect(strstr(diag.text, "sm_20"), "%s", diag.text);
    b.input.arch = "gfx90a";
    cr_expect_eq(rssm_build(&b.input, toolchain, &object, NULL, &diag), RSSM_E_INVALID_ARGUMENT);
    fixture_bench_close(&b);
    rssm_toolchain_close(toolchain);
}

Test(nvrtc, not_found_says_what_was_tried)
{
    rssm_toolchain        *toolchain = NULL;
    rssm_diag              diag = {0};
    rssm_toolchain_options options = {.nvrtc = "/no/such/libnvrtc.so"};

    cr_expect_eq(rssm_toolchain_open(RSSM_CUDA, &options, &toolchain, &diag), RSSM_E_NO_COMPILER);
    cr_expect(strstr(diag.text, "/no/such/libnvrtc.so (no such file)"), "%s", diag.text);
    cr_expect(strstr(diag.text, "nvidia-cuda-nvrtc"), "%s", diag.text);
    options.nvrtc = "libm.so.6";
    cr_expect_eq(rssm_toolchain_open(RSSM_CUDA, &options, &toolchain, &diag), RSSM_E_NO_COMPILER);
    cr_expect(strstr(diag.text, "libm.so.6 (not a complete NVRTC)"), "%s", diag.text);
    options.nvrtc = FIXTURE_FOLDER;
    cr_expect_eq(rssm_toolchain_open(RSSM_CUDA, &options, &toolchain, &diag), RSSM_E_NO_COMPILER);
    cr_expect(strstr(diag.text, "no libnvrtc there"), "%s", diag.text);
    cr_expect_null(toolchain);
}

// Naming the file, or the folder it lies in, finds the very library that a search finds.
Test(nvrtc, named_file_and_folder)
{
    rssm_toolchain        *found = fixture_nvrtc(), *named = NULL;
    rssm_toolchain_options options = {0};
    rssm_str               path = {0};
    rssm_diag              diag = {0};
    const rssm_hash        key = rssm_toolchain_key(found);

    rssm_str_puts(&path, rssm_toolchain_path(found));
    for (int i = 0; i < 2; ++i) {
        rssm_hash named_key;
        options.nvrtc = path.data;
        cr_assert_eq(rssm_toolchain_open(RSSM_CUDA, &options, &named, &diag), RSSM_OK, "%s", diag.text);
        named_key = rssm_toolchain_key(named);
        cr_expect(rssm_hash_equal(&key, &named_key));
        cr_expect_str_eq(rssm_toolchain_text(named), rssm_toolchain_text(found));
        rssm_toolchain_close(named);
        *strrchr(path.data, '/') = '\0';
    }
    rssm_str_free(&path);
    rssm_toolchain_close(found);
}
