"""Faults from outside, verb by verb: a full disk, a read-only one, files cut off or changed while they
are read, signals, too little memory, numbers that are none, devices that are not there. Each time: one
line that says what happened, the right exit code, and under the output's name what was there before."""
import gzip
import os
import random
import resource
import signal
import struct
import subprocess
import threading
import time
import zipfile
import zlib

import program
from program import TARGET, write_npy

MOMENTS = 3  # at which each verb is ended by each signal


class Faults(program.Case):
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
                          "--target", TARGET, "--out"),
            "check": (*calibrated, "--target", TARGET, "--out"),
            "predict": (*calibrated, "--out"),
            "evaluate": (*calibrated, "--target", TARGET, "--report"),
            "export": (self.made("calibrated.onnx"), "--out"),
        }
        return {verb: ((verb, *command, files[verb]), files[verb])
                for verb, command in commands.items()}

    def others(self):
        """One command for each verb that only prints, or fills a folder."""
        return {
            "inspect": ("inspect", self.made("model.onnx")),
            "reproduce": ("reproduce", "regression", "--sets", "synthetic", "--seeds", 1,
                          "--methods", "residual", "--epochs", 1),
            "demo": ("demo", "--out", "out"),
            "doctor": ("doctor",),
            "completion": ("completion", "bash"),
            "man": ("man",),
        }

    def run_limited(self, arguments, limit=None, stdout=subprocess.PIPE, threads=1):
        """Runs a command under a limit (resource, bytes)."""
        def restrict():
            if limit is not None:
                resource.setrlimit(limit[0], (limit[1], limit[1]))
        if arguments[0] not in ("doctor", "completion", "man"):
            arguments = (*arguments, "--threads", threads)
        return subprocess.run([program.PROGRAM, *map(str, arguments)], cwd=self.folder,
                              env=program.ENVIRONMENT, stdout=stdout, stderr=subprocess.PIPE,
                              text=True, timeout=program.LONGEST, preexec_fn=restrict, check=False)

    def check_line(self, done, code=1):
        """The one line that a failed command says, without the program's name."""
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("fcp: "), done.stderr)
        return done.stderr[len("fcp: "):].rstrip("\n")

    def check_untouched(self, file, content=b"old"):
        self.assertEqual(os.listdir(self.path(os.path.dirname(file))), [os.path.basename(file)])
        self.assertEqual(self.bytes_of(file), content)

    # Disks.

    def test_files_may_not_grow(self):
        """As on a full disk or at a quota: no file may be longer than some bytes."""
        for verb, (command, file) in self.writers().items():
            with self.subTest(verb):
                self.write(file, "old")
                done = self.run_limited((*command, "--quiet"), (resource.RLIMIT_FSIZE, 2000))
                self.assertEqual(self.check_line(done), file + ": cannot write: File too large")
                self.check_untouched(file)
                os.remove(self.path(file))
        done = self.run_limited((*self.others()["demo"], "--quiet"), (resource.RLIMIT_FSIZE, 2000))
        self.assertEqual(self.check_line(done), "out/train.csv: cannot write: File too large")
        self.assertEqual(os.listdir(self.path("out")), [])

    def mount(self, *options):
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join(options), "fcp-test",
                               self.path("out")], stderr=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            self.skipTest("a file system of its own needs the right to mount one")
        self.addCleanup(subprocess.run, ["umount", self.path("out")], check=False)

    def test_full_disk(self):
        self.mount("size=8k")
        for verb, (command, file) in self.writers().items():
            with self.subTest(verb):
                self.write(file, "old")
                done = self.run_limited((*command, "--quiet"))
                self.assertEqual(self.check_line(done),
                                 file + ": cannot write: No space left on device")
                self.check_untouched(file)
                os.remove(self.path(file))

    def test_read_only_disk(self):
        self.mount("size=1m")
        for _, file in self.writers().values():
            self.write(file, "old")
        names = sorted(os.listdir(self.path("out")))
        subprocess.run(["mount", "-o", "remount,ro", self.path("out")], check=True)
        for verb, (command, file) in self.writers().items():
            with self.subTest(verb):
                done = self.run_limited((*command, "--quiet"))
                self.assertEqual(self.check_line(done),
                                 file + ": cannot write: Read-only file system")
                self.assertEqual(self.bytes_of(file), b"old")
        done = self.run_limited((*self.others()["demo"], "--quiet"))
        self.assertEqual(self.check_line(done),
                         "out/train.csv: cannot write: Read-only file system")
        self.assertEqual(sorted(os.listdir(self.path("out"))), names)

    def test_standard_output_is_full(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full here")
        for verb, command in self.others().items():
            with self.subTest(verb), open("/dev/full", "w", encoding="utf-8") as full:
                done = self.run_limited(command, stdout=full)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("cannot write to standard output", done.stderr.splitlines()[-1])

    # Signals.

    def end_at(self, command, moment, number):
        process = program.start(*command, cwd=self.folder, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + moment
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        process.send_signal(number)  # to nobody, where it has ended already
        _, stderr = process.communicate(timeout=program.LONGEST)
        return process.returncode, stderr

    def test_signals_leave_old_or_new(self):
        chance = random.Random(3)
        for verb, (command, file) in self.writers().items():
            command = (*command, "--threads", 1, "--quiet")
            begin = time.monotonic()
            self.fcp(*command, threads=None)
            length = time.monotonic() - begin
            whole = (b"old", self.bytes_of(file))
            for number in [signal.SIGTERM, signal.SIGKILL] * MOMENTS:
                with self.subTest(verb, signal=number):
                    self.write(file, "old")
                    code, stderr = self.end_at(command, chance.uniform(0, 1.1 * length), number)
                    # Before main() begins, SIGTERM ends a process as ever; later fcp answers.
                    self.assertIn(code, (0, -number, 128 + number))
                    if code == 128 + number:
                        self.assertEqual(stderr, "fcp: interrupted; nothing was written\n")
                    found = self.bytes_of(file)
                    # A report says how long it took, so two of them differ.
                    new = b"</html>" in found if verb == "evaluate" else found == whole[1]
                    self.assertTrue(found == b"old" or new, f"{len(found)} bytes of neither")
                    left = [name for name in os.listdir(self.path("out"))
                            if name != os.path.basename(file)]
                    if number == signal.SIGTERM:
                        self.assertEqual(left, [])
                    for name in left:
                        os.remove(self.path("out/" + name))
            os.remove(self.path(file))

    def test_signals_to_verbs_that_print(self):
        chance = random.Random(4)
        for verb, command in self.others().items():
            for number in (signal.SIGTERM, signal.SIGKILL):
                with self.subTest(verb, signal=number):
                    code, _ = self.end_at(command, chance.uniform(0, 1), number)
                    self.assertIn(code, (0, -number, 128 + number))
                    # Of the demo's folder: every file that is there is whole.
                    for name in os.listdir(self.path("out")):
                        if name.startswith("."):
                            self.assertEqual(number, signal.SIGKILL)
                            os.remove(self.path("out/" + name))  # not to be found by the next
                        elif name.endswith(".csv"):
                            self.assertTrue(self.bytes_of("out/" + name).endswith(b"\n"))

    # Inputs cut off.

    def test_truncated_inputs(self):
        write_npy(self.path("x.npy"), self.features())
        with open(self.made("test.csv"), "rb") as file:
            self.write("x.csv.gz", gzip.compress(file.read()))
        with zipfile.ZipFile(self.path("x.npz"), "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(self.path("x.npy"), "x.npy")
        with open(self.made("calibrated.onnx"), "rb") as file:
            self.write("c.onnx", file.read())
        self.write("p.png", png_bytes(16, 16))
        predict = ("predict", self.made("calibrated.onnx"), "--data")
        image = ("predict", self.made("calibrated.onnx"), "--images", "--data", "list.csv")
        commands = {"x.npy": (*predict, "cut_x.npy"), "x.csv.gz": (*predict, "cut_x.csv.gz"),
                    "x.npz": (*predict, "cut_x.npz:x"),
                    "c.onnx": ("predict", "cut_c.onnx", "--data", self.made("test.csv")),
                    "p.png": image}
        self.write("list.csv", "file\ncut_p.png\n")
        for name, command in commands.items():
            whole = self.bytes_of(name)
            for share in (0, 0.3, 0.7, 0.999):
                with self.subTest(name, share=share):
                    self.write("cut_" + name, whole[:int(share * len(whole))])
                    message = self.check_line(self.run_limited((*command, "--out", "out/i.csv")))
                    self.assertIn("cut_" + name, message)
                    self.assertEqual(os.listdir(self.path("out")), [])

    def test_truncated_table(self):
        with open(self.made("calibration.csv"), "rb") as file:
            text = file.read()
        self.write("cut.csv", text[:text.rindex(b",", 0, len(text) // 2)])
        done = self.run_limited(("calibrate", self.made("model.onnx"), "--data", "cut.csv",
                                 "--target", TARGET, "--out", "out/c.onnx"))
        self.assertRegex(self.check_line(done), r"^cut\.csv: line \d+: found \d cells, expected 9$")

    # Inputs that change.

    def test_file_changes_while_it_is_read(self):
        with open(self.made("calibration.csv"), "rb") as file:
            header, rows = file.read().split(b"\n", 1)
        self.write("live.csv", header + b"\n" + rows * 60)
        write_npy(self.path("x.npy"), self.features("calibration.csv") * 60)
        write_npy(self.path("y.npy"), self.truth("calibration.csv") * 60)
        stop = threading.Event()

        def keep_writing():
            while not stop.wait(0.002):
                for name in ("live.csv", "x.npy"):
                    os.utime(self.path(name))

        writer = threading.Thread(target=keep_writing)
        writer.start()
        try:
            for data, target in (("live.csv", TARGET), ("x.npy", "y.npy")):
                for verb, arguments in (
                        ("calibrate", (self.made("model.onnx"), "--batch", 500, "--out",
                                       "out/c.onnx")),
                        ("check", (self.made("calibrated.onnx"), "--out", "out/k.csv"))):
                    with self.subTest(verb, data=data):
                        done = self.run_limited((verb, *arguments, "--data", data, "--target",
                                                 target, "--quiet"))
                        self.assertEqual(self.check_line(done),
                                         data + ": was written to while it was read")
                        self.assertEqual(os.listdir(self.path("out")), [])
        finally:
            stop.set()
            writer.join()

    # Memory.

    def memory_of(self, command):
        """The most address space the command takes. With less than it needs to start, libraries
        that fcp stands on hang or abort before main() begins; that is not what is tested here."""
        process = program.start(*command, "--threads", 1, cwd=self.folder,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
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
        limit = (resource.RLIMIT_AS, self.memory_of((*run, "small.npy")) + (64 << 20))
        os.remove(self.path("out/y.npy"))
        predict = ("predict", self.made("calibrated.onnx"), "--out", "out/i.npy", "--quiet",
                   "--data")
        for command in (run, predict):
            with self.subTest(command[0]):
                done = self.run_limited((*command, "x.npy", "--batch", 1 << 24), limit)
                self.assertEqual(self.check_line(done), "out of memory; try a smaller --batch")
                self.assertEqual(os.listdir(self.path("out")), [])

    def test_out_of_memory_in_a_worker(self):
        """Images are decoded by threads of their own."""
        self.write("large.png", png_bytes(9000, 9000))
        self.write("small.png", png_bytes(16, 16))
        self.write("net.onnx", relu_network())
        for name in ("large", "small"):
            self.write(name + ".csv", f"file\n{name}.png\n")
        run = ("run", "net.onnx", "--images", "--resize", "8", "--crop", "8", "--out", "out/y.npy",
               "--data")
        limit = (resource.RLIMIT_AS, self.memory_of((*run, "small.csv")) + (64 << 20))
        os.remove(self.path("out/y.npy"))
        done = self.run_limited((*run, "large.csv"), limit)
        self.assertEqual(self.check_line(done), "out of memory; try a smaller --batch")
        self.assertEqual(os.listdir(self.path("out")), [])
        self.assertEqual(self.run_limited((*run, "large.csv")).returncode, 0)

    # Numbers that are none.

    def test_nan_and_infinity_in_weights(self):
        with open(self.made("model.onnx"), "rb") as file:
            model = file.read()
        weight = struct.pack("<f", self.some_weight(model))
        for name, value in (("NaN", float("nan")), ("infinite", float("inf"))):
            self.write("bad.onnx", model.replace(weight, struct.pack("<f", value), 1))
            for verb, arguments in (("calibrate", ("--data", self.made("calibration.csv"),
                                                   "--target", TARGET, "--out", "out/c.onnx")),):
                with self.subTest(verb, value=name):
                    message = self.check_line(self.run_limited((verb, "bad.onnx", *arguments)))
                    self.assertIn("bad.onnx", message)
                    self.assertIn("weight", message)
                    self.assertEqual(os.listdir(self.path("out")), [])

    def some_weight(self, model):
        """A float32 that stands in the file's weights once: in the middle of its longest tensor."""
        for offset in range(len(model) // 2, len(model) - 4):
            piece = model[offset:offset + 4]
            (value,) = struct.unpack("<f", piece)
            if 1e-3 < abs(value) < 1 and model.count(piece) == 1:
                return value
        self.fail("no weight found")

    def test_nan_and_infinity_in_features(self):
        self.fcp("run", self.made("model.onnx"), "--data", self.made("test.csv"), "--to", "hidden2",
                 "--out", "features.npy")
        data = bytearray(self.bytes_of("features.npy"))
        for name, value in (("NaN", float("nan")), ("inf", float("inf"))):
            with self.subTest(name):
                data[-4:] = struct.pack("<f", value)
                self.write("bad.npy", bytes(data))
                done = self.run_limited(("run", self.made("model.onnx"), "--from", "hidden2",
                                         "--data", "bad.npy", "--out", "out/y.npy"))
                message = self.check_line(done)
                self.assertIn("bad.npy: row 1199, element 63", message)
                self.assertIn(name, message)
                self.assertEqual(os.listdir(self.path("out")), [])

    # Devices.

    def test_wrong_device(self):
        commands = {verb: command for verb, (command, _) in self.writers().items()}
        for verb in ("inspect", "reproduce", "demo"):
            commands[verb] = self.others()[verb]
        cuda = '"available": true' in self.run_limited(("doctor", "--json")).stdout
        for verb, command in commands.items():
            with self.subTest(verb):
                done = self.run_limited((*command, "--device", "tpu"))
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("tpu not in {cpu,cuda}", done.stderr)
                if not cuda:
                    done = self.run_limited((*command, "--device", "cuda"))
                    self.assertEqual(self.check_line(done),
                                     "--device cuda: this machine, or this build of libtorch, has "
                                     "no CUDA device")
                self.assertEqual(os.listdir(self.path("out")), [])


def png_bytes(height, width):
    """A grey picture, packed well."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))

    lines = zlib.compress((b"\0" + bytes(width)) * height)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", lines) + chunk(b"IEND", b""))


def relu_network():
    """y = Relu(x) for images [N, 3, 8, 8], as an ONNX file."""
    from test_bad_input import field  # the writer of small protobuf messages

    def value(number, name):
        sizes = b"".join([field(1, field(2, "N"))] + [field(1, field(1, size)) for size in (3, 8, 8)])
        return field(number, field(1, name) + field(2, field(1, field(1, 1) + field(2, sizes))))

    node = field(1, field(1, "x") + field(2, "y") + field(4, "Relu"))
    graph = node + field(2, "g") + value(11, "x") + value(12, "y")
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


if __name__ == "__main__":
    program.main()
