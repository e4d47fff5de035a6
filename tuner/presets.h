// Presets: published models by name, so that no config.json is needed to tune for them.
// Threads: constant data.
#ifndef RSSM_TUNER_PRESETS_H
#define RSSM_TUNER_PRESETS_H

#include <stddef.h>

#include "base/str.h"
#include "tuner/model_config.h"

typedef struct rssm_preset {
    const char       *name;  // "nemotron-3-nano-4b"
    const char       *title; // the published model it describes
    rssm_model_config config;
} rssm_preset;

size_t             rssm_preset_count(void);
const rssm_preset *rssm_preset_at(size_t index); // index < count

// The preset of that name in any case; NULL: there is none.
const rssm_preset *rssm_preset_find(const char *name);

// The name nearest to `name` in spelling, or else the first that begins with it; NULL: there is none.
const char *rssm_preset_nearest(const char *name);

// Appends the table that `--model help` prints: one line per preset under a heading.
void rssm_preset_table(rssm_str *out);

#endif
