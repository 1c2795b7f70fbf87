"""The recipe for C++ with ONNX Runtime, examples/5_onnxruntime.cc: it compiles without fcp, and says
what `fcp predict` says."""
import os
import subprocess
import sys

import package
from package import PROGRAM, SOURCE, run

HEADERS, LIBRARY, COMPILER = sys.argv[3:6]
sys.argv[3:] = []


class OnnxRuntime(package.Case):
    def test_the_interval_of_a_row(self):
        built = self.path("row")
        run(COMPILER, "-std=c++17", os.path.join(SOURCE, "examples", "5_onnxruntime.cc"), "-I",
            HEADERS, LIBRARY, "-Wl,-rpath," + os.path.dirname(LIBRARY), "-o", built)
        demo = self.demo()
        exported = self.path("exported.onnx")
        run(PROGRAM, "export", os.path.join(demo, "model.onnx"), "--alpha", "0.1", "--out", exported)
        with open(os.path.join(demo, "test.csv"), encoding="utf-8") as file:
            rows = [line.strip().split(",")[:-1] for line in file][1:4]
        told = run(PROGRAM, "predict", os.path.join(demo, "model.onnx"), "--data",
                   os.path.join(demo, "test.csv"), "--alpha", "0.1", "--quiet").splitlines()[1:4]
        for row, wanted in zip(rows, told, strict=True):
            done = subprocess.run([built, exported, *row], capture_output=True, text=True, check=True)
            lower, upper = map(float, done.stdout.split())  # Debian's says something on stderr
            _, wanted_lower, wanted_upper = map(float, wanted.split(","))
            self.assertAlmostEqual(lower, wanted_lower, delta=1e-4 * (1 + abs(wanted_lower)))
            self.assertAlmostEqual(upper, wanted_upper, delta=1e-4 * (1 + abs(wanted_upper)))
        bad = subprocess.run([built, "none.onnx"], capture_output=True, text=True, check=False)
        self.assertEqual((bad.returncode, bad.stdout), (1, ""))
        self.assertIn("none.onnx", bad.stderr)


if __name__ == "__main__":
    if not os.path.isdir(HEADERS) or not os.path.exists(LIBRARY):
        print("skipped: there is no ONNX Runtime for C++ here (Debian 13: libonnxruntime-dev)")
        sys.exit(77)
    package.main()
