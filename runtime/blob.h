// The bytes of one slot of all layers, as they leave this process: format, sizes, reading. Little-endian.
//
//   header    magic "RSSMSLOT", u32 version, u32 header bytes, u64 bytes of the whole blob, u32 layers, u32 records n,
//             u64 pos, u64 nonce, then nine u32 per layer: what its bytes mean (not L, T, R); zeros to a multiple of 16
//   payload   per layer: checkpoint [H][P][N], x [H][n][P], B [G][n][N], dt [H][n]; each with zeros to a multiple of 16
//   checksum  SHA-256 of everything before it
//
// A blob is the same bytes for the same sequence, whatever the strides, ring and window it came from.
// Reading trusts nothing: no size of the blob is used before it was compared with what the layers here ask for.
// Non-goals: moving bytes from and to devices (transfer.c).
// Threads: no shared state.
#ifndef RSSM_RUNTIME_BLOB_H
#define RSSM_RUNTIME_BLOB_H

#include "runtime/layers.h"

enum { RSSM_BLOB_VERSION = 1, RSSM_BLOB_ALIGN = 16 };

// The cursor in a blob: its records begin at ring index 0.
typedef struct rssm_blob_cursor {
    uint32_t n_records;
    uint64_t pos, nonce;
} rssm_blob_cursor;

size_t rssm_blob_header_bytes(const rssm_layers *layers);
size_t rssm_blob_payload_bytes(const rssm_layers *layers, uint32_t n_records);
size_t rssm_blob_total_bytes(const rssm_layers *layers, uint32_t n_records);

// Views of a payload at `base`, which need not be mapped here; in the order of the layers' table. Slot 0 of each is the
// payload's slot.
void rssm_blob_views(const rssm_layers *layers, uint32_t n_records, char *base, rssm_mamba2_layer *out_table);

// Makes a blob of `blob`, in which only the payload's tensors are written so far: header, padding, checksum.
void rssm_blob_seal(const rssm_layers *layers, const rssm_blob_cursor *cursor, char *blob);

// Checks a blob of n bytes against the layers. RSSM_E_FOREIGN, RSSM_E_TOO_NEW, RSSM_E_CORRUPT, RSSM_E_UNSUPPORTED.
rssm_status rssm_blob_check(const rssm_layers *layers, const void *blob, size_t n_bytes, rssm_blob_cursor *out_cursor,
                            rssm_diag *diag);

#endif
