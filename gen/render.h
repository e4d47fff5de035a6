// The one renderer of rssm_config.h, for CUDA and host, the generic build and the checker.
//
// The header is one comment line, the include of numerics/types.h, two typedefs and one enum: valid C11 and C++17.
// Invariant: equal inputs give equal bytes. Threads: no shared state.
#ifndef RSSM_GEN_RENDER_H
#define RSSM_GEN_RENDER_H

#include "base/str.h"
#include "gen/space.h"

typedef struct rssm_render_input {
    const rssm_config  *config;
    const rssm_problem *problem;          // normalised; NULL: generic
    const rssm_facts   *facts;            // the problem's and the device's; NULL: generic
    uint32_t            activation_dtype; // generic only: T_act and T_state
    uint32_t            state_dtype;
    uint32_t            arch; // CFG_ARCH: 900 for sm_90a; 0 on the CPU
} rssm_render_input;

// Appends the header. Generic: CFG_HEAD_DIM, CFG_STATE_SIZE, CFG_GROUP_SIZE, CFG_WINDOW, CFG_RING_LENGTH and
// CFG_MAX_TOKENS are 0 ("take it from the argument struct"), and so is every derived value that depends on a problem
// or a device. RSSM_E_UNSUPPORTED where a derived value cannot be computed or does not fit an int.
rssm_status rssm_render_config(const rssm_render_input *input, rssm_str *out, rssm_diag *diag);

#endif
