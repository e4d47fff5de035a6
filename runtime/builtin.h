// Kernels compiled into the library: the CPU templates, generic in shape, for hosts without a compiler.
#ifndef RSSM_RUNTIME_BUILTIN_H
#define RSSM_RUNTIME_BUILTIN_H

#include <stdint.h>

#include "runtime/cpu_pool.h"

// The generic build of the template whose entry is `entry`, for these types; NULL where there is none.
rssm_cpu_kernel *rssm_builtin_find(const char *entry, uint32_t activation_dtype, uint32_t checkpoint_dtype);

#endif
