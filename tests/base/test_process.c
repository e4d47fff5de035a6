// base/process.h with the system's own programs: output, exit codes, deadline, leftovers, descriptors.
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/str.h"
#include "base/thread.h"

// Runs a shell command; output is cleared first.
static rssm_status run_shell(const char *command, int timeout_ms, rssm_str *output, int *out_exit)
{
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};

    if (output) rssm_str_clear(output);
    return rssm_process_run(argv, timeout_ms, output, out_exit, NULL);
}

static int n_open_files(void)
{
    int n = 0;

    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) != -1;
    return n;
}

Test(process, both_outputs_in_order_and_appended)
{
    const char *const argv[] = {"/bin/sh", "-c", "echo out; echo err >&2; echo end", NULL};
    rssm_str          output = {0};
    int               code = -1;

    rssm_str_puts(&output, "before:");
    cr_assert_eq(rssm_process_run(argv, 10000, &output, &code, NULL), RSSM_OK);
    cr_assert_eq(code, 0);
    cr_assert_str_eq(rssm_str_c(&output), "before:out\nerr\nend\n");
    rssm_str_free(&output);
}

Test(process, exit_codes_and_signals)
{
    const struct {
        const char *command;
        int         code;
    } cases[] = {{"exit 0", 0}, {"exit 7", 7}, {"exit 255", 255}, {"kill -9 $$", 137}, {"kill -SEGV $$", 139}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int code = -1;
        cr_assert_eq(run_shell(cases[i].command, 10000, NULL, &code), RSSM_OK);
        cr_assert_eq(code, cases[i].code, "%s", cases[i].command);
    }
}

Test(process, standard_input_is_empty_but_open)
{
    rssm_str output = {0};
    int      code;

    cr_assert_eq(run_shell("cat; readlink /proc/self/fd/0", 10000, &output, &code), RSSM_OK);
    cr_assert_str_eq(rssm_str_c(&output), "/dev/null\n");
    rssm_str_free(&output);
}

Test(process, a_missing_program)
{
    const char *const argv[] = {"/no/such/program", NULL};
    rssm_diag         diag = {0};
    int               code = -7;

    cr_assert_eq(rssm_process_run(argv, 1000, NULL, &code, &diag), RSSM_E_NOT_FOUND);
    cr_assert_neq(strstr(diag.text, "/no/such/program"), NULL);
    cr_assert_eq(code, -7);
}

Test(process, the_deadline_kills_the_whole_group)
{
    rssm_str       output = {0};
    int            code = -7, child = 0;
    const uint64_t begin = rssm_now_ns();

    cr_assert_eq(run_shell("sleep 60 & echo $!; wait", 300, &output, &code), RSSM_E_TIMEOUT);
    const uint64_t took_ms = (rssm_now_ns() - begin) / 1000000;
    cr_assert_geq(took_ms, 300);
    cr_assert_lt(took_ms, 10000);
    cr_assert_eq(code, -7);
    cr_assert_eq(sscanf(rssm_str_c(&output), "%d", &child), 1, "what was said before is kept");
    for (int i = 0; i < 200 && kill(child, 0) == 0; i++) // until somebody reaps the orphan
        rssm_sleep_ns(10000000);
    char path[64], state = '?';
    snprintf(path, sizeof path, "/proc/%d/stat", child);
    FILE *f = fopen(path, "r");
    if (f) {
        cr_assert_eq(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
        fclose(f);
        cr_assert(state == 'Z' || state == 'X', "the grandchild runs on: %c", state);
    }
    rssm_str_free(&output);
}

Test(process, a_child_that_never_stops_writing_meets_the_deadline)
{
    rssm_str output = {0};
    int      code;

    cr_assert_eq(run_shell("exec yes", 400, &output, &code), RSSM_E_TIMEOUT);
    cr_assert_leq(output.length, 4 << 20);
    rssm_str_free(&output);
}

Test(process, output_beyond_the_limit_is_dropped)
{
    rssm_str output = {0};
    int      code = -1;

    cr_assert_eq(run_shell("head -c 6000000 /dev/zero | tr '\\0' x; echo end", 30000, &output, &code), RSSM_OK);
    cr_assert_eq(code, 0, "the child was not blocked");
    cr_assert_eq(output.length, 4 << 20);
    cr_assert_eq(output.data[output.length - 1], 'x');
    rssm_str_free(&output);
}

// A leftover in the group that holds the pipe must not hold us.
Test(process, leftovers_do_not_delay_the_end)
{
    rssm_str       output = {0};
    int            code = -1;
    const uint64_t begin = rssm_now_ns();

    cr_assert_eq(run_shell("sleep 30 & echo done", 20000, &output, &code), RSSM_OK);
    cr_assert_lt((rssm_now_ns() - begin) / 1000000, 5000);
    cr_assert_eq(code, 0);
    cr_assert_str_eq(rssm_str_c(&output), "done\n");
    rssm_str_free(&output);
}

Test(process, a_child_that_closes_its_output_is_waited_for)
{
    rssm_str       output = {0};
    int            code = -1;
    const uint64_t begin = rssm_now_ns();

    cr_assert_eq(run_shell("echo a; exec >&- 2>&-; sleep 0.2; exit 5", 20000, &output, &code), RSSM_OK);
    cr_assert_geq((rssm_now_ns() - begin) / 1000000, 190);
    cr_assert_eq(code, 5);
    cr_assert_eq(run_shell("exec >&- 2>&-; exec sleep 60", 200, &output, &code), RSSM_E_TIMEOUT);
    rssm_str_free(&output);
}

Test(process, no_timeout)
{
    int code = -1;

    cr_assert_eq(run_shell("sleep 0.1; exit 3", -1, NULL, &code), RSSM_OK);
    cr_assert_eq(code, 3);
}

Test(process, nothing_is_left_open_and_nobody_unreaped)
{
    const int before = n_open_files();
    int       code;

    for (int i = 0; i < 20; i++)
        cr_assert_eq(run_shell(i % 2 ? "exit 1" : "echo x", 10000, NULL, &code), RSSM_OK);
    run_shell("sleep 60", 50, NULL, &code);
    cr_assert_eq(n_open_files(), before);
    cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "no child is left");
}

