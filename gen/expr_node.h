// The tree of an expression, between its parser and its evaluator. Private to expr_parse.c and expr_eval.c.
#ifndef RSSM_GEN_EXPR_NODE_H
#define RSSM_GEN_EXPR_NODE_H

#include "gen/expr.h"

enum { RSSM_EXPR_CITED_MAX = 400 }; // characters of an expression in a message

typedef enum node_kind {
    NODE_LITERAL,
    NODE_NAME,
    NODE_NEGATE,
    NODE_NOT,
    NODE_CONDITIONAL, // a ? b : c
    NODE_OR,
    NODE_AND,
    NODE_EQUAL,
    NODE_NOT_EQUAL,
    NODE_LESS,
    NODE_LESS_EQUAL,
    NODE_GREATER,
    NODE_GREATER_EQUAL,
    NODE_ADD,
    NODE_SUBTRACT,
    NODE_MULTIPLY,
    NODE_DIVIDE,
    NODE_REMAINDER,
    NODE_MIN,
    NODE_MAX,
    NODE_CEIL_DIV,
} node_kind;

typedef struct node {
    node_kind          kind;
    int                column; // of the operator or the operand, from 1
    int                depth;  // 1 for a leaf
    int64_t            value;  // literal
    const char        *name;
    const struct node *a, *b, *c;
} node;

struct rssm_expr {
    const char *text;
    const node *root;
};

#endif
