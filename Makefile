# Thin: every target is one or two commands that can be typed by hand.
.PHONY: demo program test slow repeat asan tsan modules fuzz bench package wheel release docs format lint deps build clean

JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
REPEATS ?= 20
TSAN_TESTS ?= base_test conformal_test data_test distributed_test serving_messages_test

demo: program
	build/release/bin/fcp demo --out build/demo

test: build
	cd build/release && ctest --parallel $(JOBS) --output-on-failure --label-exclude slow \
	  --output-junit tests.xml

slow: build
	cd build/release && ctest --parallel $(JOBS) --output-on-failure --label-regex slow

# The tests N times beside a busy loop on every core: a test that fails once in fifty runs is broken.
repeat: build
	scripts/repeat-tests.sh build/release $(REPEATS)

# The program alone: no tests, no Python, and only the packages that it needs.
program:
	scripts/install-deps.sh program
	cmake --preset release -DFCP_BUILD_TESTS=OFF -DFCP_BUILD_PYTHON=OFF $(CMAKE_OPTIONS)
	cmake --build --preset release --parallel $(JOBS) --target fcp_program

build: deps
	cmake --preset release -DFCP_BUILD_TESTS=ON -DFCP_BUILD_PYTHON=AUTO $(CMAKE_OPTIONS)
	cmake --build --preset release --parallel $(JOBS)

asan: deps
	cmake --preset asan $(CMAKE_OPTIONS)
	cmake --build --preset asan --parallel $(JOBS)
	cd build/asan && ctest --parallel $(JOBS) --output-on-failure --label-exclude 'slow|plain'

# Under setarch -R: the sanitizer wants its addresses where randomization may have put others.
tsan: deps
	cmake --preset tsan $(CMAKE_OPTIONS)
	cmake --build build/tsan --parallel $(JOBS) --target $(TSAN_TESTS)
	cd build/tsan && setarch $$(uname -m) -R ctest --parallel $(JOBS) --output-on-failure \
	  --tests-regex "^($$(echo $(TSAN_TESTS) | tr ' ' '|'))$$"

# The modules that read files, by clang: their tests under the address and undefined-behaviour
# sanitizers, and their fuzzing targets from a fixed seed, so that a run repeats the one before.
modules: deps
	CMAKE_OPTIONS="$(CMAKE_OPTIONS)" scripts/check-modules.sh $(JOBS) $(FUZZ_SECONDS)

fuzz: deps
	cmake --preset fuzz $(CMAKE_OPTIONS)
	cmake --build --preset fuzz --parallel $(JOBS) --target fuzzers
	fuzz/run.sh build/fuzz $(FUZZ_SECONDS)

bench: deps
	cmake --preset bench $(CMAKE_OPTIONS)
	cmake --build --preset bench --parallel $(JOBS)
	benchmarks/run.sh build/bench

# The program and the library as Debian packages, in build/packages.
package: build
	cd build/release && cpack -G DEB -B ../packages

# The documentation as a site, in build/site.
docs:
	python3 -m venv build/docs-venv
	build/docs-venv/bin/pip install --quiet --requirement tests/requirements-docs.txt
	build/docs-venv/bin/mkdocs build --strict

# A wheel for PYTHON (python3), PYTHONS and the torches TORCH, in build/wheels, installed and used.
wheel:
	scripts/make-wheel.sh

# Sources, packages, wheel, bill of materials, notes and checksums, in build/release-VERSION.
release:
	scripts/make-release.sh

format: deps
	scripts/format.sh

lint: deps
	scripts/lint.sh

deps:
	scripts/install-deps.sh

clean:
	rm -rf build
