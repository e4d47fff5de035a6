// Judges every access: bounds, initialisation, copies under way, races, dependencies between launches.
#include <stdio.h>
#include <string.h>

#include "tests/simt/machine.h"

typedef enum order { ORDERED, RACING, NOT_WAITED_FOR, COPY_NOT_WAITED_FOR } order;

// Is what `r` tells ordered before what component `who` does now?
static order order_of(const simt_record *r, size_t offset, uint32_t who)
{
    const uint32_t  block = r->owner >> OWNER_THREAD_BITS, owner = r->owner & ((1u << OWNER_THREAD_BITS) - 1);
    const uint32_t  clock = r->clock & ~ATOMIC_BIT;
    const uint32_t *own;

    if (r->site == 0) return ORDERED;
    if (simt_is_shared(offset) && block != simt.block_number) return ORDERED;
    if (block < simt.complete_blocks) return ORDERED;
    own = simt.threads[who == ENGINE ? 0 : who].clock;
    if (block < simt.first_block_number) {
        return who == ENGINE || own[simt.n_threads + 1] ? ORDERED : NOT_WAITED_FOR;
    }
    if (block != simt.block_number) return RACING;
    if (owner == who) return ORDERED;
    if (who == ENGINE) return ORDERED; // judged when the copy was asked for
    if (owner == ENGINE) return own[simt.n_threads] >= clock ? ORDERED : COPY_NOT_WAITED_FOR;
    return own[owner] >= clock ? ORDERED : RACING;
}

static const char *verb(simt_access_kind kind)
{
    return kind == ACCESS_LOAD ? "reads" : kind == ACCESS_STORE ? "writes" : "updates atomically";
}

// "byte 12 of a buffer of 4096 bytes" or "of the 512 bytes of shared memory".
static simt_text name_byte(size_t offset)
{
    simt_text       text;
    size_t          n;
    const long long at = (long long)offset - (long long)simt_buffer_of(offset, &n);
    if (simt_is_shared(offset)) {
        snprintf(text.c, sizeof text.c, "byte %lld of the block's %zu bytes of shared memory", at, n);
    } else {
        snprintf(text.c, sizeof text.c, "byte %lld of a buffer of %zu bytes", at, n);
    }
    return text;
}

static void fail_conflict(order why, const simt_record *r, size_t offset, simt_access_kind kind, uint32_t who,
                          uint32_t site, bool other_writes)
{
    const simt_defect defect = why == NOT_WAITED_FOR        ? SIMT_DEPENDENCY
                               : why == COPY_NOT_WAITED_FOR ? SIMT_ASYNC_UNWAITED
                               : simt_is_shared(offset)     ? SIMT_SHARED_RACE
                                                            : SIMT_GLOBAL_RACE;
    simt_fail(defect, site, "%s %s %s, which %s %s at %s%s", simt_owner_text(simt_owner(who)).c, verb(kind),
              name_byte(offset).c, simt_owner_text(r->owner).c,
              r->clock & ATOMIC_BIT ? "updated atomically"
              : other_writes        ? "wrote"
                                    : "read",
              simt_site_text(r->site).c,
              why == NOT_WAITED_FOR        ? " in the launch before, without a wait for it"
              : why == COPY_NOT_WAITED_FOR ? ", without a wait for that copy"
                                           : "; nothing orders the two");
}

