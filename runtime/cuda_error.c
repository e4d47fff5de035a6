// Statuses and sentences of CUDA errors. See cuda_error.h.
#include "runtime/cuda_error.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct known_error {
    rssm_cuda_result result;
    rssm_status      status;
    const char      *name, *remedy;
} known_error;

static const known_error known_errors[] = {
#define KNOWN_ERROR(name, value, status, remedy) {value, RSSM_##status, "CUDA_ERROR_" #name, remedy},
    RSSM_CUDA_ERROR_LIST(KNOWN_ERROR)
#undef KNOWN_ERROR
};

static const known_error *find_error(rssm_cuda_result result)
{
    for (size_t i = 0; i < sizeof known_errors / sizeof known_errors[0]; i++)
        if (known_errors[i].result == result) return &known_errors[i];
    return NULL;
}

rssm_status rssm_cuda_status(rssm_cuda_result result)
{
    const known_error *known = find_error(result);

    if (result == RSSM_CUDA_SUCCESS) return RSSM_OK;
    return known != NULL ? known->status : RSSM_E_DEVICE;
}

rssm_status rssm_cuda_check(rssm_diag *diag, rssm_cuda_result result, const char *file, int line, const char *format,
                            ...)
{
    const rssm_cuda_api *cu = rssm_cuda_api_current();
    const known_error   *known = find_error(result);
    const char          *name = known != NULL ? known->name : NULL, *words = NULL;
    char                 what[512];
    va_list              arguments;

    if (result == RSSM_CUDA_SUCCESS) return RSSM_OK;
    va_start(arguments, format);
    const int n = vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (n < 0) what[0] = '\0';
    if (name == NULL && (cu == NULL || cu->cuGetErrorName(result, &name) != RSSM_CUDA_SUCCESS)) name = NULL;
    if (cu == NULL || cu->cuGetErrorString(result, &words) != RSSM_CUDA_SUCCESS) words = NULL;
    return rssm_fail(diag, rssm_cuda_status(result), file, line, "%s: %s (%s, error %u)%s", what,
                     name != NULL ? name : "an error this version does not know",
                     words != NULL ? words : "no description", result, known != NULL ? known->remedy : "");
}
