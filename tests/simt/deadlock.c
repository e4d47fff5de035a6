// Why no thread of a block can go on: lanes that are missing, a barrier that not all reach, or a deadlock.
#include <stdio.h>

#include "tests/simt/machine.h"

static const char *waiting_for(simt_state state)
{
    switch (state) {
    case SIMT_AT_WARP:
        return "waits for other lanes";
    case SIMT_AT_BARRIER:
        return "waits at a barrier";
    case SIMT_AT_MBARRIER:
        return "waits for an mbarrier";
    case SIMT_SPINNING:
        return "asks for an mbarrier again and again";
    default:
        return "has ended";
    }
}

static simt_text where_is(const simt_thread *t)
{
    simt_text text;
    if (t->state == SIMT_DONE)
        snprintf(text.c, sizeof text.c, "has ended");
    else
        snprintf(text.c, sizeof text.c, "%s at %.200s", waiting_for(t->state), simt_site_text(t->site).c);
    return text;
}

static simt_thread *find_waiting(simt_state state)
{
    for (uint32_t i = 0; i < simt.n_threads; i++)
        if (simt.threads[i].state == state) return &simt.threads[i];
    return NULL;
}

static void diagnose_lanes(const simt_thread *t)
{
    const uint32_t first = t->index / SIMT_WARP * SIMT_WARP;
    for (uint32_t lane = 0; lane < SIMT_WARP; lane++) {
        const simt_thread *other = first + lane < simt.n_threads ? &simt.threads[first + lane] : NULL;
        if (!(t->op->mask >> lane & 1) || !other) continue;
        if (other->state == SIMT_AT_WARP && other->op->kind == t->op->kind && other->op->mask == t->op->mask) continue;
        simt_fail(t->op->kind == SIMT_WARP_SYNC ? SIMT_DIVERGENT_BARRIER : SIMT_ABSENT_LANE, t->site,
                  "%s waits for lane %u, which %s%s", simt_owner_text(simt_owner(t->index)).c, lane, where_is(other).c,
                  other->state == SIMT_AT_WARP ? " (another operation or mask)" : "");
        return;
    }
}

void simt_diagnose(void)
{
    const simt_thread *warp = find_waiting(SIMT_AT_WARP), *barrier = find_waiting(SIMT_AT_BARRIER);
    const simt_thread *mbarrier = find_waiting(SIMT_AT_MBARRIER), *spinning = find_waiting(SIMT_SPINNING);

    if (warp) diagnose_lanes(warp);
    if (simt.failed) return;
    if (barrier && barrier->barrier == 0 && !mbarrier && !spinning) {
        for (uint32_t i = 0; i < simt.n_threads; i++) {
            const simt_thread *t = &simt.threads[i];
            if (t->state == SIMT_AT_BARRIER && t->barrier == barrier->barrier) continue;
            simt_fail(SIMT_DIVERGENT_BARRIER, barrier->site,
                      "%s waits here for all %u threads of the block; thread %u %s",
                      simt_owner_text(simt_owner(barrier->index)).c, simt.n_threads, i, where_is(t).c);
            return;
        }
    }
    const simt_thread *t = mbarrier ? mbarrier : spinning ? spinning : barrier;
    simt_fail(SIMT_DEADLOCK, t->site, "%s %s, and nothing that could let it go on will happen",
              simt_owner_text(simt_owner(t->index)).c, waiting_for(t->state));
}
