// See host_object.h. Every offset comes from the file and is checked before use; headers are copied out, as nothing is
// promised about their alignment.
#include "gen/host_object.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

static const char *const allowed_symbols[] = {"memcpy", "memmove", "memset", "memcmp"};

typedef struct image {
    const uint8_t *bytes;
    size_t         n;
    rssm_diag     *diag;
} image;

static rssm_status fail_damaged(const image *im, const char *what)
{
    return RSSM_FAIL(im->diag, RSSM_E_CORRUPT, "the host object is damaged: %s", what);
}

static bool copy_out(const image *im, uint64_t offset, void *to, size_t n)
{
    if (offset > im->n || n > im->n - offset) return false;
    memcpy(to, im->bytes + offset, n);
    return true;
}

static bool is_inside(const image *im, const Elf64_Shdr *section)
{
    return section->sh_offset <= im->n && section->sh_size <= im->n - section->sh_offset;
}

static rssm_status read_header(const image *im, Elf64_Ehdr *out_header)
{
    if (!copy_out(im, 0, out_header, sizeof *out_header) || memcmp(out_header->e_ident, ELFMAG, SELFMAG) != 0) {
        return fail_damaged(im, "it is not an ELF file");
    }
    if (out_header->e_ident[EI_CLASS] != ELFCLASS64 || out_header->e_ident[EI_DATA] != ELFDATA2LSB ||
        out_header->e_type != ET_DYN || out_header->e_shentsize != sizeof(Elf64_Shdr)) {
        return fail_damaged(im, "it is not a 64-bit shared object");
    }
    if (out_header->e_shoff > im->n || out_header->e_shnum * sizeof(Elf64_Shdr) > im->n - out_header->e_shoff) {
        return fail_damaged(im, "it is cut off");
    }
    return RSSM_OK;
}

// The dynamic symbols and their names.
static rssm_status find_symbols(const image *im, Elf64_Shdr *out_symbols, Elf64_Shdr *out_names)
{
    rssm_status st;
    Elf64_Ehdr  header;
    Elf64_Shdr  section;

    RSSM_TRY(read_header(im, &header));
    for (uint64_t i = 0; i < header.e_shnum; ++i) {
        if (!copy_out(im, header.e_shoff + i * sizeof section, &section, sizeof section)) break;
        if (section.sh_type != SHT_DYNSYM) continue;
        *out_symbols = section;
        if (section.sh_link >= header.e_shnum ||
            !copy_out(im, header.e_shoff + section.sh_link * sizeof section, out_names, sizeof *out_names)) {
            break;
        }
        if (!is_inside(im, out_symbols) || !is_inside(im, out_names) || out_names->sh_size == 0 ||
            im->bytes[out_names->sh_offset + out_names->sh_size - 1] != '\0') {
            break;
        }
        return RSSM_OK;
    }
    st = fail_damaged(im, "its symbols cannot be read");
done:
    return st;
}

static bool is_allowed(const char *name)
{
    for (size_t i = 0; i < sizeof allowed_symbols / sizeof allowed_symbols[0]; ++i) {
        if (strcmp(allowed_symbols[i], name) == 0) return true;
    }
    return false;
}

rssm_status rssm_host_object_check(const uint8_t *bytes, size_t n, const char *entry, rssm_diag *diag)
{
    const image im = {bytes, n, diag};
    rssm_status st;
    Elf64_Shdr  symbols, names;
    Elf64_Sym   symbol;
    bool        has_entry = false;

    RSSM_TRY(find_symbols(&im, &symbols, &names));
    for (uint64_t i = 1; i < symbols.sh_size / sizeof symbol; ++i) { // symbol 0 is reserved
        const char *name;
        if (!copy_out(&im, symbols.sh_offset + i * sizeof symbol, &symbol, sizeof symbol) ||
            symbol.st_name >= names.sh_size) {
            return fail_damaged(&im, "its symbols cannot be read");
        }
        name = (const char *)bytes + names.sh_offset + symbol.st_name;
        if (symbol.st_shndx == SHN_UNDEF && !is_allowed(name)) {
            return RSSM_FAIL(diag, RSSM_E_MISMATCH,
                             "the kernel calls %s, but host objects link no library; write it in prims/ or numerics/",
                             name);
        }
        has_entry = has_entry || (symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
                                  strcmp(name, entry) == 0);
    }
    if (!has_entry) st = RSSM_FAIL(diag, RSSM_E_MISMATCH, "the kernel does not define its entry %s", entry);
done:
    return st;
}
