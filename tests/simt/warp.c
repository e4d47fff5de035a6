// Shuffles, votes, matches and reductions: what the lanes of a mask get once all have come.
#include "tests/simt/machine.h"

// A lane that is not in the mask holds no value.
static uint32_t value_of(simt_warp_op *ops[SIMT_WARP], uint32_t lane, uint32_t source)
{
    if (ops[source]) return ops[source]->in[0];
    simt_fail(SIMT_ABSENT_LANE, simt_site_of_place(ops[lane]->at),
              "lane %u takes the value of lane %u, which is not in the mask 0x%08x", lane, source, ops[lane]->mask);
    return 0;
}

static uint32_t source_of(const simt_warp_op *op, uint32_t lane)
{
    const int32_t wanted = op->kind == SIMT_SHUFFLE_XOR    ? (int32_t)lane ^ op->operand
                           : op->kind == SIMT_SHUFFLE_UP   ? (int32_t)lane - op->operand
                           : op->kind == SIMT_SHUFFLE_DOWN ? (int32_t)lane + op->operand
                                                           : op->operand & (SIMT_WARP - 1);
    return wanted < 0 || wanted >= SIMT_WARP ? lane : (uint32_t)wanted;
}

static uint32_t reduced(simt_warp_kind kind, uint32_t a, uint32_t b)
{
    switch (kind) {
    case SIMT_REDUCE_MIN:
        return a < b ? a : b;
    case SIMT_REDUCE_MAX:
        return a > b ? a : b;
    case SIMT_REDUCE_AND:
        return a & b;
    case SIMT_REDUCE_OR:
        return a | b;
    default:
        return a + b;
    }
}

// Lanes whose value is `value`; with kind BALLOT those with any but zero.
static uint32_t lanes_with(simt_warp_op *ops[SIMT_WARP], uint32_t value, bool ballot)
{
    uint32_t lanes = 0;
    for (uint32_t i = 0; i < SIMT_WARP; i++) {
        if (ops[i] && (ballot ? ops[i]->in[0] != 0 : ops[i]->in[0] == value)) lanes |= 1u << i;
    }
    return lanes;
}

static uint32_t reduce(simt_warp_op *ops[SIMT_WARP], simt_warp_kind kind)
{
    uint32_t result = 0;
    bool     first = true;
    for (uint32_t i = 0; i < SIMT_WARP; i++) {
        if (!ops[i]) continue;
        result = first ? ops[i]->in[0] : reduced(kind, result, ops[i]->in[0]);
        first = false;
    }
    return result;
}

static uint32_t answer(simt_warp_op *ops[SIMT_WARP], uint32_t lane)
{
    const simt_warp_op *op = ops[lane];
    switch (op->kind) {
    case SIMT_SHUFFLE_XOR:
    case SIMT_SHUFFLE_UP:
    case SIMT_SHUFFLE_DOWN:
    case SIMT_SHUFFLE_FROM:
        return value_of(ops, lane, source_of(op, lane));
    case SIMT_BALLOT:
        return lanes_with(ops, 0, true);
    case SIMT_ANY_OF:
        return lanes_with(ops, 0, true) != 0;
    case SIMT_ALL_OF:
        return lanes_with(ops, 0, true) == op->mask;
    case SIMT_MATCH_ANY:
        return lanes_with(ops, op->in[0], false);
    case SIMT_MATCH_ALL:
        return lanes_with(ops, op->in[0], false) == op->mask ? op->mask : 0;
    default:
        return reduce(ops, op->kind);
    }
}

void simt_warp_resolve(simt_warp_op *ops[SIMT_WARP], uint32_t first_thread)
{
    uint32_t operand = 0, reference = SIMT_WARP;
    (void)first_thread;
    for (uint32_t lane = 0; lane < SIMT_WARP; lane++) {
        if (!ops[lane]) continue;
        if (reference == SIMT_WARP) reference = lane, operand = (uint32_t)ops[lane]->operand;
        if (ops[lane]->kind == SIMT_SHUFFLE_XOR && operand != (uint32_t)ops[lane]->operand) {
            // Allowed by the instruction, but no butterfly: nothing here means it.
            simt_fail(SIMT_ABSENT_LANE, simt_site_of_place(ops[lane]->at),
                      "lanes %u and %u exchange over different distances", reference, lane);
        }
        ops[lane]->out[0] = answer(ops, lane);
    }
}
