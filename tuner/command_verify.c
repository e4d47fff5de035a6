// `replayssm-tune verify`: kernels against the float64 oracle, on poisoned and guarded memory.
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/problem.h"
#include "base/thread.h"
#include "runtime/group.h"
#include "runtime/memory.h"
#include "tuner/candidates.h"
#include "tuner/command.h"

static void print_line(const rssm_cli *cli, const char *kernel, uint32_t batch, const char *mode,
                       const rssm_verify_report *r, rssm_status st, const char *reason)
{
    rssm_str out = {0};
    if (cli->json) {
        rssm_str_puts(&out, "{\"event\":\"verify\",\"candidate\":");
        rssm_json_quote(&out, kernel);
        rssm_str_printf(&out, ",\"batch\":%u,\"mode\":\"%s\",\"status\":\"%s\",\"max_out\":%.4f,\"max_state\":%.4f,"
                        "\"values\":%llu,\"bytes\":%llu,\"reason\":", batch, mode, rssm_status_name(st), r->max_out,
                        r->max_state, (unsigned long long)(r->n_out + r->n_state + r->n_dt),
                        (unsigned long long)r->n_bytes);
        rssm_json_quote(&out, st == RSSM_OK ? "" : reason);
        rssm_str_puts(&out, "}\n");
    } else if (st == RSSM_OK) {
        rssm_str_printf(&out, "ok     batch %-4u %-7s %s: output %.3f, state %.3f of the bound; %llu values, %llu folds\n",
                        batch, mode, kernel, r->max_out, r->max_state,
                        (unsigned long long)(r->n_out + r->n_state + r->n_dt),
                        (unsigned long long)r->n_folds + r->n_full_folds);
    } else if (st == RSSM_E_UNSUPPORTED) {
        rssm_str_printf(&out, "-      batch %-4u %-7s %s: %s\n", batch, mode, kernel, reason);
    } else {
        rssm_str_printf(&out, "WRONG  batch %-4u %-7s %s: %s\n", batch, mode, kernel, reason);
    }
    rssm_command_print(&out);
    rssm_str_free(&out);
}

// The kernels that the database, or the ladder behind it, gives a host at this batch.
static rssm_status verify_answer(const rssm_cli *cli, rssm_context *context, uint32_t device,
                                 const rssm_problem *problem, uint32_t batch, rssm_diag *diag)
{
    const uint32_t     n_slots = batch + 3;
    rssm_group_options options = RSSM_GROUP_OPTIONS_INIT;
    rssm_plan_info     info = RSSM_PLAN_INFO_INIT;
    rssm_group        *group = NULL;
    rssm_verify_report report = {0};
    rssm_status        st = RSSM_OK;

    RSSM_TRY(rssm_memory_alloc(context, device, n_slots * sizeof(rssm_cursor), &options.cursors, diag));
    options.device = device;
    options.problems = problem;
    options.n_problems = 1;
    options.n_slots = n_slots;
    options.max_rows = batch;
    options.steps_only = 1;
    RSSM_TRY(rssm_group_create(context, &options, &group, diag));
    RSSM_TRY(rssm_plan_info_get(rssm_group_plan(group, 0), batch, &info));
    st = rssm_verify_group(context, group, problem, device, options.cursors, n_slots, batch, (int)info.eager, cli->seed,
                           &report, diag);
    print_line(cli, info.candidate, batch, info.eager ? "eager" : "replay", &report, st, diag->text);
done:
    rssm_group_destroy(group);
    rssm_memory_free(context, device, options.cursors);
    return st;
}

typedef struct verify_work {
    rssm_candidates *candidates;
    size_t           first;
    uint32_t         batch;
    uint64_t         seed;
} verify_work;

static void verify_task(void *context, int i)
{
    const verify_work *work = context;
    rssm_candidate    *c = &work->candidates->items[work->first + (size_t)i];
    rssm_candidate_build(work->candidates, c);
    if (c->status == RSSM_OK) rssm_candidate_verify(work->candidates, c, work->batch, work->seed);
    rssm_object_free(&c->object);
}

// Every candidate, as many at a time as there are cores. One that the manifest's limits refuse is no failure.
static rssm_status verify_all(const rssm_cli *cli, rssm_context *context, uint32_t device, const rssm_problem *problem,
                              rssm_diag *diag)
{
    const int       n_cores = rssm_usable_cores();
    rssm_candidates candidates = {0};
    verify_work     work = {&candidates, 0, cli->n_batches ? cli->batches[0] : 4, cli->seed};
    uint32_t        n_wrong = 0, n_refused = 0;
    rssm_status     st;

    if ((st = rssm_candidates_list(context, device, problem, &candidates, diag)) != RSSM_OK) return st;
    for (; work.first < candidates.n; work.first += (size_t)n_cores) {
        const size_t left = candidates.n - work.first;
        const int    count = left < (size_t)n_cores ? (int)left : n_cores;
        rssm_parallel_for(n_cores, count, verify_task, &work);
        for (int i = 0; i < count; i++) {
            const rssm_candidate *c = &candidates.items[work.first + (size_t)i];
            char                  text[320];
            snprintf(text, sizeof text, "%s %s", c->config.manifest->name, c->config_text);
            print_line(cli, text, work.batch, "replay", &c->report, c->status, c->reason);
            n_refused += c->status == RSSM_E_UNSUPPORTED;
            n_wrong += c->status != RSSM_OK && c->status != RSSM_E_UNSUPPORTED;
        }
    }
    if (n_wrong > 0) {
        st = RSSM_FAIL(diag, RSSM_E_WRONG_RESULT, "%u of %zu candidates failed", n_wrong, candidates.n);
    } else if (!cli->json) {
        printf("%zu candidates, %u refused by the manifest's limits, the others right\n", candidates.n, n_refused);
    }
    rssm_candidates_free(&candidates);
    return st;
}

rssm_status rssm_command_verify(const rssm_cli *cli, rssm_diag *diag)
{
    static const uint32_t usual[] = {1, 5};
    rssm_status           st = RSSM_OK, worst = RSSM_OK;
    rssm_diag             first = {0};
    rssm_context         *context = NULL;
    uint32_t              device;
    rssm_model            model;

    RSSM_TRY(rssm_model_load(cli->model, &cli->model_options, &model, diag));
    RSSM_TRY(rssm_command_open(cli, &context, &device, diag));
    const uint32_t *batches = cli->n_batches ? cli->batches : usual;
    const uint32_t  n = cli->n_batches ? cli->n_batches : 2;
    for (uint32_t i = 0; i < model.n_shapes; i++) {
        rssm_problem problem;
        RSSM_TRY(rssm_problem_normalise(&model.shapes[i].problem, &problem, diag));
        for (uint32_t b = 0; b < (cli->all ? 1 : n); b++) {
            st = cli->all ? verify_all(cli, context, device, &problem, diag)
                          : verify_answer(cli, context, device, &problem, batches[b], diag);
            if (st != RSSM_OK && st != RSSM_E_WRONG_RESULT) goto done;
            if (st != RSSM_OK && worst == RSSM_OK) {   // go on: one wrong kernel must not hide another
                worst = st;
                first = *diag;
            }
        }
    }
    st = worst;
    if (st != RSSM_OK) *diag = first;
done:
    rssm_context_close(context);
    return st;
}
