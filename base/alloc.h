// Heap memory. Every allocation of the project goes through here, so that tests can fail the nth one.
#ifndef RSSM_BASE_ALLOC_H
#define RSSM_BASE_ALLOC_H

#include <stddef.h>

// NULL on failure. rssm_calloc checks n * size for overflow. Free accepts NULL. Thread-safe.
void *rssm_alloc(size_t size);
void *rssm_calloc(size_t n, size_t size);
void *rssm_realloc(void *p, size_t size);
void  rssm_free(void *p);
char *rssm_strdup(const char *s);

// Tests: the nth call from now (1 = the next) fails, once; 0 disarms. Returns whether the last armed failure fired.
int rssm_alloc_fail_after(long n);

#endif
