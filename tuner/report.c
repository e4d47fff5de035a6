// See report.h.
#include "tuner/report.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/problem.h"

void rssm_format_ns(double ns, char out_text[16])
{
    static const struct {
        double      below, unit;
        const char *name;
    } units[] = {{1e3, 1.0, "ns"}, {1e6, 1e3, "us"}, {1e9, 1e6, "ms"}, {1e300, 1e9, "s"}};
    size_t i = 0;
    while (ns >= units[i].below) i++;
    const double value = ns / units[i].unit;
    snprintf(out_text, 16, "%.*f %s", value < 10 ? 3 : value < 100 ? 2 : 1, value, units[i].name);
}

// What the row is measured against: the conventional step reads and writes, a replayed one nearly only reads.
static double bandwidth_for(const rssm_bandwidth *bandwidth, const rssm_result_row *row)
{
    return row->eager && bandwidth->read_write > 0 ? bandwidth->read_write : bandwidth->read;
}

// Speed against something that takes `ns` for one token of each row.
static double speed_against(const rssm_problem *problem, const rssm_result_row *row, double ns)
{
    return ns * rssm_problem_committed_tokens(problem) / row->step_ns;
}

static double mib_per_token(const rssm_problem *problem, const rssm_result_row *row)
{
    return row->bytes / row->batch / rssm_problem_committed_tokens(problem) / 0x1p20;
}

static double snapshot_mib_per_token(const rssm_problem *problem)
{
    return rssm_problem_snapshot_bytes(problem) / rssm_problem_committed_tokens(problem) / 0x1p20;
}

static double gigabytes_per_second(const rssm_result_row *row)
{
    return row->bytes / row->step_ns;
}

// What the numbers of a shape mean: the problem, the machine, the traffic of steps of several tokens.
static void put_heading(const rssm_problem *problem, uint32_t n_layers, const char *device,
                        const rssm_bandwidth *bandwidth, rssm_str *out)
{
    rssm_str text = {0};

    rssm_problem_text(problem, &text);
    rssm_str_printf(out, "\n%s", rssm_str_c(&text));
    if (n_layers > 0) rssm_str_printf(out, "  (%u layers)", n_layers);
    rssm_str_printf(out, "\non %s", device);
    if (bandwidth->read > 0) rssm_str_printf(out, ", which here and now reads %.1f GB/s", bandwidth->read * 1e-9);
    if (bandwidth->read_write > 0)
        rssm_str_printf(out, " and moves %.1f GB/s reading and writing", bandwidth->read_write * 1e-9);
    if (problem->max_tokens > 1) {
        const rssm_spec_traffic t = rssm_problem_spec_traffic(problem, 0);
        rssm_str_printf(out, "\nuniform acceptance: %.1f of %u tokens kept per step, %.3f of the steps fold; by the model\n",
                        t.committed, problem->max_tokens, t.fold_share);
        rssm_str_printf(out, "of traffic %.3f MiB per kept token, %.3f where the state of every token is stored",
                        t.bytes / t.committed / 0x1p20, snapshot_mib_per_token(problem));
    }
    rssm_str_puts(out, "\n\n");
    rssm_str_free(&text);
}

static void put_row(const rssm_problem *problem, const rssm_bandwidth *bandwidth, const rssm_result_row *r,
                    bool has_plain, rssm_str *out)
{
    char text[16];

    rssm_format_ns(r->step_ns, text);
    rssm_str_printf(out, "%6u  %-7s %10s ", r->batch, r->eager ? "eager" : "replay", text);
    if (problem->max_tokens > 1) {
        rssm_format_ns(r->step_ns / rssm_problem_committed_tokens(problem), text);
        rssm_str_printf(out, "%10s ", text);
    }
    rssm_str_printf(out, "%8.1f ", gigabytes_per_second(r));
    if (bandwidth->read > 0) {
        rssm_str_printf(out, "%5.0f%%  ", 1e11 * gigabytes_per_second(r) / bandwidth_for(bandwidth, r));
    } else {
        rssm_str_printf(out, "%6s  ", "-");
    }
    if (r->conventional_ns > 0) {
        rssm_str_printf(out, "%11.2fx", speed_against(problem, r, r->conventional_ns));
    } else {
        rssm_str_printf(out, "%12s", "-");
    }
    if (has_plain) rssm_str_printf(out, "  %10.2fx", speed_against(problem, r, r->plain_ns));
    rssm_str_printf(out, "  %s\n", r->candidate);
}

void rssm_report_table(const rssm_problem *problem, uint32_t n_layers, const char *device, const rssm_bandwidth *bandwidth,
                       const rssm_result_row *rows, size_t n, rssm_str *out)
{
    const bool is_spec = problem->max_tokens > 1;
    bool       has_plain = false;

    put_heading(problem, n_layers, device, bandwidth, out);
    for (size_t i = 0; i < n; i++) has_plain |= rows[i].plain_ns > 0;
    rssm_str_printf(out, "%6s  %-7s %10s %s%8s %6s  %12s%s  %s\n", "batch", "mode", "step",
                    is_spec ? " per token " : "", "GB/s", "of bw", "conventional", has_plain ? "   plain loop" : "", "kernel");
    for (size_t i = 0; i < n; i++) put_row(problem, bandwidth, &rows[i], has_plain, out);
    rssm_str_puts(out, "\nstep: one layer, average over a window, checkpoints and rings out of cache; of bw: of the bandwidth\n"
                       "measured on this machine (reading; for eager, reading and writing); conventional: speed against the\n"
                       "best conventional step");
    rssm_str_puts(out, is_spec ? " of one token, per token; per token: the step over the tokens that each\n"
                                 "sequence keeps of it.\n" : ".\n");
}

