// Number formats: name, size, spelling in rendered config headers.
#ifndef RSSM_BASE_DTYPE_H
#define RSSM_BASE_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

// X(enumerator, name, bits per element, C typedef in templates/numerics)
#define RSSM_DTYPE_LIST(X)                   \
    X(RSSM_F32, "f32", 32, "float")          \
    X(RSSM_BF16, "bf16", 16, "rssm_bf16")    \
    X(RSSM_F16, "f16", 16, "rssm_f16")       \
    X(RSSM_FP8_E4M3, "fp8", 8, "rssm_fp8")   \
    X(RSSM_INT8, "int8", 8, "rssm_int8")     \
    X(RSSM_NVFP4, "nvfp4", 4, "rssm_nvfp4")

const char *rssm_dtype_name(uint32_t dtype);                        // "?" for an unknown value
uint32_t    rssm_dtype_bytes(uint32_t dtype);                       // of one element; 0 for sub-byte and unknown ones
const char *rssm_dtype_typedef(uint32_t dtype);

// Also "fp32", "float32", "bfloat16", "fp16", "float16", "half".
bool rssm_dtype_parse(const char *name, uint32_t *out_dtype);

#endif
