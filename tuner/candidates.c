// See candidates.h.
#include "tuner/candidates.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "runtime/group.h"
#include "runtime/memory.h"

static rssm_build_input build_input(const rssm_candidates *c, const rssm_candidate *candidate, rssm_facts *facts)
{
    const rssm_device *device = &c->context->devices[c->device];
    rssm_facts_fill(device, c->problem, facts);
    return (rssm_build_input){
        .set = c->context->templates,
        .config = &candidate->config,
        .problem = c->problem,
        .facts = facts,
        .backend = (rssm_backend)device->info.backend,
        .arch = device->info.arch,
        .want_resources = device->info.backend == RSSM_CUDA,
    };
}

static rssm_status add_candidate(rssm_candidates *c, const rssm_config *config, rssm_diag *diag)
{
    rssm_status     st;
    rssm_str        text = {0};
    rssm_facts      facts;
    rssm_candidate *grown = rssm_realloc(c->items, (c->n + 1) * sizeof *grown);

    if (grown == NULL) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for candidates");
    c->items = grown;
    rssm_candidate *candidate = &c->items[c->n];
    memset(candidate, 0, sizeof *candidate);
    candidate->config = *config;
    rssm_config_text(config, &text);
    snprintf(candidate->config_text, sizeof candidate->config_text, "%s", rssm_str_c(&text));
    rssm_str_free(&text);
    const rssm_build_input input = build_input(c, candidate, &facts);
    st = rssm_build_identify(&input, c->toolchain, &candidate->identity, diag);
    if (st == RSSM_OK) c->n++;
    return st;
}

rssm_status rssm_candidates_list(rssm_context *context, uint32_t device, const rssm_problem *problem,
                                 rssm_candidates *out_candidates, rssm_diag *diag)
{
    const rssm_device   *d = &context->devices[device];
    const rssm_backend   backend = (rssm_backend)d->info.backend;
    const rssm_op        op = problem ? RSSM_OP_STEP : RSSM_OP_ADVANCE;
    const rssm_manifest *m = NULL;
    rssm_candidates      c = {.context = context, .device = device, .problem = problem};
    rssm_status          st = RSSM_OK;
    rssm_choice          any;
    rssm_facts           facts;

    RSSM_TRY(rssm_choose_default(context, d, op, problem, &any, diag));   // says why, where nothing serves it
    RSSM_TRY(rssm_context_toolchain(context, backend, &c.toolchain, diag));
    rssm_facts_fill(d, problem, &facts);
    while ((m = rssm_template_set_next(context->templates, op, problem ? problem->recurrence : RSSM_MAMBA2, backend,
                                       m)) != NULL) {
        uint64_t    cursor = 0;
        rssm_config config;
        if (problem && rssm_manifest_serves(m, problem, NULL) != RSSM_OK) continue;
        while (rssm_space_next(m, &facts, &cursor, &config)) RSSM_TRY(add_candidate(&c, &config, diag));
    }
    *out_candidates = c;
    memset(&c, 0, sizeof c);
done:
    rssm_candidates_free(&c);
    return st;
}

void rssm_candidates_free(rssm_candidates *candidates)
{
    for (size_t i = 0; i < candidates->n; i++) rssm_object_free(&candidates->items[i].object);
    rssm_free(candidates->items);
    candidates->items = NULL;
    candidates->n = 0;
}

static void reject(rssm_candidate *candidate, rssm_status status, const char *reason)
{
    candidate->status = status;
    snprintf(candidate->reason, sizeof candidate->reason, "%s", reason);
}

// What the manifest allows. NVRTC does not report spills of a kernel from its own cache, so this is asked again of the
// driver when the kernel is loaded.
static void check_limits(rssm_candidate *candidate, uint32_t registers, uint32_t spill_bytes)
{
    const rssm_manifest *m = candidate->config.manifest;
    char                 text[128];

    candidate->object.registers = registers;
    candidate->object.spill_bytes = spill_bytes;
    if (m->spill_limit_bytes >= 0 && spill_bytes > m->spill_limit_bytes) {
        snprintf(text, sizeof text, "spills %u bytes, more than the manifest's %lld", spill_bytes,
                 (long long)m->spill_limit_bytes);
        reject(candidate, RSSM_E_UNSUPPORTED, text);
    } else if (m->register_limit >= 0 && registers > m->register_limit) {
        snprintf(text, sizeof text, "uses %u registers, more than the manifest's %lld", registers,
                 (long long)m->register_limit);
        reject(candidate, RSSM_E_UNSUPPORTED, text);
    }
}

void rssm_candidate_build(const rssm_candidates *candidates, rssm_candidate *candidate)
{
    rssm_diag  diag = {0};
    rssm_facts facts;
    const rssm_build_input input = build_input(candidates, candidate, &facts);

    const rssm_status st = rssm_build(&input, candidates->toolchain, &candidate->object, NULL, &diag);
    if (st != RSSM_OK) {
        reject(candidate, st, diag.text);
        return;
    }
    check_limits(candidate, candidate->object.registers, candidate->object.spill_bytes);
}

// A group of the candidate on cursors of its own.
static rssm_status make_group(const rssm_candidates *c, const rssm_candidate *candidate, uint32_t n_rows,
                              uint32_t n_slots, void **out_cursors, rssm_group **out_group, rssm_diag *diag)
{
    rssm_group_options options = RSSM_GROUP_OPTIONS_INIT;
    rssm_status        st;

    st = rssm_memory_alloc(c->context, c->device, n_slots * sizeof(rssm_cursor), out_cursors, diag);
    if (st != RSSM_OK) return st;
    options.device = c->device;
    options.problems = c->problem;
    options.n_problems = 1;
    options.n_slots = n_slots;
    options.max_rows = n_rows;
    options.cursors = *out_cursors;
    options.steps_only = 1;
    return rssm_group_create_candidate(c->context, &options, &candidate->config, candidate->object.bytes,
                                       candidate->object.n, out_group, diag);
}

