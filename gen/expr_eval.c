// Evaluator of expressions: a walk of the tree with checked 64-bit arithmetic. See expr.h.
#include <string.h>

#include "base/json.h"
#include "gen/expr_node.h"

typedef struct evaluation {
    const rssm_expr  *expr;
    const rssm_facts *facts;
    rssm_diag        *diag;
} evaluation;

static rssm_status fail_value(const evaluation *e, const node *n, const char *what)
{
    return RSSM_FAIL(e->diag, RSSM_E_UNSUPPORTED, "expression \"%.*s\", column %d: %s", RSSM_EXPR_CITED_MAX,
                     e->expr->text, n->column, what);
}

static rssm_status fail_unknown(const evaluation *e, const node *n)
{
    const char *names[RSSM_FACTS_MAX + 1] = {0};
    const char *nearest;

    for (size_t i = 0; i < e->facts->n; ++i)
        names[i] = e->facts->items[i].name;
    nearest = rssm_nearest_word(n->name, names);
    return RSSM_FAIL(e->diag, RSSM_E_MANIFEST, "expression \"%.*s\", column %d: unknown name '%s'%s%s%s",
                     RSSM_EXPR_CITED_MAX, e->expr->text, n->column, n->name, nearest ? "; did you mean '" : "",
                     nearest ? nearest : "", nearest ? "'?" : "");
}

static rssm_status divide(const evaluation *e, const node *n, int64_t a, int64_t b, int64_t *out_value)
{
    if (b == 0) return fail_value(e, n, "division by zero");
    if (a == INT64_MIN && b == -1) return fail_value(e, n, "the result does not fit 64 bits");
    if (n->kind == NODE_REMAINDER) {
        *out_value = a % b;
    } else {
        const bool is_rounded_down = a % b != 0 && (a < 0) == (b < 0);
        *out_value = a / b + (n->kind == NODE_CEIL_DIV && is_rounded_down);
    }
    return RSSM_OK;
}

static rssm_status apply_binary(const evaluation *e, const node *n, int64_t a, int64_t b, int64_t *out_value)
{
    bool overflow = false;

    switch (n->kind) {
    case NODE_EQUAL:
        *out_value = a == b;
        break;
    case NODE_NOT_EQUAL:
        *out_value = a != b;
        break;
    case NODE_LESS:
        *out_value = a < b;
        break;
    case NODE_LESS_EQUAL:
        *out_value = a <= b;
        break;
    case NODE_GREATER:
        *out_value = a > b;
        break;
    case NODE_GREATER_EQUAL:
        *out_value = a >= b;
        break;
    case NODE_ADD:
        overflow = __builtin_add_overflow(a, b, out_value);
        break;
    case NODE_SUBTRACT:
        overflow = __builtin_sub_overflow(a, b, out_value);
        break;
    case NODE_MULTIPLY:
        overflow = __builtin_mul_overflow(a, b, out_value);
        break;
    case NODE_MIN:
        *out_value = a < b ? a : b;
        break;
    case NODE_MAX:
        *out_value = a > b ? a : b;
        break;
    default:
        return divide(e, n, a, b, out_value);
    }
    return overflow ? fail_value(e, n, "the result does not fit 64 bits") : RSSM_OK;
}

static rssm_status evaluate(const evaluation *e, const node *n, int64_t *out_value)
{
    rssm_status st = RSSM_OK;
    int64_t     a = 0, b = 0;

    if (n->kind == NODE_LITERAL) {
        *out_value = n->value;
        return RSSM_OK;
    }
    if (n->kind == NODE_NAME) return rssm_facts_get(e->facts, n->name, out_value) ? RSSM_OK : fail_unknown(e, n);

    RSSM_TRY(evaluate(e, n->a, &a));
    switch (n->kind) {
    case NODE_NEGATE:
        if (a == INT64_MIN) return fail_value(e, n, "the result does not fit 64 bits");
        *out_value = -a;
        break;
    case NODE_NOT:
        *out_value = !a;
        break;
    case NODE_CONDITIONAL:
        st = evaluate(e, a ? n->b : n->c, out_value);
        break;
    case NODE_AND:
    case NODE_OR:
        if ((a != 0) == (n->kind == NODE_OR)) { // decided by the left side
            *out_value = a != 0;
            break;
        }
        RSSM_TRY(evaluate(e, n->b, &b));
        *out_value = b != 0;
        break;
    default:
        RSSM_TRY(evaluate(e, n->b, &b));
        st = apply_binary(e, n, a, b, out_value);
    }
done:
    return st;
}

rssm_status rssm_expr_eval(const rssm_expr *expr, const rssm_facts *facts, int64_t *out_value, rssm_diag *diag)
{
    const evaluation e = {expr, facts, diag};
    int64_t          value;
    rssm_status      st = evaluate(&e, expr->root, &value);

    if (st == RSSM_OK) *out_value = value;
    return st;
}
