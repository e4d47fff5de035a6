// base/file.h, the half in file.c: reading, atomic writing, sealed memory, environment paths.
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

static char *folder; // of the running test

static void make_folder(void)
{
    cr_assert_eq(rssm_folder_temporary("test-file", &folder, NULL), RSSM_OK);
}

static void remove_folder(void)
{
    rssm_folder_remove(folder);
    rssm_free(folder);
}

TestSuite(file, .init = make_folder, .fini = remove_folder);

// A path in the test's folder, valid until the fourth call after.
static const char *in_folder(const char *name)
{
    static char paths[4][512];
    static int  next;
    char       *path = paths[next++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static int n_entries(void)
{
    rssm_str command = {0};
    FILE    *f;
    int      n = -1;

    rssm_str_printf(&command, "ls -A '%s' | wc -l", folder);
    f = popen(command.data, "r");
    cr_assert_eq(fscanf(f, "%d", &n), 1);
    pclose(f);
    rssm_str_free(&command);
    return n;
}

static int n_open_files(void)
{
    int n = 0;

    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) != -1;
    return n;
}

Test(file, write_then_read_every_size)
{
    const size_t sizes[] = {0, 1, 4095, 4096, 4097, 300000};
    char        *bytes = malloc(300000);

    for (size_t i = 0; i < 300000; i++)
        bytes[i] = (char)(i * 31);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char  *read = NULL;
        size_t n = 99;
        cr_assert_eq(rssm_file_write(in_folder("f"), bytes, sizes[i], NULL), RSSM_OK);
        cr_assert_eq(rssm_file_read(in_folder("f"), 300000, &read, &n, NULL), RSSM_OK);
        cr_assert_eq(n, sizes[i]);
        cr_assert_eq(memcmp(read, bytes, n), 0);
        cr_assert_eq(read[n], '\0');
        rssm_free(read);
    }
    free(bytes);
}

Test(file, the_limit_is_exact)
{
    char     *bytes = NULL;
    size_t    n = 0;
    rssm_diag diag = {0};

    cr_assert_eq(rssm_file_write(in_folder("f"), "12345", 5, NULL), RSSM_OK);
    cr_assert_eq(rssm_file_read(in_folder("f"), 5, &bytes, &n, &diag), RSSM_OK);
    rssm_free(bytes);
    bytes = NULL;
    cr_assert_eq(rssm_file_read(in_folder("f"), 4, &bytes, &n, &diag), RSSM_E_IO);
    cr_assert_neq(strstr(diag.text, "larger than the 4 bytes"), NULL);
    cr_assert_eq(rssm_file_read(in_folder("f"), 0, &bytes, &n, &diag), RSSM_E_IO);
    cr_assert_null(bytes, "untouched on failure");
}

// Files under /proc say that they are empty.
Test(file, reads_files_without_a_size)
{
    char  *bytes = NULL;
    size_t n = 0;

    cr_assert_eq(rssm_file_read("/proc/self/status", 1 << 20, &bytes, &n, NULL), RSSM_OK);
    cr_assert_gt(n, 100);
    cr_assert_eq(strlen(bytes), n);
    rssm_free(bytes);
    bytes = NULL;
    cr_assert_eq(rssm_file_read("/proc/self/status", 10, &bytes, &n, NULL), RSSM_E_IO);
}

Test(file, what_cannot_be_read)
{
    char     *bytes = NULL;
    size_t    n = 0;
    rssm_diag diag = {0};

    cr_assert_eq(rssm_file_read(in_folder("none"), 10, &bytes, &n, &diag), RSSM_E_NOT_FOUND);
    cr_assert_neq(strstr(diag.text, "none"), NULL);
    cr_assert_eq(rssm_file_read(folder, 10, &bytes, &n, &diag), RSSM_E_IO);
    cr_assert_eq(mkfifo(in_folder("fifo"), 0600), 0);
    cr_assert_eq(rssm_file_read(in_folder("fifo"), 10, &bytes, &n, &diag), RSSM_E_IO, "and it does not hang");
    cr_assert_neq(strstr(diag.text, "not a regular file"), NULL);
    if (geteuid() != 0) {
        cr_assert_eq(rssm_file_write(in_folder("secret"), "x", 1, NULL), RSSM_OK);
        cr_assert_eq(chmod(in_folder("secret"), 0), 0);
        cr_assert_eq(rssm_file_read(in_folder("secret"), 10, &bytes, &n, &diag), RSSM_E_PERMISSION);
    }
    cr_assert_null(bytes);
}

