#include "db/trials.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/db/support.h"
#include "tests/db/tamper.h"

static void expect_same(const rssm_db_trial *a, const rssm_db_trial *b)
{
    cr_expect(rssm_hash_equal(&a->device.key, &b->device.key));
    cr_expect_str_eq(a->device.text, b->device.text);
    cr_expect_str_eq(a->device.name, b->device.name);
    cr_expect_str_eq(a->device.arch, b->device.arch);
    cr_expect_str_eq(a->env.driver, b->env.driver);
    cr_expect_str_eq(a->env.compiler, b->env.compiler);
    cr_expect_str_eq(a->env.tool, b->env.tool);
    cr_expect(rssm_hash_equal(&a->problem.key, &b->problem.key));
    cr_expect_str_eq(a->problem.text, b->problem.text);
    cr_expect_str_eq(a->policy, b->policy);
    cr_expect_eq(a->bucket, b->bucket);
    cr_expect_eq(a->mode, b->mode);
    cr_expect_str_eq(a->template_name, b->template_name);
    cr_expect_eq(a->template_version, b->template_version);
    cr_expect_str_eq(a->config, b->config);
    cr_expect(rssm_hash_equal(&a->source_hash, &b->source_hash));
    cr_expect(rssm_hash_equal(&a->build_key, &b->build_key));
    cr_expect_eq(a->status, b->status);
    cr_expect_str_eq(a->reason, b->reason);
    cr_expect_eq(a->tainted, b->tainted);
    cr_expect(a->median_ns == b->median_ns && a->mad_ns == b->mad_ns && a->min_ns == b->min_ns);
    cr_expect_eq(a->n_samples, b->n_samples);
    cr_expect(a->bytes_per_step == b->bytes_per_step && a->max_error == b->max_error);
    cr_expect_eq(a->registers, b->registers);
    cr_expect_eq(a->shared_bytes, b->shared_bytes);
    cr_expect_eq(a->spill_bytes, b->spill_bytes);
    cr_expect_eq(a->created_s, b->created_s);
}

Test(trials, come_back_as_they_were_recorded)
{
    scratch       s = scratch_begin();
    rssm_db_trial a = sample_trial("ROWS=16 VEC=8", 1234.5678901234567);
    rssm_db_trial b = a;
    a.bucket = UINT32_MAX;
    a.registers = a.shared_bytes = a.spill_bytes = a.n_samples = UINT32_MAX;
    a.tainted = true;
    a.env.driver = NULL; // reads as ""
    b.device = (rssm_db_device){hash_of(2), "kind 2", "Gerät „Zwei“ 'quoted'", "sm_90a"};
    b.mode = RSSM_DB_EAGER;
    b.config = NULL;
    b.status = RSSM_E_WRONG_RESULT;
    b.reason = "output 12 of row 3 is 4.5 bounds away; the template is wrong";
    b.median_ns = b.mad_ns = b.min_ns = 0.0;
    b.n_samples = 0;
    b.max_error = NAN; // reads as infinity
    b.source_hash = b.build_key = hash_of(0);
    rssm_db_binary binary = sample_binary(1, 10);
    rssm_db       *db = open_write(s.path);
    record(db, &a, &binary);
    record(db, &b, NULL);
    rssm_db_close(db);

    db = open_read(s.path);
    rssm_db_query query = {0};
    rssm_db_rows  rows = {0};
    rssm_diag     diag = {0};
    cr_assert_eq(rssm_db_trials(db, &query, &rows, &diag), RSSM_OK, "%s", diag.text);
    cr_assert_eq(rows.n, 2u);
    cr_expect_eq(rows.n_damaged, 0u);
    a.env.driver = "";
    b.config = "";
    b.max_error = INFINITY;
    expect_same(&rows.rows[0].trial, &a);
    expect_same(&rows.rows[1].trial, &b);
    cr_expect(rows.rows[0].has_binary && !rows.rows[1].has_binary);
    cr_expect_lt(rows.rows[0].id, rows.rows[1].id);
    cr_expect_str_eq(rows.rows[0].layer, "");
    rssm_db_rows_free(&rows);
    rssm_db_rows_free(&rows);
    rssm_db_close(db);
    scratch_end(&s);
}