static void check_state(const void *address, size_t n, size_t offset, simt_access_kind kind, uint32_t who,
                        uint32_t site, simt_wanted wanted)
{
    const unsigned char *state = simt.state + offset;
    unsigned char        all = 0xff, any = 0;
    size_t               at = 0;

    for (size_t i = 0; i < n; i++)
        all &= state[i], any |= state[i];
    const bool arriving = any & BYTE_ARRIVING, leaving = any & BYTE_LEAVING && kind != ACCESS_LOAD;
    bool       unwritten = kind != ACCESS_STORE && !(all & BYTE_WRITTEN) && wanted != WANT_NONE;
    if (unwritten && wanted == WANT_WORDS) {
        unwritten = false;
        for (size_t i = 0; i + 4 <= n; i += 4) {
            unsigned char word = state[i] | state[i + 1] | state[i + 2] | state[i + 3];
            if (!(word & BYTE_WRITTEN)) unwritten = true;
        }
    }
    if ((all & BYTE_EXISTS) && !arriving && !leaving && !unwritten) return;

    const simt_text own = simt_owner_text(simt_owner(who));
    const int       flag = !(all & BYTE_EXISTS) ? BYTE_EXISTS
                           : arriving           ? BYTE_ARRIVING
                           : leaving            ? BYTE_LEAVING
                                                : BYTE_WRITTEN;
    const bool      missing = flag == BYTE_EXISTS || flag == BYTE_WRITTEN;
    while (at + 1 < n && ((state[at] & flag) != 0) == missing)
        at++;
    const simt_text byte = name_byte(offset + at);
    if (!(all & BYTE_EXISTS)) {
        simt_fail(SIMT_OUT_OF_BOUNDS, site, "%s %s %zu bytes at %p: %s, which does not exist", own.c, verb(kind), n,
                  address, byte.c);
    } else if (arriving) {
        simt_fail(SIMT_ASYNC_UNWAITED, site, "%s %s %s, where an asynchronous copy is still under way", own.c,
                  verb(kind), byte.c);
    } else if (leaving) {
        simt_fail(SIMT_ASYNC_UNWAITED, site, "%s %s %s, from where an asynchronous copy is still reading", own.c,
                  verb(kind), byte.c);
    } else {
        simt_fail(SIMT_UNINITIALISED, site, "%s reads %s, which nothing has written", own.c, byte.c);
    }
}

// Plain reads and atomics since the last plain write. Two of one kind do not conflict.
static void record_read(simt_shadow *s, simt_record r, size_t offset, uint32_t who)
{
    int replaced = -1;
    for (int i = 0; i < READERS && replaced < 0; i++) {
        const simt_record *old = &s->reads[i];
        // An access of the same kind that is ordered before this one is covered by it.
        if (old->site == 0 || ((old->clock ^ r.clock) < ATOMIC_BIT && order_of(old, offset, who) == ORDERED))
            replaced = i;
    }
    // Three concurrent readers: keep two of different warps.
    if (replaced < 0) replaced = s->reads[0].owner / SIMT_WARP == r.owner / SIMT_WARP ? 0 : 1;
    s->reads[replaced] = r;
}

static bool conflicts(const simt_record *r, simt_access_kind kind)
{
    return kind == ACCESS_STORE || (kind == ACCESS_ATOMIC) == !(r->clock & ATOMIC_BIT);
}

static void judge_byte(size_t offset, simt_access_kind kind, uint32_t who, simt_record now)
{
    simt_shadow *s = simt.shadow + offset;
    order        o = order_of(&s->write, offset, who);

    if (o != ORDERED) fail_conflict(o, &s->write, offset, kind, who, now.site, true);
    for (int i = 0; i < READERS; i++) {
        if (s->reads[i].site == 0) break;
        o = order_of(&s->reads[i], offset, who);
        if (o == ORDERED || (o == RACING && !conflicts(&s->reads[i], kind))) continue;
        if (kind == ACCESS_LOAD && !(s->reads[i].clock & ATOMIC_BIT)) continue;
        fail_conflict(o, &s->reads[i], offset, kind, who, now.site, false);
    }
    if (kind != ACCESS_STORE) {
        record_read(s, now, offset, who);
        return;
    }
    s->write = now;
    memset(s->reads, 0, sizeof s->reads);
}

void simt_access(const void *address, size_t n, simt_access_kind kind, uint32_t who, uint32_t site, simt_wanted wanted)
{
    size_t offset;
    simt.counts.n_accesses++;
    if (!simt_locate(address, &offset)) {
        simt_fail(SIMT_OUT_OF_BOUNDS, site, "%s %s %zu bytes at %p, which is in no buffer",
                  simt_owner_text(simt_owner(who)).c, verb(kind), n, address);
        return;
    }
    check_state(address, n, offset, kind, who, site, wanted);
    const uint32_t    clock = who == ENGINE ? simt.engine_clock : simt.threads[who].clock[who];
    const simt_record now = {site, kind == ACCESS_ATOMIC ? clock | ATOMIC_BIT : clock, simt_owner(who)};
    for (size_t i = 0; i < n; i++) {
        judge_byte(offset + i, kind, who, now);
        if (kind != ACCESS_LOAD) simt.state[offset + i] |= BYTE_WRITTEN;
    }
}

