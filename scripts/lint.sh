#!/usr/bin/env bash
# clang-tidy over the files without libtorch that changed since a revision (default: the parent of
# HEAD; all of them where there is none, or with --all). Modules with libtorch are left out: clang 14
# does not accept libtorch 1.13's headers as C++20. A changed header is seen through the file beside
# it. FCP_LINT_SECONDS, where set, is the time after which what is left is only named.
set -euo pipefail
cd "$(dirname "$0")/.."
modules='(fcp/(base|conformal|evaluate/measures|data|distributed|nn/graph)|apps/report)/'
base=${1:-$(git rev-parse --verify --quiet HEAD~1 || true)}
if [ -n "$base" ] && [ "$base" != --all ]; then
  changed=$(git diff --name-only --diff-filter=d "$base" -- fcp apps)
else
  changed=$(git ls-files -- fcp apps)
fi
files=$(echo "$changed" | sed -nE "s/\.h$/.cc/; \\,^$modules.*\.cc$,p" | sort -u |
  while read -r file; do
    [ -f "$file" ] || continue
    # Of nn/graph, what fcp_graph is made of.
    case $file in
      fcp/nn/graph/*) grep -qs " ${file##*/}$" fcp/nn/graph/CMakeLists.txt || continue ;;
    esac
    echo "$file"
  done)
[ -n "$files" ] || { echo "lint: no file without libtorch changed"; exit 0; }
echo "lint: $(echo "$files" | wc -l) files"
# One compile command a file, and what only g++ knows taken out of it.
database=$(mktemp -d)
trap 'rm -rf "$database"' EXIT
cmake --preset release ${CMAKE_OPTIONS:-} -DFCP_UNITY=OFF -B "$database/build" > /dev/null
sed -E 's/-Winvalid-pch|-Wno-restrict|-Wno-stringop-overflow//g' "$database/build/compile_commands.json" \
  > "$database/compile_commands.json"
export database end=$(($(date +%s) + ${FCP_LINT_SECONDS:-1000000}))
tidy() {
  if [ "$(date +%s)" -ge "$end" ]; then
    echo "lint: no time left for $1"
  else
    clang-tidy --quiet -p "$database" --warnings-as-errors='*' "$1"
  fi
}
export -f tidy
echo "$files" | xargs -P "$(nproc)" -I{} bash -c 'tidy {}'
