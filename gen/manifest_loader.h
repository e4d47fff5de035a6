// Reading the members of a manifest: words, choices, integers and expressions over the names known so far.
// Private to manifest.c. Every error carries the JSON path.
#ifndef RSSM_GEN_MANIFEST_LOADER_H
#define RSSM_GEN_MANIFEST_LOADER_H

#include "base/json.h"
#include "gen/manifest.h"

enum { RSSM_WORD_MAX = 48, RSSM_NAMES_MAX = RSSM_FACTS_MAX };

typedef struct rssm_loader {
    rssm_manifest *m;
    rssm_arena    *arena;
    rssm_diag     *diag;
    const char    *names[RSSM_NAMES_MAX + 1]; // known to expressions so far; NULL-terminated
    size_t         n_names;
} rssm_loader;

// A C identifier of at most RSSM_WORD_MAX characters; in capitals where asked.
bool rssm_loader_is_word(const char *text, bool is_capital);

bool rssm_loader_knows(const rssm_loader *l, const char *name);
void rssm_loader_add_name(rssm_loader *l, const char *name);

// Required members. Texts are copied into the arena.
rssm_status rssm_loader_text(rssm_loader *l, rssm_json_value object, const char *key, const char **out_text);
rssm_status rssm_loader_word(rssm_loader *l, rssm_json_value object, const char *key, const char **out_word);
rssm_status rssm_loader_integer(rssm_loader *l, rssm_json_value object, const char *key, int64_t low, int64_t high,
                                int64_t *out_value);

// The index of a string among the NULL-terminated `words`.
rssm_status rssm_loader_choice(rssm_loader *l, rssm_json_value object, const char *key, const char *const *words,
                               uint32_t *out_index);

// As rssm_loader_integer, but an absent key leaves *value alone.
rssm_status rssm_loader_optional(rssm_loader *l, rssm_json_value object, const char *key, int64_t low, int64_t high,
                                 int64_t *value);

// Expressions: a value, and a required member.
rssm_status rssm_loader_expr(rssm_loader *l, rssm_json_value value, bool can_use_rows, const rssm_expr **out_expr);
rssm_status rssm_loader_member_expr(rssm_loader *l, rssm_json_value object, const char *key, bool can_use_rows,
                                    const rssm_expr **out_expr);

// An optional size without `rows`: the expression "0" where the key is absent.
rssm_status rssm_loader_bytes(rssm_loader *l, rssm_json_value object, const char *key, const rssm_expr **out_expr);

// A required array of three.
rssm_status rssm_loader_triple(rssm_loader *l, rssm_json_value object, const char *key, bool can_use_rows,
                               const rssm_expr *out_exprs[3]);

#endif
