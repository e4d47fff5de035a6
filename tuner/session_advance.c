// The `advance` kernel of a GPU: the same for all problems, so it is tuned once per device, for its latency at a usual
// batch, and filed under a problem of its own. See session.h.
#include <string.h>

#include "runtime/group.h"
#include "tuner/candidates.h"
#include "tuner/session.h"
#include "tuner/workload.h"

enum {
    ADVANCE_BUCKET = 1,    // groups look advance up under this one
    ADVANCE_ROWS = 256,    // it is timed at
};

static rssm_db_trial trial_of(const rssm_candidates *candidates, const rssm_candidate *c)
{
    const rssm_device *device = &candidates->context->devices[candidates->device];
    return (rssm_db_trial){
        .device = {device->key, device->key_text, device->info.name, device->info.arch},
        .env = {device->driver, rssm_toolchain_text(candidates->toolchain), rssm_version()},
        .problem = {rssm_hash_bytes(RSSM_ADVANCE_PROBLEM_TEXT, strlen(RSSM_ADVANCE_PROBLEM_TEXT)),
                    RSSM_ADVANCE_PROBLEM_TEXT},
        .policy = rssm_session_policy(device, 1),
        .bucket = ADVANCE_BUCKET,
        .mode = RSSM_DB_REPLAY,
        .template_name = c->config.manifest->name,
        .template_version = c->config.manifest->version,
        .config = c->config_text,
        .source_hash = c->identity.source_hash,
        .build_key = c->identity.build_key,
        .status = c->status,
        .reason = c->reason,
        .registers = c->object.registers,
        .shared_bytes = c->object.shared_bytes,
        .spill_bytes = c->object.spill_bytes,
    };
}

// Times the candidate as the group's advance and records it. Every step's verification checks the chosen one.
static rssm_status measure(const rssm_candidates *candidates, rssm_candidate *c, rssm_group *group, rssm_run *run,
                           rssm_db *db, rssm_diag *diag)
{
    rssm_diag   why = {0};
    rssm_status st;

    rssm_candidate_build(candidates, c);
    rssm_db_trial trial = trial_of(candidates, c);
    if (c->status != RSSM_OK) return rssm_db_record(db, &trial, NULL, diag);
    st = rssm_loader_add_object(&group->loader, NULL, &c->config, c->object.bytes, c->object.n, &group->advance, &why);
    if (st == RSSM_OK) st = rssm_run_advance_ns(run, &trial.median_ns, &why);
    trial.status = st;
    trial.reason = why.text;
    trial.min_ns = trial.median_ns;
    trial.n_samples = 1;
    const rssm_db_binary binary = {
        .kind = RSSM_DB_CUBIN,
        .arch = trial.device.arch,
        .layout_hash = c->identity.layout_hash,
        .bytes = c->object.bytes,
        .n_bytes = c->object.n,
    };
    return rssm_db_record(db, &trial, st == RSSM_OK ? &binary : NULL, diag);
}

rssm_status rssm_session_advance(rssm_context *context, uint32_t device, rssm_db *db, rssm_diag *diag)
{
    rssm_problem    tiny = RSSM_PROBLEM_INIT;   // the smallest layer: advance does not see its shape
    rssm_candidates candidates = {0};
    rssm_workload  *workload = NULL;
    rssm_group     *group = NULL;
    rssm_run       *run = NULL;
    rssm_status     st = RSSM_OK;

    if (context->devices[device].info.backend == RSSM_CPU) return RSSM_OK;
    tiny.n_heads = 1;
    tiny.head_dim = 16;
    tiny.state_size = 16;
    RSSM_TRY(rssm_candidates_list(context, device, NULL, &candidates, diag));
    for (size_t i = 0; i < candidates.n; i++) {
        rssm_candidate     *c = &candidates.items[i];
        const rssm_db_trial trial = trial_of(&candidates, c);
        rssm_db_known       known = {0};
        RSSM_TRY(rssm_db_trial_known(db, &trial, &known, diag));
        if (known.is_known) continue;
        if (run == NULL) {
            RSSM_TRY(rssm_workload_create(context, device, &tiny, ADVANCE_ROWS, 0, &workload, diag));
            const rssm_group_options options = rssm_workload_group_options(workload);
            RSSM_TRY(rssm_group_create(context, &options, &group, diag));
            RSSM_TRY(rssm_run_create(workload, group, ADVANCE_ROWS, 0, &run, diag));
        }
        RSSM_TRY(measure(&candidates, c, group, run, db, diag));
    }
done:
    rssm_run_destroy(run);
    rssm_group_destroy(group);
    rssm_workload_destroy(workload);
    rssm_candidates_free(&candidates);
    return st;
}
