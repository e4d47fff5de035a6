#!/usr/bin/env bash
# Every preset's layer shape against the oracle on the CPU, fp32 and bf16 checkpoints, and steps of four tokens with the
# kernels inside the library: presets.sh REPLAYSSM_TUNE
# One rank of the largest tensor-parallel split that divides the shape, so that all head dims, state sizes and group sizes
# are met and the oracle stays quick.
set -euo pipefail
tune=$1
export RSSM_DEVICE=cpu RSSM_DATABASE=/nonexistent/tuned.db
count=0
for preset in $("$tune" tune --model help | awk 'NR > 1 && $2 ~ /^[0-9]+$/ || $1 ~ /-/ {print $1}' | grep -E '^[a-z].*-' | sort -u); do
    for kind in "f32 0" "bf16 0" "f32 3"; do
        read -r checkpoint drafts <<< "$kind"
        clang=${RSSM_CLANG-}
        [ "$drafts" -eq 0 ] || clang=/nonexistent/clang
        passed=0
        for tp in 8 4 2 1; do
            code=0
            output=$(RSSM_CLANG=$clang "$tune" verify --model "$preset" --tp "$tp" --batch 2 --checkpoint "$checkpoint" \
                     --draft-tokens "$drafts" 2>&1) || code=$?
            [ "$code" -eq 2 ] && continue   # this split does not divide the shape
            [ "$code" -eq 0 ] || { echo "presets: $preset --tp $tp $checkpoint, $drafts drafts: $output" >&2; exit 1; }
            passed=1
            break
        done
        [ "$passed" -eq 1 ] || { echo "presets: no split of $preset could be verified" >&2; exit 1; }
        count=$((count + 1))
    done
done
[ "$count" -ge 72 ] || { echo "presets: only $count were verified" >&2; exit 1; }
echo "$count presets and formats verified"
