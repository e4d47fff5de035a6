// `replayssm-tune tune`: a session per layer shape, progress meanwhile, the table of winners at the end.
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/problem.h"
#include "db/layers.h"
#include "tuner/command.h"
#include "tuner/presets.h"
#include "tuner/report.h"
#include "tuner/session.h"

enum { LINE_EVERY_NS = 100000000, PLAIN_LINE_EVERY_S = 10 };

typedef struct shown_progress {
    bool     json, is_terminal;
    int      width;
    uint64_t last_ns;
} shown_progress;

// A line that overwrites itself on a terminal, a line now and then elsewhere, an object per unit in JSON.
static void show_progress(void *user, const rssm_progress *p)
{
    shown_progress *shown = user;
    rssm_str        line = {0};
    const uint64_t  now = rssm_now_ns();

    if (shown->json) {
        rssm_progress_json(p, &line);
        rssm_command_print(&line);
    } else if (p->status != RSSM_OK) {
        fprintf(stderr, "%srejected %s: %s\n", shown->is_terminal ? "\r\033[K" : "", p->candidate, p->reason);
    } else if (now - shown->last_ns >= (shown->is_terminal ? LINE_EVERY_NS : PLAIN_LINE_EVERY_S * 1000000000ull)) {
        rssm_progress_line(p, shown->width - 1, &line);
        fprintf(stderr, shown->is_terminal ? "\r\033[K%s" : "%s\n", rssm_str_c(&line));
        fflush(stderr);
        shown->last_ns = now;
    }
    rssm_str_free(&line);
}

static const rssm_db_row *find_row(const rssm_db_rows *rows, uint32_t batch, rssm_db_mode mode)
{
    for (size_t i = 0; i < rows->n; i++)
        if (rows->rows[i].trial.bucket == batch && rows->rows[i].trial.mode == mode) return &rows->rows[i];
    return NULL;
}

// One table row per batch: the faster mode if it may be used, and its speed against the conventional step.
static size_t collect_rows(const rssm_problem *problem, const rssm_db_rows *winners, const uint32_t *batches, uint32_t n,
                           rssm_result_row *out_rows)
{
    const bool may_eager = problem->max_tokens == 1 && (problem->checkpoint_dtype == RSSM_F32 ||
                                                        problem->flags & RSSM_PROBLEM_EAGER_16BIT);
    size_t     n_rows = 0;
    for (uint32_t b = 0; b < n; b++) {
        const rssm_db_row *replay = find_row(winners, batches[b], RSSM_DB_REPLAY);
        const rssm_db_row *eager = find_row(winners, batches[b], RSSM_DB_EAGER);
        const bool         use_eager =
            eager && may_eager && (replay == NULL || eager->trial.median_ns < replay->trial.median_ns);
        const rssm_db_row *chosen = use_eager ? eager : replay;
        if (chosen == NULL) continue;
        rssm_result_row *r = &out_rows[n_rows++];
        *r = (rssm_result_row){.batch = batches[b], .eager = use_eager, .step_ns = chosen->trial.median_ns,
                               .bytes = chosen->trial.bytes_per_step,
                               .conventional_ns = eager ? eager->trial.median_ns : 0.0};
        snprintf(r->candidate, sizeof r->candidate, "%s %s", chosen->trial.template_name, chosen->trial.config);
        snprintf(r->source, sizeof r->source, "tuned");
    }
    return n_rows;
}

static rssm_status print_winners(const rssm_cli *cli, rssm_context *context, uint32_t device, rssm_db *db,
                                 const rssm_problem *problem, uint32_t n_layers, const uint32_t *batches,
                                 uint32_t n_batches, const rssm_bandwidth *bandwidth, rssm_diag *diag)
{
    const rssm_device  *d = &context->devices[device];
    const rssm_hash     key = rssm_problem_key(problem);
    const rssm_db_query query = {.problem = &key, .device = &d->key,
                                 .policy = rssm_session_policy(d, problem->max_tokens)};
    rssm_db_rows        winners = {0};
    rssm_result_row     rows[RSSM_CLI_MAX_BATCHES];
    rssm_str            out = {0};
    rssm_status         st;

    if ((st = rssm_db_winners(db, &query, NULL, NULL, &winners, diag)) != RSSM_OK) return st;
    const size_t n = collect_rows(problem, &winners, batches, n_batches, rows);
    if (cli->json) {
        rssm_report_json(problem, n_layers, d->info.name, bandwidth, rows, n, &out);
    } else {
        rssm_report_table(problem, n_layers, d->info.name, bandwidth, rows, n, &out);
    }
    rssm_command_print(&out);
    rssm_db_rows_free(&winners);
    rssm_str_free(&out);
    return RSSM_OK;
}

