// Four writers, one of them killed at some moment: the file stays whole and every acknowledged trial is in it.
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/db/support.h"
#include "tests/db/tamper.h"

enum { N_WRITERS = 4, N_WRITES = 50, N_ROUNDS = 3 };

static rssm_db_trial trial_of(int writer, int i, char config[32])
{
    snprintf(config, 32, "W=%d I=%d", writer, i);
    return sample_trial(config, 10.0 + i);
}

// In a child: acknowledges each trial by one byte.
static void write_all(const char *path, int writer, int out)
{
    rssm_db *db = NULL;
    char     config[32];
    if (rssm_db_open_write(path, &db, NULL) != RSSM_OK) {
        _exit(10);
    }
    for (int i = 0; i < N_WRITES; i++) {
        rssm_db_trial  trial = trial_of(writer, i, config);
        rssm_db_binary binary = sample_binary(writer * N_WRITES + i, 3000);
        trial.build_key = hash_of(writer * N_WRITES + i + 1);
        if (rssm_db_record(db, &trial, &binary, NULL) != RSSM_OK) {
            _exit(11);
        }
        if (write(out, "x", 1) != 1) {
            _exit(12);
        }
    }
    rssm_db_close(db);
    _exit(0);
}

static int count_acknowledged(int in)
{
    char bytes[N_WRITES + 1];
    int  n = 0;
    for (ssize_t got; (got = read(in, bytes, sizeof(bytes))) > 0;) {
        n += (int)got;
    }
    close(in);
    return n;
}

static void check_round(int round)
{
    scratch s = scratch_begin_on_disk();
    pid_t   pids[N_WRITERS];
    int     pipes[N_WRITERS][2];
    for (int w = 0; w < N_WRITERS; w++) {
        cr_assert_eq(pipe(pipes[w]), 0);
        pids[w] = fork();
        if (pids[w] == 0) {
            write_all(s.path, w, pipes[w][1]);
        }
        close(pipes[w][1]);
    }
    rssm_sleep_ns((20 + (rssm_now_ns() / 1000) % 300) * 1000000ULL);
    kill(pids[round % N_WRITERS], SIGKILL);
    int n_acknowledged[N_WRITERS], n_total = 0;
    for (int w = 0; w < N_WRITERS; w++) {
        int status = 0;
        n_acknowledged[w] = count_acknowledged(pipes[w][0]);
        n_total += n_acknowledged[w];
        cr_assert_eq(waitpid(pids[w], &status, 0), pids[w]);
        if (w != round % N_WRITERS) {
            cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "writer %d ended with %x", w, status);
            cr_expect_eq(n_acknowledged[w], N_WRITES);
        }
    }
    rssm_db *db = open_write(s.path);
    for (int w = 0; w < N_WRITERS; w++) {
        for (int i = 0; i < n_acknowledged[w]; i++) {
            char           config[32];
            rssm_db_known  known = {0};
            rssm_db_binary binary = {0};
            rssm_db_trial  trial = trial_of(w, i, config);
            trial.build_key = hash_of(w * N_WRITES + i + 1);
            cr_assert_eq(rssm_db_trial_known(db, &trial, &known, NULL), RSSM_OK);
            cr_expect(known.is_known, "writer %d, trial %d is lost", w, i);
            cr_expect_eq(rssm_db_binary_read(db, &trial.build_key, &binary, NULL), RSSM_OK);
            rssm_db_binary_free(&binary);
        }
    }
    rssm_db_close(db);
    cr_expect_str_eq(tamper_ask(s.path, "PRAGMA integrity_check"), "ok");
    int n_found = atoi(tamper_ask(s.path, "SELECT count(*) FROM trial"));
    cr_expect(n_found == n_total || n_found == n_total + 1, "%d found, %d acknowledged", n_found, n_total);
    scratch_end(&s);
}

Test(processes, lose_nothing_that_was_acknowledged_when_one_is_killed)
{
    for (int round = 0; round < N_ROUNDS; round++) {
        check_round(round);
    }
}

// Readers come and go while a writer works; each sees a whole database.
Test(processes, readers_never_see_half_a_trial)
{
    scratch s = scratch_begin_on_disk();
    int     fds[2];
    rssm_db_close(open_write(s.path));
    cr_assert_eq(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 2; i++) { // entering and leaving WAL mode meanwhile
            rssm_db *db = NULL;
            if (rssm_db_open_write(s.path, &db, NULL) != RSSM_OK) {
                _exit(1);
            }
            for (int k = 0; k < 20; k++) {
                char           config[32];
                rssm_db_trial  trial = trial_of(i, k, config);
                rssm_db_binary binary = sample_binary(k, 5000);
                trial.build_key = hash_of(i * 20 + k + 1);
                if (rssm_db_record(db, &trial, &binary, NULL) != RSSM_OK) {
                    _exit(2);
                }
            }
            rssm_db_close(db);
        }
        _exit(0);
    }
    int    status = 0;
    size_t n_before = 0;
    do {
        rssm_db      *db = NULL;
        rssm_diag     diag = {0};
        rssm_db_query query = {0};
        rssm_db_rows  rows = {0};
        rssm_status   st = rssm_db_open_read(s.path, &db, &diag);
        if (st == RSSM_OK) {
            st = rssm_db_trials(db, &query, &rows, &diag);
        }
        cr_expect(st == RSSM_OK || st == RSSM_E_BUSY, "%s: %s", rssm_status_name(st), diag.text);
        if (st == RSSM_OK) {
            cr_expect_geq(rows.n, n_before);
            n_before = rows.n;
            for (size_t i = 0; i < rows.n; i++) {
                cr_expect(rows.rows[i].has_binary);
            }
        }
        rssm_db_rows_free(&rows);
        rssm_db_close(db);
    } while (waitpid(pid, &status, WNOHANG) == 0);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", status);
    scratch_end(&s);
}
