// What a verification run compares after a step. A run of elements that agrees is taken over into the image, so that
// what is left to differ afterwards is what nothing may write.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tuner/oracle/mamba2_reference.h"
#include "tuner/oracle/number_format.h"
#include "tuner/verify_session.h"

rssm_status rssm_verify_wrong(rssm_verify_session *s, const char *format, ...)
{
    char    text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(s->report->failure, sizeof s->report->failure, "step %u: %s", s->step, text);
    return RSSM_FAIL(s->diag, RSSM_E_WRONG_RESULT, "%s", s->report->failure);
}

// ------------------------------------------------------------------------------------------------ one run of values

// Where a value belongs, for sentences.
typedef struct place {
    const rssm_verify_row *row;
    uint32_t               index; // of the row
    const char            *what;
    int64_t                outer, head, record;
    int32_t                part; // token within the row, or row of the checkpoint
    const char            *part_name;
} place;

static rssm_status report_value(rssm_verify_session *s, const rssm_verify_tensor *t, const place *at, int64_t element,
                                double got, double want, double limit)
{
    static const char *const modes[] = {"idle", "append", "fold history", "fold all"};
    const size_t byte = rssm_verify_run_at(t, at->outer, at->head, at->record) + (size_t)element * t->element_bytes;
    const bool   untouched = memcmp(t->image + byte, t->actual + byte, t->element_bytes) == 0;
    const rssm_descriptor *d = &at->row->want;

    return rssm_verify_wrong(
        s,
        "row %u (slot %d, %s, start %d, h %d, t %d), head %lld: %s of %s %d, element %lld is %.9g, "
        "want %.9g within %.3g%s",
        at->index, d->slot, modes[d->mode], d->start, d->h, d->t, (long long)at->head, at->what, at->part_name,
        at->part, (long long)element, got, want, limit, untouched ? " (it was not written)" : "");
}

// Compares a dense run with the oracle's values and takes it over.
static rssm_status compare_run(rssm_verify_session *s, rssm_verify_tensor *t, const place *at, const double *want,
                               const double *bound, double *worst, uint64_t *n_compared)
{
    const unsigned char *bytes = t->actual + rssm_verify_run_at(t, at->outer, at->head, at->record);
    for (int64_t i = 0; i < t->n_dense; i++) {
        double got;
        rssm_oracle_load(t->dtype, bytes + (size_t)i * t->element_bytes, 1, &got);
        const double error = rssm_oracle_error(t->dtype, want[i], bound[i], got);
        if (error > *worst) *worst = error;
        if (!(error <= 1)) {
            const double limit = bound[i] + rssm_oracle_half_ulp(t->dtype, fabs(want[i]) + bound[i]);
            return report_value(s, t, at, i, got, want[i], limit);
        }
    }
    *n_compared += (uint64_t)t->n_dense;
    rssm_verify_run_adopt(t, at->outer, at->head, at->record);
    return RSSM_OK;
}

// For values the caller left out of the oracle's work: written, and finite.
static rssm_status accept_run(rssm_verify_session *s, rssm_verify_tensor *t, const place *at)
{
    const unsigned char *bytes = t->actual + rssm_verify_run_at(t, at->outer, at->head, at->record);
    for (int64_t i = 0; i < t->n_dense; i++) {
        double got;
        rssm_oracle_load(t->dtype, bytes + (size_t)i * t->element_bytes, 1, &got);
        if (!isfinite(got)) return report_value(s, t, at, i, got, 0, INFINITY);
    }
    rssm_verify_run_adopt(t, at->outer, at->head, at->record);
    return RSSM_OK;
}

// ------------------------------------------------------------------------------------------------ a row and a head

// One row and head, decoded. Lives in the session's work memory.
typedef struct decoded {
    double *checkpoint, *state, *state_bound; // [P][N]
    double *ring_x, *ring_B, *ring_dt;        // [R][P], [R][N], [R]
    double *x, *z, *y, *y_bound;              // [T][P]
    double *B, *C;                            // [T][N]
    double *dt, *d, *d_bound;                 // [T]
} decoded;

