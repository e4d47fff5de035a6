// Twin of templates/prims/cuda_dependent.cuh for the emulator.
#ifndef RSSM_PRIMS_CUDA_DEPENDENT_CUH
#define RSSM_PRIMS_CUDA_DEPENDENT_CUH

#include "prims/cuda_threads.cuh"

GPU_FN void gpu_dependency_wait()
{
    simt_dependency_wait();
}

GPU_FN void gpu_dependency_trigger()
{
    simt_dependency_trigger();
}

#endif
