#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "db/handle.h"
#include "tests/db/support.h"
#include "tests/db/tamper.h"

static unsigned mode_of(const char *path)
{
    struct stat info;
    cr_assert_eq(lstat(path, &info), 0, "%s", path);
    return (unsigned)info.st_mode & 07777;
}

Test(store, makes_folder_0700_and_files_0600_whatever_the_umask)
{
    static const mode_t UMASKS[] = {0000, 0022, 0277};
    for (size_t i = 0; i < sizeof(UMASKS) / sizeof(UMASKS[0]); i++) {
        scratch s = scratch_begin();
        char    name[600];
        umask(UMASKS[i]);
        rssm_db      *db = open_write(s.path);
        rssm_db_trial trial = sample_trial("K=1", 5.0);
        record(db, &trial, NULL);
        cr_expect_eq(mode_of(s.path), 0600u, "umask %04o", (unsigned)UMASKS[i]);
        cr_expect_str_eq(rssm_db_journal(db), "wal");
        snprintf(name, sizeof(name), "%s-wal", s.path);
        cr_expect_eq(mode_of(name), 0600u, "umask %04o", (unsigned)UMASKS[i]);
        snprintf(name, sizeof(name), "%s/data", s.folder);
        cr_expect_eq(mode_of(name), 0700u, "umask %04o", (unsigned)UMASKS[i]);
        rssm_db_close(db);
        umask(0022);
        scratch_end(&s);
    }
}

Test(store, is_one_file_in_rollback_mode_at_rest)
{
    scratch s = scratch_begin();
    make_database(s.path, 3);
    size_t n = 0;
    char  *bytes = file_bytes(s.path, &n);
    cr_expect(file_absent(s.path, "-wal") && file_absent(s.path, "-shm") && file_absent(s.path, "-journal"));
    cr_expect(bytes[18] == 1 && bytes[19] == 1);
    cr_expect_eq(memcmp(bytes + 68, "RSSM", 4), 0);
    cr_expect_str_eq(tamper_ask(s.path, "PRAGMA user_version"), "1");
    cr_expect_str_eq(tamper_ask(s.path, "PRAGMA integrity_check"), "ok");
    free(bytes);
    scratch_end(&s);
}

