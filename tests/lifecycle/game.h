// The lives of sequences: slots and who is in them, blobs of preempted ones, the host mirror of the cursors, and the
// events that happen to all of these.
//
// Invariants, between events:
//   L1  Image and device agree (world.h, W1); cursors equal the mirror, which only cursor.h moves.
//   L2  A live or cached slot's sequence agrees with its cursor, unless the slot is fresh: then its cursor is still
//       that of the owner before, until a step names the new epoch.
//   L3  Ring rows that hold no record, and checkpoints of free and invalid slots, are NaN.
// Threads: none.
#ifndef RSSM_TESTS_LIFECYCLE_GAME_H
#define RSSM_TESTS_LIFECYCLE_GAME_H

#include "tests/lifecycle/check.h"

// X(enumerator, name, how often)
#define LIFE_EVENT_LIST(X)                                                                                             \
    X(ADMIT_RESET, "admit by reset", 5)                                                                                \
    X(ADMIT_EPOCH, "admit by epoch", 5)                                                                                \
    X(ADMIT_RECORDS, "admit with records", 5)                                                                          \
    X(ADMIT_CACHED, "admit from cache", 8)                                                                             \
    X(STEP, "step", 110)                                                                                               \
    X(COMMIT, "late commit", 8)                                                                                        \
    X(FLUSH, "forced flush", 4)                                                                                        \
    X(PREEMPT, "preempt", 6)                                                                                           \
    X(RESUME, "resume", 8)                                                                                             \
    X(FORK, "fork", 10)                                                                                                \
    X(CACHE, "materialize into cache", 8)                                                                              \
    X(FOLD_IN_PLACE, "materialize in place", 3)                                                                        \
    X(TWINS, "materialize as a flush", 12)                                                                             \
    X(DONATE, "donate", 3)                                                                                             \
    X(TRUNCATE, "truncate", 3)                                                                                         \
    X(TRUNCATE_REFUSED, "truncate refused", 2)                                                                         \
    X(ABORT, "abort", 3)                                                                                               \
    X(STEP_ON_ABORTED, "step on aborted", 3)                                                                           \
    X(DAMAGED_BLOB, "damaged blob", 3)                                                                                 \
    X(REFUSED_REQUEST, "refused request", 4)                                                                           \
    X(REFUSED_EXPORT, "refused export", 2)                                                                             \
    X(RETIRE, "retire", 18)                                                                                            \
    X(READ_BACK, "read back", 3)

typedef enum life_event {
#define LIFE_EVENT_ENUM(name, text, weight) LIFE_EVENT_##name,
    LIFE_EVENT_LIST(LIFE_EVENT_ENUM)
#undef LIFE_EVENT_ENUM
        LIFE_N_EVENTS
} life_event;

// What steps met, beside the events themselves.
#define LIFE_TRAFFIC_LIST(X)                                                                                           \
    X(STEPS_1, "T=1")                                                                                                  \
    X(STEPS_MOST, "T=4 and 6")                                                                                         \
    X(STEPS_SOME, "T=3 and 2")                                                                                         \
    X(STEPS_EAGER, "eager")                                                                                            \
    X(PACKED, "packed")                                                                                                \
    X(DENSE, "dense")                                                                                                  \
    X(APPEND, "append")                                                                                                \
    X(FOLD_HISTORY, "fold history")                                                                                    \
    X(FOLD_ALL, "fold all")                                                                                            \
    X(FORCED, "forced")                                                                                                \
    X(WRAP, "wrapped")                                                                                                 \
    X(IDLE, "idle")                                                                                                    \
    X(NULL_ROW, "null row")                                                                                            \
    X(REFUSED_ROW, "refused row")                                                                                      \
    X(REJECTED, "tokens rejected")                                                                                     \
    X(ALL_REJECTED, "all rejected")                                                                                    \
    X(LATE, "accepted one step late")                                                                                  \
    X(AT_ONCE, "accepted at once")                                                                                     \
    X(OPEN_ALONE, "open alone")                                                                                        \
    X(PENDING_COPIED, "pending step forked")                                                                           \
    X(PENDING_DISCARDED, "pending step discarded")                                                                     \
    X(LOST_TOKEN, "lost token told")                                                                                   \
    X(HALF_WAY, "abandoned half-way")                                                                                  \
    X(TWIN_TOKENS, "materialize as fold all")                                                                          \
    X(MIGRATED, "migrated")                                                                                            \
    X(TOO_LONG, "too many records for the ring")                                                                       \
    X(SENT_ON, "sent on as the same bytes")

typedef enum life_traffic {
#define LIFE_TRAFFIC_ENUM(name, text) LIFE_TRAFFIC_##name,
    LIFE_TRAFFIC_LIST(LIFE_TRAFFIC_ENUM)
#undef LIFE_TRAFFIC_ENUM
        LIFE_N_TRAFFIC
} life_traffic;

typedef enum life_use { LIFE_FREE, LIFE_LIVE, LIFE_CACHED, LIFE_INVALID, LIFE_N_USES } life_use;

typedef struct life_slot {
    life_use      use;
    bool          fresh; // admitted by epoch only, and not stepped yet
    uint32_t      epoch;
    bool          is_dead[LIFE_RING_MAX]; // this ring row is NaN
    life_sequence s;
} life_slot;

typedef struct life_blob {
    bool           used;
    unsigned char *bytes;
    size_t         n;
    unsigned char *checkpoints; // what it must hold, one layer after the other
    life_sequence  s;
    rssm_cursor    cursor; // of the slot that it came from
    const void    *origin; // the host
} life_blob;

enum { LIFE_BLOBS = 4, LIFE_HOSTS = 2 };

