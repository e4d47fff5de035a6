#include "db/winners.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/db/support.h"
#include "tests/db/tamper.h"

typedef struct sample {
    const char *config;
    double      median_ns, mad_ns;
    bool        tainted;
    rssm_status status;
} sample;

#define FINE(config, median_ns, mad_ns)                                                                                \
    {                                                                                                                  \
        config, median_ns, mad_ns, false, RSSM_OK                                                                      \
    }
#define TAINTED(config, median_ns, mad_ns)                                                                             \
    {                                                                                                                  \
        config, median_ns, mad_ns, true, RSSM_OK                                                                       \
    }
#define REJECTED(config, median_ns, mad_ns, status)                                                                    \
    {                                                                                                                  \
        config, median_ns, mad_ns, false, status                                                                       \
    }

static const struct {
    const char *name;
    sample      samples[6];
    const char *winner; // config; NULL: none
    uint32_t    n_trials;
} CASES[] = {
    {"the smallest median", {FINE("K=1", 30, 1), FINE("K=2", 20, 1), FINE("K=3", 25, 1)}, "K=2", 3},
    {"touching intervals are a tie", {FINE("K=1", 22, 1), FINE("K=2", 20, 1)}, "K=1", 2},
    {"intervals that just miss are none", {FINE("K=1", 22.001, 1), FINE("K=2", 20, 1)}, "K=2", 2},
    {"ties are those of the best, not chains", {FINE("K=1", 24, 1), FINE("K=2", 22, 1), FINE("K=3", 20, 1)}, "K=2", 3},
    {"a noisy one does not win by its noise alone", {FINE("K=9", 20, 1), FINE("K=1", 60, 30)}, "K=9", 2},
    {"text order, not number order", {FINE("K=9", 20, 1), FINE("K=16", 20, 1)}, "K=16", 2},
    {"tainted ones never win", {TAINTED("K=1", 10, 1), FINE("K=2", 20, 1)}, "K=2", 1},
    {"rejected ones never win", {REJECTED("K=1", 10, 1, RSSM_E_WRONG_RESULT), FINE("K=2", 20, 1)}, "K=2", 1},
    {"none if all are out", {TAINTED("K=1", 10, 1), REJECTED("K=2", 20, 1, RSSM_E_TIMEOUT)}, NULL, 0},
    {"the newest measurement of a candidate counts",
     {FINE("K=1", 10, 0), FINE("K=2", 20, 0), FINE("K=1", 30, 0)},
     "K=2",
     2},
    {"a later rejection takes it out",
     {FINE("K=1", 10, 0), FINE("K=2", 20, 0), REJECTED("K=1", 10, 0, RSSM_E_WRONG_RESULT)},
     "K=2",
     1},
    {"a later tainted one does not", {FINE("K=1", 10, 0), FINE("K=2", 20, 0), TAINTED("K=1", 90, 0)}, "K=1", 2},
};

static void record_sample(rssm_db *db, const sample *from)
{
    rssm_db_trial t = sample_trial(from->config, from->median_ns);
    t.mad_ns = from->mad_ns;
    t.tainted = from->tainted;
    t.status = from->status;
    record(db, &t, NULL);
}

Test(winners, are_chosen_as_the_rules_say_in_the_library_and_in_the_view)
{
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        scratch  s = scratch_begin();
        rssm_db *db = open_write(s.path);
        for (size_t k = 0; k < 6 && CASES[i].samples[k].config != NULL; k++) {
            record_sample(db, &CASES[i].samples[k]);
        }
        rssm_hash     problem = hash_of(0x11), device = hash_of(1);
        rssm_db_query query = {.problem = &problem, .device = &device};
        rssm_db_rows  rows = {0};
        cr_assert_eq(rssm_db_winners(db, &query, NULL, NULL, &rows, NULL), RSSM_OK);
        cr_expect_eq(rows.n, CASES[i].winner != NULL, "%s: %zu rows", CASES[i].name, rows.n);
        if (rows.n == 1 && CASES[i].winner != NULL) {
            cr_expect_str_eq(rows.rows[0].trial.config, CASES[i].winner, "%s: %s", CASES[i].name,
                             rows.rows[0].trial.config);
            cr_expect_eq(rows.rows[0].n_trials, CASES[i].n_trials, "%s: of %u", CASES[i].name, rows.rows[0].n_trials);
        }
        rssm_db_rows_free(&rows);
        rssm_db_close(db);
        cr_expect_str_eq(tamper_ask(s.path, "SELECT config FROM winner"), CASES[i].winner ? CASES[i].winner : "", "%s",
                         CASES[i].name);
        scratch_end(&s);
    }
}

