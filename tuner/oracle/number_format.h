// Number formats as the oracle sees them: exact values in double, and the one correct rounding back.
//
// Written from the definition of the formats (sign, exponent, significand) with frexp, ldexp and rint, never from bit
// tricks, because the kernels' conversions are what it has to judge. It shares nothing with templates/.
// Needs the default rounding mode (to nearest, ties to even). Pure functions; thread-safe.
#ifndef RSSM_TUNER_ORACLE_NUMBER_FORMAT_H
#define RSSM_TUNER_ORACLE_NUMBER_FORMAT_H

#include <stddef.h>
#include <stdint.h>

// `dtype` is RSSM_F32, RSSM_BF16 or RSSM_F16 everywhere in this file.

// The value of a 16-bit or 32-bit pattern; exact. NaN and the infinities keep their kind and sign.
double rssm_oracle_value(uint32_t dtype, uint32_t bits);

// `value` rounded once to the format, as a double; beyond the largest finite number that rounds down, an infinity.
double rssm_oracle_round(uint32_t dtype, double value);

// The pattern of rssm_oracle_round(dtype, value). A NaN becomes the quiet NaN of its sign.
uint32_t rssm_oracle_bits(uint32_t dtype, double value);

// Half of the distance between neighbours of the format at |value|: what one rounding may cost.
double rssm_oracle_half_ulp(uint32_t dtype, double value);

// Elements in memory, in the byte order of this machine, at any alignment.
void rssm_oracle_load(uint32_t dtype, const void *from, size_t n, double *out_values);
void rssm_oracle_store(uint32_t dtype, const double *values, size_t n, void *out_bytes);

// How far `got`, an element of the format, is from `want`: 1 is the most that one rounding to the format and an error
// of `bound` before it explain, more is a wrong result. A NaN gives infinity.
double rssm_oracle_error(uint32_t dtype, double want, double bound, double got);

#endif
