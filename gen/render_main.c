// rssm-render MANIFEST T_ACT T_STATE OUTPUT: the generic rssm_config.h of a built-in CPU kernel, at build time.
// T_ACT and T_STATE are number formats ("f32", "bf16", "f16"). Exit code: the status.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/file.h"
#include "gen/render.h"

static rssm_status render_file(char **argv, rssm_diag *diag)
{
    rssm_status          st;
    rssm_arena           arena = {0};
    rssm_str             text = {0};
    char                *bytes = NULL;
    size_t               n;
    const rssm_manifest *manifest;
    rssm_config          config;
    rssm_render_input    input = {.config = &config};

    if (!rssm_dtype_parse(argv[2], &input.activation_dtype) || !rssm_dtype_parse(argv[3], &input.state_dtype)) {
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT, "unknown number format %s or %s", argv[2], argv[3]);
    }
    RSSM_TRY(rssm_file_read(argv[1], 1024 * 1024, &bytes, &n, diag));
    RSSM_TRY(rssm_manifest_load(bytes, n, argv[1], &arena, &manifest, diag));
    config = rssm_config_default(manifest);
    RSSM_TRY(rssm_render_config(&input, &text, diag));
    st = rssm_file_write(argv[4], text.data, text.length, diag);
done:
    rssm_free(bytes);
    rssm_str_free(&text);
    rssm_arena_free(&arena);
    return st;
}

int main(int argc, char **argv)
{
    rssm_diag   diag = {0};
    rssm_status st;

    if (argc != 5) {
        fprintf(stderr, "usage: rssm-render MANIFEST T_ACT T_STATE OUTPUT\n");
        return RSSM_E_INVALID_ARGUMENT;
    }
    st = render_file(argv, &diag);
    if (st != RSSM_OK) fprintf(stderr, "rssm-render: %s\n", diag.text);
    return (int)st;
}
