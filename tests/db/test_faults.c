// A failure at any step leaves the database as it was.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "db/handle.h"
#include "tests/db/support.h"
#include "tests/db/tamper.h"

static const char CONTENT[] =
    "SELECT (SELECT count(*) FROM trial) || ' ' || (SELECT count(*) FROM binary) || ' ' || "
    "(SELECT count(*) FROM candidate) || ' ' || (SELECT count(*) FROM device_class) || ' ' || "
    "(SELECT count(*) FROM env) || ' ' || (SELECT count(*) FROM problem) || ' ' || "
    "(SELECT count(*) FROM policy) || ' ' || (SELECT count(*) FROM quarantine)";

// A trial that is new in everything.
static rssm_db_trial new_trial(void)
{
    rssm_db_trial t = sample_trial("K=new", 5.0);
    t.device = (rssm_db_device){hash_of(2), "kind 2", "Two", "sm_90a"};
    t.env.driver = "driver 2";
    t.problem = (rssm_db_problem){hash_of(0x12), "another"};
    t.policy = "warm";
    t.build_key = hash_of(0x55);
    return t;
}

Test(faults, a_failing_step_of_a_recording_leaves_the_database_unchanged)
{
    scratch        s = scratch_begin();
    rssm_db_trial  trial = new_trial();
    rssm_db_binary binary = sample_binary(1, 3000);
    make_database(s.path, 2);
    rssm_db *db = open_write(s.path);
    char     before[100];
    snprintf(before, sizeof(before), "%s", tamper_ask(s.path, CONTENT));
    long n = 1;
    for (;; n++) {
        rssm_diag diag = {0};
        rssm_sql_fail_after(n);
        rssm_status st = rssm_db_record(db, &trial, &binary, &diag);
        if (!rssm_sql_fail_after(0)) {
            cr_expect_eq(st, RSSM_OK, "%s", diag.text);
            break;
        }
        cr_expect_eq(st, RSSM_E_IO, "step %ld: %s", n, rssm_status_name(st));
        cr_expect_neq(diag.text[0], '\0');
        cr_expect_str_eq(tamper_ask(s.path, CONTENT), before, "step %ld", n);
        cr_expect_str_eq(tamper_ask(s.path, "PRAGMA integrity_check"), "ok");
    }
    cr_expect_gt(n, 14, "only %ld steps were tried", n);
    cr_expect_str_eq(tamper_ask(s.path, CONTENT), "3 3 3 2 2 2 2 0");
    rssm_db_close(db);
    scratch_end(&s);
}

Test(faults, a_failing_step_of_an_opening_is_reported_or_harmless)
{
    scratch s = scratch_begin();
    make_database(s.path, 2);
    for (int writing = 0; writing < 2; writing++) {
        long n = 1;
        for (;; n++) {
            rssm_diag diag = {0};
            rssm_sql_fail_after(n);
            rssm_status st = writing ? try_write(s.path, &diag) : try_read(s.path, &diag);
            bool        fired = rssm_sql_fail_after(0);
            cr_expect(st == RSSM_OK || (fired && diag.text[0] != '\0'), "step %ld: %s", n, diag.text);
            cr_expect_eq(try_read(s.path, &diag), RSSM_OK, "after step %ld: %s", n, diag.text);
            if (!fired) {
                break;
            }
        }
        cr_expect_gt(n, 20);
    }
    cr_expect_str_eq(tamper_ask(s.path, "PRAGMA integrity_check"), "ok");
    scratch_end(&s);
}

Test(faults, a_failing_step_of_the_first_opening_makes_no_half_database)
{
    rssm_diag diag = {0};
    long      n = 1;
    for (;; n++) {
        scratch s = scratch_begin();
        rssm_sql_fail_after(n);
        rssm_status st = try_write(s.path, &diag);
        bool        fired = rssm_sql_fail_after(0);
        cr_expect(st == RSSM_OK || fired, "step %ld: %s", n, diag.text);
        cr_expect_eq(try_write(s.path, &diag), RSSM_OK, "after step %ld: %s", n, diag.text);
        cr_expect_eq(try_read(s.path, &diag), RSSM_OK, "after step %ld: %s", n, diag.text);
        scratch_end(&s);
        if (!fired) {
            break;
        }
    }
    cr_expect_gt(n, 40);
}

