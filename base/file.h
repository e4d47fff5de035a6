// Files and folders. Paths are UTF-8. Nothing here follows a final symbolic link when writing.
#ifndef RSSM_BASE_FILE_H
#define RSSM_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

// Reads a whole regular file, NUL-terminated, refusing more than `limit` bytes. Free with rssm_free.
rssm_status rssm_file_read(const char *path, size_t limit, char **out_bytes, size_t *out_n, rssm_diag *diag);

// Writes a temporary file beside `path` (mode 0600), syncs and renames it over. The old content stays on any failure.
rssm_status rssm_file_write(const char *path, const void *bytes, size_t n, rssm_diag *diag);

// Makes a folder and its parents, the new ones with mode 0700.
rssm_status rssm_folder_make(const char *path, rssm_diag *diag);

bool        rssm_file_exists(const char *path);

// A new private folder (0700) under $TMPDIR or /tmp; remove it with rssm_folder_remove (recursive, does not follow
// links).
rssm_status rssm_folder_temporary(const char *prefix, char **out_path, rssm_diag *diag);
void        rssm_folder_remove(const char *path);

// "$XDG_<variable>" or "$HOME/<fallback>", then "/replayssm": e.g. ("XDG_DATA_HOME", ".local/share"). Relative values
// are ignored, as the XDG specification says. Fails with RSSM_E_NOT_FOUND where neither is set. Free with rssm_free.
rssm_status rssm_xdg_folder(const char *variable, const char *fallback, char **out_path, rssm_diag *diag);

// A sealed memfd holding the bytes; the caller closes it. Content cannot change after this returns.
rssm_status rssm_file_sealed(const char *name, const void *bytes, size_t n, int *out_fd, rssm_diag *diag);

// Path of a program on $PATH, or as given where it holds a slash; RSSM_E_NOT_FOUND. Free with rssm_free.
rssm_status rssm_program_find(const char *name, char **out_path, rssm_diag *diag);

#endif
