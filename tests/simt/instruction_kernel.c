// See instruction_kernel.h.
#include "tests/simt/instruction_kernel.h"

#include <criterion/criterion.h>

#include "tests/simt/suite.h"

static simt_kernel *kernel;

void simt_load_instructions(void)
{
    rssm_diag                  diag = {0};
    const simt_compile_options options = {.clang = simt_clang(),
                                          .template_root = RSSM_SOURCE_DIR "/templates",
                                          .source = RSSM_SOURCE_DIR "/tests/simt/kernels/matrix.cu",
                                          .entry = "matrix",
                                          .args = "matrix_args"};
    cr_assert_eq(simt_kernel_load(&options, &kernel, &diag), RSSM_OK, "%s", diag.text);
}

void *simt_test_buffer(size_t n_bytes, const void *from)
{
    void *pointer = NULL;
    cr_assert_eq(simt_alloc(n_bytes, &pointer, NULL), RSSM_OK);
    if (from) simt_upload(pointer, from, n_bytes, false);
    return pointer;
}

void simt_run_instruction(const matrix_args *args)
{
    simt_report               report;
    const simt_launch_options options = {{1, 1, 1}, {32, 1, 1}, 1024, 3, false};
    cr_assert(simt_launch(kernel, &options, args, &report), "instruction %d: %s", args->which, report.text);
}
