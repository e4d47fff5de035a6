// Making groups: choosing, loading, deciding on the mode. See group.h.
#include "runtime/group.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/problem.h"
#include "runtime/cuda_kernel.h"

rssm_status rssm_group_launch(const rssm_group *group, const rssm_kernel *kernel, const void *args, uint32_t n_rows,
                              void *stream)
{
    if (group->backend == RSSM_CUDA) return rssm_cuda_kernel_launch(group->device, kernel, args, n_rows, stream);
    rssm_cpu_pool_run(group->pool, kernel->host_entry, args,
                      kernel->geometry.grid[0].constant + (rssm_i64)n_rows * kernel->geometry.grid[0].per_row);
    return RSSM_OK;
}

bool rssm_group_grid_fits(const rssm_kernel *kernel, uint64_t n_rows)
{
    static const uint64_t most[3] = {INT32_MAX, 65535, 65535};
    for (int i = 0; i < 3; i++) {
        const uint64_t constant = (uint64_t)kernel->geometry.grid[i].constant;
        const uint64_t per_row = (uint64_t)kernel->geometry.grid[i].per_row;   // both at most 2^31 - 1
        if (constant > most[i] || (per_row != 0 && n_rows > (most[i] - constant) / per_row)) return false;
    }
    return true;
}

static rssm_status check_options(const rssm_context *context, const rssm_group_options *o, rssm_diag *diag)
{
    if (o->struct_size != sizeof *o)
        return RSSM_FAIL(diag, RSSM_E_STRUCT_SIZE, "group options are %u bytes, this library knows %zu; initialise them "
                         "with RSSM_GROUP_OPTIONS_INIT", o->struct_size, sizeof *o);
    if (o->device >= context->n_devices)
        return RSSM_FAIL(diag, RSSM_E_NO_DEVICE, "there is no device %u; this machine has %u", o->device,
                         context->n_devices);
    if (o->problems == NULL || o->n_problems == 0 || o->n_problems > 1024)
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "a group needs 1 to 1024 problems, not %u", o->n_problems);
    if (o->n_slots == 0 || o->n_slots > INT32_MAX || o->cursors == NULL)
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "a group needs cursors for at least one slot");
    if (o->max_rows == 0 || o->max_rows > 1u << (RSSM_BUCKETS_MAX - 1))
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "max_rows is %u; it must lie in 1 .. %u", o->max_rows,
                         1u << (RSSM_BUCKETS_MAX - 1));
    if (o->eager > RSSM_EAGER_ALWAYS)
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "eager %u is not one of rssm_eager_policy", o->eager);
    return RSSM_OK;
}

// Whether every problem may run the conventional step (SEMANTICS: T = 1; 16-bit states only by consent; never 8-bit
// or separate copies).
static bool may_be_eager(const rssm_group *group)
{
    for (uint32_t i = 0; i < group->n_plans; i++) {
        const rssm_problem *p = &group->plans[i].problem;
        if (p->max_tokens != 1 || p->checkpoint_mode != RSSM_CHECKPOINT_SHARED) return false;
        if (p->checkpoint_dtype == RSSM_F32) continue;
        if (!(p->flags & RSSM_PROBLEM_EAGER_16BIT)) return false;
    }
    return true;
}

static rssm_status copy_problems(rssm_group *group, const rssm_group_options *o, rssm_diag *diag)
{
    rssm_status st;
    group->n_plans = o->n_problems;
    group->plans = rssm_calloc(o->n_problems, sizeof *group->plans);
    if (group->plans == NULL) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for %u plans", o->n_problems);
    for (uint32_t i = 0; i < o->n_problems; i++) {
        rssm_problem *p = &group->plans[i].problem;
        group->plans[i].group = group;
        if ((st = rssm_problem_normalise(&o->problems[i], p, diag)) != RSSM_OK) {
            rssm_diag_prefix(diag, "problem %u", i);
            return st;
        }
        const rssm_problem *first = &group->plans[0].problem;
        if (p->window != first->window || p->max_tokens != first->max_tokens || p->ring_length != first->ring_length)
            return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "problem %u has another window, step length or ring length "
                             "than problem 0; layers that differ in them need groups of their own", i);
    }
    const rssm_problem *first = &group->plans[0].problem;
    group->window = (rssm_window){.L = (rssm_i32)first->window,
                                  .R = (rssm_i32)first->ring_length,
                                  .T = (rssm_i32)first->max_tokens};
    return RSSM_OK;
}

