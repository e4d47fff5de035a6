// The 16-bit storage formats, as bits. Typedefs only: rendered config headers name them before anything else is seen.
// Valid as C11, C++17 and device code. Conversions are in numerics/convert.h.
#ifndef RSSM_NUMERICS_TYPES_H
#define RSSM_NUMERICS_TYPES_H

typedef struct rssm_bf16 {
    unsigned short bits; // 1 sign, 8 exponent, 7 fraction: the upper half of a float
} rssm_bf16;

typedef struct rssm_f16 {
    unsigned short bits; // 1 sign, 5 exponent, 10 fraction: IEEE binary16
} rssm_f16;

#endif
