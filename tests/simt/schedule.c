// Runs a launch: blocks in a shuffled order, warps in a drawn one, barriers, and what is wrong when nobody can go on.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simt/machine.h"

enum { SPINS_MAX = 20000 }; // rounds in which threads only asked whether something had come

uint32_t simt_draw(uint32_t n)
{
    simt.random += 0x9e3779b97f4a7c15u;
    uint64_t z = simt.random;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)(((z >> 32) * n) >> 32);
}

void simt_clock_join(uint32_t *into, const uint32_t *from)
{
    for (uint32_t i = 0; i < simt.n_components; i++)
        into[i] = into[i] > from[i] ? into[i] : from[i];
}

void simt_clock_pass(simt_thread *thread)
{
    thread->clock[thread->index]++;
}

uint32_t simt_owner(uint32_t thread)
{
    return simt.block_number << OWNER_THREAD_BITS | thread;
}

uint32_t simt_thread_index(void)
{
    return simt.self->index;
}

uint32_t simt_block_index(int axis)
{
    return simt.block[axis];
}

uint32_t simt_grid_size(int axis)
{
    return simt.options.grid[axis];
}

// ----------------------------------------------------------------------------------------------------------- barriers

// Within a warp, .aligned barriers are one instruction.
static void check_aligned_arrival(const simt_thread *self, uint32_t id)
{
    const uint32_t first = self->index / SIMT_WARP * SIMT_WARP;
    for (uint32_t i = first; i < first + SIMT_WARP && i < simt.n_threads; i++) {
        const simt_thread *t = &simt.threads[i];
        if (t == self || t->state != SIMT_AT_BARRIER) continue;
        if (t->barrier == id && simt_same_line(t->site, self->site)) continue;
        simt_fail(SIMT_DIVERGENT_BARRIER, self->site, "%s waits here, and lane %u of its warp at %s",
                  simt_owner_text(simt_owner(self->index)).c, i % SIMT_WARP, simt_site_text(t->site).c);
    }
}

static void release_barrier(uint32_t id)
{
    simt_barrier_state *b = &simt.barriers[id];
    for (uint32_t i = 0; i < simt.n_threads; i++) {
        simt_thread *t = &simt.threads[i];
        if (t->state != SIMT_AT_BARRIER || t->barrier != id) continue;
        simt_clock_join(t->clock, b->clock);
        simt_clock_pass(t);
        t->state = SIMT_READY;
    }
    b->arrived = 0;
    memset(b->clock, 0, simt.n_components * sizeof *b->clock);
    simt.events++;
}

// True: this arrival was the last, and the barrier is open.
static bool arrive(uint32_t id, uint32_t n_threads, simt_place at, bool waits)
{
    simt_thread        *self = simt.self;
    const uint32_t      wanted = n_threads ? n_threads : simt.n_threads;
    simt_barrier_state *b = &simt.barriers[id % BARRIERS];

    self->site = simt_site_of_place(at);
    if (id >= BARRIERS || wanted % SIMT_WARP != 0 || wanted > (simt.n_threads + 31) / 32 * 32) {
        simt_fail(SIMT_DIVERGENT_BARRIER, self->site,
                  "barrier %u of %u threads: there are %d barriers, for whole warps "
                  "of the block's %u threads",
                  id, wanted, BARRIERS, simt.n_threads);
    }
    if (b->arrived && b->expected != wanted) {
        simt_fail(SIMT_DIVERGENT_BARRIER, self->site, "barrier %u is for %u threads here and for %u at %s", id, wanted,
                  b->expected, simt_site_text(b->site).c);
    }
    if (waits) check_aligned_arrival(self, id);
    b->expected = wanted;
    b->site = self->site;
    simt_clock_join(b->clock, self->clock);
    simt_clock_pass(self);
    self->barrier = id;
    if (waits) self->state = SIMT_AT_BARRIER;
    if (++b->arrived < wanted) return false;
    release_barrier(id);
    return true;
}

void simt_barrier(uint32_t id, uint32_t n_threads, simt_place at)
{
    // The last to come yields as well: the order of warps behind a barrier is drawn anew.
    simt_fiber_yield(arrive(id, n_threads, at, true) ? SIMT_READY : SIMT_AT_BARRIER);
}

void simt_arrive(uint32_t id, uint32_t n_threads, simt_place at)
{
    arrive(id, n_threads, at, false);
}

// ---------------------------------------------------------------------------------------------------------- warp lanes

static simt_thread *lane_of(uint32_t first, uint32_t lane)
{
    return first + lane < simt.n_threads ? &simt.threads[first + lane] : NULL;
}

