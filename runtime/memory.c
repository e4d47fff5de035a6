// Device memory by backend. See memory.h.
#include "runtime/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "runtime/context.h"
#include "runtime/cuda_memory.h"

enum { SMALL_ALIGN = 256, HUGE_PAGE = 2 << 20 };

static rssm_status find_device(rssm_context *context, uint32_t index, const rssm_device **out_device, rssm_diag *diag)
{
    if (index >= context->n_devices)
        return RSSM_FAIL(diag, RSSM_E_NO_DEVICE, "there is no device %u; this machine has %u", index,
                         context->n_devices);
    *out_device = &context->devices[index];
    return RSSM_OK;
}

rssm_status rssm_memory_alloc(rssm_context *context, uint32_t device, size_t n_bytes, void **out_pointer,
                              rssm_diag *diag)
{
    const rssm_device *d;
    rssm_status        st;
    void              *memory;

    if ((st = find_device(context, device, &d, diag)) != RSSM_OK) return st;
    if (d->info.backend == RSSM_CUDA) return rssm_cuda_alloc(d, n_bytes, out_pointer, diag);
    // Not through base/alloc: these are the tensors, not the library's own objects. Large ones get huge pages where the
    // system gives them: a state that is streamed through 4 KiB pages loses up to half its bandwidth to address lookups.
    const size_t align = n_bytes >= HUGE_PAGE ? HUGE_PAGE : SMALL_ALIGN;
    if (posix_memalign(&memory, align, n_bytes ? n_bytes : 1) != 0)
        return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for %zu bytes of tensors", n_bytes);
    if (n_bytes >= HUGE_PAGE) madvise(memory, n_bytes, MADV_HUGEPAGE);   // advice: what it returns does not matter
    *out_pointer = memory;
    return RSSM_OK;
}

void rssm_memory_free(rssm_context *context, uint32_t device, void *pointer)
{
    const rssm_device *d;
    if (pointer == NULL || find_device(context, device, &d, NULL) != RSSM_OK) return;
    if (d->info.backend == RSSM_CUDA) {
        rssm_cuda_free(d, pointer);
    } else {
        free(pointer);
    }
}

rssm_status rssm_memory_upload(rssm_context *context, uint32_t device, void *to, const void *from, size_t n_bytes,
                               rssm_diag *diag)
{
    const rssm_device *d;
    rssm_status        st;
    if ((st = find_device(context, device, &d, diag)) != RSSM_OK) return st;
    if (d->info.backend == RSSM_CUDA) return rssm_cuda_upload(d, to, from, n_bytes, diag);
    memcpy(to, from, n_bytes);
    return RSSM_OK;
}

rssm_status rssm_memory_download(rssm_context *context, uint32_t device, void *to, const void *from, size_t n_bytes,
                                 rssm_diag *diag)
{
    const rssm_device *d;
    rssm_status        st;
    if ((st = find_device(context, device, &d, diag)) != RSSM_OK) return st;
    if (d->info.backend == RSSM_CUDA) return rssm_cuda_download(d, to, from, n_bytes, diag);
    memcpy(to, from, n_bytes);
    return RSSM_OK;
}

rssm_status rssm_device_synchronise(rssm_context *context, uint32_t device, rssm_diag *diag)
{
    const rssm_device *d;
    rssm_status        st;
    if ((st = find_device(context, device, &d, diag)) != RSSM_OK) return st;
    return d->info.backend == RSSM_CUDA ? rssm_cuda_synchronise(d, diag) : RSSM_OK;
}
