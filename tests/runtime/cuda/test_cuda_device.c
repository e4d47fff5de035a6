// Discovery of GPUs.
#include "runtime/cuda_device.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/fake_cuda.h"

enum { ROOM = 8 };

static rssm_device devices[ROOM + 1];

static void release(uint32_t n)
{
    rssm_cuda_release_devices(devices, n);
    cr_expect(strcmp(fake_cuda_leaks(), "") == 0, "held: %s", fake_cuda_leaks());
    cr_expect(strcmp(fake_cuda_violation(), "") == 0, "violation: %s", fake_cuda_violation());
    fake_cuda_remove();
}

Test(cuda_device, describes_a_gpu)
{
    const fake_cuda_gpu gpu = FAKE_CUDA_H200;
    rssm_diag           diag = {0};
    uint32_t            n = 0;

    fake_cuda_install(&gpu, 1);
    cr_assert(rssm_cuda_find_devices(devices, ROOM, &n, &diag) == RSSM_OK, "%s", diag.text);
    cr_assert(n == 1);
    const rssm_device *d = &devices[0];
    cr_expect(d->info.struct_size == sizeof d->info && d->info.backend == RSSM_CUDA && d->ordinal == 0);
    cr_expect(strcmp(d->info.name, "NVIDIA H200") == 0 && strcmp(d->info.arch, "sm_90a") == 0);
    cr_expect(d->info.n_units == 132 && d->info.cache_bytes == 62914560 && d->info.memory_bytes == (uint64_t)140 << 30);
    static const struct {
        const char *name;
        int64_t     value;
    } facts[] = {{"dev.arch", 900},          {"dev.multiprocessors", 132},
                 {"dev.l2_bytes", 62914560}, {"dev.shared_optin", 232448},
                 {"dev.registers", 65536},   {"dev.shared_per_multiprocessor", 233472}};
    cr_expect(d->n_facts == sizeof facts / sizeof facts[0]);
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        cr_expect(rssm_device_fact_value(d, facts[i].name) == facts[i].value, "%s", facts[i].name);
    cr_expect(strcmp(d->key_text, "cuda name='NVIDIA H200' pci=233510de cc=9.0 multiprocessors=132 l2=62914560 "
                                  "memory=3201000kHzx6144bit ecc=1 mig=none") == 0,
              "%s", d->key_text);
    const rssm_hash key = rssm_hash_bytes(d->key_text, strlen(d->key_text));
    cr_expect(rssm_hash_equal(&key, &d->key));
    cr_expect(strncmp(d->driver, "CUDA 13.0", 9) == 0, "%s", d->driver);
    cr_expect(diag.text[0] == '\0', "a diagnostic without a reason: %s", diag.text);
    release(n);
}

Test(cuda_device, names_the_architecture_that_kernels_are_compiled_for)
{
    static const struct {
        int         major, minor;
        const char *arch;
        int64_t     fact;
    } cases[] = {{8, 0, "sm_80", 800},     {8, 6, "sm_86", 860},     {8, 7, "sm_87", 870},     {8, 9, "sm_89", 890},
                 {9, 0, "sm_90a", 900},    {10, 0, "sm_100a", 1000}, {10, 3, "sm_103a", 1030}, {11, 0, "sm_110", 1100},
                 {12, 0, "sm_120a", 1200}, {12, 1, "sm_121a", 1210}, {13, 0, "sm_130", 1300}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fake_cuda_gpu gpu = FAKE_CUDA_H200;
        uint32_t      n = 0;
        gpu.major = cases[i].major;
        gpu.minor = cases[i].minor;
        fake_cuda_install(&gpu, 1);
        cr_assert(rssm_cuda_find_devices(devices, ROOM, &n, NULL) == RSSM_OK);
        cr_expect(strcmp(devices[0].info.arch, cases[i].arch) == 0, "%d.%d: %s", gpu.major, gpu.minor,
                  devices[0].info.arch);
        cr_expect(rssm_device_fact_value(&devices[0], "dev.arch") == cases[i].fact);
        release(n);
    }
}

