// Parsing a template with libclang: the one file that includes its header. Files exist in memory only, under a root
// that is not a folder of any machine. See check.h.
#include <clang-c/Index.h>
#include <string.h>

#include "base/alloc.h"
#include "gen/check/parts.h"

#define ROOT "/replayssm/"
#define INCLUDE_ROOT "-I/replayssm/"
#define SHIM "/replayssm/cuda_shim.cuh"

// CUDA is parsed as sm_80, which every libclang since 14 knows; __CUDA_ARCH__ says sm_90, as the rendered header does.
static const char *const host_arguments[] = {"-x", "c", "-std=gnu11", INCLUDE_ROOT};
static const char *const cuda_arguments[] = {"-x",
                                             "cuda",
                                             "-std=c++17",
                                             INCLUDE_ROOT,
                                             "--cuda-device-only",
                                             "-nocudainc",
                                             "-nocudalib",
                                             "--cuda-gpu-arch=sm_80",
                                             "-Wno-unknown-cuda-version",
                                             "-Wno-builtin-macro-redefined",
                                             "-U__CUDA_ARCH__",
                                             "-D__CUDA_ARCH__=900",
                                             "-include",
                                             SHIM};

typedef struct parse {
    const rssm_manifest *m;
    const rssm_closure  *closure;
    rssm_parsed         *parsed;
    rssm_diag           *diag;
    CXTranslationUnit    unit;
} parse;

// ------------------------------------------------------------------------------------------------------------- strings

static bool string_equals(CXString string, const char *text)
{
    const char *c = clang_getCString(string);
    const bool  is_equal = c && strcmp(c, text) == 0;

    clang_disposeString(string);
    return is_equal;
}

// Copies a string into the result's arena; NULL without memory.
static const char *keep_string(parse *p, CXString string)
{
    const char *c = clang_getCString(string);
    const char *copy = rssm_arena_strndup(&p->parsed->arena, c ? c : "", c ? strlen(c) : 0);

    clang_disposeString(string);
    return copy ? copy : "?";
}

// --------------------------------------------------------------------------------------------------------- CFG_ names

static rssm_status add_cfg_name(parse *p, const char *name)
{
    rssm_parsed *parsed = p->parsed;

    for (size_t i = 0; i < parsed->n_cfg_names; ++i) {
        if (strcmp(parsed->cfg_names[i], name) == 0) return RSSM_OK;
    }
    if (parsed->n_cfg_names == parsed->capacity) {
        const size_t capacity = parsed->capacity ? 2 * parsed->capacity : 32;
        const char **names = rssm_realloc(parsed->cfg_names, capacity * sizeof *names);
        if (!names) return RSSM_FAIL(p->diag, RSSM_E_NO_MEMORY, "no memory for the names of %s", p->m->source);
        parsed->cfg_names = names;
        parsed->capacity = capacity;
    }
    parsed->cfg_names[parsed->n_cfg_names++] = name;
    return RSSM_OK;
}

static rssm_status scan_tokens(parse *p, CXToken *tokens, unsigned n_tokens)
{
    rssm_status st = RSSM_OK;

    for (unsigned i = 0; i < n_tokens; ++i) {
        const char *name;
        if (clang_getTokenKind(tokens[i]) != CXToken_Identifier) continue;
        name = keep_string(p, clang_getTokenSpelling(p->unit, tokens[i]));
        if (strncmp(name, "CFG_", 4) == 0) RSSM_TRY(add_cfg_name(p, name));
    }
done:
    return st;
}

// Names are taken from tokens, not from the tree: a use behind #if counts too.
static rssm_status collect_names(parse *p)
{
    rssm_status st = RSSM_OK;

    for (size_t i = 0; i < p->closure->n; ++i) {
        const rssm_template_file *file = p->closure->files[i];
        const char               *path = rssm_arena_printf(&p->parsed->arena, ROOT "%s", file->name);
        CXFile                    handle = path ? clang_getFile(p->unit, path) : NULL;
        CXToken                  *tokens = NULL;
        unsigned                  n_tokens = 0;
        if (!handle) continue; // included behind #if only
        clang_tokenize(p->unit,
                       clang_getRange(clang_getLocationForOffset(p->unit, handle, 0),
                                      clang_getLocationForOffset(p->unit, handle, (unsigned)file->n)),
                       &tokens, &n_tokens);
        st = scan_tokens(p, tokens, n_tokens);
        clang_disposeTokens(p->unit, tokens, n_tokens);
        if (st != RSSM_OK) break;
    }
    return st;
}

