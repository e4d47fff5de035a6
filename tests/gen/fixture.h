// The fixture templates, whole or with one change.
#ifndef TESTS_GEN_FIXTURE_H
#define TESTS_GEN_FIXTURE_H

#include "gen/build.h"
#include "gen/source.h"
#include "gen/space.h"

#define FIXTURE_FOLDER RSSM_SOURCE_DIR "/tests/gen/fixtures/set"

// Text of one fixture file with the first `from` replaced by `to` (from NULL: as it is). Free with rssm_free. Fails the
// test where `from` is not there.
char *fixture_text(const char *name, const char *from, const char *to);

// A temporary copy of the fixture folder with one change; remove with rssm_folder_remove and rssm_free.
char *fixture_folder(const char *name, const char *from, const char *to);

// Opens the fixtures with one change (name NULL: none).
rssm_template_set *fixture_open(const char *name, const char *from, const char *to);

// A problem with 16 heads of 64 in 2 groups, state size 128; and the facts of it and of a CPU of 32-byte vectors.
rssm_problem fixture_problem(void);
rssm_facts   fixture_facts(const rssm_problem *problem);

// One build of a fixture template, and all that it stands on. Filled in place: the input points into the bench.
typedef struct fixture_bench {
    rssm_template_set *set;
    rssm_problem       problem;
    rssm_facts         facts;
    rssm_config        config;
    rssm_build_input   input;
} fixture_bench;

// "scale_rows" for FIXTURE_ARCH or "scale_elements" for sm_90a, with one change (name NULL: none).
void fixture_bench_open(fixture_bench *b, const char *manifest, const char *name, const char *from, const char *to);
void fixture_bench_close(fixture_bench *b);

// The compiler, found as a user would have it found; fails the test with what to do where there is none.
rssm_toolchain *fixture_clang(void);
rssm_toolchain *fixture_nvrtc(void);

#if defined(__x86_64__)
#define FIXTURE_ARCH "x86-64"
#define FIXTURE_OTHER_ARCH "x86-64-v2"
#else
#define FIXTURE_ARCH "armv8-a"
#define FIXTURE_OTHER_ARCH "armv8.2-a"
#endif

// Adds or replaces a file of a folder.
void fixture_write(const char *folder, const char *name, const char *text);

#endif