static void print_summary(const rssm_cli *cli, const rssm_session_result *r, const char *database, double seconds)
{
    rssm_str out = {0};
    if (cli->json) {
        rssm_str_printf(&out, "{\"event\":\"session\",\"candidates\":%u,\"rejected\":%u,\"measured\":%u,"
                        "\"out_of_time\":%s,\"seconds\":%.2f}\n", r->n_candidates, r->n_rejected, r->n_measured,
                        r->out_of_time ? "true" : "false", seconds);
    } else if (r->n_measured == 0 && !r->out_of_time) {
        rssm_str_printf(&out, "answered from %s: all %u candidates were measured before\n", database, r->n_candidates);
    } else {
        rssm_str_printf(&out, "%u candidates, %u rejected, %u measurements in %.0f s, stored in %s\n", r->n_candidates,
                        r->n_rejected, r->n_measured, seconds, database);
    }
    if (r->out_of_time && !cli->json)
        rssm_str_puts(&out, "the budget ended the search: run the same command again to go on\n");
    rssm_command_print(&out);
    rssm_str_free(&out);
}

static rssm_status tune_shape(const rssm_cli *cli, rssm_context *context, uint32_t device, rssm_db *db,
                              const rssm_model_shape *shape, const rssm_bandwidth *bandwidth, rssm_diag *diag)
{
    const uint64_t      began = rssm_now_ns();
    uint32_t            batches[RSSM_CLI_MAX_BATCHES];
    const uint32_t      n_batches = rssm_command_batches(cli, &context->devices[device], batches);
    struct winsize      window = {0};
    shown_progress      shown = {.json = cli->json, .is_terminal = isatty(STDERR_FILENO) != 0, .width = 100};
    rssm_session_result result;
    rssm_problem        problem;
    rssm_status         st;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 20) shown.width = window.ws_col;
    if ((st = rssm_problem_normalise(&shape->problem, &problem, diag)) != RSSM_OK) return st;
    const rssm_session_options options = {
        .problem = &problem,
        .batches = batches,
        .n_batches = n_batches,
        .budget_s = cli->budget_s,
        .progress = show_progress,
        .progress_user = &shown,
    };
    st = rssm_session_run(context, device, db, &options, &result, diag);
    if (shown.is_terminal && !cli->json) fputs("\r\033[K", stderr);
    if (st != RSSM_OK) return st;
    st = print_winners(cli, context, device, db, &problem, shape->n_layers, batches, n_batches, bandwidth, diag);
    if (st != RSSM_OK) return st;
    print_summary(cli, &result, rssm_db_path(db), (double)(rssm_now_ns() - began) * 1e-9);
    return RSSM_OK;
}

// First line of JSON output: where and how what follows was measured.
static void print_origin(const rssm_cli *cli, const rssm_device *device)
{
    rssm_str  out = {0};
    char      date[32];
    time_t    now = time(NULL);
    struct tm utc;

    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    rssm_str_puts(&out, "{\"event\":\"run\",\"device\":");
    rssm_json_quote(&out, device->info.name);
    rssm_str_puts(&out, ",\"driver\":");
    rssm_json_quote(&out, device->driver);
    rssm_str_printf(&out, ",\"date\":\"%s\",\"version\":\"%s\",\"policy\":\"%s\",\"command\":", date, rssm_version(),
                    rssm_session_policy(device, cli->model_options.max_tokens));
    rssm_json_quote(&out, cli->words);
    rssm_str_puts(&out, "}\n");
    rssm_command_print(&out);
    rssm_str_free(&out);
}

rssm_status rssm_command_tune(const rssm_cli *cli, rssm_diag *diag)
{
    rssm_status    st = RSSM_OK;
    rssm_context  *context = NULL;
    rssm_db       *db = NULL;
    char          *path = NULL;
    uint32_t       device;
    rssm_model     model;
    rssm_bandwidth bandwidth = {0};

    RSSM_TRY(rssm_model_load(cli->model, &cli->model_options, &model, diag));
    RSSM_TRY(rssm_command_open(cli, &context, &device, diag));
    RSSM_TRY(rssm_layers_user_path(context->database, &path, diag));
    RSSM_TRY(rssm_db_open_write(path, &db, diag));
    if (cli->json) print_origin(cli, &context->devices[device]);
    RSSM_TRY(rssm_session_advance(context, device, db, diag));
    RSSM_TRY(rssm_bandwidth_measure(context, device, &bandwidth, diag));
    for (uint32_t i = 0; i < model.n_shapes; i++)
        RSSM_TRY(tune_shape(cli, context, device, db, &model.shapes[i], &bandwidth, diag));
done:
    rssm_db_close(db);
    rssm_context_close(context);
    rssm_free(path);
    return st;
}
