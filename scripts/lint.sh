#!/usr/bin/env bash
# clang-tidy over the rooms without libtorch that changed since a revision (default: the parent of
# HEAD; all of them where there is none, or with --all). Rooms with libtorch are left out: clang 14
# does not accept libtorch 1.13's headers as C++20.
set -euo pipefail
cd "$(dirname "$0")/.."
rooms='fcp/(base|conformal|evaluation|data|distributed|report)'
base=${1:-$(git rev-parse --verify --quiet HEAD~1 || true)}
if [ -n "$base" ] && [ "$base" != --all ]; then
  changed=$(git diff --name-only --diff-filter=d "$base" -- fcp | grep -oE "^$rooms" | sort -u || true)
else
  changed=$(git ls-files -- fcp | grep -oE "^$rooms" | sort -u)
fi
[ -n "$changed" ] || { echo "lint: no room without libtorch changed"; exit 0; }
files=$(for room in $changed; do git ls-files -- "$room" | grep '\.cc$'; done)
echo "lint: $(echo "$files" | wc -l) files of $(echo $changed)"
# One compile command a file, and what only g++ knows taken out of it.
database=$(mktemp -d)
trap 'rm -rf "$database"' EXIT
cmake --preset release ${CMAKE_OPTIONS:-} -DFCP_UNITY=OFF -B "$database/build" > /dev/null
sed -E 's/-Winvalid-pch|-Wno-restrict//g' "$database/build/compile_commands.json" \
  > "$database/compile_commands.json"
echo "$files" | xargs -P "$(nproc)" -n 4 clang-tidy --quiet -p "$database" --warnings-as-errors='*'
