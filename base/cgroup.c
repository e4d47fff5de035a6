// CPU limits of control groups.
//
// /proc/self/cgroup names the group of each hierarchy; the quota files of that group and of every ancestor count, the
// least one wins. Inside a container the named group is often not visible: paths that do not exist are skipped and the
// walk still ends at the mounted root, which is then the container's own group. Only the usual mount points are known.
// Threads: thread-safe.
#include "base/cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

enum { SMALL_FILE = 64 << 10 }; // bytes; the kernel's files are far smaller

// One integer from a file; false where it cannot be read or holds something else ("max").
static bool read_two(const char *path, int n_wanted, long long *first, long long *second)
{
    char  *text = NULL;
    size_t n;

    if (rssm_file_read(path, SMALL_FILE, &text, &n, NULL) != RSSM_OK) return false;
    const int n_read = sscanf(text, "%lld %lld", first, second);
    rssm_free(text);
    return n_read >= n_wanted;
}

// CPUs allowed by the quota files in one folder; 0: none given.
static int quota_of(const char *folder, bool is_v2)
{
    rssm_str  path = {0};
    long long quota = 0, period = 0, ignored;
    bool      found;

    if (is_v2) {
        rssm_str_printf(&path, "%s/cpu.max", folder);
        found = read_two(rssm_str_c(&path), 2, &quota, &period);
    } else {
        rssm_str_printf(&path, "%s/cpu.cfs_quota_us", folder);
        found = read_two(rssm_str_c(&path), 1, &quota, &ignored);
        rssm_str_clear(&path);
        rssm_str_printf(&path, "%s/cpu.cfs_period_us", folder);
        found = found && read_two(rssm_str_c(&path), 1, &period, &ignored);
    }
    rssm_str_free(&path);
    if (!found || quota <= 0 || period <= 0) return 0; // -1: unlimited
    const long long cpus = quota / period + (quota % period != 0);
    return cpus > 1 << 20 ? 1 << 20 : (int)cpus;
}

static int lesser(int a, int b)
{
    return a == 0 ? b : b == 0 ? a : a < b ? a : b;
}

// The least quota from mount + group up to the mount itself. Changes `group`.
static int walk_up(const char *root, const char *mount, const char *group, bool is_v2)
{
    rssm_str path = {0};
    int      cpus = 0;

    rssm_str_printf(&path, "%s%s", root, mount);
    const size_t n_mount = path.length;
    rssm_str_puts(&path, group);
    while (!path.failed) {
        while (path.length > n_mount && path.data[path.length - 1] == '/')
            path.data[--path.length] = '\0';
        cpus = lesser(cpus, quota_of(path.data, is_v2));
        if (path.length <= n_mount) break;
        while (path.length > n_mount && path.data[path.length - 1] != '/')
            path.data[--path.length] = '\0';
    }
    rssm_str_free(&path);
    return cpus;
}

// Whether a comma-separated list of controllers holds "cpu".
static bool has_cpu(const char *list)
{
    for (;;) {
        const size_t n = strcspn(list, ",");
        if (n == 3 && memcmp(list, "cpu", 3) == 0) return true;
        if (!list[n]) return false;
        list += n + 1;
    }
}

// One line of /proc/self/cgroup: "number:controllers:group"; version 2 has number 0 and no controllers.
static int quota_of_line(const char *root, char *line)
{
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    int   cpus;

    if (!group) return 0;
    *controllers++ = '\0';
    *group++ = '\0';
    if (!*controllers) {
        cpus = walk_up(root, "/sys/fs/cgroup", group, true);
        return lesser(cpus, walk_up(root, "/sys/fs/cgroup/unified", group, true));
    }
    if (!has_cpu(controllers)) return 0;
    cpus = walk_up(root, "/sys/fs/cgroup/cpu", group, false);
    if (cpus == 0) cpus = walk_up(root, "/sys/fs/cgroup/cpu,cpuacct", group, false);
    return cpus;
}

int rssm_cgroup_cpus(const char *root)
{
    rssm_str path = {0};
    char    *text = NULL, *state = NULL;
    size_t   n;
    int      cpus = 0;

    rssm_str_printf(&path, "%s/proc/self/cgroup", root);
    if (rssm_file_read(rssm_str_c(&path), SMALL_FILE, &text, &n, NULL) == RSSM_OK) {
        for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state))
            cpus = lesser(cpus, quota_of_line(root, line));
    }
    rssm_free(text);
    rssm_str_free(&path);
    return cpus;
}
