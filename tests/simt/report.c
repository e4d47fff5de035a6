// Places in templates, and the report of a defect.
//
// A site is a small number for a place: a program counter, resolved by the symboliser when a report is written, or a
// file and line that a twin captured. Of inlined calls the innermost outside prims/ counts.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "tests/simt/machine.h"

enum { SITES = 1 << 16 };

typedef struct site {
    const void *pc; // NULL: file and line
    const char *file;
    int         line;
    char       *resolved; // file and line of a pc, once they were asked for
    int         resolved_line;
} site;

static struct {
    site     items[SITES]; // open addressing; a site's number is its index + 1
    uint32_t n;
} sites;

const char *simt_defect_text(simt_defect defect)
{
    static const char *const texts[] = {
#define SIMT_DEFECT_WORDS(enumerator, words) words,
        SIMT_DEFECT_LIST(SIMT_DEFECT_WORDS)
#undef SIMT_DEFECT_WORDS
    };
    return defect < SIMT_N_DEFECTS ? texts[defect] : "unknown defect";
}

static uint32_t intern(const void *pc, const char *file, int line)
{
    const uint64_t key = (uint64_t)(uintptr_t)pc ^ ((uint64_t)(uintptr_t)file << 7) ^ (uint64_t)line;
    uint32_t       i = (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 48);

    for (;; i = (i + 1) % SITES) {
        site *s = &sites.items[i];
        if (s->pc == pc && s->file == file && s->line == line) return i + 1;
        if (s->pc || s->file) continue;
        if (++sites.n > SITES / 2) abort();
        *s = (site){pc, file, line, NULL, 0};
        return i + 1;
    }
}

uint32_t simt_site_of_pc(const void *return_address)
{
    return intern((const char *)return_address - 1, NULL, 0);
}

uint32_t simt_site_of_place(simt_place at)
{
    return intern(NULL, at.file, at.line);
}

// "templates/cuda/x.cu" as the template set names it.
static const char *shortened(const char *file)
{
    const char  *root = simt.kernel ? simt_kernel_root(simt.kernel) : "";
    const size_t n = strlen(root);
    if (n > 0 && strncmp(file, root, n) == 0) return file + n + (file[n] == '/');
    const char *tests = strstr(file, "tests/simt/");
    return tests ? tests : file;
}

// Reads pairs of lines, function and "file:line", innermost first.
static void choose_frame(char *output, site *s)
{
    char *save = NULL;
    for (char *line = strtok_r(output, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *colon = strrchr(line, ':');
        if (line[0] != '/' || !colon) continue;
        *colon = '\0';
        free(s->resolved);
        s->resolved = strdup(line);
        s->resolved_line = atoi(colon + 1);
        if (!strstr(line, "/prims/")) return;
    }
}

static void resolve(site *s)
{
    static const char *const tools[] = {"/usr/bin/addr2line", "/usr/local/bin/addr2line", "/usr/bin/llvm-addr2line"};
    Dl_info                  info;
    rssm_str                 output = {0};
    char                     offset[32];
    int                      code = 1;

    if (!dladdr(s->pc, &info)) return;
    snprintf(offset, sizeof offset, "0x%zx", (size_t)((const char *)s->pc - (const char *)info.dli_fbase));
    for (size_t i = 0; i < sizeof tools / sizeof tools[0] && code != 0; i++) {
        const char *argv[] = {tools[i], "-i", "-e", info.dli_fname, offset, NULL};
        if (access(tools[i], X_OK) != 0) continue;
        rssm_str_clear(&output);
        if (rssm_process_run(argv, 20000, &output, &code, NULL) != RSSM_OK) code = 1;
    }
    if (code == 0 && output.data) choose_frame(output.data, s);
    rssm_str_free(&output);
    if (!s->resolved) s->resolved = strdup("(no line information)");
}

void simt_sites_forget(void)
{
    for (uint32_t i = 0; i < SITES; i++) {
        free(sites.items[i].resolved);
        sites.items[i].resolved = NULL;
    }
}

void simt_site_resolve(uint32_t number, char *out_file, size_t n, int *out_line)
{
    site *s = &sites.items[number - 1];
    if (s->pc && !s->resolved) resolve(s);
    snprintf(out_file, n, "%s", shortened(s->pc ? s->resolved : s->file));
    *out_line = s->pc ? s->resolved_line : s->line;
}

bool simt_same_line(uint32_t a, uint32_t b)
{
    const site *x = &sites.items[a - 1], *y = &sites.items[b - 1];
    return a == b || (x->line == y->line && x->file && y->file && strcmp(x->file, y->file) == 0);
}

simt_text simt_site_text(uint32_t number)
{
    simt_text text;
    char      file[200];
    int       line;
    if (number == 0) return (simt_text){"(nowhere)"};
    simt_site_resolve(number, file, sizeof file, &line);
    snprintf(text.c, sizeof text.c, "%s:%d", file, line);
    return text;
}

simt_text simt_owner_text(uint32_t owner)
{
    const uint32_t thread = owner & ((1u << OWNER_THREAD_BITS) - 1), block = owner >> OWNER_THREAD_BITS;
    simt_text      text;
    if (thread == ENGINE) return (simt_text){"an asynchronous copy"};
    int n = snprintf(text.c, sizeof text.c, "thread %u", thread);
    if (block == simt.block_number) {
        snprintf(text.c + n, sizeof text.c - (size_t)n, " of block (%u, %u, %u)", simt.block[0], simt.block[1],
                 simt.block[2]);
    } else {
        snprintf(text.c + n, sizeof text.c - (size_t)n, " of another block");
    }
    return text;
}

void simt_fail(simt_defect defect, uint32_t number, const char *format, ...)
{
    simt_report *r = simt.report;
    va_list      args;

    if (!simt.failed) {
        simt.failed = true;
        r->defect = defect;
        simt_site_resolve(number, r->file, sizeof r->file, &r->line);
        int n = snprintf(r->text, sizeof r->text, "%s:%d: %s: ", r->file, r->line, simt_defect_text(defect));
        va_start(args, format);
        vsnprintf(r->text + n, sizeof r->text - (size_t)n, format, args);
        va_end(args);
    }
    if (simt.self) simt_fiber_abandon();
}
