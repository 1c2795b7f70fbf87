#!/usr/bin/env bash
# A wheel for one interpreter and its torch, built, installed into an environment that has nothing
# else of fcp, and used there: the program, the package, an exported file, the library from C.
#
#   scripts/make-wheel.sh [OUT]        build/wheels
#
# PYTHON is the interpreter (python3). It needs pip and network access for the build requirements,
# and torch, or pip brings one. PIP_ARGUMENTS go to `pip wheel`, as
# "-C cmake.define.FCP_CUDA_KERNELS=OFF".
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:-build/wheels}")
python=${PYTHON:-python3}
trial=$(mktemp -d)
trap 'rm -rf "$trial"' EXIT

step() { printf '\n=== %s\n' "$*"; }

step "build for $("$python" --version)"
rm -f "$out"/fcp-*.whl
# shellcheck disable=SC2086
"$python" -m pip wheel --no-deps --wheel-dir "$out" ${PIP_ARGUMENTS:-} .
wheel=("$out"/fcp-*.whl)

step "install ${wheel[0]}"
"$python" -m venv "$trial/env"
# torch and NumPy where they are: another copy would be gigabytes.
"$python" - "$trial" >"$trial/found" <<'EOF' || { echo "make-wheel: $python has no torch and NumPy; install them to try the wheel" >&2; exit 1; }
import importlib.util, os
print(*sorted({os.path.dirname(os.path.dirname(importlib.util.find_spec(name).origin))
               for name in ("torch", "numpy")}), sep="\n")
EOF
cp "$trial/found" "$("$trial/env/bin/python" -c 'import site; print(site.getsitepackages()[0])')/found.pth"
"$trial/env/bin/pip" install --quiet --no-deps "${wheel[0]}"
PATH=$trial/env/bin:$PATH
unset PYTHONPATH
cd "$trial"

step "use the program and the package"
fcp --version
fcp demo --out demo --quiet >demo.txt
cat >use.py <<'EOF'
import csv, numpy, torch, fcp
model = fcp.from_torch(torch.nn.Linear(3, 1), torch.zeros(1, 3))
x = numpy.random.default_rng(0).normal(size=(400, 3)).astype("float32")
regressor = fcp.FeatureConformalRegressor(model).conformalize(x[:300], x[:300].sum(1))
prediction, intervals = regressor.predict_interval(x[300:])
print(f"fcp {fcp.__version__} on torch {torch.__version__}: {len(prediction)} intervals")
loaded = fcp.FeatureConformalRegressor.load("demo/model.onnx")
loaded.export("exported.onnx", alpha=0.1)
try:
    from fcp import runtime
except ModuleNotFoundError as error:
    print(f"fcp.runtime is not tried: there is no {error.name}")
else:
    with open("demo/test.csv") as file:
        rows = list(csv.DictReader(file))
    runtime.load("exported.onnx").predict_interval(rows)
EOF
python use.py

step "use the library"
cat >CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.22)
project(user LANGUAGES C CXX)
find_package(fcp REQUIRED)
add_executable(user user.c)
target_link_libraries(user PRIVATE fcp::c)
EOF
cp "$OLDPWD/examples/4_from_c.c" user.c
cmake -S . -B built -DCMAKE_PREFIX_PATH="$(python -c 'import fcp; print(fcp.cmake_prefix_path)')" >/dev/null
cmake --build built >/dev/null
built/user demo/model.onnx 0 0 0 0 0 0 0 0

step "${wheel[0]}, $(stat -c %s "${wheel[0]}") bytes"
unzip -p "${wheel[0]}" '*/METADATA' | grep '^Requires'
# Of the system, besides what every Linux has.
unzip -q "${wheel[0]}" 'fcp/*.so' -d parts
readelf -d parts/fcp/_fcp*.so | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
  grep -vE '^(lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|torch.*|c10.*)\.so.*|ld-linux.*)$' |
  paste -sd' ' | sed 's/^/needs of the system: /'
