// Where the cursors of a workload stand, and how many tokens of each step are accepted. See workload.h.
//
// T = 1: every phase of the window equally often. T > 1: the steady state of uniform acceptance: phases as often as in
// the long run (base/problem.h), and every slot keeps 1 .. T tokens of each step with equal probability, whatever it
// kept before. Among slots of like fill each count occurs equally often, so that even few slots fold about as often in
// every pass as many would. All draws come from the run's seed: every candidate meets the same traffic.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/problem.h"
#include "runtime/memory.h"
#include "tuner/workload_parts.h"

// The i-th slot of the order gets i mod L records, so that any L neighbours hold every phase.
static void spread_evenly(rssm_workload *w, int eager)
{
    for (uint32_t i = 0; i < w->n_slots; i++)
        w->cursors[w->slots[i]].h = eager ? 0 : (rssm_i32)(i % w->problem.window);
}

// The i-th slot of the order gets the quantile at frac(i / golden ratio): neighbours lie far apart, and any run of them
// holds the phases in proportion. Rings begin anywhere.
static void spread_as_accepted(rssm_workload *w, uint64_t *random)
{
    const double golden = 0.6180339887498949;
    double       shares[RSSM_PROBLEM_MAX_WINDOW + 1];

    rssm_problem_spec_phases(&w->problem, 0, shares);
    for (uint32_t i = 0; i < w->n_slots; i++) {
        rssm_cursor *c = &w->cursors[w->slots[i]];
        double       left = (i + 0.5) * golden;
        left -= floor(left);
        while ((uint32_t)c->h < w->problem.window && left >= shares[c->h])
            left -= shares[c->h++];
        c->start = (rssm_i32)(rssm_workload_random(random) % w->problem.ring_length);
    }
}

rssm_status rssm_workload_set_phases(rssm_workload *w, int eager, uint64_t *random, rssm_diag *diag)
{
    memset(w->cursors, 0, w->n_slots * sizeof *w->cursors);
    if (w->problem.max_tokens > 1) {
        spread_as_accepted(w, random);
    } else {
        spread_evenly(w, eager);
    }
    return rssm_memory_upload(w->context, w->device_index, w->buffers[RSSM_WORKLOAD_CURSORS], w->cursors,
                              w->n_slots * sizeof *w->cursors, diag);
}

// The first n of the order by fill: a counting sort.
static void sort_by_fill(const rssm_workload *w, uint32_t n, uint32_t *out_order)
{
    uint32_t begins[RSSM_PROBLEM_MAX_WINDOW + 2] = {0};

    for (uint32_t i = 0; i < n; i++)
        begins[w->cursors[w->slots[i]].h + 1]++;
    for (uint32_t h = 0; h < w->problem.window; h++)
        begins[h + 1] += begins[h];
    for (uint32_t i = 0; i < n; i++)
        out_order[begins[w->cursors[w->slots[i]].h]++] = i;
}

// A random order of 1 .. T for every T slots of like fill.
static void draw_counts(rssm_workload *w, uint32_t n, const uint32_t *order, uint64_t *random)
{
    const uint32_t T = w->problem.max_tokens;
    int32_t        counts[RSSM_PROBLEM_MAX_TOKENS] = {0};

    for (uint32_t first = 0; first < n; first += T) {
        for (uint32_t i = 0; i < T; i++) {
            const uint32_t j = (uint32_t)(rssm_workload_random(random) % (i + 1));
            counts[i] = counts[j];
            counts[j] = (int32_t)i + 1;
        }
        for (uint32_t i = 0; i < T && first + i < n; i++)
            w->accepted[order[first + i]] = counts[i];
    }
}

rssm_status rssm_workload_draw_accepted(rssm_workload *w, uint32_t n, uint64_t *random, rssm_diag *diag)
{
    rssm_status st = RSSM_OK;
    uint32_t   *order = rssm_calloc(n, sizeof *order);

    if (order == NULL) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a workload");
    RSSM_TRY(rssm_memory_download(w->context, w->device_index, w->cursors, w->buffers[RSSM_WORKLOAD_CURSORS],
                                  w->n_slots * sizeof *w->cursors, diag));
    for (uint32_t i = 0; i < n; i++) {
        const rssm_cursor *c = &w->cursors[w->slots[i]];
        if (c->h >= 0 && (uint32_t)c->h <= w->problem.window) continue;
        st = RSSM_FAIL(diag, RSSM_E_WRONG_RESULT, "advance left %d records in slot %d of a window of %u", c->h,
                       w->slots[i], w->problem.window);
        goto done;
    }
    sort_by_fill(w, n, order);
    draw_counts(w, n, order, random);
    RSSM_TRY(rssm_memory_upload(w->context, w->device_index, w->buffers[RSSM_WORKLOAD_ACCEPTED], w->accepted,
                                n * sizeof *w->accepted, diag));
done:
    rssm_free(order);
    return st;
}
