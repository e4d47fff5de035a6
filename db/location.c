// Paths, owners and permissions, as location.h says.
#define _GNU_SOURCE // eaccess
#include "db/location.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "db/failure.h"

rssm_status rssm_location_uri(const char *path, const char *query, rssm_str *out, rssm_diag *diag)
{
    rssm_str_puts(out, "file:");
    for (const unsigned char *p = (const unsigned char *)path; *p != '\0'; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
                     strchr("/-._~", *p) != NULL;
        if (plain) {
            rssm_str_append(out, (const char *)p, 1);
        } else {
            rssm_str_printf(out, "%%%02X", *p);
        }
    }
    rssm_str_puts(out, query);
    return rssm_str_check(out, diag);
}

long long rssm_location_size(const char *path, const char *suffix)
{
    rssm_str    name = {0};
    struct stat info;
    long long   size = -1;
    rssm_str_printf(&name, "%s%s", path, suffix);
    if (!name.failed && lstat(rssm_str_c(&name), &info) == 0) {
        size = (long long)info.st_size;
    }
    rssm_str_free(&name);
    return size;
}

bool rssm_location_is_local(const char *path)
{
    // From statfs(2) and linux/magic.h; a virtiofs mount reports FUSE.
    static const unsigned long SHARED[] = {
        0x6969,     // NFS
        0x517B,     // SMB
        0xFF534D42, // CIFS
        0xFE534D42, // SMB2
        0x65735546, // FUSE
        0x01021997, // 9P
        0x0BD00BD0, // Lustre
        0x00C36400, // Ceph
        0x47504653, // GPFS
        0x19830326, // BeeGFS
        0x01161970, // GFS2
        0x7461636F, // OCFS2
        0x5346414F, // AFS
        0x6B414653, // kAFS
        0x73757245, // Coda
        0x786F4256, // VirtualBox shared folders
    };
    struct statfs info;
    if (statfs(path, &info) != 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof(SHARED) / sizeof(SHARED[0]); i++) {
        if (((unsigned long)info.f_type & 0xFFFFFFFFUL) == SHARED[i]) {
            return false;
        }
    }
    return true;
}

// S3 for one file; absent ones are fine.
static rssm_status check_file(const char *path, bool for_writing, rssm_diag *diag)
{
    struct stat info;
    if (lstat(path, &info) != 0) {
        return errno == ENOENT ? RSSM_OK : rssm_failure_errno(errno, path, "looking for it", diag);
    }
    if (S_ISLNK(info.st_mode)) {
        return RSSM_FAIL(diag, RSSM_E_PERMISSION,
                         "'%s' is a symbolic link, which is not followed; give the path it leads to", path);
    }
    if (!S_ISREG(info.st_mode)) {
        return RSSM_FAIL(diag, RSSM_E_FOREIGN, "'%s' is not a regular file; choose another path", path);
    }
    if (info.st_uid != geteuid() && info.st_uid != 0) {
        return RSSM_FAIL(diag, RSSM_E_PERMISSION,
                         "'%s' belongs to user %u, who is neither this user nor root, and kernels from it would run "
                         "here; copy it to a file of your own if you trust it",
                         path, (unsigned)info.st_uid);
    }
    bool is_mine = info.st_uid == geteuid();
    if (is_mine && for_writing && (info.st_mode & 022) != 0) {
        return chmod(path, info.st_mode & 0755) == 0 ? RSSM_OK
                                                     : rssm_failure_errno(errno, path, "changing its mode", diag);
    }
    // A group may be the user's own, so only root's files must be closed to it.
    if ((info.st_mode & (is_mine ? 002 : 022)) != 0) {
        return RSSM_FAIL(diag, RSSM_E_PERMISSION,
                         "'%s' may be written by others (mode %04o), and kernels from it would run here; chmod go-w it "
                         "if you trust it",
                         path, (unsigned)info.st_mode & 07777);
    }
    return RSSM_OK;
}

