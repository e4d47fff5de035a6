// Programmatic dependent launch. On architectures before sm_90 both do nothing, as they do in a kernel that was
// launched without the attribute.
#ifndef RSSM_PRIMS_CUDA_DEPENDENT_CUH
#define RSSM_PRIMS_CUDA_DEPENDENT_CUH

#include "prims/cuda_threads.cuh"

// Returns when the kernels this one depends on are complete and what they wrote is visible.
GPU_FN void gpu_dependency_wait()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// From here on the next kernel may begin; it sees this one's writes only after its own wait.
GPU_FN void gpu_dependency_trigger()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

#endif
