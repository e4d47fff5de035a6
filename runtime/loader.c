// See loader.h.
#include "runtime/loader.h"

#include <string.h>

#include "base/alloc.h"
#include "base/problem.h"
#include "gen/build.h"
#include "runtime/builtin.h"
#include "runtime/cuda_kernel.h"
#include "templates/abi/advance.h"
#include "templates/abi/mamba2_layers.h"

static rssm_hash kernel_key(const rssm_problem *problem, const rssm_config *config, bool is_builtin)
{
    rssm_hasher hasher;
    rssm_str    text = {0};

    rssm_hasher_init(&hasher);
    if (problem != NULL) {
        const rssm_hash problem_key = rssm_problem_key(problem);
        rssm_hasher_field(&hasher, 1, problem_key.bytes, sizeof problem_key.bytes);
    }
    rssm_config_text(config, &text);
    rssm_hasher_text(&hasher, 2, config->manifest->name);
    rssm_hasher_text(&hasher, 3, rssm_str_c(&text));
    rssm_hasher_u64(&hasher, 4, is_builtin);
    rssm_str_free(&text);
    return rssm_hasher_end(&hasher);
}

static rssm_status geometry_of(const rssm_config *config, const rssm_facts *facts, rssm_geometry *out, rssm_diag *diag)
{
    rssm_launch       launch;
    const rssm_status st = rssm_launch_plan(config, facts, &launch, diag);
    if (st != RSSM_OK) return st;
    for (int i = 0; i < 3; i++) {
        out->grid[i].constant = launch.grid[i].constant;
        out->grid[i].per_row = launch.grid[i].per_row;
        out->block[i] = launch.block[i];
    }
    out->shared_bytes = launch.shared_bytes;
    out->scratch_bytes_per_row = launch.scratch_bytes_per_row;
    out->align_state = config->manifest->align_state;
    out->align_rings = config->manifest->align_rings;
    out->align_activations = config->manifest->align_activations;
    return RSSM_OK;
}

static size_t args_bytes_of(rssm_op op)
{
    switch (op) {
    case RSSM_OP_ADVANCE:
        return sizeof(rssm_advance_kernel_args);
    case RSSM_OP_SLOTS:
        return sizeof(rssm_slots_kernel_args);
    case RSSM_OP_COPY:
    case RSSM_OP_MATERIALIZE:
        return sizeof(rssm_mamba2_layers_kernel_args);
    case RSSM_OP_ENCODE:
    case RSSM_OP_DECODE:
        return sizeof(rssm_mamba2_state_kernel_args);
    default:
        return sizeof(rssm_mamba2_step_kernel_args);
    }
}

// Loads bytes, or wraps `builtin` where that is given, and keeps the kernel.
static rssm_status add_kernel(rssm_loader *loader, const rssm_problem *problem, const rssm_config *config,
                              const void *bytes, size_t n_bytes, rssm_cpu_kernel *builtin,
                              const rssm_kernel **out_kernel, rssm_diag *diag)
{
    rssm_status         st = RSSM_OK;
    rssm_loaded_kernel *loaded = rssm_calloc(1, sizeof *loaded);
    rssm_loaded_kernel **grown = rssm_realloc(loader->kernels, (loader->n + 1) * sizeof *grown);
    rssm_geometry        geometry;
    rssm_facts           facts;

    if (grown != NULL) loader->kernels = grown;
    if (loaded == NULL || grown == NULL) {
        st = RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory to load a kernel");
        goto done;
    }
    rssm_facts_fill(loader->device, problem, &facts);
    RSSM_TRY(geometry_of(config, &facts, &geometry, diag));
    const size_t args_bytes = args_bytes_of(config->manifest->op);
    if (builtin != NULL) {
        rssm_kernel_wrap_builtin(builtin, &loaded->kernel);
    } else if (loader->device->info.backend == RSSM_CUDA) {
        RSSM_TRY(rssm_cuda_kernel_load(loader->device, bytes, n_bytes, config->manifest->entry, &geometry, args_bytes,
                                       &loaded->kernel, diag));
    } else {
        RSSM_TRY(rssm_kernel_load_host(bytes, n_bytes, config->manifest->entry, &loaded->kernel, diag));
    }
    loaded->kernel.geometry = geometry;
    loaded->kernel.args_bytes = args_bytes;
    loaded->is_builtin = builtin != NULL;
    loaded->key = kernel_key(problem, config, loaded->is_builtin);
    loader->kernels[loader->n++] = loaded;
    *out_kernel = &loaded->kernel;
    loaded = NULL;
done:
    rssm_free(loaded);
    return st;
}

