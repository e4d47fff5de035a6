// See session.h.
#include "tuner/session.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/problem.h"
#include "base/thread.h"
#include "runtime/group.h"
#include "tuner/candidates.h"
#include "tuner/statistics.h"
#include "tuner/workload.h"

enum {
    VERIFY_ROWS = 4,
    SCREEN_SAMPLES = 2,
    FINAL_SAMPLES = 9,
    FINALISTS = 4,             // at most, of those within FINAL_MARGIN of the best
    MODES = 2,
};
static const double FINAL_MARGIN = 1.06;

// Relative cost of units of work, for the time left; corrected by what they turn out to cost.
static const double BUILD_UNIT = 1.0, VERIFY_UNIT = 4.0, SAMPLE_UNIT = 0.3;

// A measurement that may be in the database already.
typedef struct cell {
    bool   known;
    double median_ns;
    uint32_t n_samples;
} cell;

typedef struct session {
    rssm_context               *context;
    const rssm_device          *device;
    uint32_t                    device_index;
    rssm_db                    *db;
    const rssm_session_options *options;
    rssm_candidates             candidates;
    rssm_db_problem             problem;
    rssm_str                    problem_text;
    cell                       *cells;        // [candidate][batch][mode]
    rssm_workload              *workload;
    rssm_session_result         result;
    uint64_t                    began_ns;
    double                      done, total;  // units
} session;

const char *rssm_session_policy(const rssm_device *device)
{
    return device->info.backend == RSSM_CUDA
               ? "v1 graph cold-state hot-activations phases=spread"
               : "v1 direct cold-state hot-activations phases=spread";
}

static cell *cell_at(session *s, size_t candidate, uint32_t batch, int mode)
{
    return &s->cells[(candidate * s->options->n_batches + batch) * MODES + (size_t)mode];
}

static double seconds_since(uint64_t ns)
{
    return (double)(rssm_now_ns() - ns) * 1e-9;
}

static bool out_of_time(session *s)
{
    if (s->options->budget_s > 0 && seconds_since(s->began_ns) > s->options->budget_s) s->result.out_of_time = true;
    return s->result.out_of_time;
}

static void report(session *s, rssm_progress p, double units)
{
    s->done += units;
    if (s->options->progress == NULL) return;
    p.done = s->done;
    p.total = s->total > s->done ? s->total : s->done;
    p.left_s = s->done > 0 ? seconds_since(s->began_ns) / s->done * (p.total - s->done) : -1.0;
    s->options->progress(s->options->progress_user, &p);
}

static rssm_db_trial trial_of(const session *s, const rssm_candidate *c, uint32_t batch, int mode)
{
    const double bytes = mode == RSSM_DB_EAGER ? rssm_problem_eager_bytes(s->options->problem)
                                               : rssm_problem_replay_bytes(s->options->problem);
    return (rssm_db_trial){
        .device = {s->device->key, s->device->key_text, s->device->info.name, s->device->info.arch},
        .env = {s->device->driver, rssm_toolchain_text(s->candidates.toolchain), rssm_version()},
        .problem = s->problem,
        .policy = rssm_session_policy(s->device),
        .bucket = batch,
        .mode = (rssm_db_mode)mode,
        .template_name = c->config.manifest->name,
        .template_version = c->config.manifest->version,
        .config = c->config_text,
        .source_hash = c->identity.source_hash,
        .build_key = c->identity.build_key,
        .status = c->status,
        .reason = c->reason,
        .bytes_per_step = bytes * batch,
        .max_error = c->max_error,
        .registers = c->object.registers,
        .shared_bytes = c->object.shared_bytes,
        .spill_bytes = c->object.spill_bytes,
    };
}

static rssm_status record(session *s, const rssm_candidate *c, const rssm_db_trial *trial, rssm_diag *diag)
{
    const rssm_db_binary binary = {
        .kind = c->object.kind == RSSM_OBJECT_CUBIN ? RSSM_DB_CUBIN : RSSM_DB_HOST,
        .arch = s->device->info.arch,
        .layout_hash = c->identity.layout_hash,
        .bytes = c->object.bytes,
        .n_bytes = c->object.n,
    };
    return rssm_db_record(s->db, trial, c->object.bytes && c->status == RSSM_OK ? &binary : NULL, diag);
}

