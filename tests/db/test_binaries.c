#include "db/binaries.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "db/compress.h"
#include "tests/db/support.h"
#include "tests/db/tamper.h"

static void record_binary(rssm_db *db, int key, const rssm_db_binary *binary)
{
    rssm_db_trial t = sample_trial("K=1", 10.0);
    t.build_key = hash_of(key);
    record(db, &t, binary);
}

static rssm_status read_key(rssm_db *db, int key, rssm_db_binary *out, rssm_diag *diag)
{
    rssm_hash build_key = hash_of(key);
    return rssm_db_binary_read(db, &build_key, out, diag);
}

Test(binaries, come_back_byte_for_byte)
{
    static const size_t SIZES[] = {1, 200, 4096, 100000, 1 << 20};
    scratch             s = scratch_begin();
    rssm_db            *db = open_write(s.path);
    for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++) {
        rssm_db_binary in = sample_binary((int)i, (1 << 20) - 200), out = {0};
        rssm_diag      diag = {0};
        in.n_bytes = SIZES[i];
        in.kind = i % 2 == 0 ? RSSM_DB_HOST : RSSM_DB_CUBIN;
        record_binary(db, 100 + (int)i, &in);
        cr_assert_eq(read_key(db, 100 + (int)i, &out, &diag), RSSM_OK, "%s", diag.text);
        cr_expect(out.n_bytes == in.n_bytes && memcmp(out.bytes, in.bytes, in.n_bytes) == 0);
        cr_expect_eq(out.kind, in.kind);
        cr_expect_str_eq(out.arch, in.arch);
        cr_expect(rssm_hash_equal(&out.layout_hash, &in.layout_hash));
        rssm_db_binary_free(&out);
        rssm_db_binary_free(&out);
    }
    rssm_db_binary untouched = {.n_bytes = 77};
    cr_expect_eq(read_key(db, 9, &untouched, NULL), RSSM_E_NOT_FOUND);
    cr_expect_eq(untouched.n_bytes, 77u);
    rssm_db_close(db);
    scratch_end(&s);
}

// The ways in which a stored binary can be wrong, each on the second of three.
static const struct {
    const char *name, *script;
} DAMAGES[] = {
    {"a byte of the data",
     "UPDATE binary SET data = CAST(substr(data, 1, 300) || x'5A5A' || substr(data, 303) AS BLOB) "
     "WHERE id = 2"},
    {"cut data", "UPDATE binary SET data = substr(data, 1, length(data) - 1) WHERE id = 2"},
    {"data with a tail", "UPDATE binary SET data = CAST(data || x'00' AS BLOB) WHERE id = 2"},
    {"two frames", "UPDATE binary SET data = CAST(data || data AS BLOB) WHERE id = 2"},
    {"no data", "UPDATE binary SET data = x'' WHERE id = 2"},
    {"another binary's data", "UPDATE binary SET data = (SELECT b.data FROM binary b WHERE b.id = 1) WHERE id = 2"},
    {"another binary's data and length",
     "UPDATE binary SET (data, raw_len) = (SELECT b.data, b.raw_len FROM binary b WHERE b.id = 1) WHERE id = 2"},
    {"a wrong hash", "UPDATE binary SET sha = zeroblob(32) WHERE id = 2"},
    {"a greater length", "UPDATE binary SET raw_len = raw_len + 1 WHERE id = 2"},
    {"a smaller length", "UPDATE binary SET raw_len = raw_len - 1 WHERE id = 2"},
    {"a length beyond the limit",
     "PRAGMA ignore_check_constraints = ON; UPDATE binary SET raw_len = 1 << 40 WHERE id = 2"},
    {"a negative length", "PRAGMA ignore_check_constraints = ON; UPDATE binary SET raw_len = -5 WHERE id = 2"},
    {"an unknown kind", "PRAGMA ignore_check_constraints = ON; UPDATE binary SET kind = 'jar' WHERE id = 2"},
};

