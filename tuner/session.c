// See session.h.
#include "tuner/session.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/problem.h"
#include "base/thread.h"
#include "tuner/session_parts.h"

enum { VERIFY_ROWS = 4 };

const char *rssm_session_policy(const rssm_device *device, uint32_t max_tokens)
{
    if (device->info.backend == RSSM_CUDA)
        return max_tokens == 1 ? "v1 graph cold-state hot-activations phases=spread"
                               : "v1 graph cold-state hot-activations phases=spread acceptance=uniform";
    return max_tokens == 1 ? "v1 direct cold-state hot-activations phases=spread"
                           : "v1 direct cold-state hot-activations phases=spread acceptance=uniform";
}

int rssm_session_modes(const rssm_session *s)
{
    return s->options->problem->max_tokens == 1 ? RSSM_MODES : 1;
}

rssm_cell *rssm_session_cell(rssm_session *s, size_t candidate, uint32_t batch, int mode)
{
    return &s->cells[(candidate * s->options->n_batches + batch) * RSSM_MODES + (size_t)mode];
}

size_t rssm_session_order(const rssm_session *s, size_t k)
{
    const size_t n = s->candidates.n;
    size_t       stride = (size_t)((double)n * 0.618) | 1, a = n, b = stride;
    for (;; stride += 2, a = n, b = stride) {   // the next one without a common divisor
        while (b != 0) {
            const size_t t = a % b;
            a = b;
            b = t;
        }
        if (a == 1) return k * stride % n;
    }
}

static double seconds_since(uint64_t ns)
{
    return (double)(rssm_now_ns() - ns) * 1e-9;
}

bool rssm_session_out_of_time(rssm_session *s)
{
    if (s->options->budget_s > 0 && seconds_since(s->began_ns) > s->options->budget_s) s->result.out_of_time = true;
    return s->result.out_of_time;
}

void rssm_session_report(rssm_session *s, rssm_progress p, double units)
{
    s->done += units;
    if (s->options->progress == NULL) return;
    p.done = s->done;
    p.total = s->total > s->done ? s->total : s->done;
    p.left_s = s->done > 0 ? seconds_since(s->began_ns) / s->done * (p.total - s->done) : -1.0;
    s->options->progress(s->options->progress_user, &p);
}

