// What a valid problem is, its canonical text, its key and its native memory layout.
//
// Validity is a property of the problem alone; whether kernels exist for it is decided elsewhere. Every field is
// checked before the products, so that no product can overflow 64 bits.
// Threads: thread-safe.
#include "base/problem.h"

#include <stddef.h>

#include "base/dtype.h"

enum {
    MOST_HEADS = 65536,
    MOST_HEAD_DIM = 1024,
    MOST_STATE_SIZE = 1024,
    MOST_RING_LENGTH = 32767, // descriptors hold ring positions in 16 bits
    DEFAULT_PHILOX_ROUNDS = 7,
    MOST_PHILOX_ROUNDS = 16,
    NVFP4_BLOCK = 16,    // state columns that share one E4M3 scale
    SLOT_ALIGNMENT = 16, // bytes; every slot of a native layout begins so
    PROBLEM_KEY_FORMAT = 1,
};

static const uint32_t known_flags = RSSM_PROBLEM_EAGER_16BIT;

static const char *const recurrence_names[] = {[RSSM_MAMBA2] = "mamba2", [RSSM_GDN] = "gdn", [RSSM_KDA] = "kda"};

static bool is_16bit(uint32_t dtype)
{
    return dtype == RSSM_BF16 || dtype == RSSM_F16;
}

static bool is_8bit(uint32_t dtype)
{
    return dtype == RSSM_FP8_E4M3 || dtype == RSSM_INT8;
}

static rssm_status check_range(const char *field, uint32_t value, uint32_t low, uint32_t high, rssm_diag *diag)
{
    if (value >= low && value <= high) return RSSM_OK;
    return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "%s is %u; it must be in %u .. %u", field, value, low, high);
}

static rssm_status check_shape(const rssm_problem *p, rssm_diag *diag)
{
    rssm_status st = RSSM_OK;

    RSSM_TRY(check_range("recurrence", p->recurrence, RSSM_MAMBA2, RSSM_KDA, diag));
    RSSM_TRY(check_range("n_heads", p->n_heads, 1, MOST_HEADS, diag));
    RSSM_TRY(check_range("n_groups", p->n_groups, 1, MOST_HEADS, diag));
    RSSM_TRY(check_range("head_dim", p->head_dim, 1, MOST_HEAD_DIM, diag));
    RSSM_TRY(check_range("state_size", p->state_size, 1, MOST_STATE_SIZE, diag));
    if (p->n_heads % p->n_groups != 0) {
        st = RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "n_groups is %u and does not divide n_heads, which is %u",
                       p->n_groups, p->n_heads);
    }
done:
    return st;
}

// The least ring that serves the window.
static uint32_t least_ring(const rssm_problem *p)
{
    return p->max_tokens == 1 ? p->window : p->window + p->max_tokens;
}

static rssm_status check_window(const rssm_problem *p, rssm_diag *diag)
{
    rssm_status st = RSSM_OK;

    RSSM_TRY(check_range("window", p->window, 1, RSSM_PROBLEM_MAX_WINDOW, diag));
    RSSM_TRY(check_range("max_tokens", p->max_tokens, 1, RSSM_PROBLEM_MAX_TOKENS, diag));
    if (p->max_tokens > p->window) {
        st = RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "max_tokens is %u and larger than the window, which is %u",
                       p->max_tokens, p->window);
        goto done;
    }
    if (p->ring_length != 0 && p->ring_length < least_ring(p)) {
        st = RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT,
                       "ring_length is %u; a window of %u with max_tokens %u needs at least %u records", p->ring_length,
                       p->window, p->max_tokens, least_ring(p));
        goto done;
    }
    RSSM_TRY(check_range("ring_length", p->ring_length, 0, MOST_RING_LENGTH, diag));
done:
    return st;
}

