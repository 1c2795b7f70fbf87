#!/usr/bin/env bash
# Everything that docs/performance.md says of bounds and growth on a device, by one command:
#
#   benchmarks/on_device.sh [cuda|cpu] [small]
#
# Builds the program and the benchmarks in build/bench, then prints two tables: bounds in turns with
# auto_LiRPA, in batches of 1 and 256 (small: 1 and 8), and the growth of `fcp calibrate` with rows, features
# and members on that device beside the CPU. PYTHON has numpy, and PyTorch and auto_LiRPA for that
# device (default python3); without the latter the first table is left out. CMAKE_OPTIONS go to CMake, as
# "-DCMAKE_PREFIX_PATH=…" for another libtorch. BUILD is a folder that is already built.
set -euo pipefail
cd "$(dirname "$0")/.."
device=${1:-cuda}
size=${2:-whole}
python=${PYTHON:-python3}
build=${BUILD:-build/bench}
case "$device $size" in
  "cuda whole" | "cuda small" | "cpu whole" | "cpu small") ;;
  *)
    echo "expected: benchmarks/on_device.sh [cuda|cpu] [small]" >&2
    exit 2
    ;;
esac
if [ -z "${BUILD:-}" ]; then
  # shellcheck disable=SC2086
  cmake --preset bench ${CMAKE_OPTIONS:-}
  cmake --build --preset bench --parallel "$(nproc)" --target fcp_program bound_widths
fi

rows=(1 256)
growth=(--rows 100000 1000000 10000000 --features 64 512 4096 --threads 8)
repeats=3
if [ "$size" = small ]; then
  rows=(1 8)
  growth=(--rows 20000 40000 --features 64 256 --threads 1)
  repeats=1
fi
devices=(cpu)
[ "$device" = cuda ] && devices=(cpu cuda)

if "$python" -c 'import auto_LiRPA' 2>/dev/null; then
  "$python" benchmarks/against_lirpa.py "$build/benchmarks/bound_widths" --device "$device" \
    --nets acas mnist conv --rows "${rows[@]}" --repeats "$repeats"
  echo
else
  echo "$python has no auto_LiRPA: bounds are left out" >&2
fi
"$python" benchmarks/device_growth.py "$build/bin/fcp" --devices "${devices[@]}" \
  --repeats "$repeats" "${growth[@]}"
