#!/usr/bin/env bash
# Installs what building, testing and tuning need and is missing: Debian 12 or Ubuntu 24.04, as root or with sudo.
# Without a CUDA toolkit it also fetches NVRTC's own wheel, so that GPU kernels can be compiled (no GPU is needed).
# Usage: scripts/setup.sh            Nothing is done, and nothing is downloaded, where everything is there.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(build-essential cmake pkg-config clang libclang-dev libsqlite3-dev libcjson-dev libsodium-dev libzstd-dev
          libcriterion-dev)
missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if [ "${#missing[@]}" -gt 0 ]; then
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || { echo "setup: ${missing[*]} are missing; run this as root, or install sudo" >&2; exit 1; }
        as_root=(sudo)
    fi
    echo "setup: installing ${missing[*]}"
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# NVRTC: a toolkit's, or the wheel's in the folder where the library looks for it.
nvrtc_folder="$HOME/.local/share/replayssm/nvrtc"
if ! ls "${CUDA_HOME:-/usr/local/cuda}"/lib64/libnvrtc.so* "$nvrtc_folder"/libnvrtc.so* >/dev/null 2>&1; then
    echo "setup: fetching NVRTC"
    command -v pip3 >/dev/null || command -v pip >/dev/null || {
        as_root=(); [ "$(id -u)" -eq 0 ] || as_root=(sudo)
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-pip unzip >/dev/null
    }
    wheel=$(mktemp -d)
    trap 'rm -rf "$wheel"' EXIT
    python3 -m pip download -q --no-deps --only-binary=:all: -d "$wheel" "nvidia-cuda-nvrtc>=13.0,<14"
    mkdir -p "$nvrtc_folder"
    python3 - "$wheel" "$nvrtc_folder" <<'PY'
import glob, os, sys, zipfile
wheel, folder = sys.argv[1:]
with zipfile.ZipFile(glob.glob(os.path.join(wheel, "*.whl"))[0]) as archive:
    for name in archive.namelist():
        base = os.path.basename(name)
        if base.startswith("libnvrtc") and ".so" in base and "alt" not in base:
            with open(os.path.join(folder, base), "wb") as out:
                out.write(archive.read(name))
PY
fi