static rssm_status check_activations(const rssm_problem *p, rssm_diag *diag)
{
    if (p->activation_dtype != RSSM_F32 && !is_16bit(p->activation_dtype)) {
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "activation_dtype is %u (%s); it must be f32, bf16 or f16",
                         p->activation_dtype, rssm_dtype_name(p->activation_dtype));
    }
    if (p->dt_dtype != RSSM_F32 && p->dt_dtype != p->activation_dtype) {
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "dt_dtype is %u (%s); it must be f32 or the activation's, %s",
                         p->dt_dtype, rssm_dtype_name(p->dt_dtype), rssm_dtype_name(p->activation_dtype));
    }
    if (p->parameter_dtype != RSSM_F32 && p->parameter_dtype != p->activation_dtype) {
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT,
                         "parameter_dtype is %u (%s); it must be f32 or the activation's, %s", p->parameter_dtype,
                         rssm_dtype_name(p->parameter_dtype), rssm_dtype_name(p->activation_dtype));
    }
    return RSSM_OK;
}

static rssm_status check_shared(const rssm_problem *p, rssm_diag *diag)
{
    if (p->checkpoint_dtype == RSSM_NVFP4) {
        return RSSM_FAIL(diag, RSSM_E_UNSUPPORTED,
                         "a shared checkpoint cannot be nvfp4; use separate copies, with nvfp4 as read_dtype");
    }
    if (p->read_dtype != 0) {
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT,
                         "read_dtype is %u (%s) but the checkpoint is shared; leave it 0 or choose separate copies",
                         p->read_dtype, rssm_dtype_name(p->read_dtype));
    }
    return RSSM_OK;
}

static rssm_status check_separate(const rssm_problem *p, rssm_diag *diag)
{
    if (p->checkpoint_dtype != RSSM_F32 && !is_16bit(p->checkpoint_dtype)) {
        return RSSM_FAIL(diag, RSSM_E_UNSUPPORTED,
                         "with separate copies checkpoint_dtype (%s) must be f32, bf16 or f16; "
                         "the low-precision copy is read_dtype",
                         rssm_dtype_name(p->checkpoint_dtype));
    }
    if (!is_8bit(p->read_dtype) && p->read_dtype != RSSM_NVFP4) {
        return RSSM_FAIL(diag, RSSM_E_UNSUPPORTED,
                         "with separate copies read_dtype is %u (%s); it must be fp8, int8 or nvfp4", p->read_dtype,
                         rssm_dtype_name(p->read_dtype));
    }
    if (p->read_dtype == RSSM_NVFP4 && p->state_size % NVFP4_BLOCK != 0) {
        return RSSM_FAIL(diag, RSSM_E_UNSUPPORTED,
                         "an nvfp4 read copy needs a state_size that is a multiple of %d; it is %u", NVFP4_BLOCK,
                         p->state_size);
    }
    return RSSM_OK;
}

static rssm_status check_checkpoint(const rssm_problem *p, rssm_diag *diag)
{
    rssm_status st = RSSM_OK;

    RSSM_TRY(
        check_range("checkpoint_mode", p->checkpoint_mode, RSSM_CHECKPOINT_SHARED, RSSM_CHECKPOINT_SEPARATE, diag));
    RSSM_TRY(check_range("checkpoint_dtype", p->checkpoint_dtype, RSSM_F32, RSSM_NVFP4, diag));
    RSSM_TRY(check_range("rounding", p->rounding, RSSM_NEAREST, RSSM_STOCHASTIC, diag));
    RSSM_TRY(check_range("philox_rounds", p->philox_rounds, 0, MOST_PHILOX_ROUNDS, diag));
    RSSM_TRY(p->checkpoint_mode == RSSM_CHECKPOINT_SHARED ? check_shared(p, diag) : check_separate(p, diag));
    if (p->rounding == RSSM_STOCHASTIC && p->checkpoint_dtype == RSSM_F32) {
        st = RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT,
                       "stochastic rounding needs a checkpoint narrower than f32; choose nearest rounding");
        goto done;
    }
    if (p->flags & ~known_flags) {
        st = RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "flags holds unknown bits: 0x%x", p->flags & ~known_flags);
        goto done;
    }
    if ((p->flags & RSSM_PROBLEM_EAGER_16BIT) &&
        (p->checkpoint_mode != RSSM_CHECKPOINT_SHARED || !is_16bit(p->checkpoint_dtype))) {
        st = RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT,
                       "RSSM_PROBLEM_EAGER_16BIT is only for shared bf16 or f16 checkpoints");
    }
