// Numbers of the lifecycle test: pools of random values of one format, as stored bits and as doubles, and fast
// decoding.
//
// A token is a 64-bit number. Every tensor's run of it is a slice of a pool at a place that the number decides, so a
// token's inputs cost no arithmetic, can be told again at any later time, and differ from every other token's.
// Threads: none; pools are read only once they are made.
#ifndef RSSM_TESTS_LIFECYCLE_NUMBERS_H
#define RSSM_TESTS_LIFECYCLE_NUMBERS_H

#include <stddef.h>

#include "base/status.h"
#include "tuner/verify_random.h"

enum { LIFE_POOL_VALUES = 1 << 15 };

// What a pool's values are for; decides their range.
typedef enum life_pool_kind {
    LIFE_POOL_X,
    LIFE_POOL_Z,
    LIFE_POOL_BC,
    LIFE_POOL_DT,    // raw, before bias and softplus
    LIFE_POOL_STATE, // fp32 values that are encoded
    LIFE_N_POOLS,
} life_pool_kind;

typedef struct life_pool {
    uint32_t       dtype;
    size_t         element_bytes;
    unsigned char *bits;
    double        *values;
} life_pool;

// Tables of the 65536 values of the 16-bit formats, made once.
typedef struct life_decoder {
    double *bf16, *f16;
} life_decoder;

rssm_status life_decoder_create(life_decoder *decoder, rssm_diag *diag);
void        life_decoder_destroy(life_decoder *decoder);

// n elements to doubles, at any alignment.
void life_decode(const life_decoder *decoder, uint32_t dtype, const void *from, size_t n, double *out_values);

rssm_status life_pool_create(life_pool *pool, life_pool_kind kind, uint32_t dtype, bool softplus,
                             rssm_verify_random *random, rssm_diag *diag);
void        life_pool_destroy(life_pool *pool);

// Where the run of n values of `which` tensor of a layer begins in the pool, for a token.
size_t life_pool_place(uint64_t token, uint32_t layer, uint32_t which, size_t n);

// Compares an element of the format with what it should be: true if `bound` and one rounding explain the difference.
bool life_close(uint32_t dtype, double want, double bound, double got);

// Half of the distance between neighbours of the format at |value|, or a little more.
double life_half_ulp(uint32_t dtype, double value);

#endif