Test(faults, a_failing_step_of_a_query_gives_no_result)
{
    scratch s = scratch_begin();
    make_database(s.path, 3);
    rssm_db      *db = open_read(s.path);
    rssm_db_query query = {0};
    for (long n = 1;; n++) {
        rssm_db_rows      rows = {.n = 77};
        rssm_db_summaries list = {.n = 77};
        rssm_sql_fail_after(n);
        rssm_status st = rssm_db_winners(db, &query, NULL, NULL, &rows, NULL);
        if (st == RSSM_OK) {
            rssm_db_rows_free(&rows);
            st = rssm_db_summarise(db, &query, &list, NULL);
            rows.n = 77;
        }
        if (!rssm_sql_fail_after(0)) {
            cr_expect_eq(st, RSSM_OK);
            rssm_db_summaries_free(&list);
            cr_expect_gt(n, 4);
            break;
        }
        cr_expect_eq(st, RSSM_E_IO);
        cr_expect(rows.n == 77 && list.n == 77, "an output was touched");
    }
    rssm_db_close(db);
    scratch_end(&s);
}

Test(faults, a_failing_allocation_is_reported_and_changes_nothing)
{
    scratch        s = scratch_begin();
    rssm_db_trial  trial = new_trial();
    rssm_db_binary binary = sample_binary(1, 3000);
    rssm_db_query  query = {0};
    make_database(s.path, 2);
    for (int operation = 0; operation < 4; operation++) {
        for (long n = 1; n < 10000; n++) {
            rssm_db       *db = operation > 0 ? open_write(s.path) : NULL;
            rssm_db_rows   rows = {0};
            rssm_db_binary out = {0};
            rssm_hash      key = hash_of(0x80);
            rssm_diag      diag = {0};
            rssm_alloc_fail_after(n);
            rssm_status st = operation == 0   ? rssm_db_open_write(s.path, &db, &diag)
                             : operation == 1 ? rssm_db_winners(db, &query, NULL, NULL, &rows, &diag)
                             : operation == 2 ? rssm_db_binary_read(db, &key, &out, &diag)
                                              : rssm_db_record(db, &trial, &binary, &diag);
            bool        fired = rssm_alloc_fail_after(0);
            rssm_db_rows_free(&rows);
            rssm_db_binary_free(&out);
            rssm_db_close(db);
            cr_expect(st == (fired ? RSSM_E_NO_MEMORY : RSSM_OK) || (fired && operation == 0 && st == RSSM_OK),
                      "operation %d, allocation %ld: %s: %s", operation, n, rssm_status_name(st), diag.text);
            if (!fired) {
                cr_expect_gt(n, 1);
                break;
            }
            cr_expect_str_eq(tamper_ask(s.path, "SELECT count(*) FROM trial"), "2");
        }
    }
    cr_expect_str_eq(tamper_ask(s.path, "SELECT count(*) FROM trial"), "3");
    scratch_end(&s);
}

// SQLite's own limit gives the very code that a full disk gives.
Test(faults, a_full_disk_is_named_and_leaves_the_database_unchanged)
{
    scratch        s = scratch_begin();
    rssm_db_trial  trial = new_trial();
    rssm_db_binary binary = sample_binary(1, 100000);
    rssm_diag      diag = {0};
    make_database(s.path, 2);
    rssm_db *db = open_write(s.path);
    cr_assert_eq(rssm_sql_script(db->sql, "PRAGMA max_page_count = 1", NULL), RSSM_OK); // clamped to what there is
    cr_expect_eq(rssm_db_record(db, &trial, &binary, &diag), RSSM_E_IO, "%s", diag.text);
    cr_expect(strstr(diag.text, "full") != NULL && strstr(diag.text, "make room") != NULL, "%s", diag.text);
    rssm_db_close(db);
    cr_expect_str_eq(tamper_ask(s.path, CONTENT), "2 2 2 1 1 1 1 0");
    cr_expect_str_eq(tamper_ask(s.path, "PRAGMA integrity_check"), "ok");
    scratch_end(&s);
}

Test(faults, a_writer_that_holds_the_file_for_ever_ends_in_busy)
{
    scratch       s = scratch_begin();
    rssm_db_trial trial = new_trial();
    rssm_diag     diag = {0};
    rssm_db      *first = open_write(s.path), *second = open_write(s.path);
    cr_assert_eq(rssm_db_begin(first, NULL), RSSM_OK);
    rssm_sql_busy_timeout(second->sql, 20);
    cr_expect_eq(rssm_db_record(second, &trial, NULL, &diag), RSSM_E_BUSY, "%s", diag.text);
    rssm_db_rollback(first);
    cr_expect_eq(rssm_db_record(second, &trial, NULL, &diag), RSSM_OK, "%s", diag.text);
    rssm_db_close(first);
    rssm_db_close(second);
    scratch_end(&s);
}
