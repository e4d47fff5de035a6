// The fake driver's libraries, kernels and launches. See fake_cuda.h.
#define _GNU_SOURCE // memmem
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/fake_cuda_state.h"

// e_flags of a cubin: the architecture in the second byte. Ours say in the lowest bit that it runs on no other.
enum { CUDA_MACHINE = 190, CUDA_ABI = 8, DEFAULT_SHARED_BYTES = 49152, EXACT = 1 };

void fake_cuda_register(const fake_cuda_kernel *kernel)
{
    int i = 0;

    while (i < fake.n_kernels && strcmp(fake.kernels[i].entry, kernel->entry) != 0)
        i++;
    if (i == (int)(sizeof fake.kernels / sizeof fake.kernels[0])) abort();
    fake.kernels[i] = *kernel;
    if (i == fake.n_kernels) fake.n_kernels++;
}

// An ELF header, the entries each between NULs (as a string table holds them), and two section headers.
size_t fake_cuda_cubin(const char *arch, const char *entries, void *out_bytes, size_t room)
{
    const size_t names = strlen(entries) + 2, n = sizeof(Elf64_Ehdr) + names + 2 * sizeof(Elf64_Shdr);
    const bool   exact = arch[strlen(arch) - 1] == 'a';
    Elf64_Ehdr   header = {.e_type = ET_EXEC, .e_machine = CUDA_MACHINE, .e_version = 1, .e_shnum = 2};
    Elf64_Shdr   section = {.sh_type = SHT_STRTAB, .sh_offset = sizeof header, .sh_size = names};
    char        *bytes = out_bytes;

    if (n > room) abort();
    memset(bytes, 0, n);
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_ident[EI_ABIVERSION] = CUDA_ABI;
    header.e_flags = (Elf64_Word)atoi(arch + strlen("sm_")) << 8 | (exact ? EXACT : 0);
    header.e_ehsize = sizeof header;
    header.e_shentsize = sizeof section;
    header.e_shoff = sizeof header + names;
    memcpy(bytes, &header, sizeof header);
    for (size_t i = 0; entries[i] != '\0'; i++)
        bytes[sizeof header + 1 + i] = entries[i] == ',' ? '\0' : entries[i];
    memcpy(bytes + header.e_shoff + sizeof section, &section, sizeof section);
    return n;
}

// What the driver does not ask for: how long an image is. 0: it is none.
static size_t image_size(const void *code)
{
    const char *bytes = code;
    Elf64_Ehdr  header;
    size_t      end;

    if (memcmp(bytes, ELFMAG, SELFMAG) != 0) return 0;
    memcpy(&header, bytes, sizeof header);
    if (header.e_machine != CUDA_MACHINE) return 0;
    end = header.e_shoff + (size_t)header.e_shnum * header.e_shentsize;
    if (header.e_phoff + (size_t)header.e_phnum * header.e_phentsize > end)
        end = header.e_phoff + (size_t)header.e_phnum * header.e_phentsize;
    for (size_t i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, bytes + header.e_shoff + i * sizeof section, sizeof section);
        if (section.sh_type != SHT_NULL && section.sh_type != SHT_NOBITS && section.sh_offset + section.sh_size > end)
            end = section.sh_offset + section.sh_size;
    }
    return end;
}

static bool runs_on(const void *code, const fake_cuda_gpu *gpu)
{
    Elf64_Ehdr header;

    memcpy(&header, code, sizeof header);
    const bool ours = header.e_flags >> 16 == 0, second = header.e_ident[EI_ABIVERSION] >= CUDA_ABI;
    const int  target = (int)(second ? header.e_flags >> 8 : header.e_flags) & 0xFF;
    if (ours && (header.e_flags & EXACT)) return target == 10 * gpu->major + gpu->minor;
    return target / 10 == gpu->major && target % 10 <= gpu->minor;
}

rssm_cuda_result fake_cuLibraryLoadData(struct CUlib_st **library, const void *code, unsigned *jit_options,
                                        void **jit_values, unsigned n_jit_options, unsigned *library_options,
                                        void **library_values, unsigned n_library_options)
{
    FAKE_CALL(cuLibraryLoadData);
    struct CUctx_st *context;
    const size_t     n = image_size(code);

    (void)jit_options, (void)jit_values, (void)library_options, (void)library_values;
    if (n_jit_options != 0 || n_library_options != 0) return RSSM_CUDA_ERROR_INVALID_VALUE;
    if (fake_unsafe() != RSSM_CUDA_SUCCESS) return RSSM_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (n == 0) return RSSM_CUDA_ERROR_INVALID_IMAGE;
    if (fake_current(&context) == RSSM_CUDA_SUCCESS && !runs_on(code, &fake.gpus[context->ordinal]))
        return RSSM_CUDA_ERROR_NO_BINARY_FOR_GPU;
    struct CUlib_st *loaded = fake_new(FAKE_LIBRARY, sizeof *loaded, NULL);
    loaded->bytes = malloc(n);
    if (loaded->bytes == NULL) abort();
    memcpy(loaded->bytes, code, n);
    loaded->n = n;
    *library = loaded;
    return RSSM_CUDA_SUCCESS;
}

