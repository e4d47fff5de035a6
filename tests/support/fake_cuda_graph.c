// The fake driver's events, captures and graphs. See fake_cuda.h.
#include <stdlib.h>
#include <string.h>

#include "tests/support/fake_cuda_state.h"

enum { NOT_READY = 600 }; // CUDA_ERROR_NOT_READY

// Destroying something twice is a violation; destroying what its context took along is not.
static rssm_cuda_result destroy(fake_object *object, fake_kind kind, const char *what, rssm_cuda_result result)
{
    if (!fake_is_live(object, kind)) {
        if (!fake_is_dead_with_context(object)) fake_note("%s was destroyed that does not exist", what);
        return RSSM_CUDA_ERROR_INVALID_HANDLE;
    }
    object->dead = true;
    return result;
}

// ---------------------------------------------------------------------------------------------------------- capture

rssm_cuda_result fake_cuStreamBeginCapture(struct CUstream_st *stream, unsigned mode)
{
    FAKE_CALL(cuStreamBeginCapture);
    if (!fake_is_live(stream, FAKE_STREAM)) return RSSM_CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (stream->legacy || stream->capturing) return RSSM_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    stream->capturing = true;
    stream->invalidated = false;
    stream->capture_mode = mode;
    stream->capture_thread = pthread_self();
    stream->graph = fake_new(FAKE_GRAPH, sizeof *stream->graph, NULL);
    return RSSM_CUDA_SUCCESS;
}

