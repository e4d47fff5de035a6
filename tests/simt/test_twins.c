// Every CUDA header of templates/prims has a twin here that declares the same functions with the same parameters: a
// template means the same to both, and no real instruction slips in.
#include <criterion/criterion.h>
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_file(const char *path)
{
    FILE  *file = fopen(path, "r");
    char  *text = calloc(1, 1 << 20);
    size_t n;
    if (!file || !text) {
        free(text);
        if (file) fclose(file);
        return NULL;
    }
    n = fread(text, 1, (1 << 20) - 1, file);
    fclose(file);
    text[n] = '\0';
    return text;
}

// Copies with runs of white space as one blank and none beside brackets, so that line breaks do not matter.
static char *squeezed(const char *text)
{
    char  *out = calloc(1, strlen(text) + 1);
    size_t n = 0;
    cr_assert(out);
    for (; *text; text++) {
        const bool blank = isspace((unsigned char)*text) != 0;
        if (blank && (n == 0 || strchr(" ({", out[n - 1]))) continue;
        if (!blank && *text == ')' && n > 0 && out[n - 1] == ' ') n--;
        out[n++] = blank ? ' ' : *text;
    }
    out[n] = '\0';
    return out;
}

// The next declaration from "GPU_FN" to before ")", of a function whose name begins with "gpu_"; false at the end.
// GPU_HERE, which the twins add, is left out.
static bool next_function(const char **cursor, char *out_text, size_t n)
{
    const char *begin = *cursor;
    while ((begin = strstr(begin, "GPU_FN ")) != NULL) {
        const char *open = strchr(begin, '('), *close = open ? strchr(open, ')') : NULL, *name = open;
        const char *next = strstr(begin + 1, "GPU_FN ");
        *cursor = begin + 1;
        if (!close) return false;
        if (next && next < open) { // the macro's own definition
            begin = next;
            continue;
        }
        while (name > begin && (isalnum((unsigned char)name[-1]) || name[-1] == '_'))
            name--;
        begin++;
        if (strncmp(name, "gpu_", 4) != 0) continue;
        snprintf(out_text, n, "%.*s", (int)(close - begin + 1), begin - 1);
        char *here = strstr(out_text, "GPU_HERE");
        if (here) {
            if (here > out_text + 1 && here[-2] == ',') here -= 2;
            *here = '\0';
        }
        return true;
    }
    return false;
}

static bool has_function(const char *text, const char *wanted)
{
    char declaration[512];
    while (next_function(&text, declaration, sizeof declaration))
        if (strcmp(declaration, wanted) == 0) return true;
    return false;
}

static char *read_squeezed(const char *folder, const char *name)
{
    char  path[512];
    char *text, *out;
    snprintf(path, sizeof path, "%s/%s/%s", RSSM_SOURCE_DIR, folder, name);
    text = read_file(path);
    out = text ? squeezed(text) : NULL;
    free(text);
    return out;
}

static int compare(const char *name)
{
    char       *real = read_squeezed("templates/prims", name), *twin = read_squeezed("tests/simt/prims", name);
    char        function[512];
    const char *cursor = real;
    int         n = 0;

    cr_assert(real);
    cr_expect(twin, "templates/prims/%s has no twin in tests/simt/prims", name);
    for (; twin && next_function(&cursor, function, sizeof function); n++)
        cr_expect(has_function(twin, function), "the twin of prims/%s has no \"%s)\"", name, function);
    cursor = twin;
    while (twin && next_function(&cursor, function, sizeof function))
        cr_expect(has_function(real, function), "only the twin of prims/%s has \"%s)\"", name, function);
    free(real);
    free(twin);
    return n;
}

Test(twins, have_every_function_of_the_real_headers)
{
    DIR           *folder = opendir(RSSM_SOURCE_DIR "/templates/prims");
    struct dirent *entry;
    int            n_files = 0, n_functions = 0;
    cr_assert(folder);
    while ((entry = readdir(folder)) != NULL) {
        const size_t n = strlen(entry->d_name);
        if (n < 4 || strcmp(entry->d_name + n - 4, ".cuh") != 0) continue;
        n_functions += compare(entry->d_name);
        n_files++;
    }
    closedir(folder);
    cr_expect(n_files >= 7 && n_functions >= 30, "only %d functions in %d files were found", n_functions, n_files);
}
