#!/usr/bin/env bash
# Runs the benchmarks of a build folder. Ratios are measured in one run, interleaved, as medians.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/bench}
OPENBLAS_NUM_THREADS=1 "$build/benchmarks/hot_functions" --benchmark_min_time=0.5
# auto_LiRPA as it is, without the versions of PyTorch that its package would bring along.
python=$build/venv/bin/python
if ! { { [ -x "$python" ] || /usr/bin/python3 -m venv --system-site-packages "$build/venv"; } &&
  "$python" -m pip install --quiet --no-deps auto_LiRPA==0.3 appdirs tqdm; }; then
  echo "auto_LiRPA cannot be installed: the official code's bounds are left out" >&2
  python=/usr/bin/python3
fi
"$python" benchmarks/against_pytorch.py "$build/benchmarks/feature_cp" --threads 1 2
/usr/bin/python3 benchmarks/compare_forward.py "$build/benchmarks/network_forward" --threads "$(nproc)"
if [ -n "${FCP_DATA_DIR:-}" ] && [ -f "$FCP_DATA_DIR/tabular/blogData_train.csv.gz" ]; then
  unpacked=$(mktemp)
  trap 'rm -f "$unpacked"' EXIT
  gunzip -c "$FCP_DATA_DIR/tabular/blogData_train.csv.gz" > "$unpacked"
  "$build/benchmarks/csv_read" "$unpacked"
fi
"$build/benchmarks/selection_simulation"
if command -v mpirun >/dev/null; then
  for ranks in 1 2 4; do
    mpirun -q --oversubscribe --allow-run-as-root -n "$ranks" "$build/benchmarks/selection_ranks"
  done
fi
