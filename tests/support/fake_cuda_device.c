// The fake driver's errors, devices and contexts. See fake_cuda.h.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/fake_cuda_state.h"

enum { STACK_ROOM = 16 };

static _Thread_local struct CUctx_st *stack[STACK_ROOM];
static _Thread_local int              depth;
static _Thread_local unsigned         capture_mode; // global, until exchanged

void fake_reset_thread(void)
{
    depth = 0;
    capture_mode = RSSM_CUDA_STREAM_CAPTURE_MODE_GLOBAL;
}

int fake_stack_depth(void)
{
    return depth;
}

unsigned fake_capture_mode(void)
{
    return capture_mode;
}

rssm_cuda_result fake_current(struct CUctx_st **out_context)
{
    if (depth == 0) return RSSM_CUDA_ERROR_INVALID_CONTEXT;
    if (!fake_is_live(stack[depth - 1], FAKE_CONTEXT)) return RSSM_CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *out_context = stack[depth - 1];
    return RSSM_CUDA_SUCCESS;
}

rssm_cuda_result fake_cuInit(unsigned flags)
{
    FAKE_CALL(cuInit);
    if (flags != 0) return RSSM_CUDA_ERROR_INVALID_VALUE;
    if (fake.n_gpus == 0) return RSSM_CUDA_ERROR_NO_DEVICE;
    fake.initialised = true;
    return RSSM_CUDA_SUCCESS;
}

rssm_cuda_result fake_cuDriverGetVersion(int *version)
{
    FAKE_CALL(cuDriverGetVersion);
    *version = fake.driver_version;
    return RSSM_CUDA_SUCCESS;
}

rssm_cuda_result fake_cuGetErrorName(rssm_cuda_result result, const char **text)
{
    FAKE_CALL(cuGetErrorName);
    if (result != 4711) return RSSM_CUDA_ERROR_INVALID_VALUE; // a number no list has
    *text = "CUDA_ERROR_OF_A_NEWER_DRIVER";
    return RSSM_CUDA_SUCCESS;
}

rssm_cuda_result fake_cuGetErrorString(rssm_cuda_result result, const char **text)
{
    FAKE_CALL(cuGetErrorString);
    (void)result;
    *text = "words of the fake driver";
    return RSSM_CUDA_SUCCESS;
}

// ---------------------------------------------------------------------------------------------------------- devices

rssm_cuda_result fake_cuDeviceGetCount(int *count)
{
    FAKE_CALL(cuDeviceGetCount);
    *count = fake.n_gpus;
    return RSSM_CUDA_SUCCESS;
}

rssm_cuda_result fake_cuDeviceGet(int *device, int ordinal)
{
    FAKE_CALL(cuDeviceGet);
    if (ordinal < 0 || ordinal >= fake.n_gpus) return RSSM_CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return RSSM_CUDA_SUCCESS;
}

rssm_cuda_result fake_cuDeviceGetName(char *name, int n, int device)
{
    FAKE_CALL(cuDeviceGetName);
    snprintf(name, (size_t)n, "%s", fake.gpus[device].name);
    return RSSM_CUDA_SUCCESS;
}

rssm_cuda_result fake_cuDeviceTotalMem(size_t *bytes, int device)
{
    FAKE_CALL(cuDeviceTotalMem);
    *bytes = fake.gpus[device].memory_bytes;
    return RSSM_CUDA_SUCCESS;
}

// The GPUs sit where no real machine has a PCI domain, so that nothing of the machine shows through.
rssm_cuda_result fake_cuDeviceGetAttribute(int *value, unsigned attribute, int device)
{
    FAKE_CALL(cuDeviceGetAttribute);
    const fake_cuda_gpu *gpu = &fake.gpus[device];
    const struct {
        unsigned attribute;
        int      value;
    } known[] = {
        {RSSM_CUDA_DEVICE_COMPUTE_CAPABILITY_MAJOR, gpu->major},
        {RSSM_CUDA_DEVICE_COMPUTE_CAPABILITY_MINOR, gpu->minor},
        {RSSM_CUDA_DEVICE_MULTIPROCESSOR_COUNT, gpu->multiprocessors},
        {RSSM_CUDA_DEVICE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, gpu->shared_optin},
        {RSSM_CUDA_DEVICE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, gpu->shared_optin + 1024},
        {RSSM_CUDA_DEVICE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
        {RSSM_CUDA_DEVICE_L2_CACHE_SIZE, gpu->l2_bytes},
        {RSSM_CUDA_DEVICE_MEMORY_CLOCK_RATE, 3201000},
        {RSSM_CUDA_DEVICE_GLOBAL_MEMORY_BUS_WIDTH, 6144},
        {RSSM_CUDA_DEVICE_ECC_ENABLED, 1},
        {RSSM_CUDA_DEVICE_PCI_DOMAIN_ID, 0x7FFFFFF0},
        {RSSM_CUDA_DEVICE_PCI_BUS_ID, 16 + device},
        {RSSM_CUDA_DEVICE_PCI_DEVICE_ID, 0},
        {RSSM_CUDA_DEVICE_GPU_PCI_DEVICE_ID, gpu->pci_model},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].attribute != attribute) continue;
        if (attribute == RSSM_CUDA_DEVICE_GPU_PCI_DEVICE_ID && gpu->pci_model == 0) break;
        *value = known[i].value;
        return RSSM_CUDA_SUCCESS;
    }
    return RSSM_CUDA_ERROR_INVALID_VALUE;
}

