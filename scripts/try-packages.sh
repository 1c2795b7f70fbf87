#!/usr/bin/env bash
# The Debian packages in a root that has nothing else: makes one with debootstrap, installs them
# packages there by apt, which brings what they say they depend on, and uses them: the program on the
# demo's rows, and a project that finds the library. Needs root, debootstrap, a mirror, 4 GB of disk
# and some minutes; leaves nothing behind.
#
#   scripts/try-packages.sh [BUILD]        build/release; its packages are made anew
#
# FCP_MIRROR is the mirror (that of this machine's apt), FCP_ROOT a root of an earlier run, or the
# place where this one is made and left.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
mirror=${FCP_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' |
  grep -v security | head -n 1)}
for needed in debootstrap cpack; do
  command -v "$needed" >/dev/null || { echo "try-packages: there is no $needed here" >&2; exit 77; }
done
[ "$(id -u)" -eq 0 ] || { echo "try-packages: only root can make a root" >&2; exit 77; }

step() { printf '\n=== %s\n' "$*"; }

root=${FCP_ROOT:-$(mktemp -d /var/tmp/fcp-root.XXXXXX)}
packages=$(mktemp -d)
leave() {
  ! mountpoint -q "$root/proc" || umount "$root/proc"
  rm -rf "$packages"
  [ -n "${FCP_ROOT:-}" ] || rm -rf --one-file-system "$root"
}
trap leave EXIT

step "packages"
cpack -G DEB --config "$build/CPackConfig.cmake" -B "$packages"
step "a clean root at $root"
[ -d "$root/usr" ] || debootstrap --variant=minbase bookworm "$root" "$mirror"
cp /etc/resolv.conf "$root/etc/resolv.conf"
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"  # libtorch counts processors there
in_root() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root "$@"; }
apt_get() { in_root DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends "$@"; }

step "install the program"
rm -rf "$root/try" && mkdir -p "$root/try/packages"
cp "$packages"/*.deb "$root/try/packages"
apt_get update
program=("$root"/try/packages/fcp_*.deb) development=("$root"/try/packages/libfcp-dev_*.deb)
apt_get install "${program[0]#"$root"}"
step "use the program"
in_root fcp --version --json
in_root sh -ec 'cd /try
  fcp demo --out demo --threads 1
  cd demo
  fcp train train.csv --target minutes --recipe paper --epochs 5 --out plain.onnx --threads 1
  fcp calibrate plain.onnx --data calibration.csv --target minutes --out calibrated.onnx
  fcp evaluate calibrated.onnx --data test.csv --target minutes
  fcp serve --help >/dev/null
  fcp doctor'

step "install the library"
libraries=("$root"/try/packages/libfcp0_*.deb)
apt_get install "${libraries[0]#"$root"}" "${development[0]#"$root"}" libtorch-dev libgflags-dev libgoogle-glog-dev g++ cmake make
step "use the library"
cp -r examples tests/package/outside "$root/try"
in_root sh -ec 'cd /try
  cmake -S outside -B built -DFCP_EXAMPLES=/try/examples -DFCP_HEADERS=/usr/include \
    -DCMAKE_CXX_FLAGS=-O0
  cmake --build built
  built/outside demo/model.onnx 0.1'
step "install the package for Python"
python=("$root"/try/packages/python3-fcp_*.deb)
apt_get install "${python[0]#"$root"}"
step "use it"
in_root sh -ec 'cd /try
  printf "%s\n" "import csv, fcp, numpy, torch" \
    "predictor = fcp.FeatureConformalRegressor.load(\"demo/model.onnx\")" \
    "rows = [list(map(float, row[:-1])) for row in list(csv.reader(open(\"demo/test.csv\")))[1:6]]" \
    "print(predictor.predict_interval(numpy.array(rows, numpy.float32), alpha=0.1)[1][:, :, 0])" \
    "network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))" \
    "x = numpy.random.default_rng(0).normal(size=(300, 3)).astype(numpy.float32)" \
    "own = fcp.FeatureConformalRegressor(fcp.from_torch(network, x[:1])).conformalize(x, x.sum(1))" \
    "print(fcp.__version__, torch.__version__, own.predict_interval(x[:2])[1].shape)" >use.py
  python3 use.py'
step "the packages work in a clean root"
