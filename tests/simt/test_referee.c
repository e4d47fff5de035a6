// The referee against small kernels: each defect is reported with its kind and line, whatever the order of warps and
// blocks; the correct twin is clean and right.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simt/emulator.h"
#include "tests/simt/kernels/cases.h"
#include "tests/simt/suite.h"

enum { WORDS = 97, SEEDS = 6, SHARED_BYTES = 4096 };

typedef struct defect_case {
    const char *name;
    simt_defect defect;
    uint32_t    n_blocks, n_threads;
} defect_case;

#define CASE(name, defect, n_blocks, n_threads) {#name, defect, n_blocks, n_threads},
static const defect_case barrier_cases[] = {BARRIER_CASES(CASE)};
static const defect_case memory_cases[] = {MEMORY_CASES(CASE)};
static const defect_case async_cases[] = {ASYNC_CASES(CASE)};
#undef CASE

static const char folder[] = RSSM_SOURCE_DIR "/tests/simt/kernels/";

static simt_kernel *load(const char *name)
{
    char         source[256];
    simt_kernel *kernel = NULL;
    rssm_diag    diag = {0};
    snprintf(source, sizeof source, "%s%s.cu", folder, name);
    const simt_compile_options options = {.clang = simt_clang(),
                                          .template_root = RSSM_SOURCE_DIR "/templates",
                                          .source = source,
                                          .entry = name,
                                          .args = "case_args"};
    cr_assert_eq(simt_kernel_load(&options, &kernel, &diag), RSSM_OK, "%s", diag.text);
    return kernel;
}

// Whether line `line` of the kernel's source says that it is the one to report for this case.
static bool is_marked(const char *source, int line, const char *name)
{
    char  path[256], text[512], marker[128];
    FILE *file;
    bool  found = false;
    snprintf(path, sizeof path, "%s%s.cu", folder, source);
    snprintf(marker, sizeof marker, "reported: %s\n", name);
    file = fopen(path, "r");
    cr_assert(file);
    for (int i = 1; fgets(text, sizeof text, file); i++)
        if (i == line) found = strstr(text, marker) != NULL;
    fclose(file);
    return found;
}

static void *buffer(size_t n_words, const unsigned *from)
{
    void *pointer = NULL;
    cr_assert_eq(simt_alloc(n_words * 4, &pointer, NULL), RSSM_OK);
    if (from) simt_upload(pointer, from, n_words * 4, false);
    return pointer;
}

// A dependent launch needs one before it, which writes `out`.
static bool is_dependent(const defect_case *c)
{
    return c->defect == SIMT_DEPENDENCY;
}

static bool run(const simt_kernel *kernel, const defect_case *c, int which, bool broken, uint64_t seed,
                unsigned out[WORDS], simt_report *report)
{
    unsigned in[WORDS], zero = 0;
    for (unsigned i = 0; i < WORDS; i++)
        in[i] = 1000 + 7 * i + i * i % 5;
    simt_reset();
    const case_args     args = {buffer(WORDS, in), buffer(WORDS, NULL), buffer(1, &zero), WORDS, which, broken};
    simt_launch_options options = {{c->n_blocks, 1, 1}, {c->n_threads, 1, 1}, SHARED_BYTES, seed, false};
    if (is_dependent(c)) {
        case_args first = args;
        first.which = -1;
        cr_assert(simt_launch(kernel, &options, &first, report), "%s", report->text);
        options.dependent = true;
    }
    const bool clean = simt_launch(kernel, &options, &args, report);
    simt_download(out, args.out, WORDS * 4);
    return clean;
}

static void check_correct(const simt_kernel *kernel, const defect_case *c, int which)
{
    unsigned    out[WORDS];
    simt_report report;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        cr_expect(run(kernel, c, which, false, seed, out, &report), "%s, seed %llu: %s", c->name,
                  (unsigned long long)seed, report.text);
        for (unsigned i = 0; i < 32; i++) {
            cr_expect_eq(out[i], 1000 + 7 * i + i * i % 5 + 1, "%s: out[%u] is %u", c->name, i, out[i]);
            if (out[i] != 1000 + 7 * i + i * i % 5 + 1) return;
        }
    }
}

static void check_broken(const simt_kernel *kernel, const char *source, const defect_case *c, int which)
{
    unsigned    out[WORDS];
    simt_report report;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        if (run(kernel, c, which, true, seed, out, &report)) {
            cr_expect(false, "%s, seed %llu: nothing was reported", c->name, (unsigned long long)seed);
            continue;
        }
        cr_expect_eq(report.defect, c->defect, "%s, seed %llu: wanted %s, got %s", c->name, (unsigned long long)seed,
                     simt_defect_text(c->defect), report.text);
        cr_expect(is_marked(source, report.line, c->name), "%s, seed %llu: not the line: %s", c->name,
                  (unsigned long long)seed, report.text);
    }
}

static void check_all(const char *source, const defect_case *cases, size_t n)
{
    simt_kernel *kernel = load(source);
    for (size_t i = 0; i < n; i++) {
        check_correct(kernel, &cases[i], (int)i);
        check_broken(kernel, source, &cases[i], (int)i);
    }
    simt_kernel_unload(kernel);
}

Test(referee, finds_divergent_barriers_and_absent_lanes, .timeout = 120)
{
    check_all("barriers", barrier_cases, sizeof barrier_cases / sizeof barrier_cases[0]);
}

Test(referee, finds_races_bad_addresses_and_unwritten_memory, .timeout = 120)
{
    check_all("memory", memory_cases, sizeof memory_cases / sizeof memory_cases[0]);
}

Test(referee, finds_async_copies_and_mbarriers_out_of_step, .timeout = 120)
{
    check_all("async", async_cases, sizeof async_cases / sizeof async_cases[0]);
}
