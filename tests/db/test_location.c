#include "db/location.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tests/db/support.h"

Test(location, refuses_a_symbolic_link_but_not_a_linked_folder)
{
    scratch   s = scratch_begin();
    rssm_diag diag = {0};
    char      folder[600], link[600], inside[700];
    make_database(s.path, 1);
    snprintf(link, sizeof(link), "%s/link.db", s.folder);
    cr_assert_eq(symlink(s.path, link), 0);
    cr_expect_eq(try_read(link, &diag), RSSM_E_PERMISSION, "%s", diag.text);
    cr_expect(strstr(diag.text, "symbolic link") != NULL, "%s", diag.text);
    cr_expect_eq(try_write(link, &diag), RSSM_E_PERMISSION, "%s", diag.text);

    snprintf(link, sizeof(link), "%s/dangling.db", s.folder);
    cr_assert_eq(symlink("/tmp/nowhere-at-all", link), 0);
    cr_expect_eq(try_write(link, &diag), RSSM_E_PERMISSION, "%s", diag.text);

    snprintf(folder, sizeof(folder), "%s/data", s.folder);
    snprintf(link, sizeof(link), "%s/folder", s.folder);
    snprintf(inside, sizeof(inside), "%s/tuned.db", link);
    cr_assert_eq(symlink(folder, link), 0);
    cr_expect_eq(try_read(inside, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_eq(try_write(inside, &diag), RSSM_OK, "%s", diag.text);
    scratch_end(&s);
}

Test(location, refuses_a_planted_log)
{
    scratch   s = scratch_begin();
    rssm_diag diag = {0};
    char      log[600];
    make_database(s.path, 1);
    snprintf(log, sizeof(log), "%s-wal", s.path);
    cr_assert_eq(symlink("/etc/passwd", log), 0);
    cr_expect_eq(try_read(s.path, &diag), RSSM_E_PERMISSION, "%s", diag.text);
    cr_expect_eq(try_write(s.path, &diag), RSSM_E_PERMISSION, "%s", diag.text);
    scratch_end(&s);
}

Test(location, refuses_what_others_may_write)
{
    scratch   s = scratch_begin();
    rssm_diag diag = {0};
    char      folder[600];
    make_database(s.path, 1);
    chmod(s.path, 0646);
    cr_expect_eq(try_read(s.path, &diag), RSSM_E_PERMISSION, "%s", diag.text);
    cr_expect(strstr(diag.text, "0646") != NULL, "%s", diag.text);
    chmod(s.path, 0664); // the group may be the user's own
    cr_expect_eq(try_read(s.path, &diag), RSSM_OK, "%s", diag.text);
    chmod(s.path, 0666); // in an open for writing the user's own file is closed to others
    cr_expect_eq(try_write(s.path, &diag), RSSM_OK, "%s", diag.text);
    struct stat info;
    cr_assert_eq(stat(s.path, &info), 0);
    cr_expect_eq(info.st_mode & 0777, 0644u);

    snprintf(folder, sizeof(folder), "%s/data", s.folder);
    chmod(folder, 0777);
    cr_expect_eq(try_read(s.path, &diag), RSSM_E_PERMISSION, "%s", diag.text);
    cr_expect(strstr(diag.text, "folder") != NULL, "%s", diag.text);
    chmod(folder, 01777); // as /tmp
    cr_expect_eq(try_read(s.path, &diag), RSSM_OK, "%s", diag.text);
    scratch_end(&s);
}

Test(location, refuses_files_and_folders_of_other_users)
{
    scratch   s = scratch_begin();
    rssm_diag diag = {0};
    char      folder[600];
    if (geteuid() != 0) {
        scratch_end(&s);
        cr_skip_test("giving files away needs root");
    }
    make_database(s.path, 1);
    cr_assert_eq(chown(s.path, 12345, 12345), 0);
    cr_expect_eq(try_read(s.path, &diag), RSSM_E_PERMISSION, "%s", diag.text);
    cr_expect(strstr(diag.text, "user 12345") != NULL, "%s", diag.text);
    cr_expect_eq(try_write(s.path, &diag), RSSM_E_PERMISSION, "%s", diag.text);
    cr_assert_eq(chown(s.path, 0, 0), 0);
    cr_expect_eq(try_read(s.path, &diag), RSSM_OK, "%s", diag.text);

    snprintf(folder, sizeof(folder), "%s/data", s.folder);
    cr_assert_eq(chown(folder, 12345, 12345), 0);
    cr_expect_eq(try_read(s.path, &diag), RSSM_E_PERMISSION, "%s", diag.text);
    cr_assert_eq(chown(folder, 0, 0), 0);

    // Root's file serves everyone, unless its group can write to it.
    chmod(s.path, 0644);
    chmod(folder, 0755);
    chmod(s.folder, 0755);
    cr_assert_eq(seteuid(65534), 0);
    cr_expect_eq(try_read(s.path, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_eq(try_write(s.path, &diag), RSSM_E_PERMISSION, "%s", diag.text);
    cr_assert_eq(seteuid(0), 0);
    chmod(s.path, 0664);
    cr_assert_eq(seteuid(65534), 0);
    cr_expect_eq(try_read(s.path, &diag), RSSM_E_PERMISSION, "%s", diag.text);
    cr_assert_eq(seteuid(0), 0);
    scratch_end(&s);
}

Test(location, escapes_paths_for_uris)
{
    scratch   s = scratch_begin();
    rssm_diag diag = {0};
    rssm_str  uri = {0};
    char      path[600];
    cr_assert_eq(rssm_location_uri("/a b?c#d%e/\xC3\xA9.db", "?mode=ro", &uri, NULL), RSSM_OK);
    cr_expect_str_eq(rssm_str_c(&uri), "file:/a%20b%3Fc%23d%25e/%C3%A9.db?mode=ro");
    rssm_str_free(&uri);
    snprintf(path, sizeof(path), "%s/odd ?mode=memory#%%41\xC3\xA9.db", s.folder);
    make_database(path, 1);
    cr_expect(!file_absent(path, ""));
    cr_expect_eq(try_read(path, &diag), RSSM_OK, "%s", diag.text);
    scratch_end(&s);
}

Test(location, takes_this_file_system_as_local_and_knows_the_size_of_a_file)
{
    scratch s = scratch_begin();
    make_database(s.path, 1);
    cr_expect(rssm_location_is_local(s.path));
    cr_expect(!rssm_location_is_local("/nonexistent"));
    cr_expect_gt(rssm_location_size(s.path, ""), 4096);
    cr_expect_eq(rssm_location_size(s.path, "-wal"), -1);
    scratch_end(&s);
}
