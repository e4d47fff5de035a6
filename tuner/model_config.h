// A model's config.json as far as its Mamba-2 layers go.
//
// Responsible for: the field names of each architecture, their defaults where a file may leave them out, nesting under
// text_config, and the checks between fields that the architecture itself makes. Not responsible for: files, tensor
// parallelism, presets. The text is untrusted: every value is range-checked, and any bytes give a status.
// Threads: no shared state.
#ifndef RSSM_TUNER_MODEL_CONFIG_H
#define RSSM_TUNER_MODEL_CONFIG_H

#include <stddef.h>

#include "tuner/model.h"

enum {
    RSSM_CONFIG_MAX_BYTES = 2 << 20,      // published ones: tens of KB, with lists of quantised weights hundreds
    RSSM_CONFIG_MAX_LAYERS = 4096,        // the deepest published model has 108
    RSSM_CONFIG_MAX_HEADS = 65536,        // 256 published
    RSSM_CONFIG_MAX_DIM = 4096,           // of a head and of the state; 128 and 256 published
    RSSM_CONFIG_MAX_HIDDEN = 1024 * 1024, // 8192 published
    RSSM_CONFIG_MAX_EXPAND = 1024,        // 2 published
};

// The whole model: before tensor parallelism.
typedef struct rssm_model_config {
    const char *architecture; // static
    uint32_t    n_heads, head_dim, state_size, n_groups;
    uint32_t    n_layers;         // with a Mamba-2 mixer; 0: not known (presets only)
    uint32_t    activation_dtype; // RSSM_MODEL_FROM_CONFIG: the config does not say, here and below
    uint32_t    checkpoint_dtype;
} rssm_model_config;

// Reads a config. `name` is the file's, for messages. A dtype that `options` fixes is not looked at. Python writes
// infinities and NaNs as bare words, and published configs have them (time_step_limit); they read as null.
// Returns RSSM_E_MODEL, RSSM_E_UNSUPPORTED, RSSM_E_NO_MEMORY.
rssm_status rssm_model_config_parse(const char *text, size_t n, const char *name, const rssm_model_options *options,
                                    rssm_model_config *out_config, rssm_diag *diag);

#endif