rssm_db_trial rssm_session_trial(const rssm_session *s, const rssm_candidate *c, uint32_t batch, int mode)
{
    const double bytes = mode == RSSM_DB_EAGER ? rssm_problem_eager_bytes(s->options->problem)
                                               : rssm_problem_replay_bytes(s->options->problem);
    return (rssm_db_trial){
        .device = {s->device->key, s->device->key_text, s->device->info.name, s->device->info.arch},
        .env = {s->device->driver, rssm_toolchain_text(s->candidates.toolchain), rssm_version()},
        .problem = s->problem,
        .policy = rssm_session_policy(s->device, s->options->problem->max_tokens),
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

rssm_status rssm_session_record(rssm_session *s, const rssm_candidate *c, const rssm_db_trial *trial, rssm_diag *diag)
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

static int find_batch(const rssm_session *s, uint32_t bucket)
{
    for (uint32_t b = 0; b < s->options->n_batches; b++)
        if (s->options->batches[b] == bucket) return (int)b;
    return -1;
}

static rssm_candidate *find_candidate(rssm_session *s, const rssm_db_trial *t)
{
    for (size_t i = 0; i < s->candidates.n; i++) {
        rssm_candidate *c = &s->candidates.items[i];
        if (rssm_hash_equal(&c->identity.build_key, &t->build_key) && strcmp(c->config_text, t->config) == 0 &&
            strcmp(c->config.manifest->name, t->template_name) == 0)
            return c;
    }
    return NULL;
}

// What the database knows already. The newest trial of a candidate speaks; one that was rejected stays rejected.
static rssm_status load_known(rssm_session *s, rssm_diag *diag)
{
    const rssm_db_query query = {.problem = &s->problem.key, .device = &s->device->key,
                                 .policy = rssm_session_policy(s->device, s->options->problem->max_tokens)};
    rssm_db_rows        rows = {0};
    const rssm_status   st = rssm_db_trials(s->db, &query, &rows, diag);

    for (size_t r = 0; st == RSSM_OK && r < rows.n; r++) {
        const rssm_db_trial *t = &rows.rows[r].trial;
        rssm_candidate      *c = find_candidate(s, t);
        const int            b = find_batch(s, t->bucket);
        if (c == NULL || t->tainted) continue;
        c->status = t->status;
        snprintf(c->reason, sizeof c->reason, "%s", t->status == RSSM_OK ? "" : t->reason);
        if (t->status != RSSM_OK) continue;
        c->is_verified = true;
        c->max_error = t->max_error;
        if (b >= 0)
            *rssm_session_cell(s, (size_t)(c - s->candidates.items), (uint32_t)b, (int)t->mode) =
                (rssm_cell){true, t->median_ns, t->n_samples};
    }
    rssm_db_rows_free(&rows);
    return st;
}

bool rssm_session_is_wanted(rssm_session *s, size_t i)
{
    if (s->candidates.items[i].status != RSSM_OK) return false;
    for (uint32_t b = 0; b < s->options->n_batches; b++)
        for (int mode = 0; mode < rssm_session_modes(s); mode++)
            if (!rssm_session_cell(s, i, b, mode)->known) return true;
    return false;
}

rssm_status rssm_session_record_rejection(rssm_session *s, const rssm_candidate *c, rssm_diag *diag)
{
    for (uint32_t b = 0; b < s->options->n_batches; b++) {
        for (int mode = 0; mode < rssm_session_modes(s); mode++) {
            const rssm_db_trial trial = rssm_session_trial(s, c, s->options->batches[b], mode);
            const rssm_status   st = rssm_session_record(s, c, &trial, diag);
            if (st != RSSM_OK) return st;
        }
    }
    return RSSM_OK;
}

typedef struct batch_of_work {
    rssm_session *s;
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
static rssm_status build_and_verify(rssm_session *s, rssm_diag *diag)
{
    const int     n_cores = rssm_usable_cores();
    rssm_status   st = RSSM_OK;
    size_t       *indices = rssm_calloc(s->candidates.n, sizeof *indices);
    batch_of_work work = {s, NULL};
    size_t        n = 0;

    if (indices == NULL) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a session");
    for (size_t k = 0; k < s->candidates.n; k++)
        if (rssm_session_is_wanted(s, rssm_session_order(s, k))) indices[n++] = rssm_session_order(s, k);
    for (size_t at = 0; at < n && !rssm_session_out_of_time(s); at += (size_t)n_cores) {
        const int count = n - at < (size_t)n_cores ? (int)(n - at) : n_cores;
        work.indices = indices + at;
        rssm_parallel_for(n_cores, count, build_task, &work);
        rssm_session_report(s, (rssm_progress){.phase = "building", .candidate = s->candidates.items[indices[at]].config_text},
               RSSM_BUILD_UNIT * count);
        rssm_parallel_for(n_cores, count, verify_task, &work);
        for (int i = 0; i < count; i++) {
            const rssm_candidate *c = &s->candidates.items[work.indices[i]];
            rssm_session_report(s, (rssm_progress){.phase = "verifying", .candidate = c->config_text, .status = c->status,
                                      .reason = c->reason}, RSSM_VERIFY_UNIT);
            if (c->status != RSSM_OK) RSSM_TRY(rssm_session_record_rejection(s, c, diag));
        }
    }
done:
    rssm_free(indices);
    return st;
}

// Adds up the work to do; false if there is none.
static bool plan_work(rssm_session *s)
{
    const rssm_session_options *o = s->options;
    for (size_t i = 0; i < s->candidates.n; i++) {
        if (!rssm_session_is_wanted(s, i)) continue;
        s->total += RSSM_BUILD_UNIT + RSSM_VERIFY_UNIT;
        for (uint32_t b = 0; b < o->n_batches; b++)
            for (int mode = 0; mode < rssm_session_modes(s); mode++)
                if (!rssm_session_cell(s, i, b, mode)->known) s->total += RSSM_SAMPLE_UNIT * RSSM_SCREEN_SAMPLES;
    }
    for (uint32_t b = 0; b < o->n_batches; b++)
        for (int mode = 0; mode < rssm_session_modes(s); mode++)
            if (!rssm_session_is_complete(s, b, mode)) s->total += RSSM_SAMPLE_UNIT * RSSM_FINAL_SAMPLES * RSSM_FINALISTS / 2;
    return s->total > 0.0;
}

rssm_status rssm_session_run(rssm_context *context, uint32_t device, rssm_db *db, const rssm_session_options *options,
                             rssm_session_result *out_result, rssm_diag *diag)
{
    rssm_status st = RSSM_OK;
    rssm_session s = {.context = context, .device = &context->devices[device], .device_index = device, .db = db,
                     .options = options, .began_ns = rssm_now_ns()};

    rssm_problem_text(options->problem, &s.problem_text);
    RSSM_TRY(rssm_str_check(&s.problem_text, diag));
    s.problem = (rssm_db_problem){rssm_problem_key(options->problem), rssm_str_c(&s.problem_text)};
    RSSM_TRY(rssm_candidates_list(context, device, options->problem, &s.candidates, diag));
    s.cells = rssm_calloc(s.candidates.n * options->n_batches * RSSM_MODES, sizeof *s.cells);
    if (s.cells == NULL) {
        st = RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a session");
        goto done;
    }
    RSSM_TRY(load_known(&s, diag));
    if (plan_work(&s)) {
        RSSM_TRY(build_and_verify(&s, diag));
        RSSM_TRY(rssm_session_measure(&s, diag));
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
    rssm_str_free(&s.problem_text);
    return st;
}

