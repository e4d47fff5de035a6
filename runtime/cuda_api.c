// Loading of the CUDA driver. See cuda_api.h.
#include "runtime/cuda_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

static const struct {
    const char *symbol;
    size_t      offset; // of the member
    bool        optional;
} calls[] = {
#define REQUIRED_CALL(name, symbol, parameters) {symbol, offsetof(rssm_cuda_api, name), false},
    RSSM_CUDA_CALL_LIST(REQUIRED_CALL)
#undef REQUIRED_CALL
#define OPTIONAL_CALL(name, symbol, parameters) {symbol, offsetof(rssm_cuda_api, name), true},
        RSSM_CUDA_OPTIONAL_CALL_LIST(OPTIONAL_CALL)
#undef OPTIONAL_CALL
};

static const char library_name[] = "libcuda.so.1";

// The process's one driver: D1 makes these the right place for it.
static pthread_once_t                 load_once = PTHREAD_ONCE_INIT;
static rssm_cuda_api                  loaded;      // written by load_library, then constant
static rssm_diag                      load_diag;   // likewise; code RSSM_OK after success
static _Atomic(const rssm_cuda_api *) current_api; // &loaded, or a test's table

rssm_status rssm_cuda_api_check_version(const rssm_cuda_api *api, int *out_version, rssm_diag *diag)
{
    int version = 0;

    if (api->cuDriverGetVersion(&version) != RSSM_CUDA_SUCCESS || version <= 0)
        return RSSM_FAIL(diag, RSSM_E_DRIVER,
                         "the library %s does not tell its version: it is the toolkit's link-time stub or a damaged "
                         "installation; install the NVIDIA driver, and take stubs off the library path",
                         library_name);
    if (version < RSSM_CUDA_OLDEST_VERSION)
        return RSSM_FAIL(diag, RSSM_E_DRIVER,
                         "the NVIDIA driver supports CUDA %d.%d, and CUDA %d.%d is needed; install driver 525 or later",
                         version / 1000, version % 1000 / 10, RSSM_CUDA_OLDEST_VERSION / 1000,
                         RSSM_CUDA_OLDEST_VERSION % 1000 / 10);
    *out_version = version;
    return RSSM_OK;
}

// Why a library lacks a symbol: mostly because it is too old, which its version tells best.
static rssm_status explain_missing(const rssm_cuda_api *api, const char *path, const char *symbol, rssm_diag *diag)
{
    int version;

    if (api->cuDriverGetVersion != NULL) {
        const rssm_status st = rssm_cuda_api_check_version(api, &version, diag);
        if (st != RSSM_OK) return st;
    }
    return RSSM_FAIL(diag, RSSM_E_DRIVER,
                     "%s is no CUDA driver of version %d.%d or later: it has no %s; install the "
                     "NVIDIA driver again",
                     path, RSSM_CUDA_OLDEST_VERSION / 1000, RSSM_CUDA_OLDEST_VERSION % 1000 / 10, symbol);
}

rssm_status rssm_cuda_api_fill(const char *path, rssm_cuda_api *out_api, rssm_diag *diag)
{
    rssm_status   st = RSSM_OK;
    rssm_cuda_api api;
    const char   *missing = NULL;
    void         *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

    if (library == NULL) {
        const char *reason = dlerror();
        return RSSM_FAIL(diag, RSSM_E_DRIVER,
                         "no NVIDIA driver was found (%s); install it to use a GPU, the CPU "
                         "needs none",
                         reason != NULL ? reason : path);
    }
    memset(&api, 0, sizeof api);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        void *address = dlsym(library, calls[i].symbol);
        memcpy((char *)&api + calls[i].offset, &address, sizeof address); // data to function pointer, as POSIX asks
        if (address == NULL && !calls[i].optional && missing == NULL) missing = calls[i].symbol;
    }
    if (missing != NULL) {
        st = explain_missing(&api, path, missing, diag);
        goto done;
    }
    *out_api = api;
    library = NULL; // stays loaded (D1)
done:
    if (library != NULL) dlclose(library);
    return st;
}

static void load_library(void)
{
    load_diag.code = rssm_cuda_api_fill(library_name, &loaded, &load_diag);
}

rssm_status rssm_cuda_api_load(const rssm_cuda_api **out_api, rssm_diag *diag)
{
    const rssm_cuda_api *api = rssm_cuda_api_current();

    if (api == NULL) {
        pthread_once(&load_once, load_library);
        if (load_diag.code != RSSM_OK) return RSSM_FAIL(diag, load_diag.code, "%s", load_diag.text);
        api = &loaded;
        atomic_store_explicit(&current_api, api, memory_order_release);
    }
    *out_api = api;
    return RSSM_OK;
}

const rssm_cuda_api *rssm_cuda_api_current(void)
{
    return atomic_load_explicit(&current_api, memory_order_acquire);
}

void rssm_cuda_api_install(const rssm_cuda_api *api)
{
    atomic_store_explicit(&current_api, api, memory_order_release);
}
