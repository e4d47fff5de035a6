#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "gen/build.h"
#include "tests/gen/fixture.h"

static rssm_build_identity identify(const fixture_bench *b, const rssm_toolchain *toolchain)
{
    rssm_build_identity identity = {0};
    rssm_diag           diag = {0};

    cr_assert_eq(rssm_build_identify(&b->input, toolchain, &identity, &diag), RSSM_OK, "%s", diag.text);
    return identity;
}

enum { KEYS_MAX = 64 };
typedef struct key_list {
    rssm_hash   keys[KEYS_MAX];
    const char *names[KEYS_MAX];
    size_t      n;
} key_list;

static void add_key(key_list *list, const char *name, rssm_hash key)
{
    for (size_t i = 0; i < list->n; ++i) {
        cr_expect_not(rssm_hash_equal(&list->keys[i], &key), "%s and %s have one key", list->names[i], name);
    }
    list->keys[list->n] = key;
    list->names[list->n++] = name;
}

// A clang that is another compiler by its version text.
static char *fake_clang(const char *folder, const char *real, const char *version)
{
    rssm_str path = {0}, text = {0};

    rssm_str_printf(&path, "%s/clang-%s", folder, version);
    rssm_str_printf(&text,
                    "#!/bin/sh\nif [ \"$1\" = --version ]; then\n    echo clang version %s\n    echo Target: here\n"
                    "    exit 0\nfi\nexec '%s' \"$@\"\n",
                    version, real);
    cr_assert_eq(rssm_file_write(path.data, text.data, text.length, NULL), RSSM_OK);
    cr_assert_eq(chmod(path.data, 0700), 0);
    rssm_str_free(&text);
    return path.data;
}

static rssm_toolchain *open_program(const char *program)
{
    const rssm_toolchain_options options = {.clang = program};
    rssm_toolchain              *toolchain = NULL;
    rssm_diag                    diag = {0};

    cr_assert_eq(rssm_toolchain_open(RSSM_CPU, &options, &toolchain, &diag), RSSM_OK, "%s", diag.text);
    return toolchain;
}

Test(build_keys, every_input_is_in_the_key)
{
    static const char *const changes[][3] = {
        {"cpu/scale/scale.c", "args->factor *", "args->factor *  "},
        {"abi/base.h", "long long", "long  long"},
        {"numerics/types.h", "unsigned short bits", "unsigned short  bits"},
        {"cpu/scale/scale.json", "\"version\": 3", "\"version\": 4"},
        {"cpu/scale/scale.json", "\"entry\": \"scale_rows\"", "\"entry\": \"scale_row\""},
        {"cpu/scale/scale.json", "ROWS * head_dim", "ROWS * head_dim + 1"},
    };
    rssm_toolchain *toolchain = fixture_clang(), *other;
    key_list        list = {.n = 0};
    fixture_bench   b;
    char           *folder, *program;

    fixture_bench_open(&b, "scale_rows", NULL, NULL, NULL);
    add_key(&list, "base", identify(&b, toolchain).build_key);
    b.input.arch = FIXTURE_OTHER_ARCH;
    add_key(&list, "arch", identify(&b, toolchain).build_key);
    b.input.arch = FIXTURE_ARCH;
    b.config = rssm_space_at(b.config.manifest, 3);
    add_key(&list, "config", identify(&b, toolchain).build_key);
    b.config = rssm_config_default(b.config.manifest);

    static const struct {
        const char *name;
        size_t      offset;
        uint32_t    value;
    } fields[] = {{"head_dim", offsetof(rssm_problem, head_dim), 128},
                  {"state_size", offsetof(rssm_problem, state_size), 64},
                  {"group size", offsetof(rssm_problem, n_groups), 4},
                  {"window", offsetof(rssm_problem, window), 8},
                  {"ring length", offsetof(rssm_problem, ring_length), 32},
                  {"tokens", offsetof(rssm_problem, max_tokens), 4},
                  {"activations", offsetof(rssm_problem, activation_dtype), RSSM_F16},
                  {"checkpoint", offsetof(rssm_problem, checkpoint_dtype), RSSM_BF16}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; ++i) {
        *(uint32_t *)((char *)&b.problem + fields[i].offset) = fields[i].value;
        b.facts = fixture_facts(&b.problem);
        add_key(&list, fields[i].name, identify(&b, toolchain).build_key);
        b.problem = fixture_problem();
    }
    fixture_bench_close(&b);

    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; ++i) {
        fixture_bench_open(&b, "scale_rows", changes[i][0], changes[i][1], changes[i][2]);
        add_key(&list, changes[i][2], identify(&b, toolchain).build_key);
        fixture_bench_close(&b);
    }

    fixture_bench_open(&b, "scale_rows", NULL, NULL, NULL);
    cr_assert_eq(rssm_folder_temporary("rssm-test", &folder, NULL), RSSM_OK);
    for (int i = 98; i < 100; ++i) {
        char version[16];
        snprintf(version, sizeof version, "%d.0.0", i);
        program = fake_clang(folder, rssm_toolchain_path(toolchain), version);
        other = open_program(program);
        cr_expect(strstr(rssm_toolchain_text(other), version));
        add_key(&list, "compiler", identify(&b, other).build_key);
        rssm_toolchain_close(other);
        rssm_free(program);
    }
    rssm_folder_remove(folder);
    rssm_free(folder);
    fixture_bench_close(&b);
    rssm_toolchain_close(toolchain);
    cr_expect_eq(list.n, 1 + 2 + 8 + 6 + 2);
}

