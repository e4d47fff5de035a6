// The table of number formats. Threads: thread-safe, static data only.
#include "base/dtype.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *name, *typedef_name;
    uint32_t    bits;
} dtypes[] = {
#define DTYPE_ROW(enumerator, dtype_name, n_bits, spelling) [enumerator] = {dtype_name, spelling, n_bits},
    RSSM_DTYPE_LIST(DTYPE_ROW)
#undef DTYPE_ROW
};

enum { N_DTYPES = sizeof dtypes / sizeof dtypes[0] };

static const struct {
    const char *name;
    uint32_t    dtype;
} aliases[] = {
    {"fp32", RSSM_F32}, {"float32", RSSM_F32}, {"bfloat16", RSSM_BF16},
    {"fp16", RSSM_F16}, {"float16", RSSM_F16}, {"half", RSSM_F16},
};

const char *rssm_dtype_name(uint32_t dtype)
{
    return dtype < N_DTYPES ? dtypes[dtype].name : "?";
}

uint32_t rssm_dtype_bytes(uint32_t dtype)
{
    return dtype < N_DTYPES ? dtypes[dtype].bits / 8 : 0;
}

const char *rssm_dtype_typedef(uint32_t dtype)
{
    return dtype < N_DTYPES ? dtypes[dtype].typedef_name : "?";
}

bool rssm_dtype_parse(const char *name, uint32_t *out_dtype)
{
    for (uint32_t i = 0; i < N_DTYPES; i++) {
        if (strcmp(name, dtypes[i].name) == 0) return *out_dtype = i, true;
    }
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        if (strcmp(name, aliases[i].name) == 0) return *out_dtype = aliases[i].dtype, true;
    }
    return false;
}