// What the database knows already. A candidate that was rejected anywhere stays rejected.
static rssm_status load_known(session *s, rssm_diag *diag)
{
    for (size_t i = 0; i < s->candidates.n; i++) {
        rssm_candidate *c = &s->candidates.items[i];
        for (uint32_t b = 0; b < s->options->n_batches; b++) {
            for (int mode = 0; mode < MODES; mode++) {
                const rssm_db_trial trial = trial_of(s, c, s->options->batches[b], mode);
                rssm_db_known       known = {0};
                const rssm_status   st = rssm_db_trial_known(s->db, &trial, &known, diag);
                if (st != RSSM_OK) return st;
                if (!known.is_known) continue;
                if (known.status != RSSM_OK) {
                    c->status = known.status;
                    snprintf(c->reason, sizeof c->reason, "rejected before");
                    continue;
                }
                *cell_at(s, i, b, mode) = (cell){.known = true, .median_ns = known.median_ns};
                c->is_verified = true;
            }
        }
    }
    return RSSM_OK;
}

// Whether some batch and mode of the candidate still has to be timed.
static bool is_wanted(session *s, size_t i)
{
    if (s->candidates.items[i].status != RSSM_OK) return false;
    for (uint32_t b = 0; b < s->options->n_batches; b++)
        for (int mode = 0; mode < MODES; mode++)
            if (!cell_at(s, i, b, mode)->known) return true;
    return false;
}

static rssm_status record_rejection(session *s, const rssm_candidate *c, rssm_diag *diag)
{
    for (uint32_t b = 0; b < s->options->n_batches; b++) {
        for (int mode = 0; mode < MODES; mode++) {
            const rssm_db_trial trial = trial_of(s, c, s->options->batches[b], mode);
            const rssm_status   st = record(s, c, &trial, diag);
            if (st != RSSM_OK) return st;
        }
    }
    return RSSM_OK;
}

typedef struct batch_of_work {
    session *s;
    size_t  *indices;   // candidates
} batch_of_work;

static void build_task(void *context, int i)
{
    batch_of_work *work = context;
    rssm_candidate_build(&work->s->candidates, &work->s->candidates.items[work->indices[i]]);
}

static void verify_task(void *context, int i)
{
    batch_of_work  *work = context;
    rssm_candidate *c = &work->s->candidates.items[work->indices[i]];
    if (c->status == RSSM_OK && !c->is_verified) rssm_candidate_verify(&work->s->candidates, c, VERIFY_ROWS, 7);
}

// Builds and verifies what is wanted, a few at a time so that progress shows and a budget ends it.
static rssm_status build_and_verify(session *s, rssm_diag *diag)
{
    const int     n_cores = rssm_usable_cores();
    const int     n_verifiers = s->device->info.backend == RSSM_CPU ? n_cores : 1;
    rssm_status   st = RSSM_OK;
    size_t       *indices = rssm_calloc(s->candidates.n, sizeof *indices);
    batch_of_work work = {s, NULL};
    size_t        n = 0;

    if (indices == NULL) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a session");
    for (size_t i = 0; i < s->candidates.n; i++)
        if (is_wanted(s, i)) indices[n++] = i;
    for (size_t at = 0; at < n && !out_of_time(s); at += (size_t)n_cores) {
        const int count = n - at < (size_t)n_cores ? (int)(n - at) : n_cores;
        work.indices = indices + at;
        rssm_parallel_for(n_cores, count, build_task, &work);
        report(s, (rssm_progress){.phase = "building", .candidate = s->candidates.items[indices[at]].config_text},
               BUILD_UNIT * count);
        rssm_parallel_for(n_verifiers, count, verify_task, &work);
        for (int i = 0; i < count; i++) {
            const rssm_candidate *c = &s->candidates.items[work.indices[i]];
            report(s, (rssm_progress){.phase = "verifying", .candidate = c->config_text, .status = c->status,
                                      .reason = c->reason}, VERIFY_UNIT);
            if (c->status != RSSM_OK) RSSM_TRY(record_rejection(s, c, diag));
        }
    }
done:
    rssm_free(indices);
    return st;
}

static rssm_status sample_run(rssm_run *run, uint32_t n, double *samples, rssm_diag *diag)
{
    rssm_status st = RSSM_OK;
    for (uint32_t i = 0; i < n && st == RSSM_OK; i++) st = rssm_run_sample(run, &samples[i], diag);
    return st;
}

