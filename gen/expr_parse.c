// Parser of expressions: precedence climbing over a table of binary operators. Its recursion and the tree's depth are
// both bounded by RSSM_EXPR_DEPTH_MAX. See expr.h.
#include <ctype.h>
#include <string.h>

#include "gen/expr_node.h"

typedef struct binary_operator {
    const char *text;
    int         precedence; // larger binds tighter
    node_kind   kind;
} binary_operator;

// Longer spellings first, so that "<=" is not read as "<".
static const binary_operator binary_operators[] = {
    {"||", 1, NODE_OR},         {"&&", 2, NODE_AND},           {"==", 3, NODE_EQUAL},   {"!=", 3, NODE_NOT_EQUAL},
    {"<=", 4, NODE_LESS_EQUAL}, {">=", 4, NODE_GREATER_EQUAL}, {"<", 4, NODE_LESS},     {">", 4, NODE_GREATER},
    {"+", 5, NODE_ADD},         {"-", 5, NODE_SUBTRACT},       {"*", 6, NODE_MULTIPLY}, {"/", 6, NODE_DIVIDE},
    {"%", 6, NODE_REMAINDER},
};

static const struct {
    const char *name;
    node_kind   kind;
} functions[] = {{"min", NODE_MIN}, {"max", NODE_MAX}, {"ceil_div", NODE_CEIL_DIV}};

typedef struct parser {
    const char *text, *at;
    rssm_arena *arena;
    int         depth; // of the recursion
    rssm_diag  *diag;
} parser;

static rssm_status parse_conditional(parser *p, const node **out_node);

static int column_here(const parser *p)
{
    return (int)(p->at - p->text) + 1;
}

static rssm_status fail_at(parser *p, int column, const char *what)
{
    return RSSM_FAIL(p->diag, RSSM_E_MANIFEST, "expression \"%.*s\", column %d: %s", RSSM_EXPR_CITED_MAX, p->text,
                     column, what);
}

static void skip_space(parser *p)
{
    while (*p->at == ' ' || *p->at == '\t')
        ++p->at;
}

static bool take(parser *p, char c)
{
    skip_space(p);
    if (*p->at != c) return false;
    ++p->at;
    return true;
}

static int depth_of(const node *n)
{
    return n ? n->depth : 0;
}

static rssm_status make_node(parser *p, node value, const node **out_node)
{
    node *n;
    int   depth = depth_of(value.a);

    if (depth < depth_of(value.b)) depth = depth_of(value.b);
    if (depth < depth_of(value.c)) depth = depth_of(value.c);
    value.depth = depth + 1;
    if (value.depth > RSSM_EXPR_DEPTH_MAX) return fail_at(p, value.column, "nested too deeply");
    n = rssm_arena_alloc(p->arena, sizeof *n);
    if (!n) return RSSM_FAIL(p->diag, RSSM_E_NO_MEMORY, "no memory for an expression");
    *n = value;
    *out_node = n;
    return RSSM_OK;
}

static rssm_status parse_literal(parser *p, const node **out_node)
{
    const int column = column_here(p);
    int64_t   value = 0;

    for (; isdigit((unsigned char)*p->at); ++p->at) {
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *p->at - '0', &value)) {
            return fail_at(p, column, "the number does not fit 64 bits");
        }
    }
    if (isalpha((unsigned char)*p->at) || *p->at == '_' || *p->at == '.') {
        return fail_at(p, column, "numbers are decimal integers");
    }
    return make_node(p, (node){.kind = NODE_LITERAL, .column = column, .value = value}, out_node);
}

static rssm_status parse_call(parser *p, const char *name, int column, const node **out_node)
{
    rssm_status st;
    node        call = {.column = column};
    bool        is_known = false;

    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; ++i) {
        if (strcmp(functions[i].name, name) == 0) {
            call.kind = functions[i].kind;
            is_known = true;
        }
    }
    if (!is_known) return fail_at(p, column, "unknown function; there are min(a, b), max(a, b) and ceil_div(a, b)");
    RSSM_TRY(parse_conditional(p, &call.a));
    if (!take(p, ',')) return fail_at(p, column_here(p), "expected ',': functions take two arguments");
    RSSM_TRY(parse_conditional(p, &call.b));
    if (!take(p, ')')) return fail_at(p, column_here(p), "expected ')' behind the second argument");
    st = make_node(p, call, out_node);
done:
    return st;
}

