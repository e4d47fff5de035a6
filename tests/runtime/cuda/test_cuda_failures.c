// Every driver call and every allocation fails once: the status is right and nothing stays behind.
#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "cuda_fixture.h"

static bool failed_in_time; // before the cleaning up, which has no one to tell

// Everything the runtime does with a GPU, stopping at the first failure and cleaning up as its callers would.
static rssm_status work(fixture *f, rssm_diag *diag)
{
    rssm_status        st = RSSM_OK;
    const rssm_device *device = &f->devices[0];
    rssm_kernel        kernel = {0};
    rssm_geometry      geometry = scale_geometry;
    rssm_cuda_graph   *graph = NULL;
    void              *x = NULL, *stream = NULL;
    float              value[4] = {1, 2, 3, 4};
    uint64_t           free_bytes;
    double             ns;

    geometry.shared_bytes = 100000;
    RSSM_TRY(rssm_cuda_memory_free_bytes(device, &free_bytes, diag));
    RSSM_TRY(rssm_cuda_alloc(device, sizeof value, &x, diag));
    RSSM_TRY(rssm_cuda_upload(device, x, value, sizeof value, diag));
    RSSM_TRY(
        rssm_cuda_kernel_load(device, f->cubin, f->n_cubin, "scale", &geometry, sizeof(scale_args), &kernel, diag));
    const scale_args args = {x, 4, 2};
    st = rssm_cuda_kernel_launch(device, &kernel, &args, 1, NULL);
    if (st != RSSM_OK) {
        st = RSSM_FAIL(diag, st, "a launch has no diagnostic");
        goto done;
    }
    RSSM_TRY(rssm_cuda_graph_begin(device, &graph, &stream, diag));
    st = rssm_cuda_kernel_launch(device, &kernel, &args, 1, stream);
    if (st != RSSM_OK) {
        st = RSSM_FAIL(diag, st, "a launch has no diagnostic");
        goto done;
    }
    RSSM_TRY(rssm_cuda_graph_end(graph, diag));
    RSSM_TRY(rssm_cuda_graph_launch(graph, diag));
    RSSM_TRY(rssm_cuda_graph_time(graph, &ns, diag));
    RSSM_TRY(rssm_cuda_synchronise(device, diag));
    RSSM_TRY(rssm_cuda_download(device, value, x, sizeof value, diag));
    if (value[3] != 4 * 2 * 2 * 2) st = RSSM_E_WRONG_RESULT;
done:
    failed_in_time = fake_cuda_fired();
    rssm_cuda_graph_destroy(graph);
    rssm_cuda_kernel_unload(device, &kernel);
    rssm_cuda_free(device, x);
    return st;
}

Test(cuda_failures, work_succeeds_untouched)
{
    fixture   f;
    rssm_diag diag = {0};

    fixture_open(&f, 1);
    cr_expect(work(&f, &diag) == RSSM_OK, "%s", diag.text);
    fixture_close(&f);
}

static void fail_each_call(rssm_cuda_result result)
{
    long n = 1;

    for (;; n++) {
        fixture   f;
        rssm_diag diag = {0};
        fixture_open(&f, 1);
        fake_cuda_fail_nth(n, result);
        const rssm_status st = work(&f, &diag);
        rssm_cuda_release_devices(f.devices, f.n_devices);
        f.n_devices = 0;
        const bool  fired = fake_cuda_fired(), late = fake_cuda_fired_late();
        const char *name = fake_cuda_fired_name();
        fake_cuda_fail_nth(0, 0);
        // Leaving a context has no one to tell either; and of the two questions about arguments, the second is expected
        // to fail: there is no second argument.
        const bool quiet = late || !failed_in_time || strcmp(name, "cuFuncGetParamInfo") == 0;
        if (fired && !(st == RSSM_OK && quiet)) {
            cr_expect(st == rssm_cuda_status(result), "call %ld, %s: status %d, %s", n, name, (int)st, diag.text);
            cr_expect(diag.text[0] != '\0' && diag.code == st, "call %ld, %s", n, name);
        }
        fixture_close(&f);
        if (!fired) break;
    }
    cr_expect(n > 60, "only %ld calls were made to fail", n - 1);
    cr_log_info("%ld driver calls failed in turn", n - 1);
}