static rssm_status record_measurement(session *s, size_t i, uint32_t b, int mode, double *samples, uint32_t n,
                                      const char *phase, rssm_diag *diag)
{
    const rssm_candidate *c = &s->candidates.items[i];
    const rssm_statistics statistics = rssm_statistics_of(samples, n);
    rssm_db_trial         trial = trial_of(s, c, s->options->batches[b], mode);

    trial.median_ns = statistics.median;
    trial.mad_ns = statistics.mad;
    trial.min_ns = statistics.min;
    trial.n_samples = n;
    *cell_at(s, i, b, mode) = (cell){true, statistics.median, n};
    s->result.n_measured++;
    report(s, (rssm_progress){.phase = phase, .candidate = c->config_text, .batch = s->options->batches[b],
                              .mode = (rssm_db_mode)mode, .median_ns = statistics.median}, SAMPLE_UNIT * n);
    return record(s, c, &trial, diag);
}

static rssm_status candidate_group(session *s, const rssm_candidate *c, int mode, rssm_group **out_group,
                                   rssm_diag *diag)
{
    rssm_group_options options = rssm_workload_group_options(s->workload);
    options.eager = mode == RSSM_DB_EAGER ? RSSM_EAGER_ALWAYS : RSSM_EAGER_NEVER;
    return rssm_group_create_candidate(s->context, &options, &c->config, c->object.bytes, c->object.n, out_group, diag);
}

// Times one candidate at every batch and mode that is not known yet.
static rssm_status screen(session *s, size_t i, rssm_diag *diag)
{
    rssm_candidate *c = &s->candidates.items[i];
    rssm_status     st = RSSM_OK;

    for (int mode = 0; mode < MODES && !out_of_time(s); mode++) {
        rssm_group *group = NULL;
        rssm_diag   why = {0};
        if (mode == RSSM_DB_EAGER && s->options->problem->max_tokens > 1) break;
        if ((st = candidate_group(s, c, mode, &group, &why)) != RSSM_OK) goto rejected;
        for (uint32_t b = 0; b < s->options->n_batches && st == RSSM_OK; b++) {
            double    samples[SCREEN_SAMPLES];
            rssm_run *run = NULL;
            if (cell_at(s, i, b, mode)->known) continue;
            st = rssm_run_create(s->workload, group, s->options->batches[b], mode == RSSM_DB_EAGER, &run, &why);
            if (st == RSSM_OK) st = sample_run(run, SCREEN_SAMPLES, samples, &why);
            rssm_run_destroy(run);
            if (st != RSSM_OK) break;
            if ((st = record_measurement(s, i, b, mode, samples, SCREEN_SAMPLES, "timing", diag)) != RSSM_OK) {
                rssm_group_destroy(group);
                return st;
            }
        }
        rssm_group_destroy(group);
    rejected:
        if (st == RSSM_OK) continue;
        c->status = st;
        snprintf(c->reason, sizeof c->reason, "%s", why.text);
        return record_rejection(s, c, diag);
    }
    return RSSM_OK;
}

// The few fastest of a batch and mode, fastest first.
static uint32_t pick_finalists(session *s, uint32_t b, int mode, size_t out_indices[FINALISTS])
{
    uint32_t n = 0;
    for (size_t i = 0; i < s->candidates.n; i++) {
        const cell *c = cell_at(s, i, b, mode);
        if (s->candidates.items[i].status != RSSM_OK || !c->known) continue;
        uint32_t at = n < FINALISTS ? n : FINALISTS - 1;
        if (n == FINALISTS && cell_at(s, out_indices[at], b, mode)->median_ns <= c->median_ns) continue;
        if (n < FINALISTS) n++;
        for (; at > 0 && cell_at(s, out_indices[at - 1], b, mode)->median_ns > c->median_ns; at--)
            out_indices[at] = out_indices[at - 1];
        out_indices[at] = i;
    }
    while (n > 1 && cell_at(s, out_indices[n - 1], b, mode)->median_ns >
                        FINAL_MARGIN * cell_at(s, out_indices[0], b, mode)->median_ns)
        n--;
    return n;
}

