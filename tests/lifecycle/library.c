// The library's own calls for the lifecycle test. See world.h.
#include "runtime/memory.h"
#include "tests/lifecycle/world.h"

const life_calls life_library = {
    .group_create = rssm_group_create,
    .group_destroy = rssm_group_destroy,
    .group_plan = rssm_group_plan,
    .layers_create = rssm_layers_create,
    .layers_destroy = rssm_layers_destroy,
    .advance = rssm_advance,
    .commit = rssm_commit,
    .open = rssm_open,
    .step = rssm_step,
    .reset = rssm_reset,
    .truncate = rssm_truncate,
    .invalidate = rssm_invalidate,
    .copy = rssm_copy,
    .materialize = rssm_materialize,
    .encode = rssm_encode,
    .decode = rssm_decode,
    .table_bytes = rssm_layers_table_bytes,
    .blob_bytes = rssm_blob_bytes,
    .export_slot = rssm_export,
    .import_slot = rssm_import,
    .alloc = rssm_memory_alloc,
    .free = rssm_memory_free,
    .upload = rssm_memory_upload,
    .download = rssm_memory_download,
    .synchronise = rssm_device_synchronise,
};
