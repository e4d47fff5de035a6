// See select.h.
#include "runtime/select.h"

#include <stdio.h>
#include <string.h>

#include "base/problem.h"
#include "gen/build.h"

enum { NEIGHBOUR_MAX_STEPS = 2 };   // buckets are powers of two: up to 4x the batch may share a config

void rssm_facts_fill(const rssm_device *device, const rssm_problem *problem, rssm_facts *out_facts)
{
    out_facts->n = 0;
    for (uint32_t i = 0; i < device->n_facts; i++)
        rssm_facts_set(out_facts, device->facts[i].name, device->facts[i].value);
    if (problem != NULL) rssm_facts_add_problem(out_facts, problem);
}

// The row's config as this build understands it; false if the row must not be used.
static bool parse_row(const rssm_answers *a, const rssm_db_row *row, rssm_config *out_config)
{
    const rssm_db_trial *trial = &row->trial;
    const rssm_manifest *manifest = rssm_template_set_find(a->context->templates, trial->template_name);
    rssm_build_identity  identity;
    rssm_facts           facts;

    if (manifest == NULL || manifest->version != trial->template_version) return false;
    if (manifest->backend != (rssm_backend)a->device->info.backend) return false;
    if (manifest->op != (a->problem ? RSSM_OP_STEP : RSSM_OP_ADVANCE)) return false;
    if (a->problem && rssm_manifest_serves(manifest, a->problem, NULL) != RSSM_OK) return false;
    if (rssm_config_parse(manifest, trial->config, out_config, NULL) != RSSM_OK) return false;
    rssm_facts_fill(a->device, a->problem, &facts);
    if (rssm_config_check(out_config, &facts, NULL) != RSSM_OK) return false;
    const rssm_build_input input = {
        .set = a->context->templates,
        .config = out_config,
        .problem = a->problem,
        .facts = &facts,
        .backend = manifest->backend,
        .arch = a->device->info.arch,
    };
    if (rssm_build_identify(&input, NULL, &identity, NULL) != RSSM_OK) return false;
    return rssm_hash_equal(&identity.source_hash, &trial->source_hash);
}

static bool is_usable(void *answers, const rssm_db_row *row)
{
    rssm_config config;
    return parse_row(answers, row, &config);
}

rssm_status rssm_answers_load(rssm_db_layers *layers, const rssm_context *context, const rssm_device *device,
                              const rssm_problem *problem, rssm_answers *out_answers, rssm_diag *diag)
{
    const rssm_hash     key = problem ? rssm_problem_key(problem)
                                      : rssm_hash_bytes(RSSM_ADVANCE_PROBLEM_TEXT, strlen(RSSM_ADVANCE_PROBLEM_TEXT));
    const rssm_db_query query = {.problem = &key, .arch = device->info.arch};

    *out_answers = (rssm_answers){.context = context, .device = device, .problem = problem};
    return rssm_db_layers_winners(layers, &query, is_usable, out_answers, &out_answers->rows, diag);
}

void rssm_answers_free(rssm_answers *answers)
{
    rssm_db_rows_free(&answers->rows);
}

static int log2_distance(uint32_t a, uint32_t b)
{
    const int d = __builtin_clz(a) - __builtin_clz(b);
    return d < 0 ? -d : d;
}

bool rssm_answers_choose(const rssm_answers *answers, uint32_t bucket, rssm_db_mode mode, rssm_choice *out_choice)
{
    const rssm_db_row *best = NULL;
    int                best_rank = 0;

    for (size_t i = 0; i < answers->rows.n; i++) {
        const rssm_db_row *row = &answers->rows.rows[i];
        if (row->trial.mode != mode) continue;
        const bool same_device = rssm_hash_equal(&row->trial.device.key, &answers->device->key);
        const int  steps = log2_distance(row->trial.bucket, bucket);
        if (steps > NEIGHBOUR_MAX_STEPS) continue;
        const int rank = (same_device ? 0 : 16) + steps;   // the nearest bucket of this device, then of its kin
        if (best == NULL || rank < best_rank) {
            best = row;
            best_rank = rank;
        }
    }
    if (best == NULL || !parse_row(answers, best, &out_choice->config)) return false;
    out_choice->match = best_rank == 0 ? RSSM_MATCH_EXACT : best_rank < 16 ? RSSM_MATCH_NEIGHBOUR : RSSM_MATCH_SAME_ARCH;
    out_choice->is_stale = strcmp(best->trial.env.driver, answers->device->driver) != 0;
    out_choice->median_ns = best->trial.median_ns;
    out_choice->bucket = best->trial.bucket;
    out_choice->build_key = best->has_binary ? best->trial.build_key : (rssm_hash){{0}};
    snprintf(out_choice->layer, sizeof out_choice->layer, "%s", best->layer);
    return true;
}

rssm_status rssm_choose_default(const rssm_context *context, const rssm_device *device, rssm_op op,
                                const rssm_problem *problem, rssm_choice *out_choice, rssm_diag *diag)
{
    const rssm_backend   backend = (rssm_backend)device->info.backend;
    const uint32_t       recurrence = problem ? problem->recurrence : RSSM_MAMBA2;
    const rssm_manifest *m = NULL;
    rssm_facts           facts;
    rssm_diag            why = {0};
    rssm_status          st = RSSM_E_UNSUPPORTED;

    rssm_facts_fill(device, problem, &facts);
    while ((m = rssm_template_set_next(context->templates, op, recurrence, backend, m)) != NULL) {
        rssm_config config = rssm_config_default(m);
        uint64_t    cursor = 0;
        if (problem && (st = rssm_manifest_serves(m, problem, &why)) != RSSM_OK) continue;
        if ((st = rssm_config_check(&config, &facts, &why)) != RSSM_OK &&
            !rssm_space_next(m, &facts, &cursor, &config))
            continue;
        *out_choice = (rssm_choice){.match = RSSM_MATCH_DEFAULT, .config = config};
        return RSSM_OK;
    }
    return RSSM_FAIL(diag, st == RSSM_OK ? RSSM_E_UNSUPPORTED : st, "no %s kernel for %s serves this problem: %s",
                     rssm_op_name(op), rssm_backend_name(backend),
                     why.text[0] ? why.text : "there is no template for it");
}
