#!/usr/bin/env bash
# Checks the rules that keep the layers apart. Usage: layers.sh SOURCE_ROOT; prints violations, exits with 1 on any.
#
#   (a) includes follow base <- {gen, db} <- runtime <- tuner; gen and db never meet; gen/check is for the tuner and
#       tests; templates include only templates; tests, bench and examples may include anything;
#       include/replayssm.h and templates/abi/ are open to all; other quoted includes are root-relative
#   (b) each third-party header is included by its one .c file and by no header; CUDA's and NVRTC's by none
#   (c) getenv only in base/file.c, runtime/context.c and tuner/main.c; no printing and no exit in library code
#   (d) no `#if 0`, and no TODO without its issue: TODO(#number)
#
# The rules are in layers.awk. Files under a folder named `fixtures` are data and are not checked.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "${1:?usage: layers.sh SOURCE_ROOT}"

folders=()
for folder in include base gen db runtime tuner templates tests bench examples; do
    if [[ -d $folder ]]; then folders+=("$folder"); fi
done
if [[ ${#folders[@]} -eq 0 ]]; then
    echo "no source folders in $PWD" >&2
    exit 2
fi

mapfile -d '' files < <(find "${folders[@]}" -name fixtures -prune -o -type f \
    \( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) -print0 | LC_ALL=C sort -z)
if [[ ${#files[@]} -eq 0 ]]; then
    echo "no source files in $PWD" >&2
    exit 2
fi
LC_ALL=C exec awk -f "$here/layers.awk" "${files[@]}"