static void describe_bucket(rssm_bucket *bucket, uint32_t index, const rssm_choice *choice, bool eager)
{
    rssm_plan_info *info = &bucket->info;
    rssm_str        text = {0};

    *info = (rssm_plan_info)RSSM_PLAN_INFO_INIT;
    info->match = choice->match;
    info->batch_bucket = 1u << index;
    info->eager = eager;
    info->stale = choice->is_stale;
    info->n_launches = 1;
    info->median_ns = choice->median_ns;
    rssm_config_text(&choice->config, &text);
    snprintf(info->candidate, sizeof info->candidate, "%s%s%s", choice->config.manifest->name, text.length ? " " : "",
             rssm_str_c(&text));
    rssm_str_free(&text);
    switch (choice->match) {
    case RSSM_MATCH_DEFAULT:
        snprintf(info->source, sizeof info->source, "not tuned: the manifest's default, compiled here");
        break;
    case RSSM_MATCH_BUILTIN:
        snprintf(info->source, sizeof info->source, "not tuned: built into the library");
        break;
    default:
        snprintf(info->source, sizeof info->source, "%s database, tuned at batch %u", choice->layer, choice->bucket);
        break;
    }
}

// Replay or eager for one bucket: the smaller sum over all layers, where both were measured for every problem.
static bool eager_is_faster(const rssm_answers *answers, const rssm_group_options *o, uint32_t bucket)
{
    double replay = 0.0, eager = 0.0;
    for (uint32_t i = 0; i < o->n_problems; i++) {
        const double weight = o->layer_counts ? o->layer_counts[i] : 1;
        rssm_choice  r, e;
        if (!rssm_answers_choose(&answers[i], bucket, RSSM_DB_REPLAY, &r)) return false;
        if (!rssm_answers_choose(&answers[i], bucket, RSSM_DB_EAGER, &e)) return false;
        if (r.match != e.match || r.bucket != e.bucket) return false;   // not measured side by side
        replay += weight * r.median_ns;
        eager += weight * e.median_ns;
    }
    return eager < replay;
}

// The last rung: names the problem and what would answer it.
static rssm_status report_miss(const rssm_problem *problem, uint32_t batch, rssm_diag *diag)
{
    rssm_str text = {0};
    rssm_problem_text(problem, &text);
    (void)RSSM_FAIL(diag, RSSM_E_MISS, "nothing is tuned for [%s] at batch %u; run `replayssm-tune tune --model FILE --batch %u` "
              "with the model's config.json, or choose another miss policy", rssm_str_c(&text), batch, batch);
    rssm_str_free(&text);
    return RSSM_E_MISS;
}

static rssm_status fill_bucket(rssm_group *group, rssm_plan *plan, const rssm_answers *answers, uint32_t index,
                               rssm_diag *diag)
{
    const rssm_db_mode mode = group->eager[index] ? RSSM_DB_EAGER : RSSM_DB_REPLAY;
    const rssm_db_mode other = group->eager[index] ? RSSM_DB_REPLAY : RSSM_DB_EAGER;
    rssm_choice        choice;
    rssm_status        st;

    if (!rssm_answers_choose(answers, 1u << index, mode, &choice)) {
        if (rssm_answers_choose(answers, 1u << index, other, &choice)) {
            choice.median_ns = 0.0;   // the same kernel runs both modes, but this one was not timed
        } else {
            st = rssm_choose_default(group->context, group->device, RSSM_OP_STEP, &plan->problem, &choice, diag);
            if (st == RSSM_OK && group->context->miss_policy == RSSM_MISS_FAIL)
                st = report_miss(&plan->problem, 1u << index, diag);
            if (st != RSSM_OK) return st;
        }
    }
    st = rssm_loader_get(&group->loader, &plan->problem, &choice, &plan->buckets[index].kernel, diag);
    if (st != RSSM_OK) return st;
    describe_bucket(&plan->buckets[index], index, &choice, group->eager[index]);
    return RSSM_OK;
}

