// Captured launches and their timing. See cuda_memory.h.
//
// A graph has a stream of its own, which neither waits for the default stream nor makes it wait. Capture is
// thread-local: the capturing thread is refused what a launch path must not do, and other threads are left alone.
#include <stdbool.h>

#include "base/alloc.h"
#include "runtime/cuda_context.h"
#include "runtime/cuda_error.h"
#include "runtime/cuda_memory.h"

struct rssm_cuda_graph {
    const rssm_device     *device;
    struct CUstream_st    *stream;
    struct CUgraph_st     *captured;
    struct CUgraphExec_st *exec; // NULL before `end` succeeded
    struct CUevent_st     *before, *after;
    bool                   capturing;
};

rssm_status rssm_cuda_graph_begin(const rssm_device *device, rssm_cuda_graph **out_graph, void **out_stream,
                                  rssm_diag *diag)
{
    rssm_status      st = RSSM_OK;
    rssm_cuda_scope  scope = {0};
    rssm_cuda_graph *g = rssm_calloc(1, sizeof *g);
    const char      *label = rssm_cuda_label(device);

    if (g == NULL) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "out of memory for a graph on %s", label);
    g->device = device;
    RSSM_TRY(rssm_cuda_enter(device, &scope, diag));
    const rssm_cuda_api *cu = scope.cu;
    RSSM_TRY(RSSM_CUDA_CHECK(diag, cu->cuStreamCreate(&g->stream, RSSM_CUDA_STREAM_NON_BLOCKING),
                             "creating a stream on %s", label));
    RSSM_TRY(RSSM_CUDA_CHECK(diag, cu->cuEventCreate(&g->before, RSSM_CUDA_EVENT_DEFAULT), "creating an event on %s",
                             label));
    RSSM_TRY(
        RSSM_CUDA_CHECK(diag, cu->cuEventCreate(&g->after, RSSM_CUDA_EVENT_DEFAULT), "creating an event on %s", label));
    RSSM_TRY(RSSM_CUDA_CHECK(diag, cu->cuStreamBeginCapture(g->stream, RSSM_CUDA_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                             "capturing a graph on %s", label));
    g->capturing = true;
    *out_stream = g->stream;
    *out_graph = g;
    g = NULL;
done:
    rssm_cuda_leave(&scope);
    rssm_cuda_graph_destroy(g);
    return st;
}

rssm_status rssm_cuda_graph_end(rssm_cuda_graph *graph, rssm_diag *diag)
{
    rssm_status     st = RSSM_OK;
    rssm_cuda_scope scope = {0};
    const char     *label = rssm_cuda_label(graph->device);

    if (!graph->capturing)
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "the graph on %s is not being captured; begin one first",
                         label);
    RSSM_TRY(rssm_cuda_enter(graph->device, &scope, diag));
    const rssm_cuda_api *cu = scope.cu;
    graph->capturing = false; // also after a failure
    RSSM_TRY(RSSM_CUDA_CHECK(diag, cu->cuStreamEndCapture(graph->stream, &graph->captured), "capturing a graph on %s",
                             label));
    RSSM_TRY(RSSM_CUDA_CHECK(diag, cu->cuGraphInstantiateWithFlags(&graph->exec, graph->captured, 0),
                             "instantiating a graph on %s", label));
    RSSM_TRY(RSSM_CUDA_CHECK(diag, cu->cuGraphUpload(graph->exec, graph->stream), "uploading a graph to %s", label));
    RSSM_TRY(RSSM_CUDA_CHECK(diag, cu->cuStreamSynchronize(graph->stream), "uploading a graph to %s", label));
done:
    rssm_cuda_leave(&scope);
    return st;
}

static rssm_status check_ready(const rssm_cuda_graph *graph, rssm_diag *diag)
{
    if (graph->exec != NULL) return RSSM_OK;
    return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "the graph on %s has no captured launches; end its capture first",
                     rssm_cuda_label(graph->device));
}

rssm_status rssm_cuda_graph_launch(rssm_cuda_graph *graph, rssm_diag *diag)
{
    rssm_status     st = RSSM_OK;
    rssm_cuda_scope scope = {0};

    RSSM_TRY(check_ready(graph, diag));
    RSSM_TRY(rssm_cuda_enter(graph->device, &scope, diag));
    RSSM_TRY(RSSM_CUDA_CHECK(diag, scope.cu->cuGraphLaunch(graph->exec, graph->stream), "launching a graph on %s",
                             rssm_cuda_label(graph->device)));
done:
    rssm_cuda_leave(&scope);
    return st;
}

rssm_status rssm_cuda_graph_time(rssm_cuda_graph *graph, double *out_ns, rssm_diag *diag)
{
    rssm_status     st = RSSM_OK;
    rssm_cuda_scope scope = {0};
    float           milliseconds = 0;
    const char     *label = rssm_cuda_label(graph->device);

    RSSM_TRY(check_ready(graph, diag));
    RSSM_TRY(rssm_cuda_enter(graph->device, &scope, diag));
    const rssm_cuda_api *cu = scope.cu;
    RSSM_TRY(RSSM_CUDA_CHECK(diag, cu->cuEventRecord(graph->before, graph->stream), "timing on %s", label));
    RSSM_TRY(RSSM_CUDA_CHECK(diag, cu->cuGraphLaunch(graph->exec, graph->stream), "launching a graph on %s", label));
    RSSM_TRY(RSSM_CUDA_CHECK(diag, cu->cuEventRecord(graph->after, graph->stream), "timing on %s", label));
    RSSM_TRY(RSSM_CUDA_CHECK(diag, cu->cuEventSynchronize(graph->after), "waiting for a graph on %s", label));
    RSSM_TRY(RSSM_CUDA_CHECK(diag, cu->cuEventElapsedTime(&milliseconds, graph->before, graph->after), "timing on %s",
                             label));
    if (!(milliseconds > 0)) {
        st = RSSM_FAIL(diag, RSSM_E_DEVICE, "%s measured %g ms for a graph, which is no time; measure again", label,
                       (double)milliseconds);
        goto done;
    }
    *out_ns = (double)milliseconds * 1e6;
done:
    rssm_cuda_leave(&scope);
    return st;
}

// Every call is tried, whatever the others return: after a fault they all report it, and still free.
void rssm_cuda_graph_destroy(rssm_cuda_graph *graph)
{
    rssm_cuda_scope      scope = {0};
    const rssm_cuda_api *cu = rssm_cuda_api_current();

    if (graph == NULL) return;
    (void)rssm_cuda_enter(graph->device, &scope, NULL);
    if (graph->capturing) cu->cuStreamEndCapture(graph->stream, &graph->captured);
    if (graph->exec != NULL) cu->cuGraphExecDestroy(graph->exec);
    if (graph->captured != NULL) cu->cuGraphDestroy(graph->captured);
    if (graph->after != NULL) cu->cuEventDestroy(graph->after);
    if (graph->before != NULL) cu->cuEventDestroy(graph->before);
    if (graph->stream != NULL) cu->cuStreamDestroy(graph->stream);
    rssm_cuda_leave(&scope);
    rssm_free(graph);
}
