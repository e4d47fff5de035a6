// simt-crosscheck FILE [NVRTC | CUBIN]: runs kernels/crosscheck.cu on the first GPU and compares with what the emulator
// recorded in FILE. Exit status: 0 the same, 1 not, 2 it could not be run. See crosscheck.h.
#include "tests/simt/crosscheck.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "gen/nvrtc.h"
#include "gen/source.h"
#include "runtime/cuda_api.h"

enum { HEADERS_MAX = 256 };

// Bound of a sum inside one matrix instruction, as a fraction of the largest possible sum of magnitudes: the emulator
// and the hardware cut at 2^-24 of the largest term or better.
static const double bound_of_sums = 0x1p-19;

static rssm_status compile(const char *nvrtc_path, int arch, rssm_nvrtc_output *out_cubin, rssm_diag *diag)
{
    static const char  folder[] = RSSM_SOURCE_DIR "/tests/simt/kernels/";
    rssm_nvrtc_header  headers[HEADERS_MAX];
    rssm_template_set *set = NULL;
    rssm_nvrtc        *nvrtc = NULL;
    rssm_str           log = {0};
    char              *source = NULL, *header = NULL, option[64];
    size_t             n, n_headers = 0;
    rssm_status        st;

    RSSM_TRY(rssm_template_set_open(RSSM_SOURCE_DIR "/templates", &set, diag));
    char path[512];
    snprintf(path, sizeof path, "%scrosscheck.cu", folder);
    RSSM_TRY(rssm_file_read(path, 1 << 20, &source, &n, diag));
    snprintf(path, sizeof path, "%scrosscheck.h", folder);
    RSSM_TRY(rssm_file_read(path, 1 << 20, &header, &n, diag));
    for (size_t i = 0; i < rssm_template_set_file_count(set) && n_headers < HEADERS_MAX - 1; i++) {
        const rssm_template_file *file = rssm_template_set_file_at(set, i);
        headers[n_headers++] = (rssm_nvrtc_header){file->name, file->bytes};
    }
    headers[n_headers++] = (rssm_nvrtc_header){"tests/simt/kernels/crosscheck.h", header};
    snprintf(option, sizeof option, "--gpu-architecture=sm_%d", arch);
    const char *const      options[] = {option, "--std=c++17"};
    const rssm_nvrtc_input input = {"crosscheck.cu", source, headers, n_headers, options, 2};
    RSSM_TRY(rssm_nvrtc_open(nvrtc_path, NULL, 0, &nvrtc, diag));
    RSSM_TRY(rssm_nvrtc_compile(nvrtc, &input, out_cubin, &log, diag));
done:
    rssm_nvrtc_close(nvrtc);
    rssm_str_free(&log);
    rssm_free(source);
    rssm_free(header);
    rssm_template_set_close(set);
    return st;
}

// Differing words; for sums the largest difference in units of their bound.
static int compare(int which, const char *name, bool exact, const crosscheck_file *file, const uint32_t *got)
{
    const uint32_t *want = file->out[which];
    uint32_t        n_differ = 0, first = 0;
    double          worst = 0;
    for (uint32_t i = 0; i < CROSSCHECK_VALUES; i++) {
        float a, b;
        if (got[i] == want[i]) continue;
        if (n_differ++ == 0) first = i;
        memcpy(&a, &got[i], 4), memcpy(&b, &want[i], 4);
        // moderate() is below 2^5 in magnitude, and a sum has at most 16 products.
        worst = fmax(worst, fabs((double)a - b) / (16 * 32.0 * 32.0 * bound_of_sums));
    }
    const bool failed = exact ? n_differ > 0 : !(worst <= 1);
    printf("%s %-28s %u of %d words differ", failed ? "WRONG" : "ok   ", name, n_differ, CROSSCHECK_VALUES);
    if (n_differ && exact)
        printf("; word %u of 0x%08x is 0x%08x, emulated 0x%08x", first, file->in[first], got[first], want[first]);
    if (!exact) printf("; at most %.3g of the bound", worst);
    puts("");
    return failed;
}

static int run_all(const rssm_cuda_api *cu, const rssm_nvrtc_output *cubin, const crosscheck_file *file)
{
    static const struct {
        const char *name;
        bool        exact;
    } checks[] = {
#define CROSSCHECK_NAME(enumerator, exact) {#enumerator, exact},
        CROSSCHECK_LIST(CROSSCHECK_NAME)
#undef CROSSCHECK_NAME
    };
    static uint32_t    got[CROSSCHECK_VALUES];
    struct CUlib_st   *library = NULL;
    struct CUkern_st  *kernel;
    struct CUfunc_st  *function;
    unsigned long long in, out;
    int                n_failed = 0;

    if (cu->cuLibraryLoadData(&library, cubin->cubin, NULL, NULL, 0, NULL, NULL, 0) ||
        cu->cuLibraryGetKernel(&kernel, library, "crosscheck") || cu->cuKernelGetFunction(&function, kernel) ||
        cu->cuMemAlloc(&in, sizeof got) || cu->cuMemAlloc(&out, sizeof got) ||
        cu->cuMemcpyHtoD(in, file->in, sizeof file->in))
        return -1;
    for (int which = 0; which < N_CROSSCHECKS; which++) {
        crosscheck_args               args = {NULL, NULL, which};
        void                         *parameters[] = {&args};
        const rssm_cuda_launch_config config = {1, 1, 1, 32, 1, 1, 512, NULL, NULL, 0};
        memcpy(&args.in, &in, sizeof in);
        memcpy(&args.out, &out, sizeof out);
        if (cu->cuLaunchKernelEx(&config, function, parameters, NULL) || cu->cuCtxSynchronize() ||
            cu->cuMemcpyDtoH(got, out, sizeof got))
            return -1;
        n_failed += compare(which, checks[which].name, checks[which].exact, file, got);
    }
    return n_failed;
}