// The library sorts rows, the view ranks them in SQL: they must agree on anything.
Test(winners, of_the_library_and_the_view_agree_on_random_trials)
{
    scratch  s = scratch_begin();
    rssm_db *db = open_write(s.path);
    uint32_t x = 12345;
    for (int i = 0; i < 400; i++) {
        char config[16];
        x = x * 1664525u + 1013904223u;
        snprintf(config, sizeof(config), "K=%u", x >> 8 & 7);
        rssm_db_trial t = sample_trial(config, 100.0 + (x >> 12 & 15));
        t.mad_ns = (x >> 16 & 3) * 0.5;
        t.bucket = 1u << (x >> 18 & 3);
        t.mode = (rssm_db_mode)(x >> 20 & 1);
        t.tainted = (x >> 21 & 7) == 0;
        t.status = (x >> 24 & 7) == 0 ? RSSM_E_COMPILE : RSSM_OK;
        t.template_version = 1 + (x >> 27 & 1);
        t.build_key = hash_of(x >> 28 & 1);
        record(db, &t, NULL);
    }
    rssm_db_query query = {0};
    rssm_db_rows  rows = {0};
    cr_assert_eq(rssm_db_winners(db, &query, NULL, NULL, &rows, NULL), RSSM_OK);
    cr_expect_eq(rows.n, 8u);
    rssm_db_close(db);
    for (size_t i = 0; i < rows.n; i++) {
        char question[200], expected[32];
        snprintf(question, sizeof(question), "SELECT trial FROM winner WHERE bucket = %u AND mode = '%s'",
                 rows.rows[i].trial.bucket, rssm_db_mode_name(rows.rows[i].trial.mode));
        snprintf(expected, sizeof(expected), "%lld", (long long)rows.rows[i].id);
        cr_expect_str_eq(tamper_ask(s.path, question), expected, "%s", question);
    }
    rssm_db_rows_free(&rows);
    scratch_end(&s);
}

Test(winners, are_one_per_device_bucket_and_mode_in_order)
{
    scratch   s = scratch_begin();
    rssm_db  *db = open_write(s.path);
    rssm_hash problem = hash_of(0x11), device_1 = hash_of(1);
    for (int device = 2; device >= 1; device--) {
        for (uint32_t bucket = 16; bucket >= 1; bucket /= 4) {
            for (int mode = 1; mode >= 0; mode--) {
                rssm_db_trial t = sample_trial("K=1", 100.0 + bucket + mode);
                t.device = (rssm_db_device){hash_of(device), device == 1 ? "one" : "two", "name", "sm_90a"};
                t.bucket = bucket;
                t.mode = (rssm_db_mode)mode;
                record(db, &t, NULL);
            }
        }
    }
    rssm_db_query query = {.problem = &problem, .arch = "sm_90a"};
    rssm_db_rows  rows = {0};
    cr_assert_eq(rssm_db_winners(db, &query, NULL, NULL, &rows, NULL), RSSM_OK);
    cr_assert_eq(rows.n, 12u);
    for (size_t i = 0; i < rows.n; i++) {
        static const uint32_t BUCKETS[] = {1, 4, 16};
        const rssm_db_trial  *t = &rows.rows[i].trial;
        cr_expect_eq(t->device.key.bytes[0], 1 + i / 6);
        cr_expect_eq(t->bucket, BUCKETS[i / 2 % 3]);
        cr_expect_eq(t->mode, i % 2);
    }
    rssm_db_rows_free(&rows);
    query.device = &device_1;
    cr_assert_eq(rssm_db_winners(db, &query, NULL, NULL, &rows, NULL), RSSM_OK);
    cr_expect_eq(rows.n, 6u);
    rssm_db_rows_free(&rows);
    rssm_db_close(db);
    scratch_end(&s);
}

