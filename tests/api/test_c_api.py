"""The C API from ctypes: the answers of the program, refusals in one line, and any number of threads."""
import csv
import ctypes
import math
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest

LIBRARY, PROGRAM = sys.argv[1:3]
sys.argv[1] = PROGRAM
sys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir, "cli"))
from program import demo_folder  # pylint: disable=wrong-import-position
TEXTS = ctypes.POINTER(ctypes.c_char_p)
DOUBLES = ctypes.POINTER(ctypes.c_double)


class Rows(ctypes.Structure):
    _fields_ = [("count", ctypes.c_longlong), ("x", ctypes.POINTER(ctypes.c_float)),
                ("cells", TEXTS), ("groups", TEXTS), ("weights", DOUBLES)]


def library():
    fcp = ctypes.CDLL(LIBRARY)
    fcp.fcp_version.restype = fcp.fcp_last_error.restype = ctypes.c_char_p
    fcp.fcp_load.restype = ctypes.c_void_p
    fcp.fcp_load.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    fcp.fcp_free.argtypes = [ctypes.c_void_p]
    for name in ("row_size", "outputs", "classes", "columns"):
        function = getattr(fcp, "fcp_" + name)
        function.restype, function.argtypes = ctypes.c_longlong, [ctypes.c_void_p]
    for name in ("column", "class"):
        function = getattr(fcp, "fcp_" + name)
        function.restype = ctypes.c_char_p
        function.argtypes = [ctypes.c_void_p, ctypes.c_longlong]
    fcp.fcp_group_column.restype = ctypes.c_char_p
    fcp.fcp_group_column.argtypes = [ctypes.c_void_p]
    fcp.fcp_needs_weights.argtypes = [ctypes.c_void_p]
    several = [ctypes.c_void_p, ctypes.POINTER(Rows), TEXTS, ctypes.c_longlong]
    fcp.fcp_intervals.argtypes = several + [DOUBLES] * 3
    fcp.fcp_parts.restype = ctypes.c_longlong
    fcp.fcp_parts.argtypes = several + [ctypes.POINTER(ctypes.c_longlong), DOUBLES,
                                        ctypes.c_longlong]
    fcp.fcp_label_sets.argtypes = several + [ctypes.POINTER(ctypes.c_longlong),
                                             ctypes.POINTER(ctypes.c_ubyte)]
    fcp.fcp_p_values.argtypes = [ctypes.c_void_p, ctypes.POINTER(Rows),
                                 ctypes.POINTER(ctypes.c_float), DOUBLES]
    fcp.fcp_quantiles.argtypes = several + [DOUBLES]
    rows = several[:2]
    fcp.fcp_probability.argtypes = rows + [ctypes.c_double] * 2 + [DOUBLES] * 2
    fcp.fcp_flags.restype = ctypes.c_longlong
    fcp.fcp_flags.argtypes = rows + [ctypes.c_char_p, ctypes.c_longlong]
    fcp.fcp_class_probabilities.argtypes = rows + [DOUBLES] * 3
    fcp.fcp_discoveries.argtypes = [DOUBLES, ctypes.c_longlong, ctypes.c_char_p,
                                    ctypes.POINTER(ctypes.c_ubyte)]
    return fcp


def texts(values):
    return (ctypes.c_char_p * len(values))(*[v if v is None else v.encode() for v in values])


def read_csv(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.rstrip("\n").split(",") for line in file]
    return lines[0], lines[1:]


