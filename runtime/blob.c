// See blob.h.
#include "runtime/blob.h"

#include <string.h>

#include "base/dtype.h"
#include "base/hash.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "payloads are copied as they lie in memory");

enum {
    MAGIC_BYTES = 8,
    SHAPE_FIELDS = 9,
    FIXED_BYTES = MAGIC_BYTES + 4 + 4 + 8 + 4 + 4 + 8 + 8,
    PARTS = 4,
};
static const char magic[MAGIC_BYTES + 1] = "RSSMSLOT";

static uint64_t round_up(uint64_t n)
{
    return (n + RSSM_BLOB_ALIGN - 1) / RSSM_BLOB_ALIGN * RSSM_BLOB_ALIGN;
}

// ------------------------------------------------------------------------------------------------------------- numbers

static char *put(char *to, uint64_t value, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++) to[i] = (char)(unsigned char)(value >> (8 * i));
    return to + n_bytes;
}

static uint64_t get(const char *from, int n_bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < n_bytes; i++) value |= (uint64_t)(unsigned char)from[i] << (8 * i);
    return value;
}

// --------------------------------------------------------------------------------------------------------------- sizes

// Bytes of each tensor of one layer, without padding. Factors are those of a checked problem: no product reaches 2^36.
static void count_bytes(const rssm_problem *p, uint32_t n_records, uint64_t out_bytes[PARTS])
{
    const uint64_t H = p->n_heads, G = p->n_groups, P = p->head_dim, N = p->state_size, n = n_records;
    const uint64_t act = rssm_dtype_bytes(p->activation_dtype);

    out_bytes[0] = H * P * N * rssm_dtype_bytes(p->checkpoint_dtype);
    out_bytes[1] = H * n * P * act;
    out_bytes[2] = G * n * N * act;
    out_bytes[3] = H * n * sizeof(float);
}

size_t rssm_blob_header_bytes(const rssm_layers *layers)
{
    return round_up(FIXED_BYTES + (uint64_t)layers->n_layers * SHAPE_FIELDS * 4);
}

size_t rssm_blob_payload_bytes(const rssm_layers *layers, uint32_t n_records)
{
    uint64_t total = 0, bytes[PARTS];
    for (uint32_t i = 0; i < layers->n_layers; i++) {
        count_bytes(&rssm_layers_plan(layers, i)->problem, n_records, bytes);
        for (int k = 0; k < PARTS; k++) total += round_up(bytes[k]);
    }
    return total;
}

size_t rssm_blob_total_bytes(const rssm_layers *layers, uint32_t n_records)
{
    return rssm_blob_header_bytes(layers) + rssm_blob_payload_bytes(layers, n_records) + sizeof(rssm_hash);
}

void rssm_blob_views(const rssm_layers *layers, uint32_t n_records, char *base, rssm_mamba2_layer *out_table)
{
    for (uint32_t i = 0; i < layers->n_layers; i++) {
        const rssm_problem *p = &rssm_layers_plan(layers, i)->problem;
        const int64_t       n = n_records;
        uint64_t            bytes[PARTS];
        char               *at[PARTS];

        count_bytes(p, n_records, bytes);
        for (int k = 0; k < PARTS; k++) {
            at[k] = base;
            base += round_up(bytes[k]);
        }
        out_table[layers->places[i]] = (rssm_mamba2_layer){
            .state = {at[0], 0},
            .x_ring = {at[1], 0, n * p->head_dim, p->head_dim},
            .B_ring = {at[2], 0, n * p->state_size, p->state_size},
            .dt_ring = {at[3], 0, n, 1},
            .A = layers->layers[i].A,
        };
    }
}

// ------------------------------------------------------------------------------------------------------------- writing

// What decides the meaning of a layer's bytes.
static void list_shape(const rssm_problem *p, uint32_t out_fields[SHAPE_FIELDS])
{
    const uint32_t fields[SHAPE_FIELDS] = {p->recurrence,       p->n_heads,         p->n_groups,
                                           p->head_dim,         p->state_size,      p->activation_dtype,
                                           p->checkpoint_mode,  p->checkpoint_dtype, p->read_dtype};
    memcpy(out_fields, fields, sizeof fields);
}

static void zero_padding(const rssm_layers *layers, uint32_t n_records, char *payload)
{
    uint64_t bytes[PARTS];
    for (uint32_t i = 0; i < layers->n_layers; i++) {
        count_bytes(&rssm_layers_plan(layers, i)->problem, n_records, bytes);
        for (int k = 0; k < PARTS; k++) {
            memset(payload + bytes[k], 0, round_up(bytes[k]) - bytes[k]);
            payload += round_up(bytes[k]);
        }
    }
}

void rssm_blob_seal(const rssm_layers *layers, const rssm_blob_cursor *cursor, char *blob)
{
    const size_t header_bytes = rssm_blob_header_bytes(layers);
    const size_t total = rssm_blob_total_bytes(layers, cursor->n_records);
    uint32_t     fields[SHAPE_FIELDS];
    char        *to = blob;

    memset(blob, 0, header_bytes);
    memcpy(to, magic, MAGIC_BYTES);
    to = put(to + MAGIC_BYTES, RSSM_BLOB_VERSION, 4);
    to = put(to, header_bytes, 4);
    to = put(to, total, 8);
    to = put(to, layers->n_layers, 4);
    to = put(to, cursor->n_records, 4);
    to = put(to, cursor->pos, 8);
    to = put(to, cursor->nonce, 8);
    for (uint32_t i = 0; i < layers->n_layers; i++) {
        list_shape(&rssm_layers_plan(layers, i)->problem, fields);
        for (int k = 0; k < SHAPE_FIELDS; k++) to = put(to, fields[k], 4);
    }
    zero_padding(layers, cursor->n_records, blob + header_bytes);
    const rssm_hash hash = rssm_hash_bytes(blob, total - sizeof hash);
    memcpy(blob + total - sizeof hash, &hash, sizeof hash);
}

