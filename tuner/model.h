// Models: from a preset name or a Hugging Face config.json to the problems the tuner solves.
//
// Responsible for: finding the Mamba-2 layers a model has and their shape, one rank's slice of it under tensor
// parallelism, and the number formats the config names. Not responsible for: what kernels support (a problem is checked
// by rssm_problem_normalise), weights, or anything of a model beside its Mamba-2 layers.
//
// Invariants:
//   M1  A loaded model has at least one shape, and in each n_heads % n_groups == 0 on the rank.
//   M2  Every head of a rank finds its group by head / (n_heads / n_groups), as kernels do.
// Threads: no shared state. A model is a plain value: copy it, nothing to free.
#ifndef RSSM_TUNER_MODEL_H
#define RSSM_TUNER_MODEL_H

#include <stdint.h>

#include "base/status.h"

enum {
    RSSM_MODEL_MAX_SHAPES = 4, // distinct layer shapes of one model; every architecture known today has one
    RSSM_MODEL_NAME_MAX = 64,  // bytes with the NUL
};

// A dtype option's "what the config says, else the usual": bf16 activations, fp32 checkpoints, raw dt like the
// activations, fp32 parameters.
#define RSSM_MODEL_FROM_CONFIG UINT32_MAX

typedef struct rssm_model_options {
    uint32_t tp;               // ranks that share the heads; 1: the whole model
    uint32_t window;           // L
    uint32_t max_tokens;       // T
    uint32_t activation_dtype; // rssm_dtype or RSSM_MODEL_FROM_CONFIG, here and below
    uint32_t checkpoint_dtype;
    uint32_t dt_dtype;
    uint32_t parameter_dtype;
} rssm_model_options;
#define RSSM_MODEL_OPTIONS_INIT                                                                                        \
    {                                                                                                                  \
        1, 16, 1, RSSM_MODEL_FROM_CONFIG, RSSM_MODEL_FROM_CONFIG, RSSM_MODEL_FROM_CONFIG, RSSM_MODEL_FROM_CONFIG       \
    }

typedef struct rssm_model_shape {
    rssm_problem problem;  // one rank's slice, not normalised
    uint32_t     n_layers; // layers of this shape; 0: not known (presets only). Only weighs sums over shapes
} rssm_model_shape;

typedef struct rssm_model {
    char             name[RSSM_MODEL_NAME_MAX];         // preset, or the folder or file the config was read from
    char             architecture[RSSM_MODEL_NAME_MAX]; // "nemotron_h", …; "mamba_ssm": the original Mamba-2 config
    uint32_t         tp;
    uint32_t         n_shapes;
    rssm_model_shape shapes[RSSM_MODEL_MAX_SHAPES];
} rssm_model;

// Loads a preset, a config.json or the folder that holds one. A preset's name wins over a file of that name; anything
// with a slash or a ".json" ending, or that exists, is a path.
//
// Tensor parallelism divides the heads, so tp must divide their number. Groups follow their heads: where tp divides
// the groups too, each rank has its share; where tp is a multiple of them, a rank's heads lie within one group and the
// group is replicated on the ranks that need it. In any other case some rank's heads straddle groups unevenly, which
// no (n_heads, n_groups) pair describes: an error.
//
// Returns RSSM_E_NOT_FOUND for an unknown preset or a missing file, RSSM_E_MODEL for a config that lacks a field or
// contradicts itself or whose architecture is unknown, RSSM_E_UNSUPPORTED for a known one that is not built,
// RSSM_E_INVALID_ARGUMENT for a tp that does not divide, RSSM_E_IO, RSSM_E_PERMISSION, RSSM_E_NO_MEMORY.
rssm_status rssm_model_load(const char *preset_or_path, const rssm_model_options *options, rssm_model *out_model,
                            rssm_diag *diag);

#endif
