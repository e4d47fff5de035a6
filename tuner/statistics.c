// See statistics.h.
#include "tuner/statistics.h"

#include <math.h>
#include <stdlib.h>

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of_sorted(const double *values, size_t n)
{
    return n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

rssm_statistics rssm_statistics_of(double *values, size_t n)
{
    rssm_statistics s = {.n = (uint32_t)n};
    qsort(values, n, sizeof *values, compare_doubles);
    s.min = values[0];
    s.median = median_of_sorted(values, n);
    for (size_t i = 0; i < n; i++)
        values[i] = fabs(values[i] - s.median);
    qsort(values, n, sizeof *values, compare_doubles);
    s.mad = median_of_sorted(values, n);
    return s;
}
