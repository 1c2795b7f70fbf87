"""Killing `calibrate` with SIGKILL at any moment leaves the old artifact or the new one, whole.

Same seed, same bytes: so the file must be equal to one of two that are known. Half of the 50 moments
are drawn from the whole run; the other half comes as soon as a temporary file is seen, which is while
the artifact is being written."""
import os
import random
import subprocess
import time
import unittest

import program
from program import TARGET

MOMENTS = 50


class Kill(program.Case):
    def command(self, *arguments):
        return ("calibrate", self.made("model.onnx"), "--data", self.made("calibration.csv"),
                "--target", TARGET, "--out", "c.onnx", "--threads", "1", *program.scored(*arguments))

    def artifact(self, *arguments):
        self.fcp(*self.command(*arguments), threads=None)
        return self.bytes_of("c.onnx")

    def temporaries(self):
        return [name for name in os.listdir(self.folder) if name != "c.onnx"]

    def test_old_or_new_never_broken(self):
        new = self.artifact("--score", "linearized")
        begin = time.monotonic()
        old = self.artifact("--score", "residual")
        length = time.monotonic() - begin
        self.assertNotEqual(old, new)
        chance = random.Random(1)
        seen = {"old": 0, "new": 0, "in writing": 0}
        for moment in range(MOMENTS):
            self.write("c.onnx", old)
            process = program.start(*self.command("--score", "linearized", "--quiet"),
                                    cwd=self.folder, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)
            if moment % 2 == 0:
                time.sleep(chance.uniform(0, 1.2 * length))
            else:
                while process.poll() is None and not self.temporaries():
                    pass
            process.kill()
            process.wait()
            found = self.bytes_of("c.onnx")
            self.assertIn(found, (old, new), f"moment {moment}: {len(found)} bytes of neither")
            seen["old" if found == old else "new"] += 1
            for name in self.temporaries():
                seen["in writing"] += 1
                self.assertTrue(name.startswith(".c.onnx."), name)
                os.remove(self.path(name))
        print(seen)
        self.assertGreater(seen["old"], 0)
        # And what is left works.
        self.fcp("predict", "c.onnx", "--data", self.made("test.csv"))


if __name__ == "__main__":
    program.main()
