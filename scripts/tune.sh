#!/usr/bin/env bash
# Sets this machine up, builds, and tunes a model on the best device present:
#     ./scripts/tune.sh --model nemotron-3-nano-4b
# All options go to `replayssm-tune tune`. Run again, it answers from the database.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
tune="$root/build/release/tuner/replayssm-tune"
stamp="$root/build/release/.built"
# Building is skipped where no source is newer than the last build: the second run answers at once.
if [ ! -x "$tune" ] || [ ! -e "$stamp" ] ||
   [ -n "$(find "$root" -path "$root/build" -prune -o -path "$root/.git" -prune -o -type f \
            \( -name '*.[ch]' -o -name '*.cu*' -o -name '*.json' -o -name '*.sql' -o -name 'CMakeLists.txt' -o -name '*.cmake' \) \
            -newer "$stamp" -print -quit)" ]; then
    "$root/scripts/setup.sh" >&2
    "$root/scripts/build.sh" release replayssm-tune >&2
    touch "$stamp"
fi
exec "$tune" tune "$@"
