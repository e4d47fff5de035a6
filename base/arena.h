// A bump arena for work that is thrown away as a whole: a parse, a candidate. Not thread-safe.
#ifndef RSSM_BASE_ARENA_H
#define RSSM_BASE_ARENA_H

#include <stddef.h>

typedef struct rssm_arena {
    struct rssm_arena_block *head;
} rssm_arena;   // zero-initialise

void *rssm_arena_alloc(rssm_arena *a, size_t size);   // zeroed, aligned to 16; NULL on failure
char *rssm_arena_strndup(rssm_arena *a, const char *s, size_t n);
char *rssm_arena_printf(rssm_arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
void  rssm_arena_free(rssm_arena *a);                 // frees everything; the arena is empty and usable again

#endif
