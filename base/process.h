// Child processes, started by posix_spawn.
#ifndef RSSM_BASE_PROCESS_H
#define RSSM_BASE_PROCESS_H

#include "base/status.h"
#include "base/str.h"

// Runs argv (NULL-terminated, argv[0] a path) with stdin closed and both outputs appended to `output`; kills its
// process group at the deadline (RSSM_E_TIMEOUT). `out_exit` gets the exit code, or 128 + signal. Output beyond the
// first 4 MiB is dropped; `output` may be NULL; a negative timeout means none. Whatever the program leaves running in
// its process group is killed when it ends. Thread-safe.
rssm_status rssm_process_run(const char *const *argv, int timeout_ms, rssm_str *output, int *out_exit, rssm_diag *diag);

#endif
