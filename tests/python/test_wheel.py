"""What a wheel is made of, as `cmake --install --component python` lays it out: the package and the
program `fcp` as a script. pip itself, which would compile everything again, is not run."""

import os
import pathlib
import re
import subprocess
import sys

import fcp
import networks

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Wheel(networks.Case):
    def setUp(self):
        super().setUp()
        build = os.environ.get("FCP_BUILD")
        if not build:
            self.skipTest("FCP_BUILD does not name the build folder")
        self.run_command(
            os.environ.get("FCP_CMAKE", "cmake"), "--install", build, "--component", "python",
            "--prefix", self.folder,
        )  # fmt: skip

    def run_command(self, *command, **environment):
        done = subprocess.run(
            command, env={**os.environ, **environment}, cwd=self.folder, capture_output=True,
            text=True, timeout=200,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, f"{command}: {done.stderr}")
        return done.stdout

    def test_the_program_runs(self):
        said = self.run_command(self.path("bin/fcp"), "--version")
        self.assertIn(fcp.__version__, said)
        self.assertIn("calibrate", self.run_command(self.path("bin/fcp"), "--help"))
        self.assertEqual(self.run_command(self.path("bin/fcp-core"), "--version"), said)

    def test_the_package_is_whole(self):
        program = "import fcp, os; print(os.path.dirname(fcp.__file__), *fcp.__all__)"
        said = self.run_command(sys.executable, "-B", "-c", program, PYTHONPATH=self.folder)
        self.assertEqual(said.split(), [self.path("fcp"), *fcp.__all__])
        self.assertTrue(os.path.exists(self.path("fcp/py.typed")))
        self.assertEqual(sorted(os.listdir(self.folder)), ["bin", "fcp"])

    def test_pip_builds_both(self):
        settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        targets = re.search(r"^cmake.targets = \[(.*)\]", settings, re.MULTILINE)[1]
        self.assertEqual(targets, '"_fcp", "fcp_program"')
        self.assertIn('install.components = ["python"]', settings)


if __name__ == "__main__":
    networks.main()