static bool has_suffix(const char *text, const char *suffix)
{
    const size_t n = strlen(text), m = strlen(suffix);
    return n >= m && strcmp(text + n - m, suffix) == 0;
}

static int compile_only(int argc, char **argv)
{
    rssm_nvrtc_output cubin = {0};
    rssm_diag         diag = {0};
    FILE             *stream = NULL;
    int               code = 2;
    if (argc < 4) return 2;
    if (compile(argc > 4 ? argv[4] : NULL, atoi(argv[2]), &cubin, &diag) != RSSM_OK) {
        fprintf(stderr, "%s\n", diag.text);
        return 2;
    }
    stream = fopen(argv[3], "wb");
    if (stream && fwrite(cubin.cubin, cubin.n, 1, stream) == 1) code = 0;
    if (stream && fclose(stream) != 0) code = 2;
    rssm_free(cubin.cubin);
    return code;
}

// Opens the first GPU. Returns its compute capability, 90 for 9.0; 0 if there is none.
static int open_gpu(const rssm_cuda_api **out_cu)
{
    struct CUctx_st     *context = NULL;
    const rssm_cuda_api *cu = NULL;
    rssm_diag            diag = {0};
    int                  device, major = 0, minor = 0;
    if (rssm_cuda_api_load(&cu, &diag) != RSSM_OK || cu->cuInit(0) || cu->cuDeviceGet(&device, 0) ||
        cu->cuDeviceGetAttribute(&major, RSSM_CUDA_DEVICE_COMPUTE_CAPABILITY_MAJOR, device) ||
        cu->cuDeviceGetAttribute(&minor, RSSM_CUDA_DEVICE_COMPUTE_CAPABILITY_MINOR, device) ||
        cu->cuDevicePrimaryCtxRetain(&context, device) || cu->cuCtxPushCurrent(context)) {
        fprintf(stderr, "no GPU can be used: %s\n", diag.text);
        return 0;
    }
    *out_cu = cu;
    return 10 * major + minor;
}

static rssm_status get_cubin(const char *path, int arch, rssm_nvrtc_output *out_cubin, rssm_diag *diag)
{
    char       *bytes;
    rssm_status st;
    if (!path || !has_suffix(path, ".cubin")) return compile(path, arch, out_cubin, diag);
    st = rssm_file_read(path, 16 << 20, &bytes, &out_cubin->n, diag);
    if (st == RSSM_OK) out_cubin->cubin = (uint8_t *)bytes;
    return st;
}

static bool read_record(const char *path, crosscheck_file *out_file)
{
    FILE      *stream = fopen(path, "rb");
    const bool read = stream && fread(out_file, sizeof *out_file, 1, stream) == 1;
    if (stream) fclose(stream);
    return read && out_file->magic == CROSSCHECK_MAGIC && out_file->n_checks == N_CROSSCHECKS;
}

int main(int argc, char **argv)
{
    static crosscheck_file file;
    const rssm_cuda_api   *cu = NULL;
    rssm_nvrtc_output      cubin = {0};
    rssm_diag              diag = {0};

    if (argc > 1 && strcmp(argv[1], "--compile") == 0) return compile_only(argc, argv);
    if (argc < 2 || !read_record(argv[1], &file)) {
        fputs("usage: simt-crosscheck FILE [NVRTC | CUBIN], FILE written by this version's simt-check --record FILE\n"
              "       simt-crosscheck --compile ARCH CUBIN [NVRTC]\n",
              stderr);
        return 2;
    }
    const int arch = open_gpu(&cu);
    if (arch == 0) return 2;
    if (get_cubin(argc > 2 ? argv[2] : NULL, arch, &cubin, &diag) != RSSM_OK) {
        fprintf(stderr, "%s\n", diag.text);
        return 2;
    }
    const int n_failed = run_all(cu, &cubin, &file);
    rssm_free(cubin.cubin);
    printf("%d checks on sm_%d: %s\n", N_CROSSCHECKS, arch,
           n_failed == 0  ? "the emulator agrees"
           : n_failed < 0 ? "the driver failed"
                          : "the emulator differs");
    return n_failed == 0 ? 0 : n_failed < 0 ? 2 : 1;
}
