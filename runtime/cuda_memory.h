// Device memory, streams, graphs and events of NVIDIA GPUs, for the tuner, the tests and the examples.
// Nothing here is on a launch path. All functions make the device's primary context current for the call.
//
// A device passed to graph_begin must outlive the graph. Upload and download wait for all work of the device before
// they copy, and return when the copy is done.
#ifndef RSSM_RUNTIME_CUDA_MEMORY_H
#define RSSM_RUNTIME_CUDA_MEMORY_H

#include "runtime/device.h"

rssm_status rssm_cuda_alloc(const rssm_device *device, size_t n_bytes, void **out_pointer, rssm_diag *diag);
void        rssm_cuda_free(const rssm_device *device, void *pointer);
rssm_status rssm_cuda_upload(const rssm_device *device, void *to, const void *from, size_t n_bytes, rssm_diag *diag);
rssm_status rssm_cuda_download(const rssm_device *device, void *to, const void *from, size_t n_bytes, rssm_diag *diag);
rssm_status rssm_cuda_memory_free_bytes(const rssm_device *device, uint64_t *out_bytes, rssm_diag *diag);

// Waits for the device; a sticky fault is RSSM_E_DEVICE_LOST naming the driver's error.
rssm_status rssm_cuda_synchronise(const rssm_device *device, rssm_diag *diag);

// A captured sequence of launches. Begin capture on the returned stream, launch on it, end: all in one thread. Nothing
// of the device may be copied or synchronised in between; loading kernels and allocating are allowed.
typedef struct rssm_cuda_graph rssm_cuda_graph;
rssm_status rssm_cuda_graph_begin(const rssm_device *device, rssm_cuda_graph **out_graph, void **out_stream,
                                  rssm_diag *diag);
rssm_status rssm_cuda_graph_end(rssm_cuda_graph *graph, rssm_diag *diag);    // instantiates and uploads
rssm_status rssm_cuda_graph_launch(rssm_cuda_graph *graph, rssm_diag *diag); // asynchronous
// One replay between two events, synchronised: time in nanoseconds. RSSM_E_DEVICE for a time that is not positive.
rssm_status rssm_cuda_graph_time(rssm_cuda_graph *graph, double *out_ns, rssm_diag *diag);
void        rssm_cuda_graph_destroy(rssm_cuda_graph *graph); // also before `end`

#endif
