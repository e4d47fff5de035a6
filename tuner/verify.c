// The order of a verification run; the parts are in verify_*.c, the idea in verify.h.
#include "tuner/verify.h"

#include <string.h>

#include "base/alloc.h"
#include "base/problem.h"
#include "tuner/verify_session.h"

static rssm_status check_align(const rssm_verify_session *s, const char *name, uint32_t align)
{
    if (align <= 128 && (align & (align - 1)) == 0) return RSSM_OK;
    return RSSM_FAIL(s->diag, RSSM_E_INVALID_ARGUMENT, "the %s alignment of %u bytes is not a power of two up to 128",
                     name, align);
}

static rssm_status check_request(rssm_verify_session *s)
{
    const rssm_verify_request *r = s->request;
    const uint32_t             n_needed = r->n_rows + (r->flags & RSSM_VERIFY_PAD_ZERO ? 1 : 0);
    rssm_status                st;

    RSSM_TRY(rssm_problem_normalise(r->problem, &s->problem, s->diag));
    RSSM_TRY(check_align(s, "state", r->state_align));
    RSSM_TRY(check_align(s, "ring", r->ring_align));
    RSSM_TRY(check_align(s, "activation", r->activation_align));
    if (s->problem.recurrence != RSSM_MAMBA2 || s->problem.checkpoint_mode != RSSM_CHECKPOINT_SHARED ||
        s->problem.checkpoint_dtype > RSSM_F16 || s->problem.rounding != RSSM_NEAREST) {
        st = RSSM_FAIL(s->diag, RSSM_E_UNSUPPORTED,
                       "the oracle knows Mamba-2 with one f32, bf16 or f16 checkpoint rounded to nearest, not this "
                       "problem");
    } else if (r->n_rows == 0 || r->n_slots < n_needed) {
        st = RSSM_FAIL(s->diag, RSSM_E_INVALID_ARGUMENT,
                       "%u rows over %u slots cannot be verified; give 1 row or more "
                       "and at least %u slots",
                       r->n_rows, r->n_slots, n_needed);
    } else if (!r->cursors) {
        st = RSSM_FAIL(s->diag, RSSM_E_INVALID_ARGUMENT, "the cursors are NULL; give those the group was made with");
    }
done:
    return st;
}

static rssm_status call_failed(rssm_verify_session *s, const char *what, rssm_status code)
{
    return RSSM_FAIL(s->diag, code, "step %u: %s returned %s", s->step, what, rssm_status_text(code));
}

static rssm_status run_step(rssm_verify_session *s)
{
    const rssm_verify_calls *calls = s->memory.calls;
    rssm_status              st;

    RSSM_TRY(rssm_verify_schedule_next(&s->schedule, s->step, s->diag));
    rssm_verify_write_step(s);
    RSSM_TRY(rssm_verify_buffers_upload(s));

    const rssm_advance_args advance = rssm_verify_advance_args(s);
    st = calls->advance(s->request->group, &advance, NULL);
    if (st != RSSM_OK) return call_failed(s, "rssm_advance", st);
    RSSM_TRY(calls->synchronise(s->memory.context, s->memory.device, s->diag));
    RSSM_TRY(rssm_verify_check_advance(s));

    const rssm_step_args step = rssm_verify_step_args(s);
    st = calls->step(s->request->plan, &step, NULL);
    if (st != RSSM_OK) return call_failed(s, "rssm_step", st);
    RSSM_TRY(calls->synchronise(s->memory.context, s->memory.device, s->diag));
    RSSM_TRY(rssm_verify_buffers_download(s));
    RSSM_TRY(rssm_verify_check_step(s));
    RSSM_TRY(rssm_verify_check_bytes(s));
    s->report->n_steps++;
done:
    return st;
}

// Buffers, traffic and the memory the oracle works in; cursors start as zeros.
static rssm_status prepare(rssm_verify_session *s)
{
    rssm_verify_tensor *cursors = &s->buffers[RSSM_VERIFY_CURSORS];
    rssm_status         st;

    RSSM_TRY(rssm_verify_schedule_create(&s->schedule, s->request, &s->problem, s->report, s->diag));
    RSSM_TRY(rssm_verify_buffers_create(s));
    s->work = rssm_calloc(rssm_verify_work_doubles(&s->problem), sizeof *s->work);
    if (!s->work) return RSSM_FAIL(s->diag, RSSM_E_NO_MEMORY, "no memory to decode one head");
    memset(cursors->image, 0, cursors->total_bytes);
    rssm_verify_write_parameters(s);
done:
    return st;
}

rssm_status rssm_verify_run(const rssm_verify_request *request, rssm_verify_report *out_report, rssm_diag *diag)
{
    rssm_status         st;
    rssm_verify_session s = {.request = request, .report = out_report, .diag = diag};

    memset(out_report, 0, sizeof *out_report);
    s.memory = (rssm_verify_memory){request->calls, request->context, request->device};
    s.random.state = rssm_verify_mix(request->seed + 1);
    RSSM_TRY(check_request(&s));
    RSSM_TRY(prepare(&s));
    const uint32_t n_steps = request->n_steps ? request->n_steps : 2 * s.problem.window + 3;
    for (s.step = 0; s.step < n_steps; s.step++)
        RSSM_TRY(run_step(&s));
done:
    rssm_verify_buffers_destroy(&s);
    rssm_verify_schedule_destroy(&s.schedule);
    rssm_free(s.work);
    return st;
}
