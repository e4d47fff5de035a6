// Finds and identifies compilers. See toolchain.h.
#include "gen/toolchain.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/process.h"
#include "gen/build.h"
#include "gen/compile_log.h"
#include "gen/toolchain_parts.h"

enum { PROBE_TIMEOUT_MS = 20000 };

static const char *const clang_names[] = {"clang",    "clang-20", "clang-19", "clang-18",
                                          "clang-17", "clang-16", "clang-15", "clang-14"};

enum { KEY_TEXT = 1, KEY_CLANG_TARGET, KEY_LINKER, KEY_NVRTC_FILE };

// ------------------------------------------------------------------------------------------------------------- clang

// Runs a program that only prints. Fails with RSSM_E_NO_COMPILER where it does not exit with 0.
static rssm_status probe(const char *const *argv, rssm_str *output, rssm_diag *diag)
{
    rssm_status st;
    int         code;

    RSSM_TRY(rssm_process_run(argv, PROBE_TIMEOUT_MS, output, &code, diag));
    RSSM_TRY(rssm_str_check(output, diag));
    if (code != 0) {
        st = RSSM_FAIL(diag, RSSM_E_NO_COMPILER, "%s %s ended with code %d", argv[0], argv[1], code);
    }
done:
    return st;
}

static void append_line(rssm_str *out, const char *text)
{
    rssm_str_append(out, text, strcspn(text, "\r\n"));
}

// The version line of the linker that this clang runs. A clang that does not say runs an unnamed one.
static rssm_status find_linker(const char *clang, rssm_str *out_text, rssm_diag *diag)
{
    const char *const ask_clang[] = {clang, "-print-prog-name=ld", NULL};
    rssm_str          path = {0}, output = {0};
    const char       *ask_linker[] = {NULL, "--version", NULL};
    char             *program = NULL;
    rssm_status       st;

    RSSM_TRY(probe(ask_clang, &output, diag));
    append_line(&path, rssm_str_c(&output));
    RSSM_TRY(rssm_str_check(&path, diag));
    if (rssm_program_find(rssm_str_c(&path), &program, NULL) == RSSM_OK) {
        ask_linker[0] = program;
        rssm_str_clear(&output);
        RSSM_TRY(probe(ask_linker, &output, diag));
        append_line(out_text, rssm_str_c(&output));
    }
    st = rssm_str_check(out_text, diag);
done:
    rssm_free(program);
    rssm_str_free(&path);
    rssm_str_free(&output);
    return st;
}

static rssm_status identify_clang(rssm_toolchain *toolchain, rssm_diag *diag)
{
    const char *const argv[] = {toolchain->path, "--version", NULL};
    rssm_str          output = {0}, version = {0}, linker = {0};
    rssm_hasher       hasher;
    const char       *target;
    rssm_status       st;

    RSSM_TRY(probe(argv, &output, diag));
    append_line(&version, rssm_str_c(&output));
    RSSM_TRY(rssm_str_check(&version, diag));
    target = strstr(rssm_str_c(&output), "Target:");
    if (!strstr(rssm_str_c(&version), "clang") || !target) {
        st = RSSM_FAIL(diag, RSSM_E_NO_COMPILER, "%s is not clang: it calls itself \"%s\"", toolchain->path,
                       rssm_str_c(&version));
        goto done;
    }
    RSSM_TRY(find_linker(toolchain->path, &linker, diag));
    toolchain->text = rssm_strdup(version.data);
    if (!toolchain->text) {
        st = RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a compiler's version");
        goto done;
    }
    rssm_hasher_init(&hasher);
    rssm_hasher_text(&hasher, KEY_TEXT, version.data);
    rssm_hasher_field(&hasher, KEY_CLANG_TARGET, target, strcspn(target, "\r\n"));
    rssm_hasher_text(&hasher, KEY_LINKER, rssm_str_c(&linker));
    toolchain->key = rssm_hasher_end(&hasher);
done:
    rssm_str_free(&output);
    rssm_str_free(&version);
    rssm_str_free(&linker);
    return st;
}

static rssm_status open_clang(rssm_toolchain *toolchain, const rssm_toolchain_options *options, rssm_diag *diag)
{
    if (options->clang) {
        if (rssm_program_find(options->clang, &toolchain->path, NULL) != RSSM_OK) {
            return RSSM_FAIL(diag, RSSM_E_NO_COMPILER, "the compiler %s was not found; correct RSSM_CLANG",
                             options->clang);
        }
        return identify_clang(toolchain, diag);
    }
    for (size_t i = 0; i < sizeof clang_names / sizeof clang_names[0]; ++i) {
        if (rssm_program_find(clang_names[i], &toolchain->path, NULL) == RSSM_OK)
            return identify_clang(toolchain, diag);
    }
    return RSSM_FAIL(diag, RSSM_E_NO_COMPILER,
                     "clang was not found; install it (apt install clang) or name it in RSSM_CLANG");
}

// ------------------------------------------------------------------------------------------------------------- NVRTC

