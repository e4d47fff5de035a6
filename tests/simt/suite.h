// Runs a CUDA template under the emulator as the verifier would run it on a device: `advance` and one step template,
// compiled for one problem and configuration, against the float64 oracle on poisoned, guarded buffers.
#ifndef RSSM_SIMT_SUITE_H
#define RSSM_SIMT_SUITE_H

#include "gen/source.h"
#include "gen/space.h"
#include "tests/simt/emulator.h"
#include "tuner/verify.h"

typedef struct simt_case {
    rssm_problem problem;
    rssm_config  advance, step;
    uint32_t     n_rows, n_slots;
    uint32_t     n_steps; // 0: 2 L + 3
    uint32_t     eager, flags;
    uint64_t     seed;
    const char  *compiler_flags; // NULL: none
} simt_case;

typedef struct simt_outcome {
    rssm_status        status;
    simt_report        report; // where the referee stopped a launch
    rssm_verify_report verify;
    double             run_seconds; // of the processor, without compilation
    char               text[1200];  // what was wrong; "" if nothing
} simt_outcome;

// Facts of a problem on the device that the emulator stands for.
rssm_facts simt_facts(const rssm_problem *problem);

// Compiles a configuration of a template from the folder `root`. `problem` NULL: types and shape are the generic ones.
rssm_status simt_template_load(const char *root, const rssm_config *config, const rssm_problem *problem,
                               const rssm_facts *facts, const char *compiler_flags, simt_kernel **out_kernel,
                               rssm_launch *out_launch, rssm_diag *diag);

// Compiles both kernels from `root` and runs. True: clean.
bool simt_run_case(const char *root, const simt_case *c, simt_outcome *out);
void simt_suite_end(void); // frees what cases keep for the next one

// The default of a manifest, then each tunable at its least and its greatest value with the others at their default;
// those that are valid for the problem, each once. Returns how many.
enum { SIMT_CONFIGS_MAX = 1 + 2 * RSSM_TUNABLES_MAX };
size_t simt_corner_configs(const rssm_manifest *manifest, const rssm_problem *problem,
                           rssm_config out_configs[SIMT_CONFIGS_MAX]);

// "mamba2_step_stream LOADS=16 … | mamba2 H=4 …"
void simt_case_text(const simt_case *c, rssm_str *out);

// Where templates are, and the set of them: $SIMT_TEMPLATES, else those of the source tree. Opening must succeed.
const char        *simt_template_root(void);
rssm_template_set *simt_open_templates(void);

// Writes what the emulator computes for kernels/crosscheck.cu; see crosscheck.h.
rssm_status simt_record_crosscheck(const char *path, rssm_diag *diag);

// The C++ compiler that templates are compiled with: $SIMT_CLANG, else what CMake found.
const char *simt_clang(void);

#endif
