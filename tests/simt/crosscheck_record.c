// The emulator's half of the comparison with a GPU. See crosscheck.h.
#include <stdio.h>
#include <stdlib.h>

#include "tests/simt/crosscheck.h"
#include "tests/simt/suite.h"

rssm_status simt_record_crosscheck(const char *path, rssm_diag *diag)
{
    const simt_compile_options options = {.clang = simt_clang(),
                                          .template_root = simt_template_root(),
                                          .source = RSSM_SOURCE_DIR "/tests/simt/kernels/crosscheck.cu",
                                          .entry = "crosscheck",
                                          .args = "crosscheck_args"};
    const simt_launch_options  launch = {{1, 1, 1}, {32, 1, 1}, 512, 1, false};
    crosscheck_file           *file = calloc(1, sizeof *file);
    FILE                      *stream = NULL;
    simt_kernel               *kernel = NULL;
    void                      *in, *out;
    simt_report                report;
    rssm_status                st;

    if (!file) abort();
    file->magic = CROSSCHECK_MAGIC, file->n_checks = N_CROSSCHECKS;
    crosscheck_fill(file->in);
    simt_reset();
    RSSM_TRY(simt_kernel_load(&options, &kernel, diag));
    RSSM_TRY(simt_alloc(sizeof file->in, &in, diag));
    RSSM_TRY(simt_alloc(sizeof file->in, &out, diag));
    simt_upload(in, file->in, sizeof file->in, false);
    for (int which = 0; which < N_CROSSCHECKS; which++) {
        const crosscheck_args args = {in, out, which};
        if (!simt_launch(kernel, &launch, &args, &report)) {
            st = RSSM_FAIL(diag, RSSM_E_DEVICE, "%s", report.text);
            goto done;
        }
        simt_download(file->out[which], out, sizeof file->in);
    }
    stream = fopen(path, "wb");
    if (!stream || fwrite(file, sizeof *file, 1, stream) != 1 || fclose(stream) != 0)
        st = RSSM_FAIL(diag, RSSM_E_IO, "%s cannot be written", path);
done:
    simt_kernel_unload(kernel);
    free(file);
    return st;
}
