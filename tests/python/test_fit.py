"""fcp.fit: a table to a fitted estimator; and what Python says of rows unlike the training rows."""
import os
import tempfile
import unittest
import warnings

import numpy as np

import fcp
import networks


class Frame(dict):
    """A table as pandas has them: columns by name."""

    @property
    def columns(self):
        return list(self)

    def __getitem__(self, key):
        if isinstance(key, list):
            return Frame((name, self[name]) for name in key)
        return super().__getitem__(key)

    @property
    def shape(self):
        return (len(next(iter(self.values()))), len(self))


def prices(rows, seed):
    random = np.random.default_rng(seed)
    carat, cut = random.uniform(0.2, 3, rows), random.choice(["Fair", "Ideal"], rows)
    price = 10 * carat + np.where(cut == "Ideal", 5, 0) + random.normal(0, 0.5, rows)
    return Frame(carat=carat, cut=cut, price=price)


class Fit(unittest.TestCase):
    def test_intervals(self):
        table = prices(1200, 1)
        with tempfile.TemporaryDirectory() as folder:
            page, saved = os.path.join(folder, "r.html"), os.path.join(folder, "m.onnx")
            fitted = fcp.fit(table, target="price", members=1, shares=[2, 1, 1], report=page)
            self.assertIsInstance(fitted, fcp.FeatureConformalRegressor)
            self.assertGreater(os.path.getsize(page), 5000)
            self.assertEqual(fitted.evaluation_["rows"], 300)
            new = prices(400, 2)
            prediction, intervals = fitted.predict_interval(new, alpha=0.1)
            inside = (intervals[:, 0, 0] <= new["price"]) & (new["price"] <= intervals[:, 1, 0])
            # Beta-binomial of about 240 calibration and 400 test rows: beyond these lies 1e-6.
            self.assertGreater(inside.mean(), 0.75)
            fitted.save(saved)
            again = fcp.FeatureConformalRegressor.load(saved)
            np.testing.assert_array_equal(again.predict_interval(new)[1], intervals)

    def test_rows_unlike_the_training_rows_warn(self):
        fitted = fcp.fit(prices(300, 3), target="price", members=1, epochs=2, calibration="split")
        new = Frame(
            carat=np.array([1.0, np.nan, 40.0, 2.0]), cut=np.array(["Fair", "Fair", "Great", ""])
        )
        with self.assertWarnsRegex(
            UserWarning,
            r"3 of 4 rows have what no training row had \(missing: carat in 1, cut in 1; unseen: "
            r"cut in 1; far outside the training range: carat in 1\): the coverage guarantee",
        ):
            fitted.predict_interval(new)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fitted.predict(Frame(carat=np.array([1.0]), cut=np.array(["Fair"])))

    def test_sets(self):
        random = np.random.default_rng(4)
        kind = random.choice(["x", "y", "z"], 900)
        a = random.normal(0, 1, 900) + 2 * (kind == "x")
        b = random.normal(0, 1, 900) + 2 * (kind == "y")
        table = Frame(a=a, b=b, kind=kind)
        fitted = fcp.fit(table, target="kind", members=1, epochs=5, shares=[1, 1, 1], score="lac")
        self.assertIsInstance(fitted, fcp.FeatureConformalClassifier)
        self.assertEqual(fitted.classes_.tolist(), ["x", "y", "z"])
        labels, sets = fitted.predict_set(table, alpha=0.3)
        chances = fitted.predict_proba(table)
        np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-6)
        np.testing.assert_array_equal(fitted.classes_[chances.argmax(axis=1)], labels)
        self.assertTrue(sets[np.arange(900), chances.argmax(axis=1), 0].all(), "no set is empty")

    def test_groups_and_classes_as_the_program_takes_them(self):
        random = np.random.default_rng(5)
        patient = np.repeat(np.arange(40), 10)
        dose = random.normal(0, 1, 400)
        days = dose + 5 * random.normal(0, 1, 40)[patient] + random.normal(0, 0.3, 400)
        table = Frame(patient=[f"p{i}" for i in patient], dose=dose, days=days)
        quick = dict(target="days", members=2, epochs=3, trees=False, score="residual")
        with self.assertWarnsRegex(UserWarning, "rows of one 'patient' look alike"):
            fcp.fit(table, calibration="split", **quick)
        found = fcp.fit(table, keep_together="patient", **quick).evaluation_
        self.assertIn("40 values of 'patient' together", found["split"])
        self.assertNotIn("patient", [c["name"] for c in found["columns"] if c["use"] == "feature"])
        with self.assertWarnsRegex(FutureWarning, "keep_together"):
            old = fcp.fit(table, group="patient", **quick).evaluation_
        self.assertEqual(old["coverage"], found["coverage"])
        site = np.where(np.arange(400) % 2 == 0, "north", "south")
        each = fcp.fit(Frame(site=site, dose=dose, days=days), cover_each="site", **quick)
        names = [group["name"] for group in each.evaluation_["guaranteed_groups"]]
        self.assertEqual(sorted(names), ["north", "south"])
        with self.assertRaisesRegex(fcp.Error, "identity, log or auto"):
            fcp.fit(table, target_scale="sqrt", **quick)
        with self.assertRaisesRegex(TypeError, "unexpected keyword argument 'colour'"):
            fcp.fit(table, colour="red", **quick)

    def test_method_options_types_and_missing_cells(self):
        random = np.random.default_rng(6)
        code = random.integers(0, 5, 300)
        count = random.poisson(3 + code)
        table = Frame(
            code=[str(i) for i in code],
            size=["-" if i % 9 == 0 else str(i % 7) for i in range(300)],
            count=count,
        )
        fitted = fcp.fit(
            table,
            target="count",
            task="regression",
            types={"code": "category"},
            missing=["-"],
            side="upper",
            support="0:",
            integer=True,
            score="residual",
            members=1,
            epochs=3,
        )
        types = {c["name"]: (c["type"], c["missing"]) for c in fitted.evaluation_["columns"]}
        self.assertEqual(types["code"][0], "category")
        self.assertEqual(types["size"], ("number", 34))
        self.assertEqual(fitted.evaluation_["side"], "upper")
        upper = fitted.predict_interval(table)[1][:, 1, 0]
        np.testing.assert_array_equal(upper, np.round(upper))

    def test_targets_far_from_zero_keep_their_spread(self):
        random = np.random.default_rng(7)
        x = random.normal(0, 1, 500)
        y = 1e9 + 3 * x + random.normal(0, 0.3, 500)
        fitted = fcp.fit(
            Frame(x=x, y=y), target="y", members=2, epochs=40, score="residual", trees=False
        )
        self.assertLess(fitted.evaluation_["rmse"], 1)
        prediction, intervals = fitted.predict_interval(x[:, None])
        self.assertLess(np.sqrt(np.mean((prediction - y) ** 2)), 1)
        self.assertLess((intervals[:, 1, 0] - intervals[:, 0, 0]).max(), 6)
        found = fitted.evaluate(x[:, None], y)
        self.assertLess(found["rmse"], 1)
        inside = (intervals[:, 0, 0] <= y) & (y <= intervals[:, 1, 0])
        self.assertAlmostEqual(found["coverage"], inside.mean(), places=9)

    def test_rows_train_by_their_weights(self):
        heavy = np.arange(300) % 4 == 0
        table = Frame(x=np.arange(300) % 7 + 0.5, y=np.where(heavy, -1.0, 1.25))
        weights = np.where(heavy, 90.0, 10.0)
        quick = dict(target="y", members=2, epochs=40, score="residual")
        by_array = fcp.fit(table, row_weights=weights, **quick)
        answers = by_array.predict(Frame(x=table["x"]))
        self.assertLess(answers.mean(), -0.2, "a quarter of the rows has 3/4 of the weight")
        by_column = fcp.fit(Frame(**table, w=weights), row_weights="w", **quick)
        np.testing.assert_array_equal(by_column.predict(Frame(x=table["x"])), answers)
        weights[5] = -1
        with self.assertRaisesRegex(fcp.Error, r"row_weights.npy: row 5 \(from 0\) is -1"):
            fcp.fit(table, row_weights=weights, **quick)

    def test_what_is_no_table_is_refused(self):
        with self.assertRaisesRegex(TypeError, "expected a table"):
            fcp.fit(np.zeros((3, 2)), target="y")


class Marks(networks.Case):
    def test_numbers_that_stand_for_no_value(self):
        """A number that the table calls missing is missing, as it is in the program's files."""
        with open(self.path("table.csv"), "w", encoding="utf-8") as file:
            file.write("a,y\n")
            file.writelines(f"{-9 if i % 5 == 0 else i % 7},{i % 7 + i / 1000}\n" for i in range(600))
        self.program("fit", "table.csv", "--target", "y", "--missing=-9", "--out", "m.onnx",
                     "--epochs", "2")  # fmt: skip
        fitted = fcp.FeatureConformalRegressor.load(self.path("m.onnx"))
        marked = fitted.predict_interval(Frame(a=np.array([-9.0, 3.0])))
        missing = fitted.predict_interval(Frame(a=np.array([np.nan, 3.0])))
        for one, other in zip(marked, missing):
            np.testing.assert_array_equal(one, other)


if __name__ == "__main__":
    unittest.main()
