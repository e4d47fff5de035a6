// `replayssm-tune lint`: every manifest against its template, without compiling or running anything.
#include <stdio.h>

#include "base/json.h"
#include "tuner/command.h"
#ifdef RSSM_WITH_LIBCLANG
#include "gen/check/check.h"
#endif

#ifdef RSSM_WITH_LIBCLANG
static rssm_status lint_one(const rssm_cli *cli, const rssm_template_set *set, const rssm_manifest *m, rssm_diag *diag)
{
    const rssm_check_input input = {.set = set, .manifest = m};
    const rssm_status      st = rssm_check_template(&input, diag);
    rssm_str               out = {0};

    if (cli->json) {
        rssm_str_puts(&out, "{\"event\":\"lint\",\"manifest\":");
        rssm_json_quote(&out, m->file);
        rssm_str_printf(&out, ",\"status\":\"%s\",\"reason\":", rssm_status_name(st));
        rssm_json_quote(&out, st == RSSM_OK ? "" : diag->text);
        rssm_str_puts(&out, "}\n");
    } else {
        rssm_str_printf(&out, "%s  %s%s%s\n", st == RSSM_OK ? "ok   " : "WRONG", m->file, st == RSSM_OK ? "" : ": ",
                        st == RSSM_OK ? "" : diag->text);
    }
    rssm_command_print(&out);
    rssm_str_free(&out);
    return st;
}
#endif

rssm_status rssm_command_lint(const rssm_cli *cli, rssm_diag *diag)
{
#ifdef RSSM_WITH_LIBCLANG
    const char        *given = cli->templates ? cli->templates : rssm_environment(RSSM_ENVIRONMENT_RSSM_TEMPLATE_DIR);
    rssm_template_set *set = NULL;
    rssm_diag          first = {0};
    rssm_status        st = rssm_template_set_open(given, &set, diag);

    if (st != RSSM_OK) return st;
    for (size_t i = 0; i < rssm_template_set_count(set); i++) {
        rssm_diag         one = {0};
        const rssm_status found = lint_one(cli, set, rssm_template_set_at(set, i), &one);
        if (found != RSSM_OK && st == RSSM_OK) {
            st = found;
            first = one;
        }
    }
    rssm_template_set_close(set);
    if (st != RSSM_OK) *diag = first;
    return st;
#else
    (void)cli;
    return RSSM_FAIL(diag, RSSM_E_UNSUPPORTED, "this build has no libclang, so it cannot read templates; configure with "
                     "-DRSSM_WITH_LIBCLANG=ON");
#endif
}
