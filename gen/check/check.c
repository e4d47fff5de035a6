// The course of a check. See check.h.
#include "gen/check/check.h"

#include <string.h>

#include "base/alloc.h"
#include "gen/check/parts.h"
#include "gen/render.h"

void rssm_parsed_free(rssm_parsed *parsed)
{
    rssm_free(parsed->cfg_names);
    rssm_arena_free(&parsed->arena);
    *parsed = (rssm_parsed){0};
}

static rssm_status choose_config(const rssm_check_input *input, const rssm_facts *facts, rssm_config *out_config,
                                 rssm_diag *diag)
{
    const rssm_manifest *m = input->manifest;
    rssm_config          config = input->config ? *input->config : rssm_config_default(m);
    uint64_t             cursor = 0;
    rssm_status          st = rssm_config_check(&config, facts, diag);

    if (st == RSSM_E_UNSUPPORTED && !input->config && rssm_space_next(m, facts, &cursor, &config)) st = RSSM_OK;
    if (st == RSSM_OK) *out_config = config;
    return st;
}

static rssm_status parse_rendered(const rssm_closure *closure, const rssm_render_input *render, rssm_diag *diag)
{
    rssm_status st;
    rssm_str    header = {0};
    rssm_parsed parsed = {0};

    RSSM_TRY(rssm_render_config(render, &header, diag));
    st = rssm_check_parse(render->config->manifest, closure, &header, &parsed, diag);
done:
    rssm_parsed_free(&parsed);
    rssm_str_free(&header);
    return st;
}

rssm_status rssm_check_template(const rssm_check_input *input, rssm_diag *diag)
{
    const rssm_manifest *m = input->manifest;
    rssm_status          st;
    rssm_problem         problem;
    rssm_facts           facts = {0};
    rssm_config          config;
    rssm_launch          launch;
    rssm_closure         closure = {0};
    rssm_render_input    render = {.config = &config, .facts = &facts, .arch = m->backend == RSSM_CUDA ? 900 : 0};

    if (input->problem) {
        problem = *input->problem;
        rssm_facts_add_problem(&facts, &problem);
        rssm_check_add_device(&facts, m->backend);
    } else {
        RSSM_TRY(rssm_check_sample(m, &problem, &facts, diag));
    }
    if (input->facts) facts = *input->facts;
    if (m->recurrence != RSSM_RECURRENCE_ANY) render.problem = &problem;
    RSSM_TRY(choose_config(input, &facts, &config, diag));
    RSSM_TRY(rssm_launch_plan(&config, &facts, &launch, diag));
    RSSM_TRY(rssm_closure_scan(input->set, m->source, &closure, diag));
    RSSM_TRY(parse_rendered(&closure, &render, diag));
    if (m->is_builtin) { // the library compiles it once more, without a shape
        render.problem = NULL;
        render.facts = NULL;
        st = parse_rendered(&closure, &render, diag);
        if (st != RSSM_OK) rssm_diag_prefix(diag, "with the header of the built-in kernel");
    }
done:
    rssm_closure_free(&closure);
    return st;
}