// One key per class of machine: not per GPU, not per driver, and not one for two sizes of a product.
Test(cuda_device, keys_tell_classes_apart_and_nothing_else)
{
    fake_cuda_gpu gpus[] = {FAKE_CUDA_H200, FAKE_CUDA_H200, FAKE_CUDA_H200, FAKE_CUDA_H200, FAKE_CUDA_H200};
    uint32_t      n = 0;

    gpus[2].multiprocessors = 114;
    gpus[3].l2_bytes /= 2;
    gpus[4].name = "NVIDIA H200 MIG 1g.18gb";
    fake_cuda_install(gpus, 5);
    cr_assert(rssm_cuda_find_devices(devices, ROOM, &n, NULL) == RSSM_OK && n == 5);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < i; j++)
            cr_expect(rssm_hash_equal(&devices[i].key, &devices[j].key) == (i < 2 && j < 2), "%d and %d", i, j);
    cr_expect(strstr(devices[4].key_text, "mig=1g.18gb"), "%s", devices[4].key_text);
    const rssm_hash before = devices[0].key;
    rssm_cuda_release_devices(devices, n);
    fake_cuda_set_driver_version(12080);
    n = 0;
    cr_assert(rssm_cuda_find_devices(devices, ROOM, &n, NULL) == RSSM_OK);
    cr_expect(rssm_hash_equal(&before, &devices[0].key));
    cr_expect(strncmp(devices[0].driver, "CUDA 12.8", 9) == 0);
    release(n);
}

Test(cuda_device, lives_without_what_an_older_driver_does_not_tell)
{
    fake_cuda_gpu gpu = FAKE_CUDA_H200;
    uint32_t      n = 0;

    gpu.pci_model = 0;
    fake_cuda_install(&gpu, 1);
    cr_assert(rssm_cuda_find_devices(devices, ROOM, &n, NULL) == RSSM_OK && n == 1);
    cr_expect(strstr(devices[0].key_text, "pci=00000000"), "%s", devices[0].key_text);
    release(n);
}

Test(cuda_device, skips_gpus_that_cannot_serve_and_says_why)
{
    const fake_cuda_gpu gpus[] = {FAKE_CUDA_V100, FAKE_CUDA_H200, FAKE_CUDA_V100, FAKE_CUDA_H200};
    rssm_diag           diag = {0};
    uint32_t            n = 0;

    fake_cuda_install(gpus, 4);
    cr_assert(rssm_cuda_find_devices(devices, ROOM, &n, &diag) == RSSM_OK, "%s", diag.text);
    cr_expect(n == 2 && devices[0].ordinal == 1 && devices[1].ordinal == 3);
    cr_expect(diag.code == RSSM_OK && strstr(diag.text, "GPU 0 (Tesla V100-SXM2-16GB) has compute capability 7.0") &&
                  strstr(diag.text, "GPU 2") && strstr(diag.text, "8.0 or later is needed"),
              "%s", diag.text);
    release(n);
}

Test(cuda_device, says_that_no_gpu_can_serve)
{
    const fake_cuda_gpu gpu = FAKE_CUDA_V100;
    rssm_diag           diag = {0};
    uint32_t            n = 0;

    fake_cuda_install(&gpu, 1);
    cr_expect(rssm_cuda_find_devices(devices, ROOM, &n, &diag) == RSSM_E_NO_DEVICE);
    cr_expect(n == 0 && strstr(diag.text, "no GPU can be used: GPU 0 (Tesla V100"), "%s", diag.text);
    release(n);
}

Test(cuda_device, appends_and_keeps_to_its_room)
{
    const fake_cuda_gpu gpus[] = {FAKE_CUDA_H200, FAKE_CUDA_H200, FAKE_CUDA_H200};
    rssm_diag           diag = {0};
    uint32_t            n = 1;

    memset(devices, 0, sizeof devices);
    devices[0].info.backend = RSSM_CPU;
    fake_cuda_install(gpus, 3);
    cr_assert(rssm_cuda_find_devices(devices, 2, &n, &diag) == RSSM_OK);
    cr_expect(n == 3 && devices[1].ordinal == 0 && devices[2].ordinal == 1 && devices[3].native == NULL);
    cr_expect(strstr(diag.text, "GPU 2 and later ones are not used: at most 2 are"), "%s", diag.text);
    release(n);
}

