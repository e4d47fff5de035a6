#!/usr/bin/env bash
# Everything that needs a GPU, in one command: the driver tests, every candidate of the CUDA templates against the
# float64 oracle at one and several tokens per step, the lifecycle fuzz, the example under graph replay, and
# compute-sanitizer over all of it.
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

events=20000
[ "$quick" -eq 1 ] && events=4000
all=(--all)
[ "$quick" -eq 1 ] && all=()
for program in "$build/tests/runtime/cuda/test_cuda_gpu" "$build/examples/example_decode"; do
    check "$(basename "$program")" "$program"
done
lifecycle=$build/tests/lifecycle/lifecycle
check "lifecycle, $events events" "$lifecycle" --device gpu --events "$events" --seed 1
# One rank's slice of each shape, so that the oracle stays quick: P = 64, 80, 128; N = 64, 128, 256; group sizes 12 to 56.
for model in "nemotron-3-super --tp 8" "nemotron-3-nano-4b --tp 8" "falcon-h1-7b --tp 2" "zamba2-7b --tp 2" \
             "granite-4-h-small --tp 8"; do
    for types in "f32 bf16" "bf16 bf16" "f32 f16" "bf16 f32"; do
        set -- $types
        check "oracle $model checkpoint=$1 activations=$2" \
            "$tune" verify --device gpu --model $model --checkpoint "$1" --activation "$2" "${all[@]}"
    done
done
# Several tokens per step: T, model, types.
for case in "2 nemotron-3-nano-4b:8 f32 bf16" "4 nemotron-3-super:8 f32 bf16" "4 nemotron-3-super:8 bf16 bf16" \
            "6 falcon-h1-7b:4 f32 bf16" "8 zamba2-7b:2 bf16 f16" "5 granite-4-h-small:8 f32 f32" "16 nemotron-3-super:16 f32 bf16"; do
    set -- $case
    check "oracle T=$1 ${2/:/ --tp } checkpoint=$3 activations=$4" \
        "$tune" verify --device gpu --draft-tokens $(($1 - 1)) --model "${2%:*}" --tp "${2#*:}" \
        --checkpoint "$3" --activation "$4" "${all[@]}"
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
        check "compute-sanitizer $tool T=4 checkpoint=$1 activations=$2" \
            compute-sanitizer --tool "$tool" "${flags[@]}" --error-exitcode 9 \
            "$tune" verify --device gpu --model nemotron-3-super --tp 32 --batch 3 --checkpoint "$1" --activation "$2" \
            --draft-tokens 3
    done
    check "compute-sanitizer $tool lifecycle" \
        compute-sanitizer --tool "$tool" "${flags[@]}" --error-exitcode 9 "$lifecycle" --device gpu --events 300 --seed 2 --partial
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
