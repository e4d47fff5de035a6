// What the CUDA driver's errors mean here: one table of name, number, status and remedy.
//
// A sentence is made of what was being done, the driver's name and words for the error, and the remedy.
// Threads: thread-safe. rssm_cuda_status neither allocates nor writes: launches may use it.
#ifndef RSSM_RUNTIME_CUDA_ERROR_H
#define RSSM_RUNTIME_CUDA_ERROR_H

#include "runtime/cuda_api.h"

#define RSSM_CUDA_REOPEN "; destroy the groups, close this context and open another"
#define RSSM_CUDA_RESTART "; the GPU is lost to this process: restart it"
#define RSSM_CUDA_FAULT                                                                                                \
    "; a kernel failed and the GPU is lost to this process: restart it, and run the last step "                        \
    "under compute-sanitizer to find the kernel"

// X(name, value, status, remedy) of CUDA_ERROR_<name>. Errors that are not listed are RSSM_E_DEVICE.
#define RSSM_CUDA_ERROR_LIST(X)                                                                                        \
    X(INVALID_VALUE, 1, E_DEVICE, "; this is a bug of replayssm: report it with the driver's version")                 \
    X(OUT_OF_MEMORY, 2, E_DEVICE_MEMORY, "; free device memory, or use fewer slots or a smaller batch")                \
    X(NOT_INITIALIZED, 3, E_DEVICE_LOST, "; a child of fork cannot use its parent's GPU: open a context in the child") \
    X(DEINITIALIZED, 4, E_DEVICE_LOST, "; the process is exiting: destroy groups and contexts before")                 \
    X(STUB_LIBRARY, 34, E_DRIVER, "; take the toolkit's stubs folder off the library path")                            \
    X(CALL_REQUIRES_NEWER_DRIVER, 36, E_DRIVER, "; install a newer NVIDIA driver")                                     \
    X(DEVICE_UNAVAILABLE, 46, E_BUSY, "; another process has the GPU for itself: end it or choose another GPU")        \
    X(NO_DEVICE, 100, E_NO_DEVICE, "; see that nvidia-smi lists a GPU and that CUDA_VISIBLE_DEVICES does not hide it") \
    X(INVALID_DEVICE, 101, E_NO_DEVICE, RSSM_CUDA_REOPEN)                                                              \
    X(DEVICE_NOT_LICENSED, 102, E_NO_DEVICE, "; license the virtual GPU")                                              \
    X(INVALID_IMAGE, 200, E_CORRUPT, "; the binary is damaged or no cubin: tune or build it again")                    \
    X(INVALID_CONTEXT, 201, E_DEVICE_LOST, "; other code has reset the GPU's context" RSSM_CUDA_REOPEN)                \
    X(NO_BINARY_FOR_GPU, 209, E_UNSUPPORTED, "; build or tune the kernel for this GPU's architecture")                 \
    X(ECC_UNCORRECTABLE, 214, E_DEVICE_LOST, RSSM_CUDA_RESTART ", and see what nvidia-smi -q says about ECC")          \
    X(INVALID_PTX, 218, E_CORRUPT, "; the binary is damaged: tune or build it again")                                  \
    X(NVLINK_UNCORRECTABLE, 220, E_DEVICE_LOST, RSSM_CUDA_RESTART)                                                     \
    X(JIT_COMPILER_NOT_FOUND, 221, E_UNSUPPORTED, "; build or tune the kernel for this GPU's architecture")            \
    X(UNSUPPORTED_PTX_VERSION, 222, E_DRIVER,                                                                          \
      "; the kernel needs a newer driver: install it, or compile with the "                                            \
      "NVRTC of the driver's CUDA version")                                                                            \
    X(CONTAINED, 226, E_DEVICE_LOST, RSSM_CUDA_RESTART)                                                                \
    X(OPERATING_SYSTEM, 304, E_DEVICE, "; see the kernel log (dmesg) and the limits of the process")                   \
    X(INVALID_HANDLE, 400, E_DEVICE, "; a stream of another GPU's context, or something that was destroyed, was used") \
    X(NOT_FOUND, 500, E_CORRUPT, "; the binary and its manifest do not belong together: tune or build it again")       \
    X(ILLEGAL_ADDRESS, 700, E_DEVICE_LOST, RSSM_CUDA_FAULT)                                                            \
    X(LAUNCH_OUT_OF_RESOURCES, 701, E_UNSUPPORTED, "; the block needs more registers or shared memory than there are") \
    X(LAUNCH_TIMEOUT, 702, E_DEVICE_LOST, RSSM_CUDA_FAULT)                                                             \
    X(CONTEXT_IS_DESTROYED, 709, E_DEVICE_LOST, "; other code has reset the GPU's context" RSSM_CUDA_REOPEN)           \
    X(ASSERT, 710, E_DEVICE_LOST, RSSM_CUDA_FAULT)                                                                     \
    X(HARDWARE_STACK_ERROR, 714, E_DEVICE_LOST, RSSM_CUDA_FAULT)                                                       \
    X(ILLEGAL_INSTRUCTION, 715, E_DEVICE_LOST, RSSM_CUDA_FAULT)                                                        \
    X(MISALIGNED_ADDRESS, 716, E_DEVICE_LOST, RSSM_CUDA_FAULT)                                                         \
    X(INVALID_ADDRESS_SPACE, 717, E_DEVICE_LOST, RSSM_CUDA_FAULT)                                                      \
    X(INVALID_PC, 718, E_DEVICE_LOST, RSSM_CUDA_FAULT)                                                                 \
    X(LAUNCH_FAILED, 719, E_DEVICE_LOST, RSSM_CUDA_FAULT)                                                              \
    X(NOT_PERMITTED, 800, E_PERMISSION, "; see the permissions of /dev/nvidia*")                                       \
    X(NOT_SUPPORTED, 801, E_UNSUPPORTED, "; this GPU or its driver lacks it: choose another kernel")                   \
    X(SYSTEM_NOT_READY, 802, E_DRIVER, "; start the fabric manager (nvidia-fabricmanager) and try again")              \
    X(SYSTEM_DRIVER_MISMATCH, 803, E_DRIVER, "; the driver was updated under a running kernel module: reboot")         \
    X(COMPAT_NOT_SUPPORTED_ON_DEVICE, 804, E_DRIVER,                                                                   \
      "; take CUDA's compat folder off the library path, or update "                                                   \
      "the driver")                                                                                                    \
    X(MPS_CONNECTION_FAILED, 805, E_DRIVER, "; start the MPS daemon, or unset CUDA_MPS_PIPE_DIRECTORY")                \
    X(STREAM_CAPTURE_UNSUPPORTED, 900, E_DEVICE, "; end the stream capture before")                                    \
    X(STREAM_CAPTURE_INVALIDATED, 901, E_DEVICE, "; an earlier call failed during the stream capture: capture again")  \
    X(STREAM_CAPTURE_WRONG_THREAD, 908, E_DEVICE, "; end a capture in the thread that began it")                       \
    X(UNKNOWN, 999, E_DEVICE_LOST, "; see the kernel log (dmesg), and that /dev/nvidia* and nvidia_uvm are there")

enum {
#define RSSM_CUDA_ERROR_ENUM(name, value, status, remedy) RSSM_CUDA_ERROR_##name = value,
    RSSM_CUDA_ERROR_LIST(RSSM_CUDA_ERROR_ENUM)
#undef RSSM_CUDA_ERROR_ENUM
};

// The status that a result stands for.
rssm_status rssm_cuda_status(rssm_cuda_result result);

// RSSM_OK for success; else fills `diag` with "<what>: CUDA_ERROR_X (the driver's words)<remedy>".
#define RSSM_CUDA_CHECK(diag, result, ...) rssm_cuda_check((diag), (result), __FILE__, __LINE__, __VA_ARGS__)

rssm_status rssm_cuda_check(rssm_diag *diag, rssm_cuda_result result, const char *file, int line, const char *format,
                            ...) __attribute__((format(printf, 5, 6)));

#endif