// ------------------------------------------------------------------------------------------------------------- reading

// Kind, version and checksum: after this the bytes are those that somebody sealed.
static rssm_status check_seal(const char *blob, size_t n_bytes, rssm_diag *diag)
{
    rssm_hash stored;

    if (n_bytes < MAGIC_BYTES || memcmp(blob, magic, MAGIC_BYTES) != 0)
        return RSSM_FAIL(diag, RSSM_E_FOREIGN, "these %zu bytes are not an exported slot; give what rssm_export wrote",
                         n_bytes);
    if (n_bytes < FIXED_BYTES + sizeof stored)
        return RSSM_FAIL(diag, RSSM_E_CORRUPT, "the exported slot is cut off at %zu bytes; export it again", n_bytes);
    const uint64_t version = get(blob + MAGIC_BYTES, 4);
    if (version > RSSM_BLOB_VERSION)
        return RSSM_FAIL(diag, RSSM_E_TOO_NEW, "the exported slot has format %u, this library reads up to %d; use the "
                         "newer library here as well", (unsigned)version, RSSM_BLOB_VERSION);
    const rssm_hash hash = rssm_hash_bytes(blob, n_bytes - sizeof hash);
    memcpy(&stored, blob + n_bytes - sizeof stored, sizeof stored);
    if (version == 0 || !rssm_hash_equal(&hash, &stored))
        return RSSM_FAIL(diag, RSSM_E_CORRUPT,
                         "the exported slot is damaged: its checksum does not match its %zu bytes; export it again",
                         n_bytes);
    return RSSM_OK;
}

static rssm_status check_shapes(const rssm_layers *layers, const char *from, rssm_diag *diag)
{
    static const char *const names[SHAPE_FIELDS] = {"recurrence",       "n_heads",         "n_groups",
                                                    "head_dim",         "state_size",      "activation_dtype",
                                                    "checkpoint_mode",  "checkpoint_dtype", "read_dtype"};
    uint32_t fields[SHAPE_FIELDS];

    for (uint32_t i = 0; i < layers->n_layers; i++) {
        list_shape(&rssm_layers_plan(layers, i)->problem, fields);
        for (int k = 0; k < SHAPE_FIELDS; k++, from += 4) {
            const uint32_t found = (uint32_t)get(from, 4);
            if (found == fields[k]) continue;
            return RSSM_FAIL(diag, RSSM_E_UNSUPPORTED,
                             "the exported slot is of another model: %s of layer %u is %u there "
                             "and %u here",
                             names[k], i, found, fields[k]);
        }
    }
    return RSSM_OK;
}

rssm_status rssm_blob_check(const rssm_layers *layers, const void *bytes, size_t n_bytes, rssm_blob_cursor *out_cursor,
                            rssm_diag *diag)
{
    const char      *blob = bytes;
    rssm_status      st = RSSM_OK;
    rssm_blob_cursor cursor;

    RSSM_TRY(check_seal(blob, n_bytes, diag));
    const char    *at = blob + MAGIC_BYTES + 4;
    const uint64_t header_bytes = get(at, 4), total = get(at + 4, 8), n_layers = get(at + 12, 4);
    cursor = (rssm_blob_cursor){(uint32_t)get(at + 16, 4), get(at + 20, 8), get(at + 28, 8)};
    if (n_layers != layers->n_layers) {
        st = RSSM_FAIL(diag, RSSM_E_UNSUPPORTED, "the exported slot has %llu layers, this model %u",
                       (unsigned long long)n_layers, layers->n_layers);
        goto done;
    }
    if (header_bytes != rssm_blob_header_bytes(layers) || n_bytes < header_bytes || total != n_bytes) {
        st = RSSM_FAIL(diag, RSSM_E_CORRUPT,
                       "the exported slot says that it has %llu bytes, %llu of them its header, and "
                       "has %zu; export it again",
                       (unsigned long long)total, (unsigned long long)header_bytes, n_bytes);
        goto done;
    }
    RSSM_TRY(check_shapes(layers, blob + FIXED_BYTES, diag));
    if (cursor.n_records > (uint32_t)layers->group->window.R) {
        st = RSSM_FAIL(diag, RSSM_E_UNSUPPORTED,
                       "the exported slot holds %u records, and rings here have %d; fold some "
                       "before the export, or make the rings longer",
                       cursor.n_records, layers->group->window.R);
        goto done;
    }
    if (total != rssm_blob_total_bytes(layers, cursor.n_records)) {
        st = RSSM_FAIL(diag, RSSM_E_CORRUPT,
                       "the exported slot has %zu bytes, and with its %u records should have %zu; "
                       "export it again",
                       n_bytes, cursor.n_records, rssm_blob_total_bytes(layers, cursor.n_records));
        goto done;
    }
    *out_cursor = cursor;
done:
    return st;
}
