// Loading of kernels.
#include <criterion/criterion.h>
#include <elf.h>
#include <string.h>

#include "cuda_fixture.h"

static rssm_status load(fixture *f, const void *cubin, size_t n, const char *entry, const rssm_geometry *geometry,
                        size_t args_bytes, rssm_diag *diag)
{
    rssm_kernel       kernel;
    const rssm_status st = rssm_cuda_kernel_load(&f->devices[0], cubin, n, entry, geometry, args_bytes, &kernel, diag);

    if (st == RSSM_OK) rssm_cuda_kernel_unload(&f->devices[0], &kernel);
    return st;
}

Test(cuda_load, reads_back_what_the_kernel_uses)
{
    fixture     f;
    rssm_kernel kernel;

    fixture_open(&f, 1);
    fake_cuda_register(
        &(fake_cuda_kernel){.entry = "scale", .args_bytes = sizeof(scale_args), .registers = 168, .local_bytes = 16});
    kernel = fixture_load(&f);
    cr_expect(kernel.registers == 168 && kernel.local_bytes == 16 && kernel.args_bytes == sizeof(scale_args));
    cr_expect(kernel.host_entry == NULL && kernel.host_handle == NULL && kernel.host_fd == -1);
    cr_expect(memcmp(&kernel.geometry, &scale_geometry, sizeof scale_geometry) == 0);
    rssm_cuda_kernel_unload(&f.devices[0], &kernel);
    cr_expect(kernel.cuda_library == NULL && kernel.cuda_function == NULL);
    rssm_cuda_kernel_unload(&f.devices[0], &kernel); // of nothing
    cr_expect(fake_cuda_calls("cuLibraryUnload") == 1);
    fixture_close(&f);
}

Test(cuda_load, makes_the_code_resident_and_restores_the_thread)
{
    fixture f;

    fixture_open(&f, 1);
    fake_cuda_trace_clear();
    rssm_kernel kernel = fixture_load(&f);
    cr_expect(strcmp(fake_cuda_trace(),
                     "cuDevicePrimaryCtxRetain cuCtxPushCurrent cuThreadExchangeStreamCaptureMode cuLibraryLoadData "
                     "cuLibraryGetKernel cuKernelGetFunction cuFuncLoad cuFuncGetAttribute cuFuncGetAttribute "
                     "cuFuncGetAttribute cuFuncGetAttribute cuFuncGetParamInfo cuFuncGetParamInfo "
                     "cuThreadExchangeStreamCaptureMode cuCtxPopCurrent") == 0,
              "%s", fake_cuda_trace());
    rssm_cuda_kernel_unload(&f.devices[0], &kernel);
    fixture_close(&f);
}

Test(cuda_load, serves_drivers_without_the_newer_calls)
{
    fixture f;

    fixture_open(&f, 1);
    fake_cuda_hide_optional();
    rssm_kernel kernel = fixture_load(&f);
    cr_expect(fake_cuda_calls("cuFuncLoad") == 0);
    rssm_cuda_kernel_unload(&f.devices[0], &kernel);
    fixture_close(&f);
}

Test(cuda_load, asks_for_shared_memory_where_the_default_does_not_suffice)
{
    static const struct {
        uint32_t    dynamic_bytes;
        int         static_bytes;
        rssm_status status;
        long        n_set;
    } cases[] = {{0, 0, RSSM_OK, 0},
                 {49152, 0, RSSM_OK, 0},
                 {49153, 0, RSSM_OK, 1},
                 {40000, 10000, RSSM_OK, 1},
                 {232448, 0, RSSM_OK, 1},
                 {232449, 0, RSSM_E_UNSUPPORTED, 0},
                 {232448, 16, RSSM_E_UNSUPPORTED, 0},
                 {UINT32_MAX, 0, RSSM_E_UNSUPPORTED, 0}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture       f;
        rssm_diag     diag = {0};
        rssm_geometry geometry = scale_geometry;
        geometry.shared_bytes = cases[i].dynamic_bytes;
        fixture_open(&f, 1);
        fake_cuda_register(&(fake_cuda_kernel){
            .entry = "scale", .args_bytes = sizeof(scale_args), .static_shared_bytes = cases[i].static_bytes});
        cr_expect(load(&f, f.cubin, f.n_cubin, "scale", &geometry, sizeof(scale_args), &diag) == cases[i].status,
                  "case %zu: %s", i, diag.text);
        cr_expect(fake_cuda_calls("cuFuncSetAttribute") == cases[i].n_set, "case %zu", i);
        if (cases[i].status != RSSM_OK)
            cr_expect(strstr(diag.text, "shared memory, and GPU 0 (NVIDIA H200) has 232448"), "%s", diag.text);
        fixture_close(&f);
    }
}

