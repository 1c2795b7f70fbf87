"""Rows that come otherwise than as one array: DataLoaders, generators, dicts and tuples; and
plots, where matplotlib is installed."""

import importlib.util
import os
import subprocess
import sys
import unittest

import numpy as np
import torch

import fcp
import networks
from networks import Case, label_rows, model_for, perceptron, regression_rows

HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None
if HAS_MATPLOTLIB:
    os.environ["MPLBACKEND"] = "agg"


def batches(*arrays, size=32):
    for first in range(0, len(arrays[0]), size):
        parts = tuple(array[first : first + size] for array in arrays)
        yield parts if len(parts) > 1 else parts[0]


class Loaders(Case):
    def setUp(self):
        super().setUp()
        self.x, self.y = regression_rows(150)
        self.model = model_for(perceptron(3, 1))
        self.regressor = fcp.FeatureConformalRegressor(self.model, method="nested")
        self.regressor.conformalize(self.x, self.y)
        self.expected = self.regressor.predict_interval(self.x)

    def assert_same(self, X):
        prediction, intervals = self.regressor.predict_interval(X)
        np.testing.assert_array_equal(prediction, self.expected[0])
        np.testing.assert_array_equal(intervals, self.expected[1])

    def loader(self, *arrays, **options):
        tensors = torch.utils.data.TensorDataset(*map(torch.from_numpy, arrays))
        return torch.utils.data.DataLoader(tensors, batch_size=32, **options)

    def test_data_loader(self):
        again = fcp.FeatureConformalRegressor(self.model, method="nested")
        again.conformalize(self.loader(self.x, self.y))
        self.assertEqual(again.radius(0.1), self.regressor.radius(0.1))
        self.assert_same(self.loader(self.x))
        self.assert_same(self.loader(self.x, self.y))
        loader = self.loader(self.x, self.y)
        self.assertEqual(again.evaluate(loader), self.regressor.evaluate(self.x, self.y))
        np.testing.assert_array_equal(
            again.check(loader).p_value, self.regressor.check(self.x, self.y).p_value
        )

    def test_shuffled_loader_is_read_once(self):
        # The rows that choices look at are those left out, whatever the next pass would give.
        again = fcp.FeatureConformalRegressor(self.model, method="nested", cut="auto")
        again.conformalize(self.loader(self.x, self.y, shuffle=True))
        self.assertEqual(again.predictor_.rows, 120)

    def test_modules_and_generators(self):
        again = fcp.FeatureConformalRegressor(perceptron(3, 1), method="nested")
        again.conformalize(batches(self.x, self.y))
        self.assertEqual(again.radius(0.1), self.regressor.radius(0.1))
        self.assert_same(batches(self.x))
        self.assert_same(iter([self.x[:1], self.x[1:].tolist()]))
        self.assertEqual(self.regressor.predict(batches(self.x)).shape, (150,))

    def test_labels_and_groups(self):
        x, y = label_rows(200)
        groups = np.where(x[:, 0] > 0, "right", "left")
        classifier = fcp.FeatureConformalClassifier(
            model_for(perceptron(3, 4)), method="lac", calibration="grouped"
        )
        classifier.conformalize(self.loader(x, y), groups=groups)
        labels, sets = classifier.predict_set(x, groups=groups)
        found_labels, found_sets = classifier.predict_set(batches(x), groups=groups)
        np.testing.assert_array_equal(found_labels, labels)
        np.testing.assert_array_equal(found_sets, sets)
        with self.assert_error("groups: names 150 rows, X has 200"):
            classifier.predict_set(iter([x]), groups=groups[:150])
        with self.assert_error("groups: names 210 rows, X has 200"):
            classifier.predict_set(batches(x), groups=[*groups, *groups[:10]])

    def test_localized_draws_for_every_row_anew(self):
        def fresh():
            return fcp.FeatureConformalRegressor(
                self.model, method="residual", calibration="localized", bandwidth=1.0
            ).conformalize(self.x, self.y)

        local = fresh()
        _, intervals = local.predict_interval(self.x)
        # A predictor that has answered nothing draws the same, in batches and row by row.
        np.testing.assert_allclose(
            fresh().predict_interval(batches(self.x))[1], intervals, rtol=1e-6
        )
        single = fresh()
        for i in range(5):
            np.testing.assert_allclose(
                single.predict_interval(self.x[i : i + 1])[1], intervals[i : i + 1], rtol=1e-6
            )
        # The same row has other centres when it is asked for again.
        lengths = {
            float(np.diff(local.predict_interval(self.x[:1])[1].ravel())[0]) for _ in range(20)
        }
        self.assertGreater(len(lengths), 5)

    def test_refusals(self):
        with self.assert_error("y: comes with X where X is batches"):
            self.regressor.conformalize(self.loader(self.x, self.y), self.y)
        with self.assert_error(r"X: batch 1 \(from 0\) is not a pair"):
            self.regressor.conformalize(iter([(self.x, self.y), self.x]))
        with self.assert_error("X: has no batches"):
            self.regressor.conformalize(iter([]))
        with self.assert_error("X: has no batches"):
            self.regressor.predict(iter([]))
        wrong = self.x.copy()
        wrong[70, 1] = np.nan
        with self.assert_error(r"X: row 70 \(from 0\) has NaN in column 1"):
            self.regressor.predict(batches(wrong))

    @unittest.skipIf(importlib.util.find_spec("pandas") is None, "pandas is not installed")
    def test_tables_in_batches(self):
        import pandas

        table = pandas.DataFrame(self.x, columns=["a", "b", "c"], index=range(1000, 1150))
        again = fcp.FeatureConformalRegressor(self.model, method="nested")
        again.conformalize(batches(table, self.y))
        self.assertEqual(again.radius(0.1), self.regressor.radius(0.1))
        found = again.predict_interval(batches(table[["b", "c", "a"]]), as_frame=True)
        self.assertEqual(found.index.tolist(), table.index.tolist())
        np.testing.assert_array_equal(found["lower"], self.expected[1][:, 0, 0])


