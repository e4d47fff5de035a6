// The fake driver's memory: host memory between guard zones. See fake_cuda.h.
#include <stdlib.h>
#include <string.h>

#include "tests/support/fake_cuda_state.h"

enum { GUARD_BYTES = 256, GUARD_PATTERN = 0xA5, FRESH_PATTERN = 0xCD };

static unsigned long long start_of(const fake_allocation *a)
{
    return (unsigned long long)(uintptr_t)(a->base + GUARD_BYTES);
}

fake_allocation *fake_find_allocation(unsigned long long address, size_t n_bytes)
{
    for (fake_object *o = fake.objects; o != NULL; o = o->next) {
        fake_allocation *a = (fake_allocation *)(void *)o;
        if (o->kind != FAKE_ALLOCATION || o->dead) continue;
        if (address >= start_of(a) && address - start_of(a) <= a->n_bytes &&
            n_bytes <= a->n_bytes - (size_t)(address - start_of(a)))
            return a;
    }
    return NULL;
}

void fake_check_guards(const fake_allocation *a)
{
    const unsigned char *front = (const unsigned char *)a->base;
    const unsigned char *back = front + GUARD_BYTES + a->n_bytes;

    for (int i = 0; i < GUARD_BYTES; i++)
        if (front[i] != GUARD_PATTERN || back[i] != GUARD_PATTERN) {
            fake_note("an allocation of %zu bytes was written outside: %d bytes %s", a->n_bytes,
                      back[i] != GUARD_PATTERN ? i : GUARD_BYTES - i,
                      back[i] != GUARD_PATTERN ? "behind its end" : "before its start");
            return;
        }
}

static size_t used_bytes(const struct CUctx_st *context)
{
    size_t n = 0;

    for (const fake_object *o = fake.objects; o != NULL; o = o->next)
        if (o->kind == FAKE_ALLOCATION && !o->dead && o->context->ordinal == context->ordinal)
            n += ((const fake_allocation *)(const void *)o)->n_bytes;
    return n;
}

rssm_cuda_result fake_cuMemAlloc(unsigned long long *pointer, size_t n_bytes)
{
    FAKE_CALL(cuMemAlloc);
    struct CUctx_st       *context;
    void                  *base;
    const rssm_cuda_result result = fake_current(&context);

    if (result != RSSM_CUDA_SUCCESS) return result;
    if (fake_unsafe() != RSSM_CUDA_SUCCESS) return RSSM_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (n_bytes == 0) return RSSM_CUDA_ERROR_INVALID_VALUE;
    if (n_bytes > fake.gpus[context->ordinal].memory_bytes - used_bytes(context) ||
        posix_memalign(&base, 256, n_bytes + 2 * GUARD_BYTES) != 0)
        return RSSM_CUDA_ERROR_OUT_OF_MEMORY;
    fake_allocation *a = fake_new(FAKE_ALLOCATION, sizeof *a, context);
    a->base = base;
    a->n_bytes = n_bytes;
    memset(base, GUARD_PATTERN, GUARD_BYTES);
    memset(a->base + GUARD_BYTES, FRESH_PATTERN, n_bytes);
    memset(a->base + GUARD_BYTES + n_bytes, GUARD_PATTERN, GUARD_BYTES);
    *pointer = start_of(a);
    return RSSM_CUDA_SUCCESS;
}

rssm_cuda_result fake_cuMemFree(unsigned long long pointer)
{
    FAKE_RELEASE(cuMemFree);
    fake_allocation *a = fake_find_allocation(pointer, 0);

    if (a == NULL || start_of(a) != pointer) {
        fake_note("memory was freed that is not allocated");
        return RSSM_CUDA_ERROR_INVALID_VALUE;
    }
    fake_drain_all();
    fake_check_guards(a);
    a->object.dead = true;
    free(a->base);
    a->base = NULL;
    return guard.result;
}

// Both directions: the checks, and the order that the default stream gives.
static rssm_cuda_result prepare_copy(unsigned long long address, size_t n_bytes)
{
    struct CUctx_st       *context;
    const rssm_cuda_result result = fake_current(&context);
    struct CUstream_st    *stream;

    if (result != RSSM_CUDA_SUCCESS) return result;
    if (fake_unsafe() != RSSM_CUDA_SUCCESS) return RSSM_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (fake_find_allocation(address, n_bytes) == NULL) {
        fake_note("%zu bytes were copied outside of an allocation", n_bytes);
        return RSSM_CUDA_ERROR_INVALID_VALUE;
    }
    fake_stream(NULL, &stream);
    fake_drain(stream);
    return fake.fault;
}

rssm_cuda_result fake_cuMemcpyHtoD(unsigned long long to, const void *from, size_t n_bytes)
{
    FAKE_CALL(cuMemcpyHtoD);
    const rssm_cuda_result result = prepare_copy(to, n_bytes);

    if (result == RSSM_CUDA_SUCCESS) memcpy((void *)(uintptr_t)to, from, n_bytes);
    return result;
}

rssm_cuda_result fake_cuMemcpyDtoH(void *to, unsigned long long from, size_t n_bytes)
{
    FAKE_CALL(cuMemcpyDtoH);
    const rssm_cuda_result result = prepare_copy(from, n_bytes);

    if (result == RSSM_CUDA_SUCCESS) memcpy(to, (const void *)(uintptr_t)from, n_bytes);
    return result;
}

rssm_cuda_result fake_cuMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    FAKE_CALL(cuMemGetInfo);
    struct CUctx_st       *context;
    const rssm_cuda_result result = fake_current(&context);

    if (result != RSSM_CUDA_SUCCESS) return result;
    *total_bytes = fake.gpus[context->ordinal].memory_bytes;
    *free_bytes = *total_bytes - used_bytes(context);
    return RSSM_CUDA_SUCCESS;
}
