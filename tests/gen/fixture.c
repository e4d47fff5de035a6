#include "tests/gen/fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/problem.h"

static const char *const fixture_files[] = {
    "abi/base.h",           "abi/scale.h",         "numerics/types.h",      "cpu/scale/scale.c",
    "cpu/scale/scale.json", "cuda/scale/scale.cu", "cuda/scale/scale.json",
};

char *fixture_text(const char *name, const char *from, const char *to)
{
    rssm_str  path = {0}, text = {0};
    rssm_diag diag = {0};
    char     *bytes = NULL, *at;
    size_t    n = 0;

    rssm_str_printf(&path, "%s/%s", FIXTURE_FOLDER, name);
    cr_assert_eq(rssm_file_read(path.data, 1 << 20, &bytes, &n, &diag), RSSM_OK, "%s", diag.text);
    rssm_str_free(&path);
    if (!from) return bytes;
    at = strstr(bytes, from);
    cr_assert_not_null(at, "%s does not hold \"%s\"", name, from);
    rssm_str_append(&text, bytes, (size_t)(at - bytes));
    rssm_str_puts(&text, to);
    rssm_str_puts(&text, at + strlen(from));
    rssm_free(bytes);
    return text.data;
}

void fixture_write(const char *folder, const char *name, const char *text)
{
    rssm_str  path = {0};
    rssm_diag diag = {0};
    FILE     *file;

    rssm_str_printf(&path, "%s/%s", folder, name);
    *strrchr(path.data, '/') = '\0';
    cr_assert_eq(rssm_folder_make(path.data, &diag), RSSM_OK, "%s", diag.text);
    rssm_str_clear(&path);
    rssm_str_printf(&path, "%s/%s", folder, name);
    file = fopen(path.data, "wb"); // not rssm_file_write: nothing here needs syncing
    cr_assert_not_null(file, "%s", path.data);
    cr_assert_eq(fwrite(text, 1, strlen(text), file), strlen(text));
    cr_assert_eq(fclose(file), 0);
    rssm_str_free(&path);
}

char *fixture_folder(const char *name, const char *from, const char *to)
{
    rssm_diag diag = {0};
    char     *folder = NULL;

    cr_assert_eq(rssm_folder_temporary("rssm-test", &folder, &diag), RSSM_OK, "%s", diag.text);
    for (size_t i = 0; i < sizeof fixture_files / sizeof fixture_files[0]; ++i) {
        const bool is_changed = name && strcmp(name, fixture_files[i]) == 0;
        char      *text = fixture_text(fixture_files[i], is_changed ? from : NULL, to);
        fixture_write(folder, fixture_files[i], text);
        rssm_free(text);
    }
    return folder;
}

rssm_template_set *fixture_open(const char *name, const char *from, const char *to)
{
    rssm_template_set *set = NULL;
    rssm_diag          diag = {0};
    char              *folder = name ? fixture_folder(name, from, to) : NULL;

    cr_assert_eq(rssm_template_set_open(folder ? folder : FIXTURE_FOLDER, &set, &diag), RSSM_OK, "%s", diag.text);
    if (folder) rssm_folder_remove(folder); // a set keeps what it read
    rssm_free(folder);
    return set;
}

rssm_problem fixture_problem(void)
{
    rssm_problem problem = RSSM_PROBLEM_INIT, normalised;
    rssm_diag    diag = {0};

    problem.n_heads = 16;
    problem.n_groups = 2;
    problem.head_dim = 64;
    problem.state_size = 128;
    cr_assert_eq(rssm_problem_normalise(&problem, &normalised, &diag), RSSM_OK, "%s", diag.text);
    return normalised;
}

rssm_facts fixture_facts(const rssm_problem *problem)
{
    rssm_facts facts = {0};

    rssm_facts_add_problem(&facts, problem);
    rssm_facts_set(&facts, "dev.cores", 4);
    rssm_facts_set(&facts, "dev.vector_bytes", 32);
    rssm_facts_set(&facts, "dev.cache_bytes", 1 << 24);
    return facts;
}

void fixture_bench_open(fixture_bench *b, const char *manifest, const char *name, const char *from, const char *to)
{
    const rssm_manifest *m;

    b->set = fixture_open(name, from, to);
    m = rssm_template_set_find(b->set, manifest);
    cr_assert_not_null(m, "%s", manifest);
    b->problem = fixture_problem();
    b->facts = fixture_facts(&b->problem);
    b->config = rssm_config_default(m);
    b->input = (rssm_build_input){.set = b->set,
                                  .config = &b->config,
                                  .problem = &b->problem,
                                  .facts = &b->facts,
                                  .backend = m->backend,
                                  .arch = m->backend == RSSM_CUDA ? "sm_90a" : FIXTURE_ARCH};
}

void fixture_bench_close(fixture_bench *b)
{
    rssm_template_set_close(b->set);
}

rssm_toolchain *fixture_clang(void)
{
    const rssm_toolchain_options options = {.clang = getenv("RSSM_CLANG")};
    rssm_toolchain              *toolchain = NULL;
    rssm_diag                    diag = {0};

    cr_assert_eq(rssm_toolchain_open(RSSM_CPU, &options, &toolchain, &diag), RSSM_OK, "%s", diag.text);
    return toolchain;
}

rssm_toolchain *fixture_nvrtc(void)
{
    const char            *home = getenv("CUDA_HOME");
    char                   folder[512];
    const char            *folders[] = {folder};
    rssm_toolchain_options options = {.nvrtc = getenv("RSSM_NVRTC"), .nvrtc_folders = folders, .n_nvrtc_folders = 1};
    rssm_toolchain        *toolchain = NULL;
    rssm_diag              diag = {0};

    snprintf(folder, sizeof folder, "%s/lib64", home ? home : "/usr/local/cuda");
    cr_assert_eq(
        rssm_toolchain_open(RSSM_CUDA, &options, &toolchain, &diag), RSSM_OK,
        "%s. Get it with `pip download --no-deps nvidia-cuda-nvrtc`, unpack the wheel and set RSSM_NVRTC to the "
        "libnvrtc.so in it",
        diag.text);
    return toolchain;
}
