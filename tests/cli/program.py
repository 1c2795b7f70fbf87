"""Runs the program as a user would, and reads what it leaves behind. Standard library only, so that
any Python will do. The path of the program is the first argument of each test file."""
import ast
import atexit
import csv
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
LONGEST = 600  # seconds for one command, sanitizers and a busy machine included
TARGET = "minutes"  # of the demo's data

ENVIRONMENT = dict(os.environ, LC_ALL="C")


def start(*arguments, **options):
    return subprocess.Popen([PROGRAM, *map(str, arguments)], env=ENVIRONMENT, **options)


def scored(*arguments):
    """The arguments of `calibrate`, with the score `nested` where they name none: these tests know
    its radii, what it refuses, and that it leaves no rows out."""
    return arguments if "--score" in arguments else (*arguments, "--score", "nested")


class Case(unittest.TestCase):
    """A test with a folder of its own, in which the program runs; `demo` holds the demo's files."""

    demo = None
    parent = None  # of the test's folder; None: where temporary files are

    @classmethod
    def setUpClass(cls):
        cls.demo = demo_folder()

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="fcp-cli-", dir=self.parent)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return name

    def made(self, name):
        """A file of the demo, by an absolute path."""
        return os.path.join(self.demo, name)

    def run_program(self, *arguments, threads=1, stdout=subprocess.PIPE):
        if threads is not None and arguments[0] not in ("show", "split", "state"):  # they take none
            arguments += ("--threads", threads)
        return subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, env=ENVIRONMENT,
                              stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=LONGEST)

    def fcp(self, *arguments, **options):
        """Runs a command that must succeed; its standard output."""
        done = self.run_program(*arguments, **options)
        self.assertEqual(done.returncode, 0, f"{arguments}: {done.stderr}")
        return done.stdout

    def calibrate(self, out, *arguments, data="calibration.csv"):
        return self.fcp("calibrate", self.made("model.onnx"), "--data", self.made(data), "--target",
                        TARGET, "--out", out, *scored(*arguments))

    def predict(self, model, *arguments, data="test.csv", **options):
        """Rows (prediction, lower, upper) of the first output."""
        text = self.fcp("predict", model, "--data", self.made(data), *arguments, **options)
        return parse_csv(text)[1]

    def truth(self, name="test.csv"):
        header, rows = read_csv(self.made(name))
        return [row[header.index(TARGET)] for row in rows]

    def features(self, name="test.csv"):
        header, rows = read_csv(self.made(name))
        skip = header.index(TARGET)
        return [row[:skip] + row[skip + 1:] for row in rows]

    def bytes_of(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def assert_close(self, left, right, tolerance=1e-6):
        """Equal tables of numbers, up to a relative tolerance."""
        self.assertEqual(len(left), len(right))
        for i, (a, b) in enumerate(zip(left, right)):
            for x, y in zip(a, b, strict=True):
                self.assertTrue(x == y or abs(x - y) <= tolerance * max(abs(x), abs(y)),
                                f"row {i}: {a} and {b}")


_demo = None


def demo_folder():
    """The files of `fcp demo`, made once for all tests of a run; but the network is the paper's small
    one, so that the tests are fast and its layers are known, and it is calibrated by `nested`."""
    global _demo
    if _demo is None:
        _demo = tempfile.mkdtemp(prefix="fcp-cli-demo-")
        atexit.register(shutil.rmtree, _demo, ignore_errors=True)
        # The rows are there when the first command is shown; the rest is made below.
        process = start("demo", "--out", _demo, "--threads", "1", stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL, text=True)
        process.stdout.readline()
        process.kill()
        process.communicate()
        calibrated = ["--data", "calibration.csv", "--target", TARGET, "--score", "nested", "--cut",
                      "auto", "--out", "calibrated.onnx"]
        test = ["calibrated.onnx", "--data", "test.csv"]
        for command in (["train", "train.csv", "--target", TARGET, "--recipe", "paper", "--epochs",
                         "40", "--out", "model.onnx"],
                        ["calibrate", "model.onnx", *calibrated],
                        ["predict", *test, "--out", "intervals.csv"],
                        ["evaluate", *test, "--target", TARGET, "--report", "report.html"]):
            subprocess.run([PROGRAM, *command, "--threads", "1", "--quiet"], env=ENVIRONMENT,
                           cwd=_demo, check=True, stdout=subprocess.DEVNULL, timeout=LONGEST)
    return _demo


def parse_csv(text):
    """The header and the rows as numbers."""
    lines = list(csv.reader(text.splitlines()))
    return lines[0], [[float(cell) for cell in line] for line in lines[1:]]


def read_csv(path):
    with open(path, encoding="utf-8") as file:
        return parse_csv(file.read())


def write_npy(path, rows):
    """float32 [N, D], or [N] where the rows are plain numbers."""
    flat = isinstance(rows[0], (int, float))
    values = rows if flat else [value for row in rows for value in row]
    shape = f"({len(rows)},)" if flat else f"({len(rows)}, {len(rows[0])})"
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        file.write(struct.pack(f"<{len(values)}f", *values))


def read_npy(path):
    """The shape and the numbers of a float32 file."""
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<H", data[8:10])
    header = ast.literal_eval(data[10:10 + length].decode())
    assert header["descr"] == "<f4" and not header["fortran_order"], header
    body = data[10 + length:]
    return header["shape"], struct.unpack(f"<{len(body) // 4}f", body)


def main():
    sys.argv[1:] = sys.argv[2:]
    unittest.main(verbosity=2)
