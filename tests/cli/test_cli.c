// The command as a person runs it: real processes, real databases, a small model and a small template space.
#include <criterion/criterion.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/process.h"
#include "base/str.h"
#include "db/store.h"
#include "tests/support/small_templates.h"

enum { MAX_ARGS = 24, TIMEOUT_MS = 240000 };

static rssm_str output;
static char     folder[256], database[300], model[300], templates[300];

// Runs replayssm-tune with these arguments (NULL-terminated); the exit code. Both outputs are in `output`.
static int tune(const char *first, ...)
{
    const char *argv[MAX_ARGS] = {RSSM_TUNE};
    rssm_diag   diag = {0};
    int         n = 1, code = -1;
    va_list     list;

    va_start(list, first);
    for (const char *a = first; a != NULL && n < MAX_ARGS - 1; a = va_arg(list, const char *)) argv[n++] = a;
    va_end(list);
    rssm_str_clear(&output);
    cr_assert_eq(rssm_process_run(argv, TIMEOUT_MS, &output, &code, &diag), RSSM_OK, "%s", diag.text);
    return code;
}

#define SAYS(text) cr_expect(strstr(rssm_str_c(&output), (text)), "expected '%s' in:\n%s", (text), rssm_str_c(&output))
#define EXITS(call, want)                                                                   \
    do {                                                                                    \
        const int exits_code = (call);                                                      \
        cr_expect_eq(exits_code, (want), "exit code %d:\n%s", exits_code, rssm_str_c(&output)); \
    } while (0)

static void write_text(const char *path, const char *text)
{
    rssm_diag diag = {0};
    cr_assert_eq(rssm_file_write(path, text, strlen(text), &diag), RSSM_OK, "%s", diag.text);
}

static void set_up(void)
{
    char     *made;
    rssm_diag diag = {0};
    cr_assert_eq(rssm_folder_temporary("rssm-cli", &made, &diag), RSSM_OK, "%s", diag.text);
    snprintf(folder, sizeof folder, "%s", made);
    rssm_free(made);
    snprintf(database, sizeof database, "%s/tuned.db", folder);
    snprintf(model, sizeof model, "%s/config.json", folder);
    snprintf(templates, sizeof templates, "%s/templates", folder);
    write_text(model, "{\"model_type\":\"mamba2\",\"num_heads\":8,\"head_dim\":32,\"state_size\":64,\"n_groups\":2,"
                      "\"num_hidden_layers\":3,\"hidden_size\":128,\"expand\":2,\"torch_dtype\":\"bfloat16\"}");
    test_small_templates(templates);
    setenv("RSSM_DEVICE", "cpu", 1);
    setenv("RSSM_DATABASE", database, 1);
}

static void tear_down(void)
{
    rssm_folder_remove(folder);
    rssm_str_free(&output);
}

TestSuite(cli, .init = set_up, .fini = tear_down);

Test(cli, helps)
{
    EXITS(tune("--help", NULL), 0);
    SAYS("usage: replayssm-tune COMMAND");
    SAYS("RSSM_DATABASE");
    static const char *const commands[] = {"tune", "show", "bench", "verify", "lint"};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        EXITS(tune(commands[i], "--help", NULL), 0);
        SAYS("--json");
    }
    EXITS(tune("--version", NULL), 0);
    SAYS(rssm_version());
    EXITS(tune("tune", "--model", "help", NULL), 0);
    SAYS("nemotron-3-nano-4b");
}