rssm_cuda_result fake_cuStreamEndCapture(struct CUstream_st *stream, struct CUgraph_st **graph)
{
    FAKE_RELEASE(cuStreamEndCapture);
    if (!fake_is_live(stream, FAKE_STREAM)) return RSSM_CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (!stream->capturing) return RSSM_CUDA_ERROR_INVALID_VALUE;
    if (!pthread_equal(stream->capture_thread, pthread_self()) &&
        stream->capture_mode != RSSM_CUDA_STREAM_CAPTURE_MODE_RELAXED)
        return RSSM_CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    stream->capturing = false;
    *graph = NULL;
    if (guard.result != RSSM_CUDA_SUCCESS || stream->invalidated) {
        stream->graph->object.dead = true;
        return guard.result != RSSM_CUDA_SUCCESS ? guard.result : RSSM_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    *graph = stream->graph;
    return RSSM_CUDA_SUCCESS;
}

// ----------------------------------------------------------------------------------------------------------- graphs

rssm_cuda_result fake_cuGraphInstantiateWithFlags(struct CUgraphExec_st **exec, struct CUgraph_st *graph,
                                                  unsigned long long flags)
{
    FAKE_CALL(cuGraphInstantiateWithFlags);
    struct CUctx_st       *context;
    const rssm_cuda_result result = fake_current(&context);

    if (result != RSSM_CUDA_SUCCESS) return result;
    if (!fake_is_live(graph, FAKE_GRAPH) || flags != 0) return RSSM_CUDA_ERROR_INVALID_VALUE;
    struct CUgraphExec_st *made = fake_new(FAKE_EXEC, sizeof *made, context);
    for (const fake_op *node = graph->nodes.first; node != NULL; node = node->next) {
        const size_t n = node->function->kernel->registered->args_bytes;
        fake_op     *copy = calloc(1, sizeof *copy);
        if (copy == NULL) abort();
        *copy = *node;
        copy->next = NULL;
        copy->args = malloc(n > 0 ? n : 1);
        if (copy->args == NULL) abort();
        memcpy(copy->args, node->args, n);
        fake_push(&made->nodes, copy);
    }
    *exec = made;
    return RSSM_CUDA_SUCCESS;
}

rssm_cuda_result fake_cuGraphUpload(struct CUgraphExec_st *exec, struct CUstream_st *stream)
{
    FAKE_CALL(cuGraphUpload);
    if (!fake_is_live(exec, FAKE_EXEC) || !fake_is_live(stream, FAKE_STREAM)) return RSSM_CUDA_ERROR_INVALID_HANDLE;
    exec->uploaded = true;
    return RSSM_CUDA_SUCCESS;
}

rssm_cuda_result fake_cuGraphLaunch(struct CUgraphExec_st *exec, struct CUstream_st *handle)
{
    FAKE_CALL(cuGraphLaunch);
    struct CUstream_st    *stream;
    const rssm_cuda_result result = fake_stream(handle, &stream);

    if (result != RSSM_CUDA_SUCCESS) return result;
    if (!fake_is_live(exec, FAKE_EXEC)) return RSSM_CUDA_ERROR_INVALID_HANDLE;
    if (stream->capturing) return RSSM_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    fake_op *op = calloc(1, sizeof *op);
    if (op == NULL) abort();
    op->exec = exec;
    fake_push(&stream->pending, op);
    return RSSM_CUDA_SUCCESS;
}

rssm_cuda_result fake_cuGraphExecDestroy(struct CUgraphExec_st *exec)
{
    FAKE_RELEASE(cuGraphExecDestroy);
    fake_drain_all();
    return destroy(&exec->object, FAKE_EXEC, "an executable graph", guard.result);
}

rssm_cuda_result fake_cuGraphDestroy(struct CUgraph_st *graph)
{
    FAKE_RELEASE(cuGraphDestroy);
    return destroy(&graph->object, FAKE_GRAPH, "a graph", guard.result);
}

// ----------------------------------------------------------------------------------------------------------- events

rssm_cuda_result fake_cuEventCreate(struct CUevent_st **event, unsigned flags)
{
    FAKE_CALL(cuEventCreate);
    struct CUctx_st       *context;
    const rssm_cuda_result result = fake_current(&context);

    if (result != RSSM_CUDA_SUCCESS) return result;
    if (flags != RSSM_CUDA_EVENT_DEFAULT) return RSSM_CUDA_ERROR_INVALID_VALUE;
    *event = fake_new(FAKE_EVENT, sizeof **event, context);
    return RSSM_CUDA_SUCCESS;
}

rssm_cuda_result fake_cuEventRecord(struct CUevent_st *event, struct CUstream_st *handle)
{
    FAKE_CALL(cuEventRecord);
    struct CUstream_st    *stream;
    const rssm_cuda_result result = fake_stream(handle, &stream);

    if (result != RSSM_CUDA_SUCCESS) return result;
    if (!fake_is_live(event, FAKE_EVENT)) return RSSM_CUDA_ERROR_INVALID_HANDLE;
    if (stream->capturing) return RSSM_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    fake_op *op = calloc(1, sizeof *op);
    if (op == NULL) abort();
    op->event = event;
    event->stream = stream;
    event->done = false;
    fake_push(&stream->pending, op);
    return RSSM_CUDA_SUCCESS;
}

rssm_cuda_result fake_cuEventSynchronize(struct CUevent_st *event)
{
    FAKE_CALL(cuEventSynchronize);
    if (!fake_is_live(event, FAKE_EVENT)) return RSSM_CUDA_ERROR_INVALID_HANDLE;
    if (event->stream != NULL && fake_is_live(event->stream, FAKE_STREAM)) fake_drain(event->stream);
    return fake.fault;
}

rssm_cuda_result fake_cuEventElapsedTime(float *milliseconds, struct CUevent_st *begin, struct CUevent_st *end)
{
    FAKE_CALL(cuEventElapsedTime);
    if (!fake_is_live(begin, FAKE_EVENT) || !fake_is_live(end, FAKE_EVENT)) return RSSM_CUDA_ERROR_INVALID_HANDLE;
    if (!begin->done || !end->done) return NOT_READY;
    *milliseconds = (float)((end->stamp_ns - begin->stamp_ns) / 1e6);
    return RSSM_CUDA_SUCCESS;
}

rssm_cuda_result fake_cuEventDestroy(struct CUevent_st *event)
{
    FAKE_RELEASE(cuEventDestroy);
    fake_drain_all();
    return destroy(&event->object, FAKE_EVENT, "an event", guard.result);
}
