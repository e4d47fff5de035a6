// The CUDA side of runtime/ on a real GPU, with kernels that NVRTC compiles here. Without a GPU every test is skipped
// and says why; with a GPU but without NVRTC ($RSSM_NVRTC names one that the search does not find) they fail.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "gen/nvrtc.h"
#include "runtime/cuda_device.h"
#include "runtime/cuda_error.h"
#include "runtime/cuda_kernel.h"
#include "runtime/cuda_memory.h"

static const char source[] =
    "struct args { float *x; int n; float factor; };\n"
    "extern \"C\" __global__ void scale(const __grid_constant__ args a)\n"
    "{\n"
    "    extern __shared__ float staged[];\n"
    "    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    staged[threadIdx.x] = i < a.n ? a.x[i] : 0;\n"
    "    if (i < a.n) a.x[i] = staged[threadIdx.x] * a.factor;\n"
    "}\n"
    "extern \"C\" __global__ void fault(const __grid_constant__ args a) { *(volatile int *)(a.n + 64ll) = 1; }\n";

typedef struct scale_args {
    float *x;
    int    n;
    float  factor;
} scale_args;

typedef struct gpu_fixture {
    rssm_device       devices[8];
    uint32_t          n_devices;
    rssm_nvrtc_output object;
} gpu_fixture;

enum { N = 1000 };
static const rssm_geometry geometry = {.grid = {{4, 4}, {1, 0}, {1, 0}}, .block = {128, 1, 1}, .shared_bytes = 100000};

static rssm_nvrtc_output compile(const char *arch)
{
    const char *const      folders[] = {"/usr/local/cuda/lib64"};
    char                   option[96];
    const char *const      options[] = {option};
    const rssm_nvrtc_input input = {.name = "gpu.cu", .bytes = source, .options = options, .n_options = 1};
    rssm_nvrtc            *nvrtc = NULL;
    rssm_nvrtc_output      object = {0};
    rssm_str               log = {0};
    rssm_diag              diag = {0};

    snprintf(option, sizeof option, "--gpu-architecture=%s", arch);
    cr_assert(rssm_nvrtc_open(getenv("RSSM_NVRTC"), folders, 1, &nvrtc, &diag) == RSSM_OK, "%s", diag.text);
    cr_assert(rssm_nvrtc_compile(nvrtc, &input, &object, &log, &diag) == RSSM_OK, "%s\n%s", diag.text,
              rssm_str_c(&log));
    rssm_str_free(&log);
    rssm_nvrtc_close(nvrtc);
    return object;
}

static void open_gpus(gpu_fixture *f)
{
    rssm_diag diag = {0};

    memset(f, 0, sizeof *f);
    const rssm_status st = rssm_cuda_find_devices(f->devices, 8, &f->n_devices, &diag);
    if (st != RSSM_OK) {
        fprintf(stderr, "skipped: no GPU: %s\n", diag.text); // ctest looks for these words
        cr_skip_test("no GPU");
    }
    f->object = compile(f->devices[0].info.arch);
}

static void close_gpus(gpu_fixture *f)
{
    rssm_free(f->object.cubin);
    rssm_cuda_release_devices(f->devices, f->n_devices);
}

static rssm_kernel load(gpu_fixture *f, const char *entry)
{
    rssm_kernel kernel = {0};
    rssm_diag   diag = {0};

    cr_assert(rssm_cuda_kernel_load(&f->devices[0], f->object.cubin, f->object.n, entry, &geometry, sizeof(scale_args),
                                    &kernel, &diag) == RSSM_OK,
              "%s", diag.text);
    return kernel;
}

static void *upload_ones(gpu_fixture *f)
{
    static float ones[N];
    void        *x = NULL;
    rssm_diag    diag = {0};

    for (int i = 0; i < N; i++)
        ones[i] = 1;
    cr_assert(rssm_cuda_alloc(&f->devices[0], sizeof ones, &x, &diag) == RSSM_OK, "%s", diag.text);
    cr_assert(rssm_cuda_upload(&f->devices[0], x, ones, sizeof ones, &diag) == RSSM_OK, "%s", diag.text);
    return x;
}

