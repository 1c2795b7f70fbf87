"""fcp.runtime, exported files with NumPy and ONNX Runtime alone, held against the program and against
the C++ code that reads cells. Skips without onnxruntime."""

import csv
import importlib.util
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import unittest
import warnings
from typing import Iterator

import numpy as np

import fcp
import networks
from fcp import _fcp

try:
    from fcp import runtime
except ModuleNotFoundError as error:
    if error.name != "onnxruntime":
        raise
    runtime = None

COLUMNS = {  # and what a cell of them may be
    "km": "number", "price": "number:point", "weight": "number:comma", "when": "date",
    "due": "date:dmy", "rush": "boolean", "weather": "category", "grade": "category", "note": "text",
}  # fmt: skip


def cells(rows, seed):
    """Rows of a table with all kinds of columns, some cells missing and some categories rare."""
    chance = random.Random(seed)
    table = []
    for i in range(rows):
        row = {
            "id": f"r{i}",
            "km": f"{chance.uniform(0, 50):.2f}",
            "price": f"${chance.randint(1000, 90000):,}.5",
            "weight": f"{chance.uniform(1, 9):.2f}".replace(".", ",") + " EUR",
            "when": f"2024-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}T{i % 24:02}:15",
            "due": f"{chance.randint(13, 28)}/{chance.randint(1, 12)}/23",
            "rush": chance.choice(["yes", "No"]),
            "weather": chance.choice(["rain", "sun", "snow"]) if i % 97 else f"hail{i}",
            "grade": str(chance.randint(1, 5)),
            "note": " ".join(chance.choices(["Call", "call,", "BELL?", "né", "2nd floor", f"n{i}"], k=3)),
        }
        row["minutes"] = f"{float(row['km']) * (2 if row['rush'] == 'yes' else 3) + chance.gauss(0, 2):.3f}"
        row["speed"] = "slow" if float(row["minutes"]) > 60 else "fast"
        for name in ("km", "when", "rush", "weather", "note"):
            if chance.random() < 0.05:
                row[name] = chance.choice(["", "NA", " ? "])
        table.append(row)
    return table