Test(trials, a_rejection_without_a_reason_gets_the_text_of_its_status)
{
    scratch       s = scratch_begin();
    rssm_db_trial trial = sample_trial("K=1", 0.0);
    trial.status = RSSM_E_COMPILE;
    trial.created_s = 0;
    rssm_db *db = open_write(s.path);
    record(db, &trial, NULL);
    rssm_db_query query = {.outcome = RSSM_DB_REJECTED};
    rssm_db_rows  rows = {0};
    cr_assert_eq(rssm_db_trials(db, &query, &rows, NULL), RSSM_OK);
    cr_assert_eq(rows.n, 1u);
    cr_expect_str_eq(rows.rows[0].trial.reason, rssm_status_text(RSSM_E_COMPILE));
    cr_expect_gt(rows.rows[0].trial.created_s, 1700000000);
    rssm_db_rows_free(&rows);
    rssm_db_close(db);
    scratch_end(&s);
}

Test(trials, refuses_incomplete_and_impossible_ones)
{
    scratch             s = scratch_begin();
    rssm_db            *db = open_write(s.path);
    const rssm_db_trial good = sample_trial("K=1", 5.0);
    rssm_db_binary      binary = sample_binary(1, 10), no_bytes = binary;
    rssm_db_trial       t[16];
    const char         *words[16] = {0};
    size_t              n = 0;
#define BAD(field, value, word) (t[n] = good, t[n].field = (value), words[n++] = (word))
    BAD(device.text, NULL, "device text");
    BAD(device.name, NULL, "device name");
    BAD(device.arch, NULL, "architecture");
    BAD(problem.text, NULL, "problem");
    BAD(policy, NULL, "policy");
    BAD(template_name, NULL, "template");
    BAD(bucket, 0, "bucket");
    BAD(mode, (rssm_db_mode)2, "mode");
    BAD(median_ns, 0.0, "positive");
    BAD(median_ns, NAN, "positive");
    BAD(median_ns, INFINITY, "positive");
    BAD(mad_ns, -1.0, "positive");
    BAD(min_ns, -1.0, "positive");
    BAD(n_samples, 0, "sample");
#undef BAD
    for (size_t i = 0; i < n; i++) {
        rssm_diag diag = {0};
        cr_expect_eq(rssm_db_record(db, &t[i], NULL, &diag), RSSM_E_INVALID_ARGUMENT, "%zu", i);
        cr_expect(strstr(diag.text, words[i]) != NULL, "%s: %s", words[i], diag.text);
    }
    rssm_db_trial no_key = good;
    no_key.build_key = hash_of(0);
    cr_expect_eq(rssm_db_record(db, &no_key, &binary, NULL), RSSM_E_INVALID_ARGUMENT);
    no_bytes.n_bytes = 0;
    cr_expect_eq(rssm_db_record(db, &good, &no_bytes, NULL), RSSM_E_INVALID_ARGUMENT);
    no_bytes.n_bytes = (size_t)RSSM_DB_BINARY_LIMIT + 1;
    cr_expect_eq(rssm_db_record(db, &good, &no_bytes, NULL), RSSM_E_INVALID_ARGUMENT);

    record(db, &good, NULL);
    rssm_db_trial other_text = good; // one key, two texts
    rssm_diag     diag = {0};
    other_text.problem.text = "mamba2 H=97";
    cr_expect_eq(rssm_db_record(db, &other_text, NULL, &diag), RSSM_E_INVALID_ARGUMENT, "%s", diag.text);
    rssm_db_close(db);
    cr_expect_str_eq(tamper_ask(s.path, "SELECT count(*) FROM trial"), "1");
    scratch_end(&s);
}

Test(trials, cannot_be_changed_or_removed_by_sql)
{
    static const char *const TABLES[] = {"device_class", "env", "policy", "problem", "candidate", "trial"};
    scratch                  s = scratch_begin();
    make_database(s.path, 3);
    for (size_t i = 0; i < sizeof(TABLES) / sizeof(TABLES[0]); i++) {
        char script[200], message[200];
        snprintf(script, sizeof(script), "DELETE FROM %s", TABLES[i]);
        cr_expect_neq(tamper_try(s.path, script, message), 0, "%s", script);
        cr_expect(strstr(message, "append-only") != NULL, "%s: %s", script, message);
        snprintf(script, sizeof(script), "UPDATE %s SET id = id + 10", TABLES[i]);
        cr_expect_neq(tamper_try(s.path, script, message), 0, "%s", script);
        cr_expect(strstr(message, "append-only") != NULL, "%s: %s", script, message);
    }
    char message[200];
    cr_expect_neq(tamper_try(s.path, "UPDATE trial SET median_ns = 1", message), 0);
    cr_expect_neq(tamper_try(s.path, "INSERT OR REPLACE INTO trial SELECT * FROM trial", message), 0);
    cr_expect_str_eq(tamper_ask(s.path, "SELECT count(*) || ' ' || min(median_ns) FROM trial"), "3 100.0");
    scratch_end(&s);
}

