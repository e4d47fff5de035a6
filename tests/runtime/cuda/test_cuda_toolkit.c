// Compares runtime/cuda_api.h and cuda_error.h with the toolkit's cuda.h: a difference does not compile. Symbol
// versions are compared when it runs, as the toolkit's macros tell them.
#include <stdio.h>
#include <string.h>

#include "runtime/cuda_error.h"

#ifndef HAVE_CUDA_H

int main(void)
{
    printf("skipped: no CUDA toolkit is installed, so the driver's prototypes could not be compared with cuda.h\n");
    return 77;
}

#else

#include <cuda.h>

#define SAME_TYPE(a, b) __builtin_types_compatible_p(a, b)

// The one struct the calls pass: same fields, places and sizes. From here on its name means the toolkit's.
#define SAME_FIELD(field)                                                                                              \
    _Static_assert(offsetof(rssm_cuda_launch_config, field) == offsetof(CUlaunchConfig, field), #field);               \
    _Static_assert(                                                                                                    \
        SAME_TYPE(__typeof__(((rssm_cuda_launch_config *)0)->field), __typeof__(((CUlaunchConfig *)0)->field)),        \
        #field)
SAME_FIELD(gridDimX);
SAME_FIELD(gridDimY);
SAME_FIELD(gridDimZ);
SAME_FIELD(blockDimX);
SAME_FIELD(blockDimY);
SAME_FIELD(blockDimZ);
SAME_FIELD(sharedMemBytes);
SAME_FIELD(hStream);
SAME_FIELD(attrs);
SAME_FIELD(numAttrs);
_Static_assert(sizeof(rssm_cuda_launch_config) == sizeof(CUlaunchConfig), "launch configuration");
_Static_assert(SAME_TYPE(rssm_cuda_result, CUresult), "results");
_Static_assert(SAME_TYPE(int, CUdevice), "device handles");
_Static_assert(SAME_TYPE(unsigned long long, CUdeviceptr), "device pointers");
#define rssm_cuda_launch_config CUlaunchConfig

#define SAME_PROTOTYPE(name, symbol, parameters)                                                                       \
    _Static_assert(SAME_TYPE(rssm_cuda_result(*) parameters, __typeof__(&name)), #name);
RSSM_CUDA_CALL_LIST(SAME_PROTOTYPE)
#if CUDA_VERSION >= 12040
RSSM_CUDA_OPTIONAL_CALL_LIST(SAME_PROTOTYPE)
#endif

#define SAME_ERROR(name, value, status, remedy) _Static_assert(CUDA_ERROR_##name == value, #name);
#if CUDA_VERSION >= 12080 // CUDA_ERROR_CONTAINED is that new
RSSM_CUDA_ERROR_LIST(SAME_ERROR)
#endif
#define SAME_DEVICE_ATTRIBUTE(name, value) _Static_assert(CU_DEVICE_ATTRIBUTE_##name == value, #name);
RSSM_CUDA_DEVICE_ATTRIBUTE_LIST(SAME_DEVICE_ATTRIBUTE)
#if CUDA_VERSION >= 12080
RSSM_CUDA_NEW_DEVICE_ATTRIBUTE_LIST(SAME_DEVICE_ATTRIBUTE)
#endif
#define SAME_FUNCTION_ATTRIBUTE(name, value) _Static_assert(CU_FUNC_ATTRIBUTE_##name == value, #name);
RSSM_CUDA_FUNCTION_ATTRIBUTE_LIST(SAME_FUNCTION_ATTRIBUTE)
#define SAME_FLAG(name, value) _Static_assert(CU_##name == value, #name);
RSSM_CUDA_FLAG_LIST(SAME_FLAG)
_Static_assert((int)RSSM_CUDA_SUCCESS == (int)CUDA_SUCCESS, "success");

#define TEXT(x) #x
#define EXPANDED(x) TEXT(x)

// `theirs` is what the toolkit's macro makes of the name: the symbol that a program compiled with it would link.
static int compare_symbol(const char *ours, const char *theirs, int *n)
{
    // CUDA 12.8 renamed this one for another meaning of unfinished events; drivers keep the old one, and 12.0 has no
    // other.
    const int known = strcmp(ours, "cuEventElapsedTime") == 0 && strcmp(theirs, "cuEventElapsedTime_v2") == 0;

    (*n)++;
    if (known || strcmp(ours, theirs) == 0) return 0;
    printf("symbol %s: the toolkit links %s\n", ours, theirs);
    return 1;
}

int main(void)
{
    int n = 0, n_different = 0;

#define COMPARE_SYMBOL(name, symbol, parameters) n_different += compare_symbol(symbol, EXPANDED(name), &n);
    RSSM_CUDA_CALL_LIST(COMPARE_SYMBOL)
    RSSM_CUDA_OPTIONAL_CALL_LIST(COMPARE_SYMBOL)
    printf("%d driver symbols compared with cuda.h of CUDA %d.%d, %d differ\n", n, CUDA_VERSION / 1000,
           CUDA_VERSION % 1000 / 10, n_different);
    return n_different > 0;
}

#endif
