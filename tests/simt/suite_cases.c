// See suite_cases.h.
#include "tests/simt/suite_cases.h"

#include "base/problem.h"

enum {
    ALL = RSSM_VERIFY_ALL_TENSORS,
    GAPS_AND_ORDER = RSSM_VERIFY_ALL_TENSORS | RSSM_VERIFY_TOKEN_MAJOR | RSSM_VERIFY_PACKED | RSSM_VERIFY_PAD_ZERO,
};

// The cheaper ones first: most defects show in all of them.
enum { GROUPED = 14, GROUPED_TOKENS = 13, LEAST = 5 };

static const simt_shape shapes[] = {
    // clang-format off
    // name        H  G  P   N    L   R   T   rows slots steps flags             eager
    {"plain",      2, 1, 32, 32,  3,  5,  1,  3,   4,    0,    RSSM_VERIFY_DENSE, 0}, // no gate, skip, bias, gaps
    {"two_groups", 4, 2, 32, 48,  4,  4,  1,  5,   7,    0,    GAPS_AND_ORDER,    0}, // a ragged unit
    {"long",       1, 1, 16, 32,  20, 23, 1,  3,   4,    46,   GAPS_AND_ORDER,    0}, // two blocks of records
    {"wide",       1, 1, 32, 256, 6,  6,  1,  2,   3,    9,    ALL,               0},
    {"longest",    1, 1, 16, 16,  44, 44, 1,  2,   3,    95,   ALL,               0}, // more than registers hold
    {"least",      1, 1, 16, 16,  1,  1,  1,  3,   4,    5,    ALL,               0}, // a fold every step
    {"eager",      2, 2, 32, 32,  4,  4,  1,  3,   4,    6,    ALL,               1},
    {"pair",       2, 1, 32, 32,  3,  5,  2,  3,   4,    0,    RSSM_VERIFY_DENSE, 0}, // tokens, as the first three
    {"drafts",     4, 2, 32, 48,  6,  10, 4,  5,   7,    0,    GAPS_AND_ORDER,    0},
    {"long_drafts", 1, 1, 16, 32, 20, 27, 7,  3,   4,    30,   GAPS_AND_ORDER,    0},
    {"most",       1, 1, 32, 80,  16, 32, 16, 3,   4,    9,    ALL,               0}, // two halves of tokens
    {"flushing",   1, 1, 16, 16,  5,  10, 5,  4,   6,    12,   ALL,               0}, // a fold nearly every step
    {"far_ring",   1, 1, 16, 16,  34, 40, 6,  2,   3,    30,   ALL,               0}, // three blocks of records
    {"grouped_drafts", 4, 1, 64, 64, 5, 8, 3, 5,   8,    0,    ALL,               0},
    {"grouped",    4, 1, 64, 64,  5,  7,  1,  5,   8,    0,    ALL,               0},
    // clang-format on
};
_Static_assert(sizeof shapes / sizeof shapes[0] == GROUPED + 1, "the shape of the corners is the last");

size_t simt_shape_count(void)
{
    return sizeof shapes / sizeof shapes[0];
}

const simt_shape *simt_shape_at(size_t index)
{
    return &shapes[index];
}

// Formats of a shape in the suite, a bit each; a shape of each template runs in all, the others in one or two.
static const unsigned char formats_of_shape[] = {0x0c, 0x3f, 0x24, 0x22, 0x28, 0x12, 0x21, // one token
                                                 0x04, 0x3f, 0x20, 0x03, 0x08, 0x10, 0x01, // several
                                                 0x3f};
_Static_assert(sizeof formats_of_shape == sizeof shapes / sizeof shapes[0], "one entry for each shape");

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
    p->max_tokens = s->tokens;
    p->checkpoint_dtype = formats % 2 ? RSSM_BF16 : RSSM_F32;
    p->activation_dtype = activations[formats / 2 % 3];
    p->dt_dtype = formats % 2 ? p->activation_dtype : RSSM_F32;
    p->parameter_dtype = formats / 2 % 2 ? p->activation_dtype : RSSM_F32;
    p->dt_softplus = s->flags & RSSM_VERIFY_BIAS ? 1 : 0;
    return c;
}

static bool is_served(const simt_case *c)
{
    rssm_problem problem;
    if (rssm_problem_normalise(&c->problem, &problem, NULL) != RSSM_OK) return false;
    const rssm_facts facts = simt_facts(&problem);
    return rssm_manifest_serves(c->step.manifest, &problem, NULL) == RSSM_OK &&
           rssm_config_check(&c->step, &facts, NULL) == RSSM_OK;
}

// Every shape in its first format; then in the others.
static bool shape_case(size_t *index, bool first, const rssm_manifest *step, const rssm_manifest *advance,
                       simt_case *out_case)
{
    for (size_t turn = first ? 0 : 1; turn < (first ? 1 : SIMT_FORMAT_PAIRS); turn++) {
        for (size_t i = 0; i < simt_shape_count(); i++) {
            size_t formats = 0, passed = 0;
            while (formats < SIMT_FORMAT_PAIRS && !(formats_of_shape[i] >> formats & 1 && passed++ == turn))
                formats++;
            if (formats == SIMT_FORMAT_PAIRS) continue;
            *out_case = simt_case_of(&shapes[i], formats, step, advance, 11 * i + formats);
            if (is_served(out_case) && (*index)-- == 0) return true;
        }
    }
    return false;
}

// Corners of the step, each in another format than its neighbours.
static bool corner_case(size_t *index, const rssm_manifest *step, const rssm_manifest *advance, simt_case *out_case)
{
    rssm_config  configs[SIMT_CONFIGS_MAX];
    rssm_problem problem;
    for (size_t i = 1; i < SIMT_CONFIGS_MAX; i++) {
        const size_t shape = step->serves.max_tokens.high > 1 ? GROUPED_TOKENS : GROUPED;
        *out_case = simt_case_of(&shapes[shape], i % SIMT_FORMAT_PAIRS, step, advance, 100 + i);
        if (rssm_problem_normalise(&out_case->problem, &problem, NULL) != RSSM_OK) return false;
        if (i >= simt_corner_configs(step, &problem, configs)) return false;
        out_case->step = configs[i];
        if (is_served(out_case) && (*index)-- == 0) return true;
    }
    return false;
}

// Corners of advance, with more rows than it has threads, on the least step.
static bool advance_case(size_t *index, const rssm_manifest *step, const rssm_manifest *advance, simt_case *out_case)
{
    rssm_config  configs[SIMT_CONFIGS_MAX];
    rssm_problem problem;
    simt_shape   shape = shapes[LEAST];
    shape.window = 3, shape.ring_length = 3, shape.n_rows = 150, shape.n_slots = 160, shape.n_steps = 4;
    *out_case = simt_case_of(&shape, 1, step, advance, 5);
    if (rssm_problem_normalise(&out_case->problem, &problem, NULL) != RSSM_OK || !is_served(out_case)) return false;
    const size_t n = simt_corner_configs(advance, &problem, configs);
    if (*index >= n) {
        *index -= n;
        return false;
    }
    out_case->advance = configs[*index];
    out_case->flags = *index % 2 ? ALL | RSSM_VERIFY_PACKED : ALL | RSSM_VERIFY_PAD_ZERO;
    return true;
}

bool simt_suite_case(size_t index, const rssm_manifest *step, const rssm_manifest *advance, simt_case *out_case)
{
    return shape_case(&index, true, step, advance, out_case) || advance_case(&index, step, advance, out_case) ||
           corner_case(&index, step, advance, out_case) || shape_case(&index, false, step, advance, out_case);
}
