// Opening and closing of contexts. See context.h.
#include "runtime/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "runtime/cuda_device.h"

const char *rssm_environment(rssm_environment_variable variable)
{
    static const char *const names[] = {
#define RSSM_ENVIRONMENT_NAME(name, meaning) #name,
        RSSM_ENVIRONMENT_LIST(RSSM_ENVIRONMENT_NAME)
#undef RSSM_ENVIRONMENT_NAME
    };
    const char *value = getenv(names[variable]);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static int thread_count(const rssm_context_options *options)
{
    const char *text = rssm_environment(RSSM_ENVIRONMENT_RSSM_THREADS);
    const int   cores = rssm_usable_cores();
    long        n = options->n_threads;
    if (n == 0 && text != NULL) n = strtol(text, NULL, 10);
    return n < 1 || n > 4096 ? cores : (int)n;
}

static void find_devices(rssm_context *c)
{
    const char *only = rssm_environment(RSSM_ENVIRONMENT_RSSM_DEVICE);
    rssm_diag   diag = {0};

    if (only == NULL || strcmp(only, "cpu") != 0) {
        const rssm_status st = rssm_cuda_find_devices(c->devices, RSSM_MAX_DEVICES - 1, &c->n_devices, &diag);
        if (st != RSSM_OK) {
            rssm_log_printf(&c->log, RSSM_LOG_INFO, "no GPU is used: %s", diag.text);
        } else if (diag.text[0] != '\0') {
            rssm_log_printf(&c->log, RSSM_LOG_INFO, "%s", diag.text);   // GPUs that were left out
        }
    }
    rssm_device_describe_cpu(&c->devices[c->n_devices++]);
}

static const rssm_context_options default_options = RSSM_CONTEXT_OPTIONS_INIT;

rssm_status rssm_context_open(const rssm_context_options *options, rssm_context **out_context, rssm_diag *diag)
{
    rssm_status   st = RSSM_OK;
    rssm_context *c = NULL;

    if (options == NULL) options = &default_options;
    if (options->struct_size != sizeof *options)
        return RSSM_FAIL(diag, RSSM_E_STRUCT_SIZE, "context options are %u bytes, this library knows %zu; initialise them "
                         "with RSSM_CONTEXT_OPTIONS_INIT", options->struct_size, sizeof *options);
    if (options->miss_policy > RSSM_MISS_FAIL)
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "miss_policy %u is not one of rssm_miss_policy",
                         options->miss_policy);
    c = rssm_calloc(1, sizeof *c);
    if (c == NULL) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a context");
    pthread_mutex_init(&c->lock, NULL);
    c->log = (rssm_log){options->log, options->log_user};
    c->miss_policy = (rssm_miss_policy)options->miss_policy;

    const char *database = options->database ? options->database : rssm_environment(RSSM_ENVIRONMENT_RSSM_DATABASE);
    const char *templates =
        options->template_dir ? options->template_dir : rssm_environment(RSSM_ENVIRONMENT_RSSM_TEMPLATE_DIR);
    if (database != NULL && (c->database = rssm_strdup(database)) == NULL) {
        st = RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a context");
        goto done;
    }
    RSSM_TRY(rssm_template_set_open(templates, &c->templates, diag));
    RSSM_TRY(rssm_cpu_pool_create(thread_count(options), &c->pool, diag));
    find_devices(c);
    *out_context = c;
    c = NULL;
done:
    rssm_context_close(c);
    return st;
}

void rssm_context_close(rssm_context *context)
{
    if (context == NULL) return;
    rssm_toolchain_close(context->toolchains[RSSM_CPU]);
    rssm_toolchain_close(context->toolchains[RSSM_CUDA]);
    rssm_cuda_release_devices(context->devices, context->n_devices);
    rssm_cpu_pool_destroy(context->pool);
    rssm_template_set_close(context->templates);
    rssm_free(context->database);
    pthread_mutex_destroy(&context->lock);
    rssm_free(context);
}

uint32_t rssm_device_count(const rssm_context *context)
{
    return context->n_devices;
}

rssm_status rssm_device_get(const rssm_context *context, uint32_t device, rssm_device_info *out_info)
{
    if (device >= context->n_devices) return RSSM_E_NO_DEVICE;
    if (out_info->struct_size != sizeof *out_info) return RSSM_E_STRUCT_SIZE;
    *out_info = context->devices[device].info;
    return RSSM_OK;
}

// Opens the compiler of a backend once; a failure is remembered with its reason.
static void open_toolchain_locked(rssm_context *c, rssm_backend backend)
{
    rssm_toolchain_options options = {
        .clang = rssm_environment(RSSM_ENVIRONMENT_RSSM_CLANG),
        .nvrtc = rssm_environment(RSSM_ENVIRONMENT_RSSM_NVRTC),
    };
    const char *home = rssm_environment(RSSM_ENVIRONMENT_CUDA_HOME);
    const char *folders[4];
    char        from_home[512], from_data[512];

    if (home != NULL) {
        snprintf(from_home, sizeof from_home, "%s/lib64", home);
        folders[options.n_nvrtc_folders++] = from_home;
    }
    folders[options.n_nvrtc_folders++] = "/usr/local/cuda/lib64";
    const char *user = getenv("HOME");   // where scripts/setup.sh puts NVRTC's own wheel
    if (user != NULL) {
        snprintf(from_data, sizeof from_data, "%s/.local/share/replayssm/nvrtc", user);
        folders[options.n_nvrtc_folders++] = from_data;
    }
    options.nvrtc_folders = folders;
    rssm_toolchain_open(backend, &options, &c->toolchains[backend], &c->toolchain_diags[backend]);
}

rssm_status rssm_context_toolchain(rssm_context *context, rssm_backend backend, const rssm_toolchain **out_toolchain,
                                   rssm_diag *diag)
{
    rssm_status st = RSSM_OK;

    pthread_mutex_lock(&context->lock);
    if (context->toolchains[backend] == NULL && context->toolchain_diags[backend].code == RSSM_OK)
        open_toolchain_locked(context, backend);
    if (context->toolchains[backend] != NULL) {
        *out_toolchain = context->toolchains[backend];
    } else {
        st = context->toolchain_diags[backend].code;
        if (diag != NULL) *diag = context->toolchain_diags[backend];
    }
    pthread_mutex_unlock(&context->lock);
    return st;
}
