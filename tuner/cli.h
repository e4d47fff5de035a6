// The command line: one table of options, parsed into one struct. Unknown options and bad values are errors that name
// the nearest known one. Only tuner/main.c, the commands and this file's users write to the terminal.
#ifndef RSSM_TUNER_CLI_H
#define RSSM_TUNER_CLI_H

#include <stdbool.h>

#include "base/log.h"
#include "base/str.h"
#include "tuner/model.h"

enum { RSSM_CLI_MAX_BATCHES = 32 };

typedef enum rssm_command {
    RSSM_COMMAND_TUNE,
    RSSM_COMMAND_SHOW,
    RSSM_COMMAND_BENCH,
    RSSM_COMMAND_VERIFY,
    RSSM_COMMAND_LINT,
    RSSM_COMMAND_COUNT,
} rssm_command;

typedef struct rssm_cli {
    rssm_command       command;
    const char        *model; // preset or path; "help" lists presets
    rssm_model_options model_options;
    uint32_t           batches[RSSM_CLI_MAX_BATCHES]; // ascending; n_batches 0: the device's usual ones
    uint32_t           n_batches;
    const char        *device; // NULL: the first GPU, else the CPU; "cpu", "gpu" or an index
    const char        *database;
    const char        *templates;
    double             budget_s; // 0: no limit
    uint64_t           seed;
    uint32_t           threads;
    char               words[512];    // the words as typed, for records; cut if longer
    bool               json, all, rejected, help, version;
} rssm_cli;

// RSSM_E_INVALID_ARGUMENT with what to type instead.
rssm_status rssm_cli_parse(int argc, char **argv, rssm_cli *out_cli, rssm_diag *diag);

// The help of the program (`with_command` false) or of cli->command.
void rssm_cli_help(const rssm_cli *cli, bool with_command, rssm_str *out);

#endif
