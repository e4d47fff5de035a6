// See cli.h.
#include "tuner/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/json.h"
#include "runtime/context.h"

#define BIT(command) (1u << RSSM_COMMAND_##command)
enum {
    FOR_MODEL = BIT(TUNE) | BIT(BENCH) | BIT(VERIFY) | BIT(SHOW),
    FOR_RUN = BIT(TUNE) | BIT(BENCH) | BIT(VERIFY),
    FOR_ALL = (1u << RSSM_COMMAND_COUNT) - 1,
};

static const struct {
    const char *name, *summary;
} commands[RSSM_COMMAND_COUNT] = {
    [RSSM_COMMAND_TUNE] = {"tune", "find the fastest correct kernels for a model on this machine and store them"},
    [RSSM_COMMAND_SHOW] = {"show", "print what the database holds"},
    [RSSM_COMMAND_BENCH] = {"bench", "time what the database answers, beside the conventional step and a plain loop"},
    [RSSM_COMMAND_VERIFY] = {"verify", "compare kernels with a float64 oracle"},
    [RSSM_COMMAND_LINT] = {"lint", "check manifests against their templates"},
};

// X(id, option, value name or NULL, commands, help)
#define OPTION_LIST(X)                                                                                                 \
    X(MODEL, "--model", "NAME|FILE", FOR_MODEL, "preset, config.json or its folder; `--model help` lists presets")     \
    X(TP, "--tp", "N", FOR_MODEL, "tensor-parallel ranks: heads and groups of one rank (default 1)")                   \
    X(WINDOW, "--window", "L", FOR_MODEL, "buffer length: a state write at least every L tokens (default 16)")         \
    X(DRAFT, "--draft-tokens", "D", FOR_MODEL, "draft tokens per step: T = D + 1 <= L; 0 to 15 (default 0)")           \
    X(CHECKPOINT, "--checkpoint", "TYPE", FOR_MODEL, "checkpoint type: f32, bf16 (default: the model's, else f32)")    \
    X(ACTIVATION, "--activation", "TYPE", FOR_MODEL, "activation type: bf16, f16, f32 (default: the model's)")         \
    X(BATCH, "--batch", "LIST", FOR_RUN, "batch sizes: 1,8,32 or a range of powers of two 1..64")                      \
    X(DEVICE, "--device", "D", FOR_RUN, "cpu, gpu or a device number (default: the first GPU, else the CPU)")          \
    X(BUDGET, "--budget", "SECONDS", BIT(TUNE), "stop after this time; a later run goes on from there")                \
    X(SEED, "--seed", "N", BIT(VERIFY), "seed of the random inputs (default 1)")                                       \
    X(ALL, "--all", NULL, BIT(VERIFY), "every valid config instead of the ones the database chose")                    \
    X(REJECTED, "--rejected", NULL, BIT(SHOW), "also print rejected candidates with their reasons")                    \
    X(THREADS, "--threads", "N", FOR_RUN, "threads of the CPU backend (default: all usable cores)")                    \
    X(DATABASE, "--database", "FILE", FOR_MODEL, "database file (default: $RSSM_DATABASE, else the XDG data folder)")  \
    X(TEMPLATES, "--templates", "FOLDER", FOR_ALL, "templates that replace the built-in ones")                         \
    X(JSON, "--json", NULL, FOR_ALL, "JSON Lines on standard output")                                                  \
    X(HELP, "--help", NULL, FOR_ALL, "this text")

typedef enum option_id {
#define OPTION_ENUM(id, name, value, uses, help) OPTION_##id,
    OPTION_LIST(OPTION_ENUM)
#undef OPTION_ENUM
        OPTION_COUNT
} option_id;

static const struct {
    const char *name, *value;
    unsigned    uses;
    const char *help;
} options[OPTION_COUNT] = {
#define OPTION_ROW(id, name, value, uses, help) {name, value, uses, help},
    OPTION_LIST(OPTION_ROW)
#undef OPTION_ROW
};

static rssm_status parse_number(const char *option, const char *text, uint64_t low, uint64_t high, uint64_t *out,
                                rssm_diag *diag)
{
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value < low || value > high)
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "%s takes a whole number from %llu to %llu, not '%s'", option,
                         (unsigned long long)low, (unsigned long long)high, text);
    *out = value;
    return RSSM_OK;
}

static rssm_status parse_dtype(const char *option, const char *text, uint32_t *out, rssm_diag *diag)
{
    if (!rssm_dtype_parse(text, out))
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "%s takes f32, bf16 or f16, not '%s'", option, text);
    return RSSM_OK;
}

