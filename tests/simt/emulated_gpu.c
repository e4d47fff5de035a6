// A GPU that is the emulator: a program linked with this file finds an "H200" whose memory is the emulator's arena and
// whose kernels are the CUDA templates, compiled for the host and refereed. So the runtime's own code, from
// rssm_group_create to the launch, drives them. rssm_build is wrapped (-Wl,--wrap=rssm_build): where it would ask NVRTC it
// compiles for the emulator, and the "cubin" it gives back is an ELF header with the address of the kernel behind it.
//
// Launches run at once; streams and graphs are those of the fake driver and are not used. What the referee finds is
// printed and fails the launch. Threads: none.
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "gen/build.h"
#include "tests/simt/suite.h"
#include "tests/support/fake_cuda.h"

enum { CUDA_MACHINE = 190, MOST_KERNELS = 256 };

typedef struct compiled {
    rssm_str     text; // what it was compiled from
    simt_kernel *kernel;
} compiled;

static compiled      kernels[MOST_KERNELS];
static int           n_kernels;
static rssm_cuda_api table;

// ------------------------------------------------------------------------------------------------------------ building

typedef struct image {
    Elf64_Ehdr   header;
    simt_kernel *kernel;
} image;

rssm_status __real_rssm_build(const rssm_build_input *input, const rssm_toolchain *toolchain, rssm_object *out_object,
                              rssm_str *out_log, rssm_diag *diag);
rssm_status __wrap_rssm_build(const rssm_build_input *input, const rssm_toolchain *toolchain, rssm_object *out_object,
                              rssm_str *out_log, rssm_diag *diag);

// The problem that decides what a kernel is compiled to: copies and conversions know no window and no step length.
static rssm_problem deciding_problem(const rssm_manifest *manifest, const rssm_problem *problem)
{
    rssm_problem p = *problem;
    if (manifest->op != RSSM_OP_STEP) p.max_tokens = 1;
    if (manifest->op == RSSM_OP_ENCODE || manifest->op == RSSM_OP_DECODE) p.window = p.ring_length = 1;
    return p;
}

static rssm_status compile(const rssm_build_input *input, simt_kernel **out_kernel, rssm_diag *diag)
{
    rssm_problem problem = {0};
    rssm_launch  launch;
    rssm_str     text = {0};
    rssm_status  st = RSSM_OK;

    rssm_str_printf(&text, "%s ", input->config->manifest->name);
    rssm_config_text(input->config, &text);
    if (input->problem) {
        problem = deciding_problem(input->config->manifest, input->problem);
        for (size_t i = 0; i < sizeof problem / 4; i++) rssm_str_printf(&text, " %u", ((const uint32_t *)&problem)[i]);
    }
    for (int i = 0; i < n_kernels; i++) {
        if (strcmp(rssm_str_c(&kernels[i].text), rssm_str_c(&text)) != 0) continue;
        *out_kernel = kernels[i].kernel;
        goto done;
    }
    if (n_kernels == MOST_KERNELS) abort();
    RSSM_TRY(simt_template_load(simt_template_root(), input->config, input->problem ? &problem : NULL, input->facts, NULL,
                                out_kernel, &launch, diag));
    kernels[n_kernels++] = (compiled){text, *out_kernel};
    text = (rssm_str){0};
done:
    rssm_str_free(&text);
    return st;
}

rssm_status __wrap_rssm_build(const rssm_build_input *input, const rssm_toolchain *toolchain, rssm_object *out_object,
                              rssm_str *out_log, rssm_diag *diag)
{
    rssm_status st = RSSM_OK;
    image       built = {0};

    if (input->backend != RSSM_CUDA) return __real_rssm_build(input, toolchain, out_object, out_log, diag);
    RSSM_TRY(compile(input, &built.kernel, diag));
    memcpy(built.header.e_ident, ELFMAG, SELFMAG);
    built.header.e_ident[EI_CLASS] = ELFCLASS64;
    built.header.e_machine = CUDA_MACHINE;
    built.header.e_shentsize = sizeof(Elf64_Shdr);
    *out_object = (rssm_object){.bytes = rssm_calloc(1, sizeof built), .n = sizeof built, .kind = RSSM_OBJECT_CUBIN,
                                .log = rssm_calloc(1, 1)};
    if (!out_object->bytes || !out_object->log) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for an image");
    memcpy(out_object->bytes, &built, sizeof built);
done:
    return st;
}

// ---------------------------------------------------------------------------------------------------------- the driver