// All lanes of the mask at the same operation?
static bool all_lanes_met(const simt_warp_op *op, uint32_t first)
{
    for (uint32_t lane = 0; lane < SIMT_WARP; lane++) {
        const simt_thread *t = lane_of(first, lane);
        if (!(op->mask >> lane & 1)) continue;
        if (!t || t->state == SIMT_DONE) {
            simt_fail(SIMT_ABSENT_LANE, simt_site_of_place(op->at), "%s waits for lane %u, which %s",
                      simt_owner_text(simt_owner(simt.self->index)).c, lane, t ? "has ended" : "does not exist");
        }
        if (t->state != SIMT_AT_WARP || t->op->kind != op->kind || t->op->mask != op->mask) return false;
    }
    return true;
}

static void check_one_instruction(simt_warp_op *ops[SIMT_WARP], uint32_t first)
{
    uint32_t reference = 0;
    while (!ops[reference])
        reference++;
    for (uint32_t lane = reference + 1; lane < SIMT_WARP; lane++) {
        if (!ops[lane]) continue;
        const uint32_t a = simt_site_of_place(ops[reference]->at), b = simt_site_of_place(ops[lane]->at);
        if (simt_same_line(a, b)) continue;
        simt_fail(SIMT_ABSENT_LANE, b,
                  "lane %u of warp %u is at this instruction and lane %u at the one at %s; it is one "
                  "for all its lanes",
                  lane, first / SIMT_WARP, reference, simt_site_text(a).c);
    }
}

static void order_lanes(simt_warp_op *ops[SIMT_WARP], uint32_t first)
{
    uint32_t joined[THREADS_MAX + 2] = {0};
    for (uint32_t lane = 0; lane < SIMT_WARP; lane++)
        if (ops[lane]) simt_clock_join(joined, simt.threads[first + lane].clock);
    for (uint32_t lane = 0; lane < SIMT_WARP; lane++) {
        if (!ops[lane]) continue;
        simt_clock_join(simt.threads[first + lane].clock, joined);
        simt_clock_pass(&simt.threads[first + lane]);
    }
}

void simt_warp(simt_warp_op *op)
{
    simt_thread   *self = simt.self;
    const uint32_t first = self->index / SIMT_WARP * SIMT_WARP, lane = self->index % SIMT_WARP;
    simt_warp_op  *ops[SIMT_WARP] = {NULL};

    simt.counts.n_warp_ops++;
    self->site = simt_site_of_place(op->at);
    self->op = op;
    if (!(op->mask >> lane & 1)) {
        simt_fail(SIMT_ABSENT_LANE, self->site, "%s calls with the mask 0x%08x, which its lane %u is not in",
                  simt_owner_text(simt_owner(self->index)).c, op->mask, lane);
    }
    self->state = SIMT_AT_WARP;
    if (!all_lanes_met(op, first)) {
        simt_fiber_yield(SIMT_AT_WARP);
        return;
    }
    for (uint32_t i = 0; i < SIMT_WARP; i++)
        if (op->mask >> i & 1) ops[i] = simt.threads[first + i].op;
    if (op->kind != SIMT_WARP_SYNC) check_one_instruction(ops, first);
    if (op->kind == SIMT_WARP_SYNC)
        order_lanes(ops, first);
    else if (op->kind < SIMT_TRANSPOSE)
        simt_warp_resolve(ops, first);
    else
        simt_matrix_resolve(ops, first);
    for (uint32_t i = 0; i < SIMT_WARP; i++)
        if (ops[i]) simt.threads[first + i].state = SIMT_READY;
    simt.events++;
}

// --------------------------------------------------------------------------------------------------------------- block

// Runs every ready lane of one warp, from a drawn lane on. False: there was none.
static bool run_warp(uint32_t warp)
{
    const uint32_t first = warp * SIMT_WARP,
                   n = simt.n_threads - first < SIMT_WARP ? simt.n_threads - first : SIMT_WARP;
    const uint32_t start = simt_draw(n);
    bool           ran = false;
    for (uint32_t i = 0; i < n && !simt.failed; i++) {
        simt_thread *t = &simt.threads[first + (start + i) % n];
        if (t->state == SIMT_AT_MBARRIER && simt_mbarrier_passes(t)) t->state = SIMT_READY;
        if (t->state != SIMT_READY) continue;
        ran = true;
        simt_fiber_run(t);
    }
    return ran;
}

