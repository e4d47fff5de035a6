// Launch geometry of a config: extents that are linear in rows, and the sizes that go with them. See space.h.
#include <limits.h>

#include "gen/space.h"

enum { BLOCK_THREADS_MAX = 1024 };

static const char axis_names[3] = {'x', 'y', 'z'};

static rssm_status eval_at(const rssm_expr *expr, rssm_facts *facts, int64_t rows, int64_t *out_value, rssm_diag *diag)
{
    rssm_facts_set(facts, "rows", rows);
    return rssm_expr_eval(expr, facts, out_value, diag);
}

// Finds a + b * rows from rows 0 and 1, and proves it at 7: the launch computes no expression.
static rssm_status find_extent(const rssm_manifest *m, int axis, rssm_facts *facts, rssm_extent *out_extent,
                               rssm_diag *diag)
{
    const rssm_expr *expr = m->grid[axis];
    rssm_status      st;
    int64_t          at_0, at_1, at_7;

    RSSM_TRY(eval_at(expr, facts, 0, &at_0, diag));
    RSSM_TRY(eval_at(expr, facts, 1, &at_1, diag));
    RSSM_TRY(eval_at(expr, facts, 7, &at_7, diag));
    if (at_0 < 0 || at_1 < at_0 || at_1 > INT32_MAX) {
        st = RSSM_FAIL(diag, RSSM_E_UNSUPPORTED,
                       "grid.%c \"%s\" is %lld for no row and %lld for one; it must not be "
                       "negative, shrink with rows or exceed 31 bits",
                       axis_names[axis], rssm_expr_text(expr), (long long)at_0, (long long)at_1);
        goto done;
    }
    if (at_7 != at_0 + 7 * (at_1 - at_0)) {
        st = RSSM_FAIL(diag, RSSM_E_MANIFEST, "grid.%c \"%s\" is not linear in rows", axis_names[axis],
                       rssm_expr_text(expr));
        goto done;
    }
    if (at_1 == 0) {
        st = RSSM_FAIL(diag, RSSM_E_UNSUPPORTED, "grid.%c \"%s\" is empty for one row", axis_names[axis],
                       rssm_expr_text(expr));
        goto done;
    }
    *out_extent = (rssm_extent){at_0, at_1 - at_0};
done:
    return st;
}

static rssm_status find_block(const rssm_manifest *m, const rssm_facts *facts, uint32_t out_block[3], rssm_diag *diag)
{
    rssm_status st;
    int64_t     value, n_threads = 1;

    for (int i = 0; i < 3; ++i) {
        RSSM_TRY(rssm_expr_eval(m->block[i], facts, &value, diag));
        if (value < 1 || value > BLOCK_THREADS_MAX) {
            st = RSSM_FAIL(diag, RSSM_E_UNSUPPORTED, "block.%c \"%s\" is %lld; it must be within 1..%d", axis_names[i],
                           rssm_expr_text(m->block[i]), (long long)value, BLOCK_THREADS_MAX);
            goto done;
        }
        out_block[i] = (uint32_t)value;
        n_threads *= value;
    }
    if (n_threads > BLOCK_THREADS_MAX) {
        st = RSSM_FAIL(diag, RSSM_E_UNSUPPORTED, "a block of %lld threads is more than %d", (long long)n_threads,
                       BLOCK_THREADS_MAX);
    }
done:
    return st;
}

static rssm_status find_bytes(const rssm_expr *expr, const char *what, const rssm_facts *facts, int64_t limit,
                              int64_t *out_bytes, rssm_diag *diag)
{
    rssm_status st;
    int64_t     value;

    RSSM_TRY(rssm_expr_eval(expr, facts, &value, diag));
    if (value < 0 || value > limit) {
        st = RSSM_FAIL(diag, RSSM_E_UNSUPPORTED, "%s \"%s\" is %lld; it must be within 0..%lld", what,
                       rssm_expr_text(expr), (long long)value, (long long)limit);
        goto done;
    }
    *out_bytes = value;
done:
    return st;
}

// A CPU launch is a list of tasks along x.
static rssm_status check_cpu(const rssm_launch *launch, rssm_diag *diag)
{
    for (int i = 1; i < 3; ++i) {
        if (launch->grid[i].constant == 1 && launch->grid[i].per_row == 0) continue;
        return RSSM_FAIL(diag, RSSM_E_MANIFEST, "grid.%c of a cpu template must be 1: tasks run along x",
                         axis_names[i]);
    }
    for (int i = 0; i < 3; ++i) {
        if (launch->block[i] == 1) continue;
        return RSSM_FAIL(diag, RSSM_E_MANIFEST, "block.%c of a cpu template must be 1: a task is one thread's work",
                         axis_names[i]);
    }
    return RSSM_OK;
}

rssm_status rssm_launch_plan(const rssm_config *config, const rssm_facts *facts, rssm_launch *out_launch,
                             rssm_diag *diag)
{
    const rssm_manifest *m = config->manifest;
    rssm_status          st;
    rssm_facts           all, with_rows;
    rssm_launch          launch = {0};
    int64_t              shared, scratch, shared_limit = INT32_MAX;

    RSSM_TRY(rssm_config_facts(config, facts, &all, diag));
    with_rows = all;
    for (int i = 0; i < 3; ++i)
        RSSM_TRY(find_extent(m, i, &with_rows, &launch.grid[i], diag));
    RSSM_TRY(find_block(m, &all, launch.block, diag));
    rssm_facts_get(&all, "dev.shared_optin", &shared_limit);
    RSSM_TRY(find_bytes(m->shared_bytes, "shared_bytes", &all, shared_limit, &shared, diag));
    RSSM_TRY(find_bytes(m->scratch_bytes_per_row, "scratch_bytes_per_row", &all, INT64_C(1) << 40, &scratch, diag));
    launch.shared_bytes = (uint32_t)shared;
    launch.scratch_bytes_per_row = (uint64_t)scratch;
    if (m->backend == RSSM_CPU) RSSM_TRY(check_cpu(&launch, diag));
    *out_launch = launch;
done:
    if (st != RSSM_OK) rssm_diag_prefix(diag, "%s", m->name);
    return st;
}

rssm_status rssm_config_replay_bytes(const rssm_config *config, const rssm_facts *facts, int64_t rows,
                                     int64_t *out_bytes, rssm_diag *diag)
{
    const rssm_manifest *m = config->manifest;
    rssm_status          st;
    rssm_facts           all;

    if (!m->replay_bytes) return RSSM_FAIL(diag, RSSM_E_NOT_FOUND, "%s gives no cost in bytes", m->name);
    RSSM_TRY(rssm_config_facts(config, facts, &all, diag));
    st = eval_at(m->replay_bytes, &all, rows, out_bytes, diag);
done:
    return st;
}
