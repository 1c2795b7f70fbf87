# Thin: every target is one or two commands that can be typed by hand.
.PHONY: demo test slow asan fuzz bench format lint deps build clean

JOBS ?= $(shell nproc)

demo: build
	build/release/bin/fcp demo --out build/demo

test: build
	cd build/release && ctest --output-on-failure --label-exclude slow

slow: build
	cd build/release && ctest --output-on-failure --label-regex slow

build: deps
	cmake --preset release $(CMAKE_OPTIONS)
	cmake --build --preset release --parallel $(JOBS)

asan: deps
	cmake --preset asan $(CMAKE_OPTIONS)
	cmake --build --preset asan --parallel $(JOBS)
	cd build/asan && ctest --output-on-failure --label-exclude 'slow|plain'

fuzz: deps
	cmake --preset fuzz $(CMAKE_OPTIONS)
	cmake --build --preset fuzz --parallel $(JOBS)
	fuzz/run.sh build/fuzz 60

bench: deps
	cmake --preset bench $(CMAKE_OPTIONS)
	cmake --build --preset bench --parallel $(JOBS)
	benchmarks/run.sh build/bench

format: deps
	scripts/format.sh

lint: deps
	scripts/lint.sh

deps:
	scripts/install-deps.sh

clean:
	rm -rf build
