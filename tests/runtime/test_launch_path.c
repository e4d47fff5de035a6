// rssm_step makes no system call and allocates nothing: it runs in a thread whose seccomp filter allows no call at
// all, with allocations counted.
#include <criterion/criterion.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/support/layer.h"

#if defined(__SANITIZE_ADDRESS__)
#define UNDER_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_SANITIZER 1
#endif
#endif

static atomic_int n_allocations;

#ifdef UNDER_SANITIZER
int  __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void *, size_t),
                                               void (*free_hook)(const volatile void *));
static void count_malloc(const volatile void *p, size_t n)
{
    (void)p, (void)n;
    atomic_fetch_add(&n_allocations, 1);
}
static void count_free(const volatile void *p)
{
    (void)p;
    atomic_fetch_add(&n_allocations, 1);
}
static void watch_allocations(void)
{
    __sanitizer_install_malloc_and_free_hooks(count_malloc, count_free);
}
#else
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void  __libc_free(void *p);

void *malloc(size_t n)
{
    atomic_fetch_add(&n_allocations, 1);
    return __libc_malloc(n);
}
void *calloc(size_t n, size_t size)
{
    atomic_fetch_add(&n_allocations, 1);
    return __libc_calloc(n, size);
}
void *realloc(void *p, size_t n)
{
    atomic_fetch_add(&n_allocations, 1);
    return __libc_realloc(p, n);
}
void free(void *p)
{
    atomic_fetch_add(&n_allocations, 1);
    __libc_free(p);
}
static void watch_allocations(void) {}
#endif

typedef struct shared {
    atomic_int finished;      // 1: the steps went through; 2: a step failed
    atomic_int allocations;
} shared;

static void allow_no_system_call(void)
{
    struct sock_filter kill_all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    struct sock_fprog  program = {.len = 1, .filter = kill_all};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(42);
}

// Steps in a child under the filter; the parent reads how it went from shared memory and ends the child.
static void step_without_system_calls(uint32_t miss_policy, int call_getppid)
{
    shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int     status = 0;
    cr_assert_neq(s, MAP_FAILED);
    const pid_t child = fork();
    if (child == 0) {
        test_layer         layer;
        const rssm_problem problem = test_problem();
        test_layer_open(&layer, &problem, 5, miss_policy, RSSM_EAGER_NEVER, NULL);
        for (int i = 0; i < 7; i++) {   // leaves rows in every mode of the window behind
            rssm_advance(layer.group, &layer.advance, NULL);
            rssm_step(layer.plan, &layer.step, NULL);
        }
        watch_allocations();
        const int before = atomic_load(&n_allocations);
        allow_no_system_call();
        int failed = 0;
        for (int i = 0; i < 200; i++) failed |= rssm_step(layer.plan, &layer.step, NULL) != RSSM_OK;
        if (call_getppid) (void)getppid();   // the test's own test: this must end the process
        atomic_store(&s->allocations, atomic_load(&n_allocations) - before);
        atomic_store(&s->finished, failed ? 2 : 1);
        for (;;) {}   // not even exit is allowed
    }
    const uint64_t deadline = rssm_now_ns() + 60000000000u;
    while (atomic_load(&s->finished) == 0 && rssm_now_ns() < deadline && waitpid(child, &status, WNOHANG) == 0)
        rssm_sleep_ns(1000000);
    const int finished = atomic_load(&s->finished);
    if (finished) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    }
    if (call_getppid) {
        cr_assert_eq(finished, 0, "the filter let a system call through");
        cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "status %x", status);
        return;
    }
    cr_assert_eq(finished, 1, "child ended with status %x before its steps were done", status);
    cr_assert_eq(atomic_load(&s->allocations), 0, "%d allocations", atomic_load(&s->allocations));
}

Test(launch_path, makes_no_system_call_and_no_allocation_with_a_built_in_kernel)
{
    step_without_system_calls(RSSM_MISS_BUILTIN, 0);
}

Test(launch_path, makes_no_system_call_and_no_allocation_with_a_compiled_kernel)
{
    step_without_system_calls(RSSM_MISS_COMPILE, 0);
}

Test(launch_path, is_watched_by_a_filter_that_works)
{
    step_without_system_calls(RSSM_MISS_BUILTIN, 1);
}
