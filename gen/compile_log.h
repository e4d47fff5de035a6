// What is read out of compiler output, for people and for reports; nothing is decided by it.
#ifndef RSSM_GEN_COMPILE_LOG_H
#define RSSM_GEN_COMPILE_LOG_H

#include <stdint.h>

#include "base/str.h"

// Appends the first line of `log` that holds an error of clang, a linker, NVRTC or ptxas; else its first line.
void rssm_log_first_error(const char *log, rssm_str *out);

// Replaces every `from` by `to`.
void rssm_log_replace(const char *log, const char *from, const char *to, rssm_str *out);

typedef struct rssm_log_resources {
    uint32_t registers, shared_bytes, spill_bytes; // spills: stores and loads
} rssm_log_resources;

// What ptxas -v says about one entry; zeros where it says nothing.
rssm_log_resources rssm_log_find_resources(const char *log, const char *entry);

#endif
