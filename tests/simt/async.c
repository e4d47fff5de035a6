// Copies that run beside the threads, mbarriers, and waits for the launch before.
//
// A copy's bytes are marked from its issue to the wait for it, so an access in between is found whether the copy has
// moved them yet or not. cp.async moves at the wait; bulk copies at a drawn moment. The engine that moves bulk copies
// is a component of its own in the clocks, and its writes are ordered for those who passed the copy's mbarrier.
#include <stdlib.h>
#include <string.h>

#include "tests/simt/machine.h"

static void mark(const void *address, size_t n, unsigned char flag, bool on)
{
    size_t offset;
    if (n == 0 || !simt_locate(address, &offset)) return;
    for (size_t i = 0; i < n; i++)
        simt.state[offset + i] = (unsigned char)(on ? simt.state[offset + i] | flag : simt.state[offset + i] & ~flag);
}

// Flags of the copies that are under way, after one ended: ranges may overlap.
static void mark_all_again(void)
{
    for (simt_copy *c = simt.copies; c; c = c->next) {
        mark(c->to, c->n, BYTE_ARRIVING, true);
        if (!c->moved) mark(c->from, c->n_read, BYTE_LEAVING, true);
    }
}

static void move_bytes(simt_copy *c)
{
    memcpy(c->to, c->from, c->n_read);
    memset(c->to + c->n_read, 0, c->n - c->n_read);
    mark(c->from, c->n_read, BYTE_LEAVING, false);
    c->moved = true;
}

static void end_copy(simt_copy *c, uint32_t writer)
{
    simt_copy **link = &simt.copies;
    if (!c->moved) move_bytes(c);
    mark(c->to, c->n, BYTE_ARRIVING, false);
    simt_mark_written(c->to, c->n, writer, c->site);
    while (*link != c)
        link = &(*link)->next;
    *link = c->next;
    free(c);
    mark_all_again();
}

static void check_multiple(const void *address, uint32_t n, uint32_t multiple, uint32_t site)
{
    const unsigned past = (unsigned)(((uintptr_t)address | n) % multiple);
    if (past == 0) return;
    simt_fail(SIMT_MISALIGNED, site, "%s asks for a copy of %u bytes at %p; address and size must be multiples of %u",
              simt_owner_text(simt_owner(simt.self->index)).c, n, address, multiple);
}

static void check_target(const void *to, bool shared, uint32_t site)
{
    size_t offset;
    if (!simt_locate(to, &offset) || simt_is_shared(offset) == shared) return;
    simt_fail(SIMT_OUT_OF_BOUNDS, site, "the copy's target must be in %s memory", shared ? "shared" : "global");
}

static simt_copy *issue(simt_copy copy)
{
    simt_copy **link = &simt.copies, *c;
    if (copy.n_read) simt_access(copy.from, copy.n_read, ACCESS_LOAD, simt.self->index, copy.site, WANT_BYTES);
    simt_access(copy.to, copy.n, ACCESS_STORE, simt.self->index, copy.site, WANT_BYTES);
    simt_clock_pass(simt.self);
    c = malloc(sizeof *c);
    if (!c) abort();
    *c = copy;
    c->thread = simt.self->index;
    c->next = NULL;
    while (*link)
        link = &(*link)->next;
    *link = c;
    mark(c->to, c->n, BYTE_ARRIVING, true);
    mark(c->from, c->n_read, BYTE_LEAVING, true);
    return c;
}

// ------------------------------------------------------------------------------------------------------------ cp.async

void simt_copy_async(void *to, const void *from, uint32_t n, uint32_t n_read, simt_place at)
{
    const uint32_t site = simt_site_of_place(at);
    check_multiple(to, n, n, site);
    if (n_read) check_multiple(from, n, n, site);
    check_target(to, true, site);
    issue((simt_copy){COPY_ASYNC, to, from, n, n_read, 0, simt.self->copy_group, site, false, NULL, NULL});
}

