// The buffers of a verification run: shapes and strides of every tensor and array, and the argument structs over them.
#include <string.h>

#include "base/dtype.h"
#include "tuner/verify_session.h"

// The least odd multiple of `align` above n: room for a gap that keeps this alignment and breaks every larger one.
static int64_t with_gap(int64_t n, int64_t align)
{
    const int64_t multiple = n / align + 1;
    return (multiple % 2 ? multiple : multiple + 1) * align;
}

// Strides of a model tensor over the shape that is set, with gaps unless the request wants none. `token_major` puts
// records outside heads.
static void set_strides(rssm_verify_tensor *t, int64_t align_bytes, bool gaps, bool token_major)
{
    const int64_t align = align_bytes > (int64_t)t->element_bytes ? align_bytes / (int64_t)t->element_bytes : 1;
    const int64_t n_inner = token_major ? t->n_heads : t->n_records, n_middle = token_major ? t->n_records : t->n_heads;
    int64_t       inner = t->n_dense;
    // A run of one element has no alignment of its own: dt rings and raw dt.
    if (gaps && t->n_dense > 1) inner = with_gap(inner, align);
    int64_t middle = n_inner * inner;
    if (gaps && n_middle > 1) middle = with_gap(middle, align);
    t->outer_stride = n_middle * middle;
    if (gaps) t->outer_stride = with_gap(t->outer_stride, align);
    t->record_stride = token_major ? middle : inner;
    t->head_stride = token_major ? inner : middle;
}

static rssm_status create(rssm_verify_session *s, rssm_verify_buffer which, rssm_verify_tensor shape,
                          uint32_t align_bytes, bool token_major)
{
    const bool          gaps = !(s->request->flags & RSSM_VERIFY_DENSE);
    rssm_verify_tensor *t = &s->buffers[which];
    *t = shape;
    t->element_bytes = rssm_dtype_bytes(t->dtype);
    set_strides(t, align_bytes, gaps, token_major);
    if (align_bytes < t->element_bytes) align_bytes = (uint32_t)t->element_bytes;
    return rssm_verify_tensor_create(t, &s->memory, align_bytes, gaps, s->diag);
}

// A plain array of `n` entries of `entry_bytes`.
static rssm_status create_array(rssm_verify_session *s, rssm_verify_buffer which, const char *name, size_t n,
                                size_t entry_bytes)
{
    rssm_verify_tensor *t = &s->buffers[which];
    const int64_t       entry = (int64_t)entry_bytes;
    *t = (rssm_verify_tensor){.name = name,
                              .outer_name = "entry",
                              .record_name = "record",
                              .element_bytes = 1,
                              .n_outer = (int64_t)n,
                              .n_heads = 1,
                              .n_records = 1,
                              .n_dense = entry,
                              .outer_stride = entry,
                              .head_stride = entry,
                              .record_stride = entry};
    return rssm_verify_tensor_create(t, &s->memory, 256, false, s->diag);
}

// The model's tensors by name: (outer, heads, records, dense).
static rssm_verify_tensor shape_of(const char *name, const char *outer_name, uint32_t dtype, int64_t n_outer,
                                   int64_t n_heads, int64_t n_records, int64_t n_dense)
{
    return (rssm_verify_tensor){.name = name,
                                .outer_name = outer_name,
                                .record_name = "record",
                                .dtype = dtype,
                                .n_outer = n_outer,
                                .n_heads = n_heads,
                                .n_records = n_records,
                                .n_dense = n_dense};
}

static rssm_status create_slots(rssm_verify_session *s)
{
    const rssm_problem *p = &s->problem;
    const uint32_t      act = p->activation_dtype, align = s->request->ring_align;
    const int64_t       n = s->request->n_slots, H = p->n_heads, G = p->n_groups, R = p->ring_length;
    const bool          token_major = s->request->flags & RSSM_VERIFY_TOKEN_MAJOR;
    rssm_status         st;

    // The ABI has a slot stride only: a checkpoint is dense within its slot.
    rssm_verify_tensor *state = &s->buffers[RSSM_VERIFY_STATE];
    *state = shape_of("state", "slot", p->checkpoint_dtype, n, H, p->head_dim, p->state_size);
    state->record_name = "row";
    state->element_bytes = rssm_dtype_bytes(state->dtype);
    rssm_verify_tensor as_one_run = *state;
    as_one_run.n_heads = as_one_run.n_records = 1;
    as_one_run.n_dense = H * p->head_dim * p->state_size;
    const bool gaps = !(s->request->flags & RSSM_VERIFY_DENSE);
    set_strides(&as_one_run, s->request->state_align, gaps, false);
    state->outer_stride = as_one_run.outer_stride;
    state->record_stride = p->state_size;
    state->head_stride = state->record_stride * p->head_dim;
    const size_t state_align =
        s->request->state_align > state->element_bytes ? s->request->state_align : state->element_bytes;
    RSSM_TRY(rssm_verify_tensor_create(state, &s->memory, state_align, gaps, s->diag));
    RSSM_TRY(create(s, RSSM_VERIFY_X_RING, shape_of("x_ring", "slot", act, n, H, R, p->head_dim), align, token_major));
    RSSM_TRY(
        create(s, RSSM_VERIFY_B_RING, shape_of("B_ring", "slot", act, n, G, R, p->state_size), align, token_major));
    RSSM_TRY(create(s, RSSM_VERIFY_DT_RING, shape_of("dt_ring", "slot", RSSM_F32, n, H, R, 1), align, token_major));
done:
    return st;
}