static void check_aligned(const void *address, uint32_t n, uint32_t site)
{
    if ((uintptr_t)address % n == 0) return;
    simt_fail(SIMT_MISALIGNED, site,
              "%s accesses %u bytes at once at an address that is %u bytes past a multiple of %u",
              simt_owner_text(simt_owner(simt.self->index)).c, n, (unsigned)((uintptr_t)address % n), n);
}

static void check_space(const void *address, simt_space space, uint32_t site)
{
    size_t offset;
    if (space == SIMT_ANY || !simt_locate(address, &offset) || simt_is_shared(offset) == (space == SIMT_SHARED)) return;
    simt_fail(SIMT_OUT_OF_BOUNDS, site, "an instruction for %s memory is given an address in %s memory",
              space == SIMT_SHARED ? "shared" : "global", space == SIMT_SHARED ? "global" : "shared");
}

void simt_load(void *value, const void *from, uint32_t n, simt_space space, simt_place at)
{
    const uint32_t site = simt_site_of_place(at);
    check_aligned(from, n, site);
    check_space(from, space, site);
    simt_access(from, n, ACCESS_LOAD, simt.self->index, site, WANT_BYTES);
    memcpy(value, from, n);
}

void simt_store(void *to, const void *value, uint32_t n, simt_space space, simt_place at)
{
    const uint32_t site = simt_site_of_place(at);
    check_aligned(to, n, site);
    check_space(to, space, site);
    simt_access(to, n, ACCESS_STORE, simt.self->index, site, WANT_BYTES);
    memcpy(to, value, n);
}

void simt_copy_vector(void *to, const void *from, uint32_t n)
{
    size_t         offset;
    const uint32_t site = simt_site_of_pc(__builtin_return_address(0));
    check_aligned(from, n, site);
    check_aligned(to, n, site);
    if (simt_locate(from, &offset)) simt_access(from, n, ACCESS_LOAD, simt.self->index, site, WANT_BYTES);
    if (simt_locate(to, &offset)) simt_access(to, n, ACCESS_STORE, simt.self->index, site, WANT_BYTES);
    memmove(to, from, n);
}

static uint32_t apply(simt_atomic op, uint32_t old, uint32_t operand, uint32_t expected)
{
    float a, b;
    switch (op) {
    case SIMT_ATOMIC_OR:
        return old | operand;
    case SIMT_ATOMIC_AND:
        return old & operand;
    case SIMT_ATOMIC_ADD:
        return old + operand;
    case SIMT_ATOMIC_ADD_F32:
        memcpy(&a, &old, 4), memcpy(&b, &operand, 4);
        a += b;
        memcpy(&old, &a, 4);
        return old;
    case SIMT_ATOMIC_MIN:
        return operand < old ? operand : old;
    case SIMT_ATOMIC_MAX:
        return operand > old ? operand : old;
    case SIMT_ATOMIC_COMPARE:
        return old == expected ? operand : old;
    case SIMT_ATOMIC_EXCHANGE:
        break;
    }
    return operand;
}

uint32_t simt_atomic_word(simt_atomic op, void *word, uint32_t operand, uint32_t expected, simt_place at)
{
    const uint32_t site = simt_site_of_place(at);
    uint32_t       old;
    check_aligned(word, 4, site);
    simt_access(word, 4, ACCESS_ATOMIC, simt.self->index, site, WANT_BYTES);
    memcpy(&old, word, 4);
    const uint32_t value = apply(op, old, operand, expected);
    memcpy(word, &value, 4);
    simt.events++;
    return old;
}

void simt_mark_written(void *address, size_t n, uint32_t who, uint32_t site)
{
    size_t            offset;
    const uint32_t    clock = who == ENGINE ? simt.engine_clock : simt.threads[who].clock[who];
    const simt_record now = {site, clock, simt_owner(who)};
    if (!simt_locate(address, &offset)) return;
    for (size_t i = 0; i < n; i++) {
        simt.state[offset + i] |= BYTE_WRITTEN;
        simt.shadow[offset + i].write = now;
        memset(simt.shadow[offset + i].reads, 0, sizeof simt.shadow->reads);
    }
}
