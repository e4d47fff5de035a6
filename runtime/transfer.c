// One slot to host memory and back. Off the launch path: allocates, waits for the device.
//
// Export copies the slot's tensors to where a payload's views say, which on a GPU is staging memory that is then
// downloaded at once, and on the CPU the blob itself. Import goes the other way. Staging memory holds the views, one
// move, and the payload. An import marks the slot invalid before its memory changes, and valid again when all has
// arrived.
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "runtime/blob.h"
#include "runtime/memory.h"

enum { STAGING_ALIGN = 256 };

static size_t round_up(size_t n, size_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

static size_t move_offset(const rssm_layers *layers)
{
    return round_up(rssm_layers_table_bytes(layers->n_layers), 16);
}

static size_t payload_offset(const rssm_layers *layers)
{
    return round_up(move_offset(layers) + sizeof(rssm_slot_move), STAGING_ALIGN);
}

size_t rssm_blob_bytes(const rssm_layers *layers)
{
    const uint32_t most = (uint32_t)layers->group->window.R;
    const size_t   blob = rssm_blob_total_bytes(layers, most);
    const size_t   staging = payload_offset(layers) + rssm_blob_payload_bytes(layers, most);
    return blob > staging ? blob : staging;
}

static rssm_status check_args(const rssm_layers *layers, const rssm_transfer_args *a, rssm_diag *diag)
{
    const rssm_group *group = layers->group;
    const rssm_status ready = rssm_layers_ready(layers, RSSM_OP_COPY, 1);

    if (a->struct_size != sizeof *a)
        return RSSM_FAIL(diag, RSSM_E_STRUCT_SIZE,
                         "transfer arguments are %u bytes, this library knows %zu; initialise them "
                         "with RSSM_TRANSFER_ARGS_INIT",
                         a->struct_size, sizeof *a);
    if (a->slot < 0 || (uint32_t)a->slot >= group->n_slots)
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "slot %d is out of range; the group has %u", a->slot,
                         group->n_slots);
    if (group->backend == RSSM_CPU && a->stream != NULL)
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "the CPU has no streams; give NULL");
    if (group->backend != RSSM_CPU && (a->staging == NULL || (uintptr_t)a->staging % STAGING_ALIGN != 0))
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "the staging memory is NULL or not %d-byte aligned; give "
                         "rssm_blob_bytes of the device's memory", STAGING_ALIGN);
    if (ready != RSSM_OK)
        return RSSM_FAIL(diag, ready, "this group has no kernel that copies slots; make it without steps_only, where a "
                         "compiler or a built-in kernel serves its problems");
    return RSSM_OK;
}

// Copies slot `from` of one side to slot `to` of the other: the payload at `payload` of this device's memory is one
// side, the layers are the other. `staging` is where a GPU finds views and move.
static rssm_status copy_slot(const rssm_layers *layers, const rssm_transfer_args *a, const rssm_slot_move *move,
                             uint32_t n_records, char *payload, bool is_export, rssm_diag *diag)
{
    const rssm_group *group = layers->group;
    const size_t      n_bytes = move_offset(layers) + sizeof *move;
    char             *host = rssm_calloc(1, n_bytes), *bytes = host;
    rssm_status       st = RSSM_OK;

    if (host == NULL)
        return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for the views of %u layers", layers->n_layers);
    rssm_blob_views(layers, n_records, payload, (rssm_mamba2_layer *)(void *)host);
    memcpy(host + move_offset(layers), move, sizeof *move);
    if (group->backend != RSSM_CPU) {
        bytes = a->staging;
        RSSM_TRY(rssm_memory_upload(group->context, rssm_group_device(group), bytes, host, n_bytes, diag));
    }
    const rssm_mamba2_layer *views = (const rssm_mamba2_layer *)(const void *)bytes;
    const rssm_slot_move    *moves = (const rssm_slot_move *)(const void *)(bytes + move_offset(layers));
    st = rssm_layers_launch(layers, RSSM_OP_COPY, is_export ? layers->table : views, is_export ? views : layers->table,
                            moves, 1, a->stream);
    if (st != RSSM_OK) {
        (void)RSSM_FAIL(diag, st, "the device refused to copy slot %d", a->slot);
        goto done;
    }
    RSSM_TRY(rssm_device_synchronise(group->context, rssm_group_device(group), diag));
done:
    rssm_free(host);
    return st;
}

// -------------------------------------------------------------------------------------------------------------- export