// --------------------------------------------------------------------------------------------------------- contexts

rssm_cuda_result fake_cuDevicePrimaryCtxRetain(struct CUctx_st **context, int device)
{
    FAKE_CALL(cuDevicePrimaryCtxRetain);
    nanosleep(&(struct timespec){0, 1000000}, NULL); // it takes a while, and other threads arrive
    if (!fake_is_live(fake.contexts[device], FAKE_CONTEXT)) {
        struct CUctx_st    *created = fake_new(FAKE_CONTEXT, sizeof *created, NULL);
        struct CUstream_st *legacy = fake_new(FAKE_STREAM, sizeof *legacy, created);
        created->ordinal = device;
        created->legacy = legacy;
        legacy->legacy = true;
        fake.contexts[device] = created;
    }
    fake.retained[device]++;
    *context = fake.contexts[device];
    return RSSM_CUDA_SUCCESS;
}

// A context takes with it what was made in it; returns how many things of the host's that were.
static int destroy_context(struct CUctx_st *context)
{
    int n = 0;

    fake_drain_all();
    for (fake_object *o = fake.objects; o != NULL; o = o->next) {
        if (o->context != context || o->dead) continue;
        n += o->kind != FAKE_FUNCTION && o != &context->legacy->object;
        if (o->kind != FAKE_ALLOCATION) o->dead = true; // the host still holds, and must still free, its memory
    }
    context->object.dead = true;
    return n;
}

rssm_cuda_result fake_cuDevicePrimaryCtxRelease(int device)
{
    FAKE_RELEASE(cuDevicePrimaryCtxRelease);
    if (fake.retained[device] == 0) {
        fake_note("the context of GPU %d was released more often than retained", device);
        return RSSM_CUDA_ERROR_INVALID_CONTEXT;
    }
    if (--fake.retained[device] == 0 && fake_is_live(fake.contexts[device], FAKE_CONTEXT)) {
        const int n = destroy_context(fake.contexts[device]);
        if (n > 0) fake_note("the context of GPU %d was released while %d things of it were in use", device, n);
    }
    return guard.result;
}

void fake_cuda_reset_device(int ordinal)
{
    if (fake_is_live(fake.contexts[ordinal], FAKE_CONTEXT)) destroy_context(fake.contexts[ordinal]);
}

int fake_cuda_retained(int ordinal)
{
    return fake.retained[ordinal];
}

rssm_cuda_result fake_cuCtxPushCurrent(struct CUctx_st *context)
{
    FAKE_CALL(cuCtxPushCurrent);
    if (!fake_is_live(context, FAKE_CONTEXT)) return RSSM_CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (depth == STACK_ROOM) return RSSM_CUDA_ERROR_INVALID_VALUE;
    stack[depth++] = context;
    return RSSM_CUDA_SUCCESS;
}

rssm_cuda_result fake_cuCtxPopCurrent(struct CUctx_st **context)
{
    FAKE_RELEASE(cuCtxPopCurrent);
    if (depth == 0) {
        fake_note("a context was popped from an empty stack");
        return RSSM_CUDA_ERROR_INVALID_CONTEXT;
    }
    *context = stack[--depth];
    return guard.result;
}

rssm_cuda_result fake_cuThreadExchangeStreamCaptureMode(unsigned *mode)
{
    FAKE_CALL(cuThreadExchangeStreamCaptureMode);
    const unsigned previous = capture_mode;
    if (*mode > RSSM_CUDA_STREAM_CAPTURE_MODE_RELAXED) return RSSM_CUDA_ERROR_INVALID_VALUE;
    capture_mode = *mode;
    *mode = previous;
    return RSSM_CUDA_SUCCESS;
}
