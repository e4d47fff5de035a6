// See numbers.h.
#include "tests/lifecycle/numbers.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "tuner/oracle/number_format.h"

enum { N_PATTERNS = 1 << 16 };

rssm_status life_decoder_create(life_decoder *decoder, rssm_diag *diag)
{
    decoder->bf16 = rssm_alloc(N_PATTERNS * sizeof *decoder->bf16);
    decoder->f16 = rssm_alloc(N_PATTERNS * sizeof *decoder->f16);
    if (!decoder->bf16 || !decoder->f16) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for number tables");
    for (uint32_t bits = 0; bits < N_PATTERNS; bits++) {
        decoder->bf16[bits] = rssm_oracle_value(RSSM_BF16, bits);
        decoder->f16[bits] = rssm_oracle_value(RSSM_F16, bits);
    }
    return RSSM_OK;
}

void life_decoder_destroy(life_decoder *decoder)
{
    rssm_free(decoder->bf16);
    rssm_free(decoder->f16);
    memset(decoder, 0, sizeof *decoder);
}

void life_decode(const life_decoder *decoder, uint32_t dtype, const void *from, size_t n, double *out_values)
{
    const unsigned char *bytes = from;
    const double        *table = dtype == RSSM_BF16 ? decoder->bf16 : decoder->f16;
    for (size_t i = 0; i < n; i++) {
        if (dtype == RSSM_F32) {
            float value;
            memcpy(&value, bytes + i * sizeof value, sizeof value);
            out_values[i] = value;
        } else {
            uint16_t bits;
            memcpy(&bits, bytes + i * sizeof bits, sizeof bits);
            out_values[i] = table[bits];
        }
    }
}

// Magnitudes as the verifier's: outputs stay within fp16 while decays run from none to all.
static double draw(life_pool_kind kind, bool softplus, rssm_verify_random *r)
{
    static const double beyond[] = {-1e4, -60, -8, 19.9, 20, 20.1, 40};
    const double        d = exp2(rssm_verify_uniform(r, log2(5e-3), 1));
    switch (kind) {
    case LIFE_POOL_X:
        return rssm_verify_bell(r);
    case LIFE_POOL_Z:
        return 2 * rssm_verify_bell(r);
    case LIFE_POOL_BC:
        return 0.4 * rssm_verify_bell(r);
    case LIFE_POOL_STATE:
        return rssm_verify_bell(r);
    default:
        break;
    }
    if (!softplus) return d;
    if (rssm_verify_one_in(r, 48)) return beyond[rssm_verify_below(r, sizeof beyond / sizeof beyond[0])];
    return log(expm1(d));
}

rssm_status life_pool_create(life_pool *pool, life_pool_kind kind, uint32_t dtype, bool softplus,
                             rssm_verify_random *random, rssm_diag *diag)
{
    pool->dtype = dtype;
    pool->element_bytes = rssm_dtype_bytes(dtype);
    pool->bits = rssm_alloc(LIFE_POOL_VALUES * pool->element_bytes);
    pool->values = rssm_alloc(LIFE_POOL_VALUES * sizeof *pool->values);
    if (!pool->bits || !pool->values) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for random values");
    for (size_t i = 0; i < LIFE_POOL_VALUES; i++)
        pool->values[i] = draw(kind, softplus, random);
    rssm_oracle_store(dtype, pool->values, LIFE_POOL_VALUES, pool->bits);
    rssm_oracle_load(dtype, pool->bits, LIFE_POOL_VALUES, pool->values);
    return RSSM_OK;
}

void life_pool_destroy(life_pool *pool)
{
    rssm_free(pool->bits);
    rssm_free(pool->values);
    memset(pool, 0, sizeof *pool);
}

size_t life_pool_place(uint64_t token, uint32_t layer, uint32_t which, size_t n)
{
    const uint64_t v = rssm_verify_mix(token * 0x9e3779b97f4a7c15u + layer * 0x100000001b3u + which);
    return (size_t)(v >> 32) % (LIFE_POOL_VALUES - n);
}

double life_half_ulp(uint32_t dtype, double value)
{
    static const double relative[] = {[RSSM_F32] = 0x1p-24, [RSSM_BF16] = 0x1p-8, [RSSM_F16] = 0x1p-11};
    static const double least[] = {[RSSM_F32] = 0x1p-150, [RSSM_BF16] = 0x1p-134, [RSSM_F16] = 0x1p-25};
    return fabs(value) * relative[dtype] + least[dtype];
}

bool life_close(uint32_t dtype, double want, double bound, double got)
{
    static const double least_half_ulp[] = {[RSSM_F32] = 0x1p-25, [RSSM_BF16] = 0x1p-9, [RSSM_F16] = 0x1p-12};
    const double        difference = fabs(got - want);
    // Half an ulp is at least this much of the value; what is not so close asks the oracle, which knows it exactly.
    if (difference <= bound + least_half_ulp[dtype] * fabs(want)) return true;
    return rssm_oracle_error(dtype, want, bound, got) <= 1;
}
