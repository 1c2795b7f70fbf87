"""Runs the pages of docs/ that have blocks, each from top to bottom and all in one folder: commands
by the shell, Python in one session, and the C++ program, which CMake has compiled from its page.
Then the first screen of README.md, in the same session."""

import contextlib
import io
import os
import pathlib
import re
import shutil
import subprocess

import numpy as np

import networks
from code_blocks import code_blocks

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
PAGES = ("get_started", "tables", "networks", "classification", "several_outputs", "python", "cpp")
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

    def run_page(self, page, session):
        """The number of the page's blocks in each language."""
        run = {"console": 0, "python": 0, "cpp": 0}
        for language, text in code_blocks(page):
            if language not in run:
                continue
            run[language] += 1
            if language == "console":
                for line in text.splitlines():
                    self.assertTrue(line.startswith("$ "), line)
                    self.shell(line[2:])
            elif language == "python":
                exec(compile(text, str(page), "exec"), session)
            else:
                said = self.shell(COMPILED)
                self.assertEqual(said.count(" in ["), 3)
                self.assertIn("radius ", said)
        return run

    def run_readme(self, session):
        """The commands but serve, on the demo's tables, and the Python block."""
        blocks = code_blocks(DOCS.parent / "README.md")
        commands = re.findall(r"^\$ (fcp (?!serve).*)$", blocks[0][1], re.M)
        self.assertEqual([command.split()[1] for command in commands], ["fit", "predict"])
        for name in ("deliveries.csv", "new.csv"):
            shutil.copy(f"demo/{name}", name)
        said = self.shell(commands[0]).splitlines()[0]
        # Numbers may differ a little on another machine or build, and so may the lowest coverage.
        words = [re.sub(r"\d[\d.,]*", "#", line.split("; lowest")[0])
                 for line in (said, blocks[0][1].splitlines()[1])]
        self.assertEqual(words[0], words[1])
        self.shell(commands[1])
        session["forest"] = session["rule"]
        (python,) = (text for language, text in blocks if language == "python")
        exec(compile(python, "README.md", "exec"), session)
        self.assertEqual(session["intervals"].shape, (1200, 2, 2))

    def test_every_block_runs(self):
        if not networks.PROGRAM:
            self.skipTest("FCP_PROGRAM does not name the program fcp")
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        session, printed = {"__name__": "guide"}, io.StringIO()
        found = {}
        for name in PAGES:
            with self.subTest(name), contextlib.redirect_stdout(printed):
                found[name] = self.run_page(DOCS / f"{name}.md", session)
        self.assertEqual({name for name in PAGES if not found[name]["console"]}, set())
        self.assertGreaterEqual(found["python"]["python"], 6)
        self.assertEqual(found["cpp"]["cpp"], 1)
        self.assertIn("X has 5 features, but", printed.getvalue())
        # 1,200 test rows and 2,400 calibration rows: a deviation of 0.011, six of which are missed
        # by chance once in a billion times.
        self.assertLess(abs(session["evaluation"]["coverage"] - 0.9), 0.066)
        for name in ("report.html", "intervals.onnx", "checked.csv", "sets.csv", "from_cpp.onnx"):
            self.assertGreater(os.path.getsize(name), 0)
        table = np.genfromtxt("intervals.csv", delimiter=",", names=True)
        self.assertEqual(table.dtype.names, ("prediction", "lower", "upper"))
        self.assertEqual(len(table), 1200)
        self.run_readme(session)


if __name__ == "__main__":
    networks.main()
