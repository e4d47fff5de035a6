// Fibers: a stack per emulated thread and the switch between them.
//
// On x86-64 the switch saves the registers that a call preserves and changes stacks; elsewhere ucontext does it, at the
// price of a system call. AddressSanitizer is told about every switch, and forgets the frames of abandoned fibers.
#define _GNU_SOURCE
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <stdlib.h>
#include <sys/mman.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#include "tests/simt/machine.h"

enum { PAGE = 4096 };

static void run_thread(void)
{
    __sanitizer_finish_switch_fiber(NULL, &simt.scheduler_stack, &simt.scheduler_stack_bytes);
    simt.entry(simt.args);
    simt_fiber_yield(SIMT_DONE);
    abort();
}

#if defined(__x86_64__)

void simt_switch_stacks(void **from, void *to);
__asm__(".text\n"
        ".type simt_switch_stacks, @function\n"
        "simt_switch_stacks:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size simt_switch_stacks, .-simt_switch_stacks\n");

static void *fresh_stack(unsigned char *stack)
{
    void **top = (void **)(void *)(stack + STACK_BYTES) - 1; // as behind a call: a return address at 16 n + 8
    *top = NULL;                                             // where a debugger stops walking
    *--top = (void *)run_thread;
    for (int i = 0; i < 6; i++)
        *--top = NULL;
    return top;
}

#else

static void simt_switch_stacks(void **from, void *to)
{
    ucontext_t *own = *from;
    if (!own) own = *from = calloc(1, sizeof *own);
    if (!own) abort();
    swapcontext(own, to);
}

static void *fresh_stack(unsigned char *stack)
{
    ucontext_t *context = calloc(1, sizeof *context);
    if (!context || getcontext(context) != 0) abort();
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = STACK_BYTES;
    makecontext(context, run_thread, 0);
    return context;
}

#endif

void simt_fiber_prepare(simt_thread *thread)
{
    if (!thread->stack) {
        unsigned char *pages = mmap(NULL, STACK_BYTES + PAGE, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
        if (pages == MAP_FAILED || mprotect(pages, PAGE, PROT_NONE) != 0) abort();
        thread->stack = pages + PAGE;
    }
    __asan_unpoison_memory_region(thread->stack, STACK_BYTES);
#if !defined(__x86_64__)
    free(thread->stack_pointer);
#endif
    thread->stack_pointer = fresh_stack(thread->stack);
    thread->fake_stack = NULL;
}

void simt_fiber_run(simt_thread *thread)
{
    simt.self = thread;
    simt.counts.n_switches++;
    __sanitizer_start_switch_fiber(&simt.scheduler_fake_stack, thread->stack, STACK_BYTES);
    simt_switch_stacks(&simt.scheduler_pointer, thread->stack_pointer);
    __sanitizer_finish_switch_fiber(simt.scheduler_fake_stack, NULL, NULL);
    simt.self = NULL;
}

void simt_fiber_yield(simt_state state)
{
    simt_thread *thread = simt.self;
    thread->state = state;
    __sanitizer_start_switch_fiber(state == SIMT_DONE ? NULL : &thread->fake_stack, simt.scheduler_stack,
                                   simt.scheduler_stack_bytes);
    simt_switch_stacks(&thread->stack_pointer, simt.scheduler_pointer);
    __sanitizer_finish_switch_fiber(thread->fake_stack, &simt.scheduler_stack, &simt.scheduler_stack_bytes);
}

_Noreturn void simt_fiber_abandon(void)
{
    simt_fiber_yield(SIMT_DONE);
    abort();
}