static rssm_status load_advance(rssm_group *group, rssm_diag *diag)
{
    rssm_answers answers = {0};
    rssm_choice  choice;
    rssm_status  st = RSSM_OK;

    RSSM_TRY(rssm_answers_load(group->loader.layers, group->context, group->device, NULL, &answers, diag));
    if (!rssm_answers_choose(&answers, 1, RSSM_DB_REPLAY, &choice))
        RSSM_TRY(rssm_choose_default(group->context, group->device, RSSM_OP_ADVANCE, NULL, &choice, diag));
    RSSM_TRY(rssm_loader_get(&group->loader, NULL, &choice, &group->advance, diag));
done:
    rssm_answers_free(&answers);
    return st;
}

// A kernel that steps can do without: none where no template serves, or where policy or machine forbid building it.
static rssm_status load_optional(rssm_group *group, rssm_op op, const rssm_problem *problem,
                                 const rssm_kernel **out_kernel, rssm_diag *diag)
{
    const rssm_log *log = &group->context->log;
    rssm_diag       why = {0};
    rssm_choice     choice;
    rssm_status     st = rssm_choose_default(group->context, group->device, op, problem, &choice, &why);

    if (st == RSSM_OK) st = rssm_loader_get(&group->loader, problem, &choice, out_kernel, &why);
    if (st == RSSM_E_UNSUPPORTED || st == RSSM_E_MISS || st == RSSM_E_NO_COMPILER) {
        *out_kernel = NULL;
        rssm_log_printf(log, st == RSSM_E_UNSUPPORTED ? RSSM_LOG_INFO : RSSM_LOG_WARN,
                        "this group has no kernel for %s, and its calls will say so: %s", rssm_op_name(op), why.text);
        return RSSM_OK;
    }
    if (st != RSSM_OK && diag != NULL) *diag = why;
    return st;
}

static rssm_status load_slot_kernels(rssm_group *group, rssm_diag *diag)
{
    rssm_status st = RSSM_OK;

    RSSM_TRY(load_optional(group, RSSM_OP_SLOTS, NULL, &group->slots, diag));
    for (uint32_t i = 0; i < group->n_plans; i++) {
        rssm_plan *plan = &group->plans[i];
        RSSM_TRY(load_optional(group, RSSM_OP_COPY, &plan->problem, &plan->copy, diag));
        RSSM_TRY(load_optional(group, RSSM_OP_MATERIALIZE, &plan->problem, &plan->materialize, diag));
        RSSM_TRY(load_optional(group, RSSM_OP_ENCODE, &plan->problem, &plan->encode, diag));
        RSSM_TRY(load_optional(group, RSSM_OP_DECODE, &plan->problem, &plan->decode, diag));
    }
done:
    return st;
}

// Looks every bucket up in the databases.
static rssm_status fill_from_databases(rssm_group *group, const rssm_group_options *o, rssm_diag *diag)
{
    const bool    allowed = may_be_eager(group);
    rssm_status   st = RSSM_OK;
    rssm_answers *answers = rssm_calloc(o->n_problems, sizeof *answers);

    if (answers == NULL) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for %u plans", o->n_problems);
    for (uint32_t i = 0; i < o->n_problems; i++)
        RSSM_TRY(rssm_answers_load(group->loader.layers, group->context, group->device, &group->plans[i].problem,
                                   &answers[i], diag));
    for (uint32_t b = 0; b < group->n_buckets; b++) {
        if (o->eager == RSSM_EAGER_ALWAYS) group->eager[b] = 1;
        if (o->eager == RSSM_EAGER_AUTO) group->eager[b] = allowed && eager_is_faster(answers, o, 1u << b);
        for (uint32_t i = 0; i < o->n_problems; i++)
            RSSM_TRY(fill_bucket(group, &group->plans[i], &answers[i], b, diag));
    }
done:
    for (uint32_t i = 0; i < o->n_problems; i++) rssm_answers_free(&answers[i]);
    rssm_free(answers);
    return st;
}