static void on_alarm(int signal_number)
{
    (void)signal_number;
}

Test(process, signals_to_the_caller_change_nothing)
{
    struct sigaction       action;
    const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    rssm_str               output = {0};
    int                    code = -1;

    memset(&action, 0, sizeof action);
    action.sa_handler = on_alarm;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    const rssm_status st = run_shell("for i in 1 2 3; do echo $i; sleep 0.05; done; exit 4", 20000, &output, &code);
    setitimer(ITIMER_REAL, &never, NULL);
    cr_assert_eq(st, RSSM_OK);
    cr_assert_eq(code, 4);
    cr_assert_str_eq(rssm_str_c(&output), "1\n2\n3\n");
    rssm_str_free(&output);
}

// Ignored and blocked signals of the host are not inherited.
Test(process, signals_are_reset_in_the_child)
{
    sigset_t mask;
    rssm_str output = {0};
    int      code;

    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
    cr_assert_eq(run_shell("grep -E 'Sig(Blk|Ign)' /proc/self/status", 10000, &output, &code), RSSM_OK);
    unsigned long long blocked = 1, ignored = 1;
    cr_assert_eq(sscanf(rssm_str_c(&output), "SigBlk: %llx SigIgn: %llx", &blocked, &ignored), 2);
    cr_assert_eq(blocked, 0);
    cr_assert_eq(ignored >> (SIGPIPE - 1) & 1, 0);
    rssm_str_free(&output);
}

Test(process, a_host_that_ignores_child_signals_gets_an_error)
{
    int       code = -7;
    rssm_diag diag = {0};

    const char *const argv[] = {"/bin/true", NULL};
    signal(SIGCHLD, SIG_IGN);
    cr_assert_eq(rssm_process_run(argv, 5000, NULL, &code, &diag), RSSM_E_IO);
    cr_assert_neq(strstr(diag.text, "SIGCHLD"), NULL);
    cr_assert_eq(code, -7);
}

Test(process, no_memory_for_the_output)
{
    rssm_str output = {0};
    int      code = -7;

    rssm_alloc_fail_after(1);
    cr_assert_eq(run_shell("echo x", 10000, &output, &code), RSSM_E_NO_MEMORY);
    cr_assert_eq(rssm_alloc_fail_after(0), 1);
    cr_assert_eq(code, -7);
    rssm_str_free(&output);
}

static void run_one(void *context, int i)
{
    int     *n_wrong = context, code = -1;
    char     command[64], expected[16];
    rssm_str output = {0};

    snprintf(command, sizeof command, "echo %d; exit %d", i, i);
    snprintf(expected, sizeof expected, "%d\n", i);
    if (run_shell(command, 20000, &output, &code) != RSSM_OK || code != i || strcmp(rssm_str_c(&output), expected) != 0)
        __atomic_fetch_add(n_wrong, 1, __ATOMIC_RELAXED);
    rssm_str_free(&output);
}

Test(process, several_at_once)
{
    int n_wrong = 0;

    rssm_parallel_for(8, 40, run_one, &n_wrong);
    cr_assert_eq(n_wrong, 0);
}
