"""Every calibration in every interface: the command line, C++, C, Python and the server give the
same answers to the last bit, or the same refusal in the same words.

Answers are doubles in C++, C and Python, and float32 on the command line and from the server, whose
ends are rounded inwards (docs/formats.md). One thing differs on purpose: `localized` draws by the
row's place, which the server takes at random, so that only its prediction is compared. Of unions the
hull is compared everywhere, and the parts where there are any: in C++, in C and in CSV files."""
import csv
import ctypes
import io
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest

import numpy as np
import torch

try:
    import pandas
except ImportError:
    pandas = None

import fcp

ANSWERS = sys.argv.pop(3)  # the program answers.cc
import test_c_api  # pylint: disable=wrong-import-position
import program  # pylint: disable=wrong-import-position
from test_serve import Server  # pylint: disable=wrong-import-position

LEVELS = ["0.1", "0.3"]
ASKED = 7  # rows
TRAINED = ["a", "b", "city"]

# The rows of the table: what each network takes and predicts, and how each calibration is asked of
# the command line. {s} is the form of the data: a column, or a file beside the array.
NETWORKS = {
    "table": dict(target="y", flags=["--score", "residual"]),
    "union": dict(target="y", flags=["--score", "density", "--union"]),
    "labels": dict(target="kind", flags=["--score", "lac"], labels=True),
    "outputs": dict(arrays=["x"], flags=["--score", "residual"]),
    "each": dict(arrays=["x"], network="outputs", flags=["--score", "residual", "--joint", "each"]),
    "volume": dict(arrays=["x"], network="outputs", flags=["--joint", "volume"]),
    "inputs": dict(arrays=["ids", "x"], flags=["--score", "residual"]),
}
CALIBRATIONS = {
    "split": [],
    "kept": ["--levels", ",".join(LEVELS)],
    "column": ["--calibration", "grouped", "--group", "{side}"],
    "predicted": ["--calibration", "grouped", "--group", "predicted"],
    "label": ["--calibration", "grouped", "--group", "label"],
    "localized": ["--calibration", "localized"],
    "weights": ["--calibration", "weighted", "--weights", "{w}"],
    "shifted": ["--calibration", "weighted", "--shifted", "{new}"],
    "cross": None,  # comes with `fcp fit`
}
LABELS_ALONE = ("predicted", "label")
NEEDS = {"column": "the predictor was calibrated by group: give the group of each row",
         "weights": "the predictor was calibrated with given likelihood ratios: give that of each "
                    "row"}


def combinations():
    for network, facts in NETWORKS.items():
        for calibration in CALIBRATIONS:
            if calibration in LABELS_ALONE and not facts.get("labels"):
                continue
            if calibration == "cross" and network not in ("table", "labels"):
                continue  # fcp fit chooses the score, and takes tables
            yield network, calibration