Test(trials, the_schema_itself_refuses_impossible_rows)
{
    static const char *const CHANGES[] = {
        "median_ns = 0", "mad_ns = -1",       "n_samples = 0", "bucket = 0",         "mode = 'lazy'",
        "tainted = 2",   "build_key = x'00'", "status = 84",   "median_ns = 'fast'",
    };
    scratch s = scratch_begin();
    make_database(s.path, 1);
    for (size_t i = 0; i < sizeof(CHANGES) / sizeof(CHANGES[0]); i++) {
        char script[700], message[200];
        snprintf(script, sizeof(script), "DROP TRIGGER trial_is_fixed; UPDATE trial SET %s", CHANGES[i]);
        cr_expect_neq(tamper_try(s.path, script, message), 0, "%s", CHANGES[i]);
        tamper(s.path, "CREATE TRIGGER trial_is_fixed BEFORE UPDATE ON trial BEGIN SELECT raise(ABORT, 'x'); END");
    }
    scratch_end(&s);
}

static size_t count(rssm_db *db, rssm_db_query query)
{
    rssm_db_rows rows = {0};
    rssm_diag    diag = {0};
    cr_assert_eq(rssm_db_trials(db, &query, &rows, &diag), RSSM_OK, "%s", diag.text);
    size_t n = rows.n;
    rssm_db_rows_free(&rows);
    return n;
}

Test(trials, are_found_by_each_field_of_a_query)
{
    scratch         s = scratch_begin();
    rssm_db        *db = open_write(s.path);
    rssm_db_trial   t = sample_trial("K=1", 5.0);
    const rssm_hash device_2 = hash_of(2), problem_1 = hash_of(0x11), problem_2 = hash_of(0x12), none = hash_of(9);
    record(db, &t, NULL);
    t.bucket = 16;
    record(db, &t, NULL);
    t.device = (rssm_db_device){device_2, "kind 2", "Two", "sm_90a"};
    record(db, &t, NULL);
    t.problem = (rssm_db_problem){problem_2, "another"};
    t.policy = "warm";
    t.status = RSSM_E_COMPILE;
    record(db, &t, NULL);
    cr_expect_eq(count(db, (rssm_db_query){0}), 4u);
    cr_expect_eq(count(db, (rssm_db_query){.problem = &problem_1}), 3u);
    cr_expect_eq(count(db, (rssm_db_query){.problem = &problem_2}), 1u);
    cr_expect_eq(count(db, (rssm_db_query){.problem = &none}), 0u);
    cr_expect_eq(count(db, (rssm_db_query){.device = &device_2}), 2u);
    cr_expect_eq(count(db, (rssm_db_query){.problem = &problem_1, .device = &device_2}), 1u);
    cr_expect_eq(count(db, (rssm_db_query){.arch = "x86-64-v4"}), 2u);
    cr_expect_eq(count(db, (rssm_db_query){.policy = "warm"}), 1u);
    cr_expect_eq(count(db, (rssm_db_query){.bucket = 16}), 3u);
    cr_expect_eq(count(db, (rssm_db_query){.outcome = RSSM_DB_REJECTED}), 1u);
    cr_expect_eq(count(db, (rssm_db_query){.outcome = RSSM_DB_MEASURED}), 3u);
    rssm_db_close(db);
    scratch_end(&s);
}

