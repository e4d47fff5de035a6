// Loading and launching of cubins. See cuda_kernel.h.
#include "runtime/cuda_kernel.h"

#include <elf.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "runtime/cuda_context.h"
#include "runtime/cuda_error.h"

enum {
    CUDA_MACHINE = 190,           // e_machine of a cubin (EM_CUDA)
    DEFAULT_SHARED_BYTES = 49152, // static and dynamic shared memory of a block that needs no attribute
    LARGEST_GRID_YZ = 65535,
    LAST_DEFAULT_STREAM = 2, // NULL, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are no pointers
};

// The driver is given no length: it trusts the ELF header. So nothing may point past the end before it sees the bytes.
static rssm_status check_cubin(const void *cubin, size_t n, const char *entry, rssm_diag *diag)
{
    const char *bytes = cubin;
    Elf64_Ehdr  header;

    if (n < sizeof header || memcmp(bytes, ELFMAG, SELFMAG) != 0 || bytes[EI_CLASS] != ELFCLASS64)
        return RSSM_FAIL(diag, RSSM_E_CORRUPT, "the stored binary of kernel %s is no cubin; tune or build it again",
                         entry);
    memcpy(&header, bytes, sizeof header);
    if (header.e_machine != CUDA_MACHINE)
        return RSSM_FAIL(diag, RSSM_E_CORRUPT,
                         "the stored binary of kernel %s is for another kind of machine (%u), not "
                         "for a GPU; tune or build it again",
                         entry, header.e_machine);
    bool fits = header.e_shoff <= n && header.e_shentsize == sizeof(Elf64_Shdr) &&
                (size_t)header.e_shnum * sizeof(Elf64_Shdr) <= n - header.e_shoff && header.e_phoff <= n &&
                (size_t)header.e_phnum * header.e_phentsize <= n - header.e_phoff;
    for (size_t i = 0; fits && i < header.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, bytes + header.e_shoff + i * sizeof section, sizeof section);
        if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL) continue;
        fits = section.sh_offset <= n && section.sh_size <= n - section.sh_offset;
    }
    if (!fits)
        return RSSM_FAIL(diag, RSSM_E_CORRUPT,
                         "the stored binary of kernel %s is cut off at %zu bytes; tune or build "
                         "it again",
                         entry, n);
    return RSSM_OK;
}

// Bounds that make every later grid computation exact: constant + per_row * n_rows < 2^63.
static rssm_status check_geometry(const rssm_geometry *geometry, const char *entry, rssm_diag *diag)
{
    bool valid = true;

    for (int i = 0; i < 3; i++)
        valid = valid && geometry->grid[i].constant >= 0 && geometry->grid[i].constant <= INT32_MAX &&
                geometry->grid[i].per_row >= 0 && geometry->grid[i].per_row <= INT32_MAX && geometry->block[i] > 0 &&
                geometry->block[i] <= 1024;
    if (!valid)
        return RSSM_FAIL(diag, RSSM_E_MANIFEST,
                         "the launch geometry of kernel %s is out of range; correct its manifest", entry);
    return RSSM_OK;
}

typedef struct resources {
    int max_threads, shared_bytes, local_bytes, registers; // of one block, static; of one thread
} resources;

static rssm_status read_resources(const rssm_cuda_api *cu, struct CUfunc_st *function, const char *entry,
                                  resources *out_resources, rssm_diag *diag)
{
    rssm_status st = RSSM_OK;
    resources   r = {0};
    const struct {
        unsigned attribute;
        int     *value;
    } wanted[] = {{RSSM_CUDA_FUNCTION_MAX_THREADS_PER_BLOCK, &r.max_threads},
                  {RSSM_CUDA_FUNCTION_SHARED_SIZE_BYTES, &r.shared_bytes},
                  {RSSM_CUDA_FUNCTION_LOCAL_SIZE_BYTES, &r.local_bytes},
                  {RSSM_CUDA_FUNCTION_NUM_REGS, &r.registers}};

    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        RSSM_TRY(RSSM_CUDA_CHECK(diag, cu->cuFuncGetAttribute(wanted[i].value, wanted[i].attribute, function),
                                 "attribute %u of kernel %s", wanted[i].attribute, entry));
    *out_resources = r;
done:
    return st;
}

