"""What `evaluate` says of conditional coverage, beside the package covmetrics of PyPI. Exits with 77,
which ctest shows as skipped, where that is not installed."""
import json
import sys
import unittest

import program

try:
    import numpy
    from covmetrics import ERT, WSC, CovGap
    from covmetrics.losses import brier_score
    from sklearn.tree import DecisionTreeRegressor
except ImportError:
    sys.exit(77)

ROWS = 1500


class Tree(DecisionTreeRegressor):
    """About the regression that fcp's excess risk uses."""

    def __init__(self):
        super().__init__(max_depth=3, min_samples_leaf=60)

    def predict_proba(self, x):
        covered = self.predict(x)
        return numpy.stack([1 - covered, covered], 1)


class Measures(program.Case):
    def write_rows(self, name, random, rows):
        """A tenth of the rows, those with b above 1.28, has ten times the noise of all others."""
        x = random.standard_normal((rows, 2))
        noise = numpy.where(x[:, 1] > 1.28, 2, 0.2)
        y = 3 * x[:, 0] + noise * random.standard_normal(rows)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write("a,b,y\n")
            file.writelines(f"{a},{b},{value}\n" for (a, b), value in zip(x, y, strict=True))
        return x

    def test_agree_with_covmetrics(self):
        random = numpy.random.default_rng(1)
        for name in ("train.csv", "calibration.csv"):
            self.write_rows(name, random, 600)
        x = self.write_rows("test.csv", random, ROWS)
        target = ("--target", "y")
        self.fcp("train", "train.csv", *target, "--members", 1, "--epochs", 20, "--layers", "16",
                 "--out", "m.onnx")
        self.fcp("calibrate", "m.onnx", "--data", "calibration.csv", *target, "--score", "residual",
                 "--out", "c.onnx")
        found = json.loads(self.fcp("evaluate", "c.onnx", "--data", "test.csv", *target, "--json"))
        found = found["conditional"]
        _, checked = program.parse_csv(
            self.fcp("check", "c.onnx", "--data", "test.csv", *target))
        covered = numpy.array([inside for _, _, inside in checked], float)
        self.assertEqual((len(covered), found["rows"]), (ROWS, ROWS))

        parts = found["parts"]
        self.assertEqual(len(parts), ROWS // 50)
        self.assertEqual(sum(part["rows"] for part in parts), ROWS)
        self.assertEqual(sum(part["covered"] for part in parts), covered.sum())
        groups = numpy.repeat(numpy.arange(len(parts)), [part["rows"] for part in parts])
        inside = numpy.concatenate([numpy.arange(part["rows"]) < part["covered"] for part in parts])
        theirs = CovGap().evaluate(groups, inside.astype(float), alpha=0.1, weighted=True)
        self.assertAlmostEqual(found["coverage_gap"], theirs, places=9)
        shares = numpy.array([part["covered"] / part["rows"] for part in parts])
        weights = numpy.array([part["rows"] / ROWS for part in parts])
        self.assertAlmostEqual(found["squared_error"], (weights * (shares - 0.9) ** 2).sum(), places=9)
        self.assertAlmostEqual(found["squared_error_by_chance"], 0.09 * len(parts) / ROWS, places=9)
        self.assertGreater(found["squared_error"], 3 * found["squared_error_by_chance"])

        # Their slab is measured where it was found, ours is not; there are 150 rows in it.
        slab = WSC().evaluate(x, covered, delta=0.1, M=50)
        self.assertLess(slab, 0.6)
        self.assertAlmostEqual(found["worst_slab"]["coverage"], slab, delta=0.2)

        risk = ERT(model_cls=Tree).evaluate(x, covered, alpha=0.1, n_splits=5, loss=brier_score)
        error = found["excess_risk_error"]
        self.assertGreater(found["excess_risk"], 3 * error)
        self.assertAlmostEqual(found["excess_risk"], risk, delta=2 * error)


if __name__ == "__main__":
    program.main()