Test(binaries, a_damaged_one_costs_itself_only_and_is_repaired_by_the_next_trial)
{
    for (size_t i = 0; i < sizeof(DAMAGES) / sizeof(DAMAGES[0]); i++) {
        scratch        s = scratch_begin();
        rssm_diag      diag = {0};
        rssm_db_binary out = {.n_bytes = 77};
        make_database(s.path, 3);
        tamper(s.path, DAMAGES[i].script);

        rssm_db *db = open_read(s.path);
        cr_expect_eq(read_key(db, 0x81, &out, &diag), RSSM_E_CORRUPT, "%s: %s", DAMAGES[i].name, diag.text);
        cr_expect(strstr(diag.text, "818181818181") != NULL, "%s", diag.text);
        cr_expect_eq(out.n_bytes, 77u, "%s: the output was touched", DAMAGES[i].name);
        for (int key = 0x80; key <= 0x82; key += 2) {
            cr_expect_eq(read_key(db, key, &out, &diag), RSSM_OK, "%s: %s", DAMAGES[i].name, diag.text);
            rssm_db_binary_free(&out);
        }
        rssm_db_close(db);
        cr_expect_str_eq(tamper_ask(s.path, "SELECT count(*) FROM quarantine"), "0", "a reader must not write");

        db = open_write(s.path);
        cr_expect_eq(read_key(db, 0x81, &out, &diag), RSSM_E_CORRUPT, "%s: %s", DAMAGES[i].name, diag.text);
        rssm_db_close(db);
        cr_expect_str_eq(tamper_ask(s.path, "SELECT hex(substr(key, 1, 2)) FROM quarantine"), "8181");
        cr_expect_neq(tamper_ask(s.path, "SELECT reason FROM quarantine")[0], '\0');

        db = open_write(s.path);
        rssm_db_binary again = sample_binary(1, 1100);
        record_binary(db, 0x81, &again);
        cr_expect_eq(read_key(db, 0x81, &out, &diag), RSSM_OK, "%s: %s", DAMAGES[i].name, diag.text);
        cr_expect(out.n_bytes == again.n_bytes && memcmp(out.bytes, again.bytes, out.n_bytes) == 0);
        rssm_db_binary_free(&out);
        rssm_db_close(db);
        cr_expect_str_eq(tamper_ask(s.path, "SELECT count(*) FROM quarantine"), "0");
        cr_expect_str_eq(tamper_ask(s.path, "SELECT count(*) FROM binary"), "3");
        scratch_end(&s);
    }
}

Test(binaries, the_first_sound_one_of_a_key_is_kept)
{
    scratch        s = scratch_begin();
    rssm_db       *db = open_write(s.path);
    rssm_db_binary a = sample_binary(1, 500), out = {0};
    record_binary(db, 0x31, &a);
    rssm_db_binary b = sample_binary(2, 600);
    record_binary(db, 0x31, &b);
    cr_assert_eq(read_key(db, 0x31, &out, NULL), RSSM_OK);
    cr_expect_eq(out.n_bytes, 700u);
    rssm_db_binary_free(&out);
    rssm_db_close(db);
    scratch_end(&s);
}

Test(binaries, decompression_never_goes_beyond_the_stated_size)
{
    char  *zeros = calloc(1, 1 << 20);
    void  *packed = NULL, *out = NULL;
    size_t n_packed = 0;
    cr_assert_eq(rssm_compress(zeros, 1 << 20, &packed, &n_packed, NULL), RSSM_OK);
    cr_expect_lt(n_packed, 1000u);
    cr_expect_eq(rssm_decompress(packed, n_packed, 1000, &out, NULL), RSSM_E_CORRUPT);
    cr_expect_eq(rssm_decompress(packed, n_packed, (1 << 20) + 1, &out, NULL), RSSM_E_CORRUPT);
    cr_expect_eq(rssm_decompress(packed, 3, 1 << 20, &out, NULL), RSSM_E_CORRUPT);
    cr_expect_eq(rssm_decompress("", 0, 1, &out, NULL), RSSM_E_CORRUPT);
    cr_expect_eq(rssm_decompress(NULL, 0, 1, &out, NULL), RSSM_E_CORRUPT);
    cr_assert_eq(rssm_decompress(packed, n_packed, 1 << 20, &out, NULL), RSSM_OK);
    cr_expect_eq(memcmp(out, zeros, 1 << 20), 0);
    rssm_free(packed);
    rssm_free(out);
    free(zeros);
}
