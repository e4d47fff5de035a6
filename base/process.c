// Child processes: posix_spawn in a process group of their own, output through one pipe, a deadline.
//
// Invariants. P1: the child is reaped on every return after a successful spawn. P2: the group is signalled only while
// its leader is not reaped, so that a reused process number is never hit. P3: bytes beyond the limit are read and
// dropped, so that a child never blocks on a full pipe.
// Threads: thread-safe. The host must neither ignore SIGCHLD nor wait for children that are not its own.
#define _GNU_SOURCE
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/system_error.h"

extern char **environ;

enum {
    OUTPUT_LIMIT = 4 << 20, // bytes kept of one run
    READS_AT_ONCE = 64,
    TICK_MS = 20,   // how often the leader's end is looked for while its output stays open
    GRACE_MS = 100, // for output still in flight after the leader's end, then what is left is killed
};

typedef struct child {
    pid_t     pid;
    int       output_fd; // read end, not blocking; -1 after its end
    size_t    n_kept;
    rssm_str *output;
} child;

// 0, or an errno value. Standard input reads as empty: a closed descriptor 0 would be taken by the child's first open.
static int add_redirections(posix_spawn_file_actions_t *actions, int write_fd)
{
    int error = posix_spawn_file_actions_adddup2(actions, write_fd, STDOUT_FILENO);

    if (!error) error = posix_spawn_file_actions_adddup2(actions, write_fd, STDERR_FILENO);
    if (!error) error = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    return error;
}

// Own group, no blocked signal, and the default action for those that hosts like to ignore.
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, defaults;
    int      error;

    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGINT);
    sigaddset(&defaults, SIGTERM);
    sigaddset(&defaults, SIGCHLD);
    error = posix_spawnattr_setpgroup(attributes, 0);
    if (!error) error = posix_spawnattr_setsigmask(attributes, &none);
    if (!error) error = posix_spawnattr_setsigdefault(attributes, &defaults);
    if (!error) {
        error = posix_spawnattr_setflags(attributes,
                                         POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }
    return error;
}

// 0, or an errno value.
static int spawn(const char *const *argv, int write_fd, pid_t *out_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t          attributes;
    int                        error = posix_spawn_file_actions_init(&actions);

    if (error) return error;
    error = posix_spawnattr_init(&attributes);
    if (error) {
        posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    error = add_redirections(&actions, write_fd);
    if (!error) error = set_attributes(&attributes);
    if (!error) error = posix_spawn(out_pid, argv[0], &actions, &attributes, (char *const *)argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

// Reads what is there now; not for ever, so that a child that never stops writing still meets its deadline.
static void drain(child *c)
{
    char bytes[16384];

    for (int i = 0; i < READS_AT_ONCE && c->output_fd >= 0; i++) {
        const ssize_t n = read(c->output_fd, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n <= 0) {
            close(c->output_fd);
            c->output_fd = -1;
            return;
        }
        const size_t room = OUTPUT_LIMIT - c->n_kept, keep = (size_t)n < room ? (size_t)n : room;
        if (c->output) rssm_str_append(c->output, bytes, keep);
        c->n_kept += keep;
    }
}

// Waits for output, at most `ms`. Signals end the wait early; the callers loop.
static void wait_output(child *c, int ms)
{
    struct pollfd p = {.fd = c->output_fd, .events = POLLIN};

    if (c->output_fd >= 0)
        poll(&p, 1, ms);
    else
        rssm_sleep_ns(1000000); // output closed, the end is near
    drain(c);
}

// Whether the leader has ended; it stays a zombie (P2). An errno value in *out_error where it cannot be known.
static bool has_ended(const child *c, int *out_error)
{
    siginfo_t info = {0};

    if (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
        if (errno == EINTR) return false;
        *out_error = errno;
        return true;
    }
    return info.si_pid == c->pid;
}

static int remaining_ms(uint64_t end_ns)
{
    const uint64_t now = rssm_now_ns();

    return now >= end_ns ? 0 : (end_ns - now) / 1000000 < TICK_MS ? (int)((end_ns - now) / 1000000) + 1 : TICK_MS;
}

// Runs the child to its end or the deadline; returns whether the deadline passed.
static bool supervise(child *c, uint64_t end_ns, int *out_error)
{
    while (!has_ended(c, out_error)) {
        const int ms = remaining_ms(end_ns);
        if (ms == 0) {
            kill(-c->pid, SIGKILL);
            return true;
        }
        wait_output(c, ms);
    }
    const uint64_t grace_end_ns = rssm_now_ns() + GRACE_MS * (uint64_t)1000000;
    drain(c);
    for (int ms; c->output_fd >= 0 && (ms = remaining_ms(grace_end_ns)) > 0;)
        wait_output(c, ms);
    if (!*out_error) kill(-c->pid, SIGKILL); // whatever it left behind in its group
    return false;
}

// Collects the leader. 0, or an errno value.
static int reap(child *c, int *out_exit)
{
    int   status = 0;
    pid_t pid;

    do
        pid = waitpid(c->pid, &status, 0);
    while (pid < 0 && errno == EINTR);
    if (pid < 0) return errno;
    *out_exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return 0;
}

static rssm_status fail_start(const char *program, int error, rssm_diag *diag)
{
    return RSSM_FAIL(diag, rssm_error_status(error), "cannot start %s: %s", program, rssm_error_words(error).text);
}

rssm_status rssm_process_run(const char *const *argv, int timeout_ms, rssm_str *output, int *out_exit, rssm_diag *diag)
{
    child          c = {.output_fd = -1, .output = output};
    const uint64_t end_ns = timeout_ms < 0 ? UINT64_MAX : rssm_now_ns() + (uint64_t)timeout_ms * 1000000;
    int            fds[2], error = 0, exit_code = 0;

    if (pipe2(fds, O_CLOEXEC) != 0) return fail_start(argv[0], errno, diag);
    c.output_fd = fds[0];
    if (fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0) error = errno;
    if (!error) error = spawn(argv, fds[1], &c.pid);
    close(fds[1]);
    if (error) {
        close(fds[0]);
        return fail_start(argv[0], error, diag);
    }

    const bool timed_out = supervise(&c, end_ns, &error);
    const int  reap_error = reap(&c, &exit_code);
    drain(&c);
    if (c.output_fd >= 0) close(c.output_fd);
    if (timed_out)
        return RSSM_FAIL(diag, RSSM_E_TIMEOUT, "%s did not finish within %d ms and was killed", argv[0], timeout_ms);
    if (error || reap_error) {
        return RSSM_FAIL(diag, RSSM_E_IO, "the exit status of %s was lost: %s; the process must not ignore SIGCHLD",
                         argv[0], rssm_error_words(error ? error : reap_error).text);
    }
    const rssm_status st = output ? rssm_str_check(output, diag) : RSSM_OK;
    if (st == RSSM_OK) *out_exit = exit_code;
    return st;
}