static size_t lay_out_work(const rssm_problem *problem, double *work, decoded *w)
{
    const size_t P = problem->head_dim, N = problem->state_size, R = problem->ring_length, T = problem->max_tokens;
    const struct {
        double **array;
        size_t   n;
    } arrays[] = {
        {&w->checkpoint, P * N},
        {&w->state, P * N},
        {&w->state_bound, P * N},
        {&w->ring_x, R * P},
        {&w->ring_B, R * N},
        {&w->ring_dt, R},
        {&w->x, T * P},
        {&w->z, T * P},
        {&w->y, T * P},
        {&w->y_bound, T * P},
        {&w->B, T * N},
        {&w->C, T * N},
        {&w->dt, T},
        {&w->d, T},
        {&w->d_bound, T},
    };
    size_t used = 0;
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        if (work) *arrays[i].array = work + used;
        used += arrays[i].n;
    }
    return used;
}

size_t rssm_verify_work_doubles(const rssm_problem *problem)
{
    decoded none;
    return lay_out_work(problem, NULL, &none);
}

static void load(const rssm_verify_session *s, rssm_verify_buffer which, int64_t outer, int64_t head, int64_t record,
                 double *values)
{
    const rssm_verify_tensor *t = &s->buffers[which];
    rssm_oracle_load(t->dtype, t->image + rssm_verify_run_at(t, outer, head, record), (size_t)t->n_dense, values);
}

static double load_parameter(const rssm_verify_session *s, rssm_verify_buffer which, int64_t head, uint32_t dtype)
{
    const rssm_verify_tensor *t = &s->buffers[which];
    double                    value = 0;
    if (t->device) rssm_oracle_load(dtype, t->image + rssm_verify_run_at(t, head, 0, 0), 1, &value);
    return value;
}

// Everything the step reads for this row and head, from the image as it was uploaded. Only live records are decoded.
static void decode(const rssm_verify_session *s, const rssm_verify_row *row, int64_t head, const decoded *w)
{
    const rssm_problem *p = &s->problem;
    const size_t        P = p->head_dim, N = p->state_size;
    const int64_t       group = head / (p->n_heads / p->n_groups);

    for (size_t i = 0; i < P; i++)
        load(s, RSSM_VERIFY_STATE, row->slot, head, (int64_t)i, w->checkpoint + i * N);
    for (int32_t i = 0; i < row->want.h; i++) {
        const size_t record = (size_t)(row->want.start + i) % p->ring_length;
        load(s, RSSM_VERIFY_X_RING, row->slot, head, (int64_t)record, w->ring_x + record * P);
        load(s, RSSM_VERIFY_B_RING, row->slot, group, (int64_t)record, w->ring_B + record * N);
        load(s, RSSM_VERIFY_DT_RING, row->slot, head, (int64_t)record, w->ring_dt + record);
    }
    for (int32_t k = 0; k < row->t; k++) {
        load(s, RSSM_VERIFY_X, row->token + k, head, 0, w->x + (size_t)k * P);
        if (s->buffers[RSSM_VERIFY_Z].device) load(s, RSSM_VERIFY_Z, row->token + k, head, 0, w->z + (size_t)k * P);
        load(s, RSSM_VERIFY_B, row->token + k, group, 0, w->B + (size_t)k * N);
        load(s, RSSM_VERIFY_C, row->token + k, group, 0, w->C + (size_t)k * N);
        load(s, RSSM_VERIFY_DT, row->token + k, head, 0, w->dt + k);
    }
}

