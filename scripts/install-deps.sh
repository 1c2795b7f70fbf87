#!/usr/bin/env bash
# Installs the Debian packages that are missing: install-deps.sh [program], without an argument all
# that building, testing and formatting need. What the build and the tests can do without is tried
# for, and named where it cannot be had. On a machine without apt it only says what to look for: the
# build reports what it does not find.
set -euo pipefail

packages=(
  build-essential cmake ninja-build
  libtorch-dev libonnx-dev libopenblas-dev libprotobuf-dev protobuf-compiler
  libssl-dev libsqlite3-dev libxxhash-dev zlib1g-dev libjpeg-dev libpng-dev nlohmann-json3-dev libcli11-dev
)
optional=(libpq-dev libxgboost-dev)
if [ "${1:-}" != program ]; then
  packages+=(
    libopenmpi-dev openmpi-bin
    libgtest-dev libgmock-dev libbenchmark-dev
    python3 python3-dev python3-numpy python3-onnx python3-torch python3-torchvision
    pybind11-dev
    clang clang-format clang-tidy libclang-rt-dev chromium
  )
  optional+=(python3-venv python3-yaml openssl postgresql prometheus nodejs)
fi

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "install-deps: no apt here; needed are: ${packages[*]} ${optional[*]}" >&2
  exit 0
fi
# Those of the arguments that are not installed.
missing_of() {
  local package state
  for package in "$@"; do
    state=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || echo "$package"
  done
}
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
install() {
  echo "install-deps: installing $*" >&2
  "${as_root[@]}" apt-get update -qq &&
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "$@"
}

mapfile -t missing < <(missing_of "${packages[@]}")
[ ${#missing[@]} -eq 0 ] || install "${missing[@]}"
mapfile -t missing < <(missing_of "${optional[@]}")
[ ${#missing[@]} -eq 0 ] || install "${missing[@]}" || echo "install-deps: without ${missing[*]}" >&2