static bool is_of_version_2(void *user, const rssm_db_row *row)
{
    ++*(int *)user;
    return row->trial.template_version == 2;
}

Test(winners, a_stale_row_does_not_hide_a_usable_one)
{
    scratch       s = scratch_begin();
    rssm_db      *db = open_write(s.path);
    rssm_db_trial t = sample_trial("K=1", 10.0);
    record(db, &t, NULL);
    t = sample_trial("K=2", 20.0);
    t.template_version = 2;
    record(db, &t, NULL);
    rssm_db_query query = {0};
    rssm_db_rows  rows = {0};
    int           n_asked = 0;
    cr_assert_eq(rssm_db_winners(db, &query, is_of_version_2, &n_asked, &rows, NULL), RSSM_OK);
    cr_assert_eq(rows.n, 1u);
    cr_expect_str_eq(rows.rows[0].trial.config, "K=2");
    cr_expect_eq(rows.rows[0].n_trials, 1u);
    cr_expect_eq(n_asked, 2);
    rssm_db_rows_free(&rows);
    rssm_db_close(db);
    scratch_end(&s);
}

Test(winners, medians_of_different_policies_are_not_compared)
{
    scratch       s = scratch_begin();
    rssm_db      *db = open_write(s.path);
    rssm_db_trial t = sample_trial("K=1", 10.0);
    t.policy = "warm";
    record(db, &t, NULL);
    t = sample_trial("K=2", 20.0);
    record(db, &t, NULL);
    rssm_db_query query = {0};
    rssm_db_rows  rows = {0};
    cr_assert_eq(rssm_db_winners(db, &query, NULL, NULL, &rows, NULL), RSSM_OK);
    cr_assert_eq(rows.n, 1u);
    cr_expect_str_eq(rows.rows[0].trial.config, "K=2", "the policy recorded last is used");
    rssm_db_rows_free(&rows);
    query.policy = "warm";
    cr_assert_eq(rssm_db_winners(db, &query, NULL, NULL, &rows, NULL), RSSM_OK);
    cr_assert_eq(rows.n, 1u);
    cr_expect_str_eq(rows.rows[0].trial.config, "K=1");
    rssm_db_rows_free(&rows);
    rssm_db_close(db);
    cr_expect_str_eq(tamper_ask(s.path, "SELECT count(*) FROM winner"), "2");
    scratch_end(&s);
}

Test(winners, summaries_count_what_there_is)
{
    scratch       s = scratch_begin();
    rssm_db      *db = open_write(s.path);
    rssm_db_trial t = sample_trial("K=1", 10.0);
    record(db, &t, NULL);
    t = sample_trial("K=2", 5.0);
    t.tainted = true;
    record(db, &t, NULL);
    t.status = RSSM_E_COMPILE;
    t.tainted = false;
    record(db, &t, NULL);
    t.bucket = 16;
    record(db, &t, NULL);
    rssm_db_query     query = {0};
    rssm_db_summaries list = {0};
    cr_assert_eq(rssm_db_summarise(db, &query, &list, NULL), RSSM_OK);
    cr_assert_eq(list.n, 2u);
    const rssm_db_summary *e = &list.entries[0];
    cr_expect(e->bucket == 8 && e->n_trials == 3 && e->n_rejected == 1 && e->n_tainted == 1);
    cr_expect_str_eq(e->problem.text, "mamba2 H=96");
    cr_expect_str_eq(e->device.name, "Device One");
    cr_assert_not_null(e->best);
    cr_expect_str_eq(e->best->trial.config, "K=1");
    cr_expect(list.entries[1].bucket == 16 && list.entries[1].n_trials == 1 && list.entries[1].best == NULL);
    rssm_db_summaries_free(&list);
    rssm_db_close(db);
    scratch_end(&s);
}