class CApi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.held = tempfile.TemporaryDirectory(prefix="fcp-c-")
        cls.folder = cls.held.name
        cls.fcp = library()
        demo = demo_folder()
        cls.model = os.path.join(demo, "calibrated.onnx")
        header, rows = read_csv(os.path.join(demo, "test.csv"))
        target = header.index("minutes")
        cls.columns = header[:target] + header[target + 1:]
        cls.rows = [row[:target] + row[target + 1:] for row in rows[:20]]
        cls.truths = [float(row[target]) for row in rows[:20]]

    @classmethod
    def tearDownClass(cls):
        cls.held.cleanup()

    @classmethod
    def path(cls, *names):
        return os.path.join(cls.folder, *names)

    @staticmethod
    def run_fcp(*arguments):
        return subprocess.run([PROGRAM, *arguments, "--quiet", "--threads", "1"], check=True,
                              capture_output=True, text=True).stdout

    def load(self, path=None):
        predictor = self.fcp.fcp_load((path or self.model).encode(), b"cpu")
        self.assertTrue(predictor, self.fcp.fcp_last_error())
        self.addCleanup(self.fcp.fcp_free, predictor)
        return predictor

    def numbers(self, rows):
        flat = [float(cell) for row in rows for cell in row]
        return Rows(count=len(rows), x=(ctypes.c_float * len(flat))(*flat))

    def intervals(self, predictor, rows, levels):
        count = rows.count * self.fcp.fcp_outputs(predictor)
        points = (ctypes.c_double * count)()
        lower = (ctypes.c_double * (count * len(levels)))()
        upper = (ctypes.c_double * (count * len(levels)))()
        done = self.fcp.fcp_intervals(predictor, rows, texts(levels), len(levels), points, lower,
                                      upper)
        self.assertEqual(done, 0, self.fcp.fcp_last_error())
        return list(points), list(lower), list(upper)

    def test_the_answers_of_the_program(self):
        predictor = self.load()
        self.assertEqual(self.fcp.fcp_row_size(predictor), len(self.columns))
        self.assertEqual(self.fcp.fcp_classes(predictor), 0)
        self.assertEqual(self.fcp.fcp_group_column(predictor), b"")
        self.assertEqual(self.fcp.fcp_needs_weights(predictor), 0)
        points, lower, upper = self.intervals(predictor, self.numbers(self.rows), ["0.1", "0.2"])
        with open(self.path("new.csv"), "w", encoding="utf-8") as file:
            file.write("\n".join(",".join(row) for row in [self.columns, *self.rows]) + "\n")
        told = self.run_fcp("predict", self.model, "--data", self.path("new.csv"), "--alpha",
                            "0.1,0.2").splitlines()[1:]
        for i, line in enumerate(told):
            expected = [float(cell) for cell in line.split(",")]
            found = [points[i], lower[i], upper[i], lower[20 + i], upper[20 + i]]
            for a, b in zip(found, expected, strict=True):
                self.assertAlmostEqual(a, b, delta=1e-5 * (1 + abs(b)))

    def test_cells_are_numbers_too(self):
        predictor = self.load()
        self.assertEqual(self.fcp.fcp_columns(predictor), len(self.columns))
        named = [self.fcp.fcp_column(predictor, k).decode() for k in range(len(self.columns))]
        self.assertEqual(named, self.columns)
        self.assertIsNone(self.fcp.fcp_column(predictor, len(self.columns)))
        cells = texts([cell for row in self.rows for cell in row])
        by_text = Rows(count=len(self.rows), cells=cells)
        self.assertEqual(self.intervals(predictor, by_text, ["0.1"]),
                         self.intervals(predictor, self.numbers(self.rows), ["0.1"]))

    def test_p_values_say_what_is_inside(self):
        predictor = self.load()
        rows = self.numbers(self.rows)
        y = (ctypes.c_float * len(self.truths))(*self.truths)
        p = (ctypes.c_double * len(self.truths))()
        self.assertEqual(self.fcp.fcp_p_values(predictor, rows, y, p), 0)
        _, lower, upper = self.intervals(predictor, rows, ["0.3"])
        for i, truth in enumerate(y):
            self.assertEqual(p[i] > 0.3, lower[i] <= truth <= upper[i])

    def write_table(self, name):
        with open(self.path(name), "w", encoding="utf-8") as file:
            for row, truth in zip([self.columns, *self.rows], ["minutes", *self.truths]):
                file.write(",".join([*row, str(truth)]) + "\n")
        return self.path(name)

    def test_distributions(self):
        table = self.write_table("truths.csv")
        self.run_fcp("calibrate", self.model, "--data", table, "--target", "minutes", "--score",
                     "residual", "--side", "upper", "--out", self.path("promise.onnx"))
        told = [dict(zip(*pair)) for pair in self.table_of(
            "predict", self.path("promise.onnx"), "--data", table, "--quantiles", "0.25,0.9",
            "--above", "30", "--between", "10:30")]
        predictor = self.load(self.path("promise.onnx"))
        count = len(self.rows)
        quantiles, low, high = ((ctypes.c_double * (2 * count))() for _ in range(3))
        rows = self.numbers(self.rows)
        done = self.fcp.fcp_quantiles(predictor, rows, texts(["0.25", "0.9"]), 2, quantiles)
        self.assertEqual(done, 0, self.fcp.fcp_last_error())
        for name, begin, end in (("above_30", 30, math.inf), ("between_10:30", 10, 30)):
            self.assertEqual(self.fcp.fcp_probability(predictor, rows, begin, end, low, high), 0)
            for i, row in enumerate(told):
                self.assertAlmostEqual(low[i], float(row[name + "_lower"]), places=6)
                self.assertAlmostEqual(high[i], float(row[name + "_upper"]), places=6)
        for i, row in enumerate(told):
            for k, name in enumerate(("quantile_0.25", "quantile_0.9")):
                self.assertAlmostEqual(quantiles[2 * i + k], float(row[name]), places=3)
        self.assertEqual(self.fcp.fcp_probability(predictor, rows, 3, 2, low, high), -1)
        self.assertIn(b"smaller number first", self.fcp.fcp_last_error())
        self.assertEqual(self.fcp.fcp_quantiles(self.load(), rows, texts(["0.5"]), 1, quantiles), -1)
        self.assertIn(b"needs the scores of one end", self.fcp.fcp_last_error())

    def table_of(self, *arguments):
        lines = [line.split(",") for line in self.run_fcp(*arguments).splitlines()]
        return [(lines[0], line) for line in lines[1:]]

    def test_probabilities_and_discoveries(self):
        with open(self.path("pairs.csv"), "w", encoding="utf-8") as file:
            file.write("a,b,kind\n" + "".join(
                f"{i * 37 % 101},{i * 53 % 97},{(i * 37 % 101 + i % 7) // 54}\n"
                for i in range(200)))
        self.run_fcp("train", self.path("pairs.csv"), "--target", "kind", "--loss", "cross-entropy",
                     "--recipe", "paper", "--epochs", "5", "--out", self.path("pairs.onnx"))
        for name, options in (("plain", ()), ("va", ("--probabilities", "venn-abers"))):
            self.run_fcp("calibrate", self.path("pairs.onnx"), "--data", self.path("pairs.csv"),
                         "--target", "kind", "--allow-training-rows", "--score", "lac", "--out",
                         self.path(name + ".onnx"), *options)
        told = [dict(zip(*pair)) for pair in self.table_of(
            "predict", self.path("va.onnx"), "--data", self.path("pairs.csv"), "--probabilities")]
        rows = self.numbers([row[:2] for row in read_csv(self.path("pairs.csv"))[1]])
        predictor = self.load(self.path("va.onnx"))
        names = [self.fcp.fcp_class(predictor, k).decode() for k in range(2)]
        found = [(ctypes.c_double * 400)() for _ in range(3)]
        done = self.fcp.fcp_class_probabilities(predictor, rows, *found)
        self.assertEqual(done, 0, self.fcp.fcp_last_error())
        for i, row in enumerate(told):
            for k, name in enumerate(names):
                for kind, numbers in zip(("p_", "p0_", "p1_"), found):
                    self.assertAlmostEqual(numbers[2 * i + k], float(row[kind + name]), places=6)
        plain = self.load(self.path("plain.onnx"))
        self.assertEqual(self.fcp.fcp_class_probabilities(plain, rows, *found), -1)
        self.assertIn(b"was not calibrated with venn-abers", self.fcp.fcp_last_error())
        self.assertEqual(self.fcp.fcp_class_probabilities(plain, rows, found[0], None, None), 0)
        p_values, marks = (ctypes.c_double * 3)(0.5, 0.01, 0.9), (ctypes.c_ubyte * 3)()
        self.assertEqual(self.fcp.fcp_discoveries(p_values, 3, b"0.1", marks), 0)
        self.assertEqual(list(marks), [0, 1, 0])

    def test_sets_of_labels(self):
        table = self.path("kinds.csv")
        with open(table, "w", encoding="utf-8") as file:
            file.write("a,b,kind\n")
            for i in range(300):
                a, b = i * 37 % 101 / 50, i * 53 % 97 / 50
                kind = ("low", "mid", "high")[int(a + b) % 3]
                file.write(f"{a},{b},{kind}\n")
        self.run_fcp("fit", table, "--target", "kind", "--epochs", "3", "--members", "1",
                     "--calibration", "split", "--out", self.path("kinds.onnx"))
        self.run_fcp("predict", self.path("kinds.onnx"), "--data", table, "--alpha", "0.2",
                     "--out", self.path("sets.csv"))
        predictor = self.load(self.path("kinds.onnx"))
        names = [self.fcp.fcp_class(predictor, k).decode()
                 for k in range(self.fcp.fcp_classes(predictor))]
        self.assertEqual(sorted(names), ["high", "low", "mid"])
        rows = [row[:2] for row in read_csv(table)[1]]
        labels = (ctypes.c_longlong * 300)()
        members = (ctypes.c_ubyte * (2 * 300 * 3))()
        done = self.fcp.fcp_label_sets(predictor, self.numbers(rows), texts(["0.5", "0.2"]), 2,
                                       labels, members)
        self.assertEqual(done, 0, self.fcp.fcp_last_error())
        for i, told in enumerate(read_csv(self.path("sets.csv"))[1]):
            at = members[3 * (300 + i):3 * (301 + i)]
            found = [name for name, inside in zip(names, at) if inside]
            self.assertEqual([names[labels[i]], str(len(found)), "|".join(found)], told)

    def test_groups_bring_their_radius(self):
        with open(self.path("grouped.csv"), "w", encoding="utf-8") as file:
            file.write(",".join([*self.columns, "side", "minutes"]) + "\n")
            for i, (row, truth) in enumerate(zip(self.rows, self.truths)):
                file.write(",".join([*row, "left" if i < 12 else "right", str(truth)]) + "\n")
        self.run_fcp("calibrate", self.model, "--data", self.path("grouped.csv"), "--target",
                     "minutes", "--score", "residual", "--calibration", "grouped", "--group",
                     "side", "--out", self.path("grouped.onnx"))
        predictor = self.load(self.path("grouped.onnx"))
        self.assertEqual(self.fcp.fcp_group_column(predictor), b"side")
        rows = self.numbers(self.rows)
        self.assertEqual(self.fcp.fcp_intervals(predictor, rows, texts(["0.2"]), 1, None, None,
                                                None), -1)
        self.assertEqual(self.fcp.fcp_last_error(),
                         b"groups: the predictor was calibrated by group: give the group of each row")
        rows.groups = texts(["left"] * 10 + ["right"] * 9 + ["elsewhere"])
        points, lower, upper = self.intervals(predictor, rows, ["0.2"])
        radii = [round(up - point, 6) for point, up in zip(points, upper)]
        self.assertEqual(len(set(radii[:10])), 1)
        self.assertEqual(len(set(radii[10:19])), 1)
        self.assertNotEqual(radii[0], radii[10])
        self.assertEqual((lower[19], upper[19]), (-math.inf, math.inf))

    def test_parts_of_unions(self):
        """Those that the program writes; there may be room for the first ones alone."""
        legacy = os.path.join(os.path.dirname(__file__), os.pardir, "data", "legacy")
        union = os.path.join(legacy, "0.2", "union.onnx")
        predictor = self.load(union)
        header, cells = read_csv(os.path.join(legacy, "rows.csv"))
        rows = self.numbers([row[:3] for row in cells])
        told = list(csv.DictReader(self.run_fcp(
            "predict", union, "--data", os.path.join(legacy, "rows.csv"), "--alpha",
            "0.2,0.5").splitlines()))
        self.assertEqual(header[:3], ["a", "b", "c"])
        wanted = [[[float(end) for end in part.split(":")] for part in
                   row["intervals_" + level].split("|")] for level in ("0.2", "0.5") for row in told]
        regions = len(wanted)
        counts, levels = (ctypes.c_longlong * regions)(), texts(["0.2", "0.5"])
        total = self.fcp.fcp_parts(predictor, rows, levels, 2, counts, None, 0)
        self.assertEqual(list(counts), list(map(len, wanted)), self.fcp.fcp_last_error())
        self.assertEqual(total, sum(counts))
        self.assertGreater(max(counts), 2)
        ends = (ctypes.c_double * (2 * total + 2))(*[math.nan] * (2 * total + 2))
        self.assertEqual(self.fcp.fcp_parts(predictor, rows, levels, 2, None, ends, 2), total)
        self.assertTrue(all(map(math.isnan, ends[4:])))
        first = ends[:4]
        self.fcp.fcp_parts(predictor, rows, levels, 2, None, ends, total + 1)
        self.assertEqual(first, ends[:4])
        self.assertTrue(all(map(math.isnan, ends[2 * total:])))
        flat = [end for region in wanted for part in region for end in part]
        for found, expected in zip(ends, flat):
            self.assertAlmostEqual(found, expected, delta=1e-6 * (1 + abs(expected)))
        self.assertEqual(self.fcp.fcp_parts(predictor, rows, levels, 2, None, None, 1), -1)
        self.assertEqual(self.fcp.fcp_last_error(), b"ends: is NULL")
        self.assertEqual(self.fcp.fcp_parts(predictor, rows, levels, 2, None, None, -1), -1)
        self.assertEqual(self.fcp.fcp_last_error(), b"capacity: found -1, expected 0 or more")

    def test_flags_of_cells(self):
        demo, model = demo_folder(), self.path("flagged.onnx")  # of a network that knows its ranges
        self.run_fcp("train", os.path.join(demo, "train.csv"), "--target", "minutes", "--members",
                     "1", "--epochs", "2", "--out", self.path("trained.onnx"))
        self.run_fcp("calibrate", self.path("trained.onnx"), "--data",
                     os.path.join(demo, "calibration.csv"), "--target", "minutes", "--score",
                     "residual", "--out", model)
        predictor = self.load(model)
        cells = [cell for row in self.rows for cell in row]
        plain = self.flags(predictor, Rows(count=len(self.rows), cells=texts(cells)))
        self.assertEqual(plain[0], "")
        far = Rows(count=len(self.rows), cells=texts(["1e9", *cells[1:]]))
        first = self.fcp.fcp_column(predictor, 0).decode()
        wanted = ["range:" + first, *plain[1:]]
        self.assertEqual(self.flags(predictor, far), wanted)
        short = ctypes.create_string_buffer(b"untouched")
        self.assertEqual(self.fcp.fcp_flags(predictor, far, short, 5), sum(map(len, wanted)) + len(wanted))
        self.assertEqual(short.value, b"untouched")
        self.assertEqual(self.fcp.fcp_flags(predictor, self.numbers(self.rows), None, 0), -1)
        self.assertIn(b"flags are of cells", self.fcp.fcp_last_error())

    def flags(self, predictor, rows):
        size = self.fcp.fcp_flags(predictor, rows, None, 0)
        room = ctypes.create_string_buffer(size)
        self.assertEqual(self.fcp.fcp_flags(predictor, rows, room, size), size)
        return [text.decode() for text in room.raw.split(b"\0")[:-1]]

    def test_refusals_are_one_line(self):
        self.assertIsNone(self.fcp.fcp_load(b"none.onnx", b"cpu"))
        self.assertIn(b"none.onnx", self.fcp.fcp_last_error())
        self.assertIsNone(self.fcp.fcp_load(None, b"cpu"))
        self.assertEqual(self.fcp.fcp_last_error(), b"path: is NULL")
        self.assertEqual(self.fcp.fcp_row_size(None), -1)
        predictor = self.load()
        self.assertEqual(self.fcp.fcp_intervals(predictor, Rows(count=1), None, 0, None, None,
                                                None), -1)
        self.assertEqual(self.fcp.fcp_last_error(), b"rows: expected either x or cells")
        bad = self.numbers(self.rows)
        bad.x[1] = math.nan
        self.assertEqual(self.fcp.fcp_intervals(predictor, bad, None, 0, None, None, None), -1)
        self.assertIn(b"row 0 (from 0) has NaN in column 1", self.fcp.fcp_last_error())
        good = self.numbers(self.rows)
        self.assertEqual(self.fcp.fcp_intervals(predictor, good, texts(["2"]), 1, None, None,
                                                None), -1)
        self.assertNotIn(b"\n", self.fcp.fcp_last_error())
        self.assertEqual(self.fcp.fcp_label_sets(predictor, good, None, 0, None, None), -1)
        self.assertEqual(self.fcp.fcp_last_error(),
                         b"the predictor gives intervals, not label sets")

    def test_errors_are_of_their_thread(self):
        self.fcp.fcp_row_size(None)
        seen = []
        thread = threading.Thread(target=lambda: seen.append(self.fcp.fcp_last_error()))
        thread.start()
        thread.join()
        self.assertEqual(seen, [b""])

    def test_threads_share_a_predictor(self):
        predictor = self.load()
        expected = self.intervals(predictor, self.numbers(self.rows), ["0.1"])
        found = []

        def ask():
            for _ in range(10):
                found.append(self.intervals(predictor, self.numbers(self.rows), ["0.1"]))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(found), 40)
        self.assertTrue(all(one == expected for one in found))

    def test_it_shows_the_public_names_alone(self):
        """Nothing else could clash with what a program brings."""
        listed = subprocess.run(["nm", "-DC", "--defined-only", LIBRARY], capture_output=True,
                                text=True, check=True).stdout
        names = [line.split(" ", 2)[2].split("@")[0] for line in listed.splitlines()]
        self.assertIn("fcp_intervals", names)
        public = (r"fcp_\w+|FCP_0|fcp::version\(|(typeinfo|typeinfo name|vtable) for fcp::Error|"
                  r"fcp::(Level|Batch|InputSchema|Answer|Predictor|Distribution|Probabilities|"
                  r"OutlierDetector)::|"
                  r"fcp::(calibrate|fit|evaluate|export_onnx|encode|tensors|features|scores|"
                  r"discoveries)\(")
        self.assertEqual([name for name in names if not re.match(public, name)], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
