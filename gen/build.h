// Building: template + config + problem + target -> object, with the keys that identify it.
//
// render config header -> keys -> compile. Host objects are shared objects that need no library (clang); device
// objects are cubins (NVRTC). Equal inputs give equal keys and equal bytes.
// Non-goals: storing objects (db), loading them (runtime).
// Threads: rssm_build may run on several threads with one toolchain and set.
#ifndef RSSM_GEN_BUILD_H
#define RSSM_GEN_BUILD_H

#include "gen/source.h"
#include "gen/space.h"
#include "gen/toolchain.h"

typedef struct rssm_build_input {
    const rssm_template_set *set;
    const rssm_config       *config;  // its manifest belongs to the set
    const rssm_problem      *problem; // normalised; NULL: generic with f32 types (advance)
    const rssm_facts        *facts;   // the problem's and the device's; NULL: the problem's alone
    rssm_backend             backend; // of the target
    const char              *arch;    // "x86-64-v4" (-march), "sm_90a"; not "native"
    // CUDA options, so both are keyed. want_resources: ptxas reports registers, shared memory and spills. want_lines:
    // line numbers for profilers; NVRTC writes the working directory into them, so bytes depend on more than the
    // inputs.
    bool want_resources, want_lines;
} rssm_build_input;

typedef struct rssm_build_identity {
    rssm_hash source_hash; // source, includes (name and bytes of each) and rendered header
    rssm_hash layout_hash; // of the argument ABI: the abi/ headers that the source includes, in name order
    rssm_hash build_key;   // source_hash, entry, options in order, target, compiler, object kind, key format
} rssm_build_identity;

typedef enum rssm_object_kind { RSSM_OBJECT_HOST = 0, RSSM_OBJECT_CUBIN = 1 } rssm_object_kind;

typedef struct rssm_object {
    uint8_t            *bytes; // owned
    size_t              n;
    rssm_object_kind    kind;
    rssm_build_identity identity;
    char               *log;          // the compiler's output, owned, never NULL
    uint32_t            registers;    // per thread; 0 on the host and where not asked for
    uint32_t            shared_bytes; // static shared memory
    uint32_t            spill_bytes;  // stores and loads
} rssm_object;                        // zero-initialise

// The keys without compiling. `toolchain` NULL: build_key is left zero (a host without a compiler can still compare
// source and layout).
rssm_status rssm_build_identify(const rssm_build_input *input, const rssm_toolchain *toolchain,
                                rssm_build_identity *out_identity, rssm_diag *diag);

// Checks the config against the facts and builds. RSSM_E_COMPILE with the compiler's first error line (the whole log
// through `out_log`, may be NULL; append only), RSSM_E_UNSUPPORTED, RSSM_E_TIMEOUT, RSSM_E_NOT_FOUND for a missing
// include, RSSM_E_INVALID_ARGUMENT for a target that is not the toolchain's.
rssm_status rssm_build(const rssm_build_input *input, const rssm_toolchain *toolchain, rssm_object *out_object,
                       rssm_str *out_log, rssm_diag *diag);
void        rssm_object_free(rssm_object *object); // frees what it owns and zeroes it

// "sm_90a" -> 900, "sm_120a" -> 1200; 0 for anything that is not a CUDA architecture.
uint32_t rssm_arch_number(const char *arch);

#endif
