#!/usr/bin/env bash
# Formats every C++ file of the repository; with --check it only says which would change, or has a
# line of more than 100 characters: clang-format leaves comments as they are.
set -euo pipefail
cd "$(dirname "$0")/.."
options=(-i)
[ "${1:-}" = --check ] && options=(--dry-run --Werror)
git ls-files -co --exclude-standard '*.h' '*.cc' | xargs -r clang-format --style=file "${options[@]}"
long=$(git ls-files -co --exclude-standard '*.h' '*.cc' | LC_ALL=C.UTF-8 xargs -r grep -nP '^.{101}' || true)
if [ -n "$long" ]; then
  printf 'more than 100 characters:\n%s\n' "$long" >&2
  exit 1
fi
