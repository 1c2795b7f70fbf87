#!/usr/bin/env bash
# Runs every fuzzing target of a build folder for some seconds (default 60), from the seeds and what
# earlier runs found, as many at a time as there are cores. A crash leaves its input in
# FOLDER/crashes and ends with exit code 1.
#
#   fuzz/run.sh [FOLDER] [SECONDS] [TARGET…]
#
# FUZZ_SEED fixes the seed, so that a run repeats the beginning of a longer one; FUZZ_RUNS ends it
# after so many inputs.
set -euo pipefail
cd "$(dirname "$0")/.."
export build=${1:-build/fuzz}
export seconds=${2:-60}
shift $(($# > 2 ? 2 : $#))
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(calibrated options ml onnx csv encoding graph image npy request schema)

/usr/bin/python3 fuzz/make_seeds.py "$build/seeds"
mkdir -p "$build/crashes"
# libtorch is not instrumented: vectors that it grows look like overflows, and what it keeps until
# the end like leaks.
export ASAN_OPTIONS=quarantine_size_mb=8:detect_container_overflow=0:detect_leaks=0
export UBSAN_OPTIONS=print_stacktrace=1 OMP_WAIT_POLICY=passive

# What earlier runs found and the repository keeps.
kept() { [ ! -d "fuzz/corpus/$1" ] || echo "fuzz/corpus/$1"; }
export -f kept

fuzz() {
  local target=$1 corpus=$build/corpus/$1 log=$build/$1.log
  mkdir -p "$corpus"
  # A file of some kilobytes must not make fcp ask for much: constants of a network may have 2^28
  # elements (kMaxElements), everything else stays far below.
  local most=512
  case $target in onnx | graph) most=2200 ;; esac
  if nice -n 19 "$build/fuzz/fuzz_$target" "$corpus" "$build/seeds/$target" $(kept "$target") \
    -seed="${FUZZ_SEED:-0}" -runs="${FUZZ_RUNS:--1}" -max_total_time="$seconds" \
    -max_len=2048 -len_control=0 -timeout=60 -malloc_limit_mb=$most -rss_limit_mb=5000 \
    -detect_leaks=0 -artifact_prefix="$build/crashes/${target}_" >"$log" 2>&1; then
    echo "$target: $(grep -E 'cov:' "$log" | tail -1 | tr -s '\t ' ' ')"
  else
    echo "$target: failed; see $log and $build/crashes"
    grep -E 'ERROR|runtime error|SUMMARY|what\(\)' "$log" | head -5 || true
    return 1
  fi
}
export -f fuzz
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -c 'fuzz {}'