static rssm_status create_activations(rssm_verify_session *s)
{
    const rssm_problem *p = &s->problem;
    const uint32_t      act = p->activation_dtype, align = s->request->activation_align;
    const int64_t       n = (int64_t)s->request->n_rows * p->max_tokens, H = p->n_heads, G = p->n_groups;
    rssm_status         st;

    RSSM_TRY(create(s, RSSM_VERIFY_OUT, shape_of("out", "token", act, n, H, 1, p->head_dim), align, false));
    RSSM_TRY(create(s, RSSM_VERIFY_X, shape_of("x", "token", act, n, H, 1, p->head_dim), align, false));
    if (s->request->flags & RSSM_VERIFY_GATE) {
        RSSM_TRY(create(s, RSSM_VERIFY_Z, shape_of("z", "token", act, n, H, 1, p->head_dim), align, false));
    }
    RSSM_TRY(create(s, RSSM_VERIFY_B, shape_of("B", "token", act, n, G, 1, p->state_size), align, false));
    RSSM_TRY(create(s, RSSM_VERIFY_C, shape_of("C", "token", act, n, G, 1, p->state_size), align, false));
    RSSM_TRY(create(s, RSSM_VERIFY_DT, shape_of("dt", "token", p->dt_dtype, n, H, 1, 1), align, false));
done:
    return st;
}

static rssm_status create_arrays(rssm_verify_session *s)
{
    const rssm_problem *p = &s->problem;
    const size_t        n = s->request->n_rows, H = p->n_heads, parameter = rssm_dtype_bytes(p->parameter_dtype);
    rssm_status         st;

    RSSM_TRY(create_array(s, RSSM_VERIFY_A, "A", H, sizeof(float)));
    if (s->request->flags & RSSM_VERIFY_SKIP) RSSM_TRY(create_array(s, RSSM_VERIFY_D, "D", H, parameter));
    if (s->request->flags & RSSM_VERIFY_BIAS) RSSM_TRY(create_array(s, RSSM_VERIFY_DT_BIAS, "dt_bias", H, parameter));
    RSSM_TRY(create_array(s, RSSM_VERIFY_SLOTS, "slots", n, sizeof(int32_t)));
    RSSM_TRY(create_array(s, RSSM_VERIFY_TOKENS, "tokens", n, sizeof(int32_t)));
    RSSM_TRY(create_array(s, RSSM_VERIFY_CU_SEQLENS, "cu_seqlens", n + 1, sizeof(int32_t)));
    RSSM_TRY(create_array(s, RSSM_VERIFY_ACCEPTED, "accepted", n, sizeof(int32_t)));
    RSSM_TRY(create_array(s, RSSM_VERIFY_FORCED, "forced", n, 1));
    RSSM_TRY(create_array(s, RSSM_VERIFY_EPOCHS, "epochs", n, sizeof(uint32_t)));
    RSSM_TRY(create_array(s, RSSM_VERIFY_DESCRIPTORS, "descriptors", n, sizeof(rssm_descriptor)));
    RSSM_TRY(create_array(s, RSSM_VERIFY_ISSUES, "issues", 1, sizeof(uint32_t)));
    if (s->request->scratch_bytes_per_row > 0) {
        RSSM_TRY(create_array(s, RSSM_VERIFY_SCRATCH, "scratch", n, s->request->scratch_bytes_per_row));
    }
    rssm_verify_tensor *cursors = &s->buffers[RSSM_VERIFY_CURSORS];
    const int64_t       bytes = sizeof(rssm_cursor);
    *cursors = (rssm_verify_tensor){.name = "cursors",
                                    .outer_name = "slot",
                                    .record_name = "record",
                                    .element_bytes = 1,
                                    .n_outer = s->request->n_slots,
                                    .n_heads = 1,
                                    .n_records = 1,
                                    .n_dense = bytes,
                                    .outer_stride = bytes,
                                    .head_stride = bytes,
                                    .record_stride = bytes,
                                    .device = s->request->cursors,
                                    .borrowed = true};
    RSSM_TRY(rssm_verify_tensor_create(cursors, &s->memory, 1, false, s->diag));
done:
    return st;
}