void simt_copy_commit(void)
{
    simt.self->copy_group++;
}

void simt_copy_wait(uint32_t n_groups_left, simt_place at)
{
    const simt_thread *self = simt.self;
    (void)at;
    for (simt_copy *c = simt.copies, *next; c; c = next) {
        next = c->next;
        if (c->kind != COPY_ASYNC || c->thread != self->index) continue;
        if (c->group < self->copy_group && self->copy_group - c->group > n_groups_left) end_copy(c, self->index);
    }
}

// ------------------------------------------------------------------------------------------------------------ mbarrier

static simt_mbarrier *find_mbarrier(void *object, uint32_t site)
{
    simt_mbarrier *m = simt.mbarriers;
    while (m < simt.mbarriers + MBARRIERS && m->object != object)
        m++;
    if (object && m < simt.mbarriers + MBARRIERS) {
        if (simt.self->clock[m->init_thread] >= m->init_clock) return m;
        simt_fail(SIMT_MBARRIER, site, "%s uses an mbarrier that thread %u initialised at %s; nothing orders the two",
                  simt_owner_text(simt_owner(simt.self->index)).c, m->init_thread, simt_site_text(m->init_site).c);
    }
    size_t offset;
    if (!simt_locate(object, &offset)) simt_access(object, 8, ACCESS_ATOMIC, simt.self->index, site, WANT_BYTES);
    simt_fail(SIMT_MBARRIER, site, "%s uses an mbarrier that was not initialised",
              simt_owner_text(simt_owner(simt.self->index)).c);
    abort();
}

void simt_mbarrier_init(void *object, uint32_t n_arrivals, simt_place at)
{
    const uint32_t site = simt_site_of_place(at);
    simt_thread   *self = simt.self;
    const uint64_t bits = n_arrivals;
    simt_mbarrier *m = simt.mbarriers;

    check_multiple(object, 8, 8, site);
    check_target(object, true, site);
    simt_access(object, 8, ACCESS_STORE, self->index, site, WANT_BYTES);
    memcpy(object, &bits, sizeof bits);
    while (m < simt.mbarriers + MBARRIERS && m->object && m->object != object)
        m++;
    if (m == simt.mbarriers + MBARRIERS) abort();
    if (n_arrivals == 0) simt_fail(SIMT_MBARRIER, site, "an mbarrier needs at least one arrival per phase");
    free(m->clock);
    free(m->past);
    free(m->seen);
    *m = (simt_mbarrier){.object = object,
                         .expected = n_arrivals,
                         .pending = n_arrivals,
                         .init_thread = self->index,
                         .init_clock = self->clock[self->index],
                         .init_site = site};
    m->clock = calloc(simt.n_components, sizeof *m->clock);
    m->past = calloc(simt.n_components, sizeof *m->past);
    m->seen = malloc(simt.n_threads * sizeof *m->seen);
    if (!m->clock || !m->past || !m->seen) abort();
    for (uint32_t i = 0; i < simt.n_threads; i++)
        m->seen[i] = -2;
    simt_clock_pass(self);
}

static void end_phase_if_complete(simt_mbarrier *m)
{
    if (m->pending > 0 || m->bytes != 0) return;
    m->phase++;
    m->pending = m->expected;
    memcpy(m->past, m->clock, simt.n_components * sizeof *m->past);
    memset(m->clock, 0, simt.n_components * sizeof *m->clock);
    simt.events++;
}

void simt_mbarrier_arrive(void *object, uint32_t n_arrivals, uint32_t n_expected_bytes, simt_place at)
{
    const uint32_t site = simt_site_of_place(at);
    simt_mbarrier *m = find_mbarrier(object, site);

    simt_access(object, 8, ACCESS_ATOMIC, simt.self->index, site, WANT_BYTES);
    m->bytes += n_expected_bytes;
    if (m->bytes >= 1 << 20) simt_fail(SIMT_MBARRIER, site, "more than 2^20 - 1 bytes are expected in one phase");
    if (n_arrivals > m->pending) {
        simt_fail(SIMT_MBARRIER, site, "%s arrives %u times in phase %u, which waits for %u more of its %u arrivals",
                  simt_owner_text(simt_owner(simt.self->index)).c, n_arrivals, m->phase, m->pending, m->expected);
    }
    m->pending -= n_arrivals;
    simt_clock_join(m->clock, simt.self->clock);
    simt_clock_pass(simt.self);
    if (n_arrivals) end_phase_if_complete(m);
}

