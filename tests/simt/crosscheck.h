// The emulator compared with a GPU: `simt-check --record FILE` writes what the emulator computes for
// kernels/crosscheck.cu, and `simt-crosscheck FILE` computes the same on a GPU and compares. The file travels; the
// second program needs a driver and NVRTC only.
#ifndef RSSM_SIMT_CROSSCHECK_H
#define RSSM_SIMT_CROSSCHECK_H

#include <stdint.h>

#include "tests/simt/kernels/crosscheck.h"

enum { CROSSCHECK_MAGIC = 0x53584331 };

typedef struct crosscheck_file {
    uint32_t magic, n_checks;
    uint32_t in[CROSSCHECK_VALUES];
    uint32_t out[N_CROSSCHECKS][CROSSCHECK_VALUES];
} crosscheck_file;

// Every class of float: all exponents, fractions around rounding positions, NaN, subnormals.
static inline void crosscheck_fill(uint32_t in[CROSSCHECK_VALUES])
{
    static const uint32_t near[] = {0,      1,      0x7fffff, 0x400000, 0x7fefff, 0x0fff,   0x1000,   0x1001,
                                    0x3000, 0x7fff, 0x8000,   0x8001,   0x18000,  0x7f8000, 0x123456, 0x654321};
    for (uint32_t i = 0; i < CROSSCHECK_VALUES; i++)
        in[i] = (i & 1) << 31 | (i * 37 / 16 % 256) << 23 | (near[i / 2 % 16] ^ (i / 512 * 0x9e377u & 0x7fffffu));
}

#endif
