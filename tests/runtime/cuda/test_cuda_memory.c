// Memory of GPUs.
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "cuda_fixture.h"

Test(cuda_memory, copies_there_and_back)
{
    fixture  f;
    void    *memory = NULL;
    char     from[1000], back[1000] = "";
    uint64_t before = 0, after = 0;

    fixture_open(&f, 1);
    for (int i = 0; i < 1000; i++)
        from[i] = (char)(i * 7);
    cr_assert(rssm_cuda_memory_free_bytes(&f.devices[0], &before, NULL) == RSSM_OK);
    cr_assert(rssm_cuda_alloc(&f.devices[0], sizeof from, &memory, NULL) == RSSM_OK);
    cr_expect((uintptr_t)memory % 256 == 0);
    cr_assert(rssm_cuda_memory_free_bytes(&f.devices[0], &after, NULL) == RSSM_OK);
    cr_expect(before == (uint64_t)140 << 30 && before - after == sizeof from);
    cr_expect(rssm_cuda_upload(&f.devices[0], memory, from, sizeof from, NULL) == RSSM_OK);
    cr_expect(rssm_cuda_download(&f.devices[0], back, (char *)memory + 10, sizeof back - 10, NULL) == RSSM_OK);
    cr_expect(memcmp(back, from + 10, sizeof back - 10) == 0);
    rssm_cuda_free(&f.devices[0], memory);
    fixture_close(&f);
}

Test(cuda_memory, accepts_nothing)
{
    fixture f;
    void   *memory = NULL;

    fixture_open(&f, 1);
    cr_expect(rssm_cuda_alloc(&f.devices[0], 0, &memory, NULL) == RSSM_OK && memory != NULL);
    cr_expect(rssm_cuda_upload(&f.devices[0], memory, NULL, 0, NULL) == RSSM_OK);
    cr_expect(rssm_cuda_download(&f.devices[0], NULL, memory, 0, NULL) == RSSM_OK);
    rssm_cuda_free(&f.devices[0], memory);
    rssm_cuda_free(&f.devices[0], NULL);
    fixture_close(&f);
}

Test(cuda_memory, says_that_it_does_not_fit)
{
    fixture   f;
    rssm_diag diag = {0};
    void     *memory = NULL;

    fixture_open(&f, 1);
    cr_expect(rssm_cuda_alloc(&f.devices[0], (size_t)141 << 30, &memory, &diag) == RSSM_E_DEVICE_MEMORY);
    cr_expect(memory == NULL && strstr(diag.text, "allocating 151397597184 bytes on GPU 0 (NVIDIA H200)") &&
                  strstr(diag.text, "fewer slots"),
              "%s", diag.text);
    fixture_close(&f);
}

// A copy waits for the work of every stream, also of those that do not wait for the default stream.
Test(cuda_memory, copies_are_ordered_with_launches)
{
    fixture          f;
    void            *x = NULL, *stream = NULL;
    float            one = 1, back = 0;
    rssm_cuda_graph *graph = NULL;

    fixture_open(&f, 1);
    rssm_kernel kernel = fixture_load(&f);
    cr_assert(rssm_cuda_alloc(&f.devices[0], sizeof one, &x, NULL) == RSSM_OK);
    cr_assert(rssm_cuda_upload(&f.devices[0], x, &one, sizeof one, NULL) == RSSM_OK);
    cr_assert(rssm_cuda_graph_begin(&f.devices[0], &graph, &stream, NULL) == RSSM_OK);
    cr_expect(rssm_cuda_kernel_launch(&f.devices[0], &kernel, &(scale_args){x, 1, 3}, 1, stream) == RSSM_OK);
    cr_assert(rssm_cuda_graph_end(graph, NULL) == RSSM_OK);
    cr_expect(rssm_cuda_graph_launch(graph, NULL) == RSSM_OK);
    cr_expect(rssm_cuda_download(&f.devices[0], &back, x, sizeof back, NULL) == RSSM_OK && back == 3, "%g",
              (double)back);
    cr_expect(rssm_cuda_graph_launch(graph, NULL) == RSSM_OK);
    cr_expect(rssm_cuda_upload(&f.devices[0], x, &one, sizeof one, NULL) == RSSM_OK); // after the launch, not before
    cr_expect(rssm_cuda_download(&f.devices[0], &back, x, sizeof back, NULL) == RSSM_OK && back == 1, "%g",
              (double)back);
    rssm_cuda_graph_destroy(graph);
    rssm_cuda_free(&f.devices[0], x);
    rssm_cuda_kernel_unload(&f.devices[0], &kernel);
    fixture_close(&f);
}

Test(cuda_memory, leaves_the_thread_as_it_was_where_it_cannot_begin)
{
    static const char *const calls[] = {"cuDevicePrimaryCtxRetain", "cuCtxPushCurrent",
                                        "cuThreadExchangeStreamCaptureMode"};

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        fixture   f;
        rssm_diag diag = {0};
        void     *memory = NULL;
        fixture_open(&f, 1);
        fake_cuda_fail_call(calls[i], RSSM_CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect(rssm_cuda_alloc(&f.devices[0], 16, &memory, &diag) == RSSM_E_DEVICE_MEMORY, "%s", calls[i]);
        cr_expect(strstr(diag.text, "using GPU 0 (NVIDIA H200): CUDA_ERROR_OUT_OF_MEMORY"), "%s", diag.text);
        fake_cuda_fail_call(calls[i], RSSM_CUDA_SUCCESS);
        fixture_close(&f);
    }
}

static pthread_barrier_t all_here;

static void *allocate_and_free(void *argument)
{
    fixture *f = argument;
    void    *memory = NULL;

    pthread_barrier_wait(&all_here);
    for (int i = 0; i < 50; i++) {
        if (rssm_cuda_alloc(&f->devices[i % 2], 100, &memory, NULL) != RSSM_OK) return argument;
        rssm_cuda_free(&f->devices[i % 2], memory);
    }
    return NULL;
}

Test(cuda_memory, many_threads_retain_a_context_once)
{
    fixture   f;
    pthread_t threads[8];

    fixture_open(&f, 3);
    pthread_barrier_init(&all_here, NULL, 8);
    for (int i = 0; i < 8; i++)
        cr_assert(pthread_create(&threads[i], NULL, allocate_and_free, &f) == 0);
    for (int i = 0; i < 8; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        cr_expect(failed == NULL);
    }
    for (int i = 0; i < 3; i++)
        cr_expect(fake_cuda_retained(i) == (i < 2), "GPU %d: %d", i,
                  fake_cuda_retained(i)); // the unused one: not at all
    fixture_close(&f);
}
