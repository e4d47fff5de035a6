// `replayssm-tune show`: what the database holds, per problem, device, batch and mode.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/problem.h"
#include "db/layers.h"
#include "tuner/command.h"
#include "tuner/report.h"

// T of a problem, of which the database keeps the canonical text.
static uint32_t tokens_of(const rssm_db_summary *e)
{
    const char *at = strstr(e->problem.text, " T=");
    const long  tokens = at ? strtol(at + 3, NULL, 10) : 1;

    return tokens > 1 ? (uint32_t)tokens : 1;
}

static double committed_of(const rssm_db_summary *e)
{
    const rssm_problem problem = {.max_tokens = tokens_of(e)};

    return rssm_problem_committed_tokens(&problem);
}

static double mib_per_token(const rssm_db_summary *e)
{
    return e->best->trial.bytes_per_step / e->bucket / committed_of(e) / 0x1p20;
}

static void show_text(const rssm_db_summary *e, const rssm_db_summary *previous, rssm_str *out)
{
    const bool is_spec = tokens_of(e) > 1;
    char       step[16] = "-", token[16] = "-", traffic[16] = "-";

    if (previous == NULL || !rssm_hash_equal(&previous->problem.key, &e->problem.key) ||
        !rssm_hash_equal(&previous->device.key, &e->device.key)) {
        rssm_str_printf(out, "\n%s\non %s (%s)\n\n%6s  %-7s %10s %s %6s %8s  %s\n", e->problem.text, e->device.name,
                        e->device.arch, "batch", "mode", "step", is_spec ? " per token MiB/token " : "", "trials",
                        "rejected", "best kernel");
    }
    if (e->best != NULL) {
        rssm_format_ns(e->best->trial.median_ns, step);
        rssm_format_ns(e->best->trial.median_ns / committed_of(e), token);
        snprintf(traffic, sizeof traffic, "%.3f", mib_per_token(e));
    }
    rssm_str_printf(out, "%6u  %-7s %10s ", e->bucket, rssm_db_mode_name(e->mode), step);
    if (is_spec) rssm_str_printf(out, "%10s %9s ", token, traffic);
    rssm_str_printf(out, " %6u %8u  %s %s\n", e->n_trials, e->n_rejected, e->best ? e->best->trial.template_name : "-",
                    e->best ? e->best->trial.config : "");
}

static void show_json(const rssm_db_summary *e, rssm_str *out)
{
    rssm_str_puts(out, "{\"event\":\"entry\",\"problem\":");
    rssm_json_quote(out, e->problem.text);
    rssm_str_puts(out, ",\"device\":");
    rssm_json_quote(out, e->device.name);
    rssm_str_printf(out, ",\"batch\":%u,\"mode\":\"%s\",\"trials\":%u,\"rejected\":%u", e->bucket,
                    rssm_db_mode_name(e->mode), e->n_trials, e->n_rejected);
    if (e->best != NULL) {
        rssm_str_puts(out, ",\"template\":");
        rssm_json_quote(out, e->best->trial.template_name);
        rssm_str_puts(out, ",\"config\":");
        rssm_json_quote(out, e->best->trial.config);
        rssm_str_printf(out, ",\"median_ns\":%.1f,\"mad_ns\":%.1f,\"samples\":%u,\"max_error\":%.3f",
                        e->best->trial.median_ns, e->best->trial.mad_ns, e->best->trial.n_samples,
                        e->best->trial.max_error);
        if (tokens_of(e) > 1)
            rssm_str_printf(out, ",\"draft_tokens\":%u,\"committed_tokens\":%.1f,\"token_ns\":%.1f,"
                            "\"mib_per_token\":%.4f", tokens_of(e) - 1, committed_of(e),
                            e->best->trial.median_ns / committed_of(e), mib_per_token(e));
    }
    rssm_str_puts(out, "}\n");
}

static rssm_status show_rejected(const rssm_cli *cli, rssm_db *db, const rssm_hash *problem, rssm_str *out,
                                 rssm_diag *diag)
{
    const rssm_db_query query = {.problem = problem, .outcome = RSSM_DB_REJECTED};
    rssm_db_rows        rows = {0};
    const rssm_status   st = rssm_db_trials(db, &query, &rows, diag);

    if (st != RSSM_OK) return st;
    for (size_t i = 0; i < rows.n; i++) {
        const rssm_db_trial *t = &rows.rows[i].trial;
        if (cli->json) {
            rssm_str_printf(out, "{\"event\":\"rejected\",\"batch\":%u,\"mode\":\"%s\",\"status\":\"%s\",\"template\":",
                            t->bucket, rssm_db_mode_name(t->mode), rssm_status_name(t->status));
            rssm_json_quote(out, t->template_name);
            rssm_str_puts(out, ",\"config\":");
            rssm_json_quote(out, t->config);
            rssm_str_puts(out, ",\"reason\":");
            rssm_json_quote(out, t->reason);
            rssm_str_puts(out, "}\n");
        } else {
            rssm_str_printf(out, "rejected at batch %u, %s: %s %s: %s\n", t->bucket, rssm_db_mode_name(t->mode),
                            t->template_name, t->config, t->reason);
        }
    }
    rssm_db_rows_free(&rows);
    return RSSM_OK;
}

static rssm_status show_problem(const rssm_cli *cli, rssm_db *db, const rssm_hash *problem, rssm_diag *diag)
{
    const rssm_db_query query = {.problem = problem};
    rssm_db_summaries   all = {0};
    rssm_str            out = {0};
    rssm_status         st;

    if ((st = rssm_db_summarise(db, &query, &all, diag)) != RSSM_OK) return st;
    for (size_t i = 0; i < all.n; i++) {
        if (cli->json) {
            show_json(&all.entries[i], &out);
        } else {
            show_text(&all.entries[i], i > 0 ? &all.entries[i - 1] : NULL, &out);
        }
    }
    if (all.n == 0 && !cli->json)
        rssm_str_printf(&out, "nothing is stored in %s%s; `replayssm-tune tune --model NAME` fills it\n",
                        rssm_db_path(db), problem ? " for this problem" : "");
    if (cli->rejected) st = show_rejected(cli, db, problem, &out, diag);
    rssm_command_print(&out);
    rssm_str_free(&out);
    rssm_db_summaries_free(&all);
    return st;
}

rssm_status rssm_command_show(const rssm_cli *cli, rssm_diag *diag)
{
    rssm_status st = RSSM_OK;
    rssm_db    *db = NULL;
    char       *path = NULL;
    rssm_model  model = {0};
    const char *given = cli->database ? cli->database : rssm_environment(RSSM_ENVIRONMENT_RSSM_DATABASE);

    if (cli->model != NULL) RSSM_TRY(rssm_model_load(cli->model, &cli->model_options, &model, diag));
    RSSM_TRY(rssm_layers_user_path(given, &path, diag));
    RSSM_TRY(rssm_db_open_read(path, &db, diag));
    if (cli->model == NULL) RSSM_TRY(show_problem(cli, db, NULL, diag));
    for (uint32_t i = 0; i < model.n_shapes; i++) {
        rssm_problem problem;
        RSSM_TRY(rssm_problem_normalise(&model.shapes[i].problem, &problem, diag));
        const rssm_hash key = rssm_problem_key(&problem);
        RSSM_TRY(show_problem(cli, db, &key, diag));
    }
done:
    rssm_db_close(db);
    rssm_free(path);
    return st;
}