done:
    return st;
}

// Elements of one slot, as every layout and kernel counts them. All factors are checked before.
typedef struct slot_elements {
    uint64_t state, x_ring, B_ring, dt_ring;
} slot_elements;

static slot_elements count_elements(const rssm_problem *p)
{
    const uint64_t H = p->n_heads, G = p->n_groups, P = p->head_dim, N = p->state_size, R = p->ring_length;

    return (slot_elements){.state = H * P * N, .x_ring = H * R * P, .B_ring = G * R * N, .dt_ring = H * R};
}

// Kernels index inside a slot with 32-bit integers.
static rssm_status check_elements(const rssm_problem *p, rssm_diag *diag)
{
    const slot_elements n = count_elements(p);
    const struct {
        const char *what;
        uint64_t    n;
    } parts[] = {{"checkpoint", n.state}, {"x ring", n.x_ring}, {"B ring", n.B_ring}, {"dt ring", n.dt_ring}};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].n <= INT32_MAX) continue;
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT,
                         "the %s of one slot has %llu elements; fewer than 2^31 are possible", parts[i].what,
                         (unsigned long long)parts[i].n);
    }
    return RSSM_OK;
}

rssm_status rssm_problem_normalise(const rssm_problem *in, rssm_problem *out, rssm_diag *diag)
{
    rssm_status  st = RSSM_OK;
    rssm_problem p;

    if (!in) return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "the problem is NULL");
    if (in->struct_size != sizeof p) {
        return RSSM_FAIL(diag, RSSM_E_STRUCT_SIZE,
                         "the problem's struct_size is %u, this version knows %zu; use RSSM_PROBLEM_INIT",
                         in->struct_size, sizeof p);
    }
    p = *in;
    RSSM_TRY(check_shape(&p, diag));
    RSSM_TRY(check_window(&p, diag));
    RSSM_TRY(check_activations(&p, diag));
    RSSM_TRY(check_checkpoint(&p, diag));
    if (p.ring_length == 0) p.ring_length = least_ring(&p);
    if (p.rounding == RSSM_NEAREST)
        p.philox_rounds = 0;
    else if (p.philox_rounds == 0)
        p.philox_rounds = DEFAULT_PHILOX_ROUNDS;
    p.dt_softplus = p.dt_softplus != 0;
    RSSM_TRY(check_elements(&p, diag));
    *out = p;
done:
    return st;
}

rssm_status rssm_problem_check(const rssm_problem *problem, rssm_diag *diag)
{
    rssm_problem normalised;

    return rssm_problem_normalise(problem, &normalised, diag);
}

void rssm_problem_text(const rssm_problem *p, rssm_str *out)
{
    const bool is_separate = p->checkpoint_mode == RSSM_CHECKPOINT_SEPARATE;

    rssm_str_printf(out, "%s H=%u G=%u P=%u N=%u L=%u T=%u R=%u", recurrence_names[p->recurrence], p->n_heads,
                    p->n_groups, p->head_dim, p->state_size, p->window, p->max_tokens, p->ring_length);
    rssm_str_printf(out, " act=%s dt=%s param=%s checkpoint=%s round=%s softplus=%u",
                    rssm_dtype_name(p->activation_dtype), rssm_dtype_name(p->dt_dtype),
                    rssm_dtype_name(p->parameter_dtype), rssm_dtype_name(p->checkpoint_dtype),
                    p->rounding == RSSM_STOCHASTIC ? "stochastic" : "nearest", p->dt_softplus);
    rssm_str_printf(out, " mode=%s read=%s philox=%u flags=%u", is_separate ? "separate" : "shared",
                    is_separate ? rssm_dtype_name(p->read_dtype) : "none", p->philox_rounds, p->flags);
}

