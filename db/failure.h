// The sentences for what goes wrong with a database file: one table of causes, so that SQLite's codes and errno values
// end in the same words. Threads: thread-safe.
#ifndef RSSM_DB_FAILURE_H
#define RSSM_DB_FAILURE_H

#include "base/status.h"

// X(cause, status, what happened, remedy): "'path': <doing> <what happened>[ (detail)]; <remedy>".
#define RSSM_FAILURE_LIST(X)                                                                                           \
    X(MEMORY, RSSM_E_NO_MEMORY, "ran out of memory", "free some and try again")                                        \
    X(FULL, RSSM_E_IO, "failed because the disk is full or the quota is used up", "make room and try again")           \
    X(READ_ONLY, RSSM_E_READ_ONLY, "failed because the place is read-only", "choose another path")                     \
    X(PERMISSION, RSSM_E_PERMISSION, "is not permitted to this user", "change the permissions or choose another path") \
    X(ABSENT, RSSM_E_NOT_FOUND, "failed because it does not exist", "tune first or choose another path")               \
    X(BUSY, RSSM_E_BUSY, "waited too long for another process that writes", "try again when that is done")             \
    X(DIED, RSSM_E_READ_ONLY, "failed because a writer died in the middle of a change and left a journal",             \
      "open it once with replayssm-tune where it can be written")                                                      \
    X(NO_DATABASE, RSSM_E_FOREIGN, "failed because it is not a SQLite database", "choose another path")                \
    X(ENDLESS, RSSM_E_CORRUPT, "took more work than any sound database needs", "move the file away and tune again")    \
    X(DAMAGED, RSSM_E_CORRUPT, "found damage", "move the file away and tune again")                                    \
    X(REFUSED, RSSM_E_INVALID_ARGUMENT, "was refused by the schema", "correct what was to be recorded")                \
    X(OTHER, RSSM_E_IO, "failed", "check the disk or choose another path")

typedef enum rssm_failure {
#define RSSM_FAILURE_ENUM(cause, status, what, remedy) RSSM_FAILURE_##cause,
    RSSM_FAILURE_LIST(RSSM_FAILURE_ENUM)
#undef RSSM_FAILURE_ENUM
} rssm_failure;

// Fills `diag` and returns the status of the cause. `detail`: SQLite's or the system's message, NULL for none.
rssm_status rssm_failure_report(rssm_failure cause, const char *path, const char *doing, const char *detail,
                                rssm_diag *diag);

// The same for an errno value; 0 is an unknown input or output error.
rssm_status rssm_failure_errno(int os_error, const char *path, const char *doing, rssm_diag *diag);

#endif