// Gives every bucket the candidate's kernel.
static rssm_status fill_from_candidate(rssm_group *group, const rssm_group_options *o, const rssm_config *config,
                                       const void *object, size_t object_bytes, rssm_diag *diag)
{
    const rssm_kernel *kernel;
    rssm_status        st;

    st = rssm_loader_add_object(&group->loader, &group->plans[0].problem, config, object, object_bytes, &kernel, diag);
    if (st != RSSM_OK) return st;
    const rssm_choice choice = {.match = RSSM_MATCH_DEFAULT, .config = *config};
    for (uint32_t b = 0; b < group->n_buckets; b++) {
        group->eager[b] = o->eager == RSSM_EAGER_ALWAYS;
        group->plans[0].buckets[b].kernel = kernel;
        describe_bucket(&group->plans[0].buckets[b], b, &choice, group->eager[b]);
    }
    return RSSM_OK;
}

static rssm_status create(rssm_context *context, const rssm_group_options *o, const rssm_config *config,
                          const void *object, size_t object_bytes, rssm_group **out_group, rssm_diag *diag)
{
    rssm_status      st = RSSM_OK;
    rssm_layer_paths paths = {0};
    rssm_db_layers  *layers = NULL;
    rssm_group      *group = NULL;

    RSSM_TRY(check_options(context, o, diag));
    group = rssm_calloc(1, sizeof *group);
    if (group == NULL) {
        st = RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a group");
        goto done;
    }
    group->context = context;
    group->device = &context->devices[o->device];
    group->backend = (rssm_backend)group->device->info.backend;
    group->pool = context->pool;
    group->max_rows = o->max_rows;
    group->n_buckets = rssm_bucket_index(o->max_rows) + 1;
    group->n_slots = o->n_slots;
    group->debug = o->debug;
    group->cursors = o->cursors;
    group->loader = (rssm_loader){.context = context, .device = group->device};
    RSSM_TRY(copy_problems(group, o, diag));
    if (config == NULL && o->eager == RSSM_EAGER_ALWAYS && !may_be_eager(group)) {   // measuring needs no consent
        st = RSSM_FAIL(diag, RSSM_E_UNSUPPORTED, "the conventional step would round this state at every token; set "
                       "RSSM_PROBLEM_EAGER_16BIT to allow it for a 16-bit checkpoint at T = 1");
        goto done;
    }
    RSSM_TRY(rssm_layers_paths(context->database, &paths, diag));
    RSSM_TRY(rssm_db_layers_open(&paths, &context->log, &layers, diag));
    group->loader.layers = layers;
    RSSM_TRY(load_advance(group, diag));
    if (config != NULL) {
        RSSM_TRY(fill_from_candidate(group, o, config, object, object_bytes, diag));
    } else {
        RSSM_TRY(fill_from_databases(group, o, diag));
    }
    if (!o->steps_only) RSSM_TRY(load_slot_kernels(group, diag));
    group->loader.layers = NULL;   // G4
    *out_group = group;
    group = NULL;
done:
    rssm_group_destroy(group);
    rssm_db_layers_close(layers);
    rssm_layer_paths_free(&paths);
    return st;
}

rssm_status rssm_group_create(rssm_context *context, const rssm_group_options *options, rssm_group **out_group,
                              rssm_diag *diag)
{
    return create(context, options, NULL, NULL, 0, out_group, diag);
}

rssm_status rssm_group_create_candidate(rssm_context *context, const rssm_group_options *options,
                                        const rssm_config *config, const void *object, size_t object_bytes,
                                        rssm_group **out_group, rssm_diag *diag)
{
    if (options->n_problems != 1)
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "a candidate serves one problem, not %u", options->n_problems);
    return create(context, options, config, object, object_bytes, out_group, diag);
}

void rssm_group_destroy(rssm_group *group)
{
    if (group == NULL) return;
    rssm_loader_free(&group->loader);
    rssm_free(group->plans);
    rssm_free(group);
}

const rssm_plan *rssm_group_plan(const rssm_group *group, uint32_t index)
{
    return index < group->n_plans ? &group->plans[index] : NULL;
}

rssm_status rssm_plan_info_get(const rssm_plan *plan, uint32_t n_rows, rssm_plan_info *out_info)
{
    if (n_rows == 0 || n_rows > plan->group->max_rows) return RSSM_E_INVALID_ARGUMENT;
    if (out_info->struct_size != sizeof *out_info) return RSSM_E_STRUCT_SIZE;
    *out_info = plan->buckets[rssm_bucket_index(n_rows)].info;
    return RSSM_OK;
}
