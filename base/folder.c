// Making and removing folders; the other half of file.h.
//
// Threads: thread-safe. Two processes may make the same folder at once.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/system_error.h"

enum { DEEPEST_FOLDER = 64 }; // levels that rssm_folder_remove descends: each holds one descriptor and one frame

static bool is_folder(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

// 0, or an errno value. mkdir may say EEXIST, EROFS or EACCES of a folder that exists: what is there counts.
static int make_one(const char *path)
{
    if (mkdir(path, 0700) == 0) return 0;
    const int error = errno;
    if (is_folder(path)) return 0;
    return error == EEXIST ? ENOTDIR : error;
}

rssm_status rssm_folder_make(const char *path, rssm_diag *diag)
{
    char *copy = rssm_strdup(path);
    int   error = 0;

    if (!copy) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "out of memory while making the folder %s", path);
    for (char *p = copy; *p && !error; p++) {
        if (*p != '/' || p == copy) continue;
        *p = '\0';
        error = make_one(copy);
        *p = '/';
    }
    if (!error) error = make_one(copy);
    rssm_free(copy);
    if (!error) return RSSM_OK;
    return RSSM_FAIL(diag, rssm_error_status(error), "cannot make the folder %s: %s", path,
                     rssm_error_words(error).text);
}

// Removes what is in the folder of `parent` called `name`, then the folder. Anything that fails stays.
static void remove_at(int parent, const char *name, int depth)
{
    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR      *folder = fd < 0 || depth >= DEEPEST_FOLDER ? NULL : fdopendir(fd);

    if (!folder) {
        if (fd >= 0) close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (unlinkat(dirfd(folder), entry->d_name, 0) == 0) continue;
        if (errno == EISDIR || errno == EPERM) remove_at(dirfd(folder), entry->d_name, depth + 1);
    }
    closedir(folder);
    unlinkat(parent, name, AT_REMOVEDIR);
}

void rssm_folder_remove(const char *path)
{
    if (path) remove_at(AT_FDCWD, path, 0);
}