// The phase of this parity is complete: the current one has the other.
static bool passes(const simt_mbarrier *m, uint32_t parity)
{
    return (m->phase & 1) != (parity & 1);
}

bool simt_mbarrier_passes(const simt_thread *thread)
{
    return passes(thread->mbarrier, thread->parity);
}

void simt_mbarrier_passed(simt_thread *thread)
{
    simt_mbarrier *m = thread->mbarrier;
    const int32_t  phase = (int32_t)m->phase - 1; // -1: nothing is complete, and the wait was for "before the first"

    if (m->seen[thread->index] == phase) {
        simt_fail(SIMT_MBARRIER, thread->site, "%s passes the end of phase %d a second time: its parity is stale",
                  simt_owner_text(simt_owner(thread->index)).c, phase);
    }
    m->seen[thread->index] = phase;
    simt_clock_join(thread->clock, m->past);
    simt_clock_pass(thread);
}

static simt_mbarrier *begin_wait(void *object, uint32_t parity, simt_place at)
{
    simt_thread *self = simt.self;
    self->site = simt_site_of_place(at);
    self->parity = parity;
    self->mbarrier = find_mbarrier(object, self->site);
    simt_access(object, 8, ACCESS_ATOMIC, self->index, self->site, WANT_BYTES);
    return self->mbarrier;
}

int simt_mbarrier_test(void *object, uint32_t parity, simt_place at)
{
    simt_mbarrier *m = begin_wait(object, parity, at);
    if (!passes(m, parity)) {
        simt_fiber_yield(SIMT_SPINNING);
        if (!passes(m, parity)) return 0;
    }
    simt_mbarrier_passed(simt.self);
    return 1;
}

void simt_mbarrier_wait(void *object, uint32_t parity, simt_place at)
{
    if (!passes(begin_wait(object, parity, at), parity)) simt_fiber_yield(SIMT_AT_MBARRIER);
    simt_mbarrier_passed(simt.self);
}

void simt_fence_async(void)
{
    simt.self->fenced = simt.self->clock[simt.self->index];
    simt_clock_pass(simt.self);
    simt_fence_mbarrier();
}

void simt_fence_mbarrier(void)
{
    for (simt_mbarrier *m = simt.mbarriers; m < simt.mbarriers + MBARRIERS; m++)
        if (m->object && m->init_thread == simt.self->index) m->fenced = true;
}

// --------------------------------------------------------------------------------------------------------- bulk copies

// What threads of this block wrote to shared memory reaches the engine only past a proxy fence of the writer.
static void check_fenced(const void *address, uint32_t n, uint32_t site)
{
    size_t offset;
    if (!simt_locate(address, &offset) || !simt_is_shared(offset)) return;
    for (uint32_t i = 0; i < n; i++) {
        const simt_record *w = &simt.shadow[offset + i].write;
        const uint32_t     thread = w->owner & ((1u << OWNER_THREAD_BITS) - 1);
        if (w->site == 0 || w->owner >> OWNER_THREAD_BITS != simt.block_number || thread == ENGINE) continue;
        if ((w->clock & ~ATOMIC_BIT) <= simt.threads[thread].fenced) continue;
        simt_fail(SIMT_PROXY, site,
                  "a bulk copy uses shared memory that thread %u wrote at %s; without a proxy fence of "
                  "that thread the copy may see what was there before",
                  thread, simt_site_text(w->site).c);
    }
}

