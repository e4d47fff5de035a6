// Inside of the config reader: what the files model_config.c, model_family.c and model_layers.c share.
//
// A family is one architecture: which fields hold its mixer's shape and how its Mamba-2 layers are counted. A field set
// to null counts as absent, as in transformers. Dimensions and layer lists have no defaults here although transformers
// gives them some: a config without them is not a published model's, and a guess would tune the wrong shape. Group
// count and expansion factor have the defaults of transformers.
#ifndef RSSM_TUNER_MODEL_READER_H
#define RSSM_TUNER_MODEL_READER_H

#include <stdbool.h>

#include "base/json.h"
#include "tuner/model_config.h"

typedef struct rssm_model_family rssm_model_family;

typedef struct rssm_model_reader {
    rssm_json_value           root;  // of the file
    rssm_json_value           model; // holds the model's fields: root, or its text_config
    rssm_json_value           mixer; // holds the mixer's: model, or its ssm_cfg
    const rssm_model_family  *family;
    const rssm_model_options *options;
    rssm_diag                *diag;
} rssm_model_reader;

// Keys of one field, the one that wins first.
typedef struct rssm_model_field {
    const char *key, *other; // other: a further name, or NULL
} rssm_model_field;

enum {
    RSSM_FAMILY_HEADS_DERIVED = 1 << 0,    // the head count may be absent: width / head_dim
    RSSM_FAMILY_HEAD_DIM_DERIVED = 1 << 1, // the head dim may be absent or "auto": width / heads
    RSSM_FAMILY_WIDTH_UNKNOWN = 1 << 2,    // without its `width` field the width is not known; null is not absent there
};

struct rssm_model_family {
    const char      *model_type;
    rssm_model_field n_heads, head_dim, state_size, n_groups;
    const char      *hidden_size; // NULL: heads and head dim are free of the model's width
    rssm_model_field expand;
    const char      *width; // replaces expand * hidden_size; NULL: there is no such field
    uint32_t         flags; // RSSM_FAMILY_*
    uint32_t         default_groups;
    uint32_t         default_head_dim, default_state_size; // 0: must be given
    rssm_status (*count_layers)(const rssm_model_reader *r, uint32_t *out_n);
};

// A member that is there and not null.
bool rssm_model_get(rssm_json_value object, const char *key, rssm_json_value *out_value);
bool rssm_model_get_field(rssm_json_value object, rssm_model_field f, rssm_json_value *out_value);

// Reads an integer of 1 .. high. An absent one is `fallback`, or an error where that is 0.
rssm_status rssm_model_read_size(const rssm_model_reader *r, rssm_json_value object, rssm_model_field f,
                                 const char *meaning, int64_t high, uint32_t fallback, int64_t *out_value);
rssm_status rssm_model_fail_missing(const rssm_model_reader *r, rssm_json_value object, const char *key,
                                    const char *meaning);

// model_family.c: finds the family by the model_type of the file or, where that is a wrapper around a language model,
// of its text_config; sets family, model and mixer.
rssm_status rssm_model_select_family(rssm_model_reader *r);

// model_layers.c: layers with a Mamba-2 mixer.
rssm_status rssm_model_count_every(const rssm_model_reader *r, uint32_t *out_n);
rssm_status rssm_model_count_nemotron(const rssm_model_reader *r, uint32_t *out_n);
rssm_status rssm_model_count_granite(const rssm_model_reader *r, uint32_t *out_n);
rssm_status rssm_model_count_zamba2(const rssm_model_reader *r, uint32_t *out_n);
rssm_status rssm_model_count_bamba(const rssm_model_reader *r, uint32_t *out_n);
rssm_status rssm_model_count_mamba_ssm(const rssm_model_reader *r, uint32_t *out_n);

#endif
