// base/hash.h: published SHA-256 vectors, and that framing keeps different inputs apart.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static const char *hex_of(rssm_hash hash)
{
    static char text[65];

    rssm_hash_hex(&hash, text);
    return text;
}

// FIPS 180-4 example messages and the empty one.
Test(hash, known_vectors)
{
    const struct {
        const char *message, *digest;
    } vectors[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqr"
         "stu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };

    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
        cr_assert_str_eq(hex_of(rssm_hash_bytes(vectors[i].message, strlen(vectors[i].message))), vectors[i].digest);
}

Test(hash, a_million_letters_in_pieces)
{
    rssm_hasher h;
    char        letters[977];

    memset(letters, 'a', sizeof letters);
    rssm_hasher_init(&h);
    for (size_t left = 1000000; left > 0;) {
        const size_t n = left < sizeof letters ? left : sizeof letters;
        rssm_hasher_raw(&h, letters, n);
        left -= n;
    }
    cr_assert_str_eq(hex_of(rssm_hasher_end(&h)), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// The frame is id (4 bytes), length (8), bytes, all little-endian; databases depend on it.
Test(hash, framing_is_as_documented)
{
    const unsigned char framed[] = {0x04, 0x03, 0x02, 0x01, 3, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c'};
    const unsigned char number[] = {7, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1};
    rssm_hasher         h;

    rssm_hasher_init(&h);
    rssm_hasher_text(&h, 0x01020304, "abc");
    rssm_hash a = rssm_hasher_end(&h), b = rssm_hash_bytes(framed, sizeof framed);
    cr_assert(rssm_hash_equal(&a, &b));
    rssm_hasher_init(&h);
    rssm_hasher_u64(&h, 7, 0x0102030405060708);
    a = rssm_hasher_end(&h);
    b = rssm_hash_bytes(number, sizeof number);
    cr_assert(rssm_hash_equal(&a, &b));
}

static rssm_hash of_fields(uint32_t id_1, const char *a, uint32_t id_2, const char *b)
{
    rssm_hasher h;

    rssm_hasher_init(&h);
    rssm_hasher_text(&h, id_1, a);
    if (b) rssm_hasher_text(&h, id_2, b);
    return rssm_hasher_end(&h);
}

Test(hash, different_fields_give_different_hashes)
{
    const rssm_hash hashes[] = {
        of_fields(1, "ab", 2, "c"),   of_fields(1, "a", 2, "bc"), of_fields(1, "abc", 2, ""),
        of_fields(1, "", 2, "abc"),   of_fields(2, "ab", 1, "c"), of_fields(1, "abc", 0, NULL),
        of_fields(2, "abc", 0, NULL), of_fields(1, "c", 2, "ab"),
    };
    const size_t n = sizeof hashes / sizeof hashes[0];

    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++)
            cr_assert_eq(rssm_hash_equal(&hashes[i], &hashes[k]), i == k, "%zu and %zu", i, k);
    }
}

Test(hash, equal_compares_every_byte)
{
    rssm_hash a = rssm_hash_bytes("x", 1);

    for (size_t i = 0; i < sizeof a.bytes; i++) {
        rssm_hash b = a;
        b.bytes[i] ^= 0x80;
        cr_assert_not(rssm_hash_equal(&a, &b));
    }
}
