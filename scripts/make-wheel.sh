#!/usr/bin/env bash
# A wheel, built, installed into an environment that has nothing else of fcp, and used there: the
# program, the package, an exported file, the library from C.
#
#   scripts/make-wheel.sh [OUT]        build/wheels
#
# PYTHON is the interpreter (python3), and PYTHONS are further ones, for which the wheel has modules
# too. TORCH names the minor versions of torch that the wheel is for, as "2.14 2.15": each is brought
# into an environment of PYTHON in build/torch. Without TORCH the wheel is for PYTHON's own torch, or
# pip brings one. It needs pip and network access. PIP_ARGUMENTS go to `pip wheel`, as
# "-C cmake.define.FCP_CUDA_KERNELS=OFF".
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:-build/wheels}")
python=${PYTHON:-python3}
trial=$(mktemp -d)
trap 'rm -rf "$trial"' EXIT

step() { printf '\n=== %s\n' "$*"; }

further=
for one in ${PYTHONS:-}; do further+="${further:+;}$(command -v "$one")"; done
interpreters=()
[ -n "${TORCH:-}" ] || interpreters+=("$python")
for minor in ${TORCH:-}; do
  env=build/torch/$minor
  if ! [ -e "$env/ready" ]; then
    step "torch $minor"
    "$python" -m venv --clear "$env"
    "$env/bin/pip" install --quiet "torch==$minor.*" numpy
    touch "$env/ready"
  fi
  interpreters+=("$PWD/$env/bin/python")
done

parts=()
for interpreter in "${interpreters[@]}"; do
  step "build for $("$interpreter" --version) of $interpreter"
  part=$trial/${#parts[@]}
  # shellcheck disable=SC2086
  "$interpreter" -m pip wheel --no-deps --wheel-dir "$part" \
    -C build-dir="build/wheel-$(dirname "$(dirname "$interpreter")" | sed 's,.*/,,')" \
    -C cmake.define.FCP_PYTHONS="$further" ${PIP_ARGUMENTS:-} .
  parts+=("$part"/fcp-*.whl)
done
mkdir -p "$out"
rm -f "$out"/fcp-*.whl
"$python" scripts/merge-wheels.py "$out" "${parts[@]}"
wheel=("$out"/fcp-*.whl)

cat >"$trial/use.py" <<'EOF'
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
cat >"$trial/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.22)
project(user LANGUAGES C CXX)
find_package(fcp REQUIRED)
add_executable(user user.c)
target_link_libraries(user PRIVATE fcp::c)
EOF
cp examples/4_from_c.c "$trial/user.c"
unset PYTHONPATH
for interpreter in "${interpreters[@]}"; do
  step "install ${wheel[0]} beside the torch of $interpreter"
  rm -rf "$trial/env" "$trial/demo" "$trial/built"
  "$interpreter" -m venv "$trial/env"
  # torch and NumPy where they are: another copy would be gigabytes.
  "$interpreter" - >"$trial/found" <<'EOF' || { echo "make-wheel: $interpreter has no torch and NumPy; install them to try the wheel" >&2; exit 1; }
import importlib.util, os
print(*sorted({os.path.dirname(os.path.dirname(importlib.util.find_spec(name).origin))
               for name in ("torch", "numpy")}), sep="\n")
EOF
  cp "$trial/found" "$("$trial/env/bin/python" -c 'import site; print(site.getsitepackages()[0])')/found.pth"
  "$trial/env/bin/pip" install --quiet --no-deps "${wheel[0]}"
  (
    PATH=$trial/env/bin:$PATH
    cd "$trial"
    step "use the program and the package"
    fcp --version
    fcp demo --out demo --quiet >demo.txt
    python use.py
    step "use the library"
    cmake -S . -B built -DCMAKE_PREFIX_PATH="$(python -c 'import fcp; print(fcp.cmake_prefix_path)')" >/dev/null
    cmake --build built >/dev/null
    built/user demo/model.onnx 0 0 0 0 0 0 0 0
  )
done

step "${wheel[0]}, $(stat -c %s "${wheel[0]}") bytes"
unzip -p "${wheel[0]}" '*/METADATA' | grep '^Requires'
# Of the system, besides what every Linux has.
unzip -q "${wheel[0]}" 'fcp/torch-*' -d "$trial/files"
find "$trial/files" -name '*.so*' -exec readelf -d {} + | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | sort -u |
  grep -vE '^(lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|fcp|torch.*|c10.*)\.so.*|ld-linux.*)$' |
  paste -sd' ' | sed 's/^/needs of the system: /'