static rssm_status ask_oracle(rssm_verify_session *s, const rssm_verify_row *row, int64_t head, const decoded *w)
{
    const rssm_problem    *p = &s->problem;
    const rssm_oracle_head parameters = {
        (int)p->head_dim,
        (int)p->state_size,
        p->dt_softplus != 0,
        p->checkpoint_dtype != RSSM_F32,
        load_parameter(s, RSSM_VERIFY_A, head, RSSM_F32),
        load_parameter(s, RSSM_VERIFY_D, head, p->parameter_dtype),
        load_parameter(s, RSSM_VERIFY_DT_BIAS, head, p->parameter_dtype),
    };
    const rssm_oracle_ring ring = {(int)p->ring_length, row->want.start, row->want.h, w->ring_x, w->ring_B, w->ring_dt};
    const rssm_oracle_tokens tokens = {row->t, w->x, s->buffers[RSSM_VERIFY_Z].device ? w->z : NULL, w->B, w->C, w->dt};
    const rssm_oracle_answer answer = {w->d, w->d_bound, w->y, w->y_bound, w->state, w->state_bound};
    const rssm_oracle_fold   fold = row->want.mode == RSSM_MODE_FOLD_ALL       ? RSSM_ORACLE_FOLD_ALL
                                    : row->want.mode == RSSM_MODE_FOLD_HISTORY ? RSSM_ORACLE_FOLD_RECORDS
                                                                               : RSSM_ORACLE_FOLD_NOTHING;
    return rssm_oracle_step(&parameters, w->checkpoint, &ring, &tokens, fold, &answer, s->diag);
}

static bool row_appends(const rssm_verify_row *row)
{
    return row->want.mode == RSSM_MODE_APPEND || row->want.mode == RSSM_MODE_FOLD_HISTORY;
}

static rssm_status check_head(rssm_verify_session *s, const rssm_verify_row *row, uint32_t index, int64_t head)
{
    const rssm_problem *p = &s->problem;
    rssm_verify_report *report = s->report;
    const uint32_t      stride = s->request->head_stride ? s->request->head_stride : 1;
    const bool          compare = (p->n_heads - 1 - head) % stride == 0;
    rssm_status         st = RSSM_OK;
    decoded             w;

    lay_out_work(p, s->work, &w);
    if (compare) {
        decode(s, row, head, &w);
        RSSM_TRY(ask_oracle(s, row, head, &w));
    }
    for (int32_t k = 0; k < row->t; k++) {
        rssm_verify_tensor *t = &s->buffers[RSSM_VERIFY_OUT];
        const place         at = {row, index, "out", row->token + k, head, 0, k, "token"};
        const size_t        from = (size_t)k * p->head_dim;
        RSSM_TRY(compare ? compare_run(s, t, &at, w.y + from, w.y_bound + from, &report->max_out, &report->n_out)
                         : accept_run(s, t, &at));
    }
    for (int32_t k = 0; k < row->t && row_appends(row); k++) {
        rssm_verify_tensor *t = &s->buffers[RSSM_VERIFY_DT_RING];
        const int32_t       record = (row->want.start + row->want.h + k) % (int32_t)p->ring_length;
        const place         at = {row, index, "processed dt", row->slot, head, record, record, "record"};
        RSSM_TRY(compare ? compare_run(s, t, &at, w.d + k, w.d_bound + k, &report->max_dt, &report->n_dt)
                         : accept_run(s, t, &at));
    }
    for (int32_t i = 0; i < (int32_t)p->head_dim && rssm_verify_row_folds(row); i++) {
        rssm_verify_tensor *t = &s->buffers[RSSM_VERIFY_STATE];
        const place         at = {row, index, "state", row->slot, head, i, i, "row"};
        const size_t        from = (size_t)i * p->state_size;
        RSSM_TRY(
            compare ? compare_run(s, t, &at, w.state + from, w.state_bound + from, &report->max_state, &report->n_state)
                    : accept_run(s, t, &at));
    }
done:
    return st;
}

// ------------------------------------------------------------------------------------------------ exact expectations

