"""Ctrl-C and SIGTERM during long work: the exit code a shell expects, no partial or temporary file, and
what stood under the output's name stays."""
import os
import pty
import select
import signal
import time
import unittest

import program
from program import TARGET


class Interrupt(program.Case):
    def grown(self, name, times):
        """The demo's file with its rows repeated, so that the work takes long."""
        with open(self.made(name), "rb") as file:
            header, rows = file.read().split(b"\n", 1)
        self.write(name, header + b"\n" + rows * times)
        return name

    def interrupt(self, *arguments, number=signal.SIGINT):
        """Starts the command on a terminal, sends the signal once its progress bar is seen, and
        gives the exit code and what the terminal showed."""
        leader, follower = pty.openpty()
        process = program.start(*arguments, "--threads", "1", cwd=self.folder, stderr=follower,
                                stdout=follower)
        os.close(follower)
        shown = b""
        sent = False
        deadline = time.monotonic() + program.LONGEST
        try:
            while time.monotonic() < deadline:
                if select.select([leader], [], [], 1)[0]:
                    try:
                        more = os.read(leader, 65536)
                    except OSError:  # the other side is closed: the program has ended
                        break
                    if not more:
                        break
                    shown += more
                if not sent and b"%" in shown:
                    process.send_signal(number)
                    sent = True
            self.assertTrue(sent, f"the work was not seen to begin: {shown}")
            return process.wait(timeout=program.LONGEST), shown.decode()
        finally:
            process.kill()
            process.wait()
            os.close(leader)

    def check_stopped(self, result, code):
        self.assertEqual(result[0], code, result[1])
        last = result[1].replace("\033[K", "").splitlines()[-1]
        self.assertTrue(last.endswith("fcp: interrupted; nothing was written"), result[1])

    def test_training(self):
        self.write("m.onnx", "old")
        self.grown("train.csv", 40)
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(code):
                result = self.interrupt("train", "train.csv", "--target", TARGET, "--epochs", 500,
                                        "--out", "m.onnx", number=number)
                self.check_stopped(result, code)
                self.assertEqual(sorted(os.listdir(self.folder)), ["m.onnx", "train.csv"])
                self.assertEqual(self.bytes_of("m.onnx"), b"old")

    def long_npy(self, times=60):
        """Data whose number of rows is known at once, so that there is a bar with a share."""
        program.write_npy(self.path("x.npy"), self.features("calibration.csv") * times)
        program.write_npy(self.path("y.npy"), self.truth("calibration.csv") * times)

    def test_calibration(self):
        self.write("c.onnx", "old")
        self.long_npy()
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(code):
                result = self.interrupt("calibrate", self.made("model.onnx"), "--data", "x.npy",
                                        "--target", "y.npy", "--batch", 200, "--score", "nested",
                                        "--bound", "crown-ibp", "--out", "c.onnx", number=number)
                self.check_stopped(result, code)
                self.assertEqual(sorted(os.listdir(self.folder)), ["c.onnx", "x.npy", "y.npy"])
                self.assertEqual(self.bytes_of("c.onnx"), b"old")

    def test_prediction_leaves_no_temporary(self):
        # By now rows have been written, to a file under another name.
        self.write("i.csv", "old")
        self.long_npy(200)
        result = self.interrupt("predict", self.made("calibrated.onnx"), "--data", "x.npy",
                                "--batch", 20, "--out", "i.csv")
        self.check_stopped(result, 130)
        self.assertEqual(sorted(os.listdir(self.folder)), ["i.csv", "x.npy", "y.npy"])
        self.assertEqual(self.bytes_of("i.csv"), b"old")


if __name__ == "__main__":
    program.main()