static rssm_status open_nvrtc(rssm_toolchain *toolchain, const rssm_toolchain_options *options, rssm_diag *diag)
{
    rssm_status st;
    rssm_hasher hasher;
    rssm_hash   file;

    RSSM_TRY(
        rssm_nvrtc_open(options->nvrtc, options->nvrtc_folders, options->n_nvrtc_folders, &toolchain->nvrtc, diag));
    toolchain->path = rssm_strdup(rssm_nvrtc_path(toolchain->nvrtc));
    toolchain->text = rssm_strdup(rssm_nvrtc_text(toolchain->nvrtc));
    if (!toolchain->path || !toolchain->text) {
        st = RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a compiler's version");
        goto done;
    }
    file = rssm_nvrtc_hash(toolchain->nvrtc);
    rssm_hasher_init(&hasher);
    rssm_hasher_text(&hasher, KEY_TEXT, toolchain->text);
    rssm_hasher_field(&hasher, KEY_NVRTC_FILE, file.bytes, sizeof file.bytes);
    toolchain->key = rssm_hasher_end(&hasher);
done:
    return st;
}

// --------------------------------------------------------------------------------------------------------- interface

rssm_status rssm_toolchain_open(rssm_backend backend, const rssm_toolchain_options *options,
                                rssm_toolchain **out_toolchain, rssm_diag *diag)
{
    static const rssm_toolchain_options defaults = {0};
    rssm_status                         st;
    rssm_toolchain                     *toolchain = rssm_calloc(1, sizeof *toolchain);

    if (!toolchain) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a toolchain");
    toolchain->backend = backend;
    if (!options) options = &defaults;
    RSSM_TRY(backend == RSSM_CUDA ? open_nvrtc(toolchain, options, diag) : open_clang(toolchain, options, diag));
    *out_toolchain = toolchain;
    toolchain = NULL;
done:
    rssm_toolchain_close(toolchain);
    return st;
}

void rssm_toolchain_close(rssm_toolchain *toolchain)
{
    if (!toolchain) return;
    rssm_nvrtc_close(toolchain->nvrtc);
    rssm_free(toolchain->path);
    rssm_free(toolchain->text);
    rssm_free(toolchain);
}

rssm_backend rssm_toolchain_backend(const rssm_toolchain *toolchain)
{
    return toolchain->backend;
}

const char *rssm_toolchain_path(const rssm_toolchain *toolchain)
{
    return toolchain->path;
}

const char *rssm_toolchain_text(const rssm_toolchain *toolchain)
{
    return toolchain->text;
}

rssm_hash rssm_toolchain_key(const rssm_toolchain *toolchain)
{
    return toolchain->key;
}

rssm_status rssm_arch_check_text(rssm_backend backend, const char *arch, rssm_diag *diag)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-";
    const size_t      n = strlen(arch);

    if (n == 0 || n > 63 || strspn(arch, allowed) != n || arch[0] == '-') {
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "\"%s\" is not the name of an architecture", arch);
    }
    if (strcmp(arch, "native") == 0) {
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT,
                         "\"native\" means something else on every machine; name the architecture");
    }
    if (backend == RSSM_CUDA && rssm_arch_number(arch) == 0) {
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "\"%s\" is not a CUDA architecture such as sm_90a", arch);
    }
    return RSSM_OK;
}

static rssm_status check_clang_arch(const rssm_toolchain *toolchain, const char *arch, rssm_diag *diag)
{
    rssm_str    option = {0}, output = {0}, first = {0};
    rssm_status st;
    int         code;
    const char *argv[] = {toolchain->path, NULL, "-fsyntax-only", "-x", "c", "/dev/null", NULL};

    rssm_str_printf(&option, "-march=%s", arch);
    RSSM_TRY(rssm_str_check(&option, diag));
    argv[1] = option.data;
    RSSM_TRY(rssm_process_run(argv, PROBE_TIMEOUT_MS, &output, &code, diag));
    if (code != 0) {
        rssm_log_first_error(rssm_str_c(&output), &first);
        st = RSSM_FAIL(diag, RSSM_E_UNSUPPORTED, "%s does not compile for %s: %s", toolchain->text, arch,
                       rssm_str_c(&first));
    }
done:
    rssm_str_free(&option);
    rssm_str_free(&output);
    rssm_str_free(&first);
    return st;
}

rssm_status rssm_toolchain_check_arch(const rssm_toolchain *toolchain, const char *arch, rssm_diag *diag)
{
    rssm_status st;

    RSSM_TRY(rssm_arch_check_text(toolchain->backend, arch, diag));
    if (toolchain->backend == RSSM_CPU) return check_clang_arch(toolchain, arch, diag);
    if (!rssm_nvrtc_knows(toolchain->nvrtc, rssm_arch_number(arch))) {
        st =
            RSSM_FAIL(diag, RSSM_E_UNSUPPORTED, "%s does not compile for %s; a newer NVRTC may", toolchain->text, arch);
    }
done:
    return st;
}
