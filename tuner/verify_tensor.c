// Guarded, strided buffers of the verifier; see verify_tensor.h.
#include "tuner/verify_tensor.h"

#include <string.h>

#include "base/alloc.h"
#include "tuner/oracle/number_format.h"
#include "tuner/verify_random.h"

// Every allocation is 256-byte aligned, so a guard of this size keeps the base aligned as well.
enum { GUARD_BYTES = 1024 };

// Each half-word is a NaN in bf16 and in fp16, and two of them are one in fp32; place and salt make it recognisable.
static void poison(unsigned char *bytes, size_t from, size_t n, uint64_t salt)
{
    for (size_t i = from; i < from + n; i++) {
        const uint64_t      hash = rssm_verify_mix(i / 2 + (salt << 40));
        const unsigned      half = 0x7f81 + (unsigned)(hash % 127) + ((unsigned)(hash >> 20) & 1) * 0x8000;
        const unsigned char parts[2] = {(unsigned char)half, (unsigned char)(half >> 8)};
        bytes[i] = parts[i % 2];
    }
}

rssm_status rssm_verify_tensor_create(rssm_verify_tensor *t, const rssm_verify_memory *memory, size_t align,
                                      bool skewed, rssm_diag *diag)
{
    rssm_status  st = RSSM_OK;
    const size_t guard = t->borrowed ? 0 : GUARD_BYTES;

    t->offset = guard + (skewed && align < 256 ? align : 0);
    t->payload_bytes = (size_t)(t->n_outer * t->outer_stride) * t->element_bytes;
    t->total_bytes = t->offset + t->payload_bytes + guard;
    t->image = rssm_alloc(t->total_bytes);
    t->actual = rssm_alloc(t->total_bytes);
    if (!t->image || !t->actual) {
        return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for %zu bytes of %s; check a smaller batch",
                         2 * t->total_bytes, t->name);
    }
    poison(t->image, 0, t->total_bytes, 0);
    t->dirty = true;
    if (!t->borrowed) {
        RSSM_TRY(memory->calls->alloc(memory->context, memory->device, t->total_bytes, &t->device, diag));
    }
done:
    return st;
}

void rssm_verify_tensor_destroy(rssm_verify_tensor *t, const rssm_verify_memory *memory)
{
    if (t->device && !t->borrowed) memory->calls->free(memory->context, memory->device, t->device);
    rssm_free(t->image);
    rssm_free(t->actual);
    memset(t, 0, sizeof *t);
}

rssm_status rssm_verify_tensor_upload(rssm_verify_tensor *t, const rssm_verify_memory *memory, rssm_diag *diag)
{
    if (!t->device || !t->dirty) return RSSM_OK;
    t->dirty = false;
    return memory->calls->upload(memory->context, memory->device, t->device, t->image, t->total_bytes, diag);
}

rssm_status rssm_verify_tensor_download(rssm_verify_tensor *t, const rssm_verify_memory *memory, rssm_diag *diag)
{
    if (!t->device) return RSSM_OK;
    return memory->calls->download(memory->context, memory->device, t->actual, t->device, t->total_bytes, diag);
}

void *rssm_verify_tensor_base(const rssm_verify_tensor *t)
{
    return t->device ? (unsigned char *)t->device + t->offset : NULL;
}

size_t rssm_verify_run_at(const rssm_verify_tensor *t, int64_t outer, int64_t head, int64_t record)
{
    const int64_t element = outer * t->outer_stride + head * t->head_stride + record * t->record_stride;
    return t->offset + (size_t)element * t->element_bytes;
}

size_t rssm_verify_run_bytes(const rssm_verify_tensor *t)
{
    return (size_t)t->n_dense * t->element_bytes;
}

void rssm_verify_run_set(rssm_verify_tensor *t, int64_t outer, int64_t head, int64_t record, const void *bytes)
{
    memcpy(t->image + rssm_verify_run_at(t, outer, head, record), bytes, rssm_verify_run_bytes(t));
    t->dirty = true;
}

void rssm_verify_run_store(rssm_verify_tensor *t, int64_t outer, int64_t head, int64_t record, const double *values)
{
    rssm_oracle_store(t->dtype, values, (size_t)t->n_dense, t->image + rssm_verify_run_at(t, outer, head, record));
    t->dirty = true;
}

void rssm_verify_run_poison(rssm_verify_tensor *t, int64_t outer, int64_t head, int64_t record, uint64_t salt)
{
    poison(t->image, rssm_verify_run_at(t, outer, head, record), rssm_verify_run_bytes(t), salt);
    t->dirty = true;
}

void rssm_verify_tensor_poison(rssm_verify_tensor *t, uint64_t salt)
{
    poison(t->image, t->offset, t->payload_bytes, salt);
    t->dirty = true;
}

void rssm_verify_run_adopt(rssm_verify_tensor *t, int64_t outer, int64_t head, int64_t record)
{
    const size_t at = rssm_verify_run_at(t, outer, head, record);
    memcpy(t->image + at, t->actual + at, rssm_verify_run_bytes(t));
}

// Names the place of a payload element: indices where it is one, the gap it follows where it is not.
static void name_place(const rssm_verify_tensor *t, int64_t element, rssm_str *out)
{
    const int64_t outer = element / t->outer_stride, rest = element % t->outer_stride;
    const bool    head_first = t->head_stride >= t->record_stride;
    const int64_t large = head_first ? t->head_stride : t->record_stride;
    const int64_t small = head_first ? t->record_stride : t->head_stride;
    const int64_t n_large = head_first ? t->n_heads : t->n_records, n_small = head_first ? t->n_records : t->n_heads;
    int64_t       i = rest / large, j = rest % large / small, k = rest % large % small;
    bool          gap = i >= n_large || j >= n_small || k >= t->n_dense;

    if (i >= n_large) i = n_large - 1, j = n_small, k = t->n_dense;
    if (j >= n_small) j = n_small - 1, k = t->n_dense;
    rssm_str_printf(out, "%s%s %lld", gap ? "the gap after " : "", t->outer_name, (long long)outer);
    if (t->n_heads > 1) rssm_str_printf(out, ", head %lld", (long long)(head_first ? i : j));
    if (t->n_records > 1) rssm_str_printf(out, ", %s %lld", t->record_name, (long long)(head_first ? j : i));
    if (!gap) rssm_str_printf(out, ", element %lld", (long long)k);
}

bool rssm_verify_tensor_same(const rssm_verify_tensor *t, rssm_str *out_sentence)
{
    if (!t->device || memcmp(t->image, t->actual, t->total_bytes) == 0) return true;
    size_t at = 0;
    while (t->image[at] == t->actual[at])
        at++;

    rssm_str_printf(out_sentence, "%s was written where nothing may write: ", t->name);
    if (at < t->offset) {
        rssm_str_printf(out_sentence, "the guard zone %zu bytes before it", t->offset - at);
    } else if (at >= t->offset + t->payload_bytes) {
        rssm_str_printf(out_sentence, "the guard zone %zu bytes behind it", at - t->offset - t->payload_bytes);
    } else {
        name_place(t, (int64_t)((at - t->offset) / t->element_bytes), out_sentence);
    }
    rssm_str_printf(out_sentence, " (byte %02x became %02x)", t->image[at], t->actual[at]);
    return false;
}