void simt_bulk_load(void *to, const void *from, uint32_t n, void *barrier, simt_place at)
{
    const uint32_t site = simt_site_of_place(at);
    simt_mbarrier *m = find_mbarrier(barrier, site);

    check_multiple(to, n, 16, site);
    check_multiple(from, n, 16, site);
    check_target(to, true, site);
    check_fenced(to, n, site);
    simt_access(barrier, 8, ACCESS_ATOMIC, simt.self->index, site, WANT_BYTES);
    if (!m->fenced) {
        simt_fail(SIMT_PROXY, site,
                  "a bulk copy is to complete on the mbarrier that was initialised at %s; without a "
                  "fence of that thread the copy may not see it",
                  simt_site_text(m->init_site).c);
    }
    issue((simt_copy){COPY_BULK_LOAD, to, from, n, n, 0, 0, site, false, m, NULL});
}

void simt_bulk_store(void *to, const void *from, uint32_t n, simt_place at)
{
    const uint32_t site = simt_site_of_place(at);
    check_multiple(to, n, 16, site);
    check_multiple(from, n, 16, site);
    check_target(to, false, site);
    check_fenced(from, n, site);
    issue((simt_copy){COPY_BULK_STORE, to, from, n, n, 0, simt.self->bulk_group, site, false, NULL, NULL});
}

void simt_bulk_commit(void)
{
    simt.self->bulk_group++;
}

void simt_bulk_wait(uint32_t n_groups_left, int read_only, simt_place at)
{
    simt_thread *self = simt.self;
    (void)at;
    for (simt_copy *c = simt.copies, *next; c; c = next) {
        next = c->next;
        if (c->kind != COPY_BULK_STORE || c->thread != self->index) continue;
        if (c->group >= self->bulk_group || self->bulk_group - c->group <= n_groups_left) continue;
        if (!read_only) {
            end_copy(c, self->index);
        } else if (!c->moved) {
            move_bytes(c);
            mark_all_again();
        }
    }
}

static void complete_load(simt_copy *c)
{
    simt_mbarrier *m = c->mbarrier;
    const uint32_t n = c->n, site = c->site;

    simt.engine_clock++;
    end_copy(c, ENGINE);
    m->clock[simt.n_threads] = simt.engine_clock;
    m->bytes -= n;
    if (m->bytes <= -(1 << 20)) simt_fail(SIMT_MBARRIER, site, "more bytes arrived than can be expected in one phase");
    end_phase_if_complete(m);
}

bool simt_async_advance(void)
{
    simt_copy *chosen = NULL;
    uint32_t   n = 0;
    for (simt_copy *c = simt.copies; c; c = c->next) {
        if (c->kind != COPY_BULK_LOAD) continue;
        if (simt_draw(++n) == 0) chosen = c;
    }
    if (!chosen) return false;
    complete_load(chosen);
    return true;
}

// --------------------------------------------------------------------------------------------------------------- block

static void forget_all(void)
{
    while (simt.copies) {
        simt_copy *c = simt.copies;
        simt.copies = c->next;
        mark(c->to, c->n, BYTE_ARRIVING, false);
        mark(c->from, c->n_read, BYTE_LEAVING, false);
        free(c);
    }
    for (simt_mbarrier *m = simt.mbarriers; m < simt.mbarriers + MBARRIERS; m++) {
        free(m->clock);
        free(m->past);
        free(m->seen);
        memset(m, 0, sizeof *m);
    }
}

void simt_async_begin(void)
{
    forget_all();
    simt.engine_clock = 0;
}

void simt_async_end(void)
{
    const simt_copy *c = simt.copies;
    if (c && !simt.failed) {
        simt_fail(SIMT_ASYNC_UNWAITED, c->site, "the block has ended, and nobody has waited for this copy of %u bytes",
                  c->n);
    }
    forget_all();
}

void simt_dependency_wait(void)
{
    simt.self->clock[simt.n_threads + 1] = 1;
}

// The launch behind this one may begin; what it may see is its own wait's business.
void simt_dependency_trigger(void) {}
