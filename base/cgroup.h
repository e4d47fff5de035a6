// CPU limits of Linux control groups, versions 1 and 2.
#ifndef RSSM_BASE_CGROUP_H
#define RSSM_BASE_CGROUP_H

// CPUs that the quotas of this process's group and all its ancestors allow, rounded up; 0: no limit. `root` is put
// before every path ("" is the system, tests give a folder of their own). Thread-safe.
int rssm_cgroup_cpus(const char *root);

#endif
