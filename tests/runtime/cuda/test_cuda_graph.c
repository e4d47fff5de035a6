// Captured graphs.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "cuda_fixture.h"

Test(cuda_graph, replays_what_was_captured)
{
    fixture          f;
    rssm_cuda_graph *graph = NULL;
    void            *stream = NULL, *x = NULL;
    float            value = 1, back;
    double           ns = 0;

    fixture_open(&f, 1);
    rssm_kernel kernel = fixture_load(&f);
    cr_assert(rssm_cuda_alloc(&f.devices[0], sizeof value, &x, NULL) == RSSM_OK);
    cr_assert(rssm_cuda_upload(&f.devices[0], x, &value, sizeof value, NULL) == RSSM_OK);
    cr_assert(rssm_cuda_graph_begin(&f.devices[0], &graph, &stream, NULL) == RSSM_OK);
    for (int i = 0; i < 5; i++)
        cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(scale_args){x, 1, 2}, 1, stream) == RSSM_OK);
    cr_assert(rssm_cuda_graph_end(graph, NULL) == RSSM_OK);
    cr_expect(rssm_cuda_download(&f.devices[0], &back, x, sizeof back, NULL) == RSSM_OK && back == 1, "ran in capture");
    for (int i = 0; i < 2; i++)
        cr_expect(rssm_cuda_graph_launch(graph, NULL) == RSSM_OK);
    cr_expect(rssm_cuda_synchronise(&f.devices[0], NULL) == RSSM_OK);
    cr_expect(rssm_cuda_download(&f.devices[0], &back, x, sizeof back, NULL) == RSSM_OK && back == 1024, "%g",
              (double)back);
    cr_expect(rssm_cuda_graph_time(graph, &ns, NULL) == RSSM_OK);
    cr_expect(fabs(ns - 5 * 3000) < 1, "%g ns", ns);
    rssm_cuda_graph_destroy(graph);
    rssm_cuda_free(&f.devices[0], x);
    rssm_cuda_kernel_unload(&f.devices[0], &kernel);
    fixture_close(&f);
}

// Its stream does not wait for the default stream, nor the other way round: waiting for that one runs no graph.
Test(cuda_graph, is_independent_of_the_default_stream)
{
    fixture          f;
    rssm_cuda_graph *graph = NULL;
    void            *stream = NULL, *x = NULL;
    float            value = 1;
    struct CUctx_st *context;

    fixture_open(&f, 1);
    const rssm_cuda_api *cu = rssm_cuda_api_current();
    rssm_kernel          kernel = fixture_load(&f);
    cr_assert(cu->cuDevicePrimaryCtxRetain(&context, 0) == 0 && cu->cuCtxPushCurrent(context) == 0);
    cr_assert(rssm_cuda_alloc(&f.devices[0], sizeof value, &x, NULL) == RSSM_OK);
    cr_assert(rssm_cuda_upload(&f.devices[0], x, &value, sizeof value, NULL) == RSSM_OK);
    cr_assert(rssm_cuda_graph_begin(&f.devices[0], &graph, &stream, NULL) == RSSM_OK);
    cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(scale_args){x, 1, 2}, 1, stream) == RSSM_OK);
    cr_assert(rssm_cuda_graph_end(graph, NULL) == RSSM_OK && rssm_cuda_graph_launch(graph, NULL) == RSSM_OK);
    cr_expect(cu->cuStreamSynchronize(NULL) == 0);
    memcpy(&value, x, sizeof value); // the fake's device memory can be looked at
    cr_expect(value == 1, "%g", (double)value);
    cr_expect(rssm_cuda_synchronise(&f.devices[0], NULL) == RSSM_OK);
    memcpy(&value, x, sizeof value);
    cr_expect(value == 2, "%g", (double)value);
    rssm_cuda_graph_destroy(graph);
    rssm_cuda_free(&f.devices[0], x);
    rssm_cuda_kernel_unload(&f.devices[0], &kernel);
    cr_expect(cu->cuCtxPopCurrent(&context) == 0 && cu->cuDevicePrimaryCtxRelease(0) == 0);
    fixture_close(&f);
}

Test(cuda_graph, rejects_a_time_that_is_none)
{
    fixture          f;
    rssm_cuda_graph *graph = NULL;
    void            *stream = NULL;
    double           ns = -1;
    rssm_diag        diag = {0};

    fixture_open(&f, 1);
    cr_assert(rssm_cuda_graph_begin(&f.devices[0], &graph, &stream, NULL) == RSSM_OK);
    cr_assert(rssm_cuda_graph_end(graph, NULL) == RSSM_OK); // of nothing: its virtual time is 0
    cr_expect(rssm_cuda_graph_time(graph, &ns, &diag) == RSSM_E_DEVICE && ns == -1);
    cr_expect(strstr(diag.text, "0 ms"), "%s", diag.text);
    rssm_cuda_graph_destroy(graph);
    fixture_close(&f);
}

