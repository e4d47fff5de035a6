// The fixtures of the model tests: one config per architecture and spelling, with what it must give.
#ifndef RSSM_TESTS_MODEL_FIXTURE_H
#define RSSM_TESTS_MODEL_FIXTURE_H

#include "base/str.h"
#include "tuner/model_config.h"

enum { MAX_KEYS = 8 };

typedef struct model_fixture {
    const char       *file; // under fixtures/
    rssm_model_config want;
    const char       *mixer_opening;      // text after which fields of the mixer can be put
    const char       *required[MAX_KEYS]; // integer fields without which the config is refused; NULL ends
    const char       *optional[MAX_KEYS]; // further integer fields that are read
} model_fixture;

extern const model_fixture model_fixtures[];
extern const size_t        n_model_fixtures;

// The text of a fixture; free with rssm_free.
char *fixture_text(const model_fixture *f, size_t *out_n);

// Parses with the default options and the name "test.json".
rssm_status parse(const char *text, rssm_model_config *out_config, rssm_diag *diag);

// The fixture with one key renamed to something nobody reads and, if `value` is not NULL, given again with this value.
void fixture_with(const model_fixture *f, const char *key, const char *value, rssm_str *out);

#endif
