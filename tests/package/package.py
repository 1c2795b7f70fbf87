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


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="fcp-package-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def demo(self):
        run(PROGRAM, "demo", "--out", self.path("demo"), "--threads", 1)
        return self.path("demo")


def main():
    sys.argv[1:] = sys.argv[3:]
    unittest.main(verbosity=2)
