"""What the tests of this folder share: the build, its program, and a folder that goes away."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = os.path.abspath(sys.argv[1])
PROGRAM = os.path.abspath(sys.argv[2])
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run(*arguments, **options):
    """The standard output of a command that must succeed."""
    done = subprocess.run([str(argument) for argument in arguments], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, arguments))}: {done.returncode}\n{done.stdout}")
    return done.stdout


def cached(name):
    """A variable of the build's cache."""
    with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as file:
        for line in file:
            if line.startswith(name + ":"):
                return line.split("=", 1)[1].strip()
    return ""


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="fcp-package-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def demo(self):
        run(PROGRAM, "demo", "--out", self.path("demo"), "--threads", 1)
        return self.path("demo")

    def run_shortest(self, built, demo, program):
        """Runs what was built of examples/1_intervals.cc, in a folder with the files it looks for."""
        run(program, "train", os.path.join(demo, "train.csv"), "--target", "minutes", "--recipe",
            "paper", "--out", self.path("model.onnx"), "--quiet")
        shutil.copy(os.path.join(demo, "calibration.csv"), self.path("cal.csv"))
        lower, upper = map(float, run(built, cwd=self.folder).split())
        self.assertLess(lower, upper)


def main():
    sys.argv[1:] = sys.argv[3:]
    unittest.main(verbosity=2)
