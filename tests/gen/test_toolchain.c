#include <criterion/criterion.h>
#include <string.h>

#include "gen/build.h"
#include "tests/gen/fixture.h"

Test(toolchain, identifies_itself)
{
    rssm_toolchain        *toolchain = NULL;
    rssm_diag              diag = {0};
    rssm_toolchain_options options = {.clang = "/no/such/clang"};

    cr_expect_eq(rssm_toolchain_open(RSSM_CPU, &options, &toolchain, &diag), RSSM_E_NO_COMPILER);
    cr_expect(strstr(diag.text, "/no/such/clang"), "%s", diag.text);
    options.clang = "true";
    cr_expect_eq(rssm_toolchain_open(RSSM_CPU, &options, &toolchain, &diag), RSSM_E_NO_COMPILER);
    cr_expect(strstr(diag.text, "is not clang"), "%s", diag.text);
    options.clang = "false";
    cr_expect_eq(rssm_toolchain_open(RSSM_CPU, &options, &toolchain, &diag), RSSM_E_NO_COMPILER);
    cr_expect_null(toolchain);

    toolchain = fixture_clang();
    cr_expect_eq(rssm_toolchain_backend(toolchain), RSSM_CPU);
    cr_expect(strstr(rssm_toolchain_text(toolchain), "clang version"));
    cr_expect_null(strchr(rssm_toolchain_text(toolchain), '\n'));
    cr_expect_eq(rssm_toolchain_check_arch(toolchain, FIXTURE_ARCH, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_eq(rssm_toolchain_check_arch(toolchain, "x86-64-v99", &diag), RSSM_E_UNSUPPORTED);
    cr_expect(strstr(diag.text, "x86-64-v99"), "%s", diag.text);
    cr_expect_eq(rssm_toolchain_check_arch(toolchain, "native", &diag), RSSM_E_INVALID_ARGUMENT);
    rssm_toolchain_close(toolchain);
}

Test(toolchain, arch_numbers)
{
    static const struct {
        const char *arch;
        uint32_t    number;
    } cases[] = {{"sm_80", 800},    {"sm_90a", 900}, {"sm_100a", 1000}, {"sm_103f", 1030}, {"sm_121a", 1210},
                 {"sm_", 0},        {"sm_9", 0},     {"sm_90b", 0},     {"sm_90aa", 0},    {"sm_ 90", 0},
                 {"compute_90", 0}, {"sm_-90", 0},   {"sm_1000", 0},    {"", 0},           {"x86-64", 0}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        cr_expect_eq(rssm_arch_number(cases[i].arch), cases[i].number, "%s", cases[i].arch);
    }
}
