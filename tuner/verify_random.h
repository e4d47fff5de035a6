// Random numbers of the verifier: reproducible from a seed, good enough for traffic and test data, nothing else.
#ifndef RSSM_TUNER_VERIFY_RANDOM_H
#define RSSM_TUNER_VERIFY_RANDOM_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct rssm_verify_random {
    uint64_t state;
} rssm_verify_random;

// SplitMix64's output function: a good hash of a counter.
static inline uint64_t rssm_verify_mix(uint64_t v)
{
    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
    v = (v ^ v >> 27) * 0x94d049bb133111ebu;
    return v ^ v >> 31;
}

static inline uint64_t rssm_verify_next(rssm_verify_random *r)
{
    return rssm_verify_mix(r->state += 0x9e3779b97f4a7c15u);
}

// 0 .. n-1; 0 for n = 0.
static inline uint32_t rssm_verify_below(rssm_verify_random *r, uint32_t n)
{
    return n ? (uint32_t)((rssm_verify_next(r) >> 32) % n) : 0;
}

static inline bool rssm_verify_one_in(rssm_verify_random *r, uint32_t n)
{
    return rssm_verify_below(r, n) == 0;
}

static inline double rssm_verify_uniform(rssm_verify_random *r, double low, double high)
{
    return low + (high - low) * (double)(rssm_verify_next(r) >> 11) * 0x1p-53;
}

// Bell-shaped, mean 0, variance 1, within +-3.5: the sum of four 16-bit uniforms.
static inline double rssm_verify_bell(rssm_verify_random *r)
{
    const uint64_t v = rssm_verify_next(r);
    const uint64_t sum = (v & 0xffff) + (v >> 16 & 0xffff) + (v >> 32 & 0xffff) + (v >> 48);
    return ((double)sum - 2 * 65535.0) * (1.7320508075688772 / 65535.0);
}

#endif
