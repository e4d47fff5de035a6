// Between the files of the checker. Private to gen/check.
#ifndef RSSM_GEN_CHECK_PARTS_H
#define RSSM_GEN_CHECK_PARTS_H

#include "gen/check/check.h"
#include "gen/embedded.h"

extern const rssm_embedded_file rssm_shim_files[];
extern const size_t             rssm_n_shim_files;

// Facts of a usual device of the backend: the names of RSSM_DEVICE_FACT_LIST.
void rssm_check_add_device(rssm_facts *facts, rssm_backend backend);

// What the parser saw of a template.
typedef struct rssm_parsed {
    rssm_arena   arena;
    const char **cfg_names; // every identifier CFG_… in the source and its includes, once each
    size_t       n_cfg_names, capacity;
} rssm_parsed; // zero-initialise; rssm_parsed_free

void rssm_parsed_free(rssm_parsed *parsed);

// Parses the closure with a rendered header, collects names, then checks errors and the entry's signature.
rssm_status rssm_check_parse(const rssm_manifest *manifest, const rssm_closure *closure, const rssm_str *header,
                             rssm_parsed *parsed, rssm_diag *diag);

// Compares the CFG_ names of template and manifest, both ways.
rssm_status rssm_check_usage(const rssm_manifest *manifest, const rssm_parsed *parsed, rssm_diag *diag);

#endif
