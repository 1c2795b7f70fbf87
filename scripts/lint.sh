#!/usr/bin/env bash
# clang-tidy over the sources of the rooms that changed since a revision (default: the parent of
# HEAD; all rooms where there is none). Needs build/release/compile_commands.json.
set -euo pipefail
cd "$(dirname "$0")/.."
base=${1:-$(git rev-parse --verify --quiet HEAD~1 || true)}
if [ -n "$base" ]; then
  changed=$(git diff --name-only --diff-filter=d "$base" -- fcp cli | sed -E 's#(fcp/[^/]+|cli)/.*#\1#' | sort -u)
else
  changed=$(git ls-files -- fcp cli | sed -E 's#(fcp/[^/]+|cli)/.*#\1#' | sort -u)
fi
files=$(for room in $changed; do [ -d "$room" ] && git ls-files -- "$room" | grep '\.cc$'; done || true)
[ -n "$files" ] || { echo "lint: nothing changed"; exit 0; }
echo "lint: $(echo "$files" | wc -l) files of $(echo $changed)"
# g++'s precompiled header means nothing to clang, and costs nothing to leave out.
database=$(mktemp -d)
trap 'rm -rf "$database"' EXIT
sed -E 's/-Winvalid-pch//; s/-include [^ "]*cmake_pch\.hxx//' build/release/compile_commands.json \
  > "$database/compile_commands.json"
echo "$files" | xargs -P "$(nproc)" -n 1 clang-tidy --quiet -p "$database" --warnings-as-errors='*'