@unittest.skipIf(runtime is None, "onnxruntime is not installed")
class Runtime(networks.Case):
    def write(self, name, table):
        with open(self.path(name), "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(table[0]))
            writer.writeheader()
            writer.writerows(table)
        return name

    def fitted(self, target, *options, rows=700):
        table = cells(rows, 1)
        left = {"minutes": "speed", "speed": "minutes"}[target]
        schema = ",".join(f"{name}={kind}" for name, kind in COLUMNS.items()
                          if kind not in ("number", "number:point"))  # fmt: skip
        self.program(
            "fit", self.write("data.csv", table), "--target", target, "--drop", left, "--schema",
            schema, "--calibration", "split", "--members", "2", "--epochs", "8", "--out",
            "model.onnx", *options,
        )  # fmt: skip

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def test_intervals_of_a_table(self):
        self.fitted("minutes")
        self.program("export", "model.onnx", "--alpha", "0.1,0.30", "--out", "plain.onnx")
        table = cells(300, 2)
        self.program("predict", "model.onnx", "--data", self.write("new.csv", table), "--alpha",
                     "0.1,0.3", "--out", "intervals.csv")  # fmt: skip
        expected = self.read("intervals.csv")
        predictor = runtime.load(self.path("plain.onnx"), threads=1)
        self.assertEqual(sorted(predictor.columns), sorted(COLUMNS))
        self.assertEqual([float(alpha) for alpha in predictor.alphas], [0.1, 0.3])
        with self.assertWarnsRegex(UserWarning, "^column 'weather': .* cells, as 'hail0', are none of "
                                                "the categories of the training file"):
            prediction, intervals = predictor.predict_interval(table)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            by_column = {name: [row[name] for row in table] for name in reversed(table[0])}
            for again in (table, by_column):
                one = predictor.predict_interval(again, alpha=0.3)
                np.testing.assert_array_equal(one[0], prediction)
                np.testing.assert_array_equal(one[1], intervals[:, :, 1:])
        self.assertEqual((prediction.shape, intervals.shape), ((300,), (300, 2, 2)))
        for i, row in enumerate(expected):
            self.assertAlmostEqual(prediction[i], float(row["prediction"]), delta=1e-3)
            for k, alpha in enumerate(("0.1", "0.3")):
                lower, upper = float(row[f"lower_{alpha}"]), float(row[f"upper_{alpha}"])
                self.assertLessEqual(intervals[i, 0, k], lower)
                self.assertGreaterEqual(intervals[i, 1, k], upper)
                width = upper - lower
                self.assertLess(intervals[i, 1, k] - intervals[i, 0, k], 1.02 * width + 1e-2)
        with self.assertRaisesRegex(runtime.Error, "holds the levels 0.1, 0.30?, found alpha = 0.2"):
            predictor.predict_interval(table, alpha=0.2)
        with self.assertRaisesRegex(runtime.Error, "holds intervals; call predict_interval"):
            predictor.predict_set(table)

    def test_sets_of_a_table(self):
        self.fitted("speed")
        self.program("export", "model.onnx", "--alpha", "0.05", "--out", "plain.onnx")
        table = cells(300, 3)
        self.program("predict", "model.onnx", "--data", self.write("new.csv", table), "--alpha",
                     "0.05", "--out", "sets.csv")  # fmt: skip
        predictor = runtime.load(pathlib.Path(self.path("plain.onnx")).read_bytes(), threads=1)
        self.assertEqual(list(predictor.classes), ["fast", "slow"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            labels, sets = predictor.predict_set(table)
        self.assertEqual(sets.shape, (300, 2, 1))
        for i, row in enumerate(self.read("sets.csv")):
            self.assertEqual(labels[i], row["prediction"])
            held = {name for name, held in zip(predictor.classes, sets[i, :, 0]) if held}
            self.assertGreaterEqual(held, set(filter(None, row["labels"].split("|"))))
        with self.assertRaisesRegex(runtime.Error, "holds label sets; call predict_set"):
            predictor.predict_interval(table)

    def test_probabilities(self):
        random = np.random.default_rng(5)
        x = random.normal(size=(700, 3)).astype(np.float32)
        for classes in (2, 4):
            y = (x[:, :2].sum(1) + random.normal(size=700) > 0).astype(int) * (classes - 1)
            model = networks.model_for(networks.perceptron(3, classes))
            classifier = fcp.FeatureConformalClassifier(
                model, method="lac", probabilities="venn-abers"
            )
            classifier.conformalize(x[:400], y[:400]).export(self.path("plain.onnx"), alpha=0.1)
            predictor = runtime.load(self.path("plain.onnx"), threads=1)
            p0, p1 = classifier.predict_venn_abers(x[400:])
            found = [predictor.predict_proba(x[400:]), *predictor.predict_venn_abers(x[400:])]
            for own, wanted in zip(found, [classifier.predict_proba(x[400:]), p0, p1]):
                same = np.isclose(own, wanted, atol=1e-6).all(1)
                self.assertGreater(same.mean(), 0.98)  # rounding may carry a row across a step
                self.assertLess(np.abs(own - wanted).max(), 0.5)
        plain = fcp.FeatureConformalClassifier(model, method="lac").conformalize(x[:400], y[:400])
        plain.export(self.path("none.onnx"), alpha=0.1)
        with self.assertRaisesRegex(runtime.Error, "holds no probabilities; calibrate with"):
            runtime.load(self.path("none.onnx")).predict_proba(x)

    def test_messages_are_those_of_the_program(self):
        self.fitted("minutes", rows=600)
        self.program("export", "model.onnx", "--alpha", "0.1", "--out", "plain.onnx")
        predictor = runtime.load(self.path("plain.onnx"))
        for name, text in (("km", "far"), ("when", "2024-02-30"), ("rush", "perhaps"),
                           ("due", "2/13/x"), ("weight", "1.2.3")):  # fmt: skip
            table = cells(3, 4)
            table[1][name] = text
            done = subprocess.run(
                [networks.PROGRAM, "predict", "model.onnx", "--data", self.write("bad.csv", table)],
                cwd=self.folder, capture_output=True, text=True, timeout=600,
            )  # fmt: skip
            self.assertEqual(done.returncode, 1)
            with self.assertRaises(runtime.Error) as caught:
                predictor.encode(table)
            where, what = str(caught.exception).split(": ", 1)
            self.assertEqual(where, f"row 1 (from 0), column '{name}'")
            self.assertIn(what.split(",")[0], done.stderr)
            self.assertIn(f"'{text}'", done.stderr)
        with self.assertRaisesRegex(runtime.Error, "^X: has no column 'km'; expected are the col"):
            predictor.predict_interval({name: ["1"] for name in COLUMNS if name != "km"})
        with self.assertRaisesRegex(runtime.Error, "there are no rows"):
            predictor.predict_interval([])
        with self.assertRaisesRegex(runtime.Error, "is not a file of `fcp export`"):
            runtime.load(self.path("model.onnx"))
        with self.assertRaises(FileNotFoundError):
            runtime.load(self.path("none.onnx"))

    def test_every_cell_is_read_as_by_the_library(self):
        """Random cells, most of them almost right, through this file and through C++."""
        self.fitted("minutes", rows=600)
        self.program("export", "model.onnx", "--alpha", "0.1", "--out", "plain.onnx")
        network = _fcp.Network.read(self.path("model.onnx"))
        predictor = runtime.load(self.path("plain.onnx"))
        chance = random.Random(0)
        pieces = {
            "number": list("0123456789") + ["1.5", ".", "e", "E5", "-", "+", "inf", " ", "\t", "e-400"],
            "number:point": ["1", "23", "456", ",", ".", "$", "€", "%", "(", ")", "-", " ", "'", "e2",
                             "\u00a0", "\u202f", "USD", "7890"],
            "date": ["2024", "31", "2", "1", "-", "/", ".", " ", "Mar", "sept", "december", "T", ":",
                     "12", "59", "60", "am", "PM", "Z", "+", "utc", ",", "99", "00", "Q", "3"],
            "boolean": ["yes", "No", "TRUE", "false", " ", "t", "0"],
            "category": ["rain", "sun", "snow", " ", "fog", "1", "3", "NA"],
            "text": ["call", "BELL", "né", "NÉ", "2nd", "floor", " ", ",", "-", "_", "?", "x", "\u00a0"],
        }  # fmt: skip
        pieces["number:comma"] = pieces["number:point"]
        pieces["date:dmy"] = pieces["date"]
        good = {
            "date": ["2024-03-31", "3/31/24", "31 Mar 2024", "Mar 31, 2024", "31-Mar-2024 10:15:30.25",
                     "1.2.1969", "2024-02-29T23:59:60+01:30", "31.3.2024 9:05 pm", "0000-01-01",
                     "1900-02-29", "12/11/10 12:00 am", "July 4, 1999", "Mar-2018", "sept 2001",
                     "1979 Q3", "Q4-1980", "q5 1980", "20200131", "2020013", "11:38:36", "9:05 pm"],
            "number:point": ["(1,200)", "$-5", "-$1,234,567.8", "12 %", "1'000", "€ 3.5e2"],
            "number:comma": ["1.234,5", "-1.000", "3,5 €"],
            "number": ["1e308", "1e39", "-0", "+.5", "Infinity", "1.", "1e-46", "nan", "0x10", "1_000"],
        }  # fmt: skip
        good["date:dmy"] = good["date"]
        read = 0
        for place, column in enumerate(predictor._columns):
            kind = column.format
            family = "date" if kind.startswith("date") else kind
            texts = good.get(kind, []) + [
                "".join(chance.choices(pieces[kind], k=chance.randint(1, 9)))
                for _ in range(4000 if family == "date" or ":" in kind else 800)
            ]
            for text in texts:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        found = column.features([text])[0].tolist()
                    except runtime.Error as error:
                        found = str(error).split(": ", 1)[1]
                try:
                    expected = _fcp.encode_cells(network, place, [text], [0])[0][0].tolist()
                    read += 1
                except fcp.Error as error:
                    expected = str(error).removeprefix("X: ").split(": ", 1)[1]
                self.assertEqual(repr(found), repr(expected), f"{column.name} ({kind}): {text!r}")
        self.assertGreater(read, 500)

    def test_numbers_and_several_outputs(self):
        x, y = networks.regression_rows(400, outputs=2)
        regressor = fcp.FeatureConformalRegressor(
            networks.model_for(networks.perceptron(3, 2)), method="residual"
        )
        regressor.conformalize(x[:300], y[:300])
        regressor.export(self.path("plain.onnx"), alpha=0.1)
        expected = regressor.predict_interval(x[300:], alpha=0.1)
        predictor = runtime.load(self.path("plain.onnx"))
        self.assertIsNone(predictor.columns)
        prediction, intervals = predictor.predict_interval(x[300:].astype(np.float64))
        self.assertEqual(intervals.shape, (100, 2, 2, 1))
        np.testing.assert_allclose(prediction, expected[0], rtol=1e-5, atol=1e-5)
        self.assertTrue((intervals[:, :, 0] <= expected[1][:, :, 0].astype(np.float32)).all())
        self.assertTrue((intervals[:, :, 1] >= expected[1][:, :, 1].astype(np.float32)).all())
        wrong = x[:4].copy()
        wrong[2, 1] = np.nan
        for rows, complaint in (
            (wrong, r"^x: row 2 \(from 0\) has NaN in column 1, expected a number"),
            (x[:, :2], r"found rows of shape \[2\], expected \[3\]"),
            (np.full((1, 3), 1e300), r"element 0 \(from 0\): found 1e\+300, expected a finite float32"),
            ([{"a": 1}], "expected a dict with the inputs "),
        ):
            with self.assertRaisesRegex(runtime.Error, complaint):
                predictor.predict_interval(rows)
        name = next(iter(predictor._inputs))
        np.testing.assert_array_equal(predictor.predict_interval({name: x[300:]})[0], prediction)

    def test_needs_no_torch(self):
        """A copy of the one file in an empty folder, and the package without torch."""
        (pathlib.Path(self.folder) / "alone.py").write_bytes(
            pathlib.Path(runtime.__file__).read_bytes()
        )
        for module, search in (("alone", self.folder),
                               ("fcp.runtime", str(pathlib.Path(fcp.__file__).parents[1]))):
            text = (
                f"import sys; sys.path.insert(0, {search!r}); sys.modules['torch'] = None\n"
                f"import {module}\nassert 'fcp._fcp' not in sys.modules\n"
                f"print({module}.load.__name__)\n"
            )
            done = subprocess.run([sys.executable, "-B", "-c", text], capture_output=True, text=True,
                                  cwd=self.folder, timeout=200)  # fmt: skip
            self.assertEqual((done.stdout, done.returncode), ("load\n", 0), done.stderr)


@unittest.skipIf(runtime is None, "onnxruntime is not installed")
@unittest.skipUnless(importlib.util.find_spec("pyspark"), "pyspark is not installed")
@unittest.skipUnless(importlib.util.find_spec("pyarrow"), "pyarrow is not installed")
@unittest.skipUnless(shutil.which("java"), "there is no java, which pyspark runs on")
class Spark(networks.Case):
    def test_the_recipe_of_spark(self):
        """The function of docs/scale.md in Spark's local mode: the answers of one predictor."""
        import pandas as pd
        from pyspark.sql import SparkSession

        page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "scale.md"
        text = page.read_text(encoding="utf-8")
        recipe = next(block for block in re.findall(r"```python\n(.*?)```", text, re.S)
                      if "pandas_udf" in block)
        self.program("demo", "--out", "demo")
        rows = pd.read_csv(self.path("demo/test.csv"))
        self.program("fit", "demo/train.csv", "--target", "minutes", "--out", "minutes.onnx")
        self.program("export", "minutes.onnx", "--alpha", "0.1", "--out", "plain.onnx")
        os.environ["PYSPARK_PYTHON"] = sys.executable  # of the workers
        session = (
            SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1").getOrCreate()
        )
        try:
            names = {"Iterator": Iterator, "pd": pd}
            exec(recipe.replace('"plain.onnx"', repr(self.path("plain.onnx"))), names)
            table = session.createDataFrame(rows).repartition(3)
            columns = runtime.load(self.path("plain.onnx")).columns
            from pyspark.sql.functions import struct

            found = table.select(*columns, names["interval"](struct(*columns)).alias("answer"))
            found = found.toPandas()
        finally:
            session.stop()
        self.assertEqual(len(found), len(rows))
        prediction, ends = runtime.load(self.path("plain.onnx")).predict_interval(found[columns])
        for i, answer in enumerate(found["answer"]):
            self.assertAlmostEqual(answer["prediction"], prediction[i], places=4)
            self.assertAlmostEqual(answer["lower"], ends[i, 0, 0], places=4)
            self.assertAlmostEqual(answer["upper"], ends[i, 1, 0], places=4)


if __name__ == "__main__":
    networks.main()