// -------------------------------------------------------------------------------------------------------------- errors

// A failed assertion is a disagreement; anything else is a template that does not parse.
static rssm_status check_errors(parse *p)
{
    for (unsigned i = 0; i < clang_getNumDiagnostics(p->unit); ++i) {
        CXDiagnostic                    diagnostic = clang_getDiagnostic(p->unit, i);
        const enum CXDiagnosticSeverity severity = clang_getDiagnosticSeverity(diagnostic);
        const char                     *text;
        bool                            is_assertion;
        if (severity < CXDiagnostic_Error) {
            clang_disposeDiagnostic(diagnostic);
            continue;
        }
        text = keep_string(p, clang_formatDiagnostic(diagnostic, CXDiagnostic_DisplaySourceLocation));
        clang_disposeDiagnostic(diagnostic);
        if (strncmp(text, ROOT, sizeof ROOT - 1) == 0) text += sizeof ROOT - 1;
        is_assertion = strstr(text, "static_assert") || strstr(text, "static assertion");
        return RSSM_FAIL(p->diag, is_assertion ? RSSM_E_MISMATCH : RSSM_E_COMPILE, "%s: %s", p->m->name, text);
    }
    return RSSM_OK;
}

// ----------------------------------------------------------------------------------------------------------- signature

typedef struct search {
    const char *entry;
    CXCursor    found; // null: none
} search;

static enum CXChildVisitResult find_entry(CXCursor cursor, CXCursor parent, CXClientData data)
{
    search *s = data;

    (void)parent;
    if (clang_getCursorKind(cursor) == CXCursor_FunctionDecl) {
        if (!clang_isCursorDefinition(cursor) || !string_equals(clang_getCursorSpelling(cursor), s->entry)) {
            return CXChildVisit_Continue;
        }
        s->found = cursor;
        return CXChildVisit_Break;
    }
    // extern "C" blocks: libclang up to 14 calls them unexposed.
    if (clang_getCursorKind(cursor) == CXCursor_LinkageSpec || clang_getCursorKind(cursor) == CXCursor_UnexposedDecl) {
        return CXChildVisit_Recurse;
    }
    return CXChildVisit_Continue;
}

static enum CXChildVisitResult find_global(CXCursor cursor, CXCursor parent, CXClientData data)
{
    (void)parent;
    if (clang_getCursorKind(cursor) == CXCursor_CUDAGlobalAttr) *(bool *)data = true;
    return CXChildVisit_Continue;
}

// Whether a type is called `name`, directly or behind typedefs.
static bool is_named(CXType type, const char *name)
{
    const CXType canonical = clang_getCanonicalType(type);

    return string_equals(clang_getCursorSpelling(clang_getTypeDeclaration(type)), name) ||
           string_equals(clang_getCursorSpelling(clang_getTypeDeclaration(canonical)), name);
}

static rssm_status fail_signature(parse *p, CXCursor entry, const char *expected)
{
    return RSSM_FAIL(p->diag, RSSM_E_MISMATCH, "%s: %s must be %s with ARGS = %s, as %s says; it is %s", p->m->source,
                     p->m->entry, expected, p->m->args, p->m->file,
                     keep_string(p, clang_getTypeSpelling(clang_getCursorType(entry))));
}

static rssm_status check_host_entry(parse *p, CXCursor entry)
{
    static const char expected[] = "void (const ARGS *, rssm_i64)";
    CXType            first, second;

    if (clang_Cursor_getNumArguments(entry) != 2) return fail_signature(p, entry, expected);
    first = clang_getCanonicalType(clang_getCursorType(clang_Cursor_getArgument(entry, 0)));
    second = clang_getCanonicalType(clang_getCursorType(clang_Cursor_getArgument(entry, 1)));
    if (first.kind != CXType_Pointer || !clang_isConstQualifiedType(clang_getPointeeType(first)) ||
        !is_named(clang_getPointeeType(first), p->m->args) || second.kind != CXType_LongLong) {
        return fail_signature(p, entry, expected);
    }
    return RSSM_OK;
}