static rssm_verify_request request_for(rssm_context *context, const rssm_group *group, const rssm_problem *problem,
                                       uint32_t device, void *cursors, uint32_t n_slots, uint32_t n_rows)
{
    const rssm_plan     *plan = rssm_group_plan(group, 0);
    const rssm_geometry *g = &plan->buckets[rssm_bucket_index(n_rows)].kernel->geometry;
    return (rssm_verify_request){
        .context = context,
        .device = device,
        .group = group,
        .plan = plan,
        .problem = problem,
        .cursors = cursors,
        .n_slots = n_slots,
        .n_rows = n_rows,
        .state_align = g->align_state,
        .ring_align = g->align_rings,
        .activation_align = g->align_activations,
        .scratch_bytes_per_row = g->scratch_bytes_per_row,
    };
}

static double largest_error(const rssm_verify_report *r)
{
    double e = r->max_out > r->max_state ? r->max_out : r->max_state;
    return e > r->max_dt ? e : r->max_dt;
}

static void add_report(rssm_verify_report *sum, const rssm_verify_report *r)
{
    if (r->max_out > sum->max_out) sum->max_out = r->max_out;
    if (r->max_state > sum->max_state) sum->max_state = r->max_state;
    if (r->max_dt > sum->max_dt) sum->max_dt = r->max_dt;
    sum->n_out += r->n_out;
    sum->n_state += r->n_state;
    sum->n_dt += r->n_dt;
    sum->n_bytes += r->n_bytes;
    sum->n_steps += r->n_steps;
    sum->n_appends += r->n_appends;
    sum->n_folds += r->n_folds;
    sum->n_full_folds += r->n_full_folds;
    sum->n_wraps += r->n_wraps;
    sum->n_null += r->n_null;
    sum->n_resets += r->n_resets;
    memcpy(sum->failure, r->failure, sizeof sum->failure);
}

void rssm_candidate_verify(const rssm_candidates *candidates, rssm_candidate *candidate, uint32_t n_rows,
                           uint64_t seed)
{
    enum { HEADS_COMPARED = 13 };   // of each row by the oracle; the bytes of all heads are compared
    static const uint32_t flags[] = {RSSM_VERIFY_SKIP | RSSM_VERIFY_BIAS,
                                     RSSM_VERIFY_ALL_TENSORS | RSSM_VERIFY_TOKEN_MAJOR | RSSM_VERIFY_PAD_ZERO};
    const rssm_problem *problem = candidates->problem;
    const uint32_t      n_slots = n_rows + 3;
    rssm_status         st = RSSM_OK;
    rssm_diag           diag = {0};
    rssm_group         *group = NULL;
    void               *cursors = NULL;

    RSSM_TRY(make_group(candidates, candidate, n_rows, n_slots, &cursors, &group, &diag));
    if (candidates->context->devices[candidates->device].info.backend == RSSM_CUDA) {
        const rssm_kernel *kernel = rssm_group_plan(group, 0)->buckets[0].kernel;
        check_limits(candidate, kernel->registers, kernel->local_bytes);
        if (candidate->status != RSSM_OK) goto done;
    }
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        rssm_verify_request request =
            request_for(candidates->context, group, problem, candidates->device, cursors, n_slots, n_rows);
        rssm_verify_report report = {0};
        request.flags = flags[i] | (i > 0 && problem->max_tokens > 1 ? RSSM_VERIFY_PACKED : 0);
        request.seed = seed + i;
        request.head_stride = (problem->n_heads / HEADS_COMPARED) | 1;   // odd: not in step with heads per task
        st = rssm_verify(&request, &report, &diag);
        add_report(&candidate->report, &report);
        candidate->max_error = largest_error(&candidate->report);
        if (st != RSSM_OK) goto done;
    }
    candidate->is_verified = true;
done:
    rssm_group_destroy(group);
    rssm_memory_free(candidates->context, candidates->device, cursors);
    if (st != RSSM_OK) reject(candidate, st, diag.text);
}

rssm_status rssm_verify_group(rssm_context *context, const rssm_group *group, const rssm_problem *problem,
                              uint32_t device, void *cursors, uint32_t n_slots, uint32_t n_rows, int eager,
                              uint64_t seed, rssm_verify_report *out_report, rssm_diag *diag)
{
    static const uint32_t flags[] = {
        0,
        RSSM_VERIFY_SKIP | RSSM_VERIFY_BIAS | RSSM_VERIFY_PAD_ZERO,
        RSSM_VERIFY_ALL_TENSORS | RSSM_VERIFY_TOKEN_MAJOR,
        RSSM_VERIFY_SKIP | RSSM_VERIFY_PACKED | RSSM_VERIFY_TOKEN_MAJOR | RSSM_VERIFY_PAD_ZERO,
    };
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        rssm_verify_request request = request_for(context, group, problem, device, cursors, n_slots, n_rows);
        rssm_verify_report  report = {0};
        request.flags = flags[i];
        request.seed = seed * 1000 + i;
        request.eager = (uint32_t)eager;
        const rssm_status st = rssm_verify(&request, &report, diag);
        add_report(out_report, &report);
        if (st != RSSM_OK) return st;
    }
    return RSSM_OK;
}
