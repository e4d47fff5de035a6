#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "tests/gen/fixture.h"

static void expect_closure(const rssm_template_set *set, const char *source, const char *const *names)
{
    rssm_closure closure = {0};
    rssm_diag    diag = {0};
    size_t       n = 0;

    while (names[n])
        ++n;
    cr_assert_eq(rssm_closure_scan(set, source, &closure, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_eq(closure.n, n, "%s includes %zu files, not %zu", source, closure.n, n);
    for (size_t i = 0; i < n && i < closure.n; ++i)
        cr_expect_str_eq(closure.files[i]->name, names[i]);
    rssm_closure_free(&closure);
}

Test(source, closure_is_source_then_names_in_order)
{
    static const char *const names[] = {"cpu/scale/scale.c", "abi/base.h", "abi/scale.h", "numerics/types.h", NULL};
    rssm_template_set       *set = fixture_open(NULL, NULL, NULL);

    expect_closure(set, "cpu/scale/scale.c", names);
    rssm_template_set_close(set);
}

Test(source, scanner)
{
    static const struct {
        const char *text;
        bool        has_include; // of abi/base.h
    } cases[] = {
        {"#include \"abi/base.h\"\n", true},
        {"  #  include\t\"abi/base.h\"", true},
        {"/* c */ #include /* c */ \"abi/base.h\"\n", true},
        {"/* a\n b */\n#include \"abi/base.h\" // why\n", true},
        {"#\\\ninclude \\\n \"abi/base.h\"\n", true},
        {"\r\n#include \"abi/base.h\"\r\n", true},
        {"#if 0\n#include \"abi/base.h\"\n#endif\n", true},
        {"int a; // \"\n#include \"abi/base.h\"\n", true},
        {"char c = '\"';\n#include \"abi/base.h\"\n", true},
        {"char *s = \"\\\"\";\n#include \"abi/base.h\"\n", true},
        {"// a /* b\n#include \"abi/base.h\"\n", true},
        {"char *s = \"/*\";\n#include \"abi/base.h\"\n", true},
        {"#define TEXT \"x\"\n#include \"abi/base.h\"\n", true},
        {"int q = 1'000;\n#include \"abi/base.h\"\n", true},
        {"// #include \"abi/base.h\"\n", false},
        {"// a \\\n#include \"abi/base.h\"\n", false},
        {"/*\n#include \"abi/base.h\"\n*/", false},
        {"/* unfinished\n#include \"abi/base.h\"\n", false},
        {"int a; #include \"abi/base.h\"\n", false},
        {"char *s = \"\\\n#include \\\"abi/base.h\\\"\\n\";\n", false},
        {"#include <abi/base.h>\n", false},
        {"#define include \"abi/base.h\"\n", false},
        {"#include \"abi/base.h\n", false},
        {"#pragma include \"abi/base.h\"\n", false},
    };
    static const char *const with[] = {"cpu/scale/extra.c", "abi/base.h", NULL}, *const without[] = {
                                                                                     "cpu/scale/extra.c", NULL};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        char              *folder = fixture_folder(NULL, NULL, NULL);
        rssm_template_set *set = NULL;
        fixture_write(folder, "cpu/scale/extra.c", cases[i].text);
        cr_assert_eq(rssm_template_set_open(folder, &set, NULL), RSSM_OK);
        expect_closure(set, "cpu/scale/extra.c", cases[i].has_include ? with : without);
        rssm_template_set_close(set);
        rssm_folder_remove(folder);
        rssm_free(folder);
    }
}

Test(source, missing_include_names_both)
{
    static const char *const bad[] = {"abi/bas.h", "../abi/base.h", "/etc/hostname", "base.h", "abi//base.h", ""};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        rssm_template_set *set = fixture_open("abi/scale.h", "abi/base.h", bad[i]);
        rssm_closure       closure = {0};
        rssm_diag          diag = {0};
        char               cited[64];
        snprintf(cited, sizeof cited, "abi/scale.h includes \"%s\"", bad[i]);
        cr_expect_eq(rssm_closure_scan(set, "cpu/scale/scale.c", &closure, &diag), RSSM_E_NOT_FOUND);
        cr_expect(strstr(diag.text, cited), "%s", diag.text);
        cr_expect_null(closure.files);
        rssm_template_set_close(set);
    }
}

