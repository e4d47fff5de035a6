// See suite_cases.h.
#include "tests/simt/suite_cases.h"

enum {
    ALL = RSSM_VERIFY_ALL_TENSORS,
    GAPS_AND_ORDER = RSSM_VERIFY_ALL_TENSORS | RSSM_VERIFY_TOKEN_MAJOR | RSSM_VERIFY_PACKED | RSSM_VERIFY_PAD_ZERO,
};

static const simt_shape shapes[] = {
    // name        H  G  P    N    L   R   rows slots steps flags             eager
    {"grouped",    4, 1, 64,  64,  5,  7,  5,   8,    0,    ALL,              0},
    {"two_groups", 4, 2, 32,  48,  4,  4,  5,   7,    0,    GAPS_AND_ORDER,   0},   // a ragged unit
    {"least",      1, 1, 16,  16,  1,  1,  3,   4,    5,    ALL,              0},   // a fold every step
    {"plain",      2, 1, 32,  32,  3,  5,  3,   4,    0,    RSSM_VERIFY_DENSE, 0},  // no gate, skip, bias, gaps
    {"eager",      2, 2, 32,  32,  4,  4,  3,   4,    6,    ALL,              1},
    {"wide",       1, 1, 32,  256, 6,  6,  2,   3,    9,    ALL,              0},
    {"long",       1, 1, 16,  32,  20, 23, 3,   4,    46,   GAPS_AND_ORDER,   0},   // two blocks of records
    {"longest",    1, 1, 16,  16,  44, 44, 2,   3,    95,   ALL,              0},   // more than registers hold
};

size_t simt_shape_count(void)
{
    return sizeof shapes / sizeof shapes[0];
}

const simt_shape *simt_shape_at(size_t index)
{
    return &shapes[index];
}

simt_case simt_case_of(const simt_shape *s, size_t formats, const rssm_manifest *step, const rssm_manifest *advance,
                       uint64_t seed)
{
    static const uint32_t activations[] = {RSSM_BF16, RSSM_F16, RSSM_F32};
    simt_case             c = {.problem = RSSM_PROBLEM_INIT,
                               .advance = rssm_config_default(advance),
                               .step = rssm_config_default(step),
                               .n_rows = s->n_rows,
                               .n_slots = s->n_slots,
                               .n_steps = s->n_steps,
                               .eager = s->eager,
                               .flags = s->flags,
                               .seed = seed};
    rssm_problem         *p = &c.problem;
    p->recurrence = step->recurrence == RSSM_RECURRENCE_ANY ? RSSM_MAMBA2 : step->recurrence;
    p->n_heads = s->n_heads;
    p->n_groups = s->n_groups;
    p->head_dim = s->head_dim;
    p->state_size = s->state_size;
    p->window = s->window;
    p->ring_length = s->ring_length;
    p->checkpoint_dtype = formats % 2 ? RSSM_BF16 : RSSM_F32;
    p->activation_dtype = activations[formats / 2 % 3];
    p->dt_dtype = formats % 2 ? p->activation_dtype : RSSM_F32;
    p->parameter_dtype = formats / 2 % 2 ? p->activation_dtype : RSSM_F32;
    p->dt_softplus = s->flags & RSSM_VERIFY_BIAS ? 1 : 0;
    return c;
}
