// What the commands share: opening a context for the command line, choosing the device, printing.
#ifndef RSSM_TUNER_COMMAND_H
#define RSSM_TUNER_COMMAND_H

#include "runtime/context.h"
#include "tuner/cli.h"

rssm_status rssm_command_tune(const rssm_cli *cli, rssm_diag *diag);
rssm_status rssm_command_show(const rssm_cli *cli, rssm_diag *diag);
rssm_status rssm_command_bench(const rssm_cli *cli, rssm_diag *diag);
rssm_status rssm_command_verify(const rssm_cli *cli, rssm_diag *diag);
rssm_status rssm_command_lint(const rssm_cli *cli, rssm_diag *diag);

// A context as the options say, logging warnings to standard error, and the device they name.
rssm_status rssm_command_open(const rssm_cli *cli, rssm_context **out_context, uint32_t *out_device, rssm_diag *diag);

// The batch sizes to work on: those given, or 1 .. 64 on a CPU and 1 .. 512 on a GPU, in powers of two.
uint32_t rssm_command_batches(const rssm_cli *cli, const rssm_device *device, uint32_t out_batches[RSSM_CLI_MAX_BATCHES]);

// Prints the string to standard output and empties it.
void rssm_command_print(rssm_str *text);

#endif
