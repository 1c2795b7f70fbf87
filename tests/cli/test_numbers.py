"""Numbers that are none: in weights, in features, and in what a network makes of finite inputs. The place
is named, exit code 1, nothing is written. Infinite answers are numbers."""
import os
import struct

import program
import test_labels
from fault_case import FaultCase
from program import TARGET, read_npy, write_npy
from test_labels import field, tensor_type

LARGE = 3e38  # finite, but its double is not


def difference_network():
    """ONNX: y = (x · 2) − (x · 2) + x for x [N, 1]: NaN where 2 x is infinite. And z = x · 2."""
    two = struct.pack("<f", 2)
    nodes = (("x", "two", "a", "Mul"), ("x", "two", "b", "Mul"), ("a", "b", "c", "Sub"),
             ("c", "x", "y", "Add"), ("x", "two", "z", "Mul"))
    graph = b"".join(field(1, field(1, left) + field(1, right) + field(2, out) + field(4, op))
                     for left, right, out, op in nodes)
    graph += field(2, "g") + field(5, field(1, 1) + field(2, 1) + field(8, "two") + field(9, two))
    graph += field(11, tensor_type("x", ["N", 1]))
    graph += field(12, tensor_type("y", ["N", 1])) + field(12, tensor_type("z", ["N", 1]))
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


def mending_network():
    """ONNX: y = a + b for x [N, 2] = (a, b), where a that is missing counts as 2."""
    two = struct.pack("<f", 2)
    nodes = ((("x",), ("a", "b"), "Split", field(5, field(1, "axis") + field(3, 1) + field(20, 2))),
             (("a",), ("gap",), "IsNaN", b""), (("gap", "two", "a"), ("full",), "Where", b""),
             (("full", "b"), ("y",), "Add", b""))
    graph = b"".join(
        field(1, b"".join(field(1, name) for name in inputs) +
              b"".join(field(2, name) for name in outputs) + field(4, op) + attribute)
        for inputs, outputs, op, attribute in nodes)
    graph += field(2, "g") + field(5, field(1, 1) + field(2, 1) + field(8, "two") + field(9, two))
    graph += field(11, tensor_type("x", ["N", 2])) + field(12, tensor_type("y", ["N", 1]))
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


def text_network():
    """ONNX: y = age + 30 for the city Rome, + 20 for Paris, + 0 for others; as skl2onnx has it, the
    inputs are a column each, and the city is text."""
    keys = field(1, "keys_strings") + field(9, "Rome") + field(9, "Paris") + field(20, 8)
    values = field(1, "values_floats") + field(7, struct.pack("<2f", 30, 20)) + field(20, 6)
    graph = field(1, field(1, "city") + field(2, "code") + field(4, "LabelEncoder") +
                  field(5, keys) + field(5, values) + field(7, "ai.onnx.ml"))
    graph += field(1, field(1, "code") + field(1, "age") + field(2, "y") + field(4, "Add"))
    graph += field(2, "g") + field(11, tensor_type("city", ["N", 1], element=8))
    graph += field(11, tensor_type("age", ["N", 1])) + field(12, tensor_type("y", ["N", 1]))
    sets = field(8, field(2, 13)) + field(8, field(1, "ai.onnx.ml") + field(2, 2))
    return field(1, 8) + field(7, graph) + sets