static void expect_all(gpu_fixture *f, const void *x, float expected)
{
    static float back[N];
    int          n_wrong = 0;
    rssm_diag    diag = {0};

    cr_assert(rssm_cuda_download(&f->devices[0], back, x, sizeof back, &diag) == RSSM_OK, "%s", diag.text);
    for (int i = 0; i < N; i++)
        n_wrong += back[i] != expected;
    cr_expect(n_wrong == 0, "%d values are not %g", n_wrong, (double)expected);
}

Test(cuda_gpu, is_described)
{
    gpu_fixture f;

    open_gpus(&f);
    for (uint32_t i = 0; i < f.n_devices; i++)
        cr_log_info("%s | %s | %s", f.devices[i].info.arch, f.devices[i].driver, f.devices[i].key_text);
    cr_expect(strstr(f.devices[0].key_text, "pci=00000000") == NULL, "%s", f.devices[0].key_text);
    close_gpus(&f);
}

static int n_launch_calls;
static rssm_cuda_result (*launch)(const rssm_cuda_launch_config *, struct CUfunc_st *, void **, void **);

static rssm_cuda_result count_launch(const rssm_cuda_launch_config *config, struct CUfunc_st *function,
                                     void **parameters, void **extra)
{
    n_launch_calls++;
    return launch(config, function, parameters, extra);
}

// This thread never has a context of its own; the stream is one that the host made.
Test(cuda_gpu, launches_in_a_thread_without_a_context)
{
    gpu_fixture         f;
    struct CUctx_st    *context;
    struct CUstream_st *stream;
    rssm_cuda_api       counting;

    open_gpus(&f);
    const rssm_cuda_api *cu = rssm_cuda_api_current();
    counting = *cu;
    launch = cu->cuLaunchKernelEx;
    counting.cuLaunchKernelEx = count_launch;
    cr_assert(cu->cuDevicePrimaryCtxRetain(&context, f.devices[0].ordinal) == 0 && cu->cuCtxPushCurrent(context) == 0);
    cr_assert(cu->cuStreamCreate(&stream, RSSM_CUDA_STREAM_NON_BLOCKING) == 0 && cu->cuCtxPopCurrent(&context) == 0);
    rssm_kernel kernel = load(&f, "scale");
    cr_expect(kernel.registers > 0 && kernel.local_bytes == 0);
    void *x = upload_ones(&f);
    rssm_cuda_api_install(&counting);
    cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(scale_args){x, N, 2}, 1, stream) == RSSM_OK);
    cr_log_info("a launch on a stream without a current context took %d driver call(s)", n_launch_calls);
    rssm_cuda_api_install(cu);
    expect_all(&f, x, 2);
    cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(scale_args){x, N, 3}, 1, NULL) == RSSM_OK);
    expect_all(&f, x, 6);
    rssm_cuda_free(&f.devices[0], x);
    rssm_cuda_kernel_unload(&f.devices[0], &kernel);
    cu->cuStreamDestroy(stream);
    cu->cuDevicePrimaryCtxRelease(f.devices[0].ordinal);
    close_gpus(&f);
}

Test(cuda_gpu, captures_replays_and_times)
{
    gpu_fixture      f;
    rssm_cuda_graph *graph = NULL;
    void            *stream = NULL;
    double           ns = 0;
    rssm_diag        diag = {0};

    open_gpus(&f);
    void *x = upload_ones(&f);
    cr_assert(rssm_cuda_graph_begin(&f.devices[0], &graph, &stream, &diag) == RSSM_OK, "%s", diag.text);
    rssm_kernel kernel = load(&f, "scale"); // inside the capture
    cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(scale_args){x, N, 2}, 1, stream) == RSSM_OK);
    cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(scale_args){x, N, 0.5f}, 1, stream) == RSSM_OK);
    cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(scale_args){x, N, 2}, 1, stream) == RSSM_OK);
    cr_assert(rssm_cuda_graph_end(graph, &diag) == RSSM_OK, "%s", diag.text);
    expect_all(&f, x, 1);
    for (int i = 0; i < 64; i++)
        cr_expect(rssm_cuda_graph_launch(graph, &diag) == RSSM_OK, "%s", diag.text);
    expect_all(&f, x, 0x1p64f);
    cr_expect(rssm_cuda_graph_time(graph, &ns, &diag) == RSSM_OK && ns > 500 && ns < 1e7, "%g ns, %s", ns, diag.text);
    cr_log_info("a graph of three small kernels took %.0f ns", ns);
    rssm_cuda_graph_destroy(graph);
    rssm_cuda_free(&f.devices[0], x);
    rssm_cuda_kernel_unload(&f.devices[0], &kernel);
    close_gpus(&f);
}