class Several(torch.nn.Module):
    """Two inputs: whole numbers that choose a row of a table, and numbers."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.table = torch.nn.Embedding(5, 4)
        self.head = torch.nn.Sequential(
            torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)
        )

    def forward(self, kind, size):
        return self.head(torch.cat([self.table(kind), size.flatten(1)], dim=1))


class Inputs(Case):
    """Dicts and tuples for networks with several inputs."""

    def setUp(self):
        super().setUp()
        random = np.random.default_rng(0)
        self.kind = random.integers(5, size=120)
        self.size = random.normal(size=(120, 2, 1))
        self.y = random.normal(size=120).astype(np.float32)
        self.network = Several().eval()
        with torch.no_grad():
            answer = self.network(torch.from_numpy(self.kind), torch.from_numpy(self.size).float())
        self.answer = answer.numpy()[:, 0]

    def named(self, rows=slice(None)):
        return {"size": self.size[rows], "kind": self.kind[rows]}

    def test_dict(self):
        model = fcp.from_torch(self.network, self.named(slice(2)), cut="head.1")
        np.testing.assert_allclose(model(self.named())[:, 0], self.answer, rtol=1e-5, atol=1e-6)
        self.assertEqual(model.cut, "head.1")
        regressor = fcp.FeatureConformalRegressor(model, method="nested")
        regressor.conformalize(self.named(), self.y)
        prediction, intervals = regressor.predict_interval(self.named())
        np.testing.assert_allclose(prediction, self.answer, rtol=1e-5, atol=1e-6)
        found = regressor.predict_interval({"extra": None, **self.named()})
        np.testing.assert_array_equal(found[1], intervals)
        with self.assert_error("X: has no input kind; expected size, kind"):
            regressor.predict({"size": self.size})
        with self.assert_error(r"X\['size'\]: has rows of \(2,\), expected \(2, 1\)"):
            regressor.predict({**self.named(), "size": self.size[:, :, 0]})
        with self.assert_error("X: the inputs have 120, 119 rows"):
            regressor.predict({"size": self.size, "kind": self.kind[1:]})
        with self.assert_error(r"X\['kind'\]: holds 9007199254740993, expected at most 9007199254740992"):
            regressor.predict({"size": self.size, "kind": 0 * self.kind + 2**53 + 1})
        # Files take the inputs side by side.
        regressor.save(self.path("calibrated.onnx"))
        loaded = fcp.FeatureConformalRegressor.load(self.path("calibrated.onnx"))
        rows = model.rows(self.named())
        self.assertEqual(rows.shape, (120, 3))
        np.testing.assert_array_equal(loaded.predict_interval(rows)[1], intervals)

    def test_tuple_and_batches(self):
        inputs = (torch.from_numpy(self.kind), torch.from_numpy(self.size))
        regressor = fcp.FeatureConformalRegressor(self.network, method="nested")
        regressor.conformalize(inputs, self.y)
        expected = regressor.predict_interval(inputs)[1]
        np.testing.assert_allclose(regressor.predict(inputs), self.answer, rtol=1e-5, atol=1e-6)
        parts = [((self.kind[i : i + 50], self.size[i : i + 50]), self.y[i : i + 50])
                 for i in (0, 50, 100)]  # fmt: skip
        again = fcp.FeatureConformalRegressor(self.network, method="nested")
        again.conformalize(iter(parts))
        self.assertEqual(again.radius(0.1), regressor.radius(0.1))
        for new in (iter(parts), (x for x, _ in parts)):
            np.testing.assert_array_equal(again.predict_interval(new)[1], expected)
        with self.assert_error("X: the network takes a tuple of 2 inputs"):
            again.predict(self.size)
        data = torch.utils.data.TensorDataset(*inputs)
        loader = torch.utils.data.DataLoader(data, batch_size=64)
        np.testing.assert_array_equal(again.predict_interval(loader)[1], expected)

    def test_dict_of_a_module(self):
        regressor = fcp.FeatureConformalRegressor(self.network, method="residual")
        regressor.conformalize(self.named(), self.y)
        np.testing.assert_allclose(
            regressor.predict(self.named()), self.answer, rtol=1e-5, atol=1e-6
        )


class Plots(Case):
    def test_without_matplotlib_one_line_says_so(self):
        program = (
            "import sys; sys.modules['matplotlib'] = None\n"
            "import numpy, fcp\n"
            "r = fcp.wrap(lambda X: X[:, 0], method='residual')\n"
            "r.conformalize(numpy.zeros((50, 1)), numpy.arange(50.))\n"
            "r.plot(numpy.zeros((5, 1)))\n"
        )
        done = subprocess.run(
            [sys.executable, "-B", "-c", program], capture_output=True, text=True, timeout=300
        )
        last = done.stderr.strip().splitlines()[-1]
        self.assertEqual(
            last, "ImportError: fcp: plot() needs matplotlib: pip install matplotlib"
        )

    @unittest.skipIf(not HAS_MATPLOTLIB, "matplotlib is not installed")
    def test_plots(self):
        import matplotlib.pyplot as plt

        x, y = regression_rows(100)
        regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 1)), method="residual")
        regressor.conformalize(x[:60], y[:60])
        _, (left, right, third) = plt.subplots(1, 3)
        self.assertIs(regressor.plot(x[60:], y[60:], ax=left), left)
        inside = regressor.check(x[60:], y[60:]).inside.mean()
        texts = [text.get_text() for text in left.get_legend().get_texts()]
        self.assertIn(f"inside: {100 * inside:.1f} %", texts)
        self.assertIn("90 % intervals", texts)
        self.assertEqual(len(left.collections[0].get_segments()), 40)
        with self.assertWarns(UserWarning):  # infinite: too few rows
            regressor.plot(x[60:], alpha=0.001, ax=right)
        self.assertTrue(np.isfinite(right.dataLim.get_points()).all())
        x, y = label_rows(200)
        classifier = fcp.FeatureConformalClassifier(model_for(perceptron(3, 4)), method="lac")
        classifier.conformalize(x[:100], y[:100]).plot(x[100:], y[100:], ax=third)
        self.assertAlmostEqual(sum(bar.get_height() for bar in third.patches), 100)
        plt.savefig(self.path("plots.png"))
        self.assertGreater(os.path.getsize(self.path("plots.png")), 1000)
        plt.close("all")


@unittest.skipUnless(importlib.util.find_spec("pyarrow"), "pyarrow is not installed")
@unittest.skipUnless(importlib.util.find_spec("pandas"), "pandas is not installed")
class Parquet(Case):
    def setUp(self):
        super().setUp()
        import pandas as pd

        x, y = regression_rows(300)
        self.frame = pd.DataFrame(x, columns=["a", "b", "c"])
        self.y = y
        self.regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 1)), method="nested")
        self.regressor.conformalize(self.frame[:150], y[:150])

    def write(self, name, frame, **options):
        path = os.path.join(self.folder, name)
        frame.to_parquet(path, **options)
        return path

    def test_files_are_answered_row_by_row(self):
        import pandas as pd

        more = self.frame.assign(key=[f"k{i}" for i in range(300)], unused=1.5)
        first = self.write("first.parquet", more[:170][["unused", "c", "key", "a", "b"]])
        second = self.write("second.parquet", more[170:])
        out = os.path.join(self.folder, "out.parquet")
        count = fcp.predict_parquet(
            self.regressor, [first, second], out, alpha=[0.1, 0.2], keep=["key"], rows=64
        )
        self.assertEqual(count, 300)
        found = pd.read_parquet(out)
        wanted = self.regressor.predict_interval(self.frame, [0.1, 0.2], as_frame=True)
        self.assertEqual(list(found.columns), ["key", *wanted.columns])
        self.assertEqual(list(found["key"]), list(more["key"]))
        for name in wanted.columns:
            np.testing.assert_array_equal(found[name], wanted[name])
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(
            ["first.parquet", "second.parquet", "out.parquet"]))

    def test_a_saved_predictor(self):
        import pandas as pd

        model = os.path.join(self.folder, "saved.onnx")
        self.regressor.save(model)
        rows, out = self.write("rows.parquet", self.frame), os.path.join(self.folder, "out.parquet")
        self.assertEqual(fcp.predict_parquet(model, rows, out, 0.1), 300)
        wanted = self.regressor.predict_interval(self.frame, 0.1)[1]
        np.testing.assert_array_equal(pd.read_parquet(out)["upper"], wanted[:, 1, 0])

    def test_what_is_wrong_leaves_no_file(self):
        out = os.path.join(self.folder, "out.parquet")
        wrong = self.write("wrong.parquet", self.frame[["a", "b"]])
        with self.assertRaisesRegex(fcp.Error, "wrong.parquet: has no column 'c', found a, b"):
            fcp.predict_parquet(self.regressor, wrong, out)
        empty = self.write("empty.parquet", self.frame[:0])
        with self.assertRaisesRegex(fcp.Error, "has no rows"):
            fcp.predict_parquet(self.regressor, empty, out)
        self.assertEqual(sorted(os.listdir(self.folder)), ["empty.parquet", "wrong.parquet"])

    def test_memory_does_not_grow_with_the_rows(self):
        """What Arrow holds at most, for ten times the rows."""
        import pandas as pd

        model = os.path.join(self.folder, "saved.onnx")
        self.regressor.save(model)
        most = []
        for rows in (40_000, 400_000):
            frame = pd.concat([self.frame] * (rows // 300 + 1), ignore_index=True)[:rows]
            path = self.write("rows.parquet", frame, row_group_size=5_000)
            script = (
                "import sys, fcp, pyarrow\n"
                "count = fcp.predict_parquet(*sys.argv[1:4], 0.1, rows=5000)\n"
                "print(count, pyarrow.default_memory_pool().max_memory())\n"
            )
            done = subprocess.run(
                [sys.executable, "-c", script, model, path, path + ".out"],
                capture_output=True, text=True, check=False,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            count, memory = map(int, done.stdout.split())
            self.assertEqual(count, rows)
            most.append(memory)
        self.assertLess(most[1], 1.5 * most[0] + 1e6)


if __name__ == "__main__":
    networks.main()
