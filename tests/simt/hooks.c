// What the compiler's instrumentation of a template calls: every plain load and store, copies of objects, and
// UndefinedBehaviorSanitizer's misaligned accesses. The template's object is linked with --wrap for the latter two, so
// that AddressSanitizer's own functions stay what they are for everybody else.
#include <stdio.h>
#include <string.h>

#include "tests/simt/machine.h"

void *__asan_memcpy(void *to, const void *from, size_t n);
void *__asan_memmove(void *to, const void *from, size_t n);
void *__asan_memset(void *to, int byte, size_t n);

// Accesses outside the arena are the thread's own variables, its arguments or constants of the object.
static bool is_private(const void *address)
{
    const unsigned char *at = address;
    return (at >= simt.self->stack && at < simt.self->stack + STACK_BYTES) ||
           (at >= simt.image && at < simt.image_end) || (size_t)(at - (const unsigned char *)simt.args) < simt.n_args;
}

static void traced(const void *address, size_t n, simt_access_kind kind, const void *pc)
{
    size_t offset;
    if (!simt.self) return;
    if (!simt_locate(address, &offset) && is_private(address)) return;
    simt_access(address, n, kind, simt.self->index, simt_site_of_pc(pc), n <= 4 ? WANT_BYTES : WANT_WORDS);
}

#define SIMT_HOOKS(n)                                                                                                  \
    SIMT_API void __sanitizer_cov_load##n(const void *address);                                                        \
    SIMT_API void __sanitizer_cov_store##n(const void *address);                                                       \
    void          __sanitizer_cov_load##n(const void *address)                                                         \
    {                                                                                                                  \
        traced(address, n, ACCESS_LOAD, __builtin_return_address(0));                                                  \
    }                                                                                                                  \
    void __sanitizer_cov_store##n(const void *address)                                                                 \
    {                                                                                                                  \
        traced(address, n, ACCESS_STORE, __builtin_return_address(0));                                                 \
    }
SIMT_HOOKS(1)
SIMT_HOOKS(2)
SIMT_HOOKS(4)
SIMT_HOOKS(8)
SIMT_HOOKS(16)

SIMT_API void  __sanitizer_cov_trace_pc(void); // the instrumentation's other half, which it insists on
SIMT_API void *__wrap___asan_memcpy(void *to, const void *from, size_t n);
SIMT_API void *__wrap___asan_memmove(void *to, const void *from, size_t n);
SIMT_API void *__wrap___asan_memset(void *to, int byte, size_t n);

void __sanitizer_cov_trace_pc(void) {}

void *__wrap___asan_memcpy(void *to, const void *from, size_t n)
{
    traced(from, n, ACCESS_LOAD, __builtin_return_address(0));
    traced(to, n, ACCESS_STORE, __builtin_return_address(0));
    return __asan_memcpy(to, from, n);
}

void *__wrap___asan_memmove(void *to, const void *from, size_t n)
{
    traced(from, n, ACCESS_LOAD, __builtin_return_address(0));
    traced(to, n, ACCESS_STORE, __builtin_return_address(0));
    return __asan_memmove(to, from, n);
}

void *__wrap___asan_memset(void *to, int byte, size_t n)
{
    traced(to, n, ACCESS_STORE, __builtin_return_address(0));
    return __asan_memset(to, byte, n);
}

// The sanitizer's record of a typed access: where, and the alignment that its type asks for.
typedef struct type_mismatch {
    const char   *file;
    uint32_t      line, column;
    const void   *type;
    unsigned char log_alignment, check_kind;
} type_mismatch;

SIMT_API void __wrap___ubsan_handle_type_mismatch_v1_abort(const type_mismatch *data, const void *address);

void __wrap___ubsan_handle_type_mismatch_v1_abort(const type_mismatch *data, const void *address)
{
    const uint32_t site = simt_site_of_place((simt_place){data->file, (int)data->line});
    const size_t   alignment = (size_t)1 << data->log_alignment;
    if (address && (uintptr_t)address % alignment != 0) {
        simt_fail(SIMT_MISALIGNED, site,
                  "thread %u uses an object at an address that is %zu bytes past a multiple of %zu",
                  simt.self ? simt.self->index : 0, (uintptr_t)address % alignment, alignment);
    } else {
        simt_fail(SIMT_OUT_OF_BOUNDS, site, "thread %u uses an object at %p", simt.self ? simt.self->index : 0,
                  address);
    }
}

// Criterion's own process now and then leaves a few bytes behind; what the emulator leaks is still found.
SIMT_API const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:libcriterion";
}
