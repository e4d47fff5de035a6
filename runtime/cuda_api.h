// The CUDA driver as a table of function pointers, filled by dlopen of libcuda.so.1: neither a toolkit nor a GPU is
// needed to build, and nothing of CUDA is linked. Prototypes, constants and structs are declared here and compared with
// the toolkit's cuda.h by a test where one is installed.
//
// Names: table members are called as in cuda.h; the exported symbol beside each carries the version that belongs to the
// prototype (cuMemAlloc -> cuMemAlloc_v2). Calls without _ptsz mean the legacy default stream by NULL.
// Results, enumerations and flags are plain unsigned numbers here: a newer driver may return what no list names.
//
// Invariants
//   D1  The library is loaded at most once per process and never unloaded; there is no exit handler.
//   D2  A table that was returned stays valid and unchanged for the life of the process; an installed one, of its test.
//
// Threads: thread-safe. rssm_cuda_api_install is for tests, while no other thread uses the driver.
#ifndef RSSM_RUNTIME_CUDA_API_H
#define RSSM_RUNTIME_CUDA_API_H

#include <stddef.h>

#include "base/status.h"

typedef unsigned rssm_cuda_result; // CUresult; runtime/cuda_error.h has the list
enum { RSSM_CUDA_SUCCESS = 0 };

struct CUctx_st;
struct CUlib_st;
struct CUkern_st;
struct CUfunc_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct CUlaunchAttribute_st; // none is used yet

typedef struct rssm_cuda_launch_config { // CUlaunchConfig
    unsigned                     gridDimX, gridDimY, gridDimZ;
    unsigned                     blockDimX, blockDimY, blockDimZ;
    unsigned                     sharedMemBytes;
    struct CUstream_st          *hStream;
    struct CUlaunchAttribute_st *attrs;
    unsigned                     numAttrs;
} rssm_cuda_launch_config;