static bool run_some_warp(void)
{
    const uint32_t n_warps = (simt.n_threads + SIMT_WARP - 1) / SIMT_WARP, start = simt_draw(n_warps);
    for (uint32_t i = 0; i < n_warps; i++)
        if (run_warp((start + i) % n_warps)) return true;
    return false;
}

static void begin_block(uint32_t number, const uint32_t place[3])
{
    const size_t n = simt.n_components;

    simt.block_number = number;
    memcpy(simt.block, place, sizeof simt.block);
    memset(simt.clocks, 0, (simt.n_threads + BARRIERS) * n * sizeof *simt.clocks);
    for (uint32_t i = 0; i < simt.n_threads; i++) {
        simt_thread *t = &simt.threads[i];
        t->index = i;
        t->state = SIMT_READY;
        t->clock = simt.clocks + i * n;
        t->clock[i] = 1;
        t->clock[simt.n_threads + 1] = !simt.options.dependent;
        t->fenced = t->copy_group = t->bulk_group = 0;
        simt_fiber_prepare(t);
    }
    for (int i = 0; i < BARRIERS; i++) {
        simt.barriers[i] = (simt_barrier_state){.clock = simt.clocks + (simt.n_threads + (size_t)i) * n};
    }
    simt_shared_begin();
    simt_async_begin();
}

static void run_block(uint32_t number, const uint32_t place[3])
{
    uint64_t seen = 0;
    int      spins = 0;

    begin_block(number, place);
    while (!simt.failed) {
        if (simt_draw(4) == 0) simt_async_advance();
        if (run_some_warp()) continue;
        if (simt_async_advance()) continue;
        bool spinning = false;
        for (uint32_t i = 0; i < simt.n_threads; i++) {
            simt_thread *t = &simt.threads[i];
            if (t->state != SIMT_SPINNING) continue;
            t->state = SIMT_READY;
            spinning = true;
        }
        if (spinning && (simt.events != seen || ++spins < SPINS_MAX)) {
            if (simt.events != seen) spins = 0;
            seen = simt.events;
            continue;
        }
        bool done = true;
        for (uint32_t i = 0; i < simt.n_threads; i++) {
            if (spinning && simt.threads[i].state == SIMT_READY) simt.threads[i].state = SIMT_SPINNING;
            done = done && simt.threads[i].state == SIMT_DONE;
        }
        if (done) break;
        simt_diagnose();
    }
    simt_async_end();
    simt.counts.n_blocks++;
}

static void shuffle(uint32_t *order, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    for (uint32_t i = n; i > 1; i--) {
        const uint32_t j = simt_draw(i), t = order[i - 1];
        order[i - 1] = order[j];
        order[j] = t;
    }
}

bool simt_launch(const simt_kernel *kernel, const simt_launch_options *options, const void *args,
                 simt_report *out_report)
{
    const uint32_t *g = options->grid, n_blocks = g[0] * g[1] * g[2];
    uint32_t       *order = malloc((n_blocks + 1) * sizeof *order);

    memset(out_report, 0, sizeof *out_report);
    simt.kernel = kernel;
    simt.entry = simt_kernel_entry(kernel);
    simt.args = args;
    simt.n_args = simt_kernel_args_bytes(kernel);
    simt.options = *options;
    simt.n_threads = options->block[0] * options->block[1] * options->block[2];
    simt.n_components = simt.n_threads + 2;
    if (!order || n_blocks == 0 || simt.n_threads == 0 || simt.n_threads > THREADS_MAX ||
        options->shared_bytes > DYNAMIC_BYTES - SHARED_SKEW)
        abort();
    simt_kernel_image(kernel, &simt.image, &simt.image_end);
    simt_kernel_statics(kernel, &simt.statics, &simt.n_statics);
    simt.random = options->seed;
    simt.failed = false;
    simt.report = out_report;
    memset(&simt.counts, 0, sizeof simt.counts);
    simt.clocks = malloc((simt.n_threads + BARRIERS) * (size_t)simt.n_components * sizeof *simt.clocks);
    if (!simt.clocks) abort();
    simt.first_block_number = simt.block_number + 1;
    if (!options->dependent) simt.complete_blocks = simt.first_block_number; // a stream's launches run one by one
    shuffle(order, n_blocks);
    for (uint32_t i = 0; i < n_blocks && !simt.failed; i++) {
        const uint32_t b = order[i], place[3] = {b % g[0], b / g[0] % g[1], b / g[0] / g[1]};
        run_block(simt.first_block_number + i, place);
    }
    simt.block_number = simt.first_block_number + n_blocks;
    free(simt.clocks);
    free(order);
    return !simt.failed;
}

simt_counts simt_last_counts(void)
{
    return simt.counts;
}
