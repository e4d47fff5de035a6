// The only file that includes zstd.
#include "db/compress.h"

#include <zstd.h>

#include "base/alloc.h"

enum { LEVEL = 9 };

rssm_status rssm_compress(const void *bytes, size_t n, void **out_bytes, size_t *out_n, rssm_diag *diag)
{
    size_t bound = ZSTD_compressBound(n);
    void  *data = rssm_alloc(bound);
    if (data == NULL) {
        return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "compressing a binary of %zu bytes ran out of memory", n);
    }
    size_t size = ZSTD_compress(data, bound, bytes, n, LEVEL);
    if (ZSTD_isError(size)) {
        rssm_free(data);
        return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "compressing a binary of %zu bytes failed: %s", n,
                         ZSTD_getErrorName(size));
    }
    *out_bytes = data;
    *out_n = size;
    return RSSM_OK;
}

rssm_status rssm_decompress(const void *bytes, size_t n, size_t raw_n, void **out_bytes, rssm_diag *diag)
{
    // An unknown size and an error are numbers beyond any raw_n. More frames than one do not fit into raw_n bytes.
    if (ZSTD_getFrameContentSize(bytes, n) != raw_n) {
        return RSSM_FAIL(diag, RSSM_E_CORRUPT, "the compressed data are not a frame of %zu bytes", raw_n);
    }
    void *data = rssm_alloc(raw_n);
    if (data == NULL) {
        return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "decompressing a binary of %zu bytes ran out of memory", raw_n);
    }
    size_t size = ZSTD_decompress(data, raw_n, bytes, n);
    if (ZSTD_isError(size) || size != raw_n) {
        rssm_free(data);
        return RSSM_FAIL(diag, RSSM_E_CORRUPT, "the compressed data are damaged: %s",
                         ZSTD_isError(size) ? ZSTD_getErrorName(size) : "too few bytes");
    }
    *out_bytes = data;
    return RSSM_OK;
}