Test(source, include_cycles_end)
{
    static const char *const names[] = {"cpu/scale/scale.c", "abi/base.h", "abi/scale.h", "numerics/types.h", NULL};
    rssm_template_set       *set = fixture_open("abi/base.h", "typedef int", "#include \"abi/scale.h\"\ntypedef int");

    expect_closure(set, "cpu/scale/scale.c", names);
    rssm_template_set_close(set);
}

Test(source, finds_manifests_and_files)
{
    rssm_template_set        *set = fixture_open(NULL, NULL, NULL);
    const rssm_manifest      *m;
    const rssm_template_file *file = rssm_template_set_file(set, "abi/base.h");
    rssm_hash                 hash;

    cr_expect_eq(rssm_template_set_count(set), 2);
    cr_expect_str_eq(rssm_template_set_at(set, 0)->name, "scale_elements");
    cr_expect_str_eq(rssm_template_set_at(set, 1)->name, "scale_rows");
    cr_expect_null(rssm_template_set_at(set, 2));
    cr_expect_null(rssm_template_set_find(set, "scale"));
    m = rssm_template_set_next(set, RSSM_OP_STEP, RSSM_MAMBA2, RSSM_CPU, NULL);
    cr_assert_not_null(m);
    cr_expect_str_eq(m->name, "scale_rows");
    cr_expect_null(rssm_template_set_next(set, RSSM_OP_STEP, RSSM_MAMBA2, RSSM_CPU, m));
    cr_expect_null(rssm_template_set_next(set, RSSM_OP_STEP, RSSM_GDN, RSSM_CPU, NULL));
    cr_expect_null(rssm_template_set_next(set, RSSM_OP_ADVANCE, RSSM_MAMBA2, RSSM_CPU, NULL));
    cr_assert_not_null(file);
    hash = rssm_hash_bytes(file->bytes, file->n);
    cr_expect(rssm_hash_equal(&hash, &file->hash));
    cr_expect_null(rssm_template_set_file(set, "base.h"));
    cr_expect_str_eq(rssm_template_set_origin(set), FIXTURE_FOLDER);
    rssm_template_set_close(set);
}

// A folder that is refused, and with what words.
static void expect_refused(const char *folder, rssm_status status, const char *message)
{
    rssm_template_set *set = NULL;
    rssm_diag          diag = {0};

    cr_expect_eq(rssm_template_set_open(folder, &set, &diag), status, "status %d: %s", diag.code, diag.text);
    cr_expect_null(set);
    cr_expect(strstr(diag.text, message), "no \"%s\" in: %s", message, diag.text);
}

static char *join(const char *folder, const char *name)
{
    rssm_str path = {0};

    rssm_str_printf(&path, "%s/%s", folder, name);
    return path.data;
}

static void drop_folder(char *folder)
{
    rssm_folder_remove(folder);
    rssm_free(folder);
}

Test(source, refuses_bad_folders)
{
    char *folder, *path, *bytes;

    expect_refused("/no/such/folder", RSSM_E_NOT_FOUND, "/no/such/folder");
    cr_assert_eq(rssm_folder_temporary("rssm-test", &folder, NULL), RSSM_OK);
    expect_refused(folder, RSSM_E_NOT_FOUND, "holds no template");
    drop_folder(folder);

    folder = fixture_folder("cpu/scale/scale.json", "scale.c\"", "missing.c\"");
    expect_refused(folder, RSSM_E_MANIFEST, "$.source: there is no file cpu/scale/missing.c");
    drop_folder(folder);

    folder = fixture_folder("cuda/scale/scale.json", "\"name\": \"scale_elements\"", "\"name\": \"scale_rows\"");
    expect_refused(folder, RSSM_E_MANIFEST, "$.name: scale_rows is the name of cpu/scale/scale.json too");
    drop_folder(folder);

    folder = fixture_folder(NULL, NULL, NULL);
    path = join(folder, "abi/big.h");
    cr_assert_eq(mkfifo(path, 0600), 0);
    expect_refused(folder, RSSM_E_IO, "not a regular file");
    unlink(path);
    bytes = rssm_calloc(1, (1 << 20) + 2);
    memset(bytes, ' ', (1 << 20) + 1);
    fixture_write(folder, "abi/big.h", bytes);
    expect_refused(folder, RSSM_E_IO, "abi/big.h");
    cr_assert_eq(rssm_file_write(path, "a\0b", 3, NULL), RSSM_OK);
    expect_refused(folder, RSSM_E_CORRUPT, "holds a NUL");
    unlink(path);
    fixture_write(folder, "a/b/c/d/e/f/g/h/i/j/deep.h", "");
    expect_refused(folder, RSSM_E_IO, "folders deep");
    drop_folder(folder);
    rssm_free(bytes);
    rssm_free(path);
}

