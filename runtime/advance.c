// The cursor operations of a step: advance, commit, open. One launch each, for the whole group.
#include "templates/abi/advance.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "runtime/group.h"

// The public records are the ABI structs under names of their own.
_Static_assert(sizeof(rssm_cursor_record) == sizeof(rssm_cursor), "cursor record");
_Static_assert(offsetof(rssm_cursor_record, pos) == offsetof(rssm_cursor, pos), "cursor record");
_Static_assert(sizeof(rssm_descriptor_record) == sizeof(rssm_descriptor), "descriptor record");
_Static_assert(offsetof(rssm_descriptor_record, mode) == offsetof(rssm_descriptor, mode), "descriptor record");
_Static_assert(offsetof(rssm_descriptor_record, pos) == offsetof(rssm_descriptor, pos), "descriptor record");

static rssm_status launch(const rssm_group *group, const rssm_advance_args *args, void *stream, rssm_i32 flags)
{
    if (args->struct_size != sizeof *args) return RSSM_E_STRUCT_SIZE;
    if (args->n_rows > group->max_rows) return RSSM_E_INVALID_ARGUMENT;
    if (args->n_rows == 0) return RSSM_OK;
    if (args->slots == NULL || (flags & RSSM_ADVANCE_OPEN && args->descriptors == NULL)) return RSSM_E_INVALID_ARGUMENT;
    if (group->backend == RSSM_CPU) {
        if (stream != NULL) return RSSM_E_INVALID_ARGUMENT;
        rssm_cpu_pool_wake(group->pool);   // the layers' steps come next
    }
    const rssm_advance_kernel_args kernel_args = {
        .cursors = group->cursors,
        .descriptors = args->descriptors,
        .slots = args->slots,
        .tokens = args->tokens,
        .cu_seqlens = args->cu_seqlens,
        .accepted = args->accepted,
        .forced = args->forced,
        .epochs = args->epochs,
        .issues = args->issues,
        .window = {.L = group->window.L,
                   .R = group->window.R,
                   .T = group->window.T,
                   .eager = group->eager[rssm_bucket_index(args->n_rows)]},
        .n_rows = (rssm_i32)args->n_rows,
        .n_slots = (rssm_i32)group->n_slots,
        .pad_slot = args->pad_slot,
        .flags = flags | (group->debug ? RSSM_ADVANCE_CHECK_SLOTS : 0),
    };
    return rssm_group_launch(group, group->advance, &kernel_args, args->n_rows, stream);
}

rssm_status rssm_advance(const rssm_group *group, const rssm_advance_args *args, void *stream)
{
    return launch(group, args, stream, RSSM_ADVANCE_COMMIT | RSSM_ADVANCE_OPEN);
}

rssm_status rssm_commit(const rssm_group *group, const rssm_advance_args *args, void *stream)
{
    return launch(group, args, stream, RSSM_ADVANCE_COMMIT);
}

rssm_status rssm_open(const rssm_group *group, const rssm_advance_args *args, void *stream)
{
    return launch(group, args, stream, RSSM_ADVANCE_OPEN);
}

void rssm_issues_text(uint32_t issues, char *out_text, size_t n)
{
    static const char *const texts[] = {
        "slot out of range",     "token count out of range", "ring capacity exceeded",
        "step not committed",    "accepted token lost",      "slot is invalid until reset",
        "two rows of one slot",  "more records than there are", "position that cannot be reached",
    };
    size_t length = 0;
    if (n == 0) return;
    out_text[0] = '\0';
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (!(issues & 1u << i)) continue;
        const int written = snprintf(out_text + length, n - length, "%s%s", length ? "; " : "", texts[i]);
        if (written < 0 || (size_t)written >= n - length) return;
        length += (size_t)written;
    }
}
