"""Wrong input: one line that says what and where, exit code 1 (2 for bad usage), nothing left behind."""
import gzip
import json
import os
import subprocess
import unittest

import program
from program import TARGET, write_npy

CURE = "; --on-error skip leaves such rows out"


class BadInput(program.Case):
    def fails(self, *arguments, code=1, lines=1, stdout=subprocess.PIPE):
        """The message of a command that must fail, without the program's name; no file appears."""
        before = sorted(os.listdir(self.folder))
        done = self.run_program(*arguments, stdout=stdout)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), lines, done.stderr)
        self.assertFalse(done.stdout)
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        if lines == 1:
            self.assertTrue(done.stderr.startswith("fcp: "), done.stderr)
            return done.stderr[len("fcp: "):].rstrip("\n")
        return done.stderr

    def calibration_fails(self, data, *arguments, target=TARGET, model=None):
        return self.fails("calibrate", model or self.made("model.onnx"), "--data", data, "--target",
                          target, "--out", "c.onnx", *program.scored(*arguments))

    def changed(self, name, line, change):
        """A copy of the calibration data with one line (from 1) changed."""
        with open(self.made("calibration.csv"), encoding="utf-8") as file:
            rows = file.read().splitlines()
        rows[line - 1] = change(rows[line - 1])
        return self.write(name, "\n".join(rows) + "\n")

    # Numbers.

    def test_no_unsigned_option_takes_a_negative_or_too_large_number(self):
        """strtoull reads -3 as 2^64 - 3, and what is too large as the largest number."""
        tried = 0
        for verb in ("calibrate", "update", "serve"):
            words = self.run_program(verb, "--help-all").stdout.split()
            for flag, kind in zip(words, words[1:]):
                if not flag.startswith("--") or kind.split("=")[0].split(":")[0] != "UINT":
                    continue
                for number in ("-3", "99999999999999999999999"):
                    done = self.run_program(verb, flag, number)
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertRegex(done.stderr, f"{flag}: (found {number}, expected a whole number "
                                     f"from 0|Value {number} not in range)")
                    tried += 1
        self.assertGreater(tried, 20)

    def test_number_of_members(self):
        for number in ("99999999999999999999999", "-99999999999999999999999"):
            done = self.run_program("fit", self.made("calibration.csv"), "--target", TARGET,
                                    "--members", number, "--out", "m.onnx")
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"--members: found {number}, expected a whole number", done.stderr)
        self.assertEqual(
            self.fails("train", self.made("calibration.csv"), "--target", TARGET, "--members",
                       "9223372036854775807", "--out", "m.onnx"),
            "9223372036854775807 members, expected from 1 to 1000")

    # Data.

    def test_missing_file(self):
        self.assertEqual(self.calibration_fails("none.csv"), "none.csv: no such file")
        self.assertEqual(self.fails("train", "none.csv", "--target", "y", "--out", "m.onnx"),
                         "none.csv: no such file")
        for verb in ("predict", "evaluate", "check"):
            target = () if verb == "predict" else ("--target", TARGET)
            self.assertEqual(self.fails(verb, self.made("calibrated.onnx"), "--data", "none.csv",
                                        *target), "none.csv: no such file")

    def test_missing_model(self):
        for arguments in (("inspect",), ("run", "--data", "x.npy", "--out", "y.npy"),
                          ("predict", "--data", self.made("test.csv"))):
            message = self.fails(arguments[0], "none.onnx", *arguments[1:])
            self.assertTrue(message.startswith("none.onnx: "), message)

    def test_empty_csv(self):
        self.write("e.csv", "")
        self.assertEqual(self.calibration_fails("e.csv"), "e.csv: the file is empty")

    def test_ten_million_commas(self):
        """Ten kilobytes of gzip; a cell takes far more than a byte of memory."""
        with gzip.open(os.path.join(self.folder, "w.csv.gz"), "wb") as file:
            file.write(b"a,b\n" + b"," * 10_000_000 + b"\n")
        expected = ("w.csv.gz: line 2: a row of more than 262144 cells, expected fewer; wider "
                    "tables are read from .npy")
        self.assertEqual(self.calibration_fails("w.csv.gz", target="a"), expected)
        self.assertEqual(self.fails("fit", "w.csv.gz", "--target", "a", "--out", "m.onnx"), expected)

    def test_header_only(self):
        self.write("h.csv", "a,b,minutes\n")
        self.assertEqual(self.calibration_fails("h.csv"), "h.csv: there are no rows below the header")

    def test_ragged_row(self):
        self.changed("r.csv", 5, lambda line: line.rsplit(",", 1)[0])
        self.assertEqual(self.calibration_fails("r.csv"),
                         "r.csv: line 5: found 8 cells, expected 9" + CURE)
        # Far down, after batches have been scored already.
        self.changed("late.csv", 2300, lambda line: line + ",1")
        self.assertEqual(self.calibration_fails("late.csv", "--batch", "100"),
                         "late.csv: line 2300: found 10 cells, expected 9" + CURE)

    def test_text_in_a_number_column(self):
        self.changed("t.csv", 7, lambda line: "abc" + line[line.index(","):])
        self.assertEqual(self.calibration_fails("t.csv"),
                         "t.csv: line 7, column 'distance_km': expected a number, found 'abc'" + CURE)

    def test_nan_and_missing_values(self):
        for text in ("nan", "NaN", ""):
            self.changed("n.csv", 9, lambda line: text + line[line.index(","):])
            self.assertEqual(
                self.calibration_fails("n.csv"),
                f"n.csv: line 9, column 'distance_km': missing value '{text}', expected a number" + CURE)

    def test_nan_in_npy(self):
        rows = self.features()
        rows[3][2] = float("nan")
        write_npy(self.path("x.npy"), rows)
        self.assertEqual(
            self.fails("predict", self.made("calibrated.onnx"), "--data", "x.npy", "--out", "i.csv"),
            "x.npy: row 3, element 2 (both from 0): found NaN, expected a number")

    def test_late_error_leaves_no_prediction(self):
        rows = self.features()
        rows[1000][2] = float("nan")
        write_npy(self.path("x.npy"), rows)
        message = self.fails("predict", self.made("calibrated.onnx"), "--data", "x.npy", "--batch",
                             "10", "--out", "i.npy")
        self.assertIn("row 1000, element 2", message)

    def test_target_not_found(self):
        message = self.calibration_fails(self.made("calibration.csv"), target="price")
        self.assertTrue(message.startswith(self.made("calibration.csv") + ": no column 'price' (target); "
                                           "the columns are 'distance_km', 'hour'"), message)
        write_npy(self.path("x.npy"), self.features())
        self.assertEqual(self.calibration_fails("x.npy", target="y.npy"),
                         "y.npy: no such file; with .npy data the target is an .npy too")

    def test_too_few_calibration_rows(self):
        with open(self.made("calibration.csv"), encoding="utf-8") as file:
            lines = file.readlines()
        self.write("one.csv", "".join(lines[:2]))
        self.assertEqual(self.calibration_fails("one.csv"),
                         "one.csv: calibration needs at least two rows, found 1")
        self.write("thirty.csv", "".join(lines[:31]))
        done = self.run_program("calibrate", self.made("model.onnx"), "--data", "thirty.csv",
                                "--target", TARGET, "--score", "nested", "--cut", "auto", "--out",
                                "c.onnx")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("cut: 30 rows are too few to choose one; taking hidden2", done.stderr)

    def test_wrong_number_of_columns(self):
        write_npy(self.path("x.npy"), [row[:5] for row in self.features()])
        message = self.fails("predict", self.made("calibrated.onnx"), "--data", "x.npy")
        self.assertIn("5", message)
        self.assertIn("8", message)
        with open(self.made("test.csv"), encoding="utf-8") as file:
            narrow = "".join(",".join(line.split(",")[:4]) + "\n" for line in file)
        self.write("narrow.csv", narrow)
        self.assertEqual(self.fails("predict", self.made("calibrated.onnx"), "--data", "narrow.csv"),
                         "narrow.csv: no column 'rain_mm', 'traffic', 'courier_years', "
                         "'temperature_c'; the columns are 'distance_km', 'hour', 'weekday', "
                         "'items'")

    def test_wrong_number_of_targets(self):
        message = self.calibration_fails(self.made("calibration.csv"), target="minutes,hour")
        self.assertIn("2", message)
        self.assertIn("1", message)

    def test_truncated_npy(self):
        write_npy(self.path("x.npy"), self.features())
        data = self.bytes_of("x.npy")
        self.write("cut.npy", data[:-100])
        self.assertEqual(self.fails("predict", self.made("calibrated.onnx"), "--data", "cut.npy"),
                         "cut.npy: truncated: shape [1200, 8] of float32 needs 38400 bytes, found 38300")
        self.write("head.npy", data[:40])
        self.assertIn("head.npy: truncated",
                      self.fails("predict", self.made("calibrated.onnx"), "--data", "head.npy"))

    def test_groups_of_another_length(self):
        for count in (1199, 1201):
            write_npy(self.path("g.npy"), [1] * count)
            message = self.fails("evaluate", self.made("calibrated.onnx"), "--data",
                                 self.made("test.csv"), "--target", TARGET, "--group", "g.npy")
            self.assertIn(f"group: names {count} rows", message)

    # Models.

    def test_not_onnx(self):
        self.write("m.onnx", "hello\n")
        self.write("empty.onnx", "")
        with open(self.made("model.onnx"), "rb") as file:
            self.write("half.onnx", file.read()[:20000])
        for name in ("m.onnx", "empty.onnx", "half.onnx"):
            with self.subTest(name):
                message = self.calibration_fails(self.made("calibration.csv"), model=name)
                self.assertTrue(message.startswith(name + ": "), message)

    def test_network_without_calibration(self):
        expected = (self.made("model.onnx") +
                    ": is a network without calibration; run `fcp calibrate` on it first")
        for verb in ("predict", "evaluate", "check"):
            target = () if verb == "predict" else ("--target", TARGET)
            self.assertEqual(self.fails(verb, self.made("model.onnx"), "--data",
                                        self.made("test.csv"), *target), expected)

    def test_damaged_calibration(self):
        with open(self.made("calibrated.onnx"), "rb") as file:
            data = file.read()
        for size in range(100, len(data), 9973):
            self.write("half.onnx", data[:size])
            message = self.fails("predict", "half.onnx", "--data", self.made("test.csv"))
            self.assertTrue(message.startswith("half.onnx: "), message)

    def test_cuts(self):
        data = self.made("calibration.csv")
        self.assertIn("cut 'nope': the network has no tensor or node of that name",
                      self.calibration_fails(data, "--cut", "nope"))
        self.assertIn("cut '-9': the network has 4 layers", self.calibration_fails(data, "--cut", "-9"))
        self.assertIn("cut at 'prediction': it is an output, which leaves no head",
                      self.calibration_fails(data, "--cut", "prediction"))

    def test_cut_that_leaks(self):
        # y = a + b with a = Relu(x), b = Tanh(x): x is read past a, by Tanh.
        self.write("leak.onnx", diamond_onnx())
        write_npy(self.path("x.npy"), [[0.5], [1.0], [2.0]])
        message = self.calibration_fails("x.npy", "--cut", "a", target="x.npy", model="leak.onnx")
        self.assertIn("cut at 'a': the outputs can be reached past it through 'x'", message)

    # Output.

    def test_unwritable_output(self):
        for verb, target in (("predict", ()), ("check", ("--target", TARGET))):
            self.assertEqual(self.fails(verb, self.made("calibrated.onnx"), "--data",
                                        self.made("test.csv"), *target, "--out", "none/i.csv"),
                             "none/i.csv: cannot write: No such file or directory")
        self.assertEqual(self.fails("calibrate", self.made("model.onnx"), "--data",
                                    self.made("calibration.csv"), "--target", TARGET, "--score",
                                    "nested", "--out", "none/c.onnx"),
                         "none/c.onnx: cannot write: No such file or directory")
        self.assertEqual(self.fails("run", self.made("model.onnx"), "--data", self.made("test.csv"),
                                    "--out", "."), ".: cannot write: is a folder")

    def test_read_only_folder(self):
        if os.geteuid() == 0:
            self.skipTest("root may write anywhere")
        os.mkdir(self.path("closed"), 0o500)
        self.assertEqual(self.fails("predict", self.made("calibrated.onnx"), "--data",
                                    self.made("test.csv"), "--out", "closed/i.csv"),
                         "closed/i.csv: cannot write: Permission denied")

    def test_full_device(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full here")
        full = "cannot write: No space left on device"
        predict = ("predict", self.made("calibrated.onnx"), "--data", self.made("test.csv"))
        self.assertEqual(self.fails(*predict, "--out", "/dev/full"), "/dev/full: " + full)
        self.assertEqual(self.calibration_full(), "/dev/full: " + full)
        with open("/dev/full", "w", encoding="utf-8") as out:
            self.assertEqual(self.fails(*predict, stdout=out), "standard output: " + full)
            self.assertEqual(self.fails("inspect", self.made("model.onnx"), stdout=out),
                             "cannot write to standard output")

    def calibration_full(self):
        return self.fails("calibrate", self.made("model.onnx"), "--data",
                          self.made("calibration.csv"), "--target", TARGET, "--score", "nested",
                          "--out", "/dev/full")

    def test_full_disk(self):
        disk = self.path("disk")
        os.mkdir(disk)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "fcp-test", disk],
                                 stderr=subprocess.DEVNULL, check=False)
        if mounted.returncode != 0:
            self.skipTest("a small file system needs the right to mount one")
        self.addCleanup(subprocess.run, ["umount", disk], check=False)
        with open(os.path.join(disk, "c.onnx"), "wb") as file:
            file.write(b"old")
        for arguments in (("calibrate", self.made("model.onnx"), "--data",
                           self.made("calibration.csv"), "--target", TARGET, "--score", "nested",
                           "--out", "disk/c.onnx"),
                          ("train", self.made("train.csv"), "--target", TARGET, "--epochs", 1,
                           "--out", "disk/c.onnx"),
                          ("evaluate", self.made("calibrated.onnx"), "--data", self.made("test.csv"),
                           "--target", TARGET, "--report", "disk/c.onnx")):
            with self.subTest(arguments[0]):
                self.assertEqual(self.fails(*arguments),
                                 "disk/c.onnx: cannot write: No space left on device")
                self.assertEqual(os.listdir(disk), ["c.onnx"])
                self.assertEqual(self.bytes_of("disk/c.onnx"), b"old")

    # Levels.

    def test_levels_that_are_none(self):
        for alpha in ("0", "1", "1.5", "-0.1", "text", "nan"):
            for verb in ("predict", "evaluate"):
                target = () if verb == "predict" else ("--target", TARGET)
                message = self.fails(verb, self.made("calibrated.onnx"), "--data",
                                     self.made("test.csv"), *target, f"--alpha={alpha}", code=2)
                self.assertEqual(message, f'--alpha: the level alpha is "{alpha}"; expected a number '
                                          'strictly between 0 and 1, such as 0.1')

    def test_level_too_small_for_the_rows(self):
        warning = ("warning: the radius is infinite: alpha 0.0001 needs at least 9999 calibration "
                   "rows, this predictor has 1920; every interval is infinite")
        arguments = (self.made("calibrated.onnx"), "--data", self.made("test.csv"), "--alpha",
                     "0.0001")
        done = self.run_program("predict", *arguments)
        self.assertEqual(done.returncode, 0)
        self.assertIn(warning, done.stderr.splitlines())
        self.assertTrue(all(line.endswith(",-inf,inf") for line in done.stdout.splitlines()[1:]))
        summary = json.loads(self.fcp("predict", *arguments, "--out", "i.csv", "--json"))
        self.assertEqual((summary["alpha"], summary["radius"]), (0.0001, "inf"))
        done = self.run_program("evaluate", *arguments, "--target", TARGET, "--json", "--report",
                                "r.html")
        self.assertIn(warning, done.stderr.splitlines())
        result = json.loads(done.stdout, parse_constant=lambda name: self.fail(f"bare {name}"))
        self.assertEqual((result["radius"], result["length"]), ("inf", "inf"))
        self.assertEqual((result["coverage"], result["infinite_share"]), (1, 1))

    def test_tiny_level_is_answered_at_once(self):
        done = self.run_program("predict", self.made("calibrated.onnx"), "--data",
                                self.made("test.csv"), "--alpha", "1e-15")
        self.assertEqual(done.returncode, 0)
        self.assertIn("needs at least 999999999999999 calibration rows", done.stderr)

    # Usage.

    def test_bad_usage(self):
        self.assertEqual(self.fails("bogus", code=2), "unknown verb 'bogus'; `fcp --help` lists them")
        self.assertIn("--bogus", self.fails("inspect", "m.onnx", "--bogus", code=2, lines=2))
        self.assertIn("--data", self.fails("predict", "m.onnx", code=2, lines=2))
        self.assertIn("zzz", self.fails("calibrate", "m.onnx", "--data", "d.csv", "--target", "y",
                                        "--out", "c.onnx", "--score", "zzz", code=2, lines=2))

    def test_options_of_another_recipe(self):
        for arguments in (("--recipe", "paper", "--members", 2), ("--recipe", "paper", "--curve"),
                          ("--recipe", "paper", "--centre", "mean"), ("--weight-decay", 0),
                          ("--two-networks",), ("--holdout", 0.1)):
            with self.subTest(arguments):
                message = self.fails("train", self.made("train.csv"), "--target", TARGET, "--out",
                                     "m.onnx", *arguments, code=2)
                self.assertIn("applies", message)

    def test_options_that_would_be_ignored(self):
        for arguments in (("--score", "residual", "--cut", "hidden2"),
                          ("--score", "residual", "--floor", "1"),
                          ("--score", "surrogate", "--steps", "3", "--floor", "1"),
                          ("--steps", "3"), ("--paper",)):
            with self.subTest(arguments):
                self.fails("calibrate", self.made("model.onnx"), "--data",
                           self.made("calibration.csv"), "--target", TARGET, "--out", "c.onnx",
                           *arguments, code=2)

    def test_rows_and_json_do_not_share_stdout(self):
        self.assertIn("--json needs --out FILE",
                      self.fails("predict", self.made("calibrated.onnx"), "--data",
                                 self.made("test.csv"), "--json", code=2))

    def test_reproduce_without_data(self):
        message = self.fails("reproduce", "regression", "--sets", "bio", "--seeds", 1, "--data-dir",
                             "none", "--quiet")
        self.assertIn("CASP.csv", message)


def field(number, payload):
    """A protobuf field: bytes, text or a small number."""
    if isinstance(payload, int):
        return bytes([number << 3, payload])
    payload = payload.encode() if isinstance(payload, str) else payload
    assert len(payload) < 128
    return bytes([number << 3 | 2, len(payload)]) + payload


def diamond_onnx():
    """x → Relu → a, x → Tanh → b, Add(a, b) → y, as an ONNX file."""
    def node(op, inputs, output):
        return field(1, b"".join(field(1, name) for name in inputs) + field(2, output) +
                     field(4, op))

    def value(number, name):
        shape = field(1, field(2, "N")) + field(1, field(1, 1))
        return field(number, field(1, name) + field(2, field(1, field(1, 1) + field(2, shape))))

    graph = (node("Relu", ["x"], "a") + node("Tanh", ["x"], "b") + node("Add", ["a", "b"], "y") +
             field(2, "g") + value(11, "x") + value(12, "y"))
    size = len(graph)
    length = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
    return field(1, 8) + bytes([7 << 3 | 2]) + length + graph + field(8, field(2, 13))


if __name__ == "__main__":
    program.main()