// Times the finalists in turn, so that drift of the machine meets all of them alike.
static rssm_status run_finals(session *s, uint32_t b, int mode, rssm_diag *diag)
{
    size_t      indices[FINALISTS];
    const uint32_t n = pick_finalists(s, b, mode, indices);
    rssm_group *groups[FINALISTS] = {NULL};
    rssm_run   *runs[FINALISTS] = {NULL};
    double      samples[FINALISTS][FINAL_SAMPLES];
    rssm_status st = RSSM_OK;

    for (uint32_t f = 0; f < n; f++) {
        rssm_candidate *c = &s->candidates.items[indices[f]];
        if (c->object.bytes == NULL) rssm_candidate_build(&s->candidates, c);
        if (c->status != RSSM_OK) goto done;   // built before and not now: leave the screening's answer
        RSSM_TRY(candidate_group(s, c, mode, &groups[f], diag));
    }
    for (uint32_t round = 0; round < FINAL_SAMPLES; round++) {
        for (uint32_t f = 0; f < n; f++) {   // the workload's cursors serve one run at a time
            RSSM_TRY(rssm_run_create(s->workload, groups[f], s->options->batches[b], mode == RSSM_DB_EAGER, &runs[f],
                                     diag));
            RSSM_TRY(rssm_run_sample(runs[f], &samples[f][round], diag));
            rssm_run_destroy(runs[f]);
            runs[f] = NULL;
        }
    }
    for (uint32_t f = 0; f < n; f++)
        RSSM_TRY(record_measurement(s, indices[f], b, mode, samples[f], FINAL_SAMPLES, "finals", diag));
done:
    for (uint32_t f = 0; f < n; f++) {
        rssm_run_destroy(runs[f]);
        rssm_group_destroy(groups[f]);
    }
    return st;
}

static bool finals_are_due(const bool *was_complete, uint32_t b, int mode)
{
    return !was_complete[b * MODES + (uint32_t)mode];
}

static rssm_status measure(session *s, const bool *was_complete, rssm_diag *diag)
{
    const rssm_session_options *o = s->options;
    rssm_status                 st = RSSM_OK;

    RSSM_TRY(rssm_workload_create(s->context, s->device_index, o->problem, o->batches[o->n_batches - 1], 0,
                                  &s->workload, diag));
    for (size_t i = 0; i < s->candidates.n && !out_of_time(s); i++) {
        const rssm_candidate *c = &s->candidates.items[i];
        if (is_wanted(s, i) && c->is_verified && c->object.bytes != NULL) RSSM_TRY(screen(s, i, diag));   // I1
    }
    for (uint32_t b = 0; b < o->n_batches; b++)
        for (int mode = 0; mode < MODES && !out_of_time(s); mode++)
            if (finals_are_due(was_complete, b, mode)) RSSM_TRY(run_finals(s, b, mode, diag));
done:
    return st;
}

// Marks the batches and modes that need no finals any more: all known, and the best with the samples of a final.
static rssm_status find_complete(session *s, bool *was_complete, bool *out_all, rssm_diag *diag)
{
    const rssm_db_query query = {.problem = &s->problem.key, .device = &s->device->key,
                                 .policy = rssm_session_policy(s->device)};
    rssm_db_rows        rows = {0};
    const rssm_status   st = rssm_db_winners(s->db, &query, NULL, NULL, &rows, diag);

    *out_all = true;
    for (uint32_t b = 0; st == RSSM_OK && b < s->options->n_batches; b++) {
        for (int mode = 0; mode < MODES; mode++) {
            bool complete = false;
            for (size_t r = 0; r < rows.n; r++)
                complete |= rows.rows[r].trial.bucket == s->options->batches[b] &&
                            (int)rows.rows[r].trial.mode == mode && rows.rows[r].trial.n_samples >= FINAL_SAMPLES;
            for (size_t i = 0; i < s->candidates.n; i++)
                complete &= s->candidates.items[i].status != RSSM_OK || cell_at(s, i, b, mode)->known;
            if (mode == RSSM_DB_EAGER && s->options->problem->max_tokens > 1) complete = true;
            was_complete[b * MODES + (uint32_t)mode] = complete;
            *out_all &= complete;
        }
    }
    rssm_db_rows_free(&rows);
    return st;
}

static void plan_work(session *s, const bool *was_complete)
{
    const rssm_session_options *o = s->options;
    for (size_t i = 0; i < s->candidates.n; i++) {
        if (!is_wanted(s, i)) continue;
        s->total += BUILD_UNIT + VERIFY_UNIT;
        for (uint32_t b = 0; b < o->n_batches; b++)
            for (int mode = 0; mode < MODES; mode++)
                if (!cell_at(s, i, b, mode)->known) s->total += SAMPLE_UNIT * SCREEN_SAMPLES;
    }
    for (uint32_t i = 0; i < o->n_batches * MODES; i++)
        if (!was_complete[i]) s->total += SAMPLE_UNIT * FINAL_SAMPLES * FINALISTS / 2;
}