// The record that a token leaves in a ring is a copy of its bytes.
static rssm_status expect_append(rssm_verify_session *s, const rssm_verify_row *row, uint32_t index,
                                 rssm_verify_buffer ring, rssm_verify_buffer tokens)
{
    rssm_verify_tensor       *to = &s->buffers[ring];
    const rssm_verify_tensor *from = &s->buffers[tokens];
    const size_t              n = rssm_verify_run_bytes(to);
    for (int32_t k = 0; k < row->t; k++) {
        const int32_t record = (row->want.start + row->want.h + k) % (int32_t)s->problem.ring_length;
        for (int64_t head = 0; head < to->n_heads; head++) {
            const size_t         at = rssm_verify_run_at(to, row->slot, head, record);
            const unsigned char *want = from->image + rssm_verify_run_at(from, row->token + k, head, 0);
            if (memcmp(to->actual + at, want, n) != 0) {
                const bool untouched = memcmp(to->actual + at, to->image + at, n) == 0;
                return rssm_verify_wrong(s,
                                         "row %u (slot %d, start %d, h %d, t %d): record %d, head %lld of %s is not "
                                         "the %s of token %d%s",
                                         index, row->slot, row->want.start, row->want.h, row->t, record,
                                         (long long)head, to->name, from->name, k,
                                         untouched ? " (it was not written)" : "");
            }
            rssm_verify_run_adopt(to, row->slot, head, record);
        }
    }
    return RSSM_OK;
}

// Outputs of a row that computes none: zeros. Behind the tokens of a row with fewer than it owns: zeros or nothing.
static rssm_status expect_zeros(rssm_verify_session *s, const rssm_verify_row *row, uint32_t index)
{
    rssm_verify_tensor *out = &s->buffers[RSSM_VERIFY_OUT];
    const size_t        n = rssm_verify_run_bytes(out);
    const bool          computes = !row->is_null && row->t > 0;
    for (int32_t k = computes ? row->t : 0; k < row->n_owned; k++) {
        for (int64_t head = 0; head < out->n_heads; head++) {
            const size_t at = rssm_verify_run_at(out, row->token + k, head, 0);
            size_t       i = 0;
            while (i < n && out->actual[at + i] == 0)
                i++;
            if (i == n) {
                rssm_verify_run_adopt(out, row->token + k, head, 0);
            } else if (!computes) {
                const bool untouched = memcmp(out->image + at, out->actual + at, n) == 0;
                return rssm_verify_wrong(s,
                                         "row %u is %s, but out of its token %d, head %lld, element %zu is not "
                                         "zero%s",
                                         index, row->is_null ? "null" : "idle", k, (long long)head,
                                         i / out->element_bytes, untouched ? " (it was not written)" : "");
            }
        }
    }
    return RSSM_OK;
}

rssm_status rssm_verify_check_step(rssm_verify_session *s)
{
    rssm_status st = RSSM_OK;
    for (uint32_t i = 0; i < s->request->n_rows; i++) {
        const rssm_verify_row *row = &s->schedule.rows[i];
        RSSM_TRY(expect_zeros(s, row, i));
        if (row->is_null) continue;
        for (int64_t head = 0; head < s->problem.n_heads; head++)
            RSSM_TRY(check_head(s, row, i, head));
        if (!row_appends(row)) continue;
        RSSM_TRY(expect_append(s, row, i, RSSM_VERIFY_X_RING, RSSM_VERIFY_X));
        RSSM_TRY(expect_append(s, row, i, RSSM_VERIFY_B_RING, RSSM_VERIFY_B));
    }
done:
    return st;
}

rssm_status rssm_verify_check_bytes(rssm_verify_session *s)
{
    for (int i = 0; i < RSSM_VERIFY_N_BUFFERS; i++) {
        rssm_verify_tensor *t = &s->buffers[i];
        rssm_str            sentence = {0};
        if (i == RSSM_VERIFY_SCRATCH && t->device) { // the kernels' own, between its guard zones
            memcpy(t->image + t->offset, t->actual + t->offset, t->payload_bytes);
        }
        const bool same = rssm_verify_tensor_same(t, &sentence);
        if (!same) rssm_verify_wrong(s, "%s", rssm_str_c(&sentence));
        rssm_str_free(&sentence);
        if (!same) return RSSM_E_WRONG_RESULT;
        if (t->device) s->report->n_bytes += t->total_bytes;
    }
    return RSSM_OK;
}