// A build is shared by problems that render the same header; the argument layout is its own hash.
Test(build_keys, what_is_not_in_the_keys)
{
    rssm_toolchain          *toolchain = fixture_clang();
    fixture_bench            b;
    rssm_build_identity      base, other, blind;
    static const rssm_hash   zero = {{0}};
    static const char *const no_layout[][3] = {{"cpu/scale/scale.c", "args->factor *", "args->factor *  "},
                                               {"numerics/types.h", "unsigned short bits", "unsigned short  bits"}};

    fixture_bench_open(&b, "scale_rows", NULL, NULL, NULL);
    base = identify(&b, toolchain);
    blind = identify(&b, NULL);
    cr_expect(rssm_hash_equal(&blind.build_key, &zero));
    cr_expect(rssm_hash_equal(&blind.source_hash, &base.source_hash));
    cr_expect(rssm_hash_equal(&blind.layout_hash, &base.layout_hash));
    b.problem.dt_dtype = RSSM_F32; // a code in the arguments
    b.problem.dt_softplus = 0;
    rssm_facts_set(&b.facts, "dev.cores", 99);
    other = identify(&b, toolchain);
    cr_expect(rssm_hash_equal(&other.build_key, &base.build_key));
    b.input.arch = FIXTURE_OTHER_ARCH;
    other = identify(&b, toolchain);
    cr_expect(rssm_hash_equal(&other.source_hash, &base.source_hash));
    fixture_bench_close(&b);

    for (size_t i = 0; i < 2; ++i) {
        fixture_bench_open(&b, "scale_rows", no_layout[i][0], no_layout[i][1], no_layout[i][2]);
        other = identify(&b, toolchain);
        cr_expect_not(rssm_hash_equal(&other.source_hash, &base.source_hash));
        cr_expect(rssm_hash_equal(&other.layout_hash, &base.layout_hash));
        fixture_bench_close(&b);
    }
    fixture_bench_open(&b, "scale_rows", "abi/base.h", "long long", "long  long");
    other = identify(&b, toolchain);
    cr_expect_not(rssm_hash_equal(&other.layout_hash, &base.layout_hash));
    fixture_bench_close(&b);
    rssm_toolchain_close(toolchain);
}

Test(build_keys, survives_every_failed_allocation)
{
    rssm_toolchain *toolchain = fixture_clang();
    fixture_bench   b;
    long            n_failures = 0;

    fixture_bench_open(&b, "scale_rows", NULL, NULL, NULL);
    for (long n = 1; n < 1000; ++n) {
        rssm_build_identity identity;
        rssm_status         st;
        rssm_alloc_fail_after(n);
        st = rssm_build_identify(&b.input, toolchain, &identity, NULL);
        if (!rssm_alloc_fail_after(0)) {
            cr_expect_eq(st, RSSM_OK);
            break;
        }
        n_failures++;
        cr_expect_eq(st, RSSM_E_NO_MEMORY, "allocation %ld: status %d", n, st);
    }
    cr_expect_gt(n_failures, 1);
    fixture_bench_close(&b);
    rssm_toolchain_close(toolchain);
}