Test(file, a_write_replaces_and_is_private)
{
    struct stat info;
    char       *bytes = NULL;
    size_t      n;

    cr_assert_eq(rssm_file_write(in_folder("f"), "old", 3, NULL), RSSM_OK);
    cr_assert_eq(rssm_file_write(in_folder("f"), "newer", 5, NULL), RSSM_OK);
    cr_assert_eq(rssm_file_read(in_folder("f"), 10, &bytes, &n, NULL), RSSM_OK);
    cr_assert_str_eq(bytes, "newer");
    cr_assert_eq(stat(in_folder("f"), &info), 0);
    cr_assert_eq(info.st_mode & 0777, 0600);
    cr_assert_eq(n_entries(), 1, "no temporary file is left");
    rssm_free(bytes);
}

Test(file, a_write_does_not_follow_links)
{
    char       *bytes = NULL;
    size_t      n;
    struct stat info;

    cr_assert_eq(rssm_file_write(in_folder("target"), "kept", 4, NULL), RSSM_OK);
    cr_assert_eq(symlink(in_folder("target"), in_folder("link")), 0);
    cr_assert_eq(rssm_file_write(in_folder("link"), "new", 3, NULL), RSSM_OK);
    cr_assert_eq(lstat(in_folder("link"), &info), 0);
    cr_assert(S_ISREG(info.st_mode));
    cr_assert_eq(rssm_file_read(in_folder("target"), 10, &bytes, &n, NULL), RSSM_OK);
    cr_assert_str_eq(bytes, "kept");
    rssm_free(bytes);
}

Test(file, a_failed_write_leaves_nothing)
{
    rssm_diag diag = {0};

    cr_assert_eq(mkdir(in_folder("d"), 0700), 0);
    cr_assert_eq(rssm_file_write(in_folder("d"), "x", 1, &diag), RSSM_E_IO);
    cr_assert_eq(n_entries(), 1);
    cr_assert_eq(rssm_file_write(in_folder("no/f"), "x", 1, &diag), RSSM_E_NOT_FOUND);
    cr_assert_neq(strstr(diag.text, "no/f"), NULL);
}

// A full disk: /dev/full cannot be the target of a rename, so the size limit of this process stands in.
Test(file, a_short_write_keeps_the_old_content, .signal = 0)
{
    rssm_diag diag = {0};
    char     *bytes = NULL, *large = calloc(1, 1 << 20);
    size_t    n;

    cr_assert_eq(rssm_file_write(in_folder("f"), "old", 3, NULL), RSSM_OK);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit, small;
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = limit;
    small.rlim_cur = 100000;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    const rssm_status st = rssm_file_write(in_folder("f"), large, 1 << 20, &diag);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cr_assert_eq(st, RSSM_E_IO);
    cr_assert_eq(rssm_file_read(in_folder("f"), 10, &bytes, &n, NULL), RSSM_OK);
    cr_assert_str_eq(bytes, "old");
    cr_assert_eq(n_entries(), 1);
    rssm_free(bytes);
    free(large);
}

Test(file, exists)
{
    cr_assert(rssm_file_exists(folder));
    cr_assert_not(rssm_file_exists(in_folder("none")));
}

