// Discovery and description of GPUs. See cuda_device.h; device.h says what a device's key is for.
#include "runtime/cuda_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "runtime/cuda_context.h"
#include "runtime/cuda_error.h"

enum { OLDEST_CAPABILITY = 800 }; // 100 * major + 10 * minor: asynchronous copies and bf16 matrix instructions

// Everything that is read of one GPU. `optional`: what a driver may not know; 0 then.
#define ATTRIBUTE_LIST(X)                                                                                              \
    X(major, COMPUTE_CAPABILITY_MAJOR, 0)                                                                              \
    X(minor, COMPUTE_CAPABILITY_MINOR, 0)                                                                              \
    X(multiprocessors, MULTIPROCESSOR_COUNT, 0)                                                                        \
    X(shared_optin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0)                                                              \
    X(shared_per_multiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 0)                                              \
    X(registers, MAX_REGISTERS_PER_MULTIPROCESSOR, 0)                                                                  \
    X(l2_bytes, L2_CACHE_SIZE, 0)                                                                                      \
    X(memory_clock_khz, MEMORY_CLOCK_RATE, 1)                                                                          \
    X(memory_bus_bits, GLOBAL_MEMORY_BUS_WIDTH, 1)                                                                     \
    X(ecc, ECC_ENABLED, 1)                                                                                             \
    X(pci_domain, PCI_DOMAIN_ID, 1)                                                                                    \
    X(pci_bus, PCI_BUS_ID, 1)                                                                                          \
    X(pci_slot, PCI_DEVICE_ID, 1)                                                                                      \
    X(pci_model, GPU_PCI_DEVICE_ID, 1)

typedef struct gpu {
    int    ordinal, handle;
    char   name[128];
    size_t memory_bytes;
#define ATTRIBUTE_FIELD(field, attribute, optional) int field;
    ATTRIBUTE_LIST(ATTRIBUTE_FIELD)
#undef ATTRIBUTE_FIELD
} gpu;

static const struct {
    unsigned attribute;
    size_t   offset;
    int      optional;
} attributes[] = {
#define ATTRIBUTE_ENTRY(field, attribute, optional) {RSSM_CUDA_DEVICE_##attribute, offsetof(gpu, field), optional},
    ATTRIBUTE_LIST(ATTRIBUTE_ENTRY)
#undef ATTRIBUTE_ENTRY
};

static rssm_status read_gpu(const rssm_cuda_api *cu, int ordinal, gpu *out_gpu, rssm_diag *diag)
{
    rssm_status st = RSSM_OK;
    gpu         g;

    memset(&g, 0, sizeof g);
    g.ordinal = ordinal;
    RSSM_TRY(RSSM_CUDA_CHECK(diag, cu->cuDeviceGet(&g.handle, ordinal), "GPU %d", ordinal));
    RSSM_TRY(
        RSSM_CUDA_CHECK(diag, cu->cuDeviceGetName(g.name, sizeof g.name, g.handle), "the name of GPU %d", ordinal));
    g.name[sizeof g.name - 1] = '\0';
    RSSM_TRY(RSSM_CUDA_CHECK(diag, cu->cuDeviceTotalMem(&g.memory_bytes, g.handle), "the memory of GPU %d (%s)",
                             ordinal, g.name));
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        int                   *value = (int *)(void *)((char *)&g + attributes[i].offset);
        const rssm_cuda_result result = cu->cuDeviceGetAttribute(value, attributes[i].attribute, g.handle);
        if (attributes[i].optional && result == RSSM_CUDA_ERROR_INVALID_VALUE) {
            *value = 0;
            continue;
        }
        RSSM_TRY(
            RSSM_CUDA_CHECK(diag, result, "attribute %u of GPU %d (%s)", attributes[i].attribute, ordinal, g.name));
    }
    *out_gpu = g;
done:
    return st;
}

static int capability(const gpu *g)
{
    return 100 * g->major + 10 * g->minor;
}