rssm_status rssm_loader_add_object(rssm_loader *loader, const rssm_problem *problem, const rssm_config *config,
                                   const void *bytes, size_t n_bytes, const rssm_kernel **out_kernel, rssm_diag *diag)
{
    return add_kernel(loader, problem, config, bytes, n_bytes, NULL, out_kernel, diag);
}

static const rssm_kernel *find_loaded(const rssm_loader *loader, const rssm_problem *problem, const rssm_config *config,
                                      bool is_builtin)
{
    const rssm_hash key = kernel_key(problem, config, is_builtin);
    for (size_t i = 0; i < loader->n; i++)
        if (rssm_hash_equal(&loader->kernels[i]->key, &key)) return &loader->kernels[i]->kernel;
    return NULL;
}

// The stored binary of the choice, if it is sound and of this argument layout.
static rssm_status load_stored(rssm_loader *loader, const rssm_problem *problem, const rssm_choice *choice,
                               const rssm_build_input *input, const rssm_kernel **out_kernel, rssm_diag *diag)
{
    rssm_status         st = RSSM_OK;
    rssm_db_binary      binary = {0};
    rssm_build_identity identity;

    RSSM_TRY(rssm_db_layers_binary_read(loader->layers, &choice->build_key, &binary, diag));
    RSSM_TRY(rssm_build_identify(input, NULL, &identity, diag));
    if (!rssm_hash_equal(&identity.layout_hash, &binary.layout_hash) || strcmp(binary.arch, input->arch) != 0) {
        st = RSSM_FAIL(diag, RSSM_E_MISS, "the stored kernel %s was built for another argument layout or architecture; "
                       "tune again", choice->config.manifest->name);
        goto done;
    }
    RSSM_TRY(add_kernel(loader, problem, &choice->config, binary.bytes, binary.n_bytes, NULL, out_kernel, diag));
done:
    rssm_db_binary_free(&binary);
    return st;
}

// Only of these can a database have a row, so only these can be missed in one.
static bool is_tuned(rssm_op op)
{
    return op == RSSM_OP_STEP || op == RSSM_OP_ADVANCE;
}

static rssm_status build_now(rssm_loader *loader, const rssm_problem *problem, const rssm_choice *choice,
                             const rssm_build_input *input, const rssm_kernel **out_kernel, rssm_diag *diag)
{
    const rssm_miss_policy policy = loader->context->miss_policy;
    const bool             cannot_miss = policy == RSSM_MISS_FAIL && !is_tuned(choice->config.manifest->op);
    const rssm_toolchain  *toolchain;
    rssm_status            st = RSSM_OK;
    rssm_object            object = {0};

    if (policy != RSSM_MISS_COMPILE && !cannot_miss)
        return RSSM_FAIL(diag, RSSM_E_MISS, "%s is not in a database and the miss policy forbids compiling it",
                         choice->config.manifest->name);
    RSSM_TRY(rssm_context_toolchain(loader->context, input->backend, &toolchain, diag));
    RSSM_TRY(rssm_build(input, toolchain, &object, NULL, diag));
    RSSM_TRY(add_kernel(loader, problem, &choice->config, object.bytes, object.n, NULL, out_kernel, diag));
done:
    rssm_object_free(&object);
    return st;
}

// On the CPU: cursors and plain copies run as fast from inside the library.
static bool is_worth_compiling(rssm_op op)
{
    return op == RSSM_OP_STEP || op == RSSM_OP_MATERIALIZE;
}