Test(file, sealed_memory_cannot_change)
{
    int  fd = -1;
    char bytes[6] = "";

    cr_assert_eq(rssm_file_sealed("kernel", "bytes", 5, &fd, NULL), RSSM_OK);
    cr_assert_eq(read(fd, bytes, 6), 5);
    cr_assert_str_eq(bytes, "bytes");
    cr_assert_eq(pwrite(fd, "X", 1, 0), -1);
    cr_assert_eq(errno, EPERM);
    cr_assert_neq(ftruncate(fd, 0), 0);
    cr_assert_neq(ftruncate(fd, 100), 0);
    cr_assert_eq(mmap(NULL, 5, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    cr_assert_neq(fcntl(fd, F_ADD_SEALS, 0), 0, "the seals are sealed");
    cr_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
}

Test(file, xdg_folders)
{
    char     *path = NULL;
    rssm_diag diag = {0};

    setenv("XDG_DATA_HOME", "/data", 1);
    setenv("HOME", "/home/u", 1);
    cr_assert_eq(rssm_xdg_folder("XDG_DATA_HOME", ".local/share", &path, NULL), RSSM_OK);
    cr_assert_str_eq(path, "/data/replayssm");
    rssm_free(path);
    const char *const ignored[] = {"", "relative/path", "."};
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) {
        setenv("XDG_DATA_HOME", ignored[i], 1);
        cr_assert_eq(rssm_xdg_folder("XDG_DATA_HOME", ".local/share", &path, NULL), RSSM_OK);
        cr_assert_str_eq(path, "/home/u/.local/share/replayssm");
        rssm_free(path);
    }
    unsetenv("HOME");
    path = NULL;
    cr_assert_eq(rssm_xdg_folder("XDG_DATA_HOME", ".local/share", &path, &diag), RSSM_E_NOT_FOUND);
    cr_assert_null(path);
    cr_assert_neq(strstr(diag.text, "XDG_DATA_HOME"), NULL);
}

static void make_program(const char *name, mode_t mode)
{
    cr_assert_eq(rssm_file_write(in_folder(name), "#!/bin/sh\n", 10, NULL), RSSM_OK);
    cr_assert_eq(chmod(in_folder(name), mode), 0);
}

Test(file, programs)
{
    char     *path = NULL;
    char      search[1024];
    rssm_diag diag = {0};

    cr_assert_eq(mkdir(in_folder("bin"), 0700), 0);
    cr_assert_eq(mkdir(in_folder("later"), 0700), 0);
    cr_assert_eq(mkdir(in_folder("bin/folder"), 0700), 0);
    make_program("bin/plain", 0600);
    make_program("later/plain", 0700);
    make_program("later/folder", 0700);
    snprintf(search, sizeof search, "::relative:/does/not/exist:%s/bin:%s/later", folder, folder);
    setenv("PATH", search, 1);

    cr_assert_eq(rssm_program_find("plain", &path, NULL), RSSM_OK, "what cannot be executed is passed over");
    cr_assert_str_eq(path, in_folder("later/plain"));
    rssm_free(path);
    cr_assert_eq(rssm_program_find("folder", &path, NULL), RSSM_OK, "and so is a folder");
    cr_assert_str_eq(path, in_folder("later/folder"));
    rssm_free(path);
    cr_assert_eq(rssm_program_find(in_folder("later/plain"), &path, NULL), RSSM_OK);
    cr_assert_str_eq(path, in_folder("later/plain"));
    rssm_free(path);
    path = NULL;
    cr_assert_eq(rssm_program_find(in_folder("bin/plain"), &path, &diag), RSSM_E_NOT_FOUND);
    cr_assert_eq(rssm_program_find("nothing-of-this-name", &path, &diag), RSSM_E_NOT_FOUND);
    cr_assert_neq(strstr(diag.text, "nothing-of-this-name"), NULL);
    cr_assert_null(path);
    cr_assert_eq(chdir(in_folder("later")), 0);
    setenv("PATH", ":.", 1);
    cr_assert_eq(rssm_program_find("plain", &path, &diag), RSSM_E_NOT_FOUND, "the current folder is never searched");
    setenv("PATH", "", 1);
    cr_assert_eq(rssm_program_find("plain", &path, &diag), RSSM_E_NOT_FOUND);
}

// Every function, with every allocation failing in turn: a status, no descriptor left, outputs untouched.
Test(file, every_failed_allocation_is_clean)
{
    for (int which = 0; which < 5; which++) {
        int n_failed = 0;
        setenv("XDG_DATA_HOME", "/data", 1);
        for (long n = 1;; n++) {
            const int   before = n_open_files();
            char       *out = NULL;
            size_t      size;
            rssm_status st;
            const char *target = in_folder("f");

            rssm_alloc_fail_after(n);
            st = which == 0   ? rssm_file_write(target, "text", 4, NULL)
                 : which == 1 ? rssm_file_read("/proc/self/status", 1 << 20, &out, &size, NULL)
                 : which == 2 ? rssm_xdg_folder("XDG_DATA_HOME", "x", &out, NULL)
                 : which == 3 ? rssm_program_find("sh", &out, NULL)
                              : rssm_folder_make(in_folder("a/b"), NULL);
            const int fired = rssm_alloc_fail_after(0);
            cr_assert_eq(n_open_files(), before, "function %d leaks a descriptor", which);
            if (!fired) {
                cr_assert_eq(st, RSSM_OK);
                rssm_free(out);
                break;
            }
            n_failed++;
            cr_assert(st == RSSM_E_NO_MEMORY || (which == 0 && st == RSSM_OK), "function %d: %d", which, st);
            cr_assert_null(out);
        }
        cr_assert_gt(n_failed, 0);
    }
}