rssm_cuda_result fake_cuLibraryUnload(struct CUlib_st *library)
{
    FAKE_RELEASE(cuLibraryUnload);
    if (!fake_is_live(library, FAKE_LIBRARY)) {
        fake_note("a library was unloaded that is not loaded");
        return RSSM_CUDA_ERROR_INVALID_HANDLE;
    }
    fake_drain_all();
    for (fake_object *o = fake.objects; o != NULL; o = o->next) {
        if (o->kind == FAKE_KERNEL && ((struct CUkern_st *)(void *)o)->library == library) o->dead = true;
        if (o->kind == FAKE_FUNCTION && ((struct CUfunc_st *)(void *)o)->kernel->library == library) o->dead = true;
    }
    library->object.dead = true;
    return guard.result;
}

rssm_cuda_result fake_cuLibraryGetKernel(struct CUkern_st **kernel, struct CUlib_st *library, const char *name)
{
    FAKE_CALL(cuLibraryGetKernel);
    char pattern[256] = "";

    if (!fake_is_live(library, FAKE_LIBRARY)) return RSSM_CUDA_ERROR_INVALID_HANDLE;
    snprintf(pattern + 1, sizeof pattern - 1, "%s", name);
    for (int i = 0; i < fake.n_kernels; i++) {
        if (strcmp(fake.kernels[i].entry, name) != 0) continue;
        if (memmem(library->bytes, library->n, pattern, strlen(name) + 2) == NULL) break;
        struct CUkern_st *found = fake_new(FAKE_KERNEL, sizeof *found, NULL);
        found->library = library;
        found->registered = &fake.kernels[i];
        *kernel = found;
        return RSSM_CUDA_SUCCESS;
    }
    return RSSM_CUDA_ERROR_NOT_FOUND;
}

rssm_cuda_result fake_cuKernelGetFunction(struct CUfunc_st **function, struct CUkern_st *kernel)
{
    FAKE_CALL(cuKernelGetFunction);
    struct CUctx_st       *context;
    const rssm_cuda_result result = fake_current(&context);

    if (result != RSSM_CUDA_SUCCESS) return result;
    if (!fake_is_live(kernel, FAKE_KERNEL)) return RSSM_CUDA_ERROR_INVALID_HANDLE;
    struct CUfunc_st *made = fake_new(FAKE_FUNCTION, sizeof *made, context);
    made->kernel = kernel;
    *function = made;
    return RSSM_CUDA_SUCCESS;
}

rssm_cuda_result fake_cuFuncLoad(struct CUfunc_st *function)
{
    FAKE_CALL(cuFuncLoad);
    if (!fake_is_live(function, FAKE_FUNCTION)) return RSSM_CUDA_ERROR_INVALID_HANDLE;
    function->resident = true;
    return RSSM_CUDA_SUCCESS;
}

rssm_cuda_result fake_cuFuncGetParamInfo(struct CUfunc_st *function, size_t index, size_t *offset, size_t *n_bytes)
{
    FAKE_CALL(cuFuncGetParamInfo);
    if (!fake_is_live(function, FAKE_FUNCTION)) return RSSM_CUDA_ERROR_INVALID_HANDLE;
    if (index > 0) return RSSM_CUDA_ERROR_INVALID_VALUE;
    *offset = 0;
    *n_bytes = function->kernel->registered->args_bytes;
    return RSSM_CUDA_SUCCESS;
}

static int threads_limit(const struct CUfunc_st *function)
{
    const int limit = function->kernel->registered->max_threads;
    return limit > 0 ? limit : 1024;
}

rssm_cuda_result fake_cuFuncGetAttribute(int *value, unsigned attribute, struct CUfunc_st *function)
{
    FAKE_CALL(cuFuncGetAttribute);
    if (!fake_is_live(function, FAKE_FUNCTION)) return RSSM_CUDA_ERROR_INVALID_HANDLE;
    const fake_cuda_kernel *k = function->kernel->registered;
    const struct {
        unsigned attribute;
        int      value;
    } known[] = {{RSSM_CUDA_FUNCTION_MAX_THREADS_PER_BLOCK, threads_limit(function)},
                 {RSSM_CUDA_FUNCTION_SHARED_SIZE_BYTES, k->static_shared_bytes},
                 {RSSM_CUDA_FUNCTION_LOCAL_SIZE_BYTES, k->local_bytes},
                 {RSSM_CUDA_FUNCTION_NUM_REGS, k->registers},
                 {RSSM_CUDA_FUNCTION_MAX_DYNAMIC_SHARED_SIZE_BYTES, function->dynamic_shared_bytes}};

    function->resident = true;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].attribute == attribute) {
            *value = known[i].value;
            return RSSM_CUDA_SUCCESS;
        }
    return RSSM_CUDA_ERROR_INVALID_VALUE;
}

