// Compiling with NVRTC. See nvrtc.h.
#include "gen/nvrtc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "gen/compile_log.h"
#include "gen/nvrtc_library.h"

// --------------------------------------------------------------------------------------------------------- identity

// NVRTC tells major and minor only; its build number is a macro, which a message makes it say.
#define BUILD_MARK "rssm-nvrtc-build="
static const char build_probe[] = "#define TEXT_(x) #x\n"
                                  "#define TEXT(x) TEXT_(x)\n"
                                  "#pragma message(\"" BUILD_MARK "\" TEXT(__CUDACC_VER_BUILD__))\n";

static rssm_status find_archs(rssm_nvrtc *nvrtc, rssm_diag *diag)
{
    int n = 0;

    if (nvrtc->nvrtcGetNumSupportedArchs(&n) != 0 || n < 1 || n > RSSM_NVRTC_ARCHS_MAX ||
        nvrtc->nvrtcGetSupportedArchs(nvrtc->archs) != 0) {
        return RSSM_FAIL(diag, RSSM_E_NO_COMPILER, "%s does not say which architectures it compiles for", nvrtc->path);
    }
    nvrtc->n_archs = n;
    return RSSM_OK;
}

static rssm_status find_build(rssm_nvrtc *nvrtc, rssm_diag *diag)
{
    char              option[48];
    const char *const options[] = {option};
    rssm_nvrtc_input  input = {"build.cu", build_probe, NULL, 0, options, 1};
    rssm_nvrtc_output output = {0};
    rssm_str          log = {0};
    const char       *found;
    rssm_status       st;

    snprintf(option, sizeof option, "--gpu-architecture=sm_%d", nvrtc->archs[nvrtc->n_archs - 1]);
    RSSM_TRY(rssm_nvrtc_compile(nvrtc, &input, &output, &log, diag));
    found = strstr(rssm_str_c(&log), BUILD_MARK);
    nvrtc->build = found ? atoi(found + strlen(BUILD_MARK)) : 0;
done:
    rssm_free(output.cubin);
    rssm_str_free(&log);
    return st;
}

// The library and the one beside it that holds its built-in headers.
static rssm_status find_hash(rssm_nvrtc *nvrtc, rssm_diag *diag)
{
    rssm_status st;
    rssm_str    builtins = {0};
    rssm_hasher hasher;
    rssm_hash   hash;
    const char *slash = strrchr(nvrtc->path, '/');

    rssm_hasher_init(&hasher);
    RSSM_TRY(rssm_nvrtc_hash_file(nvrtc->path, &hash, diag));
    rssm_hasher_field(&hasher, 1, hash.bytes, sizeof hash.bytes);
    rssm_str_append(&builtins, nvrtc->path, slash ? (size_t)(slash - nvrtc->path) + 1 : 0);
    rssm_str_printf(&builtins, "libnvrtc-builtins.so.%d.%d", nvrtc->major, nvrtc->minor);
    RSSM_TRY(rssm_str_check(&builtins, diag));
    if (rssm_nvrtc_hash_file(builtins.data, &hash, NULL) == RSSM_OK) { // linked in by some distributions
        rssm_hasher_field(&hasher, 2, hash.bytes, sizeof hash.bytes);
    }
    nvrtc->hash = rssm_hasher_end(&hasher);
done:
    rssm_str_free(&builtins);
    return st;
}

rssm_status rssm_nvrtc_open(const char *path, const char *const *folders, size_t n_folders, rssm_nvrtc **out_nvrtc,
                            rssm_diag *diag)
{
    rssm_status st;
    rssm_nvrtc *nvrtc = rssm_calloc(1, sizeof *nvrtc);

    if (!nvrtc) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for NVRTC");
    RSSM_TRY(rssm_nvrtc_load(path, folders, n_folders, nvrtc, diag));
    RSSM_TRY(find_archs(nvrtc, diag));
    RSSM_TRY(find_build(nvrtc, diag));
    RSSM_TRY(find_hash(nvrtc, diag));
    snprintf(nvrtc->text, sizeof nvrtc->text, "NVRTC %d.%d.%d", nvrtc->major, nvrtc->minor, nvrtc->build);
    *out_nvrtc = nvrtc;
    nvrtc = NULL;
done:
    rssm_nvrtc_close(nvrtc);
    return st;
}

void rssm_nvrtc_close(rssm_nvrtc *nvrtc)
{
    if (!nvrtc) return;
    rssm_free(nvrtc->path);
    rssm_free(nvrtc);
}

const char *rssm_nvrtc_path(const rssm_nvrtc *nvrtc)
{
    return nvrtc->path;
}

const char *rssm_nvrtc_text(const rssm_nvrtc *nvrtc)
{
    return nvrtc->text;
}

rssm_hash rssm_nvrtc_hash(const rssm_nvrtc *nvrtc)
{
    return nvrtc->hash;
}

