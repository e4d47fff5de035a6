// Keys and the course of a build. See build.h.
#include "gen/build.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "gen/build_parts.h"
#include "gen/render.h"

// Field numbers of the hashes. A change of meaning needs a new KEY_FORMAT.
enum { KEY_FORMAT = 1 };
enum { SOURCE_FILE_NAME = 1, SOURCE_FILE_BYTES, SOURCE_HEADER };
enum { LAYOUT_FILE_NAME = 1, LAYOUT_FILE_BYTES };
enum {
    BUILD_FORMAT = 1,
    BUILD_SOURCE,
    BUILD_TEMPLATE,
    BUILD_VERSION,
    BUILD_ENTRY,
    BUILD_OPTION,
    BUILD_ARCH,
    BUILD_COMPILER,
    BUILD_KIND
};

uint32_t rssm_arch_number(const char *arch)
{
    char         *end;
    unsigned long number;

    if (strncmp(arch, "sm_", 3) != 0 || arch[3] < '1' || arch[3] > '9') return 0;
    number = strtoul(arch + 3, &end, 10);
    if (number < 10 || number > 999) return 0;
    if (*end == 'a' || *end == 'f') ++end;
    return *end ? 0 : (uint32_t)number * 10;
}

void rssm_build_add_option(rssm_build_job *job, const char *option)
{
    assert(job->n_options < RSSM_BUILD_OPTIONS_MAX);
    job->options[job->n_options++] = option;
}

// ------------------------------------------------------------------------------------------------------------- hashes

static void hash_file(rssm_hasher *hasher, uint32_t name_id, uint32_t bytes_id, const rssm_template_file *file)
{
    rssm_hasher_text(hasher, name_id, file->name);
    rssm_hasher_field(hasher, bytes_id, file->bytes, file->n);
}

static rssm_hash hash_source(const rssm_build_job *job)
{
    rssm_hasher hasher;

    rssm_hasher_init(&hasher);
    for (size_t i = 0; i < job->closure.n; ++i) {
        hash_file(&hasher, SOURCE_FILE_NAME, SOURCE_FILE_BYTES, job->closure.files[i]);
    }
    rssm_hasher_field(&hasher, SOURCE_HEADER, job->header.data, job->header.length);
    return rssm_hasher_end(&hasher);
}

static rssm_hash hash_layout(const rssm_closure *closure)
{
    rssm_hasher hasher;

    rssm_hasher_init(&hasher);
    for (size_t i = 0; i < closure->n; ++i) {
        const rssm_template_file *file = closure->files[i];
        if (strncmp(file->name, "abi/", 4) == 0) hash_file(&hasher, LAYOUT_FILE_NAME, LAYOUT_FILE_BYTES, file);
    }
    return rssm_hasher_end(&hasher);
}

static rssm_hash hash_build(const rssm_build_job *job, const rssm_toolchain *toolchain)
{
    rssm_hasher     hasher;
    const rssm_hash compiler = rssm_toolchain_key(toolchain);

    rssm_hasher_init(&hasher);
    rssm_hasher_u64(&hasher, BUILD_FORMAT, KEY_FORMAT);
    rssm_hasher_field(&hasher, BUILD_SOURCE, job->identity.source_hash.bytes, sizeof job->identity.source_hash.bytes);
    rssm_hasher_text(&hasher, BUILD_TEMPLATE, job->manifest->name);
    rssm_hasher_u64(&hasher, BUILD_VERSION, job->manifest->version);
    rssm_hasher_text(&hasher, BUILD_ENTRY, job->manifest->entry);
    for (size_t i = 0; i < job->n_options; ++i)
        rssm_hasher_text(&hasher, BUILD_OPTION, job->options[i]);
    rssm_hasher_text(&hasher, BUILD_ARCH, job->input->arch);
    rssm_hasher_field(&hasher, BUILD_COMPILER, compiler.bytes, sizeof compiler.bytes);
    rssm_hasher_u64(&hasher, BUILD_KIND, job->input->backend == RSSM_CUDA ? RSSM_OBJECT_CUBIN : RSSM_OBJECT_HOST);
    return rssm_hasher_end(&hasher);
}

