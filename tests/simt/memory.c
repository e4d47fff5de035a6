// The arena: device memory between guards, and the block's shared memory at its beginning.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/simt/machine.h"

simt_machine simt;

// What unwritten memory holds: NaN in every format.
enum { FILL = 0xff };

typedef struct buffer {
    size_t at, n;
    bool   live;
} buffer;

static struct {
    buffer *items;
    size_t  n, room;
} buffers;

static void *reserve(size_t n)
{
    void *pages = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) abort();
    return pages;
}

void simt_reset(void)
{
    const size_t sizes[] = {ARENA_BYTES, ARENA_BYTES, ARENA_BYTES * sizeof *simt.shadow};
    if (simt.arena) {
        munmap(simt.arena, sizes[0]);
        munmap(simt.state, sizes[1]);
        munmap(simt.shadow, sizes[2]);
    }
    simt.arena = reserve(sizes[0]);
    simt.state = reserve(sizes[1]);
    simt.shadow = reserve(sizes[2]);
    simt.used = GLOBAL_AT;
    buffers.n = 0;
    simt.block_number = simt.first_block_number = simt.complete_blocks = 1;
    if (!simt.threads) simt.threads = calloc(THREADS_MAX, sizeof *simt.threads);
    if (!simt.threads) abort();
}

rssm_status simt_alloc(size_t n_bytes, void **out_pointer, rssm_diag *diag)
{
    const size_t at = (simt.used + GUARD_BYTES + 255) / 256 * 256;

    if (!simt.arena) simt_reset();
    if (n_bytes == 0 || at + n_bytes + GUARD_BYTES > ARENA_BYTES) {
        return RSSM_FAIL(diag, RSSM_E_DEVICE_MEMORY, "%zu bytes do not fit into the emulator's arena", n_bytes);
    }
    if (buffers.n == buffers.room) {
        buffers.room = 2 * buffers.room + 64;
        buffers.items = realloc(buffers.items, buffers.room * sizeof *buffers.items);
        if (!buffers.items) abort();
    }
    buffers.items[buffers.n++] = (buffer){at, n_bytes, true};
    memset(simt.state + at, BYTE_EXISTS, n_bytes);
    memset(simt.arena + at, FILL, n_bytes);
    simt.used = at + n_bytes;
    *out_pointer = simt.arena + at;
    return RSSM_OK;
}

void simt_free(void *pointer)
{
    if (!pointer) return;
    const size_t at = (size_t)((unsigned char *)pointer - simt.arena);
    for (size_t i = 0; i < buffers.n; i++) {
        if (buffers.items[i].at != at || !buffers.items[i].live) continue;
        memset(simt.state + at, 0, buffers.items[i].n);
        buffers.items[i].live = false;
        // What lies behind everything alive can be given out again: shadows of it hold only past records.
        while (buffers.n > 0 && !buffers.items[buffers.n - 1].live)
            buffers.n--;
        simt.used = buffers.n ? buffers.items[buffers.n - 1].at + buffers.items[buffers.n - 1].n : GLOBAL_AT;
        return;
    }
    abort();
}

// Two NaN half-words; -1 is an integer.
static bool is_poison(const unsigned char *word)
{
    if ((word[0] & word[1] & word[2] & word[3]) == 0xff) return false;
    for (int half = 0; half < 2; half++) {
        const unsigned bits = word[2 * half] | (unsigned)(word[2 * half + 1] & 0x7f) << 8;
        if (bits < 0x7f81) return false;
    }
    return true;
}

void simt_upload(void *to, const void *from, size_t n_bytes, bool poison)
{
    const size_t         at = (size_t)((unsigned char *)to - simt.arena);
    const unsigned char *bytes = from;

    memcpy(to, from, n_bytes);
    memset(simt.state + at, BYTE_EXISTS | BYTE_WRITTEN, n_bytes);
    // Of an array of odd size the word before others may have a part of the last element.
    bool mixed = n_bytes % 4 != 0;
    for (size_t i = 0; poison && i + 4 <= n_bytes; i += 4) {
        const bool dead = is_poison(bytes + i);
        if (dead && !mixed) memset(simt.state + at + i, BYTE_EXISTS, 4);
        mixed = n_bytes % 4 != 0 && !dead;
    }
    simt.complete_blocks = simt.block_number; // the host has waited for all launches
}

void simt_download(void *to, const void *from, size_t n_bytes)
{
    memcpy(to, from, n_bytes);
    simt.complete_blocks = simt.block_number;
}

bool simt_locate(const void *address, size_t *out_offset)
{
    const size_t offset = (size_t)((const unsigned char *)address - simt.arena);
    const size_t in_statics = (size_t)((const unsigned char *)address - simt.statics);
    if (offset < ARENA_BYTES)
        *out_offset = offset;
    else if (in_statics < simt.n_statics)
        *out_offset = STATIC_AT + in_statics;
    else
        return false;
    return true;
}

bool simt_is_shared(size_t offset)
{
    return offset < GLOBAL_AT;
}

void simt_shared_begin(void)
{
    memset(simt.state, 0, DYNAMIC_AT + DYNAMIC_BYTES);
    memset(simt.state + DYNAMIC_AT + SHARED_SKEW, BYTE_EXISTS, simt.options.shared_bytes);
    memset(simt.arena + DYNAMIC_AT + SHARED_SKEW, FILL, simt.options.shared_bytes);
    if (simt.n_statics == 0) return;
    memset(simt.state + STATIC_AT, BYTE_EXISTS, simt.n_statics);
    memset(simt.statics, FILL, simt.n_statics);
}

size_t simt_buffer_of(size_t offset, size_t *out_bytes)
{
    size_t best = 0, best_distance = SIZE_MAX;
    *out_bytes = 0;
    if (simt_is_shared(offset)) {
        *out_bytes = offset >= STATIC_AT ? simt.n_statics : simt.options.shared_bytes;
        return offset >= STATIC_AT ? STATIC_AT : DYNAMIC_AT + SHARED_SKEW;
    }
    for (size_t i = 0; i < buffers.n; i++) {
        const buffer *b = &buffers.items[i];
        const size_t distance = offset < b->at ? b->at - offset : offset < b->at + b->n ? 0 : offset - b->at - b->n + 1;
        if (!b->live || distance >= best_distance) continue;
        best = b->at, best_distance = distance, *out_bytes = b->n;
    }
    return best;
}

void *simt_shared_memory(void)
{
    return simt.arena + DYNAMIC_AT + SHARED_SKEW;
}

// The 32-bit address of shared memory is its place in the arena: static memory has one too.
uint32_t simt_shared_address(const void *object, simt_place at)
{
    size_t offset = 0;
    if (!simt_locate(object, &offset) || !simt_is_shared(offset)) {
        simt_fail(SIMT_OUT_OF_BOUNDS, simt_site_of_place(at),
                  "an address in shared memory was asked for of an object "
                  "that is not there");
    }
    return (uint32_t)offset;
}