Test(source, links_stay_inside)
{
    char              *folder = fixture_folder(NULL, NULL, NULL);
    char              *inside = join(folder, "abi/link.h"), *outside = join(folder, "abi/outside.h");
    rssm_template_set *set = NULL;
    rssm_diag          diag = {0};

    cr_assert_eq(symlink("base.h", inside), 0);
    cr_assert_eq(rssm_template_set_open(folder, &set, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_not_null(rssm_template_set_file(set, "abi/link.h"));
    rssm_template_set_close(set);
    cr_assert_eq(symlink("/etc/passwd", outside), 0);
    expect_refused(folder, RSSM_E_PERMISSION, "outside the template folder");
    unlink(outside);
    cr_assert_eq(symlink("../cpu", outside), 0);
    expect_refused(folder, RSSM_E_IO, "not a regular file");
    unlink(outside);
    cr_assert_eq(symlink("no-such-file", outside), 0);
    expect_refused(folder, RSSM_E_NOT_FOUND, "cannot be resolved");
    drop_folder(folder);
    rssm_free(inside);
    rssm_free(outside);
}

// Every file under templates/ is embedded with the very bytes of the source tree, and a folder replaces all of them.
Test(source, embedded_set_equals_the_tree)
{
    rssm_template_set *embedded = NULL, *folder = NULL;
    rssm_diag          diag = {0};

    cr_assert_eq(rssm_template_set_open(NULL, &embedded, &diag), RSSM_OK, "%s", diag.text);
    cr_assert_eq(rssm_template_set_open(RSSM_SOURCE_DIR "/templates", &folder, &diag), RSSM_OK, "%s", diag.text);
    cr_expect_eq(rssm_template_set_file_count(embedded), rssm_template_set_file_count(folder));
    cr_expect_eq(rssm_template_set_count(embedded), rssm_template_set_count(folder));
    for (size_t i = 0; i < rssm_template_set_file_count(folder); ++i) {
        const rssm_template_file *a = rssm_template_set_file_at(folder, i);
        const rssm_template_file *b = rssm_template_set_file(embedded, a->name);
        cr_assert_not_null(b, "%s is not embedded", a->name);
        cr_expect(rssm_hash_equal(&a->hash, &b->hash), "%s differs", a->name);
        cr_expect_eq(strlen(b->bytes), b->n, "%s is not terminated", a->name);
    }
    cr_expect_str_eq(rssm_template_set_origin(embedded), "inside the library");
    rssm_template_set_close(embedded);
    rssm_template_set_close(folder);
    folder = fixture_open(NULL, NULL, NULL);
    cr_expect_null(rssm_template_set_file(folder, "abi/cursor.h"));
    rssm_template_set_close(folder);
}

Test(source, survives_every_failed_allocation)
{
    for (long n = 1; n < 20000; ++n) {
        rssm_template_set *set = NULL;
        rssm_closure       closure = {0};
        rssm_status        st;
        bool               has_failed;

        rssm_alloc_fail_after(n);
        st = rssm_template_set_open(FIXTURE_FOLDER, &set, NULL);
        if (st == RSSM_OK) st = rssm_closure_scan(set, "cpu/scale/scale.c", &closure, NULL);
        has_failed = rssm_alloc_fail_after(0);
        rssm_closure_free(&closure);
        rssm_template_set_close(set);
        cr_expect_eq(st, has_failed ? RSSM_E_NO_MEMORY : RSSM_OK, "allocation %ld: status %d", n, st);
        if (!has_failed) return;
    }
    cr_assert_fail("the failures never ended");
}
