// The verifier on the library's own calls, apart so that tests of the verifier need no runtime.
#include "runtime/memory.h"
#include "tuner/verify.h"

static const rssm_verify_calls library_calls = {
    .advance = rssm_advance,
    .step = rssm_step,
    .alloc = rssm_memory_alloc,
    .free = rssm_memory_free,
    .upload = rssm_memory_upload,
    .download = rssm_memory_download,
    .synchronise = rssm_device_synchronise,
};

rssm_status rssm_verify(const rssm_verify_request *request, rssm_verify_report *out_report, rssm_diag *diag)
{
    rssm_verify_request own = *request;
    if (!own.calls) own.calls = &library_calls;
    return rssm_verify_run(&own, out_report, diag);
}
