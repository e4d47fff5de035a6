// Compiles a template as host C++ with the twins of prims/ before the real ones, and loads it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "tests/simt/machine.h"

#ifndef RSSM_SOURCE_DIR
#error "RSSM_SOURCE_DIR: where the twins are"
#endif

enum { COMPILE_MS = 300000, ARGUMENTS_MAX = 64 };

struct simt_kernel {
    char  folder[64], object[96], root[256];
    void *handle;
    void (*entry)(const void *args);
    unsigned char       *statics, *statics_end;
    const unsigned char *image, *image_end;
    size_t               args_bytes;
};

const char *simt_kernel_object(const simt_kernel *kernel)
{
    return kernel->object;
}

const char *simt_kernel_root(const simt_kernel *kernel)
{
    return kernel->root;
}

size_t simt_kernel_args_bytes(const simt_kernel *kernel)
{
    return kernel->args_bytes;
}

void (*simt_kernel_entry(const simt_kernel *kernel))(const void *args)
{
    return kernel->entry;
}

void simt_kernel_image(const simt_kernel *kernel, const unsigned char **out_from, const unsigned char **out_to)
{
    *out_from = kernel->image;
    *out_to = kernel->image_end;
}

void simt_kernel_statics(const simt_kernel *kernel, unsigned char **out_from, size_t *out_bytes)
{
    *out_from = kernel->statics;
    *out_bytes = (size_t)(kernel->statics_end - kernel->statics);
}

static rssm_status write_file(const char *folder, const char *name, const char *text, rssm_diag *diag)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!file) return RSSM_FAIL(diag, RSSM_E_IO, "%s cannot be written", path);
    const bool wrote = fputs(text, file) >= 0;
    if (fclose(file) != 0 || !wrote) return RSSM_FAIL(diag, RSSM_E_IO, "%s could not be written", path);
    return RSSM_OK;
}

// One function that takes the argument struct by address and calls the kernel with it by value.
static rssm_status write_sources(const simt_kernel *k, const simt_compile_options *o, rssm_diag *diag)
{
    rssm_str    text = {0};
    rssm_status st;
    rssm_str_printf(&text,
                    "#include \"%s\"\n"
                    "extern \"C\" __attribute__((visibility(\"default\"))) void simt_entry(const void *args)\n"
                    "{\n    %s(*(const %s *)args);\n}\n"
                    "extern \"C\" __attribute__((visibility(\"default\"))) unsigned long simt_args_bytes()\n"
                    "{\n    return sizeof(%s);\n}\n",
                    o->source, o->entry, o->args, o->args);
    st = rssm_str_check(&text, diag);
    if (st == RSSM_OK) st = write_file(k->folder, "entry.cpp", text.data, diag);
    if (st == RSSM_OK) st = write_file(k->folder, "rssm_config.h", o->config ? o->config : "", diag);
    rssm_str_free(&text);
    return st;
}

static void first_error(const rssm_str *log, char *out, size_t n)
{
    const char *error = log->data ? strstr(log->data, "error:") : NULL;
    if (!error) error = log->data ? log->data : "no output";
    while (log->data && error > log->data && error[-1] != '\n')
        error--;
    snprintf(out, n, "%.*s", (int)strcspn(error, "\n"), error);
}

static rssm_status compile(const simt_kernel *k, const simt_compile_options *o, rssm_diag *diag)
{
    char        source[128], include_folder[80], include_root[280], line[400], flags[256];
    rssm_str    log = {0};
    rssm_status st;
    int         code = 0;
    size_t      n = 0;
    const char *argv[ARGUMENTS_MAX] = {NULL};
    const char *fixed[] = {o->clang, "-x", "c++", "-std=c++17", "-O1", "-gline-tables-only", "-gdwarf-4", "-shared",
                           "-fPIC", "-fno-exceptions", "-fno-rtti", "-fno-optimize-sibling-calls", "-ffp-contract=off",
                           "-fvisibility=hidden", "-fsanitize=address,undefined",
                           "-fno-sanitize=vptr,function,object-size,pointer-overflow,null", "-fno-sanitize-recover=all",
                           "-fsanitize-address-use-after-return=never",
                           "-fsanitize-coverage=func,trace-pc,trace-loads,trace-stores",
                           "-Wl,--wrap=__asan_memcpy,--wrap=__asan_memmove,--wrap=__asan_memset",
                           "-Wl,--wrap=__ubsan_handle_type_mismatch_v1_abort", "-Wall", "-Werror",
                           "-Wno-unused-function", "-Wno-unknown-pragmas", "-Wno-pass-failed",
                           // Unrolled bodies take longer to compile than to run.
                           "-mllvm", "-pragma-unroll-threshold=1", "-include", RSSM_SOURCE_DIR "/tests/simt/language.h",
                           "-I" RSSM_SOURCE_DIR "/tests/simt", "-I" RSSM_SOURCE_DIR};

    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        argv[n++] = fixed[i];
    snprintf(source, sizeof source, "%s/entry.cpp", k->folder);
    snprintf(include_folder, sizeof include_folder, "-I%s", k->folder);
    snprintf(include_root, sizeof include_root, "-I%s", k->root);
    argv[n++] = include_folder;
    argv[n++] = include_root;
    snprintf(flags, sizeof flags, "%s", o->flags ? o->flags : "");
    for (char *save = NULL, *d = strtok_r(flags, " ", &save); d && n < ARGUMENTS_MAX - 4;
         d = strtok_r(NULL, " ", &save))
        argv[n++] = d;
    argv[n++] = "-o";
    argv[n++] = k->object;
    argv[n++] = source;
    RSSM_TRY(rssm_process_run(argv, COMPILE_MS, &log, &code, diag));
    if (code != 0) {
        first_error(&log, line, sizeof line);
        st = RSSM_FAIL(diag, RSSM_E_COMPILE, "%s does not compile for the emulator: %s", o->source, line);
    }
done:
    rssm_str_free(&log);
    return st;
}

