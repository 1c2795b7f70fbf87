#!/usr/bin/env bash
# Runs the fast tests of a build folder again and again beside a busy loop on every core, and stops
# at the first failure: repeat-tests.sh BUILD REPEATS
set -euo pipefail
build=$1
repeats=$2

busy=()
trap 'kill "${busy[@]}" 2>/dev/null || true' EXIT
for _ in $(seq "$(nproc)"); do
  (while :; do :; done) &
  busy+=($!)
done
for number in $(seq "$repeats"); do
  echo "=== run $number of $repeats"
  (cd "$build" && ctest --parallel "$(nproc)" --output-on-failure --label-exclude slow)
done
