// Proof that the lifecycle test can fail: the library's calls, each broken in one known way. Threads: one self-test at
// a time.
#ifndef RSSM_TESTS_LIFECYCLE_FAULTS_H
#define RSSM_TESTS_LIFECYCLE_FAULTS_H

#include "tests/lifecycle/world.h"

// Plays with every fault in turn, on the CPU, and expects a failure of each. RSSM_OK: all were found.
rssm_status life_self_test(const life_machine *machine, const life_variant *variant, uint64_t seed, bool is_verbose);

#endif