static int find_image(struct dl_phdr_info *info, size_t size, void *data)
{
    simt_kernel *k = data;
    (void)size;
    if (!info->dlpi_name || strcmp(info->dlpi_name, k->object) != 0) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
        const unsigned char *from = (const unsigned char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        const unsigned char *to = from + info->dlpi_phdr[i].p_memsz;
        if (!k->image || from < k->image) k->image = from;
        if (to > k->image_end) k->image_end = to;
    }
    return 1;
}

static rssm_status load(simt_kernel *k, rssm_diag *diag)
{
    k->handle = dlopen(k->object, RTLD_NOW | RTLD_LOCAL);
    if (!k->handle) return RSSM_FAIL(diag, RSSM_E_COMPILE, "the compiled template cannot be loaded: %s", dlerror());
    void *entry = dlsym(k->handle, "simt_entry"), *statics = dlsym(k->handle, "simt_statics");
    void *args = dlsym(k->handle, "simt_args_bytes"), *(*ends)(int) = NULL;
    unsigned long (*args_bytes)(void) = NULL;
    memcpy(&k->entry, &entry, sizeof entry);
    memcpy(&ends, &statics, sizeof statics);
    memcpy(&args_bytes, &args, sizeof args);
    if (!entry || !ends || !args_bytes) return RSSM_FAIL(diag, RSSM_E_COMPILE, "the compiled template has no entry");
    k->statics = ends(0);
    k->statics_end = ends(1);
    k->args_bytes = args_bytes();
    if (k->statics_end - k->statics > STATIC_BYTES)
        return RSSM_FAIL(diag, RSSM_E_UNSUPPORTED, "the static shared memory is larger than any device's");
    dl_iterate_phdr(find_image, k);
    simt_sites_forget();
    return RSSM_OK;
}

rssm_status simt_kernel_load(const simt_compile_options *options, simt_kernel **out_kernel, rssm_diag *diag)
{
    simt_kernel *k = calloc(1, sizeof *k);
    rssm_status  st = RSSM_OK;

    if (!k) abort();
    if (!options->clang || access(options->clang, X_OK) != 0) {
        st = RSSM_FAIL(diag, RSSM_E_NO_COMPILER, "clang++ was not found at \"%s\"; install clang or set SIMT_CLANG",
                       options->clang ? options->clang : "");
        goto done;
    }
    snprintf(k->folder, sizeof k->folder, "/tmp/rssm-simt-XXXXXX");
    if (!mkdtemp(k->folder)) {
        st = RSSM_FAIL(diag, RSSM_E_IO, "no folder can be made in /tmp");
        goto done;
    }
    snprintf(k->object, sizeof k->object, "%s/template.so", k->folder);
    snprintf(k->root, sizeof k->root, "%s", options->template_root);
    RSSM_TRY(write_sources(k, options, diag));
    RSSM_TRY(compile(k, options, diag));
    RSSM_TRY(load(k, diag));
    *out_kernel = k;
    k = NULL;
done:
    simt_kernel_unload(k);
    return st;
}

void simt_kernel_unload(simt_kernel *k)
{
    if (!k) return;
    if (k->handle) dlclose(k->handle);
    static const char *const names[] = {"entry.cpp", "rssm_config.h", "template.so"};
    for (size_t i = 0; i < 3 && k->folder[0]; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", k->folder, names[i]);
        unlink(path);
    }
    if (k->folder[0]) rmdir(k->folder);
    free(k);
}
