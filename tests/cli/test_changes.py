"""Files that change while they are read, in ways that leave their size and the time of their last
write as they were. Whatever is read twice, to learn columns, to choose, to calibrate or by several
ranks, must be the same bytes: otherwise one line names the file and both hashes, exit code 1, and
nothing is written."""
import contextlib
import mmap
import os
import random
import shutil
import struct
import threading
import unittest

import program
import test_labels
from fault_case import FaultCase
from program import TARGET, write_npy
from test_ranks import mpirun, run_job

MEMORY = "/dev/shm"  # where writing through mmap does not touch the time of the last write
TRIES = 40  # until a change falls where it must be seen; nearly always the first does
HASH = "[0-9a-f]{16}"
BLOCK = rf"changed while it was read: bytes \d+ to \d+ had the hash {HASH} at first, then {HASH}"


def repeatedly(change):
    """Runs `change` again and again in a thread, until the block ends."""
    @contextlib.contextmanager
    def running():
        stop = threading.Event()

        def work():
            count = 0
            while not stop.wait(0.0005):
                count += 1
                change(count)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
    return running()


def state(path):
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


@unittest.skipUnless(os.path.isdir(MEMORY), f"there is no {MEMORY} here")
class ChangingFiles(FaultCase):
    parent = MEMORY

    @contextlib.contextmanager
    def counting(self, name):
        """Meanwhile a number goes up in the file, where table() and array() have left it room."""
        path = self.path(name)
        before = state(path)
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
            text = name.endswith(".csv")
            place = view.rfind(b"3.123456") + 2 if text else view.find(struct.pack("<f", 123456))
            self.assertGreater(place, 1, "there is no number to count from")

            def count(number):
                number %= 1000000
                some = b"%06d" % number if text else struct.pack("<f", number)
                view[place:place + len(some)] = some

            try:
                with repeatedly(count):
                    yield
            finally:
                count(123456)  # as it was
        self.assertEqual(state(path), before)

    def table(self, name, source="calibration.csv", times=1):
        """A table of the demo, so many times, with one more column and a cell to count in."""
        with open(self.made(source), encoding="utf-8") as file:
            lines = file.read().splitlines()
        lines[1:] *= times
        lines[0] += ",side"
        for i in range(1, len(lines)):
            lines[i] += ",left" if i % 2 else ",right"
        cells = lines[-3].split(",")
        cells[0] = "3.123456"
        lines[-3] = ",".join(cells)
        return self.write(name, "\n".join(lines) + "\n")

    def array(self, row=-3):
        rows = self.features("calibration.csv")
        rows[row][0] = 123456
        write_npy(self.path("x.npy"), rows)
        write_npy(self.path("y.npy"), self.truth("calibration.csv"))

    def run_changing(self, command):
        """Runs until a change falls between two looks: on a busy machine the writer may have to
        wait while all is read."""
        for _ in range(TRIES):
            done = self.run_limited(command)
            if done.returncode != 0:
                break
            for name in os.listdir(self.path("out")):
                os.remove(self.path("out/" + name))
        return done

    def check_changed(self, done, name, what=BLOCK):
        self.assertRegex(self.check_line(done), f"^{name}: {what}$")
        self.check_nothing_written()

    def calibration(self, data="live.csv", target=TARGET, *options):
        return ("calibrate", self.made("model.onnx"), "--data", data, "--target", target, "--quiet",
                "--batch", 300, "--out", "out/c.onnx", *program.scored(*options))