static rssm_status check_cuda_entry(parse *p, CXCursor entry)
{
    static const char expected[] = "extern \"C\" __global__ void (ARGS)";
    bool              is_global = false;

    clang_visitChildren(entry, find_global, &is_global);
    if (!is_global || !string_equals(clang_Cursor_getMangling(entry), p->m->entry) ||
        clang_Cursor_getNumArguments(entry) != 1 ||
        !is_named(clang_getCursorType(clang_Cursor_getArgument(entry, 0)), p->m->args)) {
        return fail_signature(p, entry, expected);
    }
    return RSSM_OK;
}

static rssm_status check_entry(parse *p)
{
    search s = {p->m->entry, clang_getNullCursor()};

    clang_visitChildren(clang_getTranslationUnitCursor(p->unit), find_entry, &s);
    if (clang_Cursor_isNull(s.found)) {
        return RSSM_FAIL(p->diag, RSSM_E_MISMATCH, "%s does not define the entry %s that %s names", p->m->source,
                         p->m->entry, p->m->file);
    }
    if (clang_getCursorLinkage(s.found) != CXLinkage_External ||
        clang_getCanonicalType(clang_getCursorResultType(s.found)).kind != CXType_Void) {
        return fail_signature(p, s.found, "an external function that returns nothing,");
    }
    return p->m->backend == RSSM_CUDA ? check_cuda_entry(p, s.found) : check_host_entry(p, s.found);
}

// ---------------------------------------------------------------------------------------------------------------- run

// The closure, the rendered header and the shim, as libclang takes files that are not on disk.
static struct CXUnsavedFile *list_files(parse *p, const rssm_str *header, unsigned *out_n)
{
    const size_t          n = p->closure->n + 1 + rssm_n_shim_files;
    struct CXUnsavedFile *files = rssm_arena_alloc(&p->parsed->arena, n * sizeof *files);
    unsigned              k = 0;

    if (!files) return NULL;
    for (size_t i = 0; i < p->closure->n; ++i) {
        const rssm_template_file *file = p->closure->files[i];
        files[k++] = (struct CXUnsavedFile){rssm_arena_printf(&p->parsed->arena, ROOT "%s", file->name), file->bytes,
                                            (unsigned long)file->n};
    }
    files[k++] = (struct CXUnsavedFile){ROOT RSSM_CONFIG_HEADER, header->data, (unsigned long)header->length};
    for (size_t i = 0; i < rssm_n_shim_files; ++i) {
        const rssm_embedded_file *file = &rssm_shim_files[i];
        files[k++] = (struct CXUnsavedFile){rssm_arena_printf(&p->parsed->arena, ROOT "%s", file->name), file->bytes,
                                            (unsigned long)file->n};
    }
    for (unsigned i = 0; i < k; ++i) {
        if (!files[i].Filename) return NULL;
    }
    *out_n = k;
    return files;
}

rssm_status rssm_check_parse(const rssm_manifest *m, const rssm_closure *closure, const rssm_str *header,
                             rssm_parsed *parsed, rssm_diag *diag)
{
    parse              p = {.m = m, .closure = closure, .parsed = parsed, .diag = diag};
    const bool         is_cuda = m->backend == RSSM_CUDA;
    const char *const *arguments = is_cuda ? cuda_arguments : host_arguments;
    const size_t       n_arguments =
        is_cuda ? sizeof cuda_arguments / sizeof cuda_arguments[0] : sizeof host_arguments / sizeof host_arguments[0];
    CXIndex               index = NULL;
    unsigned              n_files = 0;
    struct CXUnsavedFile *files = list_files(&p, header, &n_files);
    rssm_status           st;

    if (!files) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory to parse %s", m->source);
    index = clang_createIndex(0, 0);
    if (clang_parseTranslationUnit2(index, files[0].Filename, arguments, (int)n_arguments, files, n_files,
                                    CXTranslationUnit_KeepGoing, &p.unit) != CXError_Success) {
        st = RSSM_FAIL(diag, RSSM_E_COMPILE, "libclang could not parse %s", m->source);
        goto done;
    }
    RSSM_TRY(collect_names(&p));
    RSSM_TRY(rssm_check_usage(m, parsed, diag)); // before errors: an unknown CFG_ name is one of them
    RSSM_TRY(check_errors(&p));
    st = check_entry(&p);
done:
    if (p.unit) clang_disposeTranslationUnit(p.unit);
    if (index) clang_disposeIndex(index);
    return st;
}
