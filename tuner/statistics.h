// Medians and their spread.
#ifndef RSSM_TUNER_STATISTICS_H
#define RSSM_TUNER_STATISTICS_H

#include <stddef.h>
#include <stdint.h>

typedef struct rssm_statistics {
    double   median, mad, min; // mad: median absolute deviation from the median
    uint32_t n;
} rssm_statistics;

// Of n >= 1 finite values; sorts them.
rssm_statistics rssm_statistics_of(double *values, size_t n);

#endif
