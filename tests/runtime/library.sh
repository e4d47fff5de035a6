#!/usr/bin/env bash
# What libreplayssm may weigh, need and export: library.sh LIBRARY VERSION_SCRIPT TEMPLATES_FOLDER HEADER_FOLDER
set -euo pipefail
library=$1 map=$2 templates=$3 include=$4
fail() { echo "library: $*" >&2; exit 1; }

text=$(size "$library" | awk 'NR == 2 {print $1}')
embedded=$(find "$templates" -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.json' \) -printf '%s\n' | awk '{n += $1} END {print n}')
[ $((text - embedded)) -lt 1048576 ] || fail "text is $((text - embedded)) bytes beside the templates, more than 1 MiB"

needed=$(ldd "$library")
! grep -qiE 'llvm|clang|cuda|nvrtc' <<<"$needed" || fail "needs a compiler or CUDA: $needed"

exported=$(nm -D --defined-only "$library" | awk '$2 == "T" {sub(/@.*/, "", $3); print $3}' | sort)
wanted=$(grep -oE 'rssm_[a-z_]+' "$map" | sort -u)
[ "$exported" = "$wanted" ] || fail "exports differ from the version script: $(diff <(echo "$exported") <(echo "$wanted") || true)"
declared=$(tr '\n' ' ' <"$include/replayssm.h" | grep -oE 'RSSM_API [^;]*;' | grep -oE 'rssm_[a-z_]+\(' | tr -d '(' | sort -u)
[ "$declared" = "$wanted" ] || fail "the header and the version script differ: $(diff <(echo "$declared") <(echo "$wanted") || true)"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '#include <replayssm.h>\nint main(void) { rssm_problem p = RSSM_PROBLEM_INIT; return p.struct_size == sizeof p ? 0 : 1; }\n' >"$folder/c.c"
printf '#include <replayssm.h>\nint main() { rssm_problem p = RSSM_PROBLEM_INIT; return p.struct_size == sizeof p ? 0 : 1; }\n' >"$folder/cc.cc"
cc -std=c11 -pedantic -Wall -Wextra -Werror -I"$include" "$folder/c.c" -o "$folder/c" && "$folder/c"
c++ -std=c++17 -pedantic -Wall -Wextra -Werror -I"$include" "$folder/cc.cc" -o "$folder/cc" && "$folder/cc"
echo "text $((text - embedded)) bytes beside $embedded of templates; $(wc -w <<<"$wanted") functions exported"
