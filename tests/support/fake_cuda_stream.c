// The fake driver's streams. See fake_cuda.h.
//
// Work waits in its stream until something synchronises. The default stream and the blocking ones of its context count
// as one here: whichever is synchronised, all run, in the order of their creation. That is a legal order of the driver,
// which promises none between two blocking streams.
#include <stdlib.h>
#include <string.h>

#include "tests/support/fake_cuda_state.h"

void fake_push(fake_queue *queue, fake_op *op)
{
    if (queue->last != NULL)
        queue->last->next = op;
    else
        queue->first = op;
    queue->last = op;
}

void fake_clear(fake_queue *queue)
{
    while (queue->first != NULL) {
        fake_op *next = queue->first->next;
        free(queue->first->args);
        free(queue->first);
        queue->first = next;
    }
    queue->last = NULL;
}

static void run_op(const fake_op *op)
{
    if (op->function != NULL) fake_run_launch(op);
    if (op->exec != NULL)
        for (const fake_op *node = op->exec->nodes.first; node != NULL; node = node->next)
            fake_run_launch(node);
    if (op->event != NULL) {
        op->event->done = true;
        op->event->stamp_ns = fake.clock_ns;
    }
}

static void run_pending(struct CUstream_st *stream)
{
    for (const fake_op *op = stream->pending.first; op != NULL; op = op->next)
        run_op(op);
    fake_clear(&stream->pending);
}

void fake_drain(struct CUstream_st *stream)
{
    if (stream->non_blocking) {
        run_pending(stream);
        return;
    }
    for (fake_object *o = fake.objects; o != NULL; o = o->next) {
        struct CUstream_st *other = (struct CUstream_st *)(void *)o;
        if (o->kind == FAKE_STREAM && !o->dead && o->context == stream->object.context && !other->non_blocking)
            run_pending(other);
    }
}

void fake_drain_all(void)
{
    for (fake_object *o = fake.objects; o != NULL; o = o->next)
        if (o->kind == FAKE_STREAM && !o->dead) run_pending((struct CUstream_st *)(void *)o);
}

rssm_cuda_result fake_stream(struct CUstream_st *handle, struct CUstream_st **out_stream)
{
    struct CUctx_st *context;

    if ((uintptr_t)handle <= 2) {
        const rssm_cuda_result result = fake_current(&context);
        if (result == RSSM_CUDA_SUCCESS) *out_stream = context->legacy;
        return result;
    }
    if (!fake_is_live(handle, FAKE_STREAM)) return RSSM_CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *out_stream = handle;
    return RSSM_CUDA_SUCCESS;
}

// The driver's rule: a thread in global mode is bound by its own captures that are not relaxed and by everyone's global
// ones, a thread in thread-local mode by its own only, a relaxed one by none.
rssm_cuda_result fake_unsafe(void)
{
    const unsigned   mode = fake_capture_mode();
    rssm_cuda_result result = RSSM_CUDA_SUCCESS;

    for (fake_object *o = fake.objects; o != NULL; o = o->next) {
        struct CUstream_st *s = (struct CUstream_st *)(void *)o;
        if (o->kind != FAKE_STREAM || o->dead || !s->capturing) continue;
        const bool own = pthread_equal(s->capture_thread, pthread_self()) != 0;
        const bool binds =
            (own && s->capture_mode != RSSM_CUDA_STREAM_CAPTURE_MODE_RELAXED) ||
            (mode == RSSM_CUDA_STREAM_CAPTURE_MODE_GLOBAL && s->capture_mode == RSSM_CUDA_STREAM_CAPTURE_MODE_GLOBAL);
        if (!binds || mode == RSSM_CUDA_STREAM_CAPTURE_MODE_RELAXED) continue;
        s->invalidated = true;
        result = RSSM_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result;
}

// ---------------------------------------------------------------------------------------------------------- streams

rssm_cuda_result fake_cuStreamCreate(struct CUstream_st **stream, unsigned flags)
{
    FAKE_CALL(cuStreamCreate);
    struct CUctx_st       *context;
    const rssm_cuda_result result = fake_current(&context);

    if (result != RSSM_CUDA_SUCCESS) return result;
    struct CUstream_st *made = fake_new(FAKE_STREAM, sizeof *made, context);
    made->non_blocking = flags == RSSM_CUDA_STREAM_NON_BLOCKING;
    *stream = made;
    return RSSM_CUDA_SUCCESS;
}

rssm_cuda_result fake_cuStreamDestroy(struct CUstream_st *stream)
{
    FAKE_RELEASE(cuStreamDestroy);
    if (!fake_is_live(stream, FAKE_STREAM)) {
        if (!fake_is_dead_with_context(&stream->object)) fake_note("a stream was destroyed that does not exist");
        return RSSM_CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    if (stream->capturing) fake_note("a stream was destroyed that is being captured");
    run_pending(stream);
    stream->object.dead = true;
    return guard.result;
}

rssm_cuda_result fake_cuStreamSynchronize(struct CUstream_st *handle)
{
    FAKE_CALL(cuStreamSynchronize);
    struct CUstream_st    *stream;
    const rssm_cuda_result result = fake_stream(handle, &stream);

    if (result != RSSM_CUDA_SUCCESS) return result;
    if (stream->capturing) {
        stream->invalidated = true;
        return RSSM_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    fake_drain(stream);
    return fake.fault;
}

rssm_cuda_result fake_cuCtxSynchronize(void)
{
    FAKE_CALL(cuCtxSynchronize);
    struct CUctx_st       *context;
    const rssm_cuda_result result = fake_current(&context);

    if (result != RSSM_CUDA_SUCCESS) return result;
    for (fake_object *o = fake.objects; o != NULL; o = o->next) {
        struct CUstream_st *s = (struct CUstream_st *)(void *)o;
        if (o->kind != FAKE_STREAM || o->dead || o->context != context) continue;
        if (s->capturing) {
            s->invalidated = true;
            return RSSM_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
        run_pending(s);
    }
    return fake.fault;
}
