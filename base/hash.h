// SHA-256 over length-prefixed, numbered fields, so that no two different inputs feed the same bytes.
#ifndef RSSM_BASE_HASH_H
#define RSSM_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rssm_hash {
    uint8_t bytes[32];
} rssm_hash;

typedef struct rssm_hasher {
    _Alignas(16) uint8_t state[128];   // opaque
} rssm_hasher;

void      rssm_hasher_init(rssm_hasher *h);
void      rssm_hasher_raw(rssm_hasher *h, const void *bytes, size_t n);                   // no framing
void      rssm_hasher_field(rssm_hasher *h, uint32_t id, const void *bytes, size_t n);    // id, length, bytes
void      rssm_hasher_text(rssm_hasher *h, uint32_t id, const char *text);
void      rssm_hasher_u64(rssm_hasher *h, uint32_t id, uint64_t value);                   // little-endian
rssm_hash rssm_hasher_end(rssm_hasher *h);

rssm_hash rssm_hash_bytes(const void *bytes, size_t n);          // plain SHA-256 of the bytes
bool      rssm_hash_equal(const rssm_hash *a, const rssm_hash *b);
void      rssm_hash_hex(const rssm_hash *h, char out_text[65]);

#endif