// The numbers are part of every database: never renumber, never reuse.
rssm_hash rssm_problem_key(const rssm_problem *p)
{
    const struct {
        uint32_t id, value;
    } fields[] = {
        {1, p->recurrence},        {2, p->n_heads},     {3, p->n_groups},         {4, p->head_dim},
        {5, p->state_size},        {6, p->window},      {7, p->max_tokens},       {8, p->ring_length},
        {9, p->activation_dtype},  {10, p->dt_dtype},   {11, p->parameter_dtype}, {12, p->checkpoint_mode},
        {13, p->checkpoint_dtype}, {14, p->read_dtype}, {15, p->rounding},        {16, p->philox_rounds},
        {17, p->dt_softplus},      {18, p->flags},
    };
    rssm_hasher h;

    rssm_hasher_init(&h);
    rssm_hasher_u64(&h, 0, PROBLEM_KEY_FORMAT);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        rssm_hasher_u64(&h, fields[i].id, fields[i].value);
    return rssm_hasher_end(&h);
}

static uint64_t round_up(uint64_t n, uint64_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

// Elements from slot to slot: a multiple of SLOT_ALIGNMENT bytes.
static int64_t slot_stride(uint64_t n_elements, uint32_t element_bytes)
{
    return (int64_t)round_up(n_elements, SLOT_ALIGNMENT / element_bytes);
}

static void fill_layout(const rssm_problem *p, rssm_layout *l)
{
    const slot_elements n = count_elements(p);
    const uint32_t      act = rssm_dtype_bytes(p->activation_dtype), state = rssm_dtype_bytes(p->checkpoint_dtype);
    const int64_t       P = p->head_dim, N = p->state_size, R = p->ring_length;

    *l = (rssm_layout)RSSM_LAYOUT_INIT;
    l->ring_length = p->ring_length;
    l->state_slot_stride = slot_stride(n.state, state);
    l->x_slot_stride = slot_stride(n.x_ring, act);
    l->x_head_stride = R * P;
    l->x_record_stride = P;
    l->B_slot_stride = slot_stride(n.B_ring, act);
    l->B_head_stride = R * N;
    l->B_record_stride = N;
    l->dt_slot_stride = slot_stride(n.dt_ring, sizeof(float));
    l->dt_head_stride = R;
    l->dt_record_stride = 1;
    l->state_bytes = (uint64_t)l->state_slot_stride * state;
    l->x_ring_bytes = (uint64_t)l->x_slot_stride * act;
    l->B_ring_bytes = (uint64_t)l->B_slot_stride * act;
    l->dt_ring_bytes = (uint64_t)l->dt_slot_stride * sizeof(float);
    l->cursor_bytes = sizeof(rssm_cursor_record);
    l->descriptor_bytes = sizeof(rssm_descriptor_record);
}

// rssm_layout has no place yet for scales, read copies and the rings of GDN and KDA: such problems are refused here
// rather than given half a layout.
rssm_status rssm_layout_get(const rssm_problem *problem, rssm_layout *out_layout, rssm_diag *diag)
{
    rssm_status  st = RSSM_OK;
    rssm_problem p;

    if (!out_layout) return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "out_layout is NULL");
    if (out_layout->struct_size != sizeof *out_layout) {
        return RSSM_FAIL(diag, RSSM_E_STRUCT_SIZE,
                         "the layout's struct_size is %u, this version knows %zu; use RSSM_LAYOUT_INIT",
                         out_layout->struct_size, sizeof *out_layout);
    }
    RSSM_TRY(rssm_problem_normalise(problem, &p, diag));
    if (p.recurrence != RSSM_MAMBA2 || p.checkpoint_mode != RSSM_CHECKPOINT_SHARED || is_8bit(p.checkpoint_dtype)) {
        st = RSSM_FAIL(diag, RSSM_E_NOT_IMPLEMENTED,
                       "layouts are described for mamba2 with one shared f32, bf16 or f16 checkpoint; "
                       "other problems need a later version");
        goto done;
    }
    fill_layout(&p, out_layout);
done:
    return st;
}

uint32_t rssm_batch_bucket(uint32_t n_rows)
{
    uint32_t bucket = 1;

    while (bucket < n_rows && bucket < 1u << 31)
        bucket *= 2;
    return bucket;
}
