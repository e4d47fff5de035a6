// One verification run, as its parts share it: the buffers (verify_buffers.c), what is written into them before a step
// (verify_inputs.c), and what is compared after it (verify_check.c). verify.c puts them in order.
#ifndef RSSM_TUNER_VERIFY_SESSION_H
#define RSSM_TUNER_VERIFY_SESSION_H

#include "tuner/verify.h"
#include "tuner/verify_schedule.h"
#include "tuner/verify_tensor.h"

typedef enum rssm_verify_buffer {
    RSSM_VERIFY_STATE,
    RSSM_VERIFY_X_RING,
    RSSM_VERIFY_B_RING,
    RSSM_VERIFY_DT_RING,
    RSSM_VERIFY_OUT,
    RSSM_VERIFY_X,
    RSSM_VERIFY_Z,
    RSSM_VERIFY_B,
    RSSM_VERIFY_C,
    RSSM_VERIFY_DT,
    RSSM_VERIFY_A,
    RSSM_VERIFY_D,
    RSSM_VERIFY_DT_BIAS,
    RSSM_VERIFY_SLOTS,
    RSSM_VERIFY_TOKENS,
    RSSM_VERIFY_CU_SEQLENS,
    RSSM_VERIFY_ACCEPTED,
    RSSM_VERIFY_FORCED,
    RSSM_VERIFY_EPOCHS,
    RSSM_VERIFY_DESCRIPTORS,
    RSSM_VERIFY_ISSUES,
    RSSM_VERIFY_CURSORS,
    RSSM_VERIFY_SCRATCH,
    RSSM_VERIFY_N_BUFFERS,
} rssm_verify_buffer;

typedef struct rssm_verify_session {
    const rssm_verify_request *request;
    rssm_verify_report        *report;
    rssm_diag                 *diag;
    rssm_problem               problem; // normalised
    rssm_verify_memory         memory;
    rssm_verify_schedule       schedule;
    rssm_verify_random         random; // of the data; the traffic has its own
    uint32_t                   step;
    rssm_verify_tensor         buffers[RSSM_VERIFY_N_BUFFERS];
    double                    *work; // decoded values of one row and head, see verify_check.c
} rssm_verify_session;

// Allocates all buffers of a session whose request, problem and memory are set. Destroy accepts half-built sessions.
rssm_status rssm_verify_buffers_create(rssm_verify_session *s);
void        rssm_verify_buffers_destroy(rssm_verify_session *s);
rssm_status rssm_verify_buffers_upload(rssm_verify_session *s);
rssm_status rssm_verify_buffers_download(rssm_verify_session *s);

// Writes what stays for the whole run, and what the drawn step needs.
void rssm_verify_write_parameters(rssm_verify_session *s);
void rssm_verify_write_step(rssm_verify_session *s);

// Arguments that point at the buffers.
rssm_advance_args rssm_verify_advance_args(const rssm_verify_session *s);
rssm_step_args    rssm_verify_step_args(const rssm_verify_session *s);

// Compares descriptors, cursors and issues after advance; then, after step, everything. They return RSSM_OK,
// RSSM_E_WRONG_RESULT with the sentence in report and diag, or RSSM_E_NO_MEMORY.
size_t      rssm_verify_work_doubles(const rssm_problem *problem);
rssm_status rssm_verify_check_advance(rssm_verify_session *s);
rssm_status rssm_verify_check_step(rssm_verify_session *s);
rssm_status rssm_verify_check_bytes(rssm_verify_session *s);

// Records the first difference: "step 3: …". Returns RSSM_E_WRONG_RESULT.
rssm_status rssm_verify_wrong(rssm_verify_session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