Test(cli, refuses_what_it_does_not_know)
{
    EXITS(tune("tunee", NULL), RSSM_E_INVALID_ARGUMENT);
    SAYS("did you mean tune?");
    EXITS(tune("tune", "--modle", "x", NULL), RSSM_E_INVALID_ARGUMENT);
    SAYS("--model");
    EXITS(tune("tune", NULL), RSSM_E_INVALID_ARGUMENT);
    SAYS("needs --model");
    EXITS(tune("show", "--budget", "3", NULL), RSSM_E_INVALID_ARGUMENT);
    SAYS("does not belong to 'show'");
    EXITS(tune("tune", "--model", model, "--batch", "0", NULL), RSSM_E_INVALID_ARGUMENT);
    EXITS(tune("tune", "--model", model, "--batch", "8,4", NULL), RSSM_E_INVALID_ARGUMENT);
    SAYS("must grow");
    EXITS(tune("tune", "--model", model, "--checkpoint", "f99", NULL), RSSM_E_INVALID_ARGUMENT);
    EXITS(tune("tune", "--model", model, "--json=1", NULL), RSSM_E_INVALID_ARGUMENT);
    EXITS(tune("tune", "--model", model, "--tp", NULL), RSSM_E_INVALID_ARGUMENT);
    SAYS("needs a value");
    EXITS(tune("tune", "--model", model, "stray", NULL), RSSM_E_INVALID_ARGUMENT);
    EXITS(tune("tune", "--model", "nemotron-3-nano-4", NULL), RSSM_E_NOT_FOUND);
    SAYS("nemotron-3-nano-4b");
    EXITS(tune("tune", "--model", model, "--device", "gpu", NULL), RSSM_E_NO_DEVICE);
    SAYS("--device cpu works");
    EXITS(tune("tune", "--model", model, "--device", "7", NULL), RSSM_E_NO_DEVICE);
    EXITS(tune("tune", "--model", model, "--draft-tokens", "16", NULL), RSSM_E_INVALID_ARGUMENT);
    SAYS("--draft-tokens takes a whole number from 0 to 15, not '16'");
    EXITS(tune("show", "--model", model, "--draft-tokens", "-1", NULL), RSSM_E_INVALID_ARGUMENT);
    EXITS(tune("verify", "--model", model, "--draft-tokens", "7", "--window", "7", NULL), RSSM_E_INVALID_ARGUMENT);
    SAYS("--draft-tokens 7 makes steps of 8 tokens, and a window of 7 holds fewer; give --window 8 or more, or "
         "--draft-tokens 6 or fewer");
    EXITS(tune("bench", "--model", model, "--draft-tokens", "1", "--window", "1", NULL), RSSM_E_INVALID_ARGUMENT);
    SAYS("--draft-tokens 0 or fewer");
    EXITS(tune("tune", "--model", model, "--draft-tokens", "3", "--window", "100", NULL), RSSM_E_UNSUPPORTED);
    SAYS("no step kernel for cpu");
}