// X(name, symbol, parameters): what every driver from CUDA 12.0 on has.
#define RSSM_CUDA_CALL_LIST(X)                                                                                         \
    X(cuInit, "cuInit", (unsigned flags))                                                                              \
    X(cuDriverGetVersion, "cuDriverGetVersion", (int *version))                                                        \
    X(cuGetErrorName, "cuGetErrorName", (rssm_cuda_result result, const char **text))                                  \
    X(cuGetErrorString, "cuGetErrorString", (rssm_cuda_result result, const char **text))                              \
    X(cuDeviceGetCount, "cuDeviceGetCount", (int *count))                                                              \
    X(cuDeviceGet, "cuDeviceGet", (int *device, int ordinal))                                                          \
    X(cuDeviceGetName, "cuDeviceGetName", (char *name, int n, int device))                                             \
    X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *value, unsigned attribute, int device))                      \
    X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t * bytes, int device))                                           \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (struct CUctx_st * *context, int device))                  \
    X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (int device))                                         \
    X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", (struct CUctx_st * context))                                            \
    X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", (struct CUctx_st * *context))                                             \
    X(cuCtxSynchronize, "cuCtxSynchronize", (void))                                                                    \
    X(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", (unsigned *mode))                        \
    X(cuLibraryLoadData, "cuLibraryLoadData",                                                                          \
      (struct CUlib_st * *library, const void *code, unsigned *jit_options, void **jit_values, unsigned n_jit_options, \
       unsigned *library_options, void **library_values, unsigned n_library_options))                                  \
    X(cuLibraryUnload, "cuLibraryUnload", (struct CUlib_st * library))                                                 \
    X(cuLibraryGetKernel, "cuLibraryGetKernel",                                                                        \
      (struct CUkern_st * *kernel, struct CUlib_st * library, const char *name))                                       \
    X(cuKernelGetFunction, "cuKernelGetFunction", (struct CUfunc_st * *function, struct CUkern_st * kernel))           \
    X(cuFuncGetAttribute, "cuFuncGetAttribute", (int *value, unsigned attribute, struct CUfunc_st *function))          \
    X(cuFuncSetAttribute, "cuFuncSetAttribute", (struct CUfunc_st * function, unsigned attribute, int value))          \
    X(cuLaunchKernelEx, "cuLaunchKernelEx",                                                                            \
      (const rssm_cuda_launch_config *config, struct CUfunc_st *function, void **parameters, void **extra))            \
    X(cuMemAlloc, "cuMemAlloc_v2", (unsigned long long *pointer, size_t n_bytes))                                      \
    X(cuMemFree, "cuMemFree_v2", (unsigned long long pointer))                                                         \
    X(cuMemcpyHtoD, "cuMemcpyHtoD_v2", (unsigned long long to, const void *from, size_t n_bytes))                      \
    X(cuMemcpyDtoH, "cuMemcpyDtoH_v2", (void *to, unsigned long long from, size_t n_bytes))                            \
    X(cuMemGetInfo, "cuMemGetInfo_v2", (size_t * free_bytes, size_t * total_bytes))                                    \
    X(cuStreamCreate, "cuStreamCreate", (struct CUstream_st * *stream, unsigned flags))                                \
    X(cuStreamDestroy, "cuStreamDestroy_v2", (struct CUstream_st * stream))                                            \
    X(cuStreamSynchronize, "cuStreamSynchronize", (struct CUstream_st * stream))                                       \
    X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (struct CUstream_st * stream, unsigned mode))                   \
    X(cuStreamEndCapture, "cuStreamEndCapture", (struct CUstream_st * stream, struct CUgraph_st * *graph))             \
    X(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags",                                                      \
      (struct CUgraphExec_st * *exec, struct CUgraph_st * graph, unsigned long long flags))                            \
    X(cuGraphUpload, "cuGraphUpload", (struct CUgraphExec_st * exec, struct CUstream_st * stream))                     \
    X(cuGraphLaunch, "cuGraphLaunch", (struct CUgraphExec_st * exec, struct CUstream_st * stream))                     \
    X(cuGraphExecDestroy, "cuGraphExecDestroy", (struct CUgraphExec_st * exec))                                        \
    X(cuGraphDestroy, "cuGraphDestroy", (struct CUgraph_st * graph))                                                   \
    X(cuEventCreate, "cuEventCreate", (struct CUevent_st * *event, unsigned flags))                                    \
    X(cuEventRecord, "cuEventRecord", (struct CUevent_st * event, struct CUstream_st * stream))                        \
    X(cuEventSynchronize, "cuEventSynchronize", (struct CUevent_st * event))                                           \
    X(cuEventElapsedTime, "cuEventElapsedTime",                                                                        \
      (float *milliseconds, struct CUevent_st *begin, struct CUevent_st *end))                                         \
    X(cuEventDestroy, "cuEventDestroy_v2", (struct CUevent_st * event))

// Members that are NULL where the driver is older than CUDA 12.4.
#define RSSM_CUDA_OPTIONAL_CALL_LIST(X)                                                                                \
    X(cuFuncLoad, "cuFuncLoad", (struct CUfunc_st * function))                                                         \
    X(cuFuncGetParamInfo, "cuFuncGetParamInfo",                                                                        \
      (struct CUfunc_st * function, size_t index, size_t * offset, size_t * n_bytes))

typedef struct rssm_cuda_api {
#define RSSM_CUDA_CALL_MEMBER(name, symbol, parameters) rssm_cuda_result(*name) parameters;
    RSSM_CUDA_CALL_LIST(RSSM_CUDA_CALL_MEMBER)
    RSSM_CUDA_OPTIONAL_CALL_LIST(RSSM_CUDA_CALL_MEMBER)
#undef RSSM_CUDA_CALL_MEMBER
} rssm_cuda_api;

