// Reads a template folder. Its content may be someone else's: sizes, counts and depth are bounded, only regular files
// are read, and a symbolic link is followed only where it ends at a regular file inside the folder.
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "gen/source_set.h"

typedef struct walk {
    rssm_template_set *set;
    char              *root; // resolved
    rssm_diag         *diag;
} walk;

static rssm_status walk_folder(walk *w, const char *relative, int depth);

static rssm_status fail_errno(walk *w, const char *path, const char *what)
{
    const rssm_status code = errno == EACCES ? RSSM_E_PERMISSION : errno == ENOENT ? RSSM_E_NOT_FOUND : RSSM_E_IO;
    return RSSM_FAIL(w->diag, code, "the template folder's %s cannot be %s: %s", path, what, strerror(errno));
}

static rssm_status check_link(walk *w, const char *path)
{
    rssm_status  st = RSSM_OK;
    const size_t n_root = strlen(w->root);
    struct stat  info;
    char        *target = realpath(path, NULL);

    if (!target) return fail_errno(w, path, "resolved");
    if (strncmp(target, w->root, n_root) != 0 || target[n_root] != '/') {
        st = RSSM_FAIL(w->diag, RSSM_E_PERMISSION, "%s is a link to %s, outside the template folder; copy the file",
                       path, target);
    } else if (stat(target, &info) != 0 || !S_ISREG(info.st_mode)) {
        st = RSSM_FAIL(w->diag, RSSM_E_IO, "%s is a link to something that is not a regular file", path);
    }
    free(target);
    return st;
}

static rssm_status add_file(walk *w, const char *path, const char *name)
{
    rssm_status st;
    char       *bytes = NULL;
    size_t      n;

    if (w->set->n_files == RSSM_SET_FILES_MAX) {
        return RSSM_FAIL(w->diag, RSSM_E_IO, "the template folder %s holds more than %d files", w->root,
                         RSSM_SET_FILES_MAX);
    }
    RSSM_TRY(rssm_file_read(path, RSSM_SET_FILE_BYTES_MAX, &bytes, &n, w->diag));
    if (w->set->n_bytes + n > RSSM_SET_BYTES_MAX) {
        st = RSSM_FAIL(w->diag, RSSM_E_IO, "the template folder %s holds more than %d bytes", w->root,
                       RSSM_SET_BYTES_MAX);
        goto done;
    }
    st = rssm_set_add_file(w->set, name, bytes, n, true, w->diag);
done:
    rssm_free(bytes);
    return st;
}

static rssm_status visit(walk *w, const char *name, int depth)
{
    rssm_status st = RSSM_OK;
    rssm_str    path = {0};
    struct stat info;

    rssm_str_printf(&path, "%s/%s", w->root, name);
    RSSM_TRY(rssm_str_check(&path, w->diag));
    if (lstat(path.data, &info) != 0) {
        st = fail_errno(w, path.data, "examined");
    } else if (S_ISDIR(info.st_mode)) {
        st = walk_folder(w, name, depth + 1);
    } else if (!rssm_set_takes(name)) {
        st = RSSM_OK;
    } else if (S_ISLNK(info.st_mode)) {
        RSSM_TRY(check_link(w, path.data));
        st = add_file(w, path.data, name);
    } else if (S_ISREG(info.st_mode)) {
        st = add_file(w, path.data, name);
    } else {
        st = RSSM_FAIL(w->diag, RSSM_E_IO, "%s is not a regular file", path.data);
    }
done:
    rssm_str_free(&path);
    return st;
}

static rssm_status visit_entries(walk *w, DIR *folder, const char *relative, int depth)
{
    rssm_status    st = RSSM_OK;
    rssm_str       name = {0};
    struct dirent *entry;

    while ((entry = readdir(folder))) {
        if (entry->d_name[0] == '.') continue; // ".", ".." and hidden files, an editor's among them
        rssm_str_clear(&name);
        rssm_str_printf(&name, "%s%s%s", relative, *relative ? "/" : "", entry->d_name);
        RSSM_TRY(rssm_str_check(&name, w->diag));
        RSSM_TRY(visit(w, name.data, depth));
    }
done:
    rssm_str_free(&name);
    return st;
}

static rssm_status walk_folder(walk *w, const char *relative, int depth)
{
    rssm_status st;
    rssm_str    path = {0};
    DIR        *folder = NULL;

    rssm_str_printf(&path, "%s/%s", w->root, relative);
    RSSM_TRY(rssm_str_check(&path, w->diag));
    if (depth > RSSM_SET_DEPTH_MAX) {
        st = RSSM_FAIL(w->diag, RSSM_E_IO, "%s is nested more than %d folders deep", path.data, RSSM_SET_DEPTH_MAX);
        goto done;
    }
    folder = opendir(path.data);
    if (!folder) {
        st = fail_errno(w, path.data, "opened");
        goto done;
    }
    st = visit_entries(w, folder, relative, depth);
done:
    if (folder) closedir(folder);
    rssm_str_free(&path);
    return st;
}

rssm_status rssm_set_add_folder(rssm_template_set *set, const char *folder, rssm_diag *diag)
{
    rssm_status st;
    walk        w = {.set = set, .diag = diag};

    w.root = realpath(folder, NULL);
    if (!w.root) {
        return RSSM_FAIL(diag, errno == EACCES ? RSSM_E_PERMISSION : RSSM_E_NOT_FOUND,
                         "the template folder %s cannot be opened: %s", folder, strerror(errno));
    }
    RSSM_TRY(walk_folder(&w, "", 0));
    if (set->n_files == 0) {
        st = RSSM_FAIL(diag, RSSM_E_NOT_FOUND,
                       "the template folder %s holds no template; it replaces all of those "
                       "inside the library",
                       folder);
    }
done:
    free(w.root);
    return st;
}
