#!/usr/bin/env bash
# Everything that needs a GPU, in one command: the driver tests, every candidate of the CUDA templates against the
# float64 oracle, the example under graph replay, and compute-sanitizer over the kernels.
#
#     ./scripts/gpu_check.sh [--quick]
#
# RSSM_TUNE names the replayssm-tune to use; by default the release build, made here if it is missing.
# --quick verifies the database's answer instead of every candidate. Exit code 0: all passed.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
quick=0
[ "${1:-}" = "--quick" ] && quick=1
build=${RSSM_BUILD:-$root/build/release}
tune=${RSSM_TUNE:-$build/tuner/replayssm-tune}
if [ ! -x "$tune" ]; then
    ./scripts/setup.sh && ./scripts/build.sh release || exit 1
fi
database=$(mktemp -d)
trap 'rm -rf "$database"' EXIT
export RSSM_DATABASE="$database/tuned.db"

failed=0
passed=0
check() {   # check NAME COMMAND...
    local name=$1 log="$database/log"
    shift
    if "$@" >"$log" 2>&1; then
        passed=$((passed + 1))
        echo "ok      $name: $(tail -n 1 "$log")"
    else
        failed=$((failed + 1))
        echo "FAILED  $name (exit $?)"
        tail -n 30 "$log"
    fi
}

all=(--all)
[ "$quick" -eq 1 ] && all=()
for program in "$build/tests/runtime/cuda/test_cuda_gpu" "$build/examples/example_decode"; do
    [ -x "$program" ] && check "$(basename "$program")" "$program"
done
# One rank's slice of each shape, so that the oracle stays quick: P = 64, 80, 128; N = 64, 128, 256; group sizes 12 to 56.
for model in "nemotron-3-super --tp 8" "nemotron-3-nano-4b --tp 8" "falcon-h1-7b --tp 2" "zamba2-7b --tp 2" \
             "granite-4-h-small --tp 8"; do
    for types in "f32 bf16" "bf16 bf16" "f32 f16" "bf16 f32"; do
        set -- $types
        check "oracle $model checkpoint=$1 activations=$2" \
            "$tune" verify --device gpu --model $model --checkpoint "$1" --activation "$2" "${all[@]}"
    done
done
for tool in memcheck racecheck initcheck synccheck; do
    flags=()
    # Loading asks the driver for a kernel's second argument, which must not exist: an API error that is meant.
    [ "$tool" = memcheck ] && flags=(--report-api-errors no)
    for types in "f32 bf16" "bf16 f16"; do
        set -- $types
        check "compute-sanitizer $tool checkpoint=$1 activations=$2" \
            compute-sanitizer --tool "$tool" "${flags[@]}" --error-exitcode 9 \
            "$tune" verify --device gpu --model nemotron-3-super --tp 32 --batch 3 --checkpoint "$1" --activation "$2"
    done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
