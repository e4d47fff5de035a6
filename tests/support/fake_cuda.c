// The fake driver's state, failures and observation. See fake_cuda.h.
#include "tests/support/fake_cuda.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/fake_cuda_state.h"

fake_state             fake;
static pthread_mutex_t fake_mutex;
static pthread_once_t  fake_mutex_once = PTHREAD_ONCE_INIT;

static const char *const names[FAKE_CALL_COUNT] = {
#define CALL_NAME(name, symbol, parameters) #name,
    RSSM_CUDA_CALL_LIST(CALL_NAME) RSSM_CUDA_OPTIONAL_CALL_LIST(CALL_NAME)
#undef CALL_NAME
};

static const rssm_cuda_api fake_table = {
#define CALL_MEMBER(name, symbol, parameters) .name = fake_##name,
    RSSM_CUDA_CALL_LIST(CALL_MEMBER) RSSM_CUDA_OPTIONAL_CALL_LIST(CALL_MEMBER)
#undef CALL_MEMBER
};

// RELEASE: works even where it fails. QUERY: touches no GPU, so a fault does not show. EARLY: may come before cuInit.
// CERTAIN: fake_cuda_fail_nth passes over it.
enum { RELEASE = 1, QUERY = 2, EARLY = 4, CERTAIN = 8 };
static const unsigned char traits[FAKE_CALL_COUNT] = {
    [FAKE_cuInit] = QUERY | EARLY,
    [FAKE_cuDriverGetVersion] = QUERY | EARLY,
    [FAKE_cuGetErrorName] = QUERY | EARLY | CERTAIN,
    [FAKE_cuGetErrorString] = QUERY | EARLY | CERTAIN,
    [FAKE_cuDeviceGetCount] = QUERY,
    [FAKE_cuDeviceGet] = QUERY,
    [FAKE_cuDeviceGetName] = QUERY,
    [FAKE_cuDeviceGetAttribute] = QUERY,
    [FAKE_cuDeviceTotalMem] = QUERY,
    [FAKE_cuThreadExchangeStreamCaptureMode] = QUERY | CERTAIN,
    [FAKE_cuCtxPushCurrent] = QUERY,
    [FAKE_cuCtxPopCurrent] = QUERY | RELEASE,
    [FAKE_cuDevicePrimaryCtxRelease] = RELEASE,
    [FAKE_cuLibraryUnload] = RELEASE,
    [FAKE_cuMemFree] = RELEASE,
    [FAKE_cuStreamDestroy] = RELEASE,
    [FAKE_cuStreamEndCapture] = RELEASE,
    [FAKE_cuGraphExecDestroy] = RELEASE,
    [FAKE_cuGraphDestroy] = RELEASE,
    [FAKE_cuEventDestroy] = RELEASE,
};

