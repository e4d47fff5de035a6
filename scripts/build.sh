#!/usr/bin/env bash
# Configures and builds into build/<preset>: scripts/build.sh release|dev|tsan [target ...]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
shift || true
cmake --preset "$preset" >"build-$preset.log" 2>&1 || { cat "build-$preset.log" >&2; rm -f "build-$preset.log"; exit 1; }
rm -f "build-$preset.log"
cmake --build --preset "$preset" -j "$(nproc)" ${1:+--target "$@"}