static rssm_status add_batch(rssm_cli *cli, uint64_t batch, rssm_diag *diag)
{
    if (cli->n_batches == RSSM_CLI_MAX_BATCHES)
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "--batch takes at most %d sizes", RSSM_CLI_MAX_BATCHES);
    if (cli->n_batches > 0 && cli->batches[cli->n_batches - 1] >= batch)
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "--batch sizes must grow: %llu follows %u",
                         (unsigned long long)batch, cli->batches[cli->n_batches - 1]);
    cli->batches[cli->n_batches++] = (uint32_t)batch;
    return RSSM_OK;
}

// "1,8,32", "1..64", "4,16..64".
static rssm_status parse_batches(rssm_cli *cli, const char *text, rssm_diag *diag)
{
    enum { LIMIT = 65536 };
    rssm_status st;
    cli->n_batches = 0;
    while (*text != '\0') {
        char         part[32];
        const size_t n = strcspn(text, ",");
        uint64_t     low, high;
        if (n == 0 || n >= sizeof part)
            return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "--batch takes sizes like 1,8,32 or 1..64, not '%s'", text);
        memcpy(part, text, n);
        part[n] = '\0';
        char *dots = strstr(part, "..");
        if (dots != NULL) *dots = '\0';
        if ((st = parse_number("--batch", part, 1, LIMIT, &low, diag)) != RSSM_OK) return st;
        high = low;
        if (dots != NULL && (st = parse_number("--batch", dots + 2, low, LIMIT, &high, diag)) != RSSM_OK) return st;
        for (uint64_t b = low; b <= high; b *= 2)
            if ((st = add_batch(cli, b, diag)) != RSSM_OK) return st;
        text += n + (text[n] == ',');
    }
    if (cli->n_batches == 0) return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "--batch needs at least one size");
    return RSSM_OK;
}

static rssm_status apply(rssm_cli *cli, option_id id, const char *value, rssm_diag *diag)
{
    const char *name = options[id].name;
    uint64_t    n = 0;
    rssm_status st = RSSM_OK;

    switch (id) {
    case OPTION_MODEL:
        cli->model = value;
        break;
    case OPTION_TP:
        st = parse_number(name, value, 1, 1024, &n, diag);
        cli->model_options.tp = (uint32_t)n;
        break;
    case OPTION_WINDOW:
        st = parse_number(name, value, 1, 4096, &n, diag);
        cli->model_options.window = (uint32_t)n;
        break;
    case OPTION_DRAFT:
        st = parse_number(name, value, 0, 15, &n, diag);
        cli->model_options.max_tokens = (uint32_t)n + 1;
        break;
    case OPTION_CHECKPOINT:
        st = parse_dtype(name, value, &cli->model_options.checkpoint_dtype, diag);
        break;
    case OPTION_ACTIVATION:
        st = parse_dtype(name, value, &cli->model_options.activation_dtype, diag);
        break;
    case OPTION_BATCH:
        st = parse_batches(cli, value, diag);
        break;
    case OPTION_DEVICE:
        cli->device = value;
        break;
    case OPTION_BUDGET:
        st = parse_number(name, value, 1, 1000000, &n, diag);
        cli->budget_s = (double)n;
        break;
    case OPTION_SEED:
        st = parse_number(name, value, 0, UINT64_MAX, &cli->seed, diag);
        break;
    case OPTION_ALL:
        cli->all = true;
        break;
    case OPTION_REJECTED:
        cli->rejected = true;
        break;
    case OPTION_THREADS:
        st = parse_number(name, value, 1, 4096, &n, diag);
        cli->threads = (uint32_t)n;
        break;
    case OPTION_DATABASE:
        cli->database = value;
        break;
    case OPTION_TEMPLATES:
        cli->templates = value;
        break;
    case OPTION_JSON:
        cli->json = true;
        break;
    case OPTION_HELP:
        cli->help = true;
        break;
    case OPTION_COUNT:
        break;
    }
    return st;
}

static rssm_status unknown_word(const char *kind, const char *word, const char *const *known, rssm_diag *diag)
{
    const char *nearest = rssm_nearest_word(word, known);
    if (nearest != NULL)
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "there is no %s '%s'; did you mean %s?", kind, word, nearest);
    return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "there is no %s '%s'; see replayssm-tune --help", kind, word);
}

static rssm_status parse_command(rssm_cli *cli, const char *word, rssm_diag *diag)
{
    const char *names[RSSM_COMMAND_COUNT + 1] = {NULL};
    for (int i = 0; i < RSSM_COMMAND_COUNT; i++) {
        names[i] = commands[i].name;
        if (strcmp(commands[i].name, word) == 0) {
            cli->command = (rssm_command)i;
            return RSSM_OK;
        }
    }
    return unknown_word("command", word, names, diag);
}