Test(cuda_load, refuses_a_block_that_the_registers_do_not_allow)
{
    fixture       f;
    rssm_diag     diag = {0};
    rssm_geometry geometry = scale_geometry;

    fixture_open(&f, 1);
    fake_cuda_register(
        &(fake_cuda_kernel){.entry = "scale", .args_bytes = sizeof(scale_args), .registers = 255, .max_threads = 256});
    geometry.block[0] = 128;
    geometry.block[1] = 2;
    cr_expect(load(&f, f.cubin, f.n_cubin, "scale", &geometry, sizeof(scale_args), &diag) == RSSM_OK);
    geometry.block[1] = 4;
    cr_expect(load(&f, f.cubin, f.n_cubin, "scale", &geometry, sizeof(scale_args), &diag) == RSSM_E_UNSUPPORTED);
    cr_expect(strstr(diag.text, "blocks of 512 threads") && strstr(diag.text, "255 registers") &&
                  strstr(diag.text, "runs 256"),
              "%s", diag.text);
    fixture_close(&f);
}

Test(cuda_load, refuses_geometry_out_of_range)
{
    fixture   f;
    rssm_diag diag = {0};
    struct {
        int64_t  constant, per_row;
        uint32_t block;
    } cases[] = {{-1, 1, 128}, {0, -1, 128}, {(int64_t)1 << 31, 1, 128}, {0, (int64_t)1 << 31, 128},
                 {0, 1, 0},    {0, 1, 1025}};

    fixture_open(&f, 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rssm_geometry geometry = scale_geometry;
        geometry.grid[1].constant = cases[i].constant;
        geometry.grid[1].per_row = cases[i].per_row;
        geometry.block[2] = cases[i].block;
        cr_expect(load(&f, f.cubin, f.n_cubin, "scale", &geometry, sizeof(scale_args), &diag) == RSSM_E_MANIFEST,
                  "case %zu", i);
    }
    fixture_close(&f);
}

Test(cuda_load, refuses_another_argument_struct)
{
    fixture   f;
    rssm_diag diag = {0};

    fixture_open(&f, 1);
    for (int difference = -8; difference <= 8; difference += 8)
        cr_expect(load(&f, f.cubin, f.n_cubin, "scale", &scale_geometry, sizeof(scale_args) + (size_t)difference,
                       &diag) == (difference == 0 ? RSSM_OK : RSSM_E_MISMATCH),
                  "%d bytes more", difference);
    cr_expect(strstr(diag.text, "another argument struct"), "%s", diag.text);
    fixture_close(&f);
}

// The driver is told no length: nothing cut off may reach it.
Test(cuda_load, shows_the_driver_no_damaged_binary)
{
    fixture    f;
    rssm_diag  diag = {0};
    char       other[sizeof f.cubin];
    Elf64_Shdr shifted;

    fixture_open(&f, 1);
    for (size_t n = 0; n < f.n_cubin; n++)
        cr_expect(load(&f, f.cubin, n, "scale", &scale_geometry, sizeof(scale_args), &diag) == RSSM_E_CORRUPT,
                  "%zu bytes", n);
    cr_expect(strstr(diag.text, "cut off at"), "%s", diag.text);
    memcpy(&shifted, f.cubin + f.n_cubin - sizeof shifted, sizeof shifted); // the last section header ends the file
    shifted.sh_offset = f.n_cubin - 4;
    shifted.sh_size = 5;
    memcpy(other, f.cubin, f.n_cubin);
    memcpy(other + f.n_cubin - sizeof shifted, &shifted, sizeof shifted);
    cr_expect(load(&f, other, f.n_cubin, "scale", &scale_geometry, sizeof(scale_args), &diag) == RSSM_E_CORRUPT);
    memcpy(other, f.cubin, f.n_cubin);
    other[1] = 'e';
    cr_expect(load(&f, other, f.n_cubin, "scale", &scale_geometry, sizeof(scale_args), &diag) == RSSM_E_CORRUPT);
    memcpy(other, f.cubin, f.n_cubin);
    other[18] = 62; // e_machine: x86-64
    cr_expect(load(&f, other, f.n_cubin, "scale", &scale_geometry, sizeof(scale_args), &diag) == RSSM_E_CORRUPT);
    cr_expect(strstr(diag.text, "another kind of machine (62)"), "%s", diag.text);
    cr_expect(load(&f, ".version 8.0\n.target sm_90\n.address_size 64\n// not a cubin, but text that is long enough",
                   80, "scale", &scale_geometry, sizeof(scale_args), &diag) == RSSM_E_CORRUPT);
    cr_expect(fake_cuda_calls("cuLibraryLoadData") == 0);
    fixture_close(&f);
}

