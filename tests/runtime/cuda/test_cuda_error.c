// The table of errors.
#include "runtime/cuda_error.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/fake_cuda.h"

static const struct {
    rssm_cuda_result result;
    rssm_status      status;
    const char      *name, *remedy;
} errors[] = {
#define ERROR_ROW(name, value, status, remedy) {value, RSSM_##status, "CUDA_ERROR_" #name, remedy},
    RSSM_CUDA_ERROR_LIST(ERROR_ROW)
#undef ERROR_ROW
};
enum { N_ERRORS = sizeof errors / sizeof errors[0] };

Test(cuda_error, lists_each_error_once_with_a_remedy)
{
    for (int i = 0; i < N_ERRORS; i++) {
        cr_expect(strncmp(errors[i].remedy, "; ", 2) == 0 && strlen(errors[i].remedy) > 10, "%s", errors[i].name);
        cr_expect(errors[i].status >= RSSM_E_UNSUPPORTED, "%s", errors[i].name);
        for (int j = 0; j < i; j++)
            cr_expect(errors[i].result != errors[j].result && strcmp(errors[i].name, errors[j].name) != 0, "%s and %s",
                      errors[i].name, errors[j].name);
    }
}

Test(cuda_error, says_what_was_done_what_went_wrong_and_what_helps)
{
    const fake_cuda_gpu gpu = FAKE_CUDA_H200;

    fake_cuda_install(&gpu, 1);
    for (int i = 0; i < N_ERRORS; i++) {
        rssm_diag diag = {0};
        char      expected[512];
        cr_expect(rssm_cuda_status(errors[i].result) == errors[i].status, "%s", errors[i].name);
        cr_expect(RSSM_CUDA_CHECK(&diag, errors[i].result, "doing thing %d", i) == errors[i].status);
        snprintf(expected, sizeof expected, "doing thing %d: %s (words of the fake driver, error %u)%s", i,
                 errors[i].name, errors[i].result, errors[i].remedy);
        cr_expect(strcmp(diag.text, expected) == 0, "%s", diag.text);
        cr_expect(diag.code == errors[i].status && strstr(diag.file, "test_cuda_error.c") != NULL);
    }
    fake_cuda_remove();
}

Test(cuda_error, reports_errors_of_a_newer_driver)
{
    const fake_cuda_gpu gpu = FAKE_CUDA_H200;
    rssm_diag           diag = {0};

    fake_cuda_install(&gpu, 1);
    cr_expect(RSSM_CUDA_CHECK(&diag, 4711, "it") == RSSM_E_DEVICE);
    cr_expect(strstr(diag.text, "CUDA_ERROR_OF_A_NEWER_DRIVER") && strstr(diag.text, "error 4711"), "%s", diag.text);
    cr_expect(RSSM_CUDA_CHECK(&diag, 4712, "it") == RSSM_E_DEVICE);
    cr_expect(strstr(diag.text, "an error this version does not know") && strstr(diag.text, "4712"), "%s", diag.text);
    fake_cuda_remove();
}

Test(cuda_error, leaves_the_diagnostic_alone_on_success)
{
    rssm_diag diag = {RSSM_E_IO, 7, "file", "text"};

    cr_expect(RSSM_CUDA_CHECK(&diag, RSSM_CUDA_SUCCESS, "it") == RSSM_OK);
    cr_expect(diag.code == RSSM_E_IO && diag.line == 7 && strcmp(diag.text, "text") == 0);
    cr_expect(rssm_cuda_status(RSSM_CUDA_SUCCESS) == RSSM_OK);
}