bool rssm_nvrtc_knows(const rssm_nvrtc *nvrtc, uint32_t arch)
{
    for (int i = 0; i < nvrtc->n_archs; ++i) {
        if ((uint32_t)nvrtc->archs[i] * 10 == arch) return true;
    }
    return false;
}

// -------------------------------------------------------------------------------------------------------- compiling

static rssm_status fail_nvrtc(const rssm_nvrtc *nvrtc, const char *what, rssm_nvrtc_result result, rssm_diag *diag)
{
    return RSSM_FAIL(diag, RSSM_E_COMPILE, "%s failed in %s: %s", what, nvrtc->text,
                     nvrtc->nvrtcGetErrorString(result));
}

static rssm_status create_program(const rssm_nvrtc *nvrtc, const rssm_nvrtc_input *input, void **out_program,
                                  rssm_diag *diag)
{
    const size_t      n = input->n_headers;
    const char      **lists = rssm_calloc(2 * n + 1, sizeof *lists); // texts, then names
    rssm_nvrtc_result result;
    rssm_status       st = RSSM_OK;

    if (!lists) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory to compile %s", input->name);
    for (size_t i = 0; i < n; ++i) {
        lists[i] = input->headers[i].bytes;
        lists[n + i] = input->headers[i].name;
    }
    result = nvrtc->nvrtcCreateProgram(out_program, input->bytes, input->name, (int)n, lists, lists + n);
    if (result != 0) st = fail_nvrtc(nvrtc, "nvrtcCreateProgram", result, diag);
    rssm_free(lists);
    return st;
}

static rssm_status read_log(const rssm_nvrtc *nvrtc, void *program, rssm_str *log, rssm_diag *diag)
{
    size_t      n = 0;
    char       *text;
    rssm_status st = RSSM_OK;

    if (nvrtc->nvrtcGetProgramLogSize(program, &n) != 0 || n <= 1) return RSSM_OK; // the size counts the NUL
    text = rssm_calloc(1, n + 1);
    if (!text) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a compiler log of %zu bytes", n);
    if (nvrtc->nvrtcGetProgramLog(program, text) == 0) rssm_str_puts(log, text);
    st = rssm_str_check(log, diag);
    rssm_free(text);
    return st;
}

static rssm_status read_cubin(const rssm_nvrtc *nvrtc, void *program, rssm_nvrtc_output *out_output, rssm_diag *diag)
{
    rssm_nvrtc_result result;
    rssm_nvrtc_output output = {0};
    rssm_status       st = RSSM_OK;

    result = nvrtc->nvrtcGetCUBINSize(program, &output.n);
    if (result == 0 && output.n == 0) {
        return RSSM_FAIL(diag, RSSM_E_COMPILE, "no cubin came out: --gpu-architecture must name sm_XX");
    }
    if (result != 0) return fail_nvrtc(nvrtc, "nvrtcGetCUBINSize", result, diag);
    output.cubin = rssm_alloc(output.n);
    if (!output.cubin) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a cubin of %zu bytes", output.n);
    result = nvrtc->nvrtcGetCUBIN(program, (char *)output.cubin);
    if (result != 0) {
        st = fail_nvrtc(nvrtc, "nvrtcGetCUBIN", result, diag);
        rssm_free(output.cubin);
        return st;
    }
    *out_output = output;
    return RSSM_OK;
}

static rssm_status fail_compile(const rssm_nvrtc *nvrtc, const rssm_nvrtc_input *input, rssm_nvrtc_result result,
                                const char *log, rssm_diag *diag)
{
    rssm_str    first = {0};
    rssm_status st;

    if (*log) rssm_log_first_error(log, &first);
    st = RSSM_FAIL(diag, RSSM_E_COMPILE, "%s does not compile: %s", input->name,
                   *log ? rssm_str_c(&first) : nvrtc->nvrtcGetErrorString(result));
    rssm_str_free(&first);
    return st;
}

rssm_status rssm_nvrtc_compile(const rssm_nvrtc *nvrtc, const rssm_nvrtc_input *input, rssm_nvrtc_output *out_output,
                               rssm_str *log, rssm_diag *diag)
{
    rssm_status       st;
    rssm_nvrtc_result result;
    void             *program = NULL;
    const size_t      log_start = log->length;

    RSSM_TRY(create_program(nvrtc, input, &program, diag));
    result = nvrtc->nvrtcCompileProgram(program, (int)input->n_options, input->options);
    RSSM_TRY(read_log(nvrtc, program, log, diag));
    if (result != 0) {
        st = fail_compile(nvrtc, input, result, rssm_str_c(log) + log_start, diag);
        goto done;
    }
    st = read_cubin(nvrtc, program, out_output, diag);
done:
    if (program) nvrtc->nvrtcDestroyProgram(&program);
    return st;
}