// -------------------------------------------------------------------------------------------------------------- a job

static rssm_status check_target(const rssm_build_input *input, const rssm_toolchain *toolchain, rssm_diag *diag)
{
    const rssm_manifest *m = input->config->manifest;

    if (m->backend != input->backend) {
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "%s is a %s template; it cannot be built for %s", m->name,
                         rssm_backend_name(m->backend), input->arch);
    }
    if (toolchain && rssm_toolchain_backend(toolchain) != input->backend) {
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "%s does not compile %s templates",
                         rssm_toolchain_text(toolchain), rssm_backend_name(input->backend));
    }
    return rssm_arch_check_text(input->backend, input->arch, diag);
}

static void free_job(rssm_build_job *job)
{
    rssm_closure_free(&job->closure);
    rssm_str_free(&job->header);
}

// Fills a zeroed job; free_job in any case.
static rssm_status prepare_job(const rssm_build_input *input, const rssm_toolchain *toolchain, rssm_build_job *job,
                               rssm_diag *diag)
{
    rssm_status       st;
    rssm_render_input render = {.config = input->config, .problem = input->problem, .facts = input->facts};

    job->input = input;
    job->manifest = input->config->manifest;
    render.arch = input->backend == RSSM_CUDA ? rssm_arch_number(input->arch) : 0;
    RSSM_TRY(check_target(input, toolchain, diag));
    RSSM_TRY(rssm_closure_scan(input->set, job->manifest->source, &job->closure, diag));
    RSSM_TRY(rssm_render_config(&render, &job->header, diag));
    if (input->backend == RSSM_CUDA) {
        rssm_build_cuda_options(job);
    } else {
        rssm_build_host_options(job);
    }
    job->identity.source_hash = hash_source(job);
    job->identity.layout_hash = hash_layout(&job->closure);
    if (toolchain) job->identity.build_key = hash_build(job, toolchain);
done:
    return st;
}

rssm_status rssm_build_identify(const rssm_build_input *input, const rssm_toolchain *toolchain,
                                rssm_build_identity *out_identity, rssm_diag *diag)
{
    rssm_status    st;
    rssm_build_job job = {0};

    RSSM_TRY(prepare_job(input, toolchain, &job, diag));
    *out_identity = job.identity;
done:
    free_job(&job);
    return st;
}

static rssm_status check_config(const rssm_build_input *input, rssm_diag *diag)
{
    rssm_facts facts = {0};

    if (input->facts) return rssm_config_check(input->config, input->facts, diag);
    if (!input->problem) return RSSM_OK; // generic: nothing to check against
    rssm_facts_add_problem(&facts, input->problem);
    return rssm_config_check(input->config, &facts, diag);
}

rssm_status rssm_build(const rssm_build_input *input, const rssm_toolchain *toolchain, rssm_object *out_object,
                       rssm_str *out_log, rssm_diag *diag)
{
    rssm_status    st;
    rssm_build_job job = {0};
    rssm_object    object = {0};
    rssm_str       log = {0};

    RSSM_TRY(check_config(input, diag));
    RSSM_TRY(prepare_job(input, toolchain, &job, diag));
    object.identity = job.identity;
    object.kind = input->backend == RSSM_CUDA ? RSSM_OBJECT_CUBIN : RSSM_OBJECT_HOST;
    st = input->backend == RSSM_CUDA ? rssm_build_cuda(&job, toolchain, &object, &log, diag)
                                     : rssm_build_host(&job, toolchain, &object, &log, diag);
    if (out_log) rssm_str_append(out_log, rssm_str_c(&log), log.length);
    if (st != RSSM_OK) goto done;
    object.log = rssm_strdup(rssm_str_c(&log));
    if (!object.log) {
        st = RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a compiler log");
        goto done;
    }
    *out_object = object;
    object = (rssm_object){0};
done:
    rssm_object_free(&object);
    free_job(&job);
    rssm_str_free(&log);
    return st;
}

void rssm_object_free(rssm_object *object)
{
    if (!object) return;
    rssm_free(object->bytes);
    rssm_free(object->log);
    *object = (rssm_object){0};
}
