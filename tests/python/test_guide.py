"""Runs docs/tables.md from top to bottom in one folder: commands by the shell, Python in one
session, and the C++ program, which CMake has compiled from the page."""

import contextlib
import io
import os
import pathlib
import subprocess

import numpy as np

import networks
from code_blocks import code_blocks

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "tables.md"
COMPILED = os.environ.get("FCP_GUIDE_PROGRAM", "")


class Guide(networks.Case):
    def shell(self, command):
        path = os.path.dirname(networks.PROGRAM) + os.pathsep + os.environ["PATH"]
        done = subprocess.run(
            command, shell=True, cwd=self.folder, env=dict(os.environ, PATH=path),
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, f"{command}: {done.stderr}")
        return done.stdout

    def test_every_block_runs(self):
        if not networks.PROGRAM:
            self.skipTest("FCP_PROGRAM does not name the program fcp")
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        session, printed = {"__name__": "guide"}, io.StringIO()
        run = {"console": 0, "python": 0, "cpp": 0}
        for language, text in code_blocks(PAGE):
            run[language] += 1
            if language == "console":
                for line in text.splitlines():
                    self.assertTrue(line.startswith("$ "), line)
                    self.shell(line[2:])
            elif language == "python":
                with contextlib.redirect_stdout(printed):
                    exec(compile(text, str(PAGE), "exec"), session)
            else:
                said = self.shell(COMPILED)
                self.assertEqual(said.count(" in ["), 3)
                self.assertIn("radius ", said)
        self.assertGreaterEqual(run["console"], 6)
        self.assertGreaterEqual(run["python"], 6)
        self.assertEqual(run["cpp"], 1)
        self.assertIn("X has 5 features, but", printed.getvalue())
        # 1,200 test rows and 2,400 calibration rows: a deviation of 0.011, six of which are missed
        # by chance once in a billion times.
        self.assertLess(abs(session["evaluation"]["coverage"] - 0.9), 0.066)
        for name in ("report.html", "intervals.onnx", "checked.csv", "from_cpp.onnx"):
            self.assertGreater(os.path.getsize(name), 0)
        table = np.genfromtxt("intervals.csv", delimiter=",", names=True)
        self.assertEqual(table.dtype.names, ("prediction", "lower", "upper"))
        self.assertEqual(len(table), 1200)


if __name__ == "__main__":
    networks.main()
