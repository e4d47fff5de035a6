// Timing candidates: a short screening of all, then finals of the few fastest. See session_parts.h.
#include <math.h>
#include <stdio.h>

#include "runtime/group.h"
#include "tuner/session_parts.h"
#include "tuner/statistics.h"

static const double FINAL_MARGIN = 1.06;   // finalists are within this of the best
static const double FAR_BEHIND = 1.25;     // not worth a second sample

static double best_so_far(rssm_session *s, uint32_t b, int mode)
{
    double best = INFINITY;
    for (size_t i = 0; i < s->candidates.n; i++) {
        const rssm_cell *c = rssm_session_cell(s, i, b, mode);
        if (c->known && c->median_ns < best) best = c->median_ns;
    }
    return best;
}

// Samples of a screening: one is enough for a candidate that is far behind.
static rssm_status screen_run(rssm_session *s, rssm_run *run, uint32_t b, int mode, double *samples, uint32_t *out_n,
                              rssm_diag *diag)
{
    const double best = best_so_far(s, b, mode);
    uint32_t     n = 0;
    rssm_status  st = RSSM_OK;
    while (n < RSSM_SCREEN_SAMPLES && (st = rssm_run_sample(run, &samples[n], diag)) == RSSM_OK)
        if (samples[n++] > FAR_BEHIND * best) break;
    *out_n = n;
    return st;
}

static rssm_status record_measurement(rssm_session *s, size_t i, uint32_t b, int mode, double *samples, uint32_t n,
                                      const char *phase, rssm_diag *diag)
{
    const rssm_candidate *c = &s->candidates.items[i];
    const rssm_statistics statistics = rssm_statistics_of(samples, n);
    rssm_db_trial         trial = rssm_session_trial(s, c, s->options->batches[b], mode);

    trial.median_ns = statistics.median;
    trial.mad_ns = statistics.mad;
    trial.min_ns = statistics.min;
    trial.n_samples = n;
    *rssm_session_cell(s, i, b, mode) = (rssm_cell){true, statistics.median, n};
    s->result.n_measured++;
    rssm_session_report(s, (rssm_progress){.phase = phase, .candidate = c->config_text, .batch = s->options->batches[b],
                              .mode = (rssm_db_mode)mode, .median_ns = statistics.median}, RSSM_SAMPLE_UNIT * n);
    return rssm_session_record(s, c, &trial, diag);
}

static rssm_status candidate_group(rssm_session *s, const rssm_candidate *c, int mode, rssm_group **out_group,
                                   rssm_diag *diag)
{
    rssm_group_options options = rssm_workload_group_options(s->workload);
    options.eager = mode == RSSM_DB_EAGER ? RSSM_EAGER_ALWAYS : RSSM_EAGER_NEVER;
    return rssm_group_create_candidate(s->context, &options, &c->config, c->object.bytes, c->object.n, out_group, diag);
}

// Times one candidate at every batch and mode that is not known yet.
static rssm_status screen(rssm_session *s, size_t i, rssm_diag *diag)
{
    rssm_candidate *c = &s->candidates.items[i];
    rssm_status     st = RSSM_OK;

    for (int mode = 0; mode < rssm_session_modes(s) && !rssm_session_out_of_time(s); mode++) {
        rssm_group *group = NULL;
        rssm_diag   why = {0};
        if ((st = candidate_group(s, c, mode, &group, &why)) != RSSM_OK) goto rejected;
        for (uint32_t b = 0; b < s->options->n_batches && st == RSSM_OK; b++) {
            double    samples[RSSM_SCREEN_SAMPLES];
            uint32_t  n_samples = 0;
            rssm_run *run = NULL;
            if (rssm_session_cell(s, i, b, mode)->known) continue;
            st = rssm_run_create(s->workload, group, s->options->batches[b], mode == RSSM_DB_EAGER, &run, &why);
            if (st == RSSM_OK) st = screen_run(s, run, b, mode, samples, &n_samples, &why);
            rssm_run_destroy(run);
            if (st != RSSM_OK) break;
            if ((st = record_measurement(s, i, b, mode, samples, n_samples, "timing", diag)) != RSSM_OK) {
                rssm_group_destroy(group);
                return st;
            }
        }
        rssm_group_destroy(group);
    rejected:
        if (st == RSSM_OK) continue;
        c->status = st;
        snprintf(c->reason, sizeof c->reason, "%s", why.text);
        return rssm_session_record_rejection(s, c, diag);
    }
    return RSSM_OK;
}

