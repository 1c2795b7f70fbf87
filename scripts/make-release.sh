#!/usr/bin/env bash
# Everything of one version in one folder: the sources, the Debian packages, a wheel, the bill of
# materials, the section of the changelog, and the checksums of all of them.
#
#   scripts/make-release.sh [OUT]        build/release-VERSION; must not exist yet
#
# The commit that is checked out is released, so nothing may be changed, and the changelog must have a
# dated section of the version. RELEASE_WHEELS=0 leaves the wheel out; PYTHON is its interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."

die() { echo "make-release: $*" >&2; exit 1; }
step() { printf '\n=== %s\n' "$*"; }

version=$(sed -nE 's/^#define FCP_VERSION "([0-9.]+)"$/\1/p' include/fcp/version.h)
[ -n "$version" ] || die "include/fcp/version.h: expected a line #define FCP_VERSION \"X.Y.Z\""
out=${1:-build/release-$version}
[ ! -e "$out" ] || die "$out is there already; remove it, or name another folder"
[ -z "$(git status --porcelain)" ] || die "the checkout has changes; commit them, or put them away"
heading=$(grep -m1 '^## ' CHANGELOG.md)
[[ $heading =~ ^"## $version (20"[0-9]{2}-[0-9]{2}-[0-9]{2}")"$ ]] ||
  die "CHANGELOG.md begins with '$heading', expected '## $version (YYYY-MM-DD)'"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
step "sources and notes of $version"
git archive --format=tar.gz --prefix="fcp-$version/" --output="$made/fcp-$version.tar.gz" HEAD
awk -v heading="$heading" '$0 == heading { on = 1; next } /^## / { on = 0 } on' CHANGELOG.md |
  sed '/./,$!d' >"$made/NOTES.md"
step "Debian packages"
make package
cp build/packages/*_"$version"_*.deb "$made"
if [ "${RELEASE_WHEELS:-1}" != 0 ]; then
  step "wheel"
  scripts/make-wheel.sh build/wheels
  cp build/wheels/fcp-"$version"-*.whl "$made"
fi
step "bill of materials and checksums"
# shellcheck disable=SC2046
scripts/sbom.py "$version" $(find "$made" -name 'fcp*' -o -name 'lib*' -o -name 'python3*' | sort) \
  >"$made.spdx.json"
mv "$made.spdx.json" "$made/fcp-$version.spdx.json"
(cd "$made" && sha256sum -- * >SHA256SUMS.new && mv SHA256SUMS.new SHA256SUMS)
mkdir -p "$(dirname "$out")"
cp -r "$made" "$out"
chmod 755 "$out"
ls -l "$out"