rssm_status rssm_session_run(rssm_context *context, uint32_t device, rssm_db *db, const rssm_session_options *options,
                             rssm_session_result *out_result, rssm_diag *diag)
{
    rssm_status st = RSSM_OK;
    bool       *was_complete = NULL, all_complete;
    session     s = {.context = context, .device = &context->devices[device], .device_index = device, .db = db,
                     .options = options, .began_ns = rssm_now_ns()};

    rssm_problem_text(options->problem, &s.problem_text);
    RSSM_TRY(rssm_str_check(&s.problem_text, diag));
    s.problem = (rssm_db_problem){rssm_problem_key(options->problem), rssm_str_c(&s.problem_text)};
    RSSM_TRY(rssm_candidates_list(context, device, options->problem, &s.candidates, diag));
    s.cells = rssm_calloc(s.candidates.n * options->n_batches * MODES, sizeof *s.cells);
    was_complete = rssm_calloc(options->n_batches * MODES, sizeof *was_complete);
    if (s.cells == NULL || was_complete == NULL) {
        st = RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a session");
        goto done;
    }
    RSSM_TRY(load_known(&s, diag));
    RSSM_TRY(find_complete(&s, was_complete, &all_complete, diag));
    plan_work(&s, was_complete);
    if (!all_complete) {
        RSSM_TRY(build_and_verify(&s, diag));
        RSSM_TRY(measure(&s, was_complete, diag));
    }
    s.result.n_candidates = (uint32_t)s.candidates.n;
    for (size_t i = 0; i < s.candidates.n; i++) s.result.n_rejected += s.candidates.items[i].status != RSSM_OK;
    if (s.result.n_rejected == s.result.n_candidates) {
        const rssm_candidate *c = &s.candidates.items[0];
        st = RSSM_FAIL(diag, c->status, "all %u candidates were rejected, the first (%s) because: %s; `replayssm-tune show "
                       "--rejected` lists them", s.result.n_candidates, c->config_text, c->reason);
        goto done;
    }
    *out_result = s.result;
done:
    rssm_workload_destroy(s.workload);
    rssm_candidates_free(&s.candidates);
    rssm_free(s.cells);
    rssm_free(was_complete);
    rssm_str_free(&s.problem_text);
    return st;
}

rssm_status rssm_session_advance(rssm_context *context, uint32_t device, rssm_db *db, rssm_diag *diag)
{
    session     s = {.context = context, .device = &context->devices[device], .device_index = device, .db = db};
    rssm_status st = RSSM_OK;
    rssm_db_known known = {0};

    if (s.device->info.backend == RSSM_CPU) return RSSM_OK;
    RSSM_TRY(rssm_candidates_list(context, device, NULL, &s.candidates, diag));
    rssm_candidate *c = &s.candidates.items[0];
    s.problem = (rssm_db_problem){rssm_hash_bytes(RSSM_ADVANCE_PROBLEM_TEXT, strlen(RSSM_ADVANCE_PROBLEM_TEXT)),
                                  RSSM_ADVANCE_PROBLEM_TEXT};
    rssm_problem         none = RSSM_PROBLEM_INIT;
    rssm_session_options options = {.problem = &none};
    s.options = &options;
    rssm_db_trial trial = trial_of(&s, c, 1, RSSM_DB_REPLAY);
    trial.bytes_per_step = 0.0;
    RSSM_TRY(rssm_db_trial_known(db, &trial, &known, diag));
    if (known.is_known) goto done;
    rssm_candidate_build(&s.candidates, c);
    if (c->status != RSSM_OK) {
        st = RSSM_FAIL(diag, c->status, "the advance kernel: %s", c->reason);
        goto done;
    }
    trial = trial_of(&s, c, 1, RSSM_DB_REPLAY);
    trial.bytes_per_step = 0.0;
    trial.median_ns = 1.0;   // never compared: there is one candidate
    trial.n_samples = 1;
    RSSM_TRY(record(&s, c, &trial, diag));
done:
    rssm_candidates_free(&s.candidates);
    return st;
}
