# Thin: every target is one or two commands that can be typed by hand.
.PHONY: demo test slow asan tsan fuzz bench package format lint deps build clean

JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60

demo: build
	build/release/bin/fcp demo --out build/demo

test: build
	cd build/release && ctest --parallel $(JOBS) --output-on-failure --label-exclude slow

slow: build
	cd build/release && ctest --parallel $(JOBS) --output-on-failure --label-regex slow

build: deps
	cmake --preset release $(CMAKE_OPTIONS)
	cmake --build --preset release --parallel $(JOBS)

asan: deps
	cmake --preset asan $(CMAKE_OPTIONS)
	cmake --build --preset asan --parallel $(JOBS)
	cd build/asan && ctest --parallel $(JOBS) --output-on-failure --label-exclude 'slow|plain'

# Under setarch -R: the sanitizer wants its addresses where randomization may have put others.
tsan: deps
	cmake --preset tsan $(CMAKE_OPTIONS)
	cmake --build --preset tsan --parallel $(JOBS)
	cd build/tsan && setarch $$(uname -m) -R ctest --parallel $(JOBS) --output-on-failure \
	  --tests-regex '^(base|data|distributed)_test$$'

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

format: deps
	scripts/format.sh

lint: deps
	scripts/lint.sh

deps:
	scripts/install-deps.sh

clean:
	rm -rf build