Test(store, initialises_an_empty_file_but_does_not_read_one)
{
    scratch   s = scratch_begin();
    rssm_diag diag = {0};
    char      path[600];
    snprintf(path, sizeof(path), "%s/empty.db", s.folder);
    cr_expect_eq(try_read(path, &diag), RSSM_E_NOT_FOUND);
    file_put(path, "", 0);
    cr_expect_eq(try_read(path, &diag), RSSM_E_NOT_FOUND);
    cr_expect(strstr(diag.text, "empty") != NULL, "%s", diag.text);
    cr_expect_eq(try_write(path, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_eq(try_read(path, &diag), RSSM_OK, "%s", diag.text);
    scratch_end(&s);
}

Test(store, names_a_missing_folder_as_not_found)
{
    rssm_diag diag = {0};
    cr_expect_eq(try_read("/nonexistent-folder/x/tuned.db", &diag), RSSM_E_NOT_FOUND);
    cr_expect_eq(try_read("/tmp/", &diag), RSSM_E_INVALID_ARGUMENT);
    cr_expect_eq(try_read("..", &diag), RSSM_E_INVALID_ARGUMENT);
}

static const struct {
    const char *name, *script;
    rssm_status status;
    const char *word; // that the sentence must hold
} TAMPERINGS[] = {
    {"other application", "PRAGMA application_id = 77", RSSM_E_FOREIGN, "another program"},
    {"no application", "PRAGMA application_id = 0", RSSM_E_FOREIGN, "another program"},
    {"newer schema", "PRAGMA user_version = 2", RSSM_E_TOO_NEW, "newer"},
    {"no schema number", "PRAGMA user_version = 0", RSSM_E_CORRUPT, "schema number"},
    {"negative schema number", "PRAGMA user_version = -3", RSSM_E_CORRUPT, "schema number"},
    {"added table", "CREATE TABLE extra(a)", RSSM_E_FOREIGN, "table extra"},
    {"added view", "CREATE VIEW extra AS SELECT 1", RSSM_E_FOREIGN, "view extra"},
    {"added trigger", "CREATE TRIGGER extra AFTER INSERT ON trial BEGIN DELETE FROM binary; END", RSSM_E_FOREIGN,
     "trigger extra"},
    {"added index", "CREATE INDEX extra ON trial(id)", RSSM_E_FOREIGN, "index extra"},
    {"added statistics", "ANALYZE", RSSM_E_FOREIGN, "sqlite_stat"},
    {"added virtual table", "CREATE VIRTUAL TABLE extra USING rtree(a, b, c)", RSSM_E_FOREIGN, "extra"},
    {"dropped trigger", "DROP TRIGGER trial_is_kept", RSSM_E_CORRUPT, "trial_is_kept is missing"},
    {"dropped view", "DROP VIEW winner", RSSM_E_CORRUPT, "winner is missing"},
    {"dropped table", "DROP TABLE quarantine", RSSM_E_CORRUPT, "quarantine is missing"},
    {"added column", "ALTER TABLE env ADD COLUMN extra TEXT", RSSM_E_CORRUPT, "table env"},
    {"replaced trigger",
     "DROP TRIGGER trial_is_kept; CREATE TRIGGER trial_is_kept BEFORE DELETE ON trial BEGIN SELECT 1; END",
     RSSM_E_CORRUPT, "trigger trial_is_kept"},
    {"relaxed check",
     "PRAGMA writable_schema = ON;"
     "UPDATE sqlite_schema SET sql = replace(sql, 'median_ns > 0', 'median_ns >= 0') WHERE name = 'trial'",
     RSSM_E_CORRUPT, "table trial"},
    {"schema that does not parse",
     "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE' WHERE name = 'trial'", RSSM_E_CORRUPT,
     "found damage"},
};

Test(store, refuses_whatever_is_not_exactly_its_schema)
{
    for (size_t i = 0; i < sizeof(TAMPERINGS) / sizeof(TAMPERINGS[0]); i++) {
        scratch   s = scratch_begin();
        rssm_diag diag = {0};
        make_database(s.path, 1);
        tamper(s.path, TAMPERINGS[i].script);
        size_t      n = 0, n_after = 0;
        char       *before = file_bytes(s.path, &n);
        rssm_status st = try_read(s.path, &diag);
        cr_expect_eq(st, TAMPERINGS[i].status, "read, %s: %s: %s", TAMPERINGS[i].name, rssm_status_name(st), diag.text);
        cr_expect(strstr(diag.text, TAMPERINGS[i].word) != NULL, "read, %s: %s", TAMPERINGS[i].name, diag.text);
        cr_expect(strstr(diag.text, s.path) != NULL, "%s", diag.text);
        st = try_write(s.path, &diag);
        cr_expect_eq(st, TAMPERINGS[i].status, "write, %s: %s: %s", TAMPERINGS[i].name, rssm_status_name(st),
                     diag.text);
        char *after = file_bytes(s.path, &n_after);
        cr_expect(n == n_after && memcmp(before, after, n) == 0, "%s: the file was changed", TAMPERINGS[i].name);
        free(before);
        free(after);
        scratch_end(&s);
    }
}

Test(store, takes_a_schema_that_differs_in_comments_and_white_space)
{
    scratch   s = scratch_begin();
    rssm_diag diag = {0};
    make_database(s.path, 1);
    tamper(s.path,
           "PRAGMA writable_schema = ON;"
           "UPDATE sqlite_schema SET sql = replace(sql, char(10), '  /* x */' || char(10) || '-- note' || char(10)) "
           "WHERE name = 'policy'");
    cr_expect_eq(try_read(s.path, &diag), RSSM_OK, "%s", diag.text);
    scratch_end(&s);
}

Test(store, refuses_files_that_are_no_databases)
{
    scratch   s = scratch_begin();
    rssm_diag diag = {0};
    char      path[600];
    char      text[4096];
    memset(text, 'x', sizeof(text));
    snprintf(path, sizeof(path), "%s/text", s.folder);
    for (size_t n = 1; n <= sizeof(text); n *= 4) {
        file_put(path, text, n);
        cr_expect_eq(try_read(path, &diag), RSSM_E_FOREIGN, "%zu bytes: %s", n, diag.text);
        cr_expect_eq(try_write(path, &diag), RSSM_E_FOREIGN, "%zu bytes: %s", n, diag.text);
    }
    size_t n = 0;
    char  *after = file_bytes(path, &n);
    cr_expect(n == sizeof(text) && memcmp(after, text, n) == 0);
    free(after);

    snprintf(path, sizeof(path), "%s/other.db", s.folder);
    tamper(path, "PRAGMA journal_mode = WAL; CREATE TABLE t(a)");
    cr_expect_eq(try_read(path, &diag), RSSM_E_FOREIGN, "%s", diag.text);
    cr_expect_eq(try_write(path, &diag), RSSM_E_FOREIGN, "%s", diag.text);
    cr_expect(file_absent(path, "-wal") && file_absent(path, "-shm"));
    cr_expect_eq(try_read(s.folder, &diag), RSSM_E_FOREIGN, "%s", diag.text);
    scratch_end(&s);
}

// All children of an interior page become `child`.
static void redirect(char *bytes, size_t page_bytes, unsigned page_number, unsigned child)
{
    unsigned char      *page = (unsigned char *)bytes + page_bytes * (page_number - 1);
    const unsigned char number[4] = {0, 0, (unsigned char)(child >> 8), (unsigned char)child};
    unsigned            n_cells = page[3] * 256u + page[4];
    cr_assert(page[0] == 5 && n_cells > 3, "not an interior page with some cells");
    memcpy(page + 8, number, 4); // the right-most one
    for (unsigned i = 0; i < n_cells; i++) {
        memcpy(page + page[12 + 2 * i] * 256u + page[13 + 2 * i], number, 4);
    }
}

// A database with enough trials for an interior page, as bytes. free()
static char *make_deep_database(const char *path, size_t *out_n, size_t *out_page_bytes, unsigned *out_root)
{
    rssm_db *db = open_write(path);
    for (int i = 0; i < 400; i++) {
        char config[32];
        snprintf(config, sizeof(config), "K=%d", i);
        rssm_db_trial trial = sample_trial(config, 100.0 + i);
        record(db, &trial, NULL);
    }
    rssm_db_close(db);
    *out_page_bytes = (size_t)atoi(tamper_ask(path, "PRAGMA page_size"));
    *out_root = (unsigned)atoi(tamper_ask(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'trial'"));
    return file_bytes(path, out_n);
}

static void expect_endless_reading_refused(const char *path, const char *word)
{
    rssm_diag     diag = {0};
    rssm_db      *db = open_read(path);
    rssm_db_query query = {0};
    rssm_db_rows  rows = {0};
    clock_t       begun = clock();
    cr_expect_eq(rssm_db_trials(db, &query, &rows, &diag), RSSM_E_CORRUPT, "%s", diag.text);
    cr_expect(strstr(diag.text, word) != NULL, "%s", diag.text);
    cr_expect_lt((double)(clock() - begun) / CLOCKS_PER_SEC, 5.0);
    rssm_db_rows_free(&rows);
    rssm_db_close(db);
    cr_expect_eq(try_write(path, &diag), RSSM_E_CORRUPT, "%s", diag.text);
}

Test(store, a_file_whose_pages_point_in_circles_ends_in_a_status)
{
    scratch  s = scratch_begin();
    size_t   n = 0, page_bytes = 0;
    unsigned root = 0;
    char    *bytes = make_deep_database(s.path, &n, &page_bytes, &root);
    redirect(bytes, page_bytes, root, root);
    file_put(s.path, bytes, n);
    expect_endless_reading_refused(s.path, "damage");
    free(bytes);
    scratch_end(&s);
}

// Seven levels of pages whose cells all lead to one page of the next level: reading in order would take years.
Test(store, a_file_whose_pages_multiply_ends_in_a_status)
{
    scratch        s = scratch_begin();
    size_t         n = 0, page_bytes = 0;
    unsigned       root = 0, leaves[8];
    char          *bytes = make_deep_database(s.path, &n, &page_bytes, &root);
    unsigned char *page = (unsigned char *)bytes + page_bytes * (root - 1);
    for (unsigned i = 0; i < 8; i++) {
        const unsigned char *cell = page + page[12 + 2 * i] * 256u + page[13 + 2 * i];
        leaves[i] = cell[2] * 256u + cell[3];
    }
    for (unsigned i = 0; i < 7; i++) {
        memcpy(bytes + page_bytes * (leaves[i] - 1), page, page_bytes);
        redirect(bytes, page_bytes, leaves[i], leaves[i + 1]);
    }
    redirect(bytes, page_bytes, root, leaves[0]);
    file_put(s.path, bytes, n);
    expect_endless_reading_refused(s.path, "more work than any sound database needs");
    free(bytes);
    scratch_end(&s);
}

Test(store, a_handle_may_be_closed_in_a_child_without_harm)
{
    scratch       s = scratch_begin();
    rssm_db      *db = open_write(s.path);
    rssm_db_trial trial = sample_trial("K=1", 5.0);
    pid_t         pid = fork();
    if (pid == 0) {
        rssm_db_close(db);
        _exit(0);
    }
    int status = 0;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_expect_str_eq(rssm_db_journal(db), "wal");
    cr_expect(!file_absent(s.path, "-wal"), "the child must not end WAL mode");
    record(db, &trial, NULL);
    rssm_db_close(db);
    scratch_end(&s);
}

Test(store, a_child_does_not_undo_a_transaction_of_its_parent)
{
    scratch  s = scratch_begin();
    rssm_db *db = open_write(s.path);
    int      status = 0;
    cr_assert_eq(rssm_sql_script(db->sql, "PRAGMA journal_mode = DELETE", NULL), RSSM_OK);
    cr_assert_eq(rssm_db_begin(db, NULL), RSSM_OK);
    cr_assert_eq(rssm_sql_script(db->sql, "INSERT INTO policy(text) VALUES('new')", NULL), RSSM_OK);
    cr_assert(!file_absent(s.path, "-journal"));
    pid_t pid = fork();
    if (pid == 0) {
        rssm_db_close(db);
        _exit(0);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect(!file_absent(s.path, "-journal"), "the child removed the journal");
    cr_expect_eq(rssm_db_commit(db, NULL), RSSM_OK);
    rssm_db_close(db);
    cr_expect_str_eq(tamper_ask(s.path, "SELECT text FROM policy"), "new");
    scratch_end(&s);
}

Test(store, reading_and_writing_handles_of_one_process_share_a_file)
{
    scratch       s = scratch_begin();
    rssm_diag     diag = {0};
    rssm_db      *writer = open_write(s.path);
    rssm_db      *second = open_write(s.path);
    rssm_db_trial trial = sample_trial("K=1", 5.0);
    record(writer, &trial, NULL);
    rssm_db *reader = open_read(s.path);
    record(second, &trial, NULL);
    rssm_db_query query = {0};
    rssm_db_rows  rows = {0};
    cr_assert_eq(rssm_db_trials(reader, &query, &rows, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_eq(rows.n, 2u);
    rssm_db_rows_free(&rows);
    cr_expect_eq(rssm_db_record(reader, &trial, NULL, &diag), RSSM_E_READ_ONLY);
    rssm_db_close(writer);
    rssm_db_close(second);
    rssm_db_close(reader);
    cr_expect_eq(try_read(s.path, &diag), RSSM_OK, "%s", diag.text);
    scratch_end(&s);
}
