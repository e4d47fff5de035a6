#include "db/layers.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/db/support.h"
#include "tests/db/tamper.h"

typedef struct heard {
    int  n;
    char text[2000];
} heard;

static void hear(void *user, rssm_log_level level, const char *text)
{
    heard *h = user;
    cr_expect_eq(level, RSSM_LOG_WARN);
    h->n++;
    snprintf(h->text, sizeof(h->text), "%s", text);
}

// Three layers in one folder: user.db, fleet.db, shipped.db, of which none exists yet.
typedef struct layer_set {
    scratch          s;
    char             files[3][600];
    rssm_layer_paths paths;
} layer_set;

static void set_begin(layer_set *set)
{
    static const char *const NAMES[] = {"user", "fleet", "shipped"};
    *set = (layer_set){.s = scratch_begin()};
    for (int i = 0; i < 3; i++) {
        snprintf(set->files[i], sizeof(set->files[i]), "%s/%s.db", set->s.folder, NAMES[i]);
        set->paths.layers[set->paths.n++] = (rssm_layer_path){NAMES[i], set->files[i]};
    }
}

static void add_trial(const char *path, const char *config, double median_ns, uint32_t bucket, int device)
{
    rssm_db      *db = open_write(path);
    rssm_db_trial t = sample_trial(config, median_ns);
    t.bucket = bucket;
    if (device != 1) {
        t.device = (rssm_db_device){hash_of(device), "kind", "Other", "x86-64-v4"};
    }
    record(db, &t, NULL);
    rssm_db_close(db);
}

static rssm_db_layers *open_layers(const layer_set *set, heard *h)
{
    rssm_db_layers *layers = NULL;
    rssm_log     log = {hear, h};
    cr_assert_eq(rssm_db_layers_open(&set->paths, &log, &layers, NULL), RSSM_OK);
    return layers;
}

Test(layers, the_more_local_layer_wins_per_device_bucket_and_mode)
{
    layer_set set;
    heard     h = {0};
    set_begin(&set);
    add_trial(set.files[0], "user", 50.0, 8, 1);
    add_trial(set.files[1], "fleet", 10.0, 8, 1);  // faster, but less local
    add_trial(set.files[1], "fleet", 10.0, 16, 1); // only here
    add_trial(set.files[2], "shipped", 5.0, 16, 1);
    add_trial(set.files[2], "shipped", 5.0, 8, 2); // another device of the architecture
    rssm_db_layers  *layers = open_layers(&set, &h);
    rssm_hash     problem = hash_of(0x11);
    rssm_db_query query = {.problem = &problem, .arch = "x86-64-v4"};
    rssm_db_rows  rows = {0};
    cr_expect_eq(rssm_db_layers_count(layers), 3u);
    cr_assert_eq(rssm_db_layers_winners(layers, &query, NULL, NULL, &rows, NULL), RSSM_OK);
    rssm_db_layers_close(layers); // the result owns all it says
    cr_assert_eq(rows.n, 3u);
    static const char *const EXPECTED[] = {"user", "fleet", "shipped"};
    for (size_t i = 0; i < 3; i++) {
        cr_expect_str_eq(rows.rows[i].trial.config, EXPECTED[i]);
        cr_expect_str_eq(rows.rows[i].layer, EXPECTED[i]);
        cr_expect_eq(rows.rows[i].layer_index, i);
    }
    rssm_db_rows_free(&rows);
    cr_expect_eq(h.n, 0, "%s", h.text);
    scratch_end(&set.s);
}

static bool is_not_user(void *user, const rssm_db_row *row)
{
    (void)user;
    return strcmp(row->trial.config, "user") != 0;
}

Test(layers, a_row_that_cannot_be_used_does_not_hide_a_less_local_one)
{
    layer_set set;
    heard     h = {0};
    set_begin(&set);
    add_trial(set.files[0], "user", 50.0, 8, 1);
    add_trial(set.files[2], "shipped", 60.0, 8, 1);
    rssm_db_layers  *layers = open_layers(&set, &h);
    rssm_db_query query = {0};
    rssm_db_rows  rows = {0};
    cr_assert_eq(rssm_db_layers_winners(layers, &query, is_not_user, NULL, &rows, NULL), RSSM_OK);
    cr_assert_eq(rows.n, 1u);
    cr_expect_str_eq(rows.rows[0].layer, "shipped");
    rssm_db_rows_free(&rows);
    rssm_db_layers_close(layers);
    scratch_end(&set.s);
}