class TwoInputs(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(5, 3)
        self.head = torch.nn.Sequential(torch.nn.Linear(5, 6), torch.nn.ReLU(),
                                        torch.nn.Linear(6, 1))

    def forward(self, ids, x):
        return self.head(torch.cat([self.embedding(ids).sum(1), x], 1))


def inwards(lower, upper):
    """The float32 numbers between which lie those that lie between the doubles."""
    lower, upper = np.asarray(lower), np.asarray(upper)
    low, high = lower.astype(np.float32), upper.astype(np.float32)
    low = np.where(low < lower, np.nextafter(low, np.float32(np.inf)), low)
    return low, np.where(high > upper, np.nextafter(high, np.float32(-np.inf)), high)


@unittest.skipIf(pandas is None, "pandas is not installed")
class Matrix(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        held = tempfile.TemporaryDirectory(prefix="fcp-matrix-")
        cls.addClassCleanup(held.cleanup)
        cls.shared = held.name
        torch.manual_seed(0)
        torch.set_num_threads(1)
        cls.library = test_c_api.library()
        cls.make_data(np.random.default_rng(0))
        cls.models = {}
        for network, calibration in combinations():
            cls.calibrate_one(network, calibration)
        case = types.SimpleNamespace(folder=cls.shared, addCleanup=cls.addClassCleanup)
        cls.server = Server(case, *(f"{name}={name}.onnx" for name in cls.models.values()))

    @classmethod
    def run_here(cls, *arguments, succeeds=True):
        done = subprocess.run([program.PROGRAM, *arguments, "--quiet", "--threads", "1"],
                              cwd=cls.shared, env=program.ENVIRONMENT, capture_output=True,
                              text=True, timeout=program.LONGEST, check=False)
        if succeeds:
            assert done.returncode == 0, f"{arguments}: {done.stderr}"
        return done

    @classmethod
    def file(cls, name):
        return os.path.join(cls.shared, name)

    @classmethod
    def make_data(cls, random):
        """A table with missing cells, groups and weights, the same as arrays, and the networks."""
        def table(name, rows, columns=(*TRAINED, "side", "w", "y", "kind")):
            a, b = random.normal(size=(2, rows))
            city = random.choice(["Ulm", "Bonn", "Jena"], size=rows)
            y = a + 2 * (city == "Ulm") + (0.3 + abs(b)) * random.normal(size=rows)
            cells = {"a": [f"{v:.4f}" if random.random() < 0.9 else "" for v in a],
                     "b": [f"{v:.4f}" for v in b], "city": city,
                     "side": random.choice(["left", "right"], size=rows),
                     "w": [f"{v:.3f}" for v in random.uniform(0.5, 2, size=rows)],
                     "y": [f"{v:.4f}" for v in y],
                     "kind": np.where(y < 0, "low", np.where(y < 1.5, "mid", "high"))}
            with open(cls.file(name), "w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(
                    [columns, *zip(*[cells[column] for column in columns])])
            return cells

        def arrays(stem, cells):
            rows = len(cells["b"])
            x = random.normal(size=(rows, 2)).astype(np.float32)
            ids = random.integers(5, size=(rows, 2))
            np.savez(cls.file(stem + ".npz"), ids=ids, x=x)
            np.save(cls.file(stem + ".npy"), x)
            np.save(cls.file(stem + "_side.npy"), np.array([s == "left" for s in cells["side"]],
                                                           np.float32))
            np.save(cls.file(stem + "_w.npy"), np.array(cells["w"], np.float32))
            y = random.normal(size=(rows, 2)).astype(np.float32)
            np.save(cls.file(stem + "_y2.npy"), y)
            np.save(cls.file(stem + "_y1.npy"), y[:, 0])
            return {"ids": ids, "x": x, "side": np.load(cls.file(stem + "_side.npy")),
                    "w": np.load(cls.file(stem + "_w.npy"))}

        for target in ("y", "kind"):
            table(f"train_{target}.csv", 400, (*TRAINED, target))
            cls.run_here("train", f"train_{target}.csv", "--target", target, "--impute", "--epochs",
                         "3", "--members", "1", "--out", f"{target}.onnx")
        arrays("cal", table("cal.csv", 700))
        cls.rows = table("new.csv", ASKED)
        cls.arrays = arrays("new", cls.rows)
        copy_columns(cls.file("new.csv"), cls.file("plain.csv"), TRAINED)
        np.save(cls.file("missing.npy"), np.where(np.arange(2) == 1, np.nan, cls.arrays["x"]))
        fcp.from_torch(torch.nn.Sequential(torch.nn.Linear(2, 6), torch.nn.ReLU(),
                                           torch.nn.Linear(6, 2)),
                       torch.zeros(1, 2)).save(cls.file("outputs.onnx"))
        torch.onnx.export(TwoInputs(), (torch.zeros(1, 2, dtype=torch.long), torch.zeros(1, 2)),
                          cls.file("inputs.onnx"), opset_version=13, input_names=["ids", "x"],
                          output_names=["y"], dynamic_axes={"ids": {0: "n"}, "x": {0: "n"}})

    @classmethod
    def data_of(cls, network, stem):
        if "arrays" not in NETWORKS[network]:
            return stem + ".csv"
        return stem + (".npz" if network == "inputs" else ".npy")

    @classmethod
    def calibrate_one(cls, network, calibration):
        facts, name = NETWORKS[network], f"{network}_{calibration}"
        if calibration == "cross":
            cls.run_here("fit", "cal.csv", "--target", facts["target"], "--drop",
                         "side,w," + ("kind" if facts["target"] == "y" else "y"), "--calibration",
                         "cross", "--epochs", "2", "--members", "1", "--out", name + ".onnx")
        else:
            tables = "arrays" not in facts
            names = {"side": "side" if tables else "cal_side.npy",
                     "w": "w" if tables else "cal_w.npy", "new": cls.data_of(network, "new")}
            target = facts["target"] if tables else f"cal_y{1 if network == 'inputs' else 2}.npy"
            made = facts.get("target", facts.get("network", network))
            cls.run_here("calibrate", f"{made}.onnx", "--data",
                         cls.data_of(network, "cal"), "--target", target, *facts["flags"],
                         *(part.format(**names) for part in CALIBRATIONS[calibration]), "--seed",
                         "1", "--out", name + ".onnx")
        cls.models[network, calibration] = name

    # What each interface says: [prediction, (lower, upper) or members of each level], or a text.

    def by_program(self, network, calibration, levels, bare=False, data="new"):
        flags = []
        if "arrays" in NETWORKS[network] and not bare:
            flags = {"column": ["--group", "new_side.npy"],
                     "weights": ["--weights", "new_w.npy"]}.get(calibration, [])
        elif calibration == "weights" and not bare:
            flags = ["--weights", "w"]
        if bare and calibration == "column" and "arrays" not in NETWORKS[network]:
            data = "plain"
        done = self.run_here("predict", self.models[network, calibration] + ".onnx", "--data",
                             self.data_of(network, data), "--alpha", ",".join(levels), *flags,
                             succeeds=False)
        if done.returncode:
            return done.stderr
        rows = list(csv.reader(io.StringIO(done.stdout)))
        columns = dict(zip(rows[0], zip(*rows[1:])))
        if NETWORKS[network].get("labels"):
            classes = self.classes(network, calibration)
            sets = [[[name in cell.split("|") for name in classes] for cell in column]
                    for head, column in columns.items() if head.startswith("labels")]
            return [np.array([classes.index(name) for name in columns["prediction"]])[:, None],
                    *map(np.array, sets)]
        def numbers(start):
            return [np.array(column, np.float32) for head, column in columns.items()
                    if head.startswith(start)]
        def ends(start, level):  # of each output those of all levels
            return np.stack(numbers(start)[level::len(levels)], 1)
        return [np.stack(numbers("prediction"), 1),
                *[(ends("lower", i), ends("upper", i)) for i in range(len(levels))]]

    def classes(self, network, calibration):
        return list(map(str, self.estimator(network, calibration).model_.classes))

    def question(self, network, calibration, levels, bare=False):
        asked = {"model": self.file(self.models[network, calibration] + ".onnx"), "levels": levels,
                 "groups": [], "weights": [], "columns": [], "cells": [], "inputs": {}}
        if calibration == "column" and not bare:
            asked["groups"] = [text_of(side) for side in self.facts(network)["side"]]
        if calibration == "weights" and not bare:
            asked["weights"] = [float(weight) for weight in self.facts(network)["w"]]
        if "arrays" not in NETWORKS[network]:
            asked["columns"] = TRAINED
            asked["cells"] = [list(row) for row in zip(*[self.rows[name] for name in TRAINED])]
            return asked
        for name in NETWORKS[network]["arrays"]:
            own = name if network == "inputs" else "input"
            values = self.arrays[name]
            asked["inputs"][own] = {"shape": list(values.shape),
                                    "data": [repr(float(value)) for value in values.ravel()]}
        return asked

    def facts(self, network):
        return self.arrays if "arrays" in NETWORKS[network] else self.rows

    def by_cpp(self, question):
        done = subprocess.run([ANSWERS], input=json.dumps([question]), capture_output=True,
                              text=True, timeout=program.LONGEST, check=True)
        told = json.loads(done.stdout)[0]
        if "error" in told:
            return told["error"]
        def doubles(texts):
            return np.array([float.fromhex(text) for text in texts]).reshape(ASKED, -1)
        return [doubles(told["prediction"]),
                *[tuple(map(doubles, region)) if isinstance(region[0], list)
                  else np.array(region).reshape(ASKED, -1) for region in told["regions"]]]

    def c_rows(self, model, question):
        library, rows = self.library, test_c_api.Rows(count=ASKED)
        if question["columns"]:
            columns = [library.fcp_column(model, k).decode()
                       for k in range(library.fcp_columns(model))]
            self.assertEqual(columns, question["columns"])
            rows.cells = test_c_api.texts([cell for row in question["cells"] for cell in row])
        else:
            parts = [np.array(tensor["data"], np.float32).reshape(ASKED, -1)
                     for tensor in question["inputs"].values()]
            flat = np.concatenate(parts, 1).ravel()
            rows.x = (ctypes.c_float * flat.size)(*flat)
        if question["groups"]:
            rows.groups = test_c_api.texts(question["groups"])
        if question["weights"]:
            rows.weights = (ctypes.c_double * ASKED)(*question["weights"])
        return rows

    def by_c(self, question):
        library, levels = self.library, question["levels"]
        model = library.fcp_load(question["model"].encode(), b"cpu")
        self.assertTrue(model, library.fcp_last_error())
        asked = model, self.c_rows(model, question), test_c_api.texts(levels), len(levels)
        classes, width = library.fcp_classes(model), library.fcp_outputs(model)
        if classes:
            labels = (ctypes.c_longlong * ASKED)()
            members = (ctypes.c_ubyte * (len(levels) * ASKED * classes))()
            failed = library.fcp_label_sets(*asked, labels, members)
            found = [np.array(labels)[:, None],
                     *np.array(members, bool).reshape(len(levels), ASKED, classes)]
        else:
            points, lower, upper = ((ctypes.c_double * (count * ASKED * width))()
                                    for count in (1, len(levels), len(levels)))
            failed = library.fcp_intervals(*asked, points, lower, upper)
            low, high = (np.array(ends).reshape(len(levels), ASKED, width)
                         for ends in (lower, upper))
            found = [np.array(points).reshape(ASKED, width), *zip(low, high)]
        told = library.fcp_last_error().decode()
        library.fcp_free(model)
        return told if failed else found

    def parts_by_c(self, question):
        """Of each level, row and output the ends of the parts, by one call: another one would draw
        anew where the calibration draws."""
        library, levels = self.library, question["levels"]
        model = library.fcp_load(question["model"].encode(), b"cpu")
        asked = model, self.c_rows(model, question), test_c_api.texts(levels), len(levels)
        regions = len(levels) * ASKED * library.fcp_outputs(model)
        counts, room = (ctypes.c_longlong * regions)(), 64 * regions
        ends = (ctypes.c_double * (2 * room))()
        self.assertEqual(library.fcp_parts(*asked, counts, ends, room), sum(counts))
        self.assertLessEqual(sum(counts), room)
        library.fcp_free(model)
        stops = np.cumsum(counts)
        return [list(ends[2 * (stop - count):2 * stop]) for count, stop in zip(counts, stops)]

    def estimator(self, network, calibration):
        kind = (fcp.FeatureConformalClassifier if NETWORKS[network].get("labels")
                else fcp.FeatureConformalRegressor)
        return kind.load(self.file(self.models[network, calibration] + ".onnx"))

    def by_python(self, network, calibration, question):
        estimator = self.estimator(network, calibration)
        facts = {name: question[name] for name in ("groups", "weights") if question[name]}
        if question["columns"]:
            x = pandas.read_csv(self.file("plain.csv"))
        else:
            x = ({name: self.arrays[name] for name in ("ids", "x")} if network == "inputs"
                 else self.arrays["x"])
        try:
            if NETWORKS[network].get("labels"):
                labels, sets = estimator.predict_set(x, question["levels"], **facts)
                order = list(estimator.model_.classes)
                return [np.array([order.index(name) for name in labels])[:, None],
                        *np.moveaxis(sets, -1, 0)]
            prediction, ends = estimator.predict_interval(x, question["levels"], **facts)
        except fcp.Error as error:
            return str(error)
        ends = ends.reshape(ASKED, -1, 2, len(question["levels"]))
        return [prediction.reshape(ASKED, -1),
                *[(ends[:, :, 0, i], ends[:, :, 1, i]) for i in range(ends.shape[3])]]

    def by_server(self, network, calibration, question):
        inputs = [{"name": name, "shape": [ASKED], "datatype": "BYTES", "data": list(column)}
                  for name, column in zip(question["columns"], zip(*question["cells"]))]
        inputs += [{"name": name, "shape": tensor["shape"],
                    "datatype": "INT64" if name == "ids" else "FP32",
                    "data": [None if value == "nan" else float(value) for value in tensor["data"]]}
                   for name, tensor in question["inputs"].items()]
        for name, kind in (("groups", "BYTES"), ("weights", "FP64")):
            if question[name]:
                inputs.append({"name": name, "shape": [ASKED], "datatype": kind,
                               "data": question[name]})
        status, told = self.server.json(
            "POST", f"/v2/models/{self.models[network, calibration]}/infer",
            {"inputs": inputs, "parameters": {"alpha": ",".join(question["levels"])}})
        if status != 200:
            return told["error"]
        found = {one["name"]: np.array(one["data"], float).reshape(ASKED, -1)
                 for one in told["outputs"]}
        endings = [f"_{level}" for level in question["levels"]] if len(
            question["levels"]) > 1 else [""]
        if NETWORKS[network].get("labels"):
            return [found["prediction"], *[found["in_set" + end].astype(bool) for end in endings]]
        return [found["prediction"].astype(np.float32),
                *[tuple(found[side + end].astype(np.float32) for side in ("lower", "upper"))
                  for end in endings]]

    def ask(self, network, calibration, levels, bare=False):
        question = self.question(network, calibration, levels, bare)
        return {"program": self.by_program(network, calibration, levels, bare),
                "C++": self.by_cpp(question), "C": self.by_c(question),
                "Python": self.by_python(network, calibration, question),
                "server": self.by_server(network, calibration, question)}

    def assert_same(self, told, exact, drawn):
        """The answers of all interfaces are those of C++; `exact`: those that give doubles."""
        wanted = told["C++"]
        self.assertNotIsInstance(wanted, str, wanted)
        for name, found in told.items():
            self.assertNotIsInstance(found, str, f"{name}: {found}")
            self.assertEqual(len(found), len(wanted), name)
            parts = zip(found, wanted) if not (drawn and name == "server") else [
                (found[0], wanted[0])]
            for one, other in parts:
                if name not in exact and isinstance(other, tuple):
                    other = inwards(*other)
                elif name not in exact and other.dtype == float:
                    other = other.astype(np.float32)
                np.testing.assert_array_equal(np.array(one), np.array(other), name)

    def test_the_same_answers(self):
        for network, calibration in combinations():
            with self.subTest(network=network, calibration=calibration):
                self.assert_same(self.ask(network, calibration, LEVELS), ("C++", "C", "Python"),
                                 calibration == "localized")

    def test_the_same_parts_of_unions(self):
        for network, calibration in combinations():
            if NETWORKS[network].get("labels"):
                continue
            with self.subTest(network=network, calibration=calibration):
                question = self.question(network, calibration, LEVELS)
                done = subprocess.run([ANSWERS], input=json.dumps([question]), capture_output=True,
                                      text=True, timeout=program.LONGEST, check=True)
                by_cpp = [[float.fromhex(end) for end in ends]
                          for level in json.loads(done.stdout)[0]["parts"] for ends in level]
                by_c = self.parts_by_c(question)
                self.assertEqual(by_c, by_cpp)
                if network == "union":
                    self.assert_of_file(by_c, self.models[network, calibration], calibration)
                else:
                    self.assertEqual({len(ends) for ends in by_c}, {2})

    def assert_of_file(self, parts, model, calibration):
        flags = ["--weights", "w"] if calibration == "weights" else []
        told = self.run_here("predict", model + ".onnx", "--data", "new.csv", "--alpha",
                             ",".join(LEVELS), *flags).stdout
        rows = list(csv.DictReader(io.StringIO(told)))
        cells = [row["intervals_" + level] for level in LEVELS for row in rows]
        self.assertGreater(max(map(len, parts)), 2)
        for cell, ends in zip(cells, parts, strict=True):
            low, high = inwards(ends[::2], ends[1::2])
            wanted = [pair for pair in zip(low, high) if pair[0] <= pair[1]]
            found = [tuple(map(np.float32, part.split(":"))) for part in cell.split("|") if part]
            self.assertEqual(found, wanted)

    def assert_refused(self, told, sentence):
        for name, found in told.items():
            self.assertIsInstance(found, str, name)
            self.assertIn(sentence, found, name)

    def test_the_same_refusals(self):
        for network, calibration in combinations():
            with self.subTest(network=network, calibration=calibration):
                if calibration == "kept":
                    self.assert_refused(
                        self.ask(network, calibration, ["0.2"]),
                        "keeps the radii for levels 0.1, 0.3 alone (calibrate --levels)")
                elif calibration in NEEDS:
                    told = self.ask(network, calibration, LEVELS, bare=True)
                    if calibration == "column" and "arrays" not in NETWORKS[network]:
                        self.assertIn("'side'", told.pop("program"))  # a file without the column
                    self.assert_refused(told, NEEDS[calibration])

    def test_the_same_flags(self):
        """Of cells that no training row had."""
        odd = {name: list(self.rows[name]) for name in TRAINED}
        odd["city"][1], odd["b"][2], odd["city"][2] = "Mars", "1e9", "Rome"
        with open(self.file("odd.csv"), "w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([TRAINED, *zip(*odd.values())])
        question = {**self.question("table", "split", LEVELS), "cells": list(zip(*odd.values()))}
        told = self.run_here("predict", "table_split.onnx", "--data", "odd.csv", "--flags").stdout
        wanted = [row["flags"] for row in csv.DictReader(io.StringIO(told))]
        self.assertEqual(wanted[1:3], ["unseen:city", "range:b|unseen:city"])
        done = subprocess.run([ANSWERS], input=json.dumps([question]), capture_output=True,
                              text=True, timeout=program.LONGEST, check=True)
        self.assertEqual(json.loads(done.stdout)[0]["flags"], wanted)
        model = self.library.fcp_load(question["model"].encode(), b"cpu")
        room = ctypes.create_string_buffer(1000)
        size = self.library.fcp_flags(model, self.c_rows(model, question), room, 1000)
        self.library.fcp_free(model)
        self.assertEqual(room.raw[:size].decode().split("\0"), [*wanted, ""])
        frame = pandas.read_csv(self.file("odd.csv"))
        self.assertEqual(list(self.estimator("table", "split").flags(frame)), wanted)
        inputs = [{"name": name, "shape": [ASKED], "datatype": "BYTES", "data": cells}
                  for name, cells in odd.items()]
        status, told = self.server.json("POST", "/v2/models/table_split/infer",
                                        {"inputs": inputs, "parameters": {"flags": True}})
        self.assertEqual(status, 200, told)
        self.assertEqual({one["name"]: one["data"] for one in told["outputs"]}["flags"], wanted)

    def test_missing_numbers_are_refused_alike(self):
        saved = self.arrays["x"]
        type(self).arrays = dict(self.arrays, x=np.load(self.file("missing.npy")))
        try:
            question = self.question("outputs", "split", LEVELS)
            told = {"C++": self.by_cpp(question), "C": self.by_c(question),
                    "Python": self.by_python("outputs", "split", question),
                    "server": self.by_server("outputs", "split", question),
                    "program": self.by_program("outputs", "split", LEVELS, data="missing")}
        finally:
            type(self).arrays = dict(self.arrays, x=saved)
        self.assert_refused(told, "expected a number")


def text_of(group):
    """A group as a file has it: of numbers the shortest text."""
    return group if isinstance(group, str) else f"{float(group):g}"


def copy_columns(source, path, columns):
    """Some columns of a CSV file."""
    with open(source, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [columns, *[[row[name] for name in columns] for row in rows]])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
