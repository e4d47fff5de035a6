// What a verification run feeds the kernels: parameters, checkpoints, tokens; and poison everywhere else.
//
// Magnitudes are chosen so that outputs stay within fp16 while decays cover everything: |A| in [0.02, 16] and
// processed dt in [5e-3, 2], both log-uniform, so that A dt runs from -1e-4 (memory of thousands of tokens) to -32 (of
// none), with an A of exactly 0 and arguments of softplus beyond its usual range now and then.
#include <math.h>
#include <string.h>

#include "tuner/oracle/number_format.h"
#include "tuner/verify_session.h"

static void store_parameter(rssm_verify_session *s, rssm_verify_buffer which, uint32_t head, uint32_t dtype,
                            double value)
{
    rssm_verify_tensor *t = &s->buffers[which];
    if (!t->device) return;
    rssm_oracle_store(dtype, &value, 1, t->image + rssm_verify_run_at(t, head, 0, 0));
    t->dirty = true;
}

void rssm_verify_write_parameters(rssm_verify_session *s)
{
    rssm_verify_random *r = &s->random;
    const uint32_t      parameter = s->problem.parameter_dtype;
    for (uint32_t head = 0; head < s->problem.n_heads; head++) {
        const double magnitude = exp2(rssm_verify_uniform(r, log2(0.02), 4));
        store_parameter(s, RSSM_VERIFY_A, head, RSSM_F32, rssm_verify_one_in(r, 16) ? 0 : -magnitude);
        store_parameter(s, RSSM_VERIFY_D, head, parameter, rssm_verify_bell(r));
        // Without softplus, dt + bias must not be negative.
        store_parameter(s, RSSM_VERIFY_DT_BIAS, head, parameter,
                        s->problem.dt_softplus ? rssm_verify_bell(r) - 2 : rssm_verify_uniform(r, 0, 0.1));
    }
}

// A raw dt that bias and softplus turn into a value of the wanted range, roughly: dt has few bits in 16-bit types.
static double draw_dt(rssm_verify_session *s, int64_t head)
{
    static const double beyond[] = {-1e4, -60, -8, 19.9, 20, 20.1, 40};
    rssm_verify_random *r = &s->random;
    const double        d = exp2(rssm_verify_uniform(r, log2(5e-3), 1));
    double              bias = 0;

    if (!s->problem.dt_softplus) return d;
    if (s->request->flags & RSSM_VERIFY_BIAS) {
        const rssm_verify_tensor *t = &s->buffers[RSSM_VERIFY_DT_BIAS];
        rssm_oracle_load(s->problem.parameter_dtype, t->image + rssm_verify_run_at(t, head, 0, 0), 1, &bias);
    }
    if (rssm_verify_one_in(r, 24)) return beyond[rssm_verify_below(r, sizeof beyond / sizeof beyond[0])] - bias;
    return log(expm1(d)) - bias;
}

// A dense run of bell-shaped values.
static void write_run(rssm_verify_session *s, rssm_verify_buffer which, int64_t outer, int64_t head, int64_t record,
                      double scale)
{
    rssm_verify_tensor *t = &s->buffers[which];
    if (!t->device) return;
    for (int64_t i = 0; i < t->n_dense; i += 64) {
        double       values[64];
        const size_t n = t->n_dense - i < 64 ? (size_t)(t->n_dense - i) : 64;
        for (size_t j = 0; j < n; j++)
            values[j] = scale * rssm_verify_bell(&s->random);
        rssm_oracle_store(t->dtype, values, n,
                          t->image + rssm_verify_run_at(t, outer, head, record) + (size_t)i * t->element_bytes);
    }
    t->dirty = true;
}

static void write_token(rssm_verify_session *s, int64_t token)
{
    // B . C is of order 1 whatever the state size is.
    const double scale = pow(s->problem.state_size, -0.25);
    for (int64_t head = 0; head < s->problem.n_heads; head++) {
        const double dt = draw_dt(s, head);
        write_run(s, RSSM_VERIFY_X, token, head, 0, 1);
        write_run(s, RSSM_VERIFY_Z, token, head, 0, 2);
        rssm_verify_run_store(&s->buffers[RSSM_VERIFY_DT], token, head, 0, &dt);
    }
    for (int64_t group = 0; group < s->problem.n_groups; group++) {
        write_run(s, RSSM_VERIFY_B, token, group, 0, scale);
        write_run(s, RSSM_VERIFY_C, token, group, 0, scale);
    }
}

