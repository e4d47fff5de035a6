// Launching of kernels.
#include <criterion/criterion.h>
#include <string.h>

#include "cuda_fixture.h"

static fake_cuda_launch last_launch;

static void note_launch(const void *args, const fake_cuda_launch *launch, void *user)
{
    (void)args, (void)user;
    last_launch = *launch;
}

// A stream of the device's primary context, as a host has one.
static void *host_stream(int ordinal)
{
    const rssm_cuda_api *cu = rssm_cuda_api_current();
    struct CUctx_st     *context;
    struct CUstream_st  *stream;

    cr_assert(cu->cuDevicePrimaryCtxRetain(&context, ordinal) == 0 && cu->cuCtxPushCurrent(context) == 0);
    cr_assert(cu->cuStreamCreate(&stream, RSSM_CUDA_STREAM_NON_BLOCKING) == 0 && cu->cuCtxPopCurrent(&context) == 0);
    return stream;
}

static void host_stream_destroy(void *stream, int ordinal)
{
    rssm_cuda_api_current()->cuStreamDestroy(stream);
    rssm_cuda_api_current()->cuDevicePrimaryCtxRelease(ordinal);
}

Test(cuda_kernel, a_launch_on_a_stream_is_one_driver_call)
{
    fixture f;

    fixture_open(&f, 1);
    rssm_kernel kernel = fixture_load(&f);
    void       *stream = host_stream(0);
    fake_cuda_trace_clear();
    cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(scale_args){0}, 1, stream) == RSSM_OK);
    cr_expect(strcmp(fake_cuda_trace(), "cuLaunchKernelEx") == 0, "%s", fake_cuda_trace());
    rssm_cuda_kernel_unload(&f.devices[0], &kernel);
    host_stream_destroy(stream, 0);
    fixture_close(&f);
}

// NULL, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD mean a stream of the current context: it must be the device's own.
Test(cuda_kernel, default_streams_get_their_context)
{
    fixture f;

    fixture_open(&f, 1);
    rssm_kernel kernel = fixture_load(&f);
    for (uintptr_t stream = 0; stream <= 2; stream++) {
        fake_cuda_trace_clear();
        cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(scale_args){0}, 1, (void *)stream) == RSSM_OK);
        cr_expect(strcmp(fake_cuda_trace(), "cuCtxPushCurrent cuLaunchKernelEx cuCtxPopCurrent") == 0, "%s",
                  fake_cuda_trace());
    }
    rssm_cuda_kernel_unload(&f.devices[0], &kernel);
    fixture_close(&f);
}

Test(cuda_kernel, launches_on_its_gpu_whatever_context_is_current)
{
    fixture          f;
    rssm_kernel      kernels[2];
    struct CUctx_st *context;

    fixture_open(&f, 2);
    const rssm_cuda_api *cu = rssm_cuda_api_current();
    void                *streams[2] = {host_stream(0), host_stream(1)};
    for (int i = 0; i < 2; i++)
        cr_assert(rssm_cuda_kernel_load(&f.devices[i], f.cubin, f.n_cubin, "scale", &scale_geometry, sizeof(scale_args),
                                        &kernels[i], NULL) == RSSM_OK);
    cr_assert(cu->cuDevicePrimaryCtxRetain(&context, 1) == 0 && cu->cuCtxPushCurrent(context) == 0);
    for (int i = 0; i < 2; i++) {
        cr_expect(rssm_cuda_kernel_launch(&f.devices[i], &kernels[i], &(scale_args){0}, 1, streams[i]) == RSSM_OK);
        cr_expect(rssm_cuda_kernel_launch(&f.devices[i], &kernels[i], &(scale_args){0}, 1, NULL) == RSSM_OK);
        cr_expect(rssm_cuda_kernel_launch(&f.devices[i], &kernels[i], &(scale_args){0}, 1, streams[1 - i]) ==
                  RSSM_E_DEVICE);
    }
    for (int i = 0; i < 2; i++) {
        rssm_cuda_kernel_unload(&f.devices[i], &kernels[i]);
        host_stream_destroy(streams[i], i);
    }
    cr_expect(cu->cuCtxPopCurrent(&context) == 0 && cu->cuDevicePrimaryCtxRelease(1) == 0);
    fixture_close(&f);
}

