// SHA-256 over framed fields. The only file that includes libsodium.
//
// A field is its number (4 bytes), its length (8 bytes), both little-endian, then its bytes: no concatenation of
// fields equals another one. SHA-256 in libsodium needs no initialisation call and allocates nothing.
// Threads: one at a time per hasher.
#include "base/hash.h"

#include <sodium.h>
#include <string.h>

_Static_assert(sizeof(crypto_hash_sha256_state) <= sizeof(rssm_hasher), "the opaque state is large enough");
_Static_assert(_Alignof(crypto_hash_sha256_state) <= _Alignof(rssm_hasher), "the opaque state is aligned enough");
_Static_assert(sizeof(rssm_hash) == crypto_hash_sha256_BYTES, "a hash is a SHA-256 digest");

static crypto_hash_sha256_state *state_of(rssm_hasher *h)
{
    return (crypto_hash_sha256_state *)(void *)h->state;
}

static void store_little_endian(uint8_t *bytes, uint64_t value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}

void rssm_hasher_init(rssm_hasher *h)
{
    crypto_hash_sha256_init(state_of(h));
}

void rssm_hasher_raw(rssm_hasher *h, const void *bytes, size_t n)
{
    if (n) crypto_hash_sha256_update(state_of(h), bytes, n);
}

void rssm_hasher_field(rssm_hasher *h, uint32_t id, const void *bytes, size_t n)
{
    uint8_t frame[12];

    store_little_endian(frame, id, 4);
    store_little_endian(frame + 4, n, 8);
    rssm_hasher_raw(h, frame, sizeof frame);
    rssm_hasher_raw(h, bytes, n);
}

void rssm_hasher_text(rssm_hasher *h, uint32_t id, const char *text)
{
    rssm_hasher_field(h, id, text, strlen(text));
}

void rssm_hasher_u64(rssm_hasher *h, uint32_t id, uint64_t value)
{
    uint8_t bytes[8];

    store_little_endian(bytes, value, sizeof bytes);
    rssm_hasher_field(h, id, bytes, sizeof bytes);
}

rssm_hash rssm_hasher_end(rssm_hasher *h)
{
    rssm_hash hash;

    crypto_hash_sha256_final(state_of(h), hash.bytes);
    return hash;
}

rssm_hash rssm_hash_bytes(const void *bytes, size_t n)
{
    rssm_hasher h;

    rssm_hasher_init(&h);
    rssm_hasher_raw(&h, bytes, n);
    return rssm_hasher_end(&h);
}

bool rssm_hash_equal(const rssm_hash *a, const rssm_hash *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

void rssm_hash_hex(const rssm_hash *h, char out_text[65])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < sizeof h->bytes; i++) {
        out_text[2 * i] = digits[h->bytes[i] >> 4];
        out_text[2 * i + 1] = digits[h->bytes[i] & 15];
    }
    out_text[64] = '\0';
}
