// Reading, checking and storing binaries.
#include "db/binaries.h"

#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "db/blob.h"
#include "db/compress.h"
#include "db/handle.h"

static const char *const KINDS[] = {[RSSM_DB_HOST] = "host", [RSSM_DB_CUBIN] = "cubin"};

static bool parse_kind(const char *name, rssm_db_binary_kind *out_kind)
{
    for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); i++) {
        if (strcmp(KINDS[i], name) == 0) {
            *out_kind = (rssm_db_binary_kind)i;
            return true;
        }
    }
    return false;
}

// The row that `s` stands on, into a binary that owns its memory.
static rssm_status read_row(rssm_sql_statement *s, rssm_db_binary *out_binary, rssm_diag *diag)
{
    rssm_status    st;
    rssm_db_binary binary = {0};
    size_t         n_layout = 0, n_sha = 0, n_data = 0;
    bool           is_known = parse_kind(rssm_sql_text(s, 0), &binary.kind);
    char          *arch = rssm_strdup(rssm_sql_text(s, 1));
    const void    *layout = rssm_sql_blob(s, 2, &n_layout);
    const void    *sha = rssm_sql_blob(s, 3, &n_sha);
    int64_t        raw_len = rssm_sql_integer(s, 4);
    const void    *data = rssm_sql_blob(s, 5, &n_data);
    void          *bytes = NULL;

    if (!is_known || !rssm_sql_row_is_sound(s) || n_layout != sizeof(rssm_hash) || n_sha != sizeof(rssm_hash) ||
        raw_len < 1 || raw_len > RSSM_DB_BINARY_LIMIT) {
        st = RSSM_FAIL(diag, RSSM_E_CORRUPT, "its row is not valid");
        goto done;
    }
    if (arch == NULL) {
        st = RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "reading a binary ran out of memory");
        goto done;
    }
    RSSM_TRY(rssm_decompress(data, n_data, (size_t)raw_len, &bytes, diag));
    rssm_hash found = rssm_hash_bytes(bytes, (size_t)raw_len);
    if (memcmp(found.bytes, sha, sizeof(found.bytes)) != 0) {
        st = RSSM_FAIL(diag, RSSM_E_CORRUPT, "its bytes do not have the SHA-256 they were stored with");
        goto done;
    }
    memcpy(binary.layout_hash.bytes, layout, sizeof(binary.layout_hash.bytes));
    binary.arch = arch;
    binary.bytes = bytes;
    binary.n_bytes = (size_t)raw_len;
    *out_binary = binary;
    arch = NULL;
    bytes = NULL;
done:
    rssm_free(arch);
    rssm_free(bytes);
    return st;
}

static rssm_status read_binary(rssm_db *db, const rssm_hash *build_key, rssm_db_binary *out_binary, rssm_diag *diag)
{
    rssm_status         st;
    bool                has_row = false;
    char                key_text[65];
    rssm_sql_statement *s = NULL;

    rssm_hash_hex(build_key, key_text);
    RSSM_TRY(rssm_sql_start(db->sql, RSSM_SQL_BINARY_GET, &s, diag));
    rssm_sql_bind_blob(s, 1, build_key->bytes, sizeof(build_key->bytes));
    RSSM_TRY(rssm_sql_step(s, &has_row, diag));
    if (!has_row) {
        st = RSSM_FAIL(diag, RSSM_E_NOT_FOUND, "'%s' holds no binary %.12s; tune again or allow compiling", db->path,
                       key_text);
        goto done;
    }
    st = read_row(s, out_binary, diag);
    if (st != RSSM_OK) {
        rssm_diag_prefix(diag, "'%s': binary %.12s is not used and will be compiled again", db->path, key_text);
    }
done:
    rssm_sql_reset(s);
    return st;
}

// Best effort: reading goes on whether or not the finding could be noted.
static void quarantine(rssm_db *db, const rssm_hash *build_key, const char *reason)
{
    rssm_status         st;
    rssm_sql_statement *s = NULL;
    RSSM_TRY(rssm_db_begin(db, NULL));
    RSSM_TRY(rssm_sql_start(db->sql, RSSM_SQL_QUARANTINE_ADD, &s, NULL));
    rssm_sql_bind_blob(s, 1, build_key->bytes, sizeof(build_key->bytes));
    rssm_sql_bind_text(s, 2, reason);
    rssm_sql_bind_integer(s, 3, (int64_t)time(NULL));
    RSSM_TRY(rssm_sql_run(s, NULL));
    RSSM_TRY(rssm_db_commit(db, NULL));
done:
    if (st != RSSM_OK) {
        rssm_db_rollback(db);
    }
}