void rssm_report_json(const rssm_problem *problem, uint32_t n_layers, const char *device, const rssm_bandwidth *bandwidth,
                      const rssm_result_row *rows, size_t n, rssm_str *out)
{
    rssm_str text = {0};
    rssm_problem_text(problem, &text);
    for (size_t i = 0; i < n; i++) {
        const rssm_result_row *r = &rows[i];
        rssm_str_puts(out, "{\"event\":\"result\",\"problem\":");
        rssm_json_quote(out, rssm_str_c(&text));
        rssm_str_puts(out, ",\"device\":");
        rssm_json_quote(out, device);
        rssm_str_printf(out, ",\"layers\":%u,\"batch\":%u,\"mode\":\"%s\",\"candidate\":", n_layers, r->batch,
                        r->eager ? "eager" : "replay");
        rssm_json_quote(out, r->candidate);
        rssm_str_puts(out, ",\"source\":");
        rssm_json_quote(out, r->source);
        rssm_str_printf(out, ",\"step_ns\":%.1f,\"bytes\":%.0f,\"gb_per_s\":%.3f", r->step_ns, r->bytes,
                        gigabytes_per_second(r));
        if (problem->max_tokens > 1) {
            const rssm_spec_traffic t = rssm_problem_spec_traffic(problem, 0);
            rssm_str_printf(out, ",\"draft_tokens\":%u,\"committed_tokens\":%.1f,\"fold_share\":%.4f,\"token_ns\":%.1f,"
                            "\"mib_per_token\":%.4f,\"snapshot_mib_per_token\":%.4f", problem->max_tokens - 1,
                            t.committed, t.fold_share, r->step_ns / t.committed, mib_per_token(problem, r),
                            snapshot_mib_per_token(problem));
        }
        if (bandwidth->read > 0)
            rssm_str_printf(out, ",\"bandwidth_gb_per_s\":%.3f", bandwidth_for(bandwidth, r) * 1e-9);
        if (r->conventional_ns > 0) rssm_str_printf(out, ",\"conventional_ns\":%.1f", r->conventional_ns);
        if (r->plain_ns > 0) rssm_str_printf(out, ",\"plain_loop_ns\":%.1f", r->plain_ns);
        rssm_str_puts(out, "}\n");
    }
    rssm_str_free(&text);
}

void rssm_progress_json(const rssm_progress *p, rssm_str *out)
{
    rssm_str_printf(out, "{\"event\":\"progress\",\"phase\":\"%s\",\"candidate\":", p->phase);
    rssm_json_quote(out, p->candidate ? p->candidate : "");
    if (p->batch > 0) rssm_str_printf(out, ",\"batch\":%u,\"mode\":\"%s\"", p->batch, rssm_db_mode_name(p->mode));
    if (p->median_ns > 0) rssm_str_printf(out, ",\"median_ns\":%.1f", p->median_ns);
    if (p->status != RSSM_OK) {
        rssm_str_printf(out, ",\"status\":\"%s\",\"reason\":", rssm_status_name(p->status));
        rssm_json_quote(out, p->reason ? p->reason : "");
    }
    rssm_str_printf(out, ",\"done\":%.4f,\"left_s\":%.1f}\n", p->total > 0 ? p->done / p->total : 1.0, p->left_s);
}

void rssm_progress_line(const rssm_progress *p, int width, rssm_str *out)
{
    char      left[32] = "", what[512], step[16] = "";
    const int percent = (int)(p->total > 0 ? 100.0 * p->done / p->total : 100.0);

    if (p->left_s >= 60.0) {
        snprintf(left, sizeof left, "%d min %02d s left", (int)(p->left_s / 60.0), (int)p->left_s % 60);
    } else if (p->left_s >= 0.0) {
        snprintf(left, sizeof left, "%d s left", (int)(p->left_s + 0.5));
    }
    if (p->median_ns > 0) rssm_format_ns(p->median_ns, step);
    if (p->batch > 0) {
        snprintf(what, sizeof what, "%s batch %u %s %s %s", p->phase, p->batch, rssm_db_mode_name(p->mode),
                 p->candidate ? p->candidate : "", step);
    } else {
        snprintf(what, sizeof what, "%s %s", p->phase, p->candidate ? p->candidate : "");
    }
    const size_t before = out->length;
    rssm_str_printf(out, "[%3d%%] %-17s %s", percent, left, what);
    if (out->data != NULL && out->length - before > (size_t)width) {
        out->length = before + (size_t)width;
        out->data[out->length] = '\0';
    }
}
