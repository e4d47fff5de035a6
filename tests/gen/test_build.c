#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/thread.h"
#include "gen/build.h"
#include "tests/gen/fixture.h"

static int count_entries(const char *folder)
{
    DIR *dir = opendir(folder);
    int  n = 0;

    for (struct dirent *entry; (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

typedef struct scale_args {
    const float *in;
    float       *out;
    float        factor;
    int32_t      n;
} scale_args;

Test(build, object_runs)
{
    rssm_toolchain *toolchain = fixture_clang();
    rssm_object     object = {0};
    rssm_diag       diag = {0};
    fixture_bench   b;
    float           in[16 * 64], out[16 * 64 + 1] = {0};
    scale_args      args = {in, out, 3.0f, 16 * 64};
    int             file = -1;
    char            path[64];
    void           *library;
    void (*entry)(const scale_args *, int64_t);

    fixture_bench_open(&b, "scale_rows", NULL, NULL, NULL);
    cr_assert_eq(rssm_build(&b.input, toolchain, &object, NULL, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_eq(object.kind, RSSM_OBJECT_HOST);
    cr_expect_str_eq(object.log, "");
    cr_expect_eq(object.registers, 0);
    cr_assert_eq(rssm_file_sealed("scale", object.bytes, object.n, &file, &diag), RSSM_OK, "%s", diag.text);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    cr_assert_not_null(library, "%s", dlerror());
    *(void **)&entry = dlsym(library, "scale_rows");
    cr_assert_not_null(entry);
    for (int i = 0; i < 16 * 64; ++i)
        in[i] = (float)i;
    out[16 * 64] = -1.0f;
    for (int64_t task = 0; task < 2; ++task)
        entry(&args, task);
    for (int i = 0; i < 16 * 64; ++i)
        cr_assert_eq(out[i], 3.0f * (float)i);
    cr_expect_eq(out[16 * 64], -1.0f);
    dlclose(library);
    rssm_object_free(&object);
    fixture_bench_close(&b);
    rssm_toolchain_close(toolchain);
}

typedef struct parallel_builds {
    const rssm_build_input *input;
    const rssm_toolchain   *toolchain;
    rssm_object             objects[4];
    rssm_status             statuses[4];
} parallel_builds;

static void build_one(void *context, int i)
{
    parallel_builds *builds = context;
    builds->statuses[i] = rssm_build(builds->input, builds->toolchain, &builds->objects[i], NULL, NULL);
}

// Neither the temporary folder, nor the working directory, nor threads leave a trace.
Test(build, equal_inputs_give_equal_bytes)
{
    rssm_toolchain *toolchain = fixture_clang();
    rssm_object     first = {0};
    rssm_diag       diag = {0};
    fixture_bench   b;
    parallel_builds builds = {.toolchain = toolchain};
    char           *folder = NULL;

    // __FILE__ is the usual way for a path to get in.
    fixture_bench_open(&b, "scale_rows", "cpu/scale/scale.c", "args->factor *",
                       "(args->n < 0 ? (float)__FILE__[args->n & 3] : 1.0f) * args->factor *");
    cr_assert_eq(rssm_build(&b.input, toolchain, &first, NULL, &diag), RSSM_OK, "%s", diag.text);
    cr_assert_eq(rssm_folder_temporary("rssm-test-with-a-longer-name", &folder, &diag), RSSM_OK, "%s", diag.text);
    setenv("TMPDIR", folder, 1);
    cr_assert_eq(chdir(folder), 0);
    builds.input = &b.input;
    rssm_parallel_for(2, 4, build_one, &builds);
    for (int i = 0; i < 4; ++i) {
        cr_expect_eq(builds.statuses[i], RSSM_OK);
        cr_expect_eq(builds.objects[i].n, first.n);
        cr_expect(memcmp(builds.objects[i].bytes, first.bytes, first.n) == 0);
        cr_expect(rssm_hash_equal(&builds.objects[i].identity.build_key, &first.identity.build_key));
        rssm_object_free(&builds.objects[i]);
    }
    cr_expect_null(memmem(first.bytes, first.n, "rssm-test", 9));
    cr_expect_null(memmem(first.bytes, first.n, "/tmp", 4));
    cr_expect_eq(count_entries(folder), 0, "temporary files were left behind");
    cr_assert_eq(chdir("/"), 0);
    rssm_folder_remove(folder);
    rssm_free(folder);
    rssm_object_free(&first);
    fixture_bench_close(&b);
    rssm_toolchain_close(toolchain);
}

Test(build, errors_cite_the_template)
{
    static const struct {
        const char *name, *from, *to;
        rssm_status status;
        const char *message, *log;
    } cases[] = {
        {"cpu/scale/scale.c", "args->factor *", "args->facto *", RSSM_E_COMPILE,
         "cpu/scale/scale.c:14:", "no member named"},
        {"cpu/scale/scale.c", "CFG_ROWS % CFG_VEC == 0", "CFG_ROWS == 1", RSSM_E_COMPILE,
         "cpu/scale/scale.c:6:", "vectors fill the rows"},
        {"abi/scale.h", "rssm_i32     n;", "rssm_i99     n;", RSSM_E_COMPILE, "abi/scale.h:10:", "rssm_i99"},
        {"cpu/scale/scale.c", "CFG_ROWS * CFG_HEAD_DIM", "CFG_NONE", RSSM_E_COMPILE,
         "cpu/scale/scale.c:7:", "CFG_NONE"},
        {"cpu/scale/scale.c", "void scale_rows", "void scale_row", RSSM_E_MISMATCH,
         "does not define its entry scale_rows", ""},
        {"cpu/scale/scale.c", "void scale_rows", "static void scale_rows", RSSM_E_MISMATCH,
         "does not define its entry scale_rows", ""},
        {"cpu/scale/scale.c", "args->factor * args->in[i]", "__builtin_expf(args->in[i])", RSSM_E_MISMATCH,
         "calls expf", ""},
        {"cpu/scale/scale.c", "\"abi/scale.h\"", "\"abi/scales.h\"", RSSM_E_NOT_FOUND, "\"abi/scales.h\"", ""},
    };
    rssm_toolchain *toolchain = fixture_clang();
    char           *folder = NULL;

    cr_assert_eq(rssm_folder_temporary("rssm-test", &folder, NULL), RSSM_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        fixture_bench b;
        rssm_object   object = {0};
        rssm_str      log = {0};
        rssm_diag     diag = {0};
        fixture_bench_open(&b, "scale_rows", cases[i].name, cases[i].from, cases[i].to);
        setenv("TMPDIR", folder, 1);
        cr_expect_eq(rssm_build(&b.input, toolchain, &object, &log, &diag), cases[i].status, "%s: %s", cases[i].to,
                     diag.text);
        unsetenv("TMPDIR");
        cr_expect(strstr(diag.text, cases[i].message), "%s: %s", cases[i].to, diag.text);
        cr_expect(strstr(rssm_str_c(&log), cases[i].log), "%s: %s", cases[i].to, rssm_str_c(&log));
        cr_expect_null(strstr(rssm_str_c(&log), folder), "%s", rssm_str_c(&log));
        cr_expect_null(object.bytes);
        cr_expect_eq(count_entries(folder), 0, "temporary files were left behind");
        rssm_str_free(&log);
        fixture_bench_close(&b);
    }
    rssm_folder_remove(folder);
    rssm_free(folder);
    rssm_toolchain_close(toolchain);
}

Test(build, refuses_before_compiling)
{
    rssm_toolchain  *toolchain = fixture_clang();
    rssm_object      object = {0};
    rssm_diag        diag = {0};
    rssm_build_input input;
    fixture_bench    b;

    fixture_bench_open(&b, "scale_rows", NULL, NULL, NULL);
    b.config.values[1] = 16;
    cr_expect_eq(rssm_build(&b.input, toolchain, &object, NULL, &diag), RSSM_E_UNSUPPORTED);
    cr_expect_str_eq(diag.text, "rejected: ROWS % VEC == 0 (vectors fill the rows)");
    b.config.values[1] = 4;
    static const char *const archs[] = {"native", "", "a b", "-O0", "x;y", "x86-64'", "$(id)"};
    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; ++i) {
        input = b.input;
        input.arch = archs[i];
        cr_expect_eq(rssm_build(&input, toolchain, &object, NULL, &diag), RSSM_E_INVALID_ARGUMENT, "%s", archs[i]);
    }
    input = b.input;
    input.arch = "x86-64-v99";
    cr_expect_eq(rssm_build(&input, toolchain, &object, NULL, &diag), RSSM_E_COMPILE);
    cr_expect(strstr(diag.text, "x86-64-v99"), "%s", diag.text);
    input.backend = RSSM_CUDA;
    cr_expect_eq(rssm_build(&input, toolchain, &object, NULL, &diag), RSSM_E_INVALID_ARGUMENT);
    cr_expect(strstr(diag.text, "cpu template"), "%s", diag.text);
    fixture_bench_close(&b);
    rssm_toolchain_close(toolchain);
}
