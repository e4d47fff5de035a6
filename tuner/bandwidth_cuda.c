// See bandwidth_cuda.h.
#include "tuner/bandwidth_cuda.h"

#include <string.h>

#include "gen/build.h"
#include "runtime/cuda_kernel.h"
#include "runtime/cuda_memory.h"
#include "runtime/select.h"
#include "templates/abi/probe.h"
#include "tuner/statistics.h"

enum {
    CACHE_FACTOR = 16,          // buffer: this many times the L2 ...
    LEAST_BYTES = 1 << 30,      // ... and no less than this
    LAUNCHES = 8,               // per graph
    SAMPLES = 9,
};

// Builds and loads the probe for the device.
static rssm_status load_probe(rssm_context *context, const rssm_device *device, rssm_kernel *out_kernel, rssm_diag *diag)
{
    const rssm_toolchain *toolchain;
    rssm_choice           choice;
    rssm_launch           launch;
    rssm_geometry         geometry = {0};
    rssm_object           object = {0};
    rssm_facts            facts;
    rssm_status           st = RSSM_OK;

    RSSM_TRY(rssm_choose_default(context, device, RSSM_OP_PROBE, NULL, &choice, diag));
    RSSM_TRY(rssm_context_toolchain(context, RSSM_CUDA, &toolchain, diag));
    rssm_facts_fill(device, NULL, &facts);
    const rssm_build_input input = {
        .set = context->templates,
        .config = &choice.config,
        .facts = &facts,
        .backend = RSSM_CUDA,
        .arch = device->info.arch,
    };
    RSSM_TRY(rssm_build(&input, toolchain, &object, NULL, diag));
    RSSM_TRY(rssm_launch_plan(&choice.config, &facts, &launch, diag));
    for (int i = 0; i < 3; i++) {
        geometry.grid[i].constant = launch.grid[i].constant;
        geometry.grid[i].per_row = launch.grid[i].per_row;
        geometry.block[i] = launch.block[i];
    }
    RSSM_TRY(rssm_cuda_kernel_load(device, object.bytes, object.n, choice.config.manifest->entry, &geometry,
                                   sizeof(rssm_probe_kernel_args), out_kernel, diag));
done:
    rssm_object_free(&object);
    return st;
}

static rssm_status time_probe(const rssm_device *device, const rssm_kernel *kernel, const rssm_probe_kernel_args *args,
                              double *out_ns, rssm_diag *diag)
{
    double           samples[SAMPLES];
    rssm_cuda_graph *graph = NULL;
    void            *stream;
    rssm_status      st = RSSM_OK;

    RSSM_TRY(rssm_cuda_graph_begin(device, &graph, &stream, diag));
    for (int i = 0; i < LAUNCHES; i++) {
        if ((st = rssm_cuda_kernel_launch(device, kernel, args, 1, stream)) != RSSM_OK) {
            st = RSSM_FAIL(diag, st, "the bandwidth probe could not be launched: %s", rssm_status_text(st));
            goto done;
        }
    }
    RSSM_TRY(rssm_cuda_graph_end(graph, diag));
    RSSM_TRY(rssm_cuda_graph_time(graph, &samples[0], diag));   // warms up
    for (int i = 0; i < SAMPLES; i++) RSSM_TRY(rssm_cuda_graph_time(graph, &samples[i], diag));
    *out_ns = rssm_statistics_of(samples, SAMPLES).median / LAUNCHES;
done:
    rssm_cuda_graph_destroy(graph);
    return st;
}

rssm_status rssm_bandwidth_measure_cuda(rssm_context *context, uint32_t device_index, rssm_bandwidth *out_bandwidth,
                                        rssm_diag *diag)
{
    const rssm_device *device = &context->devices[device_index];
    const uint64_t     cold = CACHE_FACTOR * device->info.cache_bytes;
    const uint64_t     n = (cold > LEAST_BYTES ? cold : LEAST_BYTES) / 16 * 16;
    rssm_kernel        kernel = {0};
    void              *data = NULL, *sink = NULL;
    double             ns;
    rssm_status        st = RSSM_OK;

    RSSM_TRY(load_probe(context, device, &kernel, diag));
    RSSM_TRY(rssm_cuda_alloc(device, n, &data, diag));
    RSSM_TRY(rssm_cuda_alloc(device, sizeof(rssm_u32), &sink, diag));
    const rssm_probe_kernel_args args = {.data = data, .n_vectors = (rssm_i64)(n / 16), .sink = sink};
    RSSM_TRY(time_probe(device, &kernel, &args, &ns, diag));
    *out_bandwidth = (rssm_bandwidth){.read = (double)n / ns * 1e9};
done:
    rssm_cuda_free(device, data);
    rssm_cuda_free(device, sink);
    if (kernel.cuda_library != NULL) rssm_cuda_kernel_unload(device, &kernel);
    return st;
}
