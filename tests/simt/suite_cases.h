// The problems that every CUDA step template is run on, and how one case is chosen; shared by the tests, simt-check and
// the mutation script.
//
// Shapes are the smallest that reach a path: odd batch, null rows, wraps and folds come from the verifier's traffic.
#ifndef RSSM_SIMT_SUITE_CASES_H
#define RSSM_SIMT_SUITE_CASES_H

#include "tests/simt/suite.h"

typedef struct simt_shape {
    const char *name;
    uint32_t    n_heads, n_groups, head_dim, state_size, window, ring_length, tokens;
    uint32_t    n_rows, n_slots, n_steps; // n_steps 0: 2 L + 3
    uint32_t    flags, eager;
} simt_shape;

size_t            simt_shape_count(void);
const simt_shape *simt_shape_at(size_t index);

// Formats: 0 .. SIMT_N_FORMATS_TRIED - 1 are all pairs of checkpoint f32, bf16 and activation bf16, f16, f32.
enum { SIMT_FORMAT_PAIRS = 6 };

// A case of default configurations. dt and parameters take the activation's format in every other pair.
simt_case simt_case_of(const simt_shape *shape, size_t formats, const rssm_manifest *step, const rssm_manifest *advance,
                       uint64_t seed);

// The whole suite of one step template, in an order in which defects are found soon: shapes, corners of
// advance and step, and the shapes again in other formats. `index` from 0; false behind the last. Cases that the template
// does not serve are left out.
bool simt_suite_case(size_t index, const rssm_manifest *step, const rssm_manifest *advance, simt_case *out_case);

#endif