Test(cuda_graph, wants_begin_end_and_launch_in_order)
{
    fixture          f;
    rssm_cuda_graph *graph = NULL;
    void            *stream = NULL;
    double           ns;
    rssm_diag        diag = {0};

    fixture_open(&f, 1);
    cr_assert(rssm_cuda_graph_begin(&f.devices[0], &graph, &stream, NULL) == RSSM_OK);
    cr_expect(rssm_cuda_graph_launch(graph, &diag) == RSSM_E_INVALID_ARGUMENT);
    cr_expect(rssm_cuda_graph_time(graph, &ns, &diag) == RSSM_E_INVALID_ARGUMENT);
    cr_expect(strstr(diag.text, "end its capture first"), "%s", diag.text);
    cr_expect(rssm_cuda_graph_end(graph, NULL) == RSSM_OK);
    cr_expect(rssm_cuda_graph_end(graph, &diag) == RSSM_E_INVALID_ARGUMENT);
    cr_expect(rssm_cuda_graph_launch(graph, NULL) == RSSM_OK);
    rssm_cuda_graph_destroy(graph);
    rssm_cuda_graph_destroy(NULL);
    fixture_close(&f);
}

Test(cuda_graph, can_be_destroyed_while_capturing)
{
    fixture          f;
    rssm_cuda_graph *graph = NULL;
    void            *stream = NULL;

    fixture_open(&f, 1);
    cr_assert(rssm_cuda_graph_begin(&f.devices[0], &graph, &stream, NULL) == RSSM_OK);
    rssm_cuda_graph_destroy(graph);
    fixture_close(&f);
}

// What a launch path must not do is refused in a capture, and what the graph then lacks is not silently launched.
Test(cuda_graph, reports_a_spoiled_capture)
{
    fixture            f;
    rssm_cuda_graph   *graph = NULL;
    void              *stream = NULL;
    rssm_diag          diag = {0};
    unsigned long long address;
    struct CUctx_st   *context;

    fixture_open(&f, 1);
    const rssm_cuda_api *cu = rssm_cuda_api_current();
    cr_assert(cu->cuDevicePrimaryCtxRetain(&context, 0) == 0 && cu->cuCtxPushCurrent(context) == 0);
    cr_assert(rssm_cuda_graph_begin(&f.devices[0], &graph, &stream, NULL) == RSSM_OK);
    cr_expect(cu->cuMemAlloc(&address, 16) == RSSM_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    cr_expect(rssm_cuda_graph_end(graph, &diag) == RSSM_E_DEVICE);
    cr_expect(strstr(diag.text, "capture again"), "%s", diag.text);
    cr_expect(rssm_cuda_graph_launch(graph, NULL) == RSSM_E_INVALID_ARGUMENT);
    rssm_cuda_graph_destroy(graph);
    cr_expect(cu->cuCtxPopCurrent(&context) == 0 && cu->cuDevicePrimaryCtxRelease(0) == 0);
    fixture_close(&f);
}

Test(cuda_graph, kernels_may_be_loaded_while_capturing)
{
    fixture          f;
    rssm_cuda_graph *graph = NULL;
    void            *stream = NULL, *x = NULL;

    fixture_open(&f, 1);
    cr_assert(rssm_cuda_graph_begin(&f.devices[0], &graph, &stream, NULL) == RSSM_OK);
    rssm_kernel kernel = fixture_load(&f);
    cr_expect(rssm_cuda_alloc(&f.devices[0], 16, &x, NULL) == RSSM_OK);
    cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(scale_args){x, 1, 2}, 1, stream) == RSSM_OK);
    cr_expect(rssm_cuda_graph_end(graph, NULL) == RSSM_OK);
    cr_expect(rssm_cuda_graph_launch(graph, NULL) == RSSM_OK);
    rssm_cuda_graph_destroy(graph);
    rssm_cuda_free(&f.devices[0], x);
    rssm_cuda_kernel_unload(&f.devices[0], &kernel);
    fixture_close(&f);
}

// The fake notices what the rule "a captured kernel stays loaded" forbids: this is the test of that.
Test(cuda_graph, launching_an_unloaded_kernel_is_noticed)
{
    fixture          f;
    rssm_cuda_graph *graph = NULL;
    void            *stream = NULL;

    fixture_open(&f, 1);
    rssm_kernel kernel = fixture_load(&f);
    cr_assert(rssm_cuda_graph_begin(&f.devices[0], &graph, &stream, NULL) == RSSM_OK);
    cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(scale_args){0}, 1, stream) == RSSM_OK);
    cr_assert(rssm_cuda_graph_end(graph, NULL) == RSSM_OK);
    rssm_cuda_kernel_unload(&f.devices[0], &kernel);
    cr_expect(rssm_cuda_graph_launch(graph, NULL) == RSSM_OK);
    rssm_cuda_graph_destroy(graph);
    cr_expect(strstr(fake_cuda_violation(), "kernel scale ran after it was unloaded"), "%s", fake_cuda_violation());
    rssm_cuda_release_devices(f.devices, f.n_devices);
    fake_cuda_remove();
}