static rssm_cuda_result load_library(struct CUlib_st **library, const void *code, unsigned *jit_options, void **jit_values,
                                     unsigned n_jit_options, unsigned *library_options, void **library_values,
                                     unsigned n_library_options)
{
    image built;
    (void)jit_options, (void)jit_values, (void)n_jit_options;
    (void)library_options, (void)library_values, (void)n_library_options;
    memcpy(&built, code, sizeof built);
    *library = (struct CUlib_st *)(void *)built.kernel;
    return RSSM_CUDA_SUCCESS;
}

static rssm_cuda_result unload_library(struct CUlib_st *library)
{
    (void)library; // kernels are kept for the groups to come
    return RSSM_CUDA_SUCCESS;
}

static rssm_cuda_result get_kernel(struct CUkern_st **kernel, struct CUlib_st *library, const char *name)
{
    (void)name;
    *kernel = (struct CUkern_st *)(void *)library;
    return RSSM_CUDA_SUCCESS;
}

static rssm_cuda_result get_function(struct CUfunc_st **function, struct CUkern_st *kernel)
{
    *function = (struct CUfunc_st *)(void *)kernel;
    return RSSM_CUDA_SUCCESS;
}

static rssm_cuda_result load_function(struct CUfunc_st *function)
{
    (void)function;
    return RSSM_CUDA_SUCCESS;
}

static rssm_cuda_result get_attribute(int *value, unsigned attribute, struct CUfunc_st *function)
{
    (void)function;
    *value = attribute == RSSM_CUDA_FUNCTION_MAX_THREADS_PER_BLOCK ? 1024 : 0;
    return RSSM_CUDA_SUCCESS;
}

static rssm_cuda_result set_attribute(struct CUfunc_st *function, unsigned attribute, int value)
{
    (void)function, (void)attribute, (void)value;
    return RSSM_CUDA_SUCCESS;
}

static rssm_cuda_result launch(const rssm_cuda_launch_config *c, struct CUfunc_st *function, void **parameters, void **extra)
{
    static uint64_t           n_launches;
    const simt_launch_options options = {.grid = {c->gridDimX, c->gridDimY, c->gridDimZ},
                                         .block = {c->blockDimX, c->blockDimY, c->blockDimZ},
                                         .shared_bytes = c->sharedMemBytes,
                                         .seed = n_launches++};
    simt_report               report;
    (void)extra;
    if (simt_launch((const simt_kernel *)(const void *)function, &options, parameters[0], &report)) return RSSM_CUDA_SUCCESS;
    fprintf(stderr, "%s\n", report.text);
    return RSSM_CUDA_ERROR_LAUNCH_FAILED;
}

static rssm_cuda_result allocate(unsigned long long *pointer, size_t n_bytes)
{
    void *found = NULL;
    if (simt_alloc(n_bytes, &found, NULL) != RSSM_OK) return RSSM_CUDA_ERROR_OUT_OF_MEMORY;
    *pointer = (unsigned long long)(uintptr_t)found;
    return RSSM_CUDA_SUCCESS;
}

static rssm_cuda_result release(unsigned long long pointer)
{
    simt_free((void *)(uintptr_t)pointer);
    return RSSM_CUDA_SUCCESS;
}

static rssm_cuda_result upload(unsigned long long to, const void *from, size_t n_bytes)
{
    simt_upload((void *)(uintptr_t)to, from, n_bytes, false); // a slot number may look like the emulator's poison
    return RSSM_CUDA_SUCCESS;
}

static rssm_cuda_result download(void *to, unsigned long long from, size_t n_bytes)
{
    simt_download(to, (const void *)(uintptr_t)from, n_bytes);
    return RSSM_CUDA_SUCCESS;
}

__attribute__((constructor)) static void install(void)
{
    const fake_cuda_gpu gpu = FAKE_CUDA_H200;
    fake_cuda_install(&gpu, 1);
    simt_reset();
    table = *rssm_cuda_api_current();
    table.cuLibraryLoadData = load_library;
    table.cuLibraryUnload = unload_library;
    table.cuLibraryGetKernel = get_kernel;
    table.cuKernelGetFunction = get_function;
    table.cuFuncLoad = load_function;
    table.cuFuncGetParamInfo = NULL;
    table.cuFuncGetAttribute = get_attribute;
    table.cuFuncSetAttribute = set_attribute;
    table.cuLaunchKernelEx = launch;
    table.cuMemAlloc = allocate;
    table.cuMemFree = release;
    table.cuMemcpyHtoD = upload;
    table.cuMemcpyDtoH = download;
    rssm_cuda_api_install(&table);
}

__attribute__((destructor)) static void remove_all(void)
{
    for (int i = 0; i < n_kernels; i++) {
        simt_kernel_unload(kernels[i].kernel);
        rssm_str_free(&kernels[i].text);
    }
    fake_cuda_remove();
}
