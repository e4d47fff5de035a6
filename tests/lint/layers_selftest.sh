#!/usr/bin/env bash
# Shows that layers.sh can fail: one file per case in an otherwise clean tree. Usage: layers_selftest.sh
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
n_cases=0
n_wrong=0

# check WANTED FILE TEXT: WANTED is "ok", or words of the complaint that must name FILE.
check() {
    local wanted=$1 file=$2 text=$3 output status=0
    n_cases=$((n_cases + 1))
    rm -rf "${tree:?}"/*
    mkdir -p "$tree/base" "$tree/$(dirname "$file")"
    printf '#include <stddef.h>\n' >"$tree/base/clean.c"
    printf '%b\n' "$text" >"$tree/$file"
    output=$(bash "$here/layers.sh" "$tree") || status=$?
    if [[ $wanted == ok ]]; then
        [[ $status -eq 0 && -z $output ]] && return
    else
        [[ $status -eq 1 && $output == *"$file:"*"$wanted"* ]] && return
    fi
    n_wrong=$((n_wrong + 1))
    echo "WRONG: $file: $text: wanted '$wanted', got status $status: $output"
}

# (a) layers
check ok base/a.c '#include "base/b.h"\n#include "include/replayssm.h"\n#include "abi/cursor.h"'
check ok gen/a.c '#include "base/b.h"\n#include "templates/abi/types.h"'
check ok db/a.c '#include "base/b.h"'
check ok runtime/a.c '#include "base/b.h"\n#include "gen/b.h"\n#include "db/b.h"'
check ok tuner/a.c '#include "runtime/b.h"\n#include "gen/check/b.h"'
check ok gen/check/a.c '#include "gen/b.h"'
check ok tests/gen/a.c '#include "db/b.h"\n#include "numerics/convert.h"\n#include "helper.h"'
check ok bench/a.c '#include "tuner/b.h"'
check ok examples/a.c '#include <replayssm.h>'
check ok templates/cpu/a.c '#include "rssm_config.h"\n#include "abi/cursor.h"\n#include "prims/x.h"'
check ok templates/cuda/step/a.cu '#include "cuda/step/row.cuh"'
check 'must not include "cuda/step/row.cuh"' runtime/a.c '#include "cuda/step/row.cuh"'
check 'must not include "gen/b.h"' base/a.c '#include "gen/b.h"'
check 'must not include "db/b.h"' gen/a.c '#include "db/b.h"'
check 'must not include "gen/b.h"' db/a.c '#include "gen/b.h"'
check 'must not include "runtime/b.h"' gen/a.c '  #  include  "runtime/b.h"'
check 'must not include "runtime/b.h"' db/a.h '#include <runtime/b.h>'
check 'must not include "tuner/b.h"' runtime/a.c '#include "tuner/b.h"'
check 'must not include "tests/b.h"' tuner/a.c '#include "tests/b.h"'
check 'must not include "gen/check/b.h"' gen/a.c '#include "gen/check/b.h"'
check 'must not include "gen/check/b.h"' runtime/a.c '#include "gen/check/b.h"'
check 'must not include "numerics/convert.h"' runtime/a.c '#include "numerics/convert.h"'
check 'must not include "templates/prims/x.h"' tuner/oracle/a.c '#include "templates/prims/x.h"'
check 'must not include "base/b.h"' include/a.h '#include "base/b.h"'
check 'templates include only templates' templates/cpu/a.c '#include "base/b.h"'
check 'templates include only templates' templates/cuda/a.cu '#include "helper.cuh"'
check 'templates include only templates' templates/prims/a.cuh '#include <math.h>'
check 'not root-relative' base/a.c '#include "b.h"'
check 'not root-relative' base/a.c '#include "../gen/b.h"'
check 'must not include "gen/b.h"' base/a.c '/* a\n comment */ #include "gen/b.h"'
check ok base/a.c '// #include "gen/b.h"\n/*\n#include "gen/b.h"\n*/\nconst char *s = "/*";\n'
check 'must not include "gen/b.h"' base/a.c 'const char *s = "/*";\n#include "gen/b.h"'

# (b) third-party headers
check ok base/json.c '#include <cjson/cJSON.h>'
check ok base/hash.c '#include <sodium.h>'
check ok db/sqlite.c '#include <sqlite3.h>'
check ok db/compress.c '#include <zstd.h>'
check ok gen/check/a.c '#include <clang-c/Index.h>'
check ok tests/db/a.c '#include <sqlite3.h>\n#include <cuda.h>\n#include <nvrtc.h>'
check 'outside its one file' gen/a.c '#include <cjson/cJSON.h>'
check 'outside its one file' base/json.h '#include <cJSON.h>'
check 'outside its one file' db/a.c '#include <sodium.h>'
check 'outside its one file' db/a.c '#include <sodium/crypto_hash.h>'
check 'outside its one file' db/a.h '#include <sqlite3.h>'
check 'outside its one file' runtime/a.c '#include <sqlite3.h>'
check 'outside its one file' db/a.c '#include <zstd.h>'
check 'outside its one file' gen/a.c '#include <clang-c/Index.h>'
check 'load it at run time' runtime/a.c '#include <cuda.h>'
check 'load it at run time' runtime/a.h '#include <cuda_runtime.h>'
check 'load it at run time' gen/nvrtc.c '#include "nvrtc.h"'

# (c) environment, printing, exit
check ok base/file.c 'x = getenv("PATH");'
check ok runtime/context.c 'x = getenv("PATH");'
check ok tuner/main.c 'x = getenv("PATH"); printf("x"); exit(1);'
check ok tuner/report.c 'printf("x");'
check ok gen/render_main.c 'fprintf(stderr, "x");'
check ok tests/a.c 'getenv("X"); printf("x"); exit(1);'
check ok bench/a.c 'printf("x");'
check ok base/a.c 'snprintf(t, 1, "printf(1)"); rssm_str_printf(s, "exit(1)"); // printf("x")'
check ok base/a.h 'void f(const char *t, ...) __attribute__((format(printf, 1, 2)));'
check 'getenv outside' base/a.c 'x = getenv("PATH");'
check 'getenv outside' tuner/a.c 'x = secure_getenv ("PATH");'
check 'prints or exits' base/a.c 'printf("x");'
check 'prints or exits' db/a.c '    fprintf (stderr, "x");'
check 'prints or exits' runtime/a.c 'if (!x) exit(1);'
check 'prints or exits' gen/a.h 'perror("x");'
check 'prints or exits' templates/cuda/a.cu 'printf("x");'
check 'prints or exits' base/a.c "c = '\"'; puts(\"x\");"

# (d) dead code and TODO
check '#if 0' base/a.c '#if 0\nint x;\n#endif'
check '#if 0' tests/a.c ' # if 0 // later'
check ok base/a.c '#if 01\n#endif\n#if RSSM_X\n#endif'
check 'TODO without' base/a.c '// TODO: later'
check 'TODO without' tests/a.c '/* TODO(me) later */'
check 'TODO without' templates/a.cu '// TODO(#) later'
check ok base/a.c '// TODO(#12): later; TODOS and AUTODOC are words'

# what is not looked at, and an empty tree
check ok tests/gen/fixtures/bad.c '#if 0\n// TODO\n#endif'
rm -rf "${tree:?}"/*
if bash "$here/layers.sh" "$tree" 2>/dev/null; then
    n_wrong=$((n_wrong + 1))
    echo "WRONG: an empty tree passes"
fi
# the second user of a library
mkdir -p "$tree/db"
printf '#include <sqlite3.h>\n' | tee "$tree/db/a.c" >"$tree/db/b.c"
n_cases=$((n_cases + 2))
output=$(bash "$here/layers.sh" "$tree") || true
if [[ $output != "db/b.c:1:"*"already included by db/a.c"* ]]; then
    n_wrong=$((n_wrong + 1))
    echo "WRONG: two files include sqlite3.h"
fi

echo "$n_cases cases, $n_wrong wrong"
[[ $n_wrong -eq 0 ]]