// Every line of the output is a JSON object with an "event"; returns how many say `event`.
static int count_events(const char *event)
{
    int count = 0;
    for (char *line = strtok(output.data, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        rssm_json      *json;
        rssm_json_value v;
        const char     *text;
        rssm_diag       diag = {0};
        cr_assert_eq(rssm_json_parse(line, strlen(line), "output", RSSM_E_CORRUPT, &json, &diag), RSSM_OK, "%s in: %s",
                     diag.text, line);
        cr_assert(rssm_json_get(rssm_json_root(json), "event", &v) && rssm_json_as_string(v, &text, &diag) == RSSM_OK);
        count += strcmp(text, event) == 0;
        rssm_json_free(json);
    }
    return count;
}

Test(cli, tunes_then_answers_from_the_database)
{
    struct stat info;
    EXITS(tune("tune", "--model", model, "--batch", "1,4", "--templates", templates, NULL), 0);
    SAYS("conventional");
    SAYS("mamba2_step_rows VEC");
    SAYS("(3 layers)");
    cr_assert_eq(stat(database, &info), 0);
    cr_expect_eq(info.st_mode & 0777, 0600);

    const uint64_t began = rssm_now_ns();
    EXITS(tune("tune", "--model", model, "--batch", "1,4", "--templates", templates, NULL), 0);
    SAYS("answered from");
    cr_expect_lt((double)(rssm_now_ns() - began) * 1e-9, SECOND_RUN_LIMIT_S);

    EXITS(tune("tune", "--model", model, "--batch", "1,4", "--templates", templates, "--json", NULL), 0);
    cr_expect_eq(count_events("result"), 2);
    EXITS(tune("show", NULL), 0);
    SAYS("mamba2_step");
    EXITS(tune("show", "--model", model, "--json", NULL), 0);
    cr_expect_eq(count_events("entry"), 4);
    EXITS(tune("show", "--rejected", NULL), 0);
    EXITS(tune("verify", "--model", model, "--templates", templates, "--batch", "1,3", NULL), 0);
    SAYS("ok     batch 1");
    EXITS(tune("bench", "--model", model, "--templates", templates, "--batch", "4", NULL), 0);
    SAYS("plain loop");
    EXITS(tune("bench", "--model", model, "--templates", templates, "--batch", "4", "--json", NULL), 0);
    SAYS("user database, tuned at batch 4");
    cr_expect_eq(count_events("result"), 1);
}

Test(cli, serves_steps_of_several_tokens)
{
    EXITS(tune("verify", "--model", model, "--draft-tokens", "3", "--batch", "1,3", NULL), 0);
    SAYS("ok     batch 3");
    EXITS(tune("verify", "--model", model, "--draft-tokens", "7", "--window", "8", "--checkpoint", "bf16",
               "--activation", "f16", "--batch", "2", NULL), 0);
    EXITS(tune("verify", "--model", model, "--draft-tokens", "1", "--batch", "2", "--activation", "f32", NULL), 0);

    EXITS(tune("tune", "--model", model, "--draft-tokens", "3", "--batch", "1,4", "--templates", templates, NULL), 0);
    SAYS("T=4 R=20");
    SAYS("uniform acceptance: 2.5 of 4 tokens kept per step, 0.179 of the steps fold");
    SAYS("per token");
    SAYS("mamba2_step_tokens");
    EXITS(tune("tune", "--model", model, "--draft-tokens", "3", "--batch", "1,4", "--templates", templates, NULL), 0);
    SAYS("answered from");
    EXITS(tune("show", "--model", model, "--draft-tokens", "3", NULL), 0);
    SAYS("MiB/token");
    EXITS(tune("show", "--model", model, "--draft-tokens", "3", "--json", NULL), 0);
    SAYS("\"committed_tokens\":2.5");
    cr_expect_eq(count_events("entry"), 2, "replay at two batches, and nothing eager");
    EXITS(tune("show", "--model", model, "--draft-tokens", "2", NULL), 0);
    SAYS("nothing is stored");
    EXITS(tune("bench", "--model", model, "--draft-tokens", "3", "--batch", "4", "--templates", templates, "--json",
               NULL), 0);
    SAYS("user database, tuned at batch 4");
    SAYS("\"draft_tokens\":3,\"committed_tokens\":2.5,\"fold_share\":0.1785,\"token_ns\":");
    SAYS("\"conventional_ns\":");
    cr_expect_eq(count_events("result"), 1);
}

Test(cli, goes_on_after_being_killed)
{
    rssm_db  *db;
    rssm_diag diag = {0};
    for (int attempt = 0; attempt < 3; attempt++) {
        const pid_t child = fork();
        if (child == 0) {
            freopen("/dev/null", "w", stdout);
            freopen("/dev/null", "w", stderr);
            execl(RSSM_TUNE, RSSM_TUNE, "tune", "--model", model, "--batch", "1,2,4", "--templates", templates, NULL);
            _exit(127);
        }
        rssm_sleep_ns(700000000u * (unsigned)(attempt + 1));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        if (access(database, F_OK) == 0) {
            cr_assert_eq(rssm_db_open_write(database, &db, &diag), RSSM_OK, "%s", diag.text);   // checks the whole file
            rssm_db_close(db);
        }
    }
    EXITS(tune("tune", "--model", model, "--batch", "1,2,4", "--templates", templates, NULL), 0);
    EXITS(tune("tune", "--model", model, "--batch", "1,2,4", "--templates", templates, NULL), 0);
    SAYS("answered from");
}

Test(cli, stops_at_the_budget_and_says_so)
{
    EXITS(tune("tune", "--model", model, "--batch", "1..64", "--templates", templates, "--budget", "1", NULL), 0);
    SAYS("run the same command again");
}

Test(cli, verifies_every_candidate)
{
    EXITS(tune("verify", "--all", "--model", model, "--templates", templates, NULL), 0);
    SAYS("ok ");
    EXITS(tune("verify", "--model", model, "--checkpoint", "bf16", "--activation", "f16", "--json", NULL), 0);
    cr_expect_eq(count_events("verify"), 2);
}

Test(cli, works_without_a_compiler_where_it_can)
{
    setenv("RSSM_CLANG", "/nonexistent/clang", 1);
    EXITS(tune("tune", "--model", model, "--batch", "1", NULL), RSSM_E_NO_COMPILER);
    SAYS("/nonexistent/clang");
    EXITS(tune("verify", "--model", model, "--batch", "2", NULL), 0);
    EXITS(tune("bench", "--model", model, "--batch", "2", NULL), 0);
}

Test(cli, reports_databases_it_cannot_use)
{
    char bad[320];
    snprintf(bad, sizeof bad, "%s/other.db", folder);
    write_text(bad, "this is a text file, and long enough to be told from an empty one ................................");
    EXITS(tune("show", "--database", bad, NULL), RSSM_E_FOREIGN);
    SAYS(bad);
    EXITS(tune("tune", "--model", model, "--database", bad, NULL), RSSM_E_FOREIGN);
    EXITS(tune("show", "--database", "/nonexistent/tuned.db", NULL), RSSM_E_NOT_FOUND);
    const int code = tune("tune", "--model", model, "--database", "/proc/tuned.db", NULL);
    cr_expect(code >= 20 && code < 40, "a place that cannot be written: exit code %d\n%s", code, rssm_str_c(&output));
    cr_expect(strstr(rssm_str_c(&output), "/proc"), "%s", rssm_str_c(&output));

    EXITS(tune("tune", "--model", model, "--batch", "1", "--templates", templates, "--budget", "1", NULL), 0);
    cr_assert_eq(truncate(database, 1000), 0);
    EXITS(tune("show", NULL), RSSM_E_CORRUPT);
    SAYS(database);
    EXITS(tune("verify", "--model", model, "--batch", "1", NULL), 0);   // a host goes on without it
}

Test(cli, lints_templates)
{
    EXITS(tune("lint", NULL), 0);
    SAYS("ok     cpu/");
    char path[400];
    char *text;
    size_t n;
    snprintf(path, sizeof path, "%s/cpu/advance/advance.json", templates);
    cr_assert_eq(rssm_file_read(path, 1 << 20, &text, &n, NULL), RSSM_OK);
    char *version = strstr(text, "\"version\"");
    cr_assert_not_null(version);
    version[1] = 'w';   // a typo in a key
    write_text(path, text);
    rssm_free(text);
    EXITS(tune("lint", "--templates", templates, NULL), RSSM_E_MANIFEST);
    SAYS("advance.json");
    SAYS("wersion");
    EXITS(tune("tune", "--model", model, "--templates", templates, NULL), RSSM_E_MANIFEST);
}

Test(cli, reads_real_model_configs_and_their_slices)
{
    EXITS(tune("verify", "--model", "nemotron-3-super", "--tp", "8", "--batch", "1", NULL), 0);
    EXITS(tune("tune", "--model", "nemotron-3-super", "--tp", "3", NULL), RSSM_E_INVALID_ARGUMENT);
    SAYS("128");
    write_text(model, "{\"model_type\":\"wonder\"}");
    EXITS(tune("tune", "--model", model, NULL), RSSM_E_MODEL);
    SAYS("wonder");
}
