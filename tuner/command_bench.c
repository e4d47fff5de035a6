// `replayssm-tune bench`: what the database answers, timed through the public calls as a host would make them, beside
// the conventional step of one token of the same library and a plain float loop on one thread.
#include <stdio.h>
#include <string.h>

#include "base/problem.h"
#include "tuner/command.h"
#include "tuner/plain_loop.h"
#include "tuner/report.h"
#include "tuner/statistics.h"
#include "tuner/workload.h"

enum { SAMPLES = 7 };

static rssm_status time_group(rssm_workload *workload, const rssm_group *group, uint32_t batch, int eager,
                              double *out_ns, rssm_diag *diag)
{
    double      samples[SAMPLES];
    rssm_run   *run = NULL;
    rssm_status st = rssm_run_create(workload, group, batch, eager, &run, diag);

    for (int i = 0; i < SAMPLES && st == RSSM_OK; i++) st = rssm_run_sample(run, &samples[i], diag);
    rssm_run_destroy(run);
    if (st == RSSM_OK) *out_ns = rssm_statistics_of(samples, SAMPLES).median;
    return st;
}

static bool may_eager(const rssm_problem *problem)
{
    return problem->max_tokens == 1 &&
           (problem->checkpoint_dtype == RSSM_F32 || problem->flags & RSSM_PROBLEM_EAGER_16BIT);
}

static rssm_status time_conventional(rssm_context *context, rssm_workload *workload, uint32_t batch, double *out_ns,
                                     rssm_diag *diag)
{
    rssm_group_options options = rssm_workload_group_options(workload);
    rssm_group        *group = NULL;
    rssm_status        st;

    options.eager = RSSM_EAGER_ALWAYS;
    if ((st = rssm_group_create(context, &options, &group, diag)) != RSSM_OK) return st;
    st = time_group(workload, group, batch, 1, out_ns, diag);
    rssm_group_destroy(group);
    return st;
}

// Steps of several tokens are measured against the conventional step of one, on a workload of its own: two at a time
// might not fit.
static rssm_status time_single_tokens(rssm_context *context, uint32_t device, const rssm_problem *problem,
                                      const uint32_t *batches, uint32_t n, rssm_result_row *rows, rssm_diag *diag)
{
    rssm_problem   single = *problem;
    rssm_workload *workload = NULL;
    rssm_status    st = RSSM_OK;

    single.max_tokens = 1;
    if (problem->max_tokens == 1 || !may_eager(&single)) return RSSM_OK;
    RSSM_TRY(rssm_workload_create(context, device, &single, batches[n - 1], 0, &workload, diag));
    for (uint32_t b = 0; b < n; b++)
        RSSM_TRY(time_conventional(context, workload, batches[b], &rows[b].conventional_ns, diag));
done:
    rssm_workload_destroy(workload);
    return st;
}

static rssm_status bench_batch(rssm_context *context, rssm_workload *workload, uint32_t batch, double plain_ns,
                               rssm_result_row *out_row, rssm_diag *diag)
{
    const rssm_problem      *problem = rssm_workload_problem(workload);
    const rssm_group_options options = rssm_workload_group_options(workload);
    rssm_group              *group = NULL;
    rssm_plan_info           info = RSSM_PLAN_INFO_INIT;
    rssm_status              st = RSSM_OK;

    RSSM_TRY(rssm_group_create(context, &options, &group, diag));
    RSSM_TRY(rssm_plan_info_get(rssm_group_plan(group, 0), batch, &info));
    out_row->batch = batch;
    out_row->eager = info.eager;
    out_row->plain_ns = plain_ns * batch;
    out_row->bytes = batch * (info.eager ? rssm_problem_eager_bytes(problem) : rssm_problem_replay_bytes(problem));
    snprintf(out_row->candidate, sizeof out_row->candidate, "%s", info.candidate);
    snprintf(out_row->source, sizeof out_row->source, "%s", info.source);
    RSSM_TRY(time_group(workload, group, batch, (int)info.eager, &out_row->step_ns, diag));
    if (may_eager(problem)) RSSM_TRY(time_conventional(context, workload, batch, &out_row->conventional_ns, diag));
done:
    rssm_group_destroy(group);
    return st;
}

static rssm_status bench_shape(const rssm_cli *cli, rssm_context *context, uint32_t device,
                               const rssm_model_shape *shape, rssm_diag *diag)
{
    const rssm_device *d = &context->devices[device];
    uint32_t           batches[RSSM_CLI_MAX_BATCHES];
    const uint32_t     n = rssm_command_batches(cli, d, batches);
    rssm_result_row    rows[RSSM_CLI_MAX_BATCHES] = {0};
    rssm_bandwidth     bandwidth = {0};
    double             plain_ns = 0.0;
    rssm_workload     *workload = NULL;
    rssm_str           out = {0};
    rssm_status        st = RSSM_OK;

    RSSM_TRY(rssm_bandwidth_measure(context, device, &bandwidth, diag));
    if (d->info.backend == RSSM_CPU)
        RSSM_TRY(rssm_plain_loop_measure(&shape->problem, d->info.cache_bytes, &plain_ns, diag));
    RSSM_TRY(time_single_tokens(context, device, &shape->problem, batches, n, rows, diag));
    RSSM_TRY(rssm_workload_create(context, device, &shape->problem, batches[n - 1], 0, &workload, diag));
    for (uint32_t b = 0; b < n; b++) RSSM_TRY(bench_batch(context, workload, batches[b], plain_ns, &rows[b], diag));
    const rssm_problem *problem = rssm_workload_problem(workload);
    if (cli->json) {
        rssm_report_json(problem, shape->n_layers, d->info.name, &bandwidth, rows, n, &out);
    } else {
        rssm_report_table(problem, shape->n_layers, d->info.name, &bandwidth, rows, n, &out);
    }
    rssm_command_print(&out);
done:
    rssm_workload_destroy(workload);
    rssm_str_free(&out);
    return st;
}

rssm_status rssm_command_bench(const rssm_cli *cli, rssm_diag *diag)
{
    rssm_status   st = RSSM_OK;
    rssm_context *context = NULL;
    uint32_t      device;
    rssm_model    model;

    RSSM_TRY(rssm_model_load(cli->model, &cli->model_options, &model, diag));
    RSSM_TRY(rssm_command_open(cli, &context, &device, diag));
    for (uint32_t i = 0; i < model.n_shapes; i++)
        RSSM_TRY(bench_shape(cli, context, device, &model.shapes[i], diag));
done:
    rssm_context_close(context);
    return st;
}