// One option at argv[i], "--name value" or "--name=value"; returns how many words it took through out_taken.
static rssm_status parse_option(rssm_cli *cli, int argc, char **argv, int i, int *out_taken, rssm_diag *diag)
{
    const char  *names[OPTION_COUNT + 1] = {NULL};
    int          n_names = 0;
    char         name[64];
    const char  *equals = strchr(argv[i], '=');
    const size_t length = equals ? (size_t)(equals - argv[i]) : strlen(argv[i]);

    for (int id = 0; id < OPTION_COUNT; id++)
        if (options[id].uses & 1u << cli->command) names[n_names++] = options[id].name;
    if (length >= sizeof name) return unknown_word("option", argv[i], names, diag);
    memcpy(name, argv[i], length);
    name[length] = '\0';
    for (int id = 0; id < OPTION_COUNT; id++) {
        if (strcmp(options[id].name, name) != 0) continue;
        if (!(options[id].uses & 1u << cli->command))
            return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "%s does not belong to '%s'; see replayssm-tune %s --help",
                             name, commands[cli->command].name, commands[cli->command].name);
        if (options[id].value == NULL) {
            if (equals) return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "%s takes no value", name);
            *out_taken = 1;
            return apply(cli, (option_id)id, NULL, diag);
        }
        if (!equals && i + 1 >= argc)
            return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "%s needs a value (%s)", name, options[id].value);
        *out_taken = equals ? 1 : 2;
        return apply(cli, (option_id)id, equals ? equals + 1 : argv[i + 1], diag);
    }
    return unknown_word("option", name, names, diag);
}

// What single options cannot tell.
static rssm_status check_together(const rssm_cli *cli, rssm_diag *diag)
{
    const uint32_t L = cli->model_options.window, T = cli->model_options.max_tokens;

    if (cli->help) return RSSM_OK;
    if (cli->model == NULL && FOR_RUN & 1u << cli->command)
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT,
                         "%s needs --model; `replayssm-tune %s --model help` lists presets", commands[cli->command].name,
                         commands[cli->command].name);
    if (T > L)
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT,
                         "--draft-tokens %u makes steps of %u tokens, and a window of %u holds fewer; give --window %u "
                         "or more, or --draft-tokens %u or fewer",
                         T - 1, T, L, T, L - 1);
    return RSSM_OK;
}

rssm_status rssm_cli_parse(int argc, char **argv, rssm_cli *out_cli, rssm_diag *diag)
{
    rssm_cli    cli = {.model_options = RSSM_MODEL_OPTIONS_INIT, .seed = 1};
    rssm_status st;

    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        cli.help = true;
        cli.command = RSSM_COMMAND_COUNT;
        *out_cli = cli;
        return RSSM_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        cli.version = true;
        *out_cli = cli;
        return RSSM_OK;
    }
    for (int i = 1; i < argc; i++) {
        const size_t length = strlen(cli.words);
        snprintf(cli.words + length, sizeof cli.words - length, "%s%s", i > 1 ? " " : "", argv[i]);
    }
    if ((st = parse_command(&cli, argv[1], diag)) != RSSM_OK) return st;
    for (int i = 2; i < argc;) {
        int taken = 1;
        if (argv[i][0] != '-')
            return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "'%s' is not expected here; options begin with --",
                             argv[i]);
        if ((st = parse_option(&cli, argc, argv, i, &taken, diag)) != RSSM_OK) return st;
        i += taken;
    }
    if ((st = check_together(&cli, diag)) != RSSM_OK) return st;
    *out_cli = cli;
    return RSSM_OK;
}

void rssm_cli_help(const rssm_cli *cli, bool with_command, rssm_str *out)
{
    if (!with_command) {
        rssm_str_puts(out, "usage: replayssm-tune COMMAND [options]\n\n");
        for (int i = 0; i < RSSM_COMMAND_COUNT; i++)
            rssm_str_printf(out, "  %-8s %s\n", commands[i].name, commands[i].summary);
        rssm_str_puts(out, "\n  replayssm-tune COMMAND --help   the options of a command\n"
                           "  replayssm-tune --version\n\nenvironment:\n");
#define ENVIRONMENT_ROW(name, meaning) rssm_str_printf(out, "  %-18s %s\n", #name, meaning);
        RSSM_ENVIRONMENT_LIST(ENVIRONMENT_ROW)
#undef ENVIRONMENT_ROW
        rssm_str_puts(out, "\nexit codes (0: success):\n");
#define STATUS_ROW(name, value, text)                                                                                  \
    if (value != 0) rssm_str_printf(out, "  %-3d %s\n", value, text);
        RSSM_STATUS_LIST(STATUS_ROW)
#undef STATUS_ROW
        return;
    }
    rssm_str_printf(out, "usage: replayssm-tune %s [options]\n%s\n\n", commands[cli->command].name,
                    commands[cli->command].summary);
    for (int id = 0; id < OPTION_COUNT; id++) {
        char left[48];
        if (!(options[id].uses & 1u << cli->command)) continue;
        snprintf(left, sizeof left, "%s%s%s", options[id].name, options[id].value ? " " : "",
                 options[id].value ? options[id].value : "");
        rssm_str_printf(out, "  %-24s %s\n", left, options[id].help);
    }
}
