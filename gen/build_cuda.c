// Builds cubins with NVRTC, entirely in memory. See build.h.
#include <stdio.h>

#include "base/alloc.h"
#include "gen/build_parts.h"
#include "gen/compile_log.h"

void rssm_build_cuda_options(rssm_build_job *job)
{
    snprintf(job->arch_option, sizeof job->arch_option, "--gpu-architecture=%s", job->input->arch);
    rssm_build_add_option(job, job->arch_option);
    rssm_build_add_option(job, "--std=c++17");
    if (job->input->want_lines) rssm_build_add_option(job, "-lineinfo");
    if (job->input->want_resources) rssm_build_add_option(job, "--ptxas-options=-v");
}

rssm_status rssm_build_cuda(const rssm_build_job *job, const rssm_toolchain *toolchain, rssm_object *object,
                            rssm_str *log, rssm_diag *diag)
{
    const rssm_closure *closure = &job->closure;
    rssm_status         st;
    rssm_nvrtc_header  *headers = NULL;
    rssm_nvrtc_output   output = {0};
    rssm_nvrtc_input    input = {.name = job->manifest->source,
                                 .bytes = closure->files[0]->bytes,
                                 .n_headers = closure->n, // the included files and the rendered header
                                 .options = job->options,
                                 .n_options = job->n_options};
    rssm_log_resources  resources;

    RSSM_TRY(rssm_toolchain_check_arch(toolchain, job->input->arch, diag));
    headers = rssm_calloc(closure->n, sizeof *headers);
    if (!headers) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory to compile %s", input.name);
    headers[0] = (rssm_nvrtc_header){RSSM_CONFIG_HEADER, job->header.data};
    for (size_t i = 1; i < closure->n; ++i) {
        headers[i] = (rssm_nvrtc_header){closure->files[i]->name, closure->files[i]->bytes};
    }
    input.headers = headers;
    RSSM_TRY(rssm_nvrtc_compile(toolchain->nvrtc, &input, &output, log, diag));
    object->bytes = output.cubin;
    object->n = output.n;
    resources = rssm_log_find_resources(rssm_str_c(log), job->manifest->entry);
    object->registers = resources.registers;
    object->shared_bytes = resources.shared_bytes;
    object->spill_bytes = resources.spill_bytes;
done:
    rssm_free(headers);
    return st;
}
