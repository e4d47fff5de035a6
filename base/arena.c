// A bump arena: a list of blocks, newest first, each at least twice the one before up to a limit.
//
// Invariants. A1: every pointer handed out is aligned to 16 and zeroed. A2: a failed allocation leaves the arena as it
// was. Threads: one at a time per arena.
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { ALIGNMENT = 16, FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 18 }; // bytes; a larger request gets its own block

typedef struct rssm_arena_block {
    struct rssm_arena_block *next;
    size_t                   size, used; // of data
    _Alignas(ALIGNMENT) unsigned char data[];
} rssm_arena_block;

_Static_assert(sizeof(rssm_arena_block) % ALIGNMENT == 0, "data begins aligned");

static rssm_arena_block *add_block(rssm_arena *a, size_t at_least)
{
    size_t            size = a->head ? a->head->size * 2 : FIRST_BLOCK;
    rssm_arena_block *block;

    if (size > LARGEST_BLOCK) size = LARGEST_BLOCK;
    if (size < at_least) size = at_least;
    if (size > SIZE_MAX - sizeof *block) return NULL;
    block = rssm_calloc(1, sizeof *block + size);
    if (!block) return NULL;
    block->size = size;
    block->next = a->head;
    a->head = block;
    return block;
}

void *rssm_arena_alloc(rssm_arena *a, size_t size)
{
    rssm_arena_block *block = a->head;

    if (size > SIZE_MAX - ALIGNMENT) return NULL;
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (size == 0) size = ALIGNMENT;
    if (!block || block->size - block->used < size) block = add_block(a, size);
    if (!block) return NULL;
    void *p = block->data + block->used;
    block->used += size;
    return p;
}

char *rssm_arena_strndup(rssm_arena *a, const char *s, size_t n)
{
    if (n == SIZE_MAX) return NULL;
    char *copy = rssm_arena_alloc(a, n + 1);
    if (copy && n) memcpy(copy, s, n);
    return copy;
}

char *rssm_arena_printf(rssm_arena *a, const char *format, ...)
{
    va_list arguments;
    char   *text = NULL;

    va_start(arguments, format);
    const int n = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (n < 0) return NULL;
    text = rssm_arena_alloc(a, (size_t)n + 1);
    if (!text) return NULL;
    va_start(arguments, format);
    vsnprintf(text, (size_t)n + 1, format, arguments);
    va_end(arguments);
    return text;
}

void rssm_arena_free(rssm_arena *a)
{
    while (a->head) {
        rssm_arena_block *next = a->head->next;
        rssm_free(a->head);
        a->head = next;
    }
}
