// Loading of the driver's table.
#include "runtime/cuda_api.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/fake_cuda.h"

Test(cuda_api, says_that_there_is_no_driver)
{
    rssm_cuda_api api;
    rssm_diag     diag = {0};

    memset(&api, 0x5A, sizeof api);
    const rssm_cuda_api before = api;
    cr_assert(rssm_cuda_api_fill("libcuda-that-is-not-there.so.1", &api, &diag) == RSSM_E_DRIVER);
    cr_expect(strstr(diag.text, "no NVIDIA driver was found") && strstr(diag.text, "libcuda-that-is-not-there.so.1") &&
                  strstr(diag.text, "install"),
              "%s", diag.text);
    cr_expect(memcmp(&before, &api, sizeof api) == 0, "an out parameter was written on failure");
}

Test(cuda_api, says_that_the_driver_is_too_old)
{
    rssm_cuda_api api;
    rssm_diag     diag = {0};

    cr_assert(rssm_cuda_api_fill(OLD_DRIVER, &api, &diag) == RSSM_E_DRIVER);
    cr_expect(strcmp(diag.text, "the NVIDIA driver supports CUDA 11.8, and CUDA 12.0 is needed; install driver 525 or "
                                "later") == 0,
              "%s", diag.text);
}

Test(cuda_api, says_that_a_library_is_no_driver)
{
    rssm_cuda_api api;
    rssm_diag     diag = {0};

    cr_assert(rssm_cuda_api_fill("libm.so.6", &api, &diag) == RSSM_E_DRIVER);
    cr_expect(strstr(diag.text, "libm.so.6 is no CUDA driver") && strstr(diag.text, "cuInit"), "%s", diag.text);
}

// The toolkit's stub exports every symbol of a driver, and refuses to work.
Test(cuda_api, finds_every_symbol_in_the_stub_of_a_toolkit)
{
    rssm_cuda_api api;
    rssm_diag     diag = {0};
    int           version;

    if (TOOLKIT_STUB[0] == '\0') {
        fprintf(stderr, "skipped: no CUDA toolkit is installed\n");
        cr_skip_test("no CUDA toolkit");
    }
    cr_assert(rssm_cuda_api_fill(TOOLKIT_STUB, &api, &diag) == RSSM_OK, "%s", diag.text);
    cr_expect(api.cuFuncLoad != NULL && api.cuFuncGetParamInfo != NULL);
    cr_assert(rssm_cuda_api_check_version(&api, &version, &diag) == RSSM_E_DRIVER);
    cr_expect(strstr(diag.text, "stub"), "%s", diag.text);
}

Test(cuda_api, loads_once_and_repeats_the_reason)
{
    const rssm_cuda_api *first = NULL, *second = NULL;
    rssm_diag            a = {0}, b = {0};
    const rssm_status    st = rssm_cuda_api_load(&first, &a);

    cr_assert(st == RSSM_OK || st == RSSM_E_DRIVER);
    cr_expect(rssm_cuda_api_load(&second, &b) == st);
    cr_expect(first == second && (first != NULL) == (st == RSSM_OK));
    cr_expect(rssm_cuda_api_current() == first);
    cr_expect(strcmp(a.text, b.text) == 0 && (a.text[0] != '\0') == (st != RSSM_OK), "'%s' '%s'", a.text, b.text);
}

Test(cuda_api, installs_a_table_and_takes_it_away)
{
    const fake_cuda_gpu  gpu = FAKE_CUDA_H200;
    const rssm_cuda_api *api = NULL;
    int                  version = 0;

    fake_cuda_install(&gpu, 1);
    cr_assert(rssm_cuda_api_load(&api, NULL) == RSSM_OK);
    cr_expect(api == rssm_cuda_api_current());
    cr_expect(rssm_cuda_api_check_version(api, &version, NULL) == RSSM_OK && version == 13000);
    fake_cuda_remove();
    cr_expect(rssm_cuda_api_current() == NULL);
}

Test(cuda_api, checks_the_driver_version)
{
    const fake_cuda_gpu gpu = FAKE_CUDA_H200;
    static const struct {
        int         version;
        rssm_status status;
        const char *text;
    } cases[] = {{12000, RSSM_OK, ""},
                 {12090, RSSM_OK, ""},
                 {11080, RSSM_E_DRIVER, "CUDA 11.8"},
                 {10020, RSSM_E_DRIVER, "CUDA 10.2"},
                 {0, RSSM_E_DRIVER, "does not tell its version"}};

    fake_cuda_install(&gpu, 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rssm_diag diag = {0};
        int       version = -1;
        fake_cuda_set_driver_version(cases[i].version);
        cr_expect(rssm_cuda_api_check_version(rssm_cuda_api_current(), &version, &diag) == cases[i].status,
                  "version %d", cases[i].version);
        cr_expect(strstr(diag.text, cases[i].text) != NULL, "version %d: %s", cases[i].version, diag.text);
        cr_expect(version == (cases[i].status == RSSM_OK ? cases[i].version : -1));
    }
    fake_cuda_remove();
}
