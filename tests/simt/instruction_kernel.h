// The kernel of kernels/matrix.cu, loaded once per test, and memory for it.
#ifndef RSSM_SIMT_INSTRUCTION_KERNEL_H
#define RSSM_SIMT_INSTRUCTION_KERNEL_H

#include "tests/simt/emulator.h"
#include "tests/simt/kernels/matrix.h"

void  simt_load_instructions(void);                       // a test's .init
void *simt_test_buffer(size_t n_bytes, const void *from); // device memory; `from` NULL: not written
void  simt_run_instruction(const matrix_args *args);      // one warp; a defect fails the test

#endif