Test(layers, missing_ones_are_silent_and_bad_ones_are_reported_and_skipped)
{
    layer_set set;
    heard     h = {0};
    set_begin(&set);
    rssm_db_layers *layers = open_layers(&set, &h);
    cr_expect_eq(rssm_db_layers_count(layers), 0u);
    cr_expect_eq(h.n, 0);
    rssm_db_query query = {0};
    rssm_db_rows  rows = {0};
    cr_assert_eq(rssm_db_layers_winners(layers, &query, NULL, NULL, &rows, NULL), RSSM_OK);
    cr_expect_eq(rows.n, 0u);
    rssm_db_rows_free(&rows);
    rssm_db_layers_close(layers);

    file_put(set.files[0], "not a database, certainly not", 29);
    add_trial(set.files[1], "fleet", 10.0, 8, 1);
    layers = open_layers(&set, &h);
    cr_expect_eq(rssm_db_layers_count(layers), 1u);
    cr_expect_eq(h.n, 1);
    cr_expect(strstr(h.text, "'user'") != NULL && strstr(h.text, "not a SQLite file") != NULL, "%s", h.text);
    cr_assert_eq(rssm_db_layers_winners(layers, &query, NULL, NULL, &rows, NULL), RSSM_OK);
    cr_expect_eq(rows.n, 1u);
    rssm_db_rows_free(&rows);
    rssm_db_layers_close(layers);
    cr_assert_eq(rssm_db_layers_open(&set.paths, NULL, &layers, NULL), RSSM_OK); // without a log
    rssm_db_layers_close(layers);
    scratch_end(&set.s);
}

Test(layers, a_damaged_binary_is_taken_from_the_next_layer)
{
    layer_set      set;
    heard          h = {0};
    rssm_hash      key = hash_of(0x80), unknown = hash_of(7);
    rssm_db_binary out = {0};
    rssm_diag      diag = {0};
    set_begin(&set);
    make_database(set.files[0], 1);
    make_database(set.files[1], 1);
    tamper(set.files[0], "UPDATE binary SET sha = zeroblob(32)");
    rssm_db_layers *layers = open_layers(&set, &h);
    cr_expect_eq(rssm_db_layers_binary_read(layers, &key, &out, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_eq(out.n_bytes, 1200u);
    cr_expect_eq(h.n, 1);
    cr_expect(strstr(h.text, "SHA-256") != NULL, "%s", h.text);
    rssm_db_binary_free(&out);
    cr_expect_eq(rssm_db_layers_binary_read(layers, &unknown, &out, &diag), RSSM_E_NOT_FOUND);
    rssm_db_layers_close(layers);
    tamper(set.files[1], "UPDATE binary SET sha = zeroblob(32)");
    layers = open_layers(&set, &h);
    cr_expect_eq(rssm_db_layers_binary_read(layers, &key, &out, &diag), RSSM_E_CORRUPT);
    rssm_db_layers_close(layers);
    scratch_end(&set.s);
}

Test(layers, lie_where_the_specification_says)
{
    rssm_layer_paths paths = {.n = 0};
    char            *user = NULL;
    rssm_diag        diag = {0};
    cr_assert_eq(rssm_layers_paths("/somewhere/my.db", &paths, &diag), RSSM_OK, "%s", diag.text);
    cr_assert_eq(paths.n, 3u);
    cr_expect_str_eq(paths.layers[0].path, "/somewhere/my.db");
    cr_expect_str_eq(paths.layers[0].name, "user");
    cr_expect_str_eq(paths.layers[1].path, "/etc/replayssm/tuned.db");
    cr_expect(strstr(paths.layers[2].path, "/share/replayssm/tuned.db") != NULL);
    rssm_layer_paths_free(&paths);
    setenv("XDG_DATA_HOME", "/data/home", 1);
    cr_assert_eq(rssm_layers_user_path(NULL, &user, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_str_eq(user, "/data/home/replayssm/tuned.db");
    rssm_free(user);
    unsetenv("XDG_DATA_HOME");
    unsetenv("HOME");
    cr_expect_eq(rssm_layers_user_path(NULL, &user, &diag), RSSM_E_NOT_FOUND);
    cr_assert_eq(rssm_layers_paths(NULL, &paths, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_eq(paths.n, 2u, "without a home there is no user layer");
    rssm_layer_paths_free(&paths);
}
