// Integer expressions of manifests: C's operators + - * / % == != < <= > >= && || ! ?: and parentheses, unary minus,
// decimal literals, names (with dots: dev.cores), min(a,b), max(a,b), ceil_div(a,b).
//
// Arithmetic is 64-bit and checked: overflow and division by zero are errors, never wrap. && || ?: evaluate only what
// they need, so `a != 0 && b % a == 0` is safe. There are no shifts, assignments or side effects.
// Invariants: a tree is immutable, at most RSSM_EXPR_DEPTH_MAX deep, and lives in the arena it was parsed into.
// Threads: evaluation is safe from any number of threads.
#ifndef RSSM_GEN_EXPR_H
#define RSSM_GEN_EXPR_H

#include "base/arena.h"
#include "base/status.h"
#include "gen/facts.h"

enum { RSSM_EXPR_DEPTH_MAX = 64 };

typedef struct rssm_expr rssm_expr;

// RSSM_E_MANIFEST with the expression and the column (from 1) of the error; RSSM_E_NO_MEMORY.
rssm_status rssm_expr_parse(const char *text, rssm_arena *arena, const rssm_expr **out_expr, rssm_diag *diag);

// RSSM_E_MANIFEST for an unknown name (with the nearest known one), RSSM_E_UNSUPPORTED for overflow and division by
// zero, which depend on the values; each with the column.
rssm_status rssm_expr_eval(const rssm_expr *expr, const rssm_facts *facts, int64_t *out_value, rssm_diag *diag);

// The text it was parsed from.
const char *rssm_expr_text(const rssm_expr *expr);

// Calls visit(context, name, column) for every occurrence of a name, from left to right, until one returns false.
// Returns whether all returned true.
typedef bool rssm_expr_name_fn(void *context, const char *name, int column);
bool         rssm_expr_names(const rssm_expr *expr, rssm_expr_name_fn *visit, void *context);

#endif