// The checkpoint of a sequence that takes a slot over.
static void write_checkpoint(rssm_verify_session *s, int64_t slot)
{
    for (int64_t head = 0; head < s->problem.n_heads; head++) {
        const double scale = exp2(rssm_verify_uniform(&s->random, -3, 2)) * pow(s->problem.state_size, -0.25);
        for (int64_t row = 0; row < s->problem.head_dim; row++) {
            write_run(s, RSSM_VERIFY_STATE, slot, head, row, scale);
        }
    }
}

// Poisons every ring row that holds no committed record of the row's slot.
static void poison_dead_records(rssm_verify_session *s, const rssm_verify_row *row)
{
    static const rssm_verify_buffer rings[] = {RSSM_VERIFY_X_RING, RSSM_VERIFY_B_RING, RSSM_VERIFY_DT_RING};
    const int32_t                   R = s->schedule.window.R;
    for (int32_t i = row->want.h; i < R; i++) {
        const int32_t record = (row->want.start + i) % R;
        for (size_t ring = 0; ring < sizeof rings / sizeof rings[0]; ring++) {
            rssm_verify_tensor *t = &s->buffers[rings[ring]];
            for (int64_t head = 0; head < t->n_heads; head++) {
                rssm_verify_run_poison(t, row->slot, head, record, s->step + 1);
            }
        }
    }
}

static void write_arrays(rssm_verify_session *s)
{
    rssm_verify_tensor *b = s->buffers;
    const uint32_t      zero = 0;
    int32_t             next = 0;

    rssm_verify_tensor_poison(&b[RSSM_VERIFY_DESCRIPTORS], s->step + 1);
    for (uint32_t i = 0; i < s->request->n_rows; i++) {
        const rssm_verify_row *row = &s->schedule.rows[i];
        rssm_verify_run_set(&b[RSSM_VERIFY_SLOTS], i, 0, 0, &row->slot);
        rssm_verify_run_set(&b[RSSM_VERIFY_TOKENS], i, 0, 0, &row->t);
        rssm_verify_run_set(&b[RSSM_VERIFY_CU_SEQLENS], i, 0, 0, &row->token);
        rssm_verify_run_set(&b[RSSM_VERIFY_ACCEPTED], i, 0, 0, &row->accepted);
        rssm_verify_run_set(&b[RSSM_VERIFY_FORCED], i, 0, 0, &row->forced);
        rssm_verify_run_set(&b[RSSM_VERIFY_EPOCHS], i, 0, 0, &row->epoch);
        next = row->token + row->n_owned;
    }
    rssm_verify_run_set(&b[RSSM_VERIFY_CU_SEQLENS], s->request->n_rows, 0, 0, &next);
    rssm_verify_run_set(&b[RSSM_VERIFY_ISSUES], 0, 0, 0, &zero);
}

void rssm_verify_write_step(rssm_verify_session *s)
{
    static const rssm_verify_buffer fresh[] = {RSSM_VERIFY_OUT, RSSM_VERIFY_X,  RSSM_VERIFY_Z,      RSSM_VERIFY_B,
                                               RSSM_VERIFY_C,   RSSM_VERIFY_DT, RSSM_VERIFY_SCRATCH};
    for (size_t i = 0; i < sizeof fresh / sizeof fresh[0]; i++) {
        if (s->buffers[fresh[i]].device) rssm_verify_tensor_poison(&s->buffers[fresh[i]], s->step + 1);
    }
    for (uint32_t i = 0; i < s->request->n_rows; i++) {
        const rssm_verify_row *row = &s->schedule.rows[i];
        if (row->is_null) continue;
        if (row->is_fresh) write_checkpoint(s, row->slot);
        poison_dead_records(s, row);
        for (int32_t k = 0; k < row->t; k++)
            write_token(s, row->token + k);
    }
    write_arrays(s);
}