Test(cuda_device, finding_makes_no_context)
{
    const fake_cuda_gpu gpus[] = {FAKE_CUDA_H200, FAKE_CUDA_H200};
    uint32_t            n = 0;

    fake_cuda_install(gpus, 2);
    cr_assert(rssm_cuda_find_devices(devices, ROOM, &n, NULL) == RSSM_OK && n == 2);
    cr_expect(fake_cuda_calls("cuDevicePrimaryCtxRetain") == 0);
    release(n);
}

Test(cuda_device, says_why_there_is_no_gpu)
{
    static const struct {
        const char      *call;
        rssm_cuda_result result;
        rssm_status      status;
        const char      *text;
    } cases[] = {
        {"cuInit", RSSM_CUDA_ERROR_NO_DEVICE, RSSM_E_NO_DEVICE, "CUDA_VISIBLE_DEVICES"},
        {"cuInit", RSSM_CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, RSSM_E_DRIVER, "reboot"},
        {"cuInit", RSSM_CUDA_ERROR_SYSTEM_NOT_READY, RSSM_E_DRIVER, "fabric manager"},
        {"cuInit", RSSM_CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, RSSM_E_DRIVER, "compat"},
        {"cuInit", RSSM_CUDA_ERROR_STUB_LIBRARY, RSSM_E_DRIVER, "stubs"},
        {"cuInit", RSSM_CUDA_ERROR_UNKNOWN, RSSM_E_DEVICE_LOST, "dmesg"},
        {"cuDeviceGetCount", RSSM_CUDA_ERROR_NOT_INITIALIZED, RSSM_E_DEVICE_LOST, "fork"},
        {"cuDeviceGetAttribute", RSSM_CUDA_ERROR_INVALID_VALUE, RSSM_E_NO_DEVICE,
         "attribute 75 of GPU 0 (NVIDIA H200)"},
        {"cuDeviceGetName", RSSM_CUDA_ERROR_INVALID_DEVICE, RSSM_E_NO_DEVICE, "no GPU can be used: the name of GPU 0"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const fake_cuda_gpu gpu = FAKE_CUDA_H200;
        rssm_diag           diag = {0};
        uint32_t            n = 0;
        fake_cuda_install(&gpu, 1);
        fake_cuda_fail_call(cases[i].call, cases[i].result);
        cr_expect(rssm_cuda_find_devices(devices, ROOM, &n, &diag) == cases[i].status, "case %zu: %s", i, diag.text);
        cr_expect(n == 0 && strstr(diag.text, cases[i].text) != NULL, "case %zu: %s", i, diag.text);
        release(n);
    }
}

Test(cuda_device, says_that_the_driver_is_too_old_before_using_it)
{
    const fake_cuda_gpu gpu = FAKE_CUDA_H200;
    rssm_diag           diag = {0};
    uint32_t            n = 0;

    fake_cuda_install(&gpu, 1);
    fake_cuda_set_driver_version(11080);
    cr_expect(rssm_cuda_find_devices(devices, ROOM, &n, &diag) == RSSM_E_DRIVER);
    cr_expect(strstr(diag.text, "CUDA 11.8") && strstr(diag.text, "525"), "%s", diag.text);
    cr_expect(fake_cuda_calls("cuInit") == 0);
    release(n);
}

Test(cuda_device, a_driver_that_shows_nothing_is_no_device)
{
    rssm_diag diag = {0};
    uint32_t  n = 0;

    fake_cuda_install(NULL, 0);
    cr_expect(rssm_cuda_find_devices(devices, ROOM, &n, &diag) == RSSM_E_NO_DEVICE);
    cr_expect(strstr(diag.text, "nvidia-smi"), "%s", diag.text);
    release(n);
}
