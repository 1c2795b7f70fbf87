"""What the tests of faults share: commands under limits, and the one line they fail with."""
import os
import resource
import struct
import subprocess
import zlib

import program
from program import TARGET


class FaultCase(program.Case):
    """Commands write into the folder `out`, which is empty at first."""

    def setUp(self):
        super().setUp()
        os.mkdir(self.path("out"))

    def writers(self, folder="out"):
        """One command for each verb that writes a file, by verb: the command, and the file."""
        calibrated = (self.made("calibrated.onnx"), "--data", self.made("test.csv"))
        files = {verb: f"{folder}/{name}" for verb, name in (
            ("train", "m.onnx"), ("run", "y.npy"), ("calibrate", "c.onnx"), ("check", "k.csv"),
            ("predict", "i.csv"), ("evaluate", "r.html"), ("export", "e.onnx"))}
        commands = {
            "train": (self.made("train.csv"), "--target", TARGET, "--epochs", 2, "--out"),
            "run": (self.made("model.onnx"), "--data", self.made("test.csv"), "--out"),
            "calibrate": (self.made("model.onnx"), "--data", self.made("calibration.csv"),
                          "--target", TARGET, "--score", "nested", "--out"),
            "check": (*calibrated, "--target", TARGET, "--out"),
            "predict": (*calibrated, "--out"),
            "evaluate": (*calibrated, "--target", TARGET, "--report"),
            "export": (self.made("calibrated.onnx"), "--out"),
        }
        return {verb: ((verb, *command, files[verb]), files[verb])
                for verb, command in commands.items()}

    def run_limited(self, arguments, limit=None, stdout=subprocess.PIPE, threads=1,
                    timeout=program.LONGEST):
        """Runs a command under a limit (resource, bytes)."""
        def restrict():
            if limit is not None:
                resource.setrlimit(limit[0], (limit[1], limit[1]))
        if arguments[0] not in ("doctor", "completion", "man"):
            arguments = (*arguments, "--threads", threads)
        return subprocess.run([program.PROGRAM, *map(str, arguments)], cwd=self.folder,
                              env=program.ENVIRONMENT, stdout=stdout, stderr=subprocess.PIPE,
                              text=True, timeout=timeout, preexec_fn=restrict, check=False)

    def check_line(self, done, code=1):
        """The one line that a failed command says, without the program's name."""
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("fcp: "), done.stderr)
        return done.stderr[len("fcp: "):].rstrip("\n")

    def check_untouched(self, file, content=b"old"):
        self.assertEqual(os.listdir(self.path(os.path.dirname(file))), [os.path.basename(file)])
        self.assertEqual(self.bytes_of(file), content)

    def check_nothing_written(self):
        self.assertEqual(os.listdir(self.path("out")), [])


def png_bytes(height, width):
    """A grey picture, packed well."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))

    lines = zlib.compress((b"\0" + bytes(width)) * height)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", lines) + chunk(b"IEND", b""))
