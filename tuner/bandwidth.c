// See bandwidth.h.
#include "tuner/bandwidth.h"

#include "base/clock.h"
#include "runtime/context.h"
#include "runtime/memory.h"
#include "tuner/bandwidth_cuda.h"
#include "tuner/statistics.h"

enum {
    BLOCK_BYTES = 256 << 10, // of one task: large against a task's cost, small against the whole
    LEAST_BYTES = 128 << 20,
    CACHE_FACTOR = 4,
    SAMPLES = 7,
};

typedef float vector __attribute__((vector_size(64), aligned(64)));

typedef struct stream_args {
    char *data;
    float sink[64]; // keeps the reads alive: task i leaves its sum in [i % 64]
} stream_args;

static void read_task(const void *args_argument, rssm_i64 task)
{
    stream_args  *args = (stream_args *)args_argument;
    const vector *v = (const vector *)(args->data + task * BLOCK_BYTES);
    vector        a = {0}, b = {0}, c = {0}, d = {0};
    for (size_t i = 0; i < BLOCK_BYTES / sizeof *v; i += 4) {
        a += v[i];
        b += v[i + 1];
        c += v[i + 2];
        d += v[i + 3];
    }
    a += b + c + d;
    if (a[0] == 12345.0f) args->sink[task % 64] = a[0]; // never true of this data, and the compiler cannot know
}

static void read_write_task(const void *args_argument, rssm_i64 task)
{
    const stream_args *args = args_argument;
    vector            *v = (vector *)(args->data + task * BLOCK_BYTES);
    const vector       half = (vector){0} + 0.5f, one = (vector){0} + 1.0f;
    for (size_t i = 0; i < BLOCK_BYTES / sizeof *v; i++) v[i] = v[i] * half + one;
}

static double median_pass_ns(rssm_context *context, rssm_cpu_kernel *kernel, const stream_args *args, rssm_i64 n_tasks)
{
    double samples[SAMPLES];
    rssm_cpu_pool_run(context->pool, kernel, args, n_tasks); // brings pages and threads in
    for (int i = 0; i < SAMPLES; i++) {
        const uint64_t begin = rssm_now_ns();
        rssm_cpu_pool_run(context->pool, kernel, args, n_tasks);
        samples[i] = (double)(rssm_now_ns() - begin);
    }
    return rssm_statistics_of(samples, SAMPLES).median;
}

rssm_status rssm_bandwidth_measure(rssm_context *context, uint32_t device, rssm_bandwidth *out_bandwidth,
                                   rssm_diag *diag)
{
    const rssm_device *d = &context->devices[device];
    uint64_t           n = CACHE_FACTOR * d->info.cache_bytes;
    stream_args        args = {0};
    void              *memory;
    rssm_status        st;

    if (d->info.backend == RSSM_CUDA) return rssm_bandwidth_measure_cuda(context, device, out_bandwidth, diag);
    if (n < LEAST_BYTES) n = LEAST_BYTES;
    if (n > d->info.memory_bytes / 4) n = d->info.memory_bytes / 4;
    n = n / BLOCK_BYTES * BLOCK_BYTES;
    if ((st = rssm_memory_alloc(context, device, n, &memory, diag)) != RSSM_OK) return st;
    for (uint64_t i = 0; i < n / sizeof(float); i++) ((float *)memory)[i] = (float)(i % 61);   // pages of its own
    args.data = memory;
    const rssm_i64 n_tasks = (rssm_i64)(n / BLOCK_BYTES);
    out_bandwidth->read = (double)n / median_pass_ns(context, read_task, &args, n_tasks) * 1e9;
    out_bandwidth->read_write = 2.0 * (double)n / median_pass_ns(context, read_write_task, &args, n_tasks) * 1e9;
    rssm_memory_free(context, device, memory);
    return RSSM_OK;
}
