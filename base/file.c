// Files: whole-file read, atomic write, sealed memory files, and the paths that come from the environment.
//
// Every descriptor is close-on-exec; every call is restarted after a signal; short reads and writes are continued.
// This is the one file of base/ that reads environment variables: TMPDIR, PATH, HOME and the XDG ones.
// Threads: thread-safe as long as nobody changes the environment.
#define _GNU_SOURCE
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/system_error.h"

enum { FIRST_READ = 4096 }; // bytes, where the size is not known (files under /proc say 0)

static int open_again(const char *path, int flags)
{
    int fd;

    do
        fd = open(path, flags | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    return fd;
}

// Fills up to n bytes; fewer only at the end of the file. -1 with errno on failure.
static ssize_t read_fully(int fd, char *bytes, size_t n)
{
    size_t done = 0;

    while (done < n) {
        const ssize_t k = read(fd, bytes + done, n - done);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return -1;
        if (k == 0) break;
        done += (size_t)k;
    }
    return (ssize_t)done;
}

// 0, or an errno value.
static int write_fully(int fd, const void *bytes, size_t n)
{
    const char *p = bytes;

    while (n > 0) {
        const ssize_t k = write(fd, p, n);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return errno;
        if (k == 0) return EIO;
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

static int sync_fully(int fd)
{
    int rc;

    do
        rc = fsync(fd);
    while (rc != 0 && errno == EINTR);
    return rc == 0 ? 0 : errno;
}

// Reads to the end of the file, which may be longer or shorter than its size said.
static rssm_status read_to_end(int fd, const char *path, size_t guess, size_t limit, char **out_bytes, size_t *out_n,
                               rssm_diag *diag)
{
    rssm_status st = RSSM_OK;
    size_t      capacity = guess < limit ? guess + 1 : limit, n = 0; // one more, to see the end without growing
    char       *bytes = rssm_alloc(capacity + 1);

    for (;;) {
        if (!bytes) {
            st = RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "out of memory while reading %s", path);
            goto done;
        }
        const ssize_t k = read_fully(fd, bytes + n, capacity - n);
        if (k < 0) {
            const int error = errno;
            st = RSSM_FAIL(diag, rssm_error_status(error), "cannot read %s: %s", path, rssm_error_words(error).text);
            goto done;
        }
        n += (size_t)k;
        if (n < capacity || capacity == limit) break;
        capacity = capacity < limit / 2 ? capacity * 2 : limit;
        if (capacity < FIRST_READ && FIRST_READ < limit) capacity = FIRST_READ;
        char *larger = rssm_realloc(bytes, capacity + 1);
        if (!larger) rssm_free(bytes);
        bytes = larger;
    }
    char more;
    if (n == limit && read_fully(fd, &more, 1) != 0) {
        st = RSSM_FAIL(diag, RSSM_E_IO, "%s is larger than the %zu bytes allowed here", path, limit);
        goto done;
    }
    bytes[n] = '\0';
    *out_bytes = bytes;
    *out_n = n;
    bytes = NULL;
done:
    rssm_free(bytes);
    return st;
}

rssm_status rssm_file_read(const char *path, size_t limit, char **out_bytes, size_t *out_n, rssm_diag *diag)
{
    rssm_status st = RSSM_OK;
    struct stat info;
    int         fd = open_again(path, O_RDONLY | O_NOCTTY | O_NONBLOCK); // not blocking: a FIFO must not hang us

    if (limit > SIZE_MAX / 4) limit = SIZE_MAX / 4;
    if (fd < 0 || fstat(fd, &info) != 0) {
        const int error = errno;
        st = RSSM_FAIL(diag, rssm_error_status(error), "cannot open %s: %s", path, rssm_error_words(error).text);
        goto done;
    }
    if (!S_ISREG(info.st_mode)) {
        st = RSSM_FAIL(diag, RSSM_E_IO, "%s is not a regular file", path);
        goto done;
    }
    if ((uintmax_t)info.st_size > limit) {
        st = RSSM_FAIL(diag, RSSM_E_IO, "%s is larger than the %zu bytes allowed here", path, limit);
        goto done;
    }
    RSSM_TRY(read_to_end(fd, path, (size_t)info.st_size, limit, out_bytes, out_n, diag));
done:
    if (fd >= 0) close(fd);
    return st;
}

// Makes a rename durable. Best effort: the content is in place already, and some file systems refuse this call.
static void sync_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    char       *parent = slash ? rssm_strdup(path) : rssm_strdup(".");

    if (!parent) return;
    if (slash) parent[slash == path ? 1 : slash - path] = '\0';
    const int fd = open_again(parent, O_RDONLY | O_DIRECTORY);
    if (fd >= 0) {
        sync_fully(fd);
        close(fd);
    }
    rssm_free(parent);
}

rssm_status rssm_file_write(const char *path, const void *bytes, size_t n, rssm_diag *diag)
{
    rssm_status st = RSSM_OK;
    rssm_str    temporary = {0};
    int         fd = -1, error = 0;

    rssm_str_printf(&temporary, "%s.XXXXXX", path);
    RSSM_TRY(rssm_str_check(&temporary, diag));
    fd = mkostemp(temporary.data, O_CLOEXEC); // exclusive, mode 0600
    if (fd < 0) {
        error = errno;
        st = RSSM_FAIL(diag, rssm_error_status(error), "cannot create a file beside %s: %s", path,
                       rssm_error_words(error).text);
        goto done;
    }
    error = write_fully(fd, bytes, n);
    if (!error) error = sync_fully(fd);
    if (close(fd) != 0 && !error && errno != EINTR) error = errno; // network file systems report lost writes here
    if (!error && rename(temporary.data, path) != 0) error = errno;
    if (error) {
        unlink(temporary.data);
        st = RSSM_FAIL(diag, rssm_error_status(error), "cannot write %s: %s", path, rssm_error_words(error).text);
        goto done;
    }
    sync_parent(path);
done:
    rssm_str_free(&temporary);
    return st;
}

bool rssm_file_exists(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0;
}

// Non-empty, absolute values only.
static const char *absolute_variable(const char *name)
{
    const char *value = getenv(name);

    return value && value[0] == '/' ? value : NULL;
}

// Hands a finished string over to the caller.
static rssm_status take_text(rssm_str *text, char **out_text, rssm_diag *diag)
{
    const rssm_status st = rssm_str_check(text, diag);

    if (st != RSSM_OK) return st;
    *out_text = text->data;
    *text = (rssm_str){0};
    return RSSM_OK;
}

rssm_status rssm_folder_temporary(const char *prefix, char **out_path, rssm_diag *diag)
{
    rssm_status st = RSSM_OK;
    rssm_str    path = {0};
    const char *parent = absolute_variable("TMPDIR");

    rssm_str_printf(&path, "%s/%s-XXXXXX", parent ? parent : "/tmp", prefix);
    RSSM_TRY(rssm_str_check(&path, diag));
    if (!mkdtemp(path.data)) {
        const int error = errno;
        st = RSSM_FAIL(diag, rssm_error_status(error), "cannot create the temporary folder %s: %s; set TMPDIR",
                       path.data, rssm_error_words(error).text);
        goto done;
    }
    RSSM_TRY(take_text(&path, out_path, diag));
done:
    rssm_str_free(&path);
    return st;
}

rssm_status rssm_xdg_folder(const char *variable, const char *fallback, char **out_path, rssm_diag *diag)
{
    rssm_status st = RSSM_OK;
    rssm_str    path = {0};
    const char *folder = absolute_variable(variable), *home = absolute_variable("HOME");

    if (folder) {
        rssm_str_printf(&path, "%s/replayssm", folder);
    } else if (home) {
        rssm_str_printf(&path, "%s/%s/replayssm", home, fallback);
    } else {
        return RSSM_FAIL(diag, RSSM_E_NOT_FOUND, "neither %s nor HOME holds an absolute path; set one of them",
                         variable);
    }
    RSSM_TRY(take_text(&path, out_path, diag));
done:
    rssm_str_free(&path);
    return st;
}

rssm_status rssm_file_sealed(const char *name, const void *bytes, size_t n, int *out_fd, rssm_diag *diag)
{
    const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int       error = fd < 0 ? errno : write_fully(fd, bytes, n);

    if (!error && lseek(fd, 0, SEEK_SET) != 0) error = errno;
    if (!error && fcntl(fd, F_ADD_SEALS, seals) != 0) error = errno;
    if (error) {
        if (fd >= 0) close(fd);
        return RSSM_FAIL(diag, rssm_error_status(error), "cannot make a sealed memory file for %s: %s", name,
                         rssm_error_words(error).text);
    }
    *out_fd = fd;
    return RSSM_OK;
}

static bool is_program(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

// Relative and empty elements of PATH are skipped: what runs must not depend on the current folder.
rssm_status rssm_program_find(const char *name, char **out_path, rssm_diag *diag)
{
    rssm_status st = RSSM_OK;
    rssm_str    path = {0};
    const char *rest = strchr(name, '/') ? "" : getenv("PATH");

    if (strchr(name, '/'))
        rssm_str_puts(&path, name);
    else if (!rest)
        rest = "/usr/bin:/bin";
    for (;;) {
        RSSM_TRY(rssm_str_check(&path, diag));
        if (path.length && is_program(path.data)) break;
        if (!*rest) {
            st = RSSM_FAIL(diag, RSSM_E_NOT_FOUND, "no program %s was found%s", name,
                           strchr(name, '/') ? "" : " on PATH");
            goto done;
        }
        const size_t n = strcspn(rest, ":");
        rssm_str_clear(&path);
        if (rest[0] == '/') rssm_str_printf(&path, "%.*s/%s", (int)n, rest, name);
        rest += n + (rest[n] == ':');
    }
    RSSM_TRY(take_text(&path, out_path, diag));
done:
    rssm_str_free(&path);
    return st;
}