rssm_status rssm_db_binary_read(rssm_db *db, const rssm_hash *build_key, rssm_db_binary *out_binary, rssm_diag *diag)
{
    rssm_diag      local = {0};
    rssm_db_binary binary = {0};
    rssm_status    st = read_binary(db, build_key, &binary, &local);
    if (st == RSSM_E_CORRUPT && db->is_writable) {
        quarantine(db, build_key, local.text);
    }
    if (st == RSSM_OK) {
        st = rssm_db_unchanged(db, &local);
    }
    if (st != RSSM_OK) {
        rssm_db_binary_free(&binary);
        if (diag != NULL) {
            *diag = local;
        }
        return st;
    }
    *out_binary = binary;
    return RSSM_OK;
}

void rssm_db_binary_free(rssm_db_binary *binary)
{
    if (binary != NULL) {
        rssm_free((char *)binary->arch);
        rssm_free((void *)binary->bytes);
        *binary = (rssm_db_binary){0};
    }
}

rssm_status rssm_blob_make(const rssm_db_binary *binary, rssm_blob *out_blob, rssm_diag *diag)
{
    if (binary->bytes == NULL || binary->n_bytes < 1 || binary->n_bytes > RSSM_DB_BINARY_LIMIT ||
        binary->arch == NULL || (unsigned)binary->kind > RSSM_DB_CUBIN) {
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT,
                         "a binary needs a kind, an architecture and 1 to %d bytes (it has %zu)", RSSM_DB_BINARY_LIMIT,
                         binary->n_bytes);
    }
    rssm_blob   blob = {.binary = binary, .sha = rssm_hash_bytes(binary->bytes, binary->n_bytes)};
    rssm_status st = rssm_compress(binary->bytes, binary->n_bytes, &blob.data, &blob.n_data, diag);
    if (st == RSSM_OK) {
        *out_blob = blob;
    }
    return st;
}

void rssm_blob_free(rssm_blob *blob)
{
    rssm_free(blob->data);
    *blob = (rssm_blob){0};
}

static rssm_status put(rssm_db *db, const rssm_hash *build_key, const rssm_blob *blob, rssm_diag *diag)
{
    rssm_sql_statement *s = NULL;
    rssm_status         st = rssm_sql_start(db->sql, RSSM_SQL_BINARY_PUT, &s, diag);
    if (st != RSSM_OK) {
        return st;
    }
    rssm_sql_bind_blob(s, 1, build_key->bytes, sizeof(build_key->bytes));
    rssm_sql_bind_text(s, 2, KINDS[blob->binary->kind]);
    rssm_sql_bind_text(s, 3, blob->binary->arch);
    rssm_sql_bind_blob(s, 4, blob->binary->layout_hash.bytes, sizeof(blob->binary->layout_hash.bytes));
    rssm_sql_bind_blob(s, 5, blob->sha.bytes, sizeof(blob->sha.bytes));
    rssm_sql_bind_integer(s, 6, (int64_t)blob->binary->n_bytes);
    rssm_sql_bind_blob(s, 7, blob->data, blob->n_data);
    return rssm_sql_run(s, diag);
}

rssm_status rssm_blob_store(rssm_db *db, const rssm_hash *build_key, const rssm_blob *blob, rssm_diag *diag)
{
    rssm_db_binary      stored = {0};
    rssm_sql_statement *s = NULL;
    rssm_status         st = read_binary(db, build_key, &stored, diag);
    rssm_db_binary_free(&stored);
    if (st == RSSM_E_NOT_FOUND || st == RSSM_E_CORRUPT) {
        st = put(db, build_key, blob, diag);
    }
    RSSM_TRY(st);
    RSSM_TRY(rssm_sql_start(db->sql, RSSM_SQL_QUARANTINE_DROP, &s, diag));
    rssm_sql_bind_blob(s, 1, build_key->bytes, sizeof(build_key->bytes));
    RSSM_TRY(rssm_sql_run(s, diag));
done:
    return st;
}