// A kernel whose argument struct has another size would read past the caller's.
static rssm_status check_args(const rssm_cuda_api *cu, struct CUfunc_st *function, const char *entry, size_t args_bytes,
                              rssm_diag *diag)
{
    size_t offset = 0, size = 0;

    if (cu->cuFuncGetParamInfo == NULL) return RSSM_OK; // before CUDA 12.4; the layout hash of the database remains
    const rssm_cuda_result result = cu->cuFuncGetParamInfo(function, 0, &offset, &size);
    if (result != RSSM_CUDA_SUCCESS) return RSSM_CUDA_CHECK(diag, result, "the arguments of kernel %s", entry);
    if (size != args_bytes || cu->cuFuncGetParamInfo(function, 1, &offset, &size) == RSSM_CUDA_SUCCESS)
        return RSSM_FAIL(diag, RSSM_E_MISMATCH,
                         "kernel %s was built for another argument struct than this library's "
                         "(%zu bytes here); build it again",
                         entry, args_bytes);
    return RSSM_OK;
}

// Whether a block fits the GPU, and the attribute without which the driver would refuse it at every launch.
static rssm_status fit_block(const rssm_cuda_api *cu, const rssm_device *device, struct CUfunc_st *function,
                             const char *entry, const rssm_geometry *geometry, const resources *r, rssm_diag *diag)
{
    const int64_t threads = (int64_t)geometry->block[0] * geometry->block[1] * geometry->block[2];
    const int64_t shared = (int64_t)r->shared_bytes + geometry->shared_bytes;
    const int64_t limit = rssm_device_fact_value(device, "dev.shared_optin");

    if (threads > r->max_threads)
        return RSSM_FAIL(diag, RSSM_E_UNSUPPORTED,
                         "kernel %s has blocks of %lld threads, and with its %d registers %s "
                         "runs %d; choose a smaller block",
                         entry, (long long)threads, r->registers, rssm_cuda_label(device), r->max_threads);
    if (shared > limit)
        return RSSM_FAIL(diag, RSSM_E_UNSUPPORTED,
                         "kernel %s needs %lld bytes of shared memory, and %s has %lld; choose "
                         "a smaller configuration",
                         entry, (long long)shared, rssm_cuda_label(device), (long long)limit);
    if (shared <= DEFAULT_SHARED_BYTES) return RSSM_OK;
    return RSSM_CUDA_CHECK(
        diag,
        cu->cuFuncSetAttribute(function, RSSM_CUDA_FUNCTION_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)geometry->shared_bytes),
        "giving %u bytes of shared memory to kernel %s", geometry->shared_bytes, entry);
}