// A generic kernel of the library: any built-in template that serves the problem.
static rssm_status use_builtin(rssm_loader *loader, const rssm_problem *problem, rssm_choice *choice,
                               const rssm_kernel **out_kernel, rssm_diag *diag)
{
    const rssm_op        op = choice->config.manifest->op;
    const rssm_manifest *m = NULL;
    rssm_facts           facts;

    rssm_facts_fill(loader->device, problem, &facts);
    while ((m = rssm_template_set_next(loader->context->templates, op, problem ? problem->recurrence : RSSM_MAMBA2,
                                       RSSM_CPU, m)) != NULL) {
        const rssm_config config = rssm_config_default(m);
        rssm_cpu_kernel  *entry = rssm_builtin_find(m->entry, problem ? problem->activation_dtype : RSSM_F32,
                                                    problem ? problem->checkpoint_dtype : RSSM_F32);
        if (entry == NULL || (problem && rssm_manifest_serves(m, problem, NULL) != RSSM_OK)) continue;
        choice->config = config;
        choice->match = RSSM_MATCH_BUILTIN;
        choice->median_ns = 0.0;
        choice->layer[0] = '\0';
        if ((*out_kernel = find_loaded(loader, problem, &config, true)) != NULL) return RSSM_OK;
        return add_kernel(loader, problem, &config, NULL, 0, entry, out_kernel, diag);
    }
    return RSSM_FAIL(diag, RSSM_E_UNSUPPORTED, "no kernel inside the library serves this problem");
}

rssm_status rssm_loader_get(rssm_loader *loader, const rssm_problem *problem, rssm_choice *choice,
                            const rssm_kernel **out_kernel, rssm_diag *diag)
{
    static const rssm_hash no_key = {{0}};
    const rssm_log        *log = &loader->context->log;
    rssm_diag              why = {0};
    rssm_status            st = RSSM_E_MISS;
    rssm_facts             facts;

    if (loader->device->info.backend == RSSM_CPU && !is_worth_compiling(choice->config.manifest->op))
        return use_builtin(loader, problem, choice, out_kernel, diag);
    if ((*out_kernel = find_loaded(loader, problem, &choice->config, false)) != NULL) return RSSM_OK;
    const bool may_use_builtin =
        loader->context->miss_policy != RSSM_MISS_FAIL || !is_tuned(choice->config.manifest->op);
    rssm_facts_fill(loader->device, problem, &facts);
    const rssm_build_input input = {
        .set = loader->context->templates,
        .config = &choice->config,
        .problem = problem,
        .facts = &facts,
        .backend = (rssm_backend)loader->device->info.backend,
        .arch = loader->device->info.arch,
    };
    if (!rssm_hash_equal(&choice->build_key, &no_key)) {
        st = load_stored(loader, problem, choice, &input, out_kernel, &why);
        if (st != RSSM_OK) rssm_log_printf(log, RSSM_LOG_WARN, "a stored kernel is not used: %s", why.text);
    }
    if (st != RSSM_OK) {
        st = build_now(loader, problem, choice, &input, out_kernel, &why);
        if (st == RSSM_OK && choice->match > RSSM_MATCH_SAME_ARCH) choice->match = RSSM_MATCH_DEFAULT;
    }
    if (st != RSSM_OK && loader->device->info.backend == RSSM_CPU && may_use_builtin) {
        rssm_diag why_not = {0};
        if (use_builtin(loader, problem, choice, out_kernel, &why_not) == RSSM_OK) {
            rssm_log_printf(log, RSSM_LOG_INFO, "a built-in kernel is used: %s", why.text);
            return RSSM_OK;
        }
    }
    if (st != RSSM_OK && diag != NULL) *diag = why;
    return st;
}

void rssm_loader_free(rssm_loader *loader)
{
    for (size_t i = 0; i < loader->n; i++) {
        rssm_kernel *kernel = &loader->kernels[i]->kernel;
        if (loader->device->info.backend == RSSM_CUDA) {
            rssm_cuda_kernel_unload(loader->device, kernel);
        } else {
            rssm_kernel_unload_host(kernel);
        }
        rssm_free(loader->kernels[i]);
    }
    rssm_free(loader->kernels);
    loader->kernels = NULL;
    loader->n = 0;
}
