// Whatever is in the file: a status, in bounded time, and no crash.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/db/support.h"

enum { N_TRIALS = 24, N_FLIPS = 2000, LIMIT_MS = 1000 };

// Everything that a host reads. Whether the file opened.
static bool read_everything(const char *path)
{
    rssm_db          *db = NULL;
    rssm_diag         diag = {0};
    rssm_hash         problem = hash_of(0x11);
    rssm_db_query     all = {0}, one = {.problem = &problem};
    rssm_db_rows      rows = {0};
    rssm_db_summaries list = {0};
    if (rssm_db_open_read(path, &db, &diag) != RSSM_OK) {
        cr_assert_neq(diag.text[0], '\0');
        return false;
    }
    rssm_db_winners(db, &one, NULL, NULL, &rows, &diag);
    rssm_db_rows_free(&rows);
    rssm_db_trials(db, &all, &rows, &diag);
    rssm_db_rows_free(&rows);
    rssm_db_summarise(db, &all, &list, &diag);
    rssm_db_summaries_free(&list);
    for (int i = 0; i < N_TRIALS; i++) {
        rssm_db_binary binary = {0}, expected = sample_binary(i, 1000 + 100 * (size_t)i);
        rssm_hash      key = hash_of(0x80 + i);
        if (rssm_db_binary_read(db, &key, &binary, &diag) == RSSM_OK) {
            cr_assert(binary.n_bytes == expected.n_bytes && memcmp(binary.bytes, expected.bytes, binary.n_bytes) == 0,
                      "a damaged binary was believed");
        }
        rssm_db_binary_free(&binary);
    }
    rssm_db_close(db);
    return true;
}

static void write_something(const char *path)
{
    rssm_db       *db = NULL;
    rssm_diag      diag = {0};
    rssm_db_trial  trial = sample_trial("K=new", 1.0);
    rssm_db_binary binary = sample_binary(3, 1300);
    trial.build_key = hash_of(0x83);
    if (rssm_db_open_write(path, &db, &diag) == RSSM_OK) {
        rssm_db_record(db, &trial, &binary, &diag);
    } else {
        cr_assert_neq(diag.text[0], '\0');
    }
    rssm_db_close(db);
}

static void remove_logs(const char *path)
{
    static const char *const SUFFIXES[] = {"-wal", "-shm", "-journal"};
    for (int i = 0; i < 3; i++) {
        char name[600];
        snprintf(name, sizeof(name), "%s%s", path, SUFFIXES[i]);
        unlink(name);
    }
}

// Of this process, so that a busy machine does not count.
static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void expect_quick(double begun_ms, const char *what, size_t i)
{
    double ms = cpu_ms() - begun_ms;
    cr_expect_lt(ms, LIMIT_MS, "%s %zu took %g ms", what, i, ms);
}

Test(damage, truncation_at_every_512_bytes_ends_in_a_status)
{
    scratch s = scratch_begin();
    size_t  n = 0;
    make_database(s.path, N_TRIALS);
    char *bytes = file_bytes(s.path, &n);
    for (size_t size = 0; size < n; size += 512) {
        rssm_diag diag = {0};
        file_put(s.path, bytes, size);
        double      begun_ms = cpu_ms();
        rssm_status st = try_read(s.path, &diag);
        cr_expect_eq(st, size == 0 ? RSSM_E_NOT_FOUND : RSSM_E_CORRUPT, "%zu bytes: %s", size, diag.text);
        if (size > 0) {
            st = try_write(s.path, &diag);
            cr_expect_eq(st, RSSM_E_CORRUPT, "%zu bytes: %s", size, diag.text);
        }
        expect_quick(begun_ms, "size", size);
        remove_logs(s.path);
    }
    file_put(s.path, bytes, n);
    cr_expect(read_everything(s.path), "the whole file must open");
    free(bytes);
    scratch_end(&s);
}

Test(damage, random_byte_flips_end_in_a_status)
{
    scratch  s = scratch_begin();
    size_t   n = 0;
    uint64_t x = 88172645463325252ULL;
    size_t   n_opened = 0;
    make_database(s.path, N_TRIALS);
    char *bytes = file_bytes(s.path, &n);
    for (size_t i = 0; i < N_FLIPS; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        // Half of the flips hit the first two pages: the header and the schema.
        size_t at = (size_t)(x >> 20) % (i % 2 == 0 ? n : 8192);
        char   old = bytes[at];
        bytes[at] = (char)(old ^ (1 + (x >> 8) % 255));
        file_put(s.path, bytes, n);
        bytes[at] = old;
        double begun_ms = cpu_ms();
        n_opened += read_everything(s.path);
        if (i % 4 == 0) {
            write_something(s.path);
        }
        expect_quick(begun_ms, "flip", i);
        remove_logs(s.path);
    }
    cr_expect(n_opened > N_FLIPS / 20 && n_opened < N_FLIPS, "%zu of %d opened", n_opened, N_FLIPS);
    free(bytes);
    scratch_end(&s);
}
