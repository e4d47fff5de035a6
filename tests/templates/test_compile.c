// Every CUDA manifest's default and corner configs compile for every architecture, without a GPU. A missing NVRTC is a
// failure. A corner has one tunable at its smallest or largest value and the others at their defaults; it may spill, since
// the tuner refuses it then.
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/problem.h"
#include "base/thread.h"
#include "gen/build.h"

static const struct {
    const char *name;
    int64_t     shared_optin;   // bytes a block may have
} archs[] = {
    {"sm_80", 166912},   {"sm_86", 101376},   {"sm_89", 101376},  {"sm_90a", 232448},
    {"sm_100a", 232448}, {"sm_103a", 232448}, {"sm_120a", 101376}, {"sm_121a", 101376},
};
enum { N_ARCHS = sizeof archs / sizeof archs[0], MAX_JOBS = 4096 };

typedef struct job {
    rssm_config  config;
    rssm_problem problem;
    bool         has_problem, is_default;
    int          arch;
    rssm_status  status;
    uint32_t     spills;
    char         text[512];
} job;

static rssm_template_set *set;
static rssm_toolchain    *toolchain;
static job               *jobs;
static int                n_jobs;

static void open_all(void)
{
    const char *home = getenv("HOME");
    char        wheel[512];
    const char *folders[] = {"/usr/local/cuda/lib64", wheel};
    rssm_diag   diag = {0};
    snprintf(wheel, sizeof wheel, "%s/.local/share/replayssm/nvrtc", home ? home : "");
    const rssm_toolchain_options options = {.nvrtc = getenv("RSSM_NVRTC"), .nvrtc_folders = folders, .n_nvrtc_folders = 2};
    cr_assert_eq(rssm_template_set_open(NULL, &set, &diag), RSSM_OK, "%s", diag.text);
    cr_assert_eq(rssm_toolchain_open(RSSM_CUDA, &options, &toolchain, &diag), RSSM_OK, "%s", diag.text);
    jobs = rssm_calloc(MAX_JOBS, sizeof *jobs);
    cr_assert_not_null(jobs);
}

static void facts_for(const job *j, rssm_facts *facts)
{
    memset(facts, 0, sizeof *facts);
    if (j->has_problem) rssm_facts_add_problem(facts, &j->problem);
    rssm_facts_set(facts, "dev.multiprocessors", 132);
    rssm_facts_set(facts, "dev.shared_optin", archs[j->arch].shared_optin);
    rssm_facts_set(facts, "dev.shared_per_multiprocessor", archs[j->arch].shared_optin + 1024);
    rssm_facts_set(facts, "dev.registers", 65536);
    rssm_facts_set(facts, "dev.arch", rssm_arch_number(archs[j->arch].name));
    rssm_facts_set(facts, "dev.l2_bytes", 50 << 20);
}

static void add_job(const rssm_config *config, const rssm_problem *problem, int arch)
{
    job        j = {.config = *config, .has_problem = problem != NULL, .arch = arch};
    rssm_facts facts;
    const rssm_config usual = rssm_config_default(config->manifest);
    if (problem) j.problem = *problem;
    j.is_default = rssm_config_equal(config, &usual);
    facts_for(&j, &facts);
    if (rssm_config_check(config, &facts, NULL) != RSSM_OK) return;   // not in this architecture's space
    cr_assert_lt(n_jobs, MAX_JOBS);
    jobs[n_jobs++] = j;
}

static void add_configs(const rssm_manifest *m, const rssm_problem *problem)
{
    const rssm_config usual = rssm_config_default(m);
    for (int arch = 0; arch < N_ARCHS; arch++) {
        const int before = n_jobs;
        add_job(&usual, problem, arch);
        cr_expect_eq(n_jobs, before + 1, "%s: the default is not valid for %s", m->name, archs[arch].name);
        for (size_t t = 0; t < m->n_tunables; t++) {
            for (int end = 0; end < 2; end++) {
                rssm_config corner = usual;
                corner.values[t] = m->tunables[t].values[end ? m->tunables[t].n_values - 1 : 0];
                if (!rssm_config_equal(&corner, &usual)) add_job(&corner, problem, arch);
            }
        }
    }
}

static rssm_problem problem_of(uint32_t P, uint32_t N, uint32_t H, uint32_t G, uint32_t act, uint32_t state, uint32_t T)
{
    rssm_problem p = RSSM_PROBLEM_INIT, normal;
    rssm_diag    diag = {0};
    p.head_dim = P;
    p.state_size = N;
    p.n_heads = H;
    p.n_groups = G;
    p.activation_dtype = p.dt_dtype = act;
    p.checkpoint_dtype = state;
    p.max_tokens = T;
    cr_assert_eq(rssm_problem_normalise(&p, &normal, &diag), RSSM_OK, "%s", diag.text);
    return normal;
}

