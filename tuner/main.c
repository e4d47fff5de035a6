// The command `replayssm-tune`. The exit code is the status (see --help).
#include <stdio.h>
#include <string.h>

#include "tuner/command.h"
#include "tuner/presets.h"

static rssm_status run(const rssm_cli *cli, rssm_diag *diag)
{
    static rssm_status (*const commands[RSSM_COMMAND_COUNT])(const rssm_cli *, rssm_diag *) = {
        [RSSM_COMMAND_TUNE] = rssm_command_tune,     [RSSM_COMMAND_SHOW] = rssm_command_show,
        [RSSM_COMMAND_BENCH] = rssm_command_bench,   [RSSM_COMMAND_VERIFY] = rssm_command_verify,
        [RSSM_COMMAND_LINT] = rssm_command_lint,
    };
    rssm_str text = {0};

    if (cli->version) {
        printf("replayssm-tune %s\n", rssm_version());
        return RSSM_OK;
    }
    if (cli->help || (cli->model != NULL && strcmp(cli->model, "help") == 0)) {
        if (cli->help) {
            rssm_cli_help(cli, cli->command != RSSM_COMMAND_COUNT, &text);
        } else {
            rssm_preset_table(&text);
        }
        rssm_command_print(&text);
        rssm_str_free(&text);
        return RSSM_OK;
    }
    return commands[cli->command](cli, diag);
}

int main(int argc, char **argv)
{
    rssm_cli    cli;
    rssm_diag   diag = {0};
    rssm_status st = rssm_cli_parse(argc, argv, &cli, &diag);

    if (st == RSSM_OK) st = run(&cli, &diag);
    if (st != RSSM_OK) fprintf(stderr, "replayssm-tune: %s\n", diag.text[0] ? diag.text : rssm_status_text(st));
    return (int)st;
}