rssm_status rssm_verify_buffers_create(rssm_verify_session *s)
{
    rssm_status st;
    RSSM_TRY(create_slots(s));
    RSSM_TRY(create_activations(s));
    RSSM_TRY(create_arrays(s));
done:
    return st;
}

void rssm_verify_buffers_destroy(rssm_verify_session *s)
{
    for (int i = 0; i < RSSM_VERIFY_N_BUFFERS; i++)
        rssm_verify_tensor_destroy(&s->buffers[i], &s->memory);
}

rssm_status rssm_verify_buffers_upload(rssm_verify_session *s)
{
    rssm_status st = RSSM_OK;
    for (int i = 0; i < RSSM_VERIFY_N_BUFFERS; i++) {
        RSSM_TRY(rssm_verify_tensor_upload(&s->buffers[i], &s->memory, s->diag));
    }
done:
    return st;
}

rssm_status rssm_verify_buffers_download(rssm_verify_session *s)
{
    rssm_status st = RSSM_OK;
    for (int i = 0; i < RSSM_VERIFY_N_BUFFERS; i++) {
        RSSM_TRY(rssm_verify_tensor_download(&s->buffers[i], &s->memory, s->diag));
    }
done:
    return st;
}

rssm_advance_args rssm_verify_advance_args(const rssm_verify_session *s)
{
    const rssm_verify_tensor *b = s->buffers;
    const bool                packed = s->request->flags & RSSM_VERIFY_PACKED;
    rssm_advance_args         args = RSSM_ADVANCE_ARGS_INIT;
    args.n_rows = s->request->n_rows;
    args.slots = rssm_verify_tensor_base(&b[RSSM_VERIFY_SLOTS]);
    if (s->schedule.pass_tokens) args.tokens = rssm_verify_tensor_base(&b[RSSM_VERIFY_TOKENS]);
    if (packed) args.cu_seqlens = rssm_verify_tensor_base(&b[RSSM_VERIFY_CU_SEQLENS]);
    if (s->schedule.pass_accepted) args.accepted = rssm_verify_tensor_base(&b[RSSM_VERIFY_ACCEPTED]);
    if (s->schedule.pass_forced) args.forced = rssm_verify_tensor_base(&b[RSSM_VERIFY_FORCED]);
    if (s->schedule.pass_epochs) args.epochs = rssm_verify_tensor_base(&b[RSSM_VERIFY_EPOCHS]);
    args.descriptors = rssm_verify_tensor_base(&b[RSSM_VERIFY_DESCRIPTORS]);
    args.issues = rssm_verify_tensor_base(&b[RSSM_VERIFY_ISSUES]);
    args.pad_slot = s->schedule.pad_slot;
    return args;
}

static rssm_token_tensor token_view(const rssm_verify_tensor *t)
{
    return (rssm_token_tensor){rssm_verify_tensor_base(t), t->outer_stride, t->head_stride};
}

static rssm_ring_tensor ring_view(const rssm_verify_tensor *t)
{
    return (rssm_ring_tensor){rssm_verify_tensor_base(t), t->outer_stride, t->head_stride, t->record_stride};
}

rssm_step_args rssm_verify_step_args(const rssm_verify_session *s)
{
    const rssm_verify_tensor *b = s->buffers;
    rssm_step_args            args = RSSM_STEP_ARGS_INIT;
    args.n_rows = s->request->n_rows;
    args.descriptors = rssm_verify_tensor_base(&b[RSSM_VERIFY_DESCRIPTORS]);
    args.x = token_view(&b[RSSM_VERIFY_X]);
    args.z = token_view(&b[RSSM_VERIFY_Z]);
    args.B = token_view(&b[RSSM_VERIFY_B]);
    args.C = token_view(&b[RSSM_VERIFY_C]);
    args.dt = token_view(&b[RSSM_VERIFY_DT]);
    args.out = token_view(&b[RSSM_VERIFY_OUT]);
    args.A = rssm_verify_tensor_base(&b[RSSM_VERIFY_A]);
    args.D = rssm_verify_tensor_base(&b[RSSM_VERIFY_D]);
    args.dt_bias = rssm_verify_tensor_base(&b[RSSM_VERIFY_DT_BIAS]);
    args.state = (rssm_state_tensor){rssm_verify_tensor_base(&b[RSSM_VERIFY_STATE]), b[RSSM_VERIFY_STATE].outer_stride};
    args.x_ring = ring_view(&b[RSSM_VERIFY_X_RING]);
    args.B_ring = ring_view(&b[RSSM_VERIFY_B_RING]);
    args.dt_ring = ring_view(&b[RSSM_VERIFY_DT_RING]);
    args.scratch = rssm_verify_tensor_base(&b[RSSM_VERIFY_SCRATCH]);
    return args;
}