// The few fastest of a batch and mode, fastest first.
static uint32_t pick_finalists(rssm_session *s, uint32_t b, int mode, size_t out_indices[RSSM_FINALISTS])
{
    uint32_t n = 0;
    for (size_t i = 0; i < s->candidates.n; i++) {
        const rssm_cell *c = rssm_session_cell(s, i, b, mode);
        if (s->candidates.items[i].status != RSSM_OK || !c->known) continue;
        uint32_t at = n < RSSM_FINALISTS ? n : RSSM_FINALISTS - 1;
        if (n == RSSM_FINALISTS && rssm_session_cell(s, out_indices[at], b, mode)->median_ns <= c->median_ns) continue;
        if (n < RSSM_FINALISTS) n++;
        for (; at > 0 && rssm_session_cell(s, out_indices[at - 1], b, mode)->median_ns > c->median_ns; at--)
            out_indices[at] = out_indices[at - 1];
        out_indices[at] = i;
    }
    while (n > 1 && rssm_session_cell(s, out_indices[n - 1], b, mode)->median_ns >
                        FINAL_MARGIN * rssm_session_cell(s, out_indices[0], b, mode)->median_ns)
        n--;
    return n;
}

// Times the finalists in turn, so that drift of the machine meets all of them alike.
static rssm_status run_finals(rssm_session *s, uint32_t b, int mode, rssm_diag *diag)
{
    size_t      indices[RSSM_FINALISTS];
    const uint32_t n = pick_finalists(s, b, mode, indices);
    rssm_group *groups[RSSM_FINALISTS] = {NULL};
    rssm_run   *runs[RSSM_FINALISTS] = {NULL};
    double      samples[RSSM_FINALISTS][RSSM_FINAL_SAMPLES];
    rssm_status st = RSSM_OK;

    for (uint32_t f = 0; f < n; f++) {
        rssm_candidate *c = &s->candidates.items[indices[f]];
        if (c->object.bytes == NULL) rssm_candidate_build(&s->candidates, c);
        if (c->status != RSSM_OK) goto done;   // built before and not now: leave the screening's answer
        RSSM_TRY(candidate_group(s, c, mode, &groups[f], diag));
    }
    for (uint32_t round = 0; round < RSSM_FINAL_SAMPLES; round++) {
        for (uint32_t f = 0; f < n; f++) {   // the workload's cursors serve one run at a time
            RSSM_TRY(rssm_run_create(s->workload, groups[f], s->options->batches[b], mode == RSSM_DB_EAGER, &runs[f],
                                     diag));
            RSSM_TRY(rssm_run_sample(runs[f], &samples[f][round], diag));
            rssm_run_destroy(runs[f]);
            runs[f] = NULL;
        }
    }
    for (uint32_t f = 0; f < n; f++)
        RSSM_TRY(record_measurement(s, indices[f], b, mode, samples[f], RSSM_FINAL_SAMPLES, "finals", diag));
done:
    for (uint32_t f = 0; f < n; f++) {
        rssm_run_destroy(runs[f]);
        rssm_group_destroy(groups[f]);
    }
    return st;
}

bool rssm_session_is_complete(rssm_session *s, uint32_t b, int mode)
{
    const rssm_cell *best = NULL;
    for (size_t i = 0; i < s->candidates.n; i++) {
        const rssm_cell *c = rssm_session_cell(s, i, b, mode);
        if (s->candidates.items[i].status != RSSM_OK) continue;
        if (!c->known) return false;
        if (best == NULL || c->median_ns < best->median_ns) best = c;
    }
    return best == NULL || best->n_samples >= RSSM_FINAL_SAMPLES;
}

// Finals until the fastest has taken part in one: a final may raise its finalists above a candidate that was left out.
static rssm_status finish(rssm_session *s, uint32_t b, int mode, rssm_diag *diag)
{
    rssm_status st = RSSM_OK;
    for (size_t round = 0; round < s->candidates.n; round++) {   // each round brings at least one new finalist
        if (st != RSSM_OK || rssm_session_is_complete(s, b, mode) || rssm_session_out_of_time(s)) break;
        st = run_finals(s, b, mode, diag);
    }
    return st;
}

rssm_status rssm_session_measure(rssm_session *s, rssm_diag *diag)
{
    const rssm_session_options *o = s->options;
    rssm_status                 st = RSSM_OK;

    RSSM_TRY(rssm_workload_create(s->context, s->device_index, o->problem, o->batches[o->n_batches - 1], 0,
                                  &s->workload, diag));
    for (size_t k = 0; k < s->candidates.n && !rssm_session_out_of_time(s); k++) {
        const size_t          i = rssm_session_order(s, k);
        const rssm_candidate *c = &s->candidates.items[i];
        if (rssm_session_is_wanted(s, i) && c->is_verified && c->object.bytes != NULL) RSSM_TRY(screen(s, i, diag));   // I1
    }
    for (uint32_t b = 0; b < o->n_batches; b++)
        for (int mode = 0; mode < rssm_session_modes(s); mode++) RSSM_TRY(finish(s, b, mode, diag));
done:
    return st;
}

