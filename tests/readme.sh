#!/usr/bin/env bash
# Runs every command of the README's and ARCHITECTURE's ```sh blocks, in order, with a database of its own.
# scripts/test.sh, which calls this, is not called again. The second tune must be answered within two seconds.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_DATA_HOME="$folder"
count=0
while IFS= read -r command; do
    case "$command" in
    "" | \#* | *scripts/test.sh* | *scripts/gpu_check.sh*) continue ;;
    esac
    echo "== $command"
    bash -c "$command" >"$folder/output" 2>&1 || { cat "$folder/output"; echo "readme: failed: $command" >&2; exit 1; }
    tail -n 3 "$folder/output"
    count=$((count + 1))
done < <(awk '/^```sh/ {on = 1; next} /^```/ {on = 0} on {sub(/ +#.*/, ""); print}' README.md ARCHITECTURE.md)
[ "$count" -ge 3 ] || { echo "readme: only $count commands were found" >&2; exit 1; }

began=$(date +%s%N)
./scripts/tune.sh --model nemotron-3-nano-4b >"$folder/output" 2>&1
took=$((($(date +%s%N) - began) / 1000000))
grep -q "answered from" "$folder/output" || { cat "$folder/output"; echo "readme: the second tune measured again" >&2; exit 1; }
[ "$took" -le 2000 ] || { echo "readme: the second tune took $took ms, more than 2000" >&2; exit 1; }
echo "$count README commands passed; the second tune took $took ms"
