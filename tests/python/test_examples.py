"""Runs the example of the Python package as a user would, and looks at what it says and leaves."""
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import networks

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"


class Examples(networks.Case):
    def run_example(self, name):
        environment = dict(os.environ, MPLBACKEND="agg", MPLCONFIGDIR=self.folder)
        done = subprocess.run(
            [sys.executable, "-B", FOLDER / name], cwd=self.folder, env=environment,
            capture_output=True, text=True, timeout=240,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_every_example_is_run(self):
        self.assertEqual([path.name for path in FOLDER.glob("*.py")], ["torch_to_plot.py"])

    def test_torch_to_plot(self):
        said = self.run_example("torch_to_plot.py")
        found = re.findall(r"(residual|nested) +covers ([\d.]+) %", said)
        self.assertEqual([name for name, _ in found], ["residual", "nested"])
        # 1,000 test rows and at least 1,200 calibration rows: the deviation of the covered share is
        # below 0.013; six of them are missed by chance once in a billion times.
        for _, covered in found:
            self.assertLess(abs(float(covered) - 90), 7.8)
        self.assertIn("['output', 'lower', 'upper']", said)
        self.assertTrue(os.path.exists(self.path("intervals.onnx")))
        drawn = importlib.util.find_spec("matplotlib") is not None
        self.assertEqual(os.path.exists(self.path("intervals.png")), drawn)


if __name__ == "__main__":
    networks.main()
