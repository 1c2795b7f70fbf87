"""Too little memory after the start, also in a worker thread: one line, exit code 1, nothing
written."""
import os
import resource
import subprocess

import program
from fault_case import FaultCase, png_bytes
from program import write_npy
from test_labels import field

MESSAGE = ("out of memory; try a smaller --batch or fewer --threads, or allow more memory (ulimit -v)")
LARGE = 1 << 42


class Memory(FaultCase):
    def memory_of(self, command):
        """The most address space the command takes under a limit, however high."""
        process = program.start(*command, cwd=self.folder,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (LARGE, LARGE)))
        most = 0
        while process.poll() is None:
            with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
                for line in file:
                    if line.startswith("VmPeak:"):
                        most = int(line.split()[1]) << 10
        self.assertEqual(process.returncode, 0)
        return most

    def test_out_of_memory(self):
        """Enough to start and to run some rows, not enough for a batch of all."""
        rows = self.features("calibration.csv")
        write_npy(self.path("small.npy"), rows[:100])
        write_npy(self.path("x.npy"), rows * 600)
        run = ("run", self.made("model.onnx"), "--out", "out/y.npy", "--data")
        limit = (resource.RLIMIT_AS, self.memory_of((*run, "small.npy", "--threads", 1)) + (64 << 20))
        os.remove(self.path("out/y.npy"))
        predict = ("predict", self.made("calibrated.onnx"), "--out", "out/i.npy", "--quiet",
                   "--data")
        for command in (run, predict):
            with self.subTest(command[0]):
                done = self.run_limited((*command, "x.npy", "--batch", 1 << 24), limit)
                self.assertEqual(self.check_line(done), MESSAGE)
                self.check_nothing_written()

    def test_out_of_memory_in_a_worker(self):
        """Images are decoded by threads of their own."""
        self.write("large.png", png_bytes(11000, 11000))
        self.write("small.png", png_bytes(16, 16))
        self.write("net.onnx", relu_network())
        for name in ("large", "small"):
            self.write(name + ".csv", f"file\n{name}.png\n")
        run = ("run", "net.onnx", "--images", "--resize", "8", "--crop", "8", "--out", "out/y.npy",
               "--data")
        limit = (resource.RLIMIT_AS, self.memory_of((*run, "small.csv", "--threads", 1)) + (64 << 20))
        os.remove(self.path("out/y.npy"))
        done = self.run_limited((*run, "large.csv"), limit)
        self.assertEqual(self.check_line(done), MESSAGE)
        self.check_nothing_written()
        self.assertEqual(self.run_limited((*run, "large.csv")).returncode, 0)


def relu_network():
    """y = Relu(x) for images [N, 3, 8, 8], as an ONNX file."""
    def value(number, name):
        sizes = b"".join([field(1, field(2, "N"))] + [field(1, field(1, size)) for size in (3, 8, 8)])
        return field(number, field(1, name) + field(2, field(1, field(1, 1) + field(2, sizes))))

    node = field(1, field(1, "x") + field(2, "y") + field(4, "Relu"))
    graph = node + field(2, "g") + value(11, "x") + value(12, "y")
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


if __name__ == "__main__":
    program.main()
