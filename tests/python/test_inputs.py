"""Networks with several inputs, and inputs that are integers or doubles: by Python, by the program,
and the files that both write."""

import json

import numpy as np
import torch

import fcp
from networks import Case, main

VOCABULARY, LENGTH = 20, 6


class Texts(torch.nn.Module):
    """Token ids and a mask, as networks for text take them."""

    def __init__(self, outputs=1):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = torch.nn.Embedding(VOCABULARY, 8)
        self.head = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, outputs)
        )

    def forward(self, input_ids, attention_mask):
        mask = attention_mask.unsqueeze(-1).float()
        mean = (self.embedding(input_ids) * mask).sum(1) / mask.sum(1)
        return self.head(mean)


def export(module, inputs, path, names, open_axes=(0,)):
    torch.onnx.export(
        module.eval(), inputs, path, opset_version=13, input_names=names, output_names=["y"],
        dynamic_axes={name: {axis: f"axis{axis}" for axis in open_axes} for name in names},
    )  # fmt: skip


class SeveralInputs(Case):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(0)
        self.ids = random.integers(VOCABULARY, size=(200, LENGTH))
        self.mask = (random.random(size=(200, LENGTH)) < 0.7).astype(np.int64)
        self.mask[:, 0] = 1
        self.network = Texts()
        inputs = (torch.from_numpy(self.ids), torch.from_numpy(self.mask))
        with torch.no_grad():
            self.answer = self.network(*inputs).numpy()[:, 0]
        self.y = self.answer + 0.05 * random.normal(size=200)
        export(self.network, inputs, self.path("texts.onnx"), ["input_ids", "attention_mask"], (0, 1))

    def named(self, rows=slice(None)):
        return {"attention_mask": self.mask[rows], "input_ids": self.ids[rows]}

    def save(self, name, rows=slice(None)):
        np.savez(self.path(name), y=self.y[rows], **self.named(rows))

    def test_dict(self):
        model = fcp.load(self.path("texts.onnx"))
        self.assertTrue(model.several_inputs)
        np.testing.assert_allclose(model(self.named())[:, 0], self.answer, rtol=1e-5, atol=1e-6)
        for method in ("nested", "residual", "spread"):
            regressor = fcp.FeatureConformalRegressor(model, method=method)
            fit = (self.named(slice(100, 200)), self.y[100:]) if method == "spread" else None
            regressor.conformalize(self.named(slice(100)), self.y[:100], fit_data=fit)
            prediction, intervals = regressor.predict_interval(self.named())
            np.testing.assert_allclose(prediction, self.answer, rtol=1e-5, atol=1e-6)
            again = regressor.predict_interval((self.ids, self.mask))  # in their order
            np.testing.assert_array_equal(again[1], intervals)
            regressor.save(self.path("calibrated.onnx"))
            loaded = fcp.FeatureConformalRegressor.load(self.path("calibrated.onnx"))
            np.testing.assert_array_equal(loaded.predict_interval(self.named())[1], intervals)
        with self.assert_error("X: has no input attention_mask"):
            regressor.predict({"input_ids": self.ids})
        with self.assert_error(r"input_ids.*: has rows of \(5,\), expected \(6,\)"):
            regressor.predict({**self.named(), "input_ids": self.ids[:, 1:]})
        with self.assert_error(r"row 3 \(from 0\), input_ids\[1\]: found 2.5, expected a whole"):
            wrong = self.ids.astype(float)
            wrong[3, 1] = 2.5
            regressor.predict({**self.named(), "input_ids": wrong})

    def test_program(self):
        self.save("calibration.npz", slice(100))
        self.save("test.npz", slice(100, 200))
        self.program("calibrate", "texts.onnx", "--data", "calibration.npz", "--target", "y",
                     "--score", "nested", "--out", "calibrated.onnx")  # fmt: skip
        by_python = fcp.FeatureConformalRegressor(self.path("texts.onnx"), method="nested")
        by_python.conformalize(self.named(slice(100)), self.y[:100])
        expected, ends = by_python.predict_interval(self.named(slice(100, 200)))
        self.program("predict", "calibrated.onnx", "--data", "test.npz", "--out", "p.npy")
        found = np.load(self.path("p.npy"))[:, 0]
        np.testing.assert_allclose(found[:, 0], expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found[:, 1:], ends[:, :, 0], rtol=1e-5, atol=1e-5)
        report = json.loads(self.program("evaluate", "calibrated.onnx", "--data", "test.npz",
                                         "--target", "y", "--json"))  # fmt: skip
        self.assertEqual(report["rows"], 100)
        self.program("check", "calibrated.onnx", "--data", "test.npz", "--target", "y")
        shown = self.program("show", "calibrated.onnx")
        self.assertIn("input_ids [?, ?]", shown)

    def test_columns(self):
        columns = [f"input_ids_{i}" for i in range(LENGTH)]
        columns += [f"attention_mask_{i}" for i in range(LENGTH)] + ["y"]
        table = np.column_stack([self.ids, self.mask, self.y])
        order = np.random.default_rng(1).permutation(len(columns))
        np.savetxt(self.path("rows.csv"), table[:, order], delimiter=",", comments="", fmt="%.9g",
                   header=",".join(columns[i] for i in order))  # fmt: skip
        self.program("calibrate", "texts.onnx", "--data", "rows.csv", "--target", "y", "--score",
                     "residual", "--out", "calibrated.onnx")  # fmt: skip
        self.program("predict", "calibrated.onnx", "--data", "rows.csv", "--out", "p.npy")
        np.testing.assert_allclose(
            np.load(self.path("p.npy"))[:, 0, 0], self.answer, rtol=1e-5, atol=1e-6
        )

    def test_exported_file_has_the_inputs(self):
        self.save("calibration.npz")
        for score in ("residual", "nested"):
            self.program("calibrate", "texts.onnx", "--data", "calibration.npz", "--target", "y",
                         "--score", score, "--out", "calibrated.onnx")  # fmt: skip
            self.program("export", "calibrated.onnx", "--alpha", "0.1", "--out", "plain.onnx")
            exported = fcp.load(self.path("plain.onnx"))
            self.assertEqual([name for name, _ in exported.inputs], ["input_ids", "attention_mask"])
            loaded = fcp.FeatureConformalRegressor.load(self.path("calibrated.onnx"))
            outputs = dict(zip([name for name, _ in exported.outputs], exported(self.named())))
            expected = loaded.predict_interval(self.named())[1][:, :, 0]
            np.testing.assert_allclose(outputs["lower"][:, 0], expected[:, 0], rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(outputs["upper"][:, 0], expected[:, 1], rtol=1e-5, atol=1e-5)


class FromTheOrigin(torch.nn.Module):
    """How far a number is from one that float32 does not tell from its neighbours."""

    def __init__(self, origin):
        super().__init__()
        self.origin = origin

    def forward(self, x):
        return (x - self.origin).float()


class Digits(Case):
    ORIGIN = 1_700_000_000

    def rows(self, kind):
        return (self.ORIGIN + np.arange(60)).astype(kind).reshape(-1, 1)

    def test_integers_and_doubles_are_exact(self):
        y = np.arange(60.0)
        for kind in (np.int64, np.float64):
            x = self.rows(kind)
            origin = torch.tensor(self.ORIGIN, dtype=torch.from_numpy(x).dtype)
            path = self.path("digits.onnx")
            export(FromTheOrigin(origin), (torch.from_numpy(x),), path, ["x"])
            regressor = fcp.FeatureConformalRegressor(path, method="residual").conformalize(x, y)
            np.testing.assert_array_equal(regressor.predict(x), y)
            self.assertEqual(regressor.radius(0.1)[0], 0)
            np.save(self.path("x.npy"), x)
            np.save(self.path("y.npy"), y)
            lines = [f"{number},{answer}" for number, answer in zip(x[:, 0], y)]
            with open(self.path("rows.csv"), "w") as file:
                file.write("\n".join(["x,y", *lines]) + "\n")
            for data, target in (("x.npy", "y.npy"), ("rows.csv", "y")):
                self.program("calibrate", "digits.onnx", "--data", data, "--target", target,
                             "--score", "residual", "--out", "calibrated.onnx")  # fmt: skip
                self.program("predict", "calibrated.onnx", "--data", data, "--out", "p.npy",
                             *(["--drop", "y"] if data.endswith("csv") else []))  # fmt: skip
                np.testing.assert_array_equal(np.load(self.path("p.npy"))[:, 0, 0], y)

    def test_what_is_not_exact_is_an_error(self):
        x = self.rows(np.int64)
        export(FromTheOrigin(torch.tensor(self.ORIGIN)), (torch.from_numpy(x),),
               self.path("digits.onnx"), ["x"])  # fmt: skip
        regressor = fcp.FeatureConformalRegressor(self.path("digits.onnx"), method="residual")
        regressor.conformalize(x, np.arange(60.0))
        with self.assert_error(r"X: row 1 \(from 0\), element 0 \(from 0\): found 0.5"):
            regressor.predict(np.array([[1.0], [0.5]]))
        with self.assert_error(r"row 0 .*: found 9007199254740992, expected below 2\^53"):
            regressor.predict(np.array([[2**53 + 1]]))


class Mended(torch.nn.Module):
    """Counts a first column that is missing as 2, and computes with the second."""

    def forward(self, x):
        a, b = x[:, :1], x[:, 1:]
        return torch.where(torch.isnan(a), torch.full_like(a, 2.0), a) + b


class MissingValues(Case):
    def test_the_network_says_where_they_may_be(self):
        random = np.random.default_rng(0)
        x = random.normal(size=(80, 2)).astype(np.float32)
        x[::5, 0] = np.nan
        y = np.nan_to_num(x[:, 0], nan=2.0) + x[:, 1]
        export(Mended(), (torch.from_numpy(x),), self.path("mended.onnx"), ["x"])
        regressor = fcp.FeatureConformalRegressor(self.path("mended.onnx"), method="residual")
        regressor.conformalize(x, y)
        np.testing.assert_allclose(regressor.predict(x), y, rtol=1e-6)
        regressor.evaluate(x, y)
        self.assertTrue(regressor.check(x, y).inside.all())
        wrong = x.copy()
        wrong[3, 1] = np.nan
        for call in (regressor.predict, lambda rows: regressor.conformalize(rows, y)):
            with self.assert_error(r"X: row 3 \(from 0\) has NaN in column 1"):
                call(wrong)

    def test_tables(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("needs pandas")
        x = np.array([[np.nan, 1.0], [1.0, 2.0]] * 30, np.float32)
        y = np.array([3.0, 3.0] * 30)
        export(Mended(), (torch.from_numpy(x),), self.path("mended.onnx"), ["x"])
        table = pandas.DataFrame(x, columns=["a", "b"])
        regressor = fcp.FeatureConformalRegressor(self.path("mended.onnx"), method="residual")
        np.testing.assert_array_equal(regressor.conformalize(table, y).predict(table), y)


class TextColumns(Case):
    """Pipelines of scikit-learn over columns of text, as skl2onnx writes them."""

    def test_pipelines(self):
        try:
            import pandas
            from skl2onnx import to_onnx
            from skl2onnx.common.data_types import FloatTensorType, StringTensorType
            from sklearn.compose import ColumnTransformer
            from sklearn.linear_model import Ridge
            from sklearn.pipeline import make_pipeline
            from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
        except ImportError:
            self.skipTest("needs skl2onnx and pandas")
        random = np.random.default_rng(0)
        table = pandas.DataFrame({"city": random.choice(["Rome", "Paris"], 80),
                                  "age": random.normal(size=80).astype(np.float32)})  # fmt: skip
        y = (table.city == "Rome") * 3.0 + table.age
        for encoder in (OneHotEncoder(), OrdinalEncoder()):
            columns = [("text", encoder, ["city"]), ("rest", "passthrough", ["age"])]
            pipeline = make_pipeline(ColumnTransformer(columns), Ridge()).fit(table, y)
            types = [("city", StringTensorType([None, 1])), ("age", FloatTensorType([None, 1]))]
            with open(self.path("text.onnx"), "wb") as file:
                file.write(to_onnx(pipeline, initial_types=types).SerializeToString())
            expected = pipeline.predict(table)
            regressor = fcp.FeatureConformalRegressor(self.path("text.onnx"), method="residual")
            regressor.conformalize(table, y)
            np.testing.assert_allclose(regressor.predict(table), expected, rtol=1e-4, atol=1e-5)
            regressor.save(self.path("c.onnx"))
            table.to_csv(self.path("rows.csv"), index=False)
            self.program("predict", "c.onnx", "--data", "rows.csv", "--out", "p.npy")
            found = np.load(self.path("p.npy"))[:, 0, 0]
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


class Sequences(torch.nn.Module):
    """The last state of a recurrent layer that has its batch in the second axis."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.layer, self.head = torch.nn.GRU(3, 4), torch.nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.layer(x)[0][-1])


class SecondAxis(Case):
    def test_rows_come_first_in_data(self):
        random = np.random.default_rng(0)
        x = random.normal(size=(60, 5, 3)).astype(np.float32)
        module = Sequences().eval()
        rows = torch.from_numpy(x).transpose(0, 1).contiguous()
        torch.onnx.export(module, (rows,), self.path("gru.onnx"), opset_version=13,
                          input_names=["x"], output_names=["y"],
                          dynamic_axes={"x": {1: "batch"}, "y": {0: "batch"}})  # fmt: skip
        with torch.no_grad():
            y = module(rows).numpy()[:, 0]
        regressor = fcp.FeatureConformalRegressor(self.path("gru.onnx"), method="residual")
        np.testing.assert_allclose(regressor.conformalize(x, y).predict(x), y, rtol=1e-5, atol=1e-6)
        np.save(self.path("x.npy"), x)
        np.save(self.path("y.npy"), y)
        self.program("run", "gru.onnx", "--data", "x.npy", "--out", "out.npy")
        np.testing.assert_allclose(np.load(self.path("out.npy"))[:, 0], y, rtol=1e-5, atol=1e-6)
        self.program("calibrate", "gru.onnx", "--data", "x.npy", "--target", "y.npy",
                     "--score", "residual", "--out", "c.onnx")  # fmt: skip
        self.program("predict", "c.onnx", "--data", "x.npy", "--out", "p.npy")
        np.testing.assert_allclose(np.load(self.path("p.npy"))[:, 0, 0], y, rtol=1e-5, atol=1e-6)


if __name__ == "__main__":
    main()
