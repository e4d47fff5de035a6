// Operations on the life of a slot. Those without a kernel yet say so: RSSM_E_NOT_IMPLEMENTED, and nothing is touched.
#include "runtime/group.h"

static rssm_status not_built(const rssm_slot_args *args)
{
    return args->struct_size != sizeof *args ? RSSM_E_STRUCT_SIZE : RSSM_E_NOT_IMPLEMENTED;
}

rssm_status rssm_reset(const rssm_group *group, const rssm_slot_args *args, void *stream)
{
    (void)group, (void)stream;
    return not_built(args);
}

rssm_status rssm_materialize(const rssm_group *group, const rssm_slot_args *args, void *stream)
{
    (void)group, (void)stream;
    return not_built(args);
}

rssm_status rssm_copy(const rssm_group *group, const rssm_slot_args *args, void *stream)
{
    (void)group, (void)stream;
    return not_built(args);
}

rssm_status rssm_encode(const rssm_group *group, const rssm_slot_args *args, void *stream)
{
    (void)group, (void)stream;
    return not_built(args);
}

rssm_status rssm_decode(const rssm_group *group, const rssm_slot_args *args, void *stream)
{
    (void)group, (void)stream;
    return not_built(args);
}
