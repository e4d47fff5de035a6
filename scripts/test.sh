#!/usr/bin/env bash
# Sets this machine up, builds with and without sanitizers, and runs every test. Needs no GPU.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
./scripts/setup.sh
for preset in release dev; do
    echo "== $preset"
    ./scripts/build.sh "$preset"
    ctest --preset "$preset"
done
echo "== README commands"
./tests/readme.sh