static void compile(void *context, int i)
{
    job        *j = &jobs[i];
    rssm_diag   diag = {0};
    rssm_facts  facts;
    rssm_object object = {0};
    (void)context;
    facts_for(j, &facts);
    const rssm_build_input input = {
        .set = set,
        .config = &j->config,
        .problem = j->has_problem ? &j->problem : NULL,
        .facts = &facts,
        .backend = RSSM_CUDA,
        .arch = archs[j->arch].name,
        .want_resources = true,
    };
    j->status = rssm_build(&input, toolchain, &object, NULL, &diag);
    j->spills = object.spill_bytes;
    snprintf(j->text, sizeof j->text, "%s", diag.text);
    rssm_object_free(&object);
}

Test(compile, every_manifest_at_default_and_corners_for_every_architecture)
{
    // One shape per pair of types; between them P = 64, 80, 128, N = 64, 128, 256 and group sizes 12, 16, 24, 56.
    const rssm_problem problems[] = {
        problem_of(64, 128, 128, 8, RSSM_BF16, RSSM_F32, 1),
        problem_of(64, 128, 128, 8, RSSM_BF16, RSSM_BF16, 1),
        problem_of(64, 128, 128, 8, RSSM_BF16, RSSM_F32, 4),
    };
    const rssm_problem defaults_only[] = {
        problem_of(80, 128, 96, 8, RSSM_F16, RSSM_F32, 1),
        problem_of(64, 64, 112, 2, RSSM_F32, RSSM_BF16, 1),
        problem_of(128, 256, 24, 1, RSSM_BF16, RSSM_F32, 1),
        problem_of(64, 128, 64, 1, RSSM_F32, RSSM_F32, 1),
        problem_of(64, 128, 48, 2, RSSM_F16, RSSM_BF16, 1),
        problem_of(64, 128, 128, 8, RSSM_BF16, RSSM_BF16, 8),
        problem_of(80, 128, 96, 8, RSSM_F16, RSSM_F32, 2),
        problem_of(128, 256, 24, 1, RSSM_BF16, RSSM_F32, 16),
        problem_of(64, 64, 112, 2, RSSM_F32, RSSM_BF16, 6),
    };
    int n_manifests = 0, n_failed = 0;

    open_all();
    for (size_t i = 0; i < rssm_template_set_count(set); i++) {
        const rssm_manifest *m = rssm_template_set_at(set, i);
        if (m->backend != RSSM_CUDA) continue;
        n_manifests++;
        if (m->recurrence == RSSM_RECURRENCE_ANY) {
            add_configs(m, NULL);
            continue;
        }
        // What moves slots has few tunables, and one problem for their corners.
        const size_t n_problems = m->op == RSSM_OP_STEP ? sizeof problems / sizeof problems[0] : 1;
        for (size_t p = 0; p < n_problems; p++)
            if (rssm_manifest_serves(m, &problems[p], NULL) == RSSM_OK) add_configs(m, &problems[p]);
        for (size_t p = 0; p < sizeof defaults_only / sizeof defaults_only[0]; p++) {
            const rssm_config usual = rssm_config_default(m);
            if (rssm_manifest_serves(m, &defaults_only[p], NULL) != RSSM_OK) continue;
            for (int arch = 0; arch < N_ARCHS; arch += 3) add_job(&usual, &defaults_only[p], arch);
        }
    }
    cr_assert_geq(n_manifests, 3, "the step, advance and probe manifests");
    rssm_parallel_for(rssm_usable_cores(), n_jobs, compile, NULL);
    for (int i = 0; i < n_jobs; i++) {
        rssm_str text = {0};
        rssm_config_text(&jobs[i].config, &text);
        const int64_t limit = jobs[i].config.manifest->spill_limit_bytes;
        const bool    spills = jobs[i].is_default && limit >= 0 && jobs[i].spills > limit;
        cr_expect(jobs[i].status == RSSM_OK && !spills, "%s %s for %s: %s, %u bytes spilled", jobs[i].config.manifest->name,
                  rssm_str_c(&text), archs[jobs[i].arch].name, jobs[i].text, jobs[i].spills);
        n_failed += jobs[i].status != RSSM_OK;
        rssm_str_free(&text);
    }
    printf("%d manifests, %d configs compiled for %d architectures, %d failed\n", n_manifests, n_jobs, N_ARCHS, n_failed);
    rssm_free(jobs);
    rssm_toolchain_close(toolchain);
    rssm_template_set_close(set);
}
