// Zstandard, for the blobs of binaries. Threads: thread-safe.
#ifndef RSSM_DB_COMPRESS_H
#define RSSM_DB_COMPRESS_H

#include <stddef.h>

#include "base/status.h"

// Level 9: kernels are small, and are read far more often than written. Free with rssm_free.
rssm_status rssm_compress(const void *bytes, size_t n, void **out_bytes, size_t *out_n, rssm_diag *diag);

// Never writes beyond raw_n bytes; RSSM_E_CORRUPT unless the data hold exactly that many. Free with
// rssm_free.
rssm_status rssm_decompress(const void *bytes, size_t n, size_t raw_n, void **out_bytes, rssm_diag *diag);

#endif
