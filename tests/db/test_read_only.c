// Reading must work where nothing may be written, must see what a dead writer acknowledged, and must make no file.
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/db/support.h"
#include "tests/db/tamper.h"

// Leaves a database with one trial in the file and one in the log of a writer that was killed.
static void make_dead_writer(const char *path)
{
    make_database(path, 1);
    pid_t pid = fork();
    if (pid == 0) {
        rssm_db      *db = NULL;
        rssm_db_trial trial = sample_trial("K=late", 50.0);
        if (rssm_db_open_write(path, &db, NULL) != RSSM_OK || rssm_db_record(db, &trial, NULL, NULL) != RSSM_OK) {
            _exit(1);
        }
        raise(SIGKILL);
    }
    int status = 0;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFSIGNALED(status));
    cr_assert(!file_absent(path, "-wal") && !file_absent(path, "-shm"));
}

static size_t count_trials(const char *path, const char **out_journal)
{
    rssm_db      *db = open_read(path);
    rssm_db_query query = {0};
    rssm_db_rows  rows = {0};
    rssm_diag     diag = {0};
    cr_assert_eq(rssm_db_trials(db, &query, &rows, &diag), RSSM_OK, "%s", diag.text);
    size_t n = rows.n;
    *out_journal = rssm_db_journal(db);
    rssm_db_rows_free(&rows);
    rssm_db_close(db);
    return n;
}

typedef enum leftovers { REST, LOG_AND_INDEX, LOG_ONLY, EMPTY_LOG, NO_LOG } leftovers;

static const struct {
    const char *name;
    leftovers   left;
    size_t      n_trials;
    const char *journal;
} CASES[] = {
    {"at rest", REST, 2, "delete"},
    {"log and index of a dead writer", LOG_AND_INDEX, 2, "wal"},
    {"log of a dead writer without its index", LOG_ONLY, 2, "wal"},
    {"empty log in WAL mode", EMPTY_LOG, 1, "immutable"},
    {"no log in WAL mode", NO_LOG, 1, "immutable"},
};

static void prepare(const char *path, leftovers left)
{
    char name[600];
    if (left == REST) {
        make_database(path, 2);
        return;
    }
    make_dead_writer(path);
    if (left != LOG_AND_INDEX) {
        snprintf(name, sizeof(name), "%s-shm", path);
        cr_assert_eq(unlink(name), 0);
    }
    snprintf(name, sizeof(name), "%s-wal", path);
    if (left == EMPTY_LOG) {
        cr_assert_eq(truncate(name, 0), 0);
    } else if (left == NO_LOG) {
        cr_assert_eq(unlink(name), 0);
    }
}

static void check_case(size_t i, bool read_only)
{
    scratch     s = scratch_begin();
    char        folder[600];
    const char *journal = NULL;
    prepare(s.path, CASES[i].left);
    snprintf(folder, sizeof(folder), "%s/data", s.folder);
    if (read_only) {
        cr_assert_eq(chmod(folder, 0555), 0);
        chmod(s.folder, 0755);
        become_nobody(folder);
    }
    size_t n_before = 0, n_after = 0;
    char  *before = folder_listing(folder), *file_before = file_bytes(s.path, &n_before);
    size_t n = count_trials(s.path, &journal);
    char  *after = folder_listing(folder), *file_after = file_bytes(s.path, &n_after);
    cr_expect_eq(n, CASES[i].n_trials, "%s: %zu trials", CASES[i].name, n);
    cr_expect_str_eq(journal, CASES[i].journal, "%s: %s", CASES[i].name, journal);
    cr_expect_str_eq(before, after, "%s: before\n%safter\n%s", CASES[i].name, before, after);
    cr_expect(n_before == n_after && memcmp(file_before, file_after, n_before) == 0, "%s: changed", CASES[i].name);
    free(before);
    free(after);
    free(file_before);
    free(file_after);
    if (geteuid() != getuid()) {
        cr_assert_eq(seteuid(0), 0);
    }
    chmod(folder, 0700);
    scratch_end(&s);
}

Test(read_only, makes_no_file_in_a_writable_folder)
{
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        check_case(i, false);
    }
}

Test(read_only, works_in_a_read_only_folder)
{
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        check_case(i, true);
    }
}

