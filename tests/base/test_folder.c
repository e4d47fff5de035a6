// base/file.h, the half in folder.c: making and removing folders.
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

Test(folder, temporary_ones_are_private_and_new)
{
    char       *a = NULL, *b = NULL;
    struct stat info;

    cr_assert_eq(rssm_folder_temporary("rssm", &a, NULL), RSSM_OK);
    setenv("TMPDIR", a, 1);
    cr_assert_eq(rssm_folder_temporary("inner", &b, NULL), RSSM_OK);
    cr_assert_eq(strncmp(a, b, strlen(a)), 0, "TMPDIR is used");
    cr_assert_eq(stat(b, &info), 0);
    cr_assert(S_ISDIR(info.st_mode));
    cr_assert_eq(info.st_mode & 0777, 0700);
    rssm_folder_remove(a);
    cr_assert_not(rssm_file_exists(a));
    rssm_free(b);
    b = NULL;
    cr_assert_eq(rssm_folder_temporary("inner", &b, NULL), RSSM_E_NOT_FOUND, "TMPDIR is gone");
    cr_assert_null(b);
    setenv("TMPDIR", "relative", 1);
    cr_assert_eq(rssm_folder_temporary("rssm", &b, NULL), RSSM_OK);
    cr_assert_eq(strncmp(b, "/tmp/rssm-", 10), 0);
    rssm_folder_remove(b);
    rssm_free(a);
    rssm_free(b);
}

Test(folder, make_parents)
{
    char       *root = NULL;
    rssm_str    path = {0};
    struct stat info;
    rssm_diag   diag = {0};

    cr_assert_eq(rssm_folder_temporary("rssm", &root, NULL), RSSM_OK);
    rssm_str_printf(&path, "%s/a//b/c/", root);
    for (int round = 0; round < 2; round++)
        cr_assert_eq(rssm_folder_make(path.data, NULL), RSSM_OK, "again is fine");
    cr_assert_eq(stat(path.data, &info), 0);
    cr_assert_eq(info.st_mode & 0777, 0700);

    rssm_str_clear(&path);
    rssm_str_printf(&path, "%s/file", root);
    cr_assert_eq(rssm_file_write(path.data, "", 0, NULL), RSSM_OK);
    cr_assert_eq(rssm_folder_make(path.data, &diag), RSSM_E_NOT_FOUND, "a file is in the way");
    rssm_str_puts(&path, "/below");
    cr_assert_eq(rssm_folder_make(path.data, &diag), RSSM_E_NOT_FOUND);
    cr_assert_neq(strstr(diag.text, "/below"), NULL);
    cr_assert_eq(rssm_folder_make("", &diag), RSSM_E_NOT_FOUND);
    rssm_folder_remove(root);
    rssm_str_free(&path);
    rssm_free(root);
}

static void touch(const char *folder, const char *name)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    cr_assert_eq(rssm_file_write(path, "x", 1, NULL), RSSM_OK);
}

Test(folder, remove_goes_down_but_never_through_links)
{
    char *kept = NULL, *root = NULL, path[512];

    cr_assert_eq(rssm_folder_temporary("kept", &kept, NULL), RSSM_OK);
    cr_assert_eq(rssm_folder_temporary("gone", &root, NULL), RSSM_OK);
    touch(kept, "file");
    snprintf(path, sizeof path, "%s/a/b", root);
    cr_assert_eq(rssm_folder_make(path, NULL), RSSM_OK);
    for (int i = 0; i < 200; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        touch(path, name);
    }
    touch(root, ".hidden");
    snprintf(path, sizeof path, "%s/a/link", root);
    cr_assert_eq(symlink(kept, path), 0);
    rssm_folder_remove(root);
    cr_assert_not(rssm_file_exists(root));

    snprintf(path, sizeof path, "%s/file", kept);
    cr_assert(rssm_file_exists(path), "the link's target stands");
    cr_assert_eq(symlink(kept, root), 0);
    rssm_folder_remove(root);
    cr_assert(rssm_file_exists(path), "a link given as the folder is not followed");
    unlink(root);
    rssm_folder_remove(kept);
    cr_assert_not(rssm_file_exists(kept));
    rssm_folder_remove(kept);
    rssm_folder_remove(NULL);
    rssm_free(root);
    rssm_free(kept);
}