Test(cuda_failures, every_driver_call_may_run_out_of_memory)
{
    fail_each_call(RSSM_CUDA_ERROR_OUT_OF_MEMORY);
}

Test(cuda_failures, every_driver_call_may_report_a_lost_device)
{
    fail_each_call(RSSM_CUDA_ERROR_LAUNCH_FAILED);
}

// As after a real fault: everything fails from the nth call on.
Test(cuda_failures, the_device_may_be_lost_at_any_call)
{
    long n = 1;

    for (;; n++) {
        fixture   f;
        rssm_diag diag = {0};
        fixture_open(&f, 1);
        fake_cuda_fault_after(n, RSSM_CUDA_ERROR_ILLEGAL_ADDRESS);
        const rssm_status st = work(&f, &diag);
        rssm_cuda_release_devices(f.devices, f.n_devices);
        f.n_devices = 0;
        const bool fired = fake_cuda_fired();
        cr_expect(st == RSSM_OK || st == RSSM_E_DEVICE_LOST, "call %ld: status %d, %s", n, (int)st, diag.text);
        fixture_close(&f);
        if (!fired) break;
    }
    cr_expect(n > 60, "only %ld calls were made to fail", n - 1);
}

// Finding devices goes on past a GPU that fails; two GPUs, so that one is left.
Test(cuda_failures, discovery_skips_a_gpu_whose_queries_fail)
{
    const fake_cuda_gpu gpus[] = {FAKE_CUDA_H200, FAKE_CUDA_H200};

    for (long n = 1;; n++) {
        rssm_device devices[4];
        uint32_t    count = 0;
        rssm_diag   diag = {0};
        fake_cuda_install(gpus, 2);
        fake_cuda_fail_nth(n, RSSM_CUDA_ERROR_UNKNOWN);
        const rssm_status st = rssm_cuda_find_devices(devices, 4, &count, &diag);
        const bool        fired = fake_cuda_fired();
        if (!fired)
            cr_expect(st == RSSM_OK && count == 2 && diag.text[0] == '\0');
        else if (n <= 3) // the version, cuInit, the count
            cr_expect((st == RSSM_E_DRIVER || st == RSSM_E_DEVICE_LOST) && count == 0 && diag.text[0] != '\0', "%ld",
                      n);
        else
            cr_expect(st == RSSM_OK && count == 1 && strstr(diag.text, "CUDA_ERROR_UNKNOWN") != NULL, "call %ld: %s", n,
                      diag.text);
        rssm_cuda_release_devices(devices, count);
        cr_expect(strcmp(fake_cuda_leaks(), "") == 0, "%s", fake_cuda_leaks());
        fake_cuda_remove();
        if (!fired) break;
    }
}

Test(cuda_failures, every_allocation_may_fail)
{
    const fake_cuda_gpu gpu = FAKE_CUDA_H200;
    long                n = 1;

    for (;; n++) {
        fixture   f;
        rssm_diag diag = {0};
        fixture_open(&f, 1);
        rssm_alloc_fail_after(n);
        const rssm_status st = work(&f, &diag);
        const bool        fired = rssm_alloc_fail_after(0) != 0;
        cr_expect(st == (fired ? RSSM_E_NO_MEMORY : RSSM_OK), "allocation %ld: status %d, %s", n, (int)st, diag.text);
        fixture_close(&f);
        if (!fired) break;
    }
    for (n = 1;; n++) { // in finding devices, where memory also serves to describe them
        rssm_device devices[4];
        uint32_t    count = 0;
        rssm_diag   diag = {0};
        fake_cuda_install(&gpu, 1);
        rssm_alloc_fail_after(n);
        const rssm_status st = rssm_cuda_find_devices(devices, 4, &count, &diag);
        const bool        fired = rssm_alloc_fail_after(0) != 0;
        cr_expect(st == RSSM_OK || st == RSSM_E_NO_DEVICE, "allocation %ld: status %d", n, (int)st);
        rssm_cuda_release_devices(devices, count);
        cr_expect(strcmp(fake_cuda_leaks(), "") == 0, "%s", fake_cuda_leaks());
        fake_cuda_remove();
        if (!fired) break;
    }
}
