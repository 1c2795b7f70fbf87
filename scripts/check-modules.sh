#!/usr/bin/env bash
# The modules that read files, networks or requests and need no libtorch (and numbers), built by
# clang with the address and undefined-behaviour sanitizers: their tests, and their fuzzing targets
# on FUZZ_RUNS (700) inputs each from a fixed seed, or for some seconds, so that a run repeats the
# one before: what is new is looked for by `make fuzz`. Skips, saying why, where clang or its sanitizers do not work.
#
#   scripts/check-modules.sh [JOBS] [SECONDS]        all cores, 60
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${1:-$(nproc)}
seconds=${2:-60}

# Without randomized addresses where that is allowed: the sanitizers of older compilers want their
# addresses where randomization may have put others, and fail by chance.
calm=()
! setarch "$(uname -m)" -R true 2>/dev/null || calm=(setarch "$(uname -m)" -R)

probe=$(mktemp -d)
trap 'rm -rf "$probe"' EXIT
echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' \
  >"$probe/probe.cc"
works() {
  clang++ -fsanitize=fuzzer,address,undefined "$probe/probe.cc" -o "$probe/probe" || return 1
  for _ in $(seq 20); do "${calm[@]}" "$probe/probe" -runs=1 || return 1; done
}
if ! works >"$probe/log" 2>&1; then
  echo "check-modules: skipped, because clang++ with sanitizers does not work here:"
  tail -n 3 "$probe/log"
  exit 0
fi

cmake --preset modules ${CMAKE_OPTIONS:-}
cmake --build --preset modules --parallel "$jobs"
(cd build/modules && "${calm[@]}" ctest --parallel "$jobs" --output-on-failure \
  --tests-regex '^(base|conformal|data|graph|images|serving_messages)_test$')
rm -rf build/modules/corpus
targets=(csv encoding graph npy request schema)
[ ! -x build/modules/fuzz/fuzz_image ] || targets+=(image)
FUZZ_SEED=1 FUZZ_RUNS=${FUZZ_RUNS:-700} "${calm[@]}" fuzz/run.sh build/modules "$seconds" "${targets[@]}"