Test(read_only, a_read_only_folder_is_no_place_to_write)
{
    scratch   s = scratch_begin();
    rssm_diag diag = {0};
    char      folder[600], other[700];
    make_database(s.path, 1);
    snprintf(folder, sizeof(folder), "%s/data", s.folder);
    snprintf(other, sizeof(other), "%s/new.db", folder);
    cr_assert_eq(chmod(folder, 0555), 0);
    chmod(s.folder, 0755);
    become_nobody(folder);
    cr_expect_eq(try_write(s.path, &diag), RSSM_E_PERMISSION, "%s", diag.text);
    cr_expect_eq(try_write(other, &diag), RSSM_E_PERMISSION, "%s", diag.text);
    cr_expect(strstr(diag.text, folder) != NULL && strstr(diag.text, "choose another path") != NULL, "%s", diag.text);
    snprintf(other, sizeof(other), "%s/deeper/new.db", folder);
    cr_expect_eq(try_write(other, &diag), RSSM_E_PERMISSION, "%s", diag.text);
    if (geteuid() != getuid()) {
        cr_assert_eq(seteuid(0), 0);
    }
    chmod(folder, 0700);
    scratch_end(&s);
}

// Without a log there is nothing to lock, so a change by someone else must be noticed afterwards.
Test(read_only, an_unlocked_read_notices_that_the_file_was_changed)
{
    scratch        s = scratch_begin();
    rssm_diag      diag = {0};
    rssm_db_query  query = {0};
    rssm_db_rows   rows = {.n = 77};
    rssm_db_known  known = {.median_ns = 77};
    rssm_db_trial  trial = sample_trial("K=0", 100.0);
    rssm_db_binary binary = {.n_bytes = 77};
    rssm_hash      key = hash_of(0x80);
    prepare(s.path, NO_LOG);
    rssm_db *db = open_read(s.path);
    cr_expect_str_eq(rssm_db_journal(db), "immutable");
    trial.build_key = key;
    cr_expect_eq(rssm_db_trial_known(db, &trial, &known, &diag), RSSM_OK, "%s", diag.text);
    cr_expect(known.is_known);
    tamper(s.path, "PRAGMA journal_mode = DELETE");
    known.median_ns = 77;
    cr_expect_eq(rssm_db_trials(db, &query, &rows, &diag), RSSM_E_BUSY, "%s", diag.text);
    cr_expect_eq(rssm_db_trial_known(db, &trial, &known, &diag), RSSM_E_BUSY);
    cr_expect_eq(rssm_db_binary_read(db, &key, &binary, &diag), RSSM_E_BUSY);
    cr_expect(rows.n == 77 && known.median_ns == 77 && binary.n_bytes == 77, "an output was touched");
    rssm_db_close(db);
    scratch_end(&s);
}

Test(read_only, the_next_writer_repairs_what_a_dead_one_left)
{
    scratch     s = scratch_begin();
    const char *journal = NULL;
    make_dead_writer(s.path);
    rssm_db_close(open_write(s.path));
    cr_expect(file_absent(s.path, "-wal") && file_absent(s.path, "-shm"));
    cr_expect_eq(count_trials(s.path, &journal), 2u);
    cr_expect_str_eq(journal, "delete");
    scratch_end(&s);
}

// A writer in rollback mode that died before its commit: the file is half new, the journal holds the old half.
Test(read_only, says_that_a_journal_must_be_undone_by_a_writer)
{
    scratch     s = scratch_begin();
    rssm_diag   diag = {0};
    const char *journal = NULL;
    make_database(s.path, 1);
    // A cache of a few pages makes SQLite write to the file before the commit.
    tamper_and_die(s.path, "PRAGMA cache_size = 2; BEGIN;"
                           "INSERT INTO policy(text) WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c "
                           "WHERE i < 3000) SELECT 'policy ' || i FROM c;");
    cr_assert(!file_absent(s.path, "-journal"));
    cr_expect_eq(try_read(s.path, &diag), RSSM_E_READ_ONLY, "%s", diag.text);
    cr_expect(strstr(diag.text, "replayssm-tune") != NULL, "%s", diag.text);
    cr_expect(!file_absent(s.path, "-journal"));
    rssm_db_close(open_write(s.path));
    cr_expect(file_absent(s.path, "-journal"));
    cr_expect_eq(count_trials(s.path, &journal), 1u);
    cr_expect_str_eq(tamper_ask(s.path, "SELECT count(*) FROM policy"), "1");
    scratch_end(&s);
}
