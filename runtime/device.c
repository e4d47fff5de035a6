// The CPU as a device. The instruction set is named by the x86-64 micro-architecture levels (or a base Arm level):
// coarse enough that a fleet shares kernels, fine enough that clang may use the vectors there are.
#include "runtime/device.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/thread.h"

void rssm_device_add_fact(rssm_device *device, const char *name, int64_t value)
{
    assert(device->n_facts < RSSM_MAX_DEVICE_FACTS);
    device->facts[device->n_facts++] = (rssm_device_fact){name, value};
}

int64_t rssm_device_fact_value(const rssm_device *device, const char *name)
{
    for (uint32_t i = 0; i < device->n_facts; i++)
        if (strcmp(device->facts[i].name, name) == 0) return device->facts[i].value;
    return 0;
}

// Reads "key<spaces>: value" of /proc/cpuinfo into out; "" where the key is absent.
static void cpuinfo_value(const char *text, const char *key, char *out, size_t n)
{
    const size_t key_length = strlen(key);
    out[0] = '\0';
    for (const char *line = text; line != NULL && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, key, key_length) != 0) continue;
        const char *colon = strchr(line, ':');
        if (colon == NULL || colon > line + strcspn(line, "\n")) continue;
        colon += 1 + strspn(colon + 1, " \t");
        snprintf(out, n, "%.*s", (int)strcspn(colon, "\n"), colon);
        return;
    }
}

static int64_t read_cache_bytes(int level)
{
    for (int i = 0; i < 8; i++) {
        char   path[128], *text;
        size_t n;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/level", i);
        if (rssm_file_read(path, 1 << 16, &text, &n, NULL) != RSSM_OK) break;
        const int found = atoi(text);
        rssm_free(text);
        if (found != level) continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/type", i);
        if (rssm_file_read(path, 1 << 16, &text, &n, NULL) != RSSM_OK) break;
        const int is_code = strncmp(text, "Instruction", 11) == 0;
        rssm_free(text);
        if (is_code) continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        if (rssm_file_read(path, 1 << 16, &text, &n, NULL) != RSSM_OK) break;
        char         *unit;
        const int64_t value = strtoll(text, &unit, 10);
        const int64_t bytes = *unit == 'K' ? value << 10 : *unit == 'M' ? value << 20 : value;
        rssm_free(text);
        return bytes;
    }
    return 0;
}

// Clang's -march name and the widest vector in bytes.
static void detect_isa(const char **out_arch, int *out_vector_bytes)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    const int v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
    const int v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                   __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const int v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512vl");
    *out_arch = v4 ? "x86-64-v4" : v3 ? "x86-64-v3" : v2 ? "x86-64-v2" : "x86-64";
    *out_vector_bytes = v4 ? 64 : v3 ? 32 : 16;
#elif defined(__aarch64__)
    *out_arch = "armv8-a";
    *out_vector_bytes = 16;
#else
    *out_arch = "native";
    *out_vector_bytes = 16;
#endif
}

void rssm_device_describe_cpu(rssm_device *out_device)
{
    rssm_device  *d = out_device;
    const char   *arch;
    char         *cpuinfo = NULL;
    size_t        n = 0;
    int           vector_bytes;
    char          family[32] = "", model[32] = "", name[120] = "";
    struct sysinfo memory = {0};

    memset(d, 0, sizeof *d);
    detect_isa(&arch, &vector_bytes);
    if (rssm_file_read("/proc/cpuinfo", 16u << 20, &cpuinfo, &n, NULL) == RSSM_OK) {
        cpuinfo_value(cpuinfo, "model name", name, sizeof name);
        cpuinfo_value(cpuinfo, "cpu family", family, sizeof family);
        cpuinfo_value(cpuinfo, "model\t", model, sizeof model);
        if (name[0] == '\0') cpuinfo_value(cpuinfo, "CPU part", name, sizeof name);
    }
    rssm_free(cpuinfo);
    if (name[0] == '\0') snprintf(name, sizeof name, "CPU");
    sysinfo(&memory);

    const int     cores = rssm_usable_cores();
    const int64_t l2 = read_cache_bytes(2);
    const int64_t l3 = read_cache_bytes(3);
    const int64_t last = l3 ? l3 : l2 ? l2 : 32 << 20;
    d->info.struct_size = sizeof d->info;
    d->info.backend = RSSM_CPU;
    snprintf(d->info.name, sizeof d->info.name, "%s", name);
    snprintf(d->info.arch, sizeof d->info.arch, "%s", arch);
    d->info.n_units = (uint32_t)cores;
    d->info.cache_bytes = (uint64_t)last;
    d->info.memory_bytes = (uint64_t)memory.totalram * memory.mem_unit;
    d->ordinal = -1;
    rssm_device_add_fact(d, "dev.cores", cores);
    rssm_device_add_fact(d, "dev.vector_bytes", vector_bytes);
    rssm_device_add_fact(d, "dev.cache_bytes", last);
    snprintf(d->key_text, sizeof d->key_text, "cpu name='%s' family=%s model=%s arch=%s cores=%d l2=%lld l3=%lld", name,
             family, model, arch, cores, (long long)l2, (long long)l3);
    d->key = rssm_hash_bytes(d->key_text, strlen(d->key_text));
}
