#!/usr/bin/env bash
# Formats every C++ file of the repository; with --check it only says which would change.
set -euo pipefail
cd "$(dirname "$0")/.."
options=(-i)
[ "${1:-}" = --check ] && options=(--dry-run --Werror)
git ls-files -co --exclude-standard '*.h' '*.cc' | xargs -r clang-format --style=file "${options[@]}"