class Changes(ChangingFiles):
    def test_choices_and_calibration(self):
        self.table("live.csv")
        with self.counting("live.csv"):
            self.check_changed(self.run_changing(self.calibration("live.csv", TARGET, "--cut", "auto")),
                               "live.csv")
        self.array()
        with self.counting("x.npy"):
            self.check_changed(self.run_changing(self.calibration("x.npy", "y.npy", "--cut", "auto")),
                               "x.npy")

    def test_columns_are_learned_and_rows_are_read(self):
        for options in (("--categorical", "side"), ("--drop", "side", "--impute")):
            self.table("live.csv", "train.csv", times=20)  # some time between the passes
            with self.subTest(options), self.counting("live.csv"):
                done = self.run_changing(("train", "live.csv", "--target", TARGET, "--epochs", 1,
                                          "--quiet", "--out", "out/m.onnx", *options))
                self.check_changed(done, "live.csv")

    def test_groups_and_rows(self):
        grouped = ("--calibration", "grouped", "--group", "side")
        self.table("still.csv")
        self.fcp(*self.calibration("still.csv", TARGET, *grouped))
        os.rename(self.path("out/c.onnx"), self.path("c.onnx"))
        self.table("live.csv", times=20)
        commands = {
            "calibrate": self.calibration("live.csv", TARGET, *grouped),
            "evaluate": ("evaluate", "c.onnx", "--data", "live.csv", "--target", TARGET, "--quiet",
                         "--report", "out/r.html"),
            "predict": ("predict", "c.onnx", "--data", "live.csv", "--quiet", "--out", "out/i.csv"),
            "check": ("check", "c.onnx", "--data", "live.csv", "--target", TARGET, "--quiet",
                      "--out", "out/k.csv")}
        for verb, command in commands.items():
            with self.subTest(verb), self.counting("live.csv"):
                self.check_changed(self.run_changing(command), "live.csv")

    def test_images(self):
        """Files that take the names of others: of the same size, written at the same time."""
        rng = random.Random(3)
        self.write("net.onnx", test_labels.colour_network())
        for folder in ("photos/0", "photos/1", "photos/2", "others"):
            os.makedirs(self.path(folder))
        names = []
        for i in range(60):
            names.append(f"photos/{i % 3}/{i}.png")
            for name in (names[-1], f"others/{i}.png"):
                self.write(name, test_labels.png([[[rng.randrange(256) for _ in range(3)]] * 6] * 6))
                size = os.path.getsize(self.path(name))
                with open(self.path(name), "ab") as file:  # behind the last chunk: nobody looks
                    file.write(bytes(200 - size))
                os.utime(self.path(name), (1e9, 1e9))

        def swap(number):
            i = number % len(names)
            os.rename(self.path(names[i]), self.path("aside"))
            os.rename(self.path(f"others/{i}.png"), self.path(names[i]))
            os.rename(self.path("aside"), self.path(f"others/{i}.png"))

        before = state(self.path(names[0]))
        command = ("calibrate", "net.onnx", "--data", "photos", "--score", "lac", "--temperature",
                   "auto", "--resize", 0, "--crop", 0, "--batch", 7, "--quiet", "--out", "out/c.onnx")
        swap(0)
        self.assertEqual(state(self.path(names[0])), before)
        for _ in range(TRIES):  # between two renames a file is missing for a moment
            with repeatedly(swap):
                done = self.run_limited(command)
            if done.returncode != 0 and "no such file" not in done.stderr:
                break
        self.check_changed(done, r"photos/\d/\d+\.png", "changed while it was read: its pixels had "
                           f"the hash {HASH} at first, then {HASH}")
        self.assertEqual(self.run_limited(command).returncode, 0)

    def test_size_and_time(self):
        """The cheap signs, which also tell where nothing is read twice."""
        with open(self.made("calibration.csv"), "rb") as file:
            header, rows = file.read().split(b"\n", 1)
        self.write("live.csv", header + b"\n" + rows * 60)
        write_npy(self.path("x.npy"), self.features("calibration.csv") * 60)
        write_npy(self.path("y.npy"), self.truth("calibration.csv") * 60)

        def touch(_):
            for name in ("live.csv", "x.npy"):
                os.utime(self.path(name))

        with repeatedly(touch):
            for data, target in (("live.csv", TARGET), ("x.npy", "y.npy")):
                for verb, arguments in (
                        ("calibrate", (self.made("model.onnx"), "--score", "nested", "--batch", 500,
                                       "--out", "out/c.onnx")),
                        ("check", (self.made("calibrated.onnx"), "--out", "out/k.csv"))):
                    with self.subTest(verb, data=data):
                        done = self.run_changing((verb, *arguments, "--data", data, "--target",
                                                  target, "--quiet"))
                        self.check_changed(done, data, "was written to while it was read")


@unittest.skipIf(shutil.which("mpirun") is None, "there is no mpirun on this machine")
class ChangesBetweenRanks(ChangingFiles):
    RANKS = 4
    # Between ranks; or one has seen it by itself, because it read the beginning of the file twice.
    BETWEEN = (rf"(the block at byte \d+ has the hash {HASH} on one rank, {HASH} on another|bytes \d+ to "
               rf"\d+ had the hash {HASH} at first, then {HASH})")

    def job(self, *arguments):
        done = run_job(mpirun(self.RANKS, *arguments), self.folder)
        if "built without MPI" in done.stderr:
            self.skipTest("fcp was built without MPI")
        return done

    def failing_job(self, changing, *arguments):
        """Ranks may all have read the same, though it is not likely; then once more."""
        for _ in range(TRIES):
            with changing():
                done = self.job(*arguments)
            if done.returncode != 0:
                break
            shutil.rmtree(self.path("out"))
            os.mkdir(self.path("out"))
        return done

    def check_job(self, done, name, what):
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, rf"^fcp: rank \d of {self.RANKS}: {name}: changed while it was "
                                      rf"read: {what}\n$")
        self.check_nothing_written()

    def test_rows(self):
        """Each rank reads the file once."""
        self.table("live.csv")
        self.array(row=2)  # in a block that all ranks read
        evaluation = ("evaluate", self.made("calibrated.onnx"), "--data", "live.csv", "--target", TARGET,
                      "--batch", 300, "--quiet", "--report", "out/r.html")
        for name, command in (("live.csv", self.calibration()), ("live.csv", evaluation),
                              ("x.npy", self.calibration("x.npy", "y.npy"))):
            with self.subTest(command[0], file=name):
                done = self.failing_job(lambda: self.counting(name), *command)
                self.check_job(done, name, self.BETWEEN)

    def test_networks(self):
        """Another network of the same size takes the name of the first, again and again."""
        for name, verb, out in (("model.onnx", "calibrate",
                                 ("--score", "nested", "--out", "out/c.onnx")),
                                ("calibrated.onnx", "evaluate", ("--report", "out/r.html"))):
            with open(self.made(name), "rb") as file:
                network = file.read()
            place = len(network) // 2 & ~3  # in the middle of the weights; of any of them, low bits

            def replace(number):
                changed = bytearray(network)
                changed[place] = number & 255
                changed[place + 4] = number >> 8 & 255
                self.write("next.onnx", bytes(changed))
                os.replace(self.path("next.onnx"), self.path("live.onnx"))

            replace(0)
            with self.subTest(verb):
                done = self.failing_job(lambda: repeatedly(replace), verb, "live.onnx", "--data",
                                        self.made("calibration.csv"), "--target", TARGET, "--quiet",
                                        *out)
                self.check_job(done, "live.onnx", r"the hash on rank \d is [0-9a-f]{64}, on rank 0 it "
                                                  r"is [0-9a-f]{64}")


if __name__ == "__main__":
    program.main()
