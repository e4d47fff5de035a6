// What the database tests share: a private folder, sample trials, files as bytes.
#ifndef RSSM_TESTS_DB_SUPPORT_H
#define RSSM_TESTS_DB_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/store.h"
#include "db/winners.h"

// A folder that is removed by scratch_end, and the path of a database in it.
typedef struct scratch {
    char *folder;
    char  path[512];
} scratch;

scratch scratch_begin(void);         // in memory where the system offers that: nothing waits for a disk
scratch scratch_begin_on_disk(void); // in $TMPDIR or /tmp
void    scratch_end(scratch *s);

// A hash whose bytes are all `byte`.
rssm_hash hash_of(int byte);

// A measured trial on device 1, problem 1, bucket 8, replay, with this config and median; mad is 1 % of it.
rssm_db_trial sample_trial(const char *config, double median_ns);

// 200 bytes + n, compressible in parts, different for each seed. Static; the next call overwrites them.
rssm_db_binary sample_binary(int seed, size_t n);

// Opens or fails the test, with the sentence.
rssm_db *open_write(const char *path);
rssm_db *open_read(const char *path);

// Records or fails the test.
void record(rssm_db *db, const rssm_db_trial *trial, const rssm_db_binary *binary);

// A closed database with n trials (configs "K=0" …, medians 100, 101 …) of which each has its own binary.
void make_database(const char *path, int n);

// The status of opening; closes again. `diag` holds the sentence.
rssm_status try_read(const char *path, rssm_diag *diag);
rssm_status try_write(const char *path, rssm_diag *diag);

// Whole files, or the test fails. path + suffix must not exist for file_absent.
char *file_bytes(const char *path, size_t *out_n); // free()
void  file_put(const char *path, const void *bytes, size_t n);
bool  file_absent(const char *path, const char *suffix);

// Names and sizes of everything in a folder, sorted: equal texts mean that nothing was made, removed or grown. free()
char *folder_listing(const char *folder);

// Stops being root, if this is root, after giving the folder and what is in it away. Permissions count from then on.
void become_nobody(const char *folder);

#endif