// What kernels are compiled for. The "a" targets, where there are kernels that use what only they have.
static void write_arch(const gpu *g, char *out, size_t n)
{
    static const struct {
        int  capability;
        char suffix[2];
    } known[] = {{900, "a"}, {1000, "a"}, {1030, "a"}, {1200, "a"}, {1210, "a"}};
    const char *suffix = "";

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].capability == capability(g)) suffix = known[i].suffix;
    snprintf(out, n, "sm_%d%d%s", g->major, g->minor, suffix);
}

// One hexadecimal number of a file under /sys; 0 where there is none.
static unsigned read_sys_hex(const char *path)
{
    char    *text;
    size_t   n;
    unsigned value = 0;

    if (rssm_file_read(path, 1 << 16, &text, &n, NULL) == RSSM_OK) {
        value = (unsigned)strtoul(text, NULL, 16) & 0xFFFF;
        rssm_free(text);
    }
    return value;
}

// PCI device and vendor id, "2335:10de" as device << 16 | vendor. Drivers before CUDA 12.8 do not tell it; the system
// does, under the GPU's place on the bus, so that updating the driver does not change the key.
static unsigned pci_model(const gpu *g)
{
    char     path[96];
    unsigned model, vendor;

    if (g->pci_model != 0) return (unsigned)g->pci_model;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%04x:%02x:%02x.0/device", (unsigned)g->pci_domain,
             (unsigned)g->pci_bus, (unsigned)g->pci_slot);
    model = read_sys_hex(path);
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%04x:%02x:%02x.0/vendor", (unsigned)g->pci_domain,
             (unsigned)g->pci_bus, (unsigned)g->pci_slot);
    vendor = read_sys_hex(path);
    return vendor == 0x10de ? model << 16 | vendor : 0; // else another device is in that place (a virtual machine)
}

// A slice of a GPU has its profile at the end of its name: "NVIDIA H200 MIG 1g.18gb".
static const char *mig_profile(const gpu *g)
{
    const char *mig = strstr(g->name, " MIG ");
    return mig != NULL ? mig + 5 : "none";
}

static void write_key(const gpu *g, rssm_device *d)
{
    snprintf(d->key_text, sizeof d->key_text,
             "cuda name='%s' pci=%08x cc=%d.%d multiprocessors=%d l2=%d memory=%dkHzx%dbit ecc=%d mig=%s", g->name,
             pci_model(g), g->major, g->minor, g->multiprocessors, g->l2_bytes, g->memory_clock_khz, g->memory_bus_bits,
             g->ecc, mig_profile(g));
    d->key = rssm_hash_bytes(d->key_text, strlen(d->key_text));
}

// "CUDA 13.0, driver 580.82.07"; without the second part where the kernel module does not tell.
static void write_driver(int version, char *out, size_t n)
{
    char  *text = NULL;
    size_t length;

    const int written = snprintf(out, n, "CUDA %d.%d", version / 1000, version % 1000 / 10);
    if (rssm_file_read("/sys/module/nvidia/version", 1 << 16, &text, &length, NULL) != RSSM_OK) return;
    snprintf(out + written, n - (size_t)written, ", driver %.*s", (int)strcspn(text, "\n"), text);
    rssm_free(text);
}