// X(name, value) of CU_DEVICE_ATTRIBUTE_<name>.
#define RSSM_CUDA_DEVICE_ATTRIBUTE_LIST(X)                                                                             \
    X(MULTIPROCESSOR_COUNT, 16)                                                                                        \
    X(ECC_ENABLED, 32)                                                                                                 \
    X(PCI_BUS_ID, 33)                                                                                                  \
    X(PCI_DEVICE_ID, 34) /* the slot on the bus, not the model */                                                      \
    X(MEMORY_CLOCK_RATE, 36)                                                                                           \
    X(GLOBAL_MEMORY_BUS_WIDTH, 37)                                                                                     \
    X(L2_CACHE_SIZE, 38)                                                                                               \
    X(PCI_DOMAIN_ID, 50)                                                                                               \
    X(COMPUTE_CAPABILITY_MAJOR, 75)                                                                                    \
    X(COMPUTE_CAPABILITY_MINOR, 76)                                                                                    \
    X(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81)                                                                        \
    X(MAX_REGISTERS_PER_MULTIPROCESSOR, 82)                                                                            \
    X(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)

// Only drivers from CUDA 12.8 on answer these.
#define RSSM_CUDA_NEW_DEVICE_ATTRIBUTE_LIST(X) X(GPU_PCI_DEVICE_ID, 139) /* device << 16 | vendor */

// X(name, value) of CU_FUNC_ATTRIBUTE_<name>.
#define RSSM_CUDA_FUNCTION_ATTRIBUTE_LIST(X)                                                                           \
    X(MAX_THREADS_PER_BLOCK, 0)                                                                                        \
    X(SHARED_SIZE_BYTES, 1)                                                                                            \
    X(LOCAL_SIZE_BYTES, 3)                                                                                             \
    X(NUM_REGS, 4)                                                                                                     \
    X(MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)

// X(name, value) of CU_<name>.
#define RSSM_CUDA_FLAG_LIST(X)                                                                                         \
    X(STREAM_NON_BLOCKING, 1)                                                                                          \
    X(EVENT_DEFAULT, 0)                                                                                                \
    X(STREAM_CAPTURE_MODE_GLOBAL, 0)                                                                                   \
    X(STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)                                                                             \
    X(STREAM_CAPTURE_MODE_RELAXED, 2)

#define RSSM_CUDA_DEVICE_ENUM(name, value) RSSM_CUDA_DEVICE_##name = value,
#define RSSM_CUDA_FUNCTION_ENUM(name, value) RSSM_CUDA_FUNCTION_##name = value,
#define RSSM_CUDA_FLAG_ENUM(name, value) RSSM_CUDA_##name = value,
enum { RSSM_CUDA_DEVICE_ATTRIBUTE_LIST(RSSM_CUDA_DEVICE_ENUM) };
enum { RSSM_CUDA_NEW_DEVICE_ATTRIBUTE_LIST(RSSM_CUDA_DEVICE_ENUM) };
enum { RSSM_CUDA_FUNCTION_ATTRIBUTE_LIST(RSSM_CUDA_FUNCTION_ENUM) };
enum { RSSM_CUDA_FLAG_LIST(RSSM_CUDA_FLAG_ENUM) };
#undef RSSM_CUDA_DEVICE_ENUM
#undef RSSM_CUDA_FUNCTION_ENUM
#undef RSSM_CUDA_FLAG_ENUM

enum { RSSM_CUDA_OLDEST_VERSION = 12000 }; // 1000 * major + 10 * minor: the first with cuLibraryLoadData

// The driver's table, loading it on the first call. RSSM_E_DRIVER, the same each time, with the reason and the remedy.
rssm_status rssm_cuda_api_load(const rssm_cuda_api **out_api, rssm_diag *diag);

// The table after a successful load or install, NULL before: one atomic read. Whoever holds a GPU device may call it.
const rssm_cuda_api *rssm_cuda_api_current(void);

// Fills a table from a library file. RSSM_E_DRIVER: there is none, it is too old, or it is no CUDA driver.
rssm_status rssm_cuda_api_fill(const char *path, rssm_cuda_api *out_api, rssm_diag *diag);

// RSSM_E_DRIVER where the driver's CUDA version is below RSSM_CUDA_OLDEST_VERSION.
rssm_status rssm_cuda_api_check_version(const rssm_cuda_api *api, int *out_version, rssm_diag *diag);

// Tests: puts a table in place of the driver's; NULL takes it away. The table must outlive its use.
void rssm_cuda_api_install(const rssm_cuda_api *api);

#endif