Test(cuda_kernel, tries_again_with_a_context_where_the_driver_wants_one)
{
    fixture f;

    fixture_open(&f, 1);
    rssm_kernel kernel = fixture_load(&f);
    void       *stream = host_stream(0);
    fake_cuda_require_current(true);
    fake_cuda_trace_clear();
    cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(scale_args){0}, 1, stream) == RSSM_OK);
    cr_expect(strcmp(fake_cuda_trace(), "cuLaunchKernelEx cuCtxPushCurrent cuLaunchKernelEx cuCtxPopCurrent") == 0,
              "%s", fake_cuda_trace());
    rssm_cuda_kernel_unload(&f.devices[0], &kernel);
    host_stream_destroy(stream, 0);
    fixture_close(&f);
}

Test(cuda_kernel, computes_the_grid_from_the_rows)
{
    static const struct {
        int64_t     constant[3], per_row[3];
        uint32_t    n_rows;
        rssm_status status;
        unsigned    grid[3];
    } cases[] = {
        {{0, 1, 1}, {2, 0, 0}, 1, RSSM_OK, {2, 1, 1}},
        {{3, 7, 5}, {2, 1, 0}, 100, RSSM_OK, {203, 107, 5}},
        {{1, 0, 1}, {0, 1, 0}, 65535, RSSM_OK, {1, 65535, 1}},
        {{1, 0, 1}, {0, 1, 0}, 65536, RSSM_E_INVALID_ARGUMENT, {0}},
        {{1, 1, 0}, {0, 0, 1}, 65536, RSSM_E_INVALID_ARGUMENT, {0}},
        {{0, 1, 1}, {1, 0, 0}, INT32_MAX, RSSM_OK, {INT32_MAX, 1, 1}},
        {{1, 1, 1}, {1, 0, 0}, INT32_MAX, RSSM_E_INVALID_ARGUMENT, {0}},
        {{INT32_MAX, 1, 1}, {INT32_MAX, 0, 0}, UINT32_MAX, RSSM_E_INVALID_ARGUMENT, {0}},
        {{0, 1, 1}, {0, 0, 0}, 1, RSSM_E_INVALID_ARGUMENT, {0}},
        {{0, 1, 1}, {2, 0, 0}, 0, RSSM_E_INVALID_ARGUMENT, {0}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture       f;
        rssm_kernel   kernel;
        rssm_geometry geometry = {.block = {32, 2, 3}, .shared_bytes = 60000};
        for (int axis = 0; axis < 3; axis++) {
            geometry.grid[axis].constant = cases[i].constant[axis];
            geometry.grid[axis].per_row = cases[i].per_row[axis];
        }
        fixture_open(&f, 1);
        fake_cuda_register(&(fake_cuda_kernel){.entry = "other", .args_bytes = 4, .run = note_launch});
        cr_assert(rssm_cuda_kernel_load(&f.devices[0], f.cubin, f.n_cubin, "other", &geometry, 4, &kernel, NULL) ==
                  RSSM_OK);
        memset(&last_launch, 0, sizeof last_launch);
        cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(int){1}, cases[i].n_rows, NULL) == cases[i].status,
                  "case %zu", i);
        cr_expect(rssm_cuda_synchronise(&f.devices[0], NULL) == RSSM_OK);
        cr_expect(memcmp(last_launch.grid, cases[i].grid, sizeof last_launch.grid) == 0, "case %zu: %u %u %u", i,
                  last_launch.grid[0], last_launch.grid[1], last_launch.grid[2]);
        if (cases[i].status == RSSM_OK)
            cr_expect(last_launch.block[0] == 32 && last_launch.block[1] == 2 && last_launch.block[2] == 3 &&
                      last_launch.shared_bytes == 60000);
        else
            cr_expect(fake_cuda_calls("cuLaunchKernelEx") == 0);
        rssm_cuda_kernel_unload(&f.devices[0], &kernel);
        fixture_close(&f);
    }
}

Test(cuda_kernel, arguments_are_copied_at_launch)
{
    fixture    f;
    float      host[4] = {1, 2, 3, 4}, back[4];
    void      *x = NULL;
    scale_args args = {NULL, 4, 2};

    fixture_open(&f, 1);
    rssm_kernel kernel = fixture_load(&f);
    cr_assert(rssm_cuda_alloc(&f.devices[0], sizeof host, &x, NULL) == RSSM_OK);
    cr_assert(rssm_cuda_upload(&f.devices[0], x, host, sizeof host, NULL) == RSSM_OK);
    args.x = x;
    cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &args, 1, NULL) == RSSM_OK);
    args.factor = 1000;
    cr_assert(rssm_cuda_download(&f.devices[0], back, x, sizeof back, NULL) == RSSM_OK);
    for (int i = 0; i < 4; i++)
        cr_expect(back[i] == 2 * host[i], "%g", (double)back[i]);
    rssm_cuda_free(&f.devices[0], x);
    rssm_cuda_kernel_unload(&f.devices[0], &kernel);
    fixture_close(&f);
}