class Numbers(FaultCase):
    def test_text_goes_through_the_columns_of_a_table(self):
        self.write("t.onnx", text_network())
        cities = ("Rome", "Paris", "Oslo")
        points = {"Rome": 30, "Paris": 20, "Oslo": 0}
        rows = [(i % 9, cities[i % 3]) for i in range(60)]
        lines = [f"{age},{points[city] + age},{city}" for age, city in rows]
        self.write("t.csv", "age,y,city\n" + "\n".join(lines) + "\n")
        expected = [age + points[city] for age, city in rows]
        self.fcp("run", "t.onnx", "--data", "t.csv", "--out", "y.npy")
        self.assertEqual(list(read_npy(self.path("y.npy"))[1]), expected)
        self.assertIn("city", self.fcp("inspect", "t.onnx"))
        self.fcp("calibrate", "t.onnx", "--data", "t.csv", "--target", "y", "--score", "residual",
                 "--out", "c.onnx")
        self.fcp("predict", "c.onnx", "--data", "t.csv", "--out", "p.csv")
        with open(self.path("p.csv"), encoding="utf-8") as file:
            found = [float(line.split(",")[0]) for line in file.read().splitlines()[1:]]
        self.assertEqual(found, expected)
        self.fcp("check", "c.onnx", "--data", "t.csv", "--target", "y")
        self.write("gap.csv", "city,age\nRome,1\nParis,\n")
        done = self.run_limited(("predict", "c.onnx", "--data", "gap.csv", "--out", "out/p.csv"))
        self.assertIn("gap.csv: row 1 (from 0), column 'age': the value is missing",
                      self.check_line(done))
        write_npy(self.path("x.npy"), [[0, 1], [1, 0]])
        done = self.run_limited(("predict", "c.onnx", "--data", "x.npy", "--out", "out/p.csv"))
        self.assertIn("x.npy: holds an array, and the network takes text", self.check_line(done))
        self.assertEqual(os.listdir(self.path("out")), [])

    def mending_rows(self, name, missing):
        """Rows (a, b, y) and, as `missing` says, one of them without a or b."""
        rows = [[i % 7, i % 5, i % 7 + i % 5 + (i % 3) / 10] for i in range(60)]
        lines = [",".join("" if missing == (i, k) else str(value) for k, value in enumerate(row))
                 for i, row in enumerate(rows)]
        return self.write(name, "a,b,y\n" + "\n".join(lines) + "\n")

    def test_missing_values_that_the_network_takes(self):
        self.write("m.onnx", mending_network())
        good, bad = self.mending_rows("good.csv", (4, 0)), self.mending_rows("bad.csv", (4, 1))
        self.fcp("calibrate", "m.onnx", "--data", good, "--target", "y", "--score", "residual",
                 "--out", "c.onnx")
        self.fcp("run", "m.onnx", "--data", good, "--drop", "y", "--out", "y.npy")
        self.assertEqual(read_npy(self.path("y.npy"))[1][4], 2 + 4)
        self.fcp("predict", "c.onnx", "--data", good, "--drop", "y", "--out", "p.csv")
        with open(self.path("p.csv"), encoding="utf-8") as file:
            self.assertEqual(float(file.read().splitlines()[5].split(",")[0]), 2 + 4)
        for verb in ("evaluate", "check"):
            self.fcp(verb, "c.onnx", "--data", good, "--target", "y")
        told = "bad.csv: row 4 (from 0), column 'b': the value is missing, expected a number; the " \
               "network computes with it"
        for arguments in (("calibrate", "m.onnx", "--target", "y", "--out", "out/c.onnx"),
                          ("check", "c.onnx", "--target", "y"),
                          ("run", "m.onnx", "--drop", "y", "--out", "out/y.npy")):
            done = self.run_limited((*arguments, "--data", bad))
            self.assertEqual(self.check_line(done), told)
        self.assertEqual(os.listdir(self.path("out")), [])
        write_npy(self.path("x.npy"), [[float("nan"), 1], [1, 2]])
        self.fcp("run", "m.onnx", "--data", "x.npy", "--out", "y.npy")
        self.assertEqual(list(read_npy(self.path("y.npy"))[1]), [3, 3])
        write_npy(self.path("x.npy"), [[0, 1], [1, float("nan")]])
        done = self.run_limited(("run", "m.onnx", "--data", "x.npy", "--out", "out/y.npy"))
        self.assertIn("x.npy: row 1 (from 0), element 1 (from 0): the value is missing",
                      self.check_line(done))

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

    # What a network makes of finite numbers.

    def overflowing(self, name, row, source="test.csv"):
        """A copy of a table whose row (from 0) is as large as numbers can be."""
        with open(self.made(source), encoding="utf-8") as file:
            lines = file.read().splitlines()
        columns = lines[0].split(",")
        lines[1 + row] = ",".join("1" if column == TARGET else str(LARGE) for column in columns)
        return self.write(name, "\n".join(lines) + "\n")

    def check_named(self, done, place):
        self.assertEqual(self.check_line(done), place + ": the network's answer is NaN, expected a "
                         "number; do its numbers overflow there?")
        self.check_nothing_written()

    def test_overflow_is_named(self):
        self.overflowing("big.csv", 700)
        calibrated = (self.made("calibrated.onnx"), "--data", "big.csv", "--quiet")
        for command in (("run", self.made("model.onnx"), "--data", "big.csv", "--quiet", "--out",
                         "out/y.npy"),
                        ("predict", *calibrated, "--out", "out/i.csv"),
                        ("predict", *calibrated, "--out", "out/i.npy", "--batch", 64),
                        ("evaluate", *calibrated, "--target", TARGET, "--report", "out/r.html"),
                        ("check", *calibrated, "--target", TARGET, "--out", "out/k.csv")):
            with self.subTest(command[0]):
                self.check_named(self.run_limited(command), "big.csv: row 700 (from 0)")

    def test_the_row_of_its_own_file(self):
        files = ",".join((self.made("test.csv"), self.overflowing("big.csv", 5)))
        done = self.run_limited(("predict", self.made("calibrated.onnx"), "--data", files, "--quiet",
                                 "--batch", 500, "--out", "out/i.csv"))
        self.check_named(done, "big.csv: row 5 (from 0)")

    def test_overflow_of_labels(self):
        tables = test_labels.Labels("make_tables")
        tables.folder = self.folder
        # The default recipe clips inputs softly, so that none is too large for it.
        tables.make_tables("--recipe", "paper")
        with open(self.path("test.csv"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        lines[8] = f"{LARGE},{LARGE},left,0"
        self.write("big.csv", "\n".join(lines) + "\n")
        for score in ("lac", "aps", "feature_margin", "feature_sampled"):
            steps = ("--steps", 2) if score == "feature_sampled" else ()
            self.fcp("calibrate", "m.onnx", "--data", "cal.csv", "--target", "kind", "--score",
                     score, "--out", "c.onnx", *steps)
            calibrated = ("c.onnx", "--data", "big.csv", "--quiet")
            for command in (("predict", *calibrated, "--out", "out/s.csv"),
                            ("evaluate", *calibrated, "--target", "kind", "--report", "out/r.html")):
                with self.subTest(score, verb=command[0]):
                    self.check_named(self.run_limited(command), "big.csv: row 7 (from 0)")

    def test_infinite_answers_are_numbers(self):
        self.write("net.onnx", difference_network())
        write_npy(self.path("x.npy"), [[1.0], [LARGE], [-LARGE]])
        run = ("run", "net.onnx", "--data", "x.npy", "--quiet", "--out")
        self.assertEqual(self.run_limited((*run, "z=out/z.npy")).returncode, 0)
        self.assertEqual(read_npy(self.path("out/z.npy"))[1], (2.0, float("inf"), float("-inf")))
        os.remove(self.path("out/z.npy"))
        self.check_named(self.run_limited((*run, "y=out/y.npy")), "x.npy: row 1 (from 0)")


if __name__ == "__main__":
    program.main()
