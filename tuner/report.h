// What a person reads: the table of winners, progress on a terminal, JSON Lines.
#ifndef RSSM_TUNER_REPORT_H
#define RSSM_TUNER_REPORT_H

#include "base/str.h"
#include "tuner/bandwidth.h"
#include "tuner/session.h"

// One line of the table: a batch of one layer shape.
typedef struct rssm_result_row {
    uint32_t batch;
    bool     eager;              // the conventional step is chosen
    char     candidate[256];
    double   step_ns;            // of the chosen one
    double   bytes;              // it must move in that time
    double   conventional_ns;    // best conventional step, of one token; 0: not measured
    double   plain_ns;           // plain loop on one thread; 0: not measured
    char     source[64];         // where the answer came from
} rssm_result_row;

// A heading for one layer shape, then its rows: aligned text, or one JSON object per row. Of steps of several tokens the
// object also says: draft_tokens (D = T - 1); committed_tokens, kept of a step on average under uniform acceptance;
// fold_share, of the steps; token_ns, step_ns over committed_tokens; mib_per_token, what the traffic model moves per
// committed token of one sequence; snapshot_mib_per_token, the same where every token's state is stored.
void rssm_report_table(const rssm_problem *problem, uint32_t n_layers, const char *device, const rssm_bandwidth *bandwidth,
                       const rssm_result_row *rows, size_t n, rssm_str *out);
void rssm_report_json(const rssm_problem *problem, uint32_t n_layers, const char *device, const rssm_bandwidth *bandwidth,
                      const rssm_result_row *rows, size_t n, rssm_str *out);

// "12.3 us", "4.56 ms": four significant digits at most.
void rssm_format_ns(double ns, char out_text[16]);

// One JSON object per finished unit of work.
void rssm_progress_json(const rssm_progress *progress, rssm_str *out);

// The line shown while work goes on, at most `width` columns.
void rssm_progress_line(const rssm_progress *progress, int width, rssm_str *out);

#endif
