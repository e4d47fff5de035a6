// Primary contexts. See cuda_context.h.
#include "runtime/cuda_context.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/alloc.h"
#include "runtime/cuda_error.h"

struct rssm_cuda_context {
    int                        driver_device;
    pthread_mutex_t            lock;     // serialises the retaining call
    _Atomic(struct CUctx_st *) retained; // NULL before the first use
    char                       label[160];
};

rssm_status rssm_cuda_context_create(int driver_device, const char *label, rssm_cuda_context **out_context,
                                     rssm_diag *diag)
{
    rssm_cuda_context *context = rssm_calloc(1, sizeof *context);

    if (context == NULL) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "out of memory while opening %s", label);
    context->driver_device = driver_device;
    pthread_mutex_init(&context->lock, NULL);
    snprintf(context->label, sizeof context->label, "%s", label);
    *out_context = context;
    return RSSM_OK;
}

void rssm_cuda_context_destroy(rssm_cuda_context *context)
{
    if (context == NULL) return;
    // A failure to release is no failure of ours: after a fault the driver reports that fault here.
    if (atomic_load(&context->retained) != NULL)
        rssm_cuda_api_current()->cuDevicePrimaryCtxRelease(context->driver_device);
    pthread_mutex_destroy(&context->lock);
    rssm_free(context);
}

static rssm_cuda_context *context_of(const rssm_device *device)
{
    return device->native;
}

const char *rssm_cuda_label(const rssm_device *device)
{
    return context_of(device)->label;
}

static rssm_cuda_result retain(const rssm_cuda_api *cu, rssm_cuda_context *context)
{
    rssm_cuda_result result = RSSM_CUDA_SUCCESS;
    struct CUctx_st *retained = NULL;

    pthread_mutex_lock(&context->lock);
    if (atomic_load(&context->retained) == NULL) {
        result = cu->cuDevicePrimaryCtxRetain(&retained, context->driver_device);
        if (result == RSSM_CUDA_SUCCESS) atomic_store(&context->retained, retained);
    }
    pthread_mutex_unlock(&context->lock);
    return result;
}

rssm_cuda_result rssm_cuda_push(const rssm_cuda_api *cu, const rssm_device *device)
{
    rssm_cuda_context *context = context_of(device);
    rssm_cuda_result   result = RSSM_CUDA_SUCCESS;

    if (atomic_load(&context->retained) == NULL) result = retain(cu, context);
    if (result == RSSM_CUDA_SUCCESS) result = cu->cuCtxPushCurrent(atomic_load(&context->retained));
    return result;
}

rssm_status rssm_cuda_enter(const rssm_device *device, rssm_cuda_scope *out_scope, rssm_diag *diag)
{
    rssm_status          st = RSSM_OK;
    const rssm_cuda_api *cu = rssm_cuda_api_current();
    struct CUctx_st     *popped;
    unsigned             mode = RSSM_CUDA_STREAM_CAPTURE_MODE_RELAXED;

    RSSM_TRY(RSSM_CUDA_CHECK(diag, rssm_cuda_push(cu, device), "using %s", rssm_cuda_label(device)));
    st = RSSM_CUDA_CHECK(diag, cu->cuThreadExchangeStreamCaptureMode(&mode), "using %s", rssm_cuda_label(device));
    if (st != RSSM_OK) {
        cu->cuCtxPopCurrent(&popped);
        goto done;
    }
    *out_scope = (rssm_cuda_scope){cu, mode};
done:
    return st;
}

void rssm_cuda_leave(rssm_cuda_scope *scope)
{
    struct CUctx_st *popped;

    if (scope->cu == NULL) return;
    scope->cu->cuThreadExchangeStreamCaptureMode(&scope->capture_mode);
    scope->cu->cuCtxPopCurrent(&popped);
    scope->cu = NULL;
}