// Whoever can rename files in the folder can put another one in the place of ours.
static rssm_status check_folder(const char *folder, rssm_diag *diag)
{
    struct stat info;
    if (stat(folder, &info) != 0) {
        return rssm_failure_errno(errno, folder, "looking for it", diag);
    }
    if (info.st_uid != geteuid() && info.st_uid != 0) {
        return RSSM_FAIL(diag, RSSM_E_PERMISSION,
                         "folder '%s' belongs to user %u, who could replace the database in it; use a folder of your "
                         "own or root's",
                         folder, (unsigned)info.st_uid);
    }
    if ((info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0) {
        return RSSM_FAIL(diag, RSSM_E_PERMISSION,
                         "folder '%s' may be written by everyone, who could replace the database in it; chmod o-w it",
                         folder);
    }
    return RSSM_OK;
}

static rssm_status make_folder(const char *folder, rssm_diag *diag)
{
    struct stat info;
    if (stat(folder, &info) == 0 || errno != ENOENT) {
        return RSSM_OK; // what is wrong with it shows when it is resolved
    }
    rssm_status st = rssm_folder_make(folder, diag);
    if (st == RSSM_OK && chmod(folder, 0700) != 0) {
        st = rssm_failure_errno(errno, folder, "changing its mode", diag);
    }
    return st;
}

static rssm_status make_file(const char *path, const char *folder, rssm_diag *diag)
{
    struct statvfs info;
    if (statvfs(folder, &info) != 0) {
        return rssm_failure_errno(errno, folder, "looking for it", diag);
    }
    if ((info.f_flag & ST_RDONLY) != 0) {
        return rssm_failure_errno(EROFS, path, "opening it for writing", diag);
    }
    if (eaccess(folder, W_OK | X_OK) != 0) { // journals are made there
        return rssm_failure_errno(errno, folder, "writing into it", diag);
    }
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return errno == EEXIST ? RSSM_OK : rssm_failure_errno(errno, path, "making it", diag);
    }
    rssm_status st = fchmod(fd, 0600) == 0 ? RSSM_OK : rssm_failure_errno(errno, path, "changing its mode", diag);
    close(fd);
    return st;
}

static rssm_status check_all(const char *path, const char *folder, bool for_writing, rssm_diag *diag)
{
    static const char *const SUFFIXES[] = {"", "-wal", "-shm", "-journal"};

    rssm_status st;
    rssm_str    name = {0};
    RSSM_TRY(check_folder(folder, diag));
    for (size_t i = 0; i < sizeof(SUFFIXES) / sizeof(SUFFIXES[0]); i++) {
        rssm_str_clear(&name);
        rssm_str_printf(&name, "%s%s", path, SUFFIXES[i]);
        RSSM_TRY(rssm_str_check(&name, diag));
        RSSM_TRY(check_file(rssm_str_c(&name), for_writing, diag));
    }
done:
    rssm_str_free(&name);
    return st;
}

// The folder part and the last component; the folder of "name" is ".".
static rssm_status split_path(const char *path, rssm_str *out_folder, const char **out_name, rssm_diag *diag)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "'%s' does not name a file; give a path like 'folder/tuned.db'",
                         path);
    }
    if (slash == NULL) {
        rssm_str_puts(out_folder, ".");
    } else {
        rssm_str_append(out_folder, path, slash == path ? 1 : (size_t)(slash - path));
    }
    *out_name = name;
    return rssm_str_check(out_folder, diag);
}

rssm_status rssm_location_prepare(const char *path, bool for_writing, char **out_path, rssm_diag *diag)
{
    rssm_status st;
    rssm_str    folder = {0}, resolved = {0};
    char       *real = NULL; // from libc, so freed by free()
    const char *name = NULL;

    RSSM_TRY(split_path(path, &folder, &name, diag));
    if (for_writing) {
        RSSM_TRY(make_folder(rssm_str_c(&folder), diag));
    }
    real = realpath(rssm_str_c(&folder), NULL);
    if (real == NULL) {
        st = rssm_failure_errno(errno, path, "resolving its folder", diag);
        goto done;
    }
    rssm_str_printf(&resolved, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name);
    RSSM_TRY(rssm_str_check(&resolved, diag));
    if (for_writing) {
        RSSM_TRY(make_file(rssm_str_c(&resolved), real, diag));
    } else if (rssm_location_size(rssm_str_c(&resolved), "") < 0) {
        st = rssm_failure_errno(errno, rssm_str_c(&resolved), "looking for it", diag);
        goto done;
    }
    RSSM_TRY(check_all(rssm_str_c(&resolved), real, for_writing, diag));
    *out_path = resolved.data;
    resolved = (rssm_str){0};
done:
    free(real);
    rssm_str_free(&folder);
    rssm_str_free(&resolved);
    return st;
}
