"""Too little memory, at the start and later, also in a worker thread: one line, exit code 1, nothing
written, and no command that waits for memory for ever."""
import os
import resource
import subprocess

import program
from fault_case import FaultCase, png_bytes
from program import write_npy
from test_labels import field

MESSAGE = ("out of memory; try a smaller --batch or fewer --threads, or allow more memory (ulimit -v)")
SOON = 60  # seconds, on a busy machine
LARGE = 1 << 42
STEP = 40 << 20


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

    def test_a_ladder_of_limits(self):
        """From far too little to enough: no command waits for memory for ever. With little the program
        cannot be loaded, or libraries end it before main() begins (docs/trust.md); else there is fcp's
        own line, or the result."""
        rows = self.features("test.csv")
        write_npy(self.path("x.npy"), rows[:100])
        calibrated = self.made("calibrated.onnx")
        for threads in (1, 2):
            commands = {"y.npy": ("run", self.made("model.onnx"), "--data", "x.npy", "--quiet"),
                        "i.npy": ("predict", calibrated, "--data", "x.npy", "--quiet")}
            for name, command in commands.items():
                command = (*command, "--out", "out/" + name)
                self.assertEqual(self.run_limited(command, threads=threads).returncode, 0)
                whole = self.bytes_of("out/" + name)
                os.remove(self.path("out/" + name))
                most = self.memory_of((*command, "--threads", threads))
                os.remove(self.path("out/" + name))
                heard = False
                for limit in range(most // 4, most + 2 * STEP, STEP):
                    with self.subTest(command[0], threads=threads, limit=limit):
                        done = self.run_limited(command, (resource.RLIMIT_AS, limit), threads=threads,
                                                timeout=SOON)
                        if done.returncode == 0:
                            self.assertEqual(self.bytes_of("out/" + name), whole)
                            os.remove(self.path("out/" + name))
                        elif done.stderr.startswith("fcp: "):
                            heard = True
                            self.assertEqual(self.check_line(done), MESSAGE)
                        else:
                            self.assertRegex(done.stderr, "shared (object|libraries)|bad_alloc|OpenBLAS")
                        self.check_nothing_written()
                self.assertEqual(done.returncode, 0)
                self.assertTrue(heard)

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
