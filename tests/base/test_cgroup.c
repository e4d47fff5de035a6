// base/cgroup.h over made-up system trees.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cgroup.h"
#include "base/file.h"

typedef struct tree_file {
    const char *path, *text;
} tree_file;

// Lays the files out under a fresh folder, asks, and removes it.
static int cpus_in(const tree_file *files, size_t n)
{
    char *root = NULL;

    cr_assert_eq(rssm_folder_temporary("test-cgroup", &root, NULL), RSSM_OK);
    for (size_t i = 0; i < n; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s%s", root, files[i].path);
        *strrchr(path, '/') = '\0';
        cr_assert_eq(rssm_folder_make(path, NULL), RSSM_OK);
        snprintf(path, sizeof path, "%s%s", root, files[i].path);
        cr_assert_eq(rssm_file_write(path, files[i].text, strlen(files[i].text), NULL), RSSM_OK);
    }
    const int cpus = rssm_cgroup_cpus(root);
    rssm_folder_remove(root);
    rssm_free(root);
    return cpus;
}

#define CPUS(...)                                                                                                      \
    cpus_in((const tree_file[]){__VA_ARGS__}, sizeof((const tree_file[]){__VA_ARGS__}) / sizeof(tree_file))

Test(cgroup, none)
{
    cr_assert_eq(cpus_in(NULL, 0), 0);
    cr_assert_eq(CPUS({"/proc/self/cgroup", "0::/\n"}), 0);
    cr_assert_eq(CPUS({"/proc/self/cgroup", "no colons\n\n:\n"}), 0);
}

Test(cgroup, version_2_rounds_up_and_takes_the_least_ancestor)
{
    cr_assert_eq(CPUS({"/proc/self/cgroup", "0::/a/b\n"}, {"/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n"}), 2);
    cr_assert_eq(CPUS({"/proc/self/cgroup", "0::/a/b\n"}, {"/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"}), 0);
    cr_assert_eq(CPUS({"/proc/self/cgroup", "0::/a/b\n"}, {"/sys/fs/cgroup/a/b/cpu.max", "800000 100000\n"},
                      {"/sys/fs/cgroup/a/cpu.max", "300000 100000\n"}),
                 3);
    cr_assert_eq(CPUS({"/proc/self/cgroup", "0::/a/b\n"}, {"/sys/fs/cgroup/a/b/cpu.max", "1000 100000\n"}), 1);
}

// In a container the group's path is the host's and does not exist here; the mount itself is the container's group.
Test(cgroup, an_invisible_group_ends_at_the_mount)
{
    cr_assert_eq(CPUS({"/proc/self/cgroup", "0::/kubepods/pod1/x\n"}, {"/sys/fs/cgroup/cpu.max", "400000 100000\n"}),
                 4);
    cr_assert_eq(CPUS({"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "400000 100000\n"}), 4);
    cr_assert_eq(CPUS({"/proc/self/cgroup", "0::/x\n"}, {"/sys/fs/cgroup/unified/x/cpu.max", "500000 100000\n"}), 5);
}

Test(cgroup, version_1)
{
    const char *groups = "12:cpuset:/c\n4:cpu,cpuacct:/docker/x\n1:name=systemd:/\n0::/\n";

    cr_assert_eq(CPUS({"/proc/self/cgroup", groups}, {"/sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us", "250000\n"},
                      {"/sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us", "100000\n"}),
                 3);
    cr_assert_eq(CPUS({"/proc/self/cgroup", groups}, {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n"},
                      {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"}),
                 2);
    cr_assert_eq(CPUS({"/proc/self/cgroup", groups}, {"/sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us", "-1\n"},
                      {"/sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us", "100000\n"}),
                 0);
    cr_assert_eq(CPUS({"/proc/self/cgroup", "4:cpuacct,cpuset:/x\n"}, {"/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "1\n"},
                      {"/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "1\n"}),
                 0, "only the cpu controller counts");
}

Test(cgroup, odd_values_are_no_limit)
{
    const char *const texts[] = {"", "x", "100000", "100000 0", "0 100000", "-5 100000"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        cr_assert_eq(CPUS({"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", texts[i]}), 0, "%s", texts[i]);
}