// Section and program headers anywhere: no crash, and never a success that reaches past the end.
Test(cuda_load, survives_any_header)
{
    fixture f;
    char    other[sizeof f.cubin];

    fixture_open(&f, 1);
    for (size_t i = 0; i < 64; i++) {
        for (int value = 0; value < 256; value += 17) {
            memcpy(other, f.cubin, f.n_cubin);
            other[i] = (char)value;
            const rssm_status st = load(&f, other, f.n_cubin, "scale", &scale_geometry, sizeof(scale_args), NULL);
            cr_expect(st == RSSM_OK || st == RSSM_E_CORRUPT || st == RSSM_E_UNSUPPORTED, "byte %zu = %d: %d", i, value,
                      (int)st);
        }
    }
    fixture_close(&f);
}

Test(cuda_load, says_what_is_wrong_with_a_binary)
{
    static const struct {
        const char *arch, *entries;
        rssm_status status;
        const char *text;
    } cases[] = {{"sm_90a", "scale", RSSM_OK, ""},
                 {"sm_90", "scale", RSSM_OK, ""},
                 {"sm_90a", "scale2", RSSM_E_CORRUPT, "finding kernel scale in its binary: CUDA_ERROR_NOT_FOUND"},
                 {"sm_100a", "scale", RSSM_E_UNSUPPORTED, "for this GPU's architecture"},
                 {"sm_80", "scale", RSSM_E_UNSUPPORTED, "GPU 0 (NVIDIA H200): CUDA_ERROR_NO_BINARY_FOR_GPU"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture   f;
        rssm_diag diag = {0};
        fixture_open(&f, 1);
        f.n_cubin = fake_cuda_cubin(cases[i].arch, cases[i].entries, f.cubin, sizeof f.cubin);
        cr_expect(load(&f, f.cubin, f.n_cubin, "scale", &scale_geometry, sizeof(scale_args), &diag) == cases[i].status,
                  "case %zu: %s", i, diag.text);
        cr_expect(strstr(diag.text, cases[i].text) != NULL, "case %zu: %s", i, diag.text);
        fixture_close(&f);
    }
}

Test(cuda_load, maps_the_drivers_refusals)
{
    static const struct {
        rssm_cuda_result result;
        rssm_status      status;
        const char      *text;
    } cases[] = {{RSSM_CUDA_ERROR_UNSUPPORTED_PTX_VERSION, RSSM_E_DRIVER, "needs a newer driver"},
                 {RSSM_CUDA_ERROR_INVALID_IMAGE, RSSM_E_CORRUPT, "damaged"},
                 {RSSM_CUDA_ERROR_OUT_OF_MEMORY, RSSM_E_DEVICE_MEMORY, "free device memory"},
                 {RSSM_CUDA_ERROR_NO_BINARY_FOR_GPU, RSSM_E_UNSUPPORTED, "architecture"},
                 {RSSM_CUDA_ERROR_ECC_UNCORRECTABLE, RSSM_E_DEVICE_LOST, "ECC"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture   f;
        rssm_diag diag = {0};
        fixture_open(&f, 1);
        fake_cuda_fail_call("cuLibraryLoadData", cases[i].result);
        cr_expect(load(&f, f.cubin, f.n_cubin, "scale", &scale_geometry, sizeof(scale_args), &diag) == cases[i].status);
        cr_expect(strstr(diag.text, cases[i].text) && strstr(diag.text, "loading kernel scale on GPU 0 (NVIDIA H200)"),
                  "%s", diag.text);
        fixture_close(&f);
    }
}

// Another thread of the host captures in global mode, which forbids most calls to every thread: plans are made anyway.
Test(cuda_load, works_while_the_host_captures)
{
    fixture             f;
    struct CUstream_st *stream = NULL;
    struct CUgraph_st  *graph = NULL;
    struct CUctx_st    *context = NULL;
    void               *memory = NULL;

    fixture_open(&f, 1);
    const rssm_cuda_api *cu = rssm_cuda_api_current();
    cr_assert(cu->cuDevicePrimaryCtxRetain(&context, 0) == 0 && cu->cuCtxPushCurrent(context) == 0);
    cr_assert(cu->cuStreamCreate(&stream, RSSM_CUDA_STREAM_NON_BLOCKING) == 0);
    cr_assert(cu->cuStreamBeginCapture(stream, RSSM_CUDA_STREAM_CAPTURE_MODE_GLOBAL) == 0);
    rssm_kernel kernel = fixture_load(&f);
    cr_expect(rssm_cuda_alloc(&f.devices[0], 64, &memory, NULL) == RSSM_OK);
    cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(scale_args){0}, 1, stream) == RSSM_OK);
    cr_expect(cu->cuStreamEndCapture(stream, &graph) == 0, "the capture was invalidated");
    cr_expect(cu->cuGraphDestroy(graph) == 0 && cu->cuStreamDestroy(stream) == 0);
    rssm_cuda_free(&f.devices[0], memory);
    rssm_cuda_kernel_unload(&f.devices[0], &kernel);
    cr_expect(cu->cuCtxPopCurrent(&context) == 0 && cu->cuDevicePrimaryCtxRelease(0) == 0);
    fixture_close(&f);
}
