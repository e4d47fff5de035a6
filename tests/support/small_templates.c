#include "tests/support/small_templates.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

// Cuts every "values": [a, b, c, …] to its default and one neighbour, those behind the first `n_pairs` to the default: the
// default is the number behind "default".
static void cut_values(char *text, int n_pairs)
{
    for (char *values = strstr(text, "\"values\""); values != NULL; values = strstr(values + 1, "\"values\"")) {
        char *open = strchr(values, '['), *close = strchr(values, ']');
        char *given = strstr(close, "\"default\"");
        long  list[64], kept[2];
        int   n = 0, n_kept = 0;
        const int most = n_pairs-- > 0 ? 2 : 1;
        cr_assert(open && close && given);
        const long usual = strtol(strchr(given, ':') + 1, NULL, 10);
        for (char *at = open + 1; at < close; at = strchr(at, ',') && strchr(at, ',') < close ? strchr(at, ',') + 1 : close)
            list[n++] = strtol(at, NULL, 10);
        for (int i = 0; i < n && n_kept < most; i++) {
            const int beside = (i + 1 < n && list[i + 1] == usual) || (i == 1 && list[0] == usual);
            if (list[i] == usual || (most == 2 && beside)) kept[n_kept++] = list[i];
        }
        char cut[64];
        const int length = n_kept == 2 ? snprintf(cut, sizeof cut, "[%ld,%ld", kept[0], kept[1])
                                       : snprintf(cut, sizeof cut, "[%ld", usual);
        cr_assert_leq(length, close - open);
        memset(open, ' ', (size_t)(close - open));
        memcpy(open, cut, (size_t)length);
    }
}

static void cut_manifest(const char *folder, const char *name, int n_pairs)
{
    char      path[600], *text;
    size_t    n;
    rssm_diag diag = {0};
    snprintf(path, sizeof path, "%s/cpu/mamba2_step/%s", folder, name);
    cr_assert_eq(rssm_file_read(path, 1 << 20, &text, &n, &diag), RSSM_OK, "%s", diag.text);
    cut_values(text, n_pairs);
    cr_assert_eq(rssm_file_write(path, text, n, &diag), RSSM_OK, "%s", diag.text);
    rssm_free(text);
}

void test_small_templates(const char *folder)
{
    char command[1024];
    snprintf(command, sizeof command, "mkdir -p '%s' && cd '" RSSM_SOURCE_DIR "/templates' && cp -r abi numerics prims cpu '%s'",
             folder, folder);
    cr_assert_eq(system(command), 0);
    cut_manifest(folder, "rows.json", 64);
    cut_manifest(folder, "tokens.json", 1);
}