rssm_cuda_result fake_cuFuncSetAttribute(struct CUfunc_st *function, unsigned attribute, int value)
{
    FAKE_CALL(cuFuncSetAttribute);
    if (!fake_is_live(function, FAKE_FUNCTION)) return RSSM_CUDA_ERROR_INVALID_HANDLE;
    const int limit = fake.gpus[function->object.context->ordinal].shared_optin;
    if (attribute != RSSM_CUDA_FUNCTION_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
        value > limit - function->kernel->registered->static_shared_bytes)
        return RSSM_CUDA_ERROR_INVALID_VALUE;
    function->dynamic_shared_bytes = value;
    return RSSM_CUDA_SUCCESS;
}

// --------------------------------------------------------------------------------------------------------- launches

static rssm_cuda_result check_launch(const rssm_cuda_launch_config *c, const struct CUfunc_st *function)
{
    const fake_cuda_kernel *k = function->kernel->registered;
    const int               used = k->static_shared_bytes + (int)c->sharedMemBytes;

    if (c->gridDimX == 0 || c->gridDimY == 0 || c->gridDimZ == 0 || c->gridDimX > INT32_MAX || c->gridDimY > 65535 ||
        c->gridDimZ > 65535 || c->blockDimX == 0 || c->blockDimY == 0 || c->blockDimZ == 0 || c->numAttrs != 0)
        return RSSM_CUDA_ERROR_INVALID_VALUE;
    if ((int)(c->blockDimX * c->blockDimY * c->blockDimZ) > threads_limit(function))
        return RSSM_CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (used > DEFAULT_SHARED_BYTES && (int)c->sharedMemBytes > function->dynamic_shared_bytes)
        return RSSM_CUDA_ERROR_INVALID_VALUE;
    return RSSM_CUDA_SUCCESS;
}

rssm_cuda_result fake_cuLaunchKernelEx(const rssm_cuda_launch_config *c, struct CUfunc_st *function, void **parameters,
                                       void **extra)
{
    FAKE_CALL(cuLaunchKernelEx);
    struct CUstream_st *stream;
    struct CUctx_st    *context;
    rssm_cuda_result    result;

    if (extra != NULL) return RSSM_CUDA_ERROR_INVALID_VALUE;
    if (fake.require_current && (result = fake_current(&context)) != RSSM_CUDA_SUCCESS) return result;
    if ((result = fake_stream(c->hStream, &stream)) != RSSM_CUDA_SUCCESS) return result;
    if (!fake_is_live(function, FAKE_FUNCTION)) {
        fake_note("a kernel was launched that is not loaded");
        return RSSM_CUDA_ERROR_INVALID_HANDLE;
    }
    if (function->object.context != stream->object.context) return RSSM_CUDA_ERROR_INVALID_HANDLE;
    if ((result = check_launch(c, function)) != RSSM_CUDA_SUCCESS) return result;
    if (stream->capturing && !function->resident) return RSSM_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    const size_t n = function->kernel->registered->args_bytes;
    fake_op     *op = calloc(1, sizeof *op);
    void        *args = malloc(n > 0 ? n : 1);
    if (op == NULL || args == NULL) abort();
    memcpy(args, parameters[0], n);
    *op = (fake_op){.function = function, .args = args};
    op->launch = (fake_cuda_launch){
        {c->gridDimX, c->gridDimY, c->gridDimZ}, {c->blockDimX, c->blockDimY, c->blockDimZ}, c->sharedMemBytes};
    fake_push(stream->capturing ? &stream->graph->nodes : &stream->pending, op);
    return RSSM_CUDA_SUCCESS;
}

void fake_run_launch(const fake_op *op)
{
    const fake_cuda_kernel *k = op->function->kernel->registered;

    if (op->function->object.dead) {
        fake_note("a launch of kernel %s ran after it was unloaded", k->entry);
        return;
    }
    fake.clock_ns += k->ns > 0 ? k->ns : 2000;
    if (k->run != NULL && fake.fault == RSSM_CUDA_SUCCESS) k->run(op->args, &op->launch, k->user);
}