static rssm_status read_cursor(const rssm_layers *layers, int32_t slot, rssm_cursor *out_cursor, rssm_diag *diag)
{
    const rssm_group *group = layers->group;
    rssm_status       st;
    rssm_cursor       c;

    RSSM_TRY(rssm_memory_download(group->context, rssm_group_device(group), &c, group->cursors + slot, sizeof c, diag));
    if (c.invalid) {
        st = RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT,
                       "slot %d is invalid and holds no state; reset it or import into it", slot);
    } else if (c.pending_mode != RSSM_MODE_NONE) {
        st = RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT,
                       "a step of slot %d waits for its accepted count; commit it before the export", slot);
    } else if (c.h < 0 || c.h > group->window.R || c.start < 0 || c.start >= group->window.R) {
        st = RSSM_FAIL(diag, RSSM_E_CORRUPT,
                       "the cursor of slot %d says %d records from %d on, in a ring of %d; was its "
                       "memory zeroed by the host?",
                       slot, c.h, c.start, group->window.R);
    } else {
        *out_cursor = c;
    }
done:
    return st;
}

rssm_status rssm_export(const rssm_layers *layers, const rssm_transfer_args *args, void *out_blob, size_t capacity,
                        size_t *out_bytes, rssm_diag *diag)
{
    const rssm_group *group = layers->group;
    rssm_status       st;
    rssm_cursor       c;
    char             *blob = out_blob;

    RSSM_TRY(check_args(layers, args, diag));
    RSSM_TRY(read_cursor(layers, args->slot, &c, diag));
    const uint32_t n = (uint32_t)c.h;
    const size_t   total = rssm_blob_total_bytes(layers, n), n_payload = rssm_blob_payload_bytes(layers, n);
    if (out_blob == NULL || capacity < total) {
        st = RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT,
                       "the buffer has %zu bytes, and slot %d needs %zu; rssm_blob_bytes is always enough",
                       out_blob ? capacity : 0, args->slot, total);
        goto done;
    }
    const rssm_slot_move move = {args->slot, 0, c.start, c.h, c.pos, c.nonce};
    char *const          in_blob = blob + rssm_blob_header_bytes(layers);
    char *const          payload =
        group->backend == RSSM_CPU ? in_blob : (char *)args->staging + payload_offset(layers);
    RSSM_TRY(copy_slot(layers, args, &move, n, payload, true, diag));
    if (payload != in_blob)
        RSSM_TRY(rssm_memory_download(group->context, rssm_group_device(group), in_blob, payload, n_payload, diag));
    rssm_blob_seal(layers, &(rssm_blob_cursor){n, c.pos, c.nonce}, blob);
    *out_bytes = total;
done:
    return st;
}

// -------------------------------------------------------------------------------------------------------------- import

static rssm_status write_cursor(const rssm_layers *layers, int32_t slot, const rssm_cursor *cursor, rssm_diag *diag)
{
    const rssm_group *group = layers->group;
    return rssm_memory_upload(group->context, rssm_group_device(group), group->cursors + slot, cursor, sizeof *cursor,
                              diag);
}

rssm_status rssm_import(const rssm_layers *layers, const rssm_transfer_args *args, const void *blob, size_t n_bytes,
                        rssm_diag *diag)
{
    const rssm_group *group = layers->group;
    rssm_status       st;
    rssm_blob_cursor  in_blob = {0};
    rssm_cursor       c = {0};

    RSSM_TRY(check_args(layers, args, diag));
    if (blob == NULL) {
        st = RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "the blob is NULL; give what rssm_export wrote");
        goto done;
    }
    RSSM_TRY(rssm_blob_check(layers, blob, n_bytes, &in_blob, diag));
    const uint32_t n = in_blob.n_records;
    char          *payload = (char *)(uintptr_t)blob + rssm_blob_header_bytes(layers);   // only read
    if (group->backend != RSSM_CPU) {
        char *staged = (char *)args->staging + payload_offset(layers);
        RSSM_TRY(rssm_memory_upload(group->context, rssm_group_device(group), staged, payload,
                                    rssm_blob_payload_bytes(layers, n), diag));
        payload = staged;
    }
    rssm_cursor_reset(&c, args->epoch, in_blob.pos, in_blob.nonce);
    c.invalid = 1;   // from here on a failure leaves the slot so
    RSSM_TRY(write_cursor(layers, args->slot, &c, diag));
    const rssm_slot_move move = {0, args->slot, 0, (rssm_i32)n, in_blob.pos, in_blob.nonce};
    RSSM_TRY(copy_slot(layers, args, &move, n, payload, false, diag));
    c.h = (rssm_i32)n;
    c.invalid = 0;
    st = write_cursor(layers, args->slot, &c, diag);
    if (st != RSSM_OK) {   // it may have arrived all the same
        c.invalid = 1;
        (void)write_cursor(layers, args->slot, &c, NULL);
    }
done:
    return st;
}
