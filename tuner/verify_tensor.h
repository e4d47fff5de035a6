// A buffer of the verifier: a strided tensor between two guard zones, as a host image, as it came back from the device,
// and on the device. The image is what the buffer must hold; all of it that belongs to no element is NaN patterns.
//
// Elements are addressed by (outer, head, record), which names a dense run: a slot's record of one head, a token's
// head, or an entry of a plain array. Invariant: after a step is checked, image and device hold the same bytes.
// Threads: none; a session owns its tensors.
#ifndef RSSM_TUNER_VERIFY_TENSOR_H
#define RSSM_TUNER_VERIFY_TENSOR_H

#include <stdbool.h>

#include "base/str.h"
#include "tuner/verify.h"

typedef struct rssm_verify_tensor {
    const char    *name;
    const char    *outer_name, *record_name; // "slot", "token", "entry"; "record", "row"; for sentences
    size_t         element_bytes;
    uint32_t       dtype; // meaningful for the model's tensors
    int64_t        n_outer, n_heads, n_records, n_dense;
    int64_t        outer_stride, head_stride, record_stride; // elements
    size_t         offset, payload_bytes, total_bytes;       // of the payload within the allocation
    unsigned char *image, *actual;
    void          *device;   // start of the allocation; NULL: the tensor is absent
    bool           borrowed; // `device` is the caller's, without guard zones
    bool           dirty;    // the image has changed since the last upload
} rssm_verify_tensor;

// Where buffers live.
typedef struct rssm_verify_memory {
    const rssm_verify_calls *calls;
    rssm_context            *context;
    uint32_t                 device;
} rssm_verify_memory;

// Allocates for the shape and strides that are set, with the base aligned to `align` bytes but, if `skewed`, to no
// more. A `borrowed` tensor takes its device pointer instead. Fills the image with NaN patterns.
rssm_status rssm_verify_tensor_create(rssm_verify_tensor *t, const rssm_verify_memory *memory, size_t align,
                                      bool skewed, rssm_diag *diag);
void        rssm_verify_tensor_destroy(rssm_verify_tensor *t, const rssm_verify_memory *memory);

rssm_status rssm_verify_tensor_upload(rssm_verify_tensor *t, const rssm_verify_memory *memory, rssm_diag *diag);
rssm_status rssm_verify_tensor_download(rssm_verify_tensor *t, const rssm_verify_memory *memory, rssm_diag *diag);

// Device address of the first element; NULL for an absent tensor.
void *rssm_verify_tensor_base(const rssm_verify_tensor *t);

// Offset of a run in `image` and `actual`; its size.
size_t rssm_verify_run_at(const rssm_verify_tensor *t, int64_t outer, int64_t head, int64_t record);
size_t rssm_verify_run_bytes(const rssm_verify_tensor *t);

// Replaces a run of the image, by bytes or, for a model tensor, by rounded values.
void rssm_verify_run_set(rssm_verify_tensor *t, int64_t outer, int64_t head, int64_t record, const void *bytes);
void rssm_verify_run_store(rssm_verify_tensor *t, int64_t outer, int64_t head, int64_t record, const double *values);

// Fills a run of the image, or the whole payload, with NaN patterns, different ones for every salt and place.
void rssm_verify_run_poison(rssm_verify_tensor *t, int64_t outer, int64_t head, int64_t record, uint64_t salt);
void rssm_verify_tensor_poison(rssm_verify_tensor *t, uint64_t salt);

// Takes over what came back, for a run that was checked.
void rssm_verify_run_adopt(rssm_verify_tensor *t, int64_t outer, int64_t head, int64_t record);

// Compares image and what came back; false with a sentence about the first differing byte.
bool rssm_verify_tensor_same(const rssm_verify_tensor *t, rssm_str *out_sentence);

#endif