static rssm_status describe(const gpu *g, int driver_version, rssm_device *out_device, rssm_diag *diag)
{
    rssm_device        d;
    rssm_cuda_context *context;
    char               label[160];

    memset(&d, 0, sizeof d);
    snprintf(label, sizeof label, "GPU %d (%s)", g->ordinal, g->name);
    if (capability(g) < OLDEST_CAPABILITY)
        return RSSM_FAIL(diag, RSSM_E_UNSUPPORTED,
                         "%s has compute capability %d.%d, and %d.%d or later is needed: use "
                         "the CPU or a newer GPU",
                         label, g->major, g->minor, OLDEST_CAPABILITY / 100, OLDEST_CAPABILITY % 100 / 10);
    const rssm_status st = rssm_cuda_context_create(g->handle, label, &context, diag);
    if (st != RSSM_OK) return st;
    d.info.struct_size = sizeof d.info;
    d.info.backend = RSSM_CUDA;
    snprintf(d.info.name, sizeof d.info.name, "%s", g->name);
    write_arch(g, d.info.arch, sizeof d.info.arch);
    d.info.n_units = (uint32_t)g->multiprocessors;
    d.info.cache_bytes = (uint64_t)g->l2_bytes;
    d.info.memory_bytes = g->memory_bytes;
    d.ordinal = g->ordinal;
    d.native = context;
    write_driver(driver_version, d.driver, sizeof d.driver);
    write_key(g, &d);
    rssm_device_add_fact(&d, "dev.arch", capability(g));
    rssm_device_add_fact(&d, "dev.multiprocessors", g->multiprocessors);
    rssm_device_add_fact(&d, "dev.shared_optin", g->shared_optin);
    rssm_device_add_fact(&d, "dev.shared_per_multiprocessor", g->shared_per_multiprocessor);
    rssm_device_add_fact(&d, "dev.registers", g->registers);
    rssm_device_add_fact(&d, "dev.l2_bytes", g->l2_bytes);
    *out_device = d;
    return RSSM_OK;
}

// Loads and initialises the driver; how many GPUs it shows to this process.
static rssm_status open_driver(const rssm_cuda_api **out_api, int *out_version, int *out_n_gpus, rssm_diag *diag)
{
    rssm_status          st = RSSM_OK;
    const rssm_cuda_api *cu;
    int                  version, n;

    RSSM_TRY(rssm_cuda_api_load(&cu, diag));
    RSSM_TRY(rssm_cuda_api_check_version(cu, &version, diag));
    RSSM_TRY(RSSM_CUDA_CHECK(diag, cu->cuInit(0), "starting the NVIDIA driver"));
    RSSM_TRY(RSSM_CUDA_CHECK(diag, cu->cuDeviceGetCount(&n), "counting GPUs"));
    if (n <= 0) {
        st = RSSM_FAIL(diag, RSSM_E_NO_DEVICE,
                       "the NVIDIA driver shows no GPU to this process; see that nvidia-smi "
                       "lists one and that CUDA_VISIBLE_DEVICES does not hide it");
        goto done;
    }
    *out_api = cu;
    *out_version = version;
    *out_n_gpus = n;
done:
    return st;
}

rssm_status rssm_cuda_find_devices(rssm_device *devices, uint32_t room, uint32_t *inout_count, rssm_diag *diag)
{
    rssm_status          st = RSSM_OK;
    const rssm_cuda_api *cu;
    int                  version, n_gpus;
    uint32_t             found = 0;
    rssm_str             skipped = {0};

    RSSM_TRY(open_driver(&cu, &version, &n_gpus, diag));
    for (int i = 0; i < n_gpus; i++) {
        gpu         g;
        rssm_diag   reason = {RSSM_OK, 0, NULL, "no reason"};
        rssm_status one = RSSM_OK;
        if (found == room)
            one = RSSM_FAIL(&reason, RSSM_E_UNSUPPORTED, "GPU %d and later ones are not used: at most %u are", i, room);
        if (one == RSSM_OK) one = read_gpu(cu, i, &g, &reason);
        if (one == RSSM_OK) one = describe(&g, version, &devices[*inout_count + found], &reason);
        if (one == RSSM_OK)
            found++;
        else
            rssm_str_printf(&skipped, "%s%s", skipped.length > 0 ? "; " : "", reason.text);
        if (one != RSSM_OK && found == room) break;
    }
    if (found == 0)
        st = RSSM_FAIL(diag, RSSM_E_NO_DEVICE, "no GPU can be used: %s", rssm_str_c(&skipped));
    else if (skipped.length > 0)
        st = RSSM_FAIL(diag, RSSM_OK, "%s", rssm_str_c(&skipped));
    *inout_count += found;
done:
    rssm_str_free(&skipped);
    return st;
}

void rssm_cuda_release_devices(rssm_device *devices, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (devices[i].info.backend != RSSM_CUDA) continue;
        rssm_cuda_context_destroy(devices[i].native);
        devices[i].native = NULL;
    }
}