typedef struct life_game {
    life_world         w;
    life_work          work;
    rssm_verify_random random; // of the traffic
    life_slot          slots[LIFE_SLOTS];
    rssm_cursor        mirror[LIFE_SLOTS];
    life_blob         *blobs;         // [LIFE_BLOBS] in transit, of all hosts
    size_t             blob_capacity; // what exports here are given
    unsigned char     *damaged;       // for a blob of any host
    uint32_t           next_epoch;
    uint64_t           next_token;
    rssm_u32           issues_before;
    bool               is_verbose, is_impossible; // the event that was drawn found nothing to happen to
    uint64_t           events[LIFE_N_EVENTS], traffic[LIFE_N_TRAFFIC];
} life_game;

// Two hosts with different memory, and what they send each other.
typedef struct life_cluster {
    life_game          hosts[LIFE_HOSTS], *active; // where the event is that happens now
    life_blob          blobs[LIFE_BLOBS];
    rssm_verify_random random;
    uint64_t           event;
} life_cluster;

rssm_status life_cluster_create(life_cluster *c, const life_machine *machine, const life_variant *variant,
                                uint64_t seed, bool is_verbose, rssm_diag *diag);
void        life_cluster_destroy(life_cluster *c);

// One random event on one host, and everything that is compared after it.
rssm_status life_cluster_play(life_cluster *c);

// ------------------------------------------------------------------------------------------------ parts of the events

void life_trace(const life_game *g, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline uint32_t life_below(life_game *g, uint32_t n)
{
    return rssm_verify_below(&g->random, n);
}

static inline bool life_one_in(life_game *g, uint32_t n)
{
    return rssm_verify_one_in(&g->random, n);
}

// A random slot of this use; -1: there is none. `settled`: not fresh, and without a pending step.
int32_t life_pick(life_game *g, life_use use, bool settled, int32_t except);

// Where a sequence may go: mostly free slots, now and then one that is taken, and what is there is lost. -1: nowhere.
int32_t life_pick_destination(life_game *g, int32_t except, int32_t and_except);

bool life_has_state(const life_slot *slot); // live or cached

// Nothing happened: another event is drawn.
rssm_status life_impossible(life_game *g);

// The slot is nobody's any more: everything in it becomes NaN. Its cursor stays.
void life_vacate(life_game *g, int32_t slot, life_use use);

// A sequence took the slot over, by a call that moved the mirror.
void life_occupy(life_game *g, int32_t slot, life_use use);

// Checkpoint of one slot and layer in the image.
size_t life_checkpoint_at(const life_world *w, int layer, int32_t slot);
size_t life_checkpoint_bytes(const life_world *w, int layer);
// A record's bytes as they must lie in ring row `row` of a slot, into the image only.
void life_expect_record(life_game *g, int32_t slot, int32_t row, const life_record *record);

// After an event whose effects are in the image: reads back if that was not done, compares all, buries dead records.
rssm_status life_settle(life_game *g, bool fetched);

// The issues word: cleared before a call; afterwards, once that is fetched, it must hold `issues`.
void        life_clear_issues(life_game *g);
rssm_status life_check_issues(life_game *g, rssm_u32 issues);
rssm_status life_check_cursors(life_game *g); // fetched ones, with the mirror

// step.c
typedef struct life_step_options {
    int32_t         group;   // < 0: any
    int32_t         slot;    // this one takes part; < 0: any
    bool            flush;   // forced and without tokens, only `slot`
    bool            abandon; // only `slot`, and not in all layers: what the slot holds then is no state
    const uint64_t *token;   // of a flush: this one is folded too (the group's T is 1)
} life_step_options;
rssm_status life_step(life_game *g, const life_step_options *options);
rssm_status life_commit_late(life_game *g, int32_t slot); // one slot, or (-1) a random batch
rssm_status life_settle_slot(life_game *g, int32_t slot); // commits what is pending there

// requests.c: one call for up to three requests, among others that must have no effect.
typedef enum life_request_kind {
    LIFE_RESET,
    LIFE_TRUNCATE,
    LIFE_INVALIDATE,
    LIFE_COPY,
    LIFE_MATERIALIZE,
} life_request_kind;

typedef struct life_request {
    int32_t     source, destination, count;
    uint32_t    epoch;
    uint64_t    position, nonce;
    rssm_u32    issues; // out: 0: it was met
    rssm_cursor before; // out: of its source, or of its destination where there is no source
} life_request;

enum { LIFE_REQUESTS_MAX = 3 };

typedef struct life_batch {
    life_request_kind kind;
    int               n;
    life_request      items[LIFE_REQUESTS_MAX];
    bool              pass_counts, pass_epochs, pass_positions, pass_nonces;
} life_batch;

// Calls, moves the mirror and checks the issues; the caller moves image and model for those that were met.
rssm_status life_batch_run(life_game *g, life_batch *batch);

// admit.c, events.c, transfer.c
rssm_status life_event_admit(life_game *g, life_event event);
rssm_status life_event_fork(life_game *g, bool from_cache);
rssm_status life_event_materialize(life_game *g, bool in_place);
rssm_status life_event_twins(life_game *g);
rssm_status life_event_truncate(life_game *g, bool refused);
rssm_status life_event_abort(life_game *g);
rssm_status life_event_refused_request(life_game *g);
rssm_status life_event_read_back(life_game *g);
rssm_status life_preempt(life_game *g, int32_t slot); // if there is room for its blob
rssm_status life_event_preempt(life_game *g);
rssm_status life_event_resume(life_game *g);
rssm_status life_event_damaged_blob(life_game *g);
rssm_status life_event_refused_export(life_game *g);

#endif