rssm_status rssm_cuda_kernel_load(const rssm_device *device, const void *cubin, size_t n, const char *entry,
                                  const rssm_geometry *geometry, size_t args_bytes, rssm_kernel *out_kernel,
                                  rssm_diag *diag)
{
    rssm_status       st = RSSM_OK;
    rssm_cuda_scope   scope = {0};
    struct CUlib_st  *library = NULL;
    struct CUkern_st *kernel = NULL;
    struct CUfunc_st *function = NULL;
    resources         r;
    const char       *label = rssm_cuda_label(device);

    RSSM_TRY(check_cubin(cubin, n, entry, diag));
    RSSM_TRY(check_geometry(geometry, entry, diag));
    RSSM_TRY(rssm_cuda_enter(device, &scope, diag));
    const rssm_cuda_api *cu = scope.cu;
    RSSM_TRY(RSSM_CUDA_CHECK(diag, cu->cuLibraryLoadData(&library, cubin, NULL, NULL, 0, NULL, NULL, 0),
                             "loading kernel %s on %s", entry, label));
    RSSM_TRY(RSSM_CUDA_CHECK(diag, cu->cuLibraryGetKernel(&kernel, library, entry), "finding kernel %s in its binary",
                             entry));
    RSSM_TRY(
        RSSM_CUDA_CHECK(diag, cu->cuKernelGetFunction(&function, kernel), "loading kernel %s on %s", entry, label));
    // Under lazy loading the code may not be on the GPU yet; inside a stream capture it could not get there. This call
    // puts it there, and where it is missing so does the reading of attributes.
    if (cu->cuFuncLoad != NULL)
        RSSM_TRY(RSSM_CUDA_CHECK(diag, cu->cuFuncLoad(function), "loading kernel %s on %s", entry, label));
    RSSM_TRY(read_resources(cu, function, entry, &r, diag));
    RSSM_TRY(check_args(cu, function, entry, args_bytes, diag));
    RSSM_TRY(fit_block(cu, device, function, entry, geometry, &r, diag));
    memset(out_kernel, 0, sizeof *out_kernel);
    out_kernel->geometry = *geometry;
    out_kernel->args_bytes = args_bytes;
    out_kernel->host_fd = -1;
    out_kernel->cuda_library = library;
    out_kernel->cuda_function = function;
    out_kernel->registers = (uint32_t)r.registers;
    out_kernel->local_bytes = (uint32_t)r.local_bytes;
    library = NULL;
done:
    if (library != NULL) scope.cu->cuLibraryUnload(library);
    rssm_cuda_leave(&scope);
    return st;
}

void rssm_cuda_kernel_unload(const rssm_device *device, rssm_kernel *kernel)
{
    (void)device; // a library belongs to the process
    if (kernel->cuda_library == NULL) return;
    rssm_cuda_api_current()->cuLibraryUnload(kernel->cuda_library);
    memset(kernel, 0, sizeof *kernel);
    kernel->host_fd = -1;
}

static unsigned grid_size(const rssm_geometry *geometry, int axis, uint32_t n_rows)
{
    const int64_t size = geometry->grid[axis].constant + geometry->grid[axis].per_row * (int64_t)n_rows;
    const int64_t largest = axis == 0 ? INT32_MAX : LARGEST_GRID_YZ;
    return size > 0 && size <= largest ? (unsigned)size : 0;
}

rssm_status rssm_cuda_kernel_launch(const rssm_device *device, const rssm_kernel *kernel, const void *args,
                                    uint32_t n_rows, void *stream)
{
    const rssm_cuda_api          *cu = rssm_cuda_api_current();
    const rssm_geometry          *g = &kernel->geometry;
    void                         *parameters[] = {(void *)(uintptr_t)args};
    rssm_cuda_result              result = RSSM_CUDA_ERROR_INVALID_CONTEXT;
    struct CUctx_st              *popped;
    const rssm_cuda_launch_config config = {
        .gridDimX = grid_size(g, 0, n_rows),
        .gridDimY = grid_size(g, 1, n_rows),
        .gridDimZ = grid_size(g, 2, n_rows),
        .blockDimX = g->block[0],
        .blockDimY = g->block[1],
        .blockDimZ = g->block[2],
        .sharedMemBytes = g->shared_bytes,
        .hStream = stream,
    };

    if (n_rows == 0 || config.gridDimX == 0 || config.gridDimY == 0 || config.gridDimZ == 0)
        return RSSM_E_INVALID_ARGUMENT;
    // The default streams are those of the current context. Any other tells its own, but no document promises that
    // the driver launches a CUfunction by it in a thread that has no context at all: hence the second try.
    if ((uintptr_t)stream > LAST_DEFAULT_STREAM)
        result = cu->cuLaunchKernelEx(&config, kernel->cuda_function, parameters, NULL);
    if (result == RSSM_CUDA_ERROR_INVALID_CONTEXT) {
        result = rssm_cuda_push(cu, device);
        if (result == RSSM_CUDA_SUCCESS) {
            result = cu->cuLaunchKernelEx(&config, kernel->cuda_function, parameters, NULL);
            cu->cuCtxPopCurrent(&popped);
        }
    }
    return rssm_cuda_status(result);
}
