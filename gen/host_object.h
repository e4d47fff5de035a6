// Looks into a host object without loading it.
#ifndef RSSM_GEN_HOST_OBJECT_H
#define RSSM_GEN_HOST_OBJECT_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// Checks that the bytes are a 64-bit little-endian ELF shared object that defines `entry` and needs nothing but
// memcpy, memmove, memset and memcmp, which compilers call on their own. It is a check against mistakes, not against
// malice: code runs when an object is loaded. RSSM_E_CORRUPT, RSSM_E_MISMATCH with the symbol.
rssm_status rssm_host_object_check(const uint8_t *bytes, size_t n, const char *entry, rssm_diag *diag);

#endif