static void make_mutex(void)
{
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE); // twins may call the fake
    pthread_mutex_init(&fake_mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

static void lock(void)
{
    pthread_once(&fake_mutex_once, make_mutex);
    pthread_mutex_lock(&fake_mutex);
}

static void unlock(void)
{
    pthread_mutex_unlock(&fake_mutex);
}

static fake_call find_call(const char *name)
{
    int call = 0;

    while (call < FAKE_CALL_COUNT && strcmp(names[call], name) != 0)
        call++;
    if (call == FAKE_CALL_COUNT) {
        fprintf(stderr, "fake_cuda: there is no driver call %s\n", name);
        abort();
    }
    return (fake_call)call;
}

static void record(fake_call call)
{
    const size_t length = strlen(fake.trace);

    fake.counts[call]++;
    fake.total++;
    snprintf(fake.trace + length, sizeof fake.trace - length, "%s%s", length > 0 ? " " : "", names[call]);
}

fake_guard fake_lock(fake_call call)
{
    rssm_cuda_result result = RSSM_CUDA_SUCCESS;

    lock();
    record(call);
    if (!fake.initialised && !(traits[call] & EARLY)) result = RSSM_CUDA_ERROR_NOT_INITIALIZED;
    if (fake.forced[call] != RSSM_CUDA_SUCCESS) result = fake.forced[call];
    if (fake.until_failure > 0 && !(traits[call] & CERTAIN) && --fake.until_failure == 0) {
        fake.fired = (int)call;
        if (fake.failure_stays)
            fake.fault = fake.failure;
        else
            result = fake.failure;
    }
    if (fake.fault != RSSM_CUDA_SUCCESS && !(traits[call] & QUERY)) result = fake.fault;
    return (fake_guard){result};
}

void fake_unlock(const fake_guard *guard)
{
    (void)guard;
    unlock();
}

void fake_note(const char *format, ...)
{
    va_list arguments;

    if (fake.violation[0] != '\0') return;
    va_start(arguments, format);
    vsnprintf(fake.violation, sizeof fake.violation, format, arguments);
    va_end(arguments);
}

// --------------------------------------------------------------------------------------------------------- objects

void *fake_new(fake_kind kind, size_t size, struct CUctx_st *context)
{
    fake_object *object = calloc(1, size);

    if (object == NULL) abort();
    object->kind = kind;
    object->context = context;
    object->next = fake.objects;
    fake.objects = object;
    return object;
}

bool fake_is_live(const void *object, fake_kind kind)
{
    for (const fake_object *o = fake.objects; o != NULL; o = o->next)
        if (o == object) return o->kind == kind && !o->dead;
    return false;
}

bool fake_is_dead_with_context(const fake_object *object)
{
    for (const fake_object *o = fake.objects; o != NULL; o = o->next)
        if (o == object) return o->dead && o->context != NULL && o->context->object.dead;
    return false;
}

static void free_owned(fake_object *o)
{
    switch (o->kind) {
    case FAKE_LIBRARY:
        free(((struct CUlib_st *)(void *)o)->bytes);
        break;
    case FAKE_ALLOCATION:
        free(((fake_allocation *)(void *)o)->base);
        break;
    case FAKE_STREAM:
        fake_clear(&((struct CUstream_st *)(void *)o)->pending);
        break;
    case FAKE_GRAPH:
        fake_clear(&((struct CUgraph_st *)(void *)o)->nodes);
        break;
    case FAKE_EXEC:
        fake_clear(&((struct CUgraphExec_st *)(void *)o)->nodes);
        break;
    default:
        break;
    }
}

// ----------------------------------------------------------------------------------------------------- installation

static void free_objects(void)
{
    while (fake.objects != NULL) {
        fake_object *next = fake.objects->next;
        free_owned(fake.objects);
        free(fake.objects);
        fake.objects = next;
    }
}

void fake_cuda_install(const fake_cuda_gpu *gpus, int n_gpus)
{
    lock();
    free_objects();
    memset(&fake, 0, sizeof fake);
    if (n_gpus > 0) memcpy(fake.gpus, gpus, (size_t)n_gpus * sizeof *gpus);
    fake.n_gpus = n_gpus;
    fake.driver_version = 13000;
    fake.fired = -1;
    fake.table = fake_table;
    fake_reset_thread();
    rssm_cuda_api_install(&fake.table);
    unlock();
}

void fake_cuda_remove(void)
{
    lock();
    rssm_cuda_api_install(NULL);
    free_objects();
    fake_reset_thread();
    unlock();
}

void fake_cuda_set_driver_version(int version)
{
    fake.driver_version = version;
}

void fake_cuda_hide_optional(void)
{
    fake.table.cuFuncLoad = NULL;
    fake.table.cuFuncGetParamInfo = NULL;
}

void fake_cuda_require_current(bool required)
{
    fake.require_current = required;
}

// --------------------------------------------------------------------------------------------------------- failures

static void arm(long n, rssm_cuda_result result, bool stays)
{
    lock();
    fake.until_failure = n;
    fake.failure = result;
    fake.failure_stays = stays;
    fake.fired = -1;
    unlock();
}

void fake_cuda_fail_nth(long n, rssm_cuda_result result)
{
    arm(n, result, false);
}

void fake_cuda_fault_after(long n, rssm_cuda_result result)
{
    arm(n, result, true);
}

bool fake_cuda_fired(void)
{
    return fake.fired >= 0;
}

const char *fake_cuda_fired_name(void)
{
    return fake.fired >= 0 ? names[fake.fired] : "";
}

bool fake_cuda_fired_late(void)
{
    return fake.fired >= 0 && (traits[fake.fired] & RELEASE);
}

void fake_cuda_fail_call(const char *name, rssm_cuda_result result)
{
    lock();
    fake.forced[find_call(name)] = result;
    unlock();
}

void fake_cuda_fault(rssm_cuda_result result)
{
    lock();
    fake.fault = result;
    unlock();
}

// ------------------------------------------------------------------------------------------------------ observation

long fake_cuda_calls(const char *name)
{
    lock();
    const long n = name != NULL ? fake.counts[find_call(name)] : fake.total;
    unlock();
    return n;
}

void fake_cuda_trace_clear(void)
{
    lock();
    fake.trace[0] = '\0';
    unlock();
}

const char *fake_cuda_trace(void)
{
    return fake.trace;
}

const char *fake_cuda_violation(void)
{
    lock();
    for (const fake_object *o = fake.objects; o != NULL; o = o->next)
        if (o->kind == FAKE_ALLOCATION && !o->dead) fake_check_guards((const fake_allocation *)(const void *)o);
    unlock();
    return fake.violation;
}

static void add_leak(int n, const char *singular, const char *plural)
{
    const size_t length = strlen(fake.leaks);

    if (n == 0) return;
    snprintf(fake.leaks + length, sizeof fake.leaks - length, "%s%d %s", length > 0 ? ", " : "", n,
             n == 1 ? singular : plural);
}

const char *fake_cuda_leaks(void)
{
    static const char *const words[FAKE_KIND_COUNT][2] = {
#define KIND_WORDS(kind, singular, plural) {singular, plural},
        FAKE_KIND_LIST(KIND_WORDS)
#undef KIND_WORDS
    };
    int counts[FAKE_KIND_COUNT] = {0}, retained = 0;

    lock();
    fake.leaks[0] = '\0';
    for (const fake_object *o = fake.objects; o != NULL; o = o->next) {
        const bool legacy =
            o->kind == FAKE_STREAM && ((const struct CUstream_st *)(const void *)o)->legacy; // the context's own
        counts[o->kind] += !o->dead && !legacy;
    }
    for (int kind = 0; kind < FAKE_KIND_COUNT; kind++)
        if (words[kind][0][0] != '\0') add_leak(counts[kind], words[kind][0], words[kind][1]);
    for (int i = 0; i < fake.n_gpus; i++)
        retained += fake.retained[i];
    add_leak(retained, "retained context", "retained contexts");
    add_leak(fake_stack_depth(), "pushed context", "pushed contexts");
    add_leak(fake_capture_mode() != RSSM_CUDA_STREAM_CAPTURE_MODE_GLOBAL, "changed capture mode", "");
    unlock();
    return fake.leaks;
}