Test(cuda_kernel, maps_the_errors_of_a_launch)
{
    fixture f;

    fixture_open(&f, 1);
    rssm_kernel kernel = fixture_load(&f);
    fake_cuda_fail_call("cuLaunchKernelEx", RSSM_CUDA_ERROR_ILLEGAL_ADDRESS);
    cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(scale_args){0}, 1, NULL) == RSSM_E_DEVICE_LOST);
    fake_cuda_fail_call("cuLaunchKernelEx", RSSM_CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(scale_args){0}, 1, NULL) == RSSM_E_UNSUPPORTED);
    fake_cuda_fail_call("cuLaunchKernelEx", 4711);
    cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(scale_args){0}, 1, NULL) == RSSM_E_DEVICE);
    rssm_cuda_kernel_unload(&f.devices[0], &kernel);
    fixture_close(&f);
}

static void fault(const void *args, const fake_cuda_launch *launch, void *user)
{
    (void)args, (void)launch, (void)user;
    fake_cuda_fault(RSSM_CUDA_ERROR_ILLEGAL_ADDRESS);
}

Test(cuda_kernel, a_fault_shows_when_waiting_and_stays)
{
    fixture     f;
    rssm_kernel kernel;
    rssm_diag   diag = {0};
    void       *memory = NULL;

    fixture_open(&f, 1);
    fake_cuda_register(&(fake_cuda_kernel){.entry = "other", .args_bytes = 4, .run = fault});
    cr_assert(rssm_cuda_kernel_load(&f.devices[0], f.cubin, f.n_cubin, "other", &scale_geometry, 4, &kernel, NULL) ==
              RSSM_OK);
    cr_assert(rssm_cuda_alloc(&f.devices[0], 16, &memory, NULL) == RSSM_OK);
    cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(int){1}, 1, NULL) == RSSM_OK);
    cr_expect(rssm_cuda_synchronise(&f.devices[0], &diag) == RSSM_E_DEVICE_LOST);
    cr_expect(strstr(diag.text, "waiting for GPU 0 (NVIDIA H200): CUDA_ERROR_ILLEGAL_ADDRESS") &&
                  strstr(diag.text, "compute-sanitizer"),
              "%s", diag.text);
    cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(int){1}, 1, NULL) == RSSM_E_DEVICE_LOST);
    rssm_cuda_free(&f.devices[0], memory);
    rssm_cuda_kernel_unload(&f.devices[0], &kernel);
    fixture_close(&f); // all is given back even so
}

// Other code of the process resets the GPU: stale handles fail, and opening again works.
Test(cuda_kernel, a_reset_context_is_a_lost_device_until_reopened)
{
    fixture   f;
    rssm_diag diag = {0};
    void     *memory = NULL, *more = NULL;

    fixture_open(&f, 1);
    rssm_kernel kernel = fixture_load(&f);
    cr_assert(rssm_cuda_alloc(&f.devices[0], 16, &memory, NULL) == RSSM_OK);
    fake_cuda_reset_device(0);
    cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(scale_args){0}, 1, NULL) == RSSM_E_DEVICE_LOST);
    cr_expect(rssm_cuda_alloc(&f.devices[0], 16, &more, &diag) == RSSM_E_DEVICE_LOST && more == NULL);
    cr_expect(strstr(diag.text, "close this context and open another"), "%s", diag.text);
    rssm_cuda_free(&f.devices[0], memory);
    rssm_cuda_kernel_unload(&f.devices[0], &kernel);
    rssm_cuda_release_devices(f.devices, f.n_devices);
    f.n_devices = 0;
    cr_assert(rssm_cuda_find_devices(f.devices, 4, &f.n_devices, NULL) == RSSM_OK);
    kernel = fixture_load(&f);
    cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(scale_args){0}, 1, NULL) == RSSM_OK);
    rssm_cuda_kernel_unload(&f.devices[0], &kernel);
    fixture_close(&f);
}