static rssm_status parse_name(parser *p, const node **out_node)
{
    const int   column = column_here(p);
    const char *start = p->at;
    const char *name;

    while (isalnum((unsigned char)*p->at) || *p->at == '_' || *p->at == '.')
        ++p->at;
    name = rssm_arena_strndup(p->arena, start, (size_t)(p->at - start));
    if (!name) return RSSM_FAIL(p->diag, RSSM_E_NO_MEMORY, "no memory for an expression");
    if (take(p, '(')) return parse_call(p, name, column, out_node);
    return make_node(p, (node){.kind = NODE_NAME, .column = column, .name = name}, out_node);
}

static rssm_status parse_unary(parser *p, const node **out_node)
{
    rssm_status st;
    const node *operand;

    skip_space(p);
    if (++p->depth > RSSM_EXPR_DEPTH_MAX) return fail_at(p, column_here(p), "nested too deeply");
    const int column = column_here(p);
    if (*p->at == '-' || *p->at == '!') {
        const node_kind kind = *p->at++ == '-' ? NODE_NEGATE : NODE_NOT;
        RSSM_TRY(parse_unary(p, &operand));
        st = make_node(p, (node){.kind = kind, .column = column, .a = operand}, out_node);
    } else if (take(p, '(')) {
        RSSM_TRY(parse_conditional(p, out_node));
        if (!take(p, ')')) st = fail_at(p, column_here(p), "expected ')'");
    } else if (isdigit((unsigned char)*p->at)) {
        st = parse_literal(p, out_node);
    } else if (isalpha((unsigned char)*p->at) || *p->at == '_') {
        st = parse_name(p, out_node);
    } else {
        st = fail_at(p, column, "expected a number, a name or '('");
    }
done:
    --p->depth;
    return st;
}

static const binary_operator *peek_operator(parser *p)
{
    skip_space(p);
    for (size_t i = 0; i < sizeof binary_operators / sizeof binary_operators[0]; ++i) {
        const binary_operator *op = &binary_operators[i];
        if (strncmp(p->at, op->text, strlen(op->text)) == 0) return op;
    }
    return NULL;
}

// Operators of at least this precedence; all of them associate to the left.
static rssm_status parse_binary(parser *p, int precedence, const node **out_node)
{
    rssm_status            st;
    const node            *left, *right;
    const binary_operator *op;

    RSSM_TRY(parse_unary(p, &left));
    while ((op = peek_operator(p)) && op->precedence >= precedence) {
        const int column = column_here(p);
        p->at += strlen(op->text);
        RSSM_TRY(parse_binary(p, op->precedence + 1, &right));
        RSSM_TRY(make_node(p, (node){.kind = op->kind, .column = column, .a = left, .b = right}, &left));
    }
    *out_node = left;
done:
    return st;
}

static rssm_status parse_conditional(parser *p, const node **out_node)
{
    rssm_status st;
    node        choice = {.kind = NODE_CONDITIONAL};

    if (++p->depth > RSSM_EXPR_DEPTH_MAX) return fail_at(p, column_here(p), "nested too deeply");
    RSSM_TRY(parse_binary(p, 1, &choice.a));
    skip_space(p);
    choice.column = column_here(p);
    if (take(p, '?')) {
        RSSM_TRY(parse_conditional(p, &choice.b));
        if (!take(p, ':')) return fail_at(p, column_here(p), "expected ':' of a conditional");
        RSSM_TRY(parse_conditional(p, &choice.c));
        st = make_node(p, choice, out_node);
    } else {
        *out_node = choice.a;
    }
done:
    --p->depth;
    return st;
}

rssm_status rssm_expr_parse(const char *text, rssm_arena *arena, const rssm_expr **out_expr, rssm_diag *diag)
{
    rssm_status st;
    parser      p = {.arena = arena, .diag = diag};
    rssm_expr  *expr = rssm_arena_alloc(arena, sizeof *expr);

    p.text = p.at = rssm_arena_strndup(arena, text, strlen(text));
    if (!expr || !p.text) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for an expression");
    expr->text = p.text;
    RSSM_TRY(parse_conditional(&p, &expr->root));
    skip_space(&p);
    if (*p.at) {
        st = fail_at(&p, column_here(&p), "expected an operator or the end");
        goto done;
    }
    *out_expr = expr;
done:
    return st;
}

const char *rssm_expr_text(const rssm_expr *expr)
{
    return expr->text;
}

static bool visit_names(const node *n, rssm_expr_name_fn *visit, void *context)
{
    if (!n) return true;
    if (n->kind == NODE_NAME) return visit(context, n->name, n->column);
    return visit_names(n->a, visit, context) && visit_names(n->b, visit, context) && visit_names(n->c, visit, context);
}

bool rssm_expr_names(const rssm_expr *expr, rssm_expr_name_fn *visit, void *context)
{
    return visit_names(expr->root, visit, context);
}
