// Memory of GPUs, for callers off the launch path. See cuda_memory.h; graphs are in cuda_graph.c.
#include "runtime/cuda_memory.h"

#include "runtime/cuda_context.h"
#include "runtime/cuda_error.h"

static unsigned long long address_of(const void *pointer)
{
    return (unsigned long long)(uintptr_t)pointer;
}

rssm_status rssm_cuda_alloc(const rssm_device *device, size_t n_bytes, void **out_pointer, rssm_diag *diag)
{
    rssm_status        st = RSSM_OK;
    rssm_cuda_scope    scope = {0};
    unsigned long long address = 0;

    RSSM_TRY(rssm_cuda_enter(device, &scope, diag));
    RSSM_TRY(RSSM_CUDA_CHECK(diag, scope.cu->cuMemAlloc(&address, n_bytes > 0 ? n_bytes : 1),
                             "allocating %zu bytes on %s", n_bytes, rssm_cuda_label(device)));
    *out_pointer = (void *)(uintptr_t)address;
done:
    rssm_cuda_leave(&scope);
    return st;
}

void rssm_cuda_free(const rssm_device *device, void *pointer)
{
    rssm_cuda_scope scope = {0};

    if (pointer == NULL) return;
    (void)rssm_cuda_enter(device, &scope, NULL); // a context that cannot be entered is lost; try all the same
    rssm_cuda_api_current()->cuMemFree(address_of(pointer));
    rssm_cuda_leave(&scope);
}

// The driver's synchronous copies are ordered with the default stream only, and from pageable memory they may return
// before the last bytes have arrived: a launch on another stream would see the old ones. Hence the two waits.
rssm_status rssm_cuda_upload(const rssm_device *device, void *to, const void *from, size_t n_bytes, rssm_diag *diag)
{
    rssm_status     st = RSSM_OK;
    rssm_cuda_scope scope = {0};

    RSSM_TRY(rssm_cuda_enter(device, &scope, diag));
    RSSM_TRY(RSSM_CUDA_CHECK(diag, scope.cu->cuCtxSynchronize(), "waiting for %s", rssm_cuda_label(device)));
    if (n_bytes == 0) goto done;
    RSSM_TRY(RSSM_CUDA_CHECK(diag, scope.cu->cuMemcpyHtoD(address_of(to), from, n_bytes), "copying %zu bytes to %s",
                             n_bytes, rssm_cuda_label(device)));
    RSSM_TRY(RSSM_CUDA_CHECK(diag, scope.cu->cuCtxSynchronize(), "copying %zu bytes to %s", n_bytes,
                             rssm_cuda_label(device)));
done:
    rssm_cuda_leave(&scope);
    return st;
}

rssm_status rssm_cuda_download(const rssm_device *device, void *to, const void *from, size_t n_bytes, rssm_diag *diag)
{
    rssm_status     st = RSSM_OK;
    rssm_cuda_scope scope = {0};

    RSSM_TRY(rssm_cuda_enter(device, &scope, diag));
    RSSM_TRY(RSSM_CUDA_CHECK(diag, scope.cu->cuCtxSynchronize(), "waiting for %s", rssm_cuda_label(device)));
    if (n_bytes == 0) goto done;
    RSSM_TRY(RSSM_CUDA_CHECK(diag, scope.cu->cuMemcpyDtoH(to, address_of(from), n_bytes), "copying %zu bytes from %s",
                             n_bytes, rssm_cuda_label(device)));
done:
    rssm_cuda_leave(&scope);
    return st;
}

rssm_status rssm_cuda_memory_free_bytes(const rssm_device *device, uint64_t *out_bytes, rssm_diag *diag)
{
    rssm_status     st = RSSM_OK;
    rssm_cuda_scope scope = {0};
    size_t          free_bytes, total_bytes;

    RSSM_TRY(rssm_cuda_enter(device, &scope, diag));
    RSSM_TRY(RSSM_CUDA_CHECK(diag, scope.cu->cuMemGetInfo(&free_bytes, &total_bytes), "the free memory of %s",
                             rssm_cuda_label(device)));
    *out_bytes = free_bytes;
done:
    rssm_cuda_leave(&scope);
    return st;
}

rssm_status rssm_cuda_synchronise(const rssm_device *device, rssm_diag *diag)
{
    rssm_status     st = RSSM_OK;
    rssm_cuda_scope scope = {0};

    RSSM_TRY(rssm_cuda_enter(device, &scope, diag));
    RSSM_TRY(RSSM_CUDA_CHECK(diag, scope.cu->cuCtxSynchronize(), "waiting for %s", rssm_cuda_label(device)));
done:
    rssm_cuda_leave(&scope);
    return st;
}