Test(trials, are_known_by_every_field_of_their_identity)
{
    scratch             s = scratch_begin();
    rssm_db            *db = open_write(s.path);
    const rssm_db_trial good = sample_trial("K=1", 5.0);
    rssm_db_trial       t[16];
    rssm_db_known       known = {0};
    size_t              n = 0;
    record(db, &good, NULL);
    cr_assert_eq(rssm_db_trial_known(db, &good, &known, NULL), RSSM_OK);
    cr_expect(known.is_known && !known.tainted && known.status == RSSM_OK && known.median_ns == 5.0);
#define OTHER(field, value) (t[n] = good, t[n++].field = (value))
    OTHER(device.key, hash_of(2));
    OTHER(problem.key, hash_of(2));
    OTHER(env.driver, "driver 2");
    OTHER(env.compiler, "clang 15");
    OTHER(env.tool, NULL);
    OTHER(policy, "warm");
    OTHER(bucket, 16);
    OTHER(mode, RSSM_DB_EAGER);
    OTHER(template_name, "mamba2_step_tiles");
    OTHER(template_version, 2);
    OTHER(config, "K=2");
    OTHER(source_hash, hash_of(2));
    OTHER(build_key, hash_of(2));
#undef OTHER
    for (size_t i = 0; i < n; i++) {
        cr_assert_eq(rssm_db_trial_known(db, &t[i], &known, NULL), RSSM_OK);
        cr_expect(!known.is_known, "field %zu does not count", i);
    }
    rssm_db_trial again = good; // the outcome is no part of the identity; an untainted one is reported
    again.tainted = true;
    again.median_ns = 9.0;
    record(db, &again, NULL);
    cr_assert_eq(rssm_db_trial_known(db, &again, &known, NULL), RSSM_OK);
    cr_expect(known.is_known && !known.tainted && known.median_ns == 5.0);
    again.tainted = false;
    again.status = RSSM_E_TIMEOUT;
    record(db, &again, NULL);
    cr_assert_eq(rssm_db_trial_known(db, &good, &known, NULL), RSSM_OK);
    cr_expect(known.is_known && known.status == RSSM_E_TIMEOUT);
    rssm_db_close(db);
    scratch_end(&s);
}

// Rows that someone wrote past the checks of the schema cost only themselves.
Test(trials, leave_out_rows_whose_fields_are_not_what_they_must_be)
{
    static const char *const CHANGES[] = {
        "median_ns = -1.0",
        "mode = 'lazy'",
        "bucket = 0",
        "build_key = x'00'",
        "registers = -1",
        "config = x'41'",
        "reason = 'a' || char(0) || 'b'",
    };
    for (size_t i = 0; i < sizeof(CHANGES) / sizeof(CHANGES[0]); i++) {
        scratch s = scratch_begin();
        char    script[900];
        bool    in_candidate = strncmp(CHANGES[i], "config", 6) == 0;
        make_database(s.path, 3);
        // Only the rows are changed: the schema text is put back as it was.
        tamper(s.path,
               "PRAGMA writable_schema = ON; CREATE TABLE saved AS SELECT name, sql FROM sqlite_schema;"
               "UPDATE sqlite_schema SET sql = 'CREATE TABLE candidate(id INTEGER PRIMARY KEY, template, version, "
               "config, UNIQUE(template, version, config))' WHERE name = 'candidate';"
               "UPDATE sqlite_schema SET sql = 'CREATE TRIGGER ' || name || ' BEFORE UPDATE ON ' || tbl_name || "
               "' BEGIN SELECT 1; END' WHERE name IN ('trial_is_fixed', 'candidate_is_fixed');");
        snprintf(
            script, sizeof(script),
            "PRAGMA ignore_check_constraints = ON; UPDATE %s SET %s WHERE id = 2;"
            "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = (SELECT sql FROM saved WHERE "
            "saved.name = sqlite_master.name) WHERE name IN ('trial_is_fixed', 'candidate_is_fixed', 'candidate');",
            in_candidate ? "candidate" : "trial", CHANGES[i]);
        tamper(s.path, script);
        tamper(s.path, "DROP TABLE saved");
        rssm_db      *db = open_read(s.path);
        rssm_db_query query = {0};
        rssm_db_rows  rows = {0};
        cr_assert_eq(rssm_db_trials(db, &query, &rows, NULL), RSSM_OK, "%s", CHANGES[i]);
        cr_expect_eq(rows.n, 2u, "%s: %zu rows", CHANGES[i], rows.n);
        cr_expect_eq(rows.n_damaged, 1u, "%s", CHANGES[i]);
        rssm_db_rows_free(&rows);
        rssm_db_close(db);
        scratch_end(&s);
    }
}
