"""Faults from outside, verb by verb: a full disk, a read-only one, files cut off, signals, devices that
are not there. Each time: one line that says what happened, the right exit code, and under the output's
name what was there before. Others: test_changes.py, test_memory.py and test_numbers.py."""
import gzip
import os
import random
import resource
import signal
import subprocess
import time
import zipfile

import program
from fault_case import FaultCase, png_bytes
from program import TARGET, write_npy

MOMENTS = 3  # at which each verb is ended by each signal


class Faults(FaultCase):
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
        self.assertEqual(self.check_line(done), "out/deliveries.csv: cannot write: File too large")
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
                         "out/deliveries.csv: cannot write: Read-only file system")
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
                    code, stderr = self.end_at(command, chance.uniform(0, 1), number)
                    self.assertIn(code, (0, -number, 128 + number))
                    if code == 128 + number:
                        self.check_interrupted(stderr, len(os.listdir(self.path("out"))))
                    # Of the demo's folder: every file that is there is whole.
                    for name in os.listdir(self.path("out")):
                        if name.startswith("."):
                            self.assertEqual(number, signal.SIGKILL)
                            os.remove(self.path("out/" + name))  # not to be found by the next
                            continue
                        if name.endswith(".csv"):
                            self.assertTrue(self.bytes_of("out/" + name).endswith(b"\n"))
                        os.remove(self.path("out/" + name))

    def check_interrupted(self, stderr, files):
        """It says how many files there are now, each of them whole."""
        found = {0: "nothing was written", 1: "1 file was written before, whole; nothing else was"}
        text = found.get(files, f"{files} files were written before, whole; nothing else was")
        self.assertEqual(stderr.splitlines()[-1], "fcp: interrupted; " + text)

    def test_interrupted_demo_says_what_it_leaves(self):
        process = program.start("demo", "--out", "out", "--threads", 1, cwd=self.folder,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while not os.path.exists(self.path("out/test.csv")) and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGTERM)  # while it trains
        _, stderr = process.communicate(timeout=program.LONGEST)
        self.assertEqual(process.returncode, 143)
        self.assertEqual(sorted(os.listdir(self.path("out"))),
                         ["calibration.csv", "deliveries.csv", "new.csv", "test.csv", "train.csv"])
        self.check_interrupted(stderr, 5)

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
                                 "--target", TARGET, "--score", "nested", "--out", "out/c.onnx"))
        self.assertRegex(self.check_line(done), r"^cut\.csv: line \d+: found \d cells, expected 9; --on-error skip "
                         r"leaves such rows out$")

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
                self.assertIn("tpu not in {cpu,cuda,auto}", done.stderr)
                if not cuda:
                    done = self.run_limited((*command, "--device", "cuda"))
                    self.assertEqual(self.check_line(done),
                                     "device cuda: this machine, or this build of libtorch, has "
                                     "no CUDA device")
                self.assertEqual(os.listdir(self.path("out")), [])


if __name__ == "__main__":
    program.main()
