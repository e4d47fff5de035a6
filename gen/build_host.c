// Builds host objects with clang in a private temporary folder that holds nothing but the closure and the rendered
// header, under their template names, so that messages cite those names and no other file can be included by accident.
//
// The object is freestanding: it links no library and exports its entry alone. The folder's name reaches neither the
// key nor the bytes (-ffile-prefix-map, no symbol table, no build id).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/process.h"
#include "gen/build_parts.h"
#include "gen/compile_log.h"
#include "gen/host_object.h"

enum { OBJECT_BYTES_MAX = 64 * 1024 * 1024 };

// Nothing here may depend on the machine or the time. -ffast-math stays out: NaN and infinity must behave.
static const char *const fixed_options[] = {
    "-std=gnu11",
    "-O3",
    "-fPIC",
    "-shared",
    "-fno-semantic-interposition",
    "-ffp-contract=fast",
    "-fno-math-errno",
#if defined(__x86_64__)
    "-mprefer-vector-width=512", // a template's own 64-byte vectors are one register where the machine has such
#endif
    "-fno-ident",
    "-fno-stack-protector",
    "-U_FORTIFY_SOURCE",
    "-g0",
    "-nostdlib",
    "-Wl,-s",
    "-Wl,-z,now",
    "-Wl,-z,noexecstack",
    "-Wl,--build-id=none",
};

void rssm_build_host_options(rssm_build_job *job)
{
    snprintf(job->arch_option, sizeof job->arch_option, "-march=%s", job->input->arch);
    rssm_build_add_option(job, job->arch_option);
    for (size_t i = 0; i < sizeof fixed_options / sizeof fixed_options[0]; ++i) {
        rssm_build_add_option(job, fixed_options[i]);
    }
}

// --------------------------------------------------------------------------------------------------------- the folder

// Not rssm_file_write: these files need neither syncing nor renaming.
static rssm_status write_file(const char *folder, const char *name, const char *bytes, size_t n, rssm_diag *diag)
{
    rssm_status st = RSSM_OK;
    rssm_str    path = {0};
    char       *slash;
    int         file = -1;

    rssm_str_printf(&path, "%s/%s", folder, name);
    RSSM_TRY(rssm_str_check(&path, diag));
    slash = strrchr(path.data, '/');
    *slash = '\0';
    RSSM_TRY(rssm_folder_make(path.data, diag));
    *slash = '/';
    file = open(path.data, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) {
        st = RSSM_FAIL(diag, RSSM_E_IO, "%s cannot be created: %s", path.data, strerror(errno));
        goto done;
    }
    while (n > 0) {
        const ssize_t written = write(file, bytes, n);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            st = RSSM_FAIL(diag, RSSM_E_IO, "%s cannot be written: %s", path.data, strerror(errno));
            goto done;
        }
        bytes += written;
        n -= (size_t)written;
    }
done:
    if (file >= 0) close(file);
    rssm_str_free(&path);
    return st;
}

static rssm_status write_folder(const rssm_build_job *job, const char *folder, rssm_diag *diag)
{
    rssm_status st;
    rssm_str    exports = {0};

    for (size_t i = 0; i < job->closure.n; ++i) {
        const rssm_template_file *file = job->closure.files[i];
        RSSM_TRY(write_file(folder, file->name, file->bytes, file->n, diag));
    }
    RSSM_TRY(write_file(folder, RSSM_CONFIG_HEADER, job->header.data, job->header.length, diag));
    rssm_str_printf(&exports, "{ global: %s; local: *; };\n", job->manifest->entry);
    RSSM_TRY(rssm_str_check(&exports, diag));
    st = write_file(folder, "exports.map", exports.data, exports.length, diag);
done:
    rssm_str_free(&exports);
    return st;
}

// ---------------------------------------------------------------------------------------------------------- compiling

static rssm_status fail_compile(const rssm_build_job *job, const char *log, rssm_diag *diag)
{
    rssm_str    first = {0};
    rssm_status st;

    rssm_log_first_error(log, &first);
    st = RSSM_FAIL(diag, RSSM_E_COMPILE, "%s does not compile for %s: %s", job->manifest->name, job->input->arch,
                   rssm_str_c(&first));
    rssm_str_free(&first);
    return st;
}

// Runs clang in `folder`, which ends with a slash; leaves object.so there.
static rssm_status run_clang(const rssm_build_job *job, const char *clang, const char *folder, rssm_str *log,
                             rssm_diag *diag)
{
    enum { N_FOLDER_ARGS = 6 };
    rssm_status st;
    rssm_arena  arena = {0};
    rssm_str    output = {0};
    const char *argv[RSSM_BUILD_OPTIONS_MAX + N_FOLDER_ARGS + 2] = {clang};
    size_t      n = 1;
    int         code;

    for (size_t i = 0; i < job->n_options; ++i)
        argv[n++] = job->options[i];
    argv[n++] = rssm_arena_printf(&arena, "-I%s", folder);
    argv[n++] = rssm_arena_printf(&arena, "-ffile-prefix-map=%s=", folder);
    argv[n++] = rssm_arena_printf(&arena, "-Wl,--version-script=%sexports.map", folder);
    argv[n++] = "-o";
    argv[n++] = rssm_arena_printf(&arena, "%sobject.so", folder);
    argv[n++] = rssm_arena_printf(&arena, "%s%s", folder, job->manifest->source);
    for (size_t i = 0; i < n; ++i) {
        if (argv[i]) continue;
        st = RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory to compile %s", job->manifest->name);
        goto done;
    }
    st = rssm_process_run(argv, RSSM_COMPILE_TIMEOUT_MS, &output, &code, diag);
    rssm_log_replace(rssm_str_c(&output), folder, "", log);
    if (st == RSSM_OK && code != 0) st = fail_compile(job, rssm_str_c(log), diag);
done:
    rssm_arena_free(&arena);
    rssm_str_free(&output);
    return st;
}

rssm_status rssm_build_host(const rssm_build_job *job, const rssm_toolchain *toolchain, rssm_object *object,
                            rssm_str *log, rssm_diag *diag)
{
    rssm_status st;
    char       *folder = NULL, *bytes = NULL;
    rssm_str    prefix = {0};

    RSSM_TRY(rssm_folder_temporary("replayssm-build", &folder, diag));
    RSSM_TRY(write_folder(job, folder, diag));
    rssm_str_printf(&prefix, "%s/", folder);
    RSSM_TRY(rssm_str_check(&prefix, diag));
    RSSM_TRY(run_clang(job, toolchain->path, prefix.data, log, diag));
    rssm_str_puts(&prefix, "object.so");
    RSSM_TRY(rssm_str_check(&prefix, diag));
    RSSM_TRY(rssm_file_read(prefix.data, OBJECT_BYTES_MAX, &bytes, &object->n, diag));
    object->bytes = (uint8_t *)bytes;
    st = rssm_host_object_check(object->bytes, object->n, job->manifest->entry, diag);
    if (st != RSSM_OK) rssm_diag_prefix(diag, "%s", job->manifest->name);
done:
    if (folder) rssm_folder_remove(folder);
    rssm_free(folder);
    rssm_str_free(&prefix);
    return st;
}