Test(cuda_gpu, loads_while_the_host_captures)
{
    gpu_fixture         f;
    struct CUctx_st    *context;
    struct CUstream_st *stream;
    struct CUgraph_st  *graph = NULL;

    open_gpus(&f);
    const rssm_cuda_api *cu = rssm_cuda_api_current();
    cr_assert(cu->cuDevicePrimaryCtxRetain(&context, f.devices[0].ordinal) == 0 && cu->cuCtxPushCurrent(context) == 0);
    cr_assert(cu->cuStreamCreate(&stream, RSSM_CUDA_STREAM_NON_BLOCKING) == 0);
    cr_assert(cu->cuStreamBeginCapture(stream, RSSM_CUDA_STREAM_CAPTURE_MODE_GLOBAL) == 0);
    rssm_kernel kernel = load(&f, "scale");
    cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(scale_args){NULL, 0, 1}, 1, stream) == RSSM_OK);
    cr_expect(cu->cuStreamEndCapture(stream, &graph) == 0 && graph != NULL, "the capture was invalidated");
    cu->cuGraphDestroy(graph);
    cu->cuStreamDestroy(stream);
    cu->cuCtxPopCurrent(&context);
    rssm_cuda_kernel_unload(&f.devices[0], &kernel);
    cu->cuDevicePrimaryCtxRelease(f.devices[0].ordinal);
    close_gpus(&f);
}

Test(cuda_gpu, refuses_what_it_cannot_run)
{
    gpu_fixture   f;
    rssm_kernel   kernel = {0};
    rssm_geometry large = geometry;
    void         *memory = NULL;
    rssm_diag     diag = {0};

    open_gpus(&f);
    const rssm_device *device = &f.devices[0];
    rssm_nvrtc_output  other = compile(strcmp(device->info.arch, "sm_80") == 0 ? "sm_90" : "sm_80");
    cr_expect(rssm_cuda_kernel_load(device, other.cubin, other.n, "scale", &geometry, sizeof(scale_args), &kernel,
                                    &diag) == RSSM_E_UNSUPPORTED,
              "%s", diag.text);
    rssm_free(other.cubin);
    cr_expect(rssm_cuda_kernel_load(device, f.object.cubin, f.object.n, "none", &geometry, sizeof(scale_args), &kernel,
                                    &diag) == RSSM_E_CORRUPT,
              "%s", diag.text);
    cr_expect(rssm_cuda_kernel_load(device, f.object.cubin, f.object.n, "scale", &geometry, 24, &kernel, &diag) ==
                  (rssm_cuda_api_current()->cuFuncGetParamInfo != NULL ? RSSM_E_MISMATCH : RSSM_OK),
              "%s", diag.text);
    rssm_cuda_kernel_unload(device, &kernel);
    large.shared_bytes = 1 << 20;
    cr_expect(rssm_cuda_kernel_load(device, f.object.cubin, f.object.n, "scale", &large, sizeof(scale_args), &kernel,
                                    &diag) == RSSM_E_UNSUPPORTED,
              "%s", diag.text);
    cr_expect(rssm_cuda_alloc(device, (size_t)1 << 42, &memory, &diag) == RSSM_E_DEVICE_MEMORY, "%s", diag.text);
    close_gpus(&f);
}

Test(cuda_gpu, reports_a_fault_and_lets_go)
{
    gpu_fixture f;
    rssm_diag   diag = {0};

    open_gpus(&f);
    void       *x = upload_ones(&f);
    rssm_kernel kernel = load(&f, "fault");
    cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(scale_args){0}, 1, NULL) == RSSM_OK);
    cr_expect(rssm_cuda_synchronise(&f.devices[0], &diag) == RSSM_E_DEVICE_LOST, "%s", diag.text);
    cr_expect(strstr(diag.text, "compute-sanitizer") != NULL, "%s", diag.text);
    cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(scale_args){0}, 1, NULL) == RSSM_E_DEVICE_LOST);
    rssm_cuda_free(&f.devices[0], x);
    rssm_cuda_kernel_unload(&f.devices[0], &kernel);
    close_gpus(&f);
}
