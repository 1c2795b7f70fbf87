"""fcp.wrap: fitted estimators in place of networks. Shapes, features and refusals; and coverage
against its exact law, for estimators with nothing but `predict` and, where it is installed, for
scikit-learn's."""

import importlib.util
import math
import pickle
import unittest

import numpy as np

import fcp
import networks
from networks import Case

if importlib.util.find_spec("sklearn") is not None:
    import sklearn
    import sklearn.ensemble
    import sklearn.linear_model
    import sklearn.model_selection
    import sklearn.pipeline
    import sklearn.preprocessing
else:
    sklearn = None

needs_sklearn = unittest.skipIf(sklearn is None, "scikit-learn is not installed")


def rows_with_uneven_noise(rows, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 3))
    return x, x[:, 0] + (0.2 + np.abs(x[:, 1])) * random.normal(size=rows)


class Slope:
    """An estimator of scikit-learn's words without scikit-learn."""

    def predict(self, X):
        return 0.9 * np.asarray(X)[:, 0]


class Sides:
    """A classifier: which of three thirds a number is in, roughly."""

    classes_ = np.array(["high", "low", "middle"])

    def predict_proba(self, X):
        logits = np.stack([2 * X[:, 0], -2 * X[:, 0], np.zeros(len(X))], axis=1)
        chance = np.exp(logits)
        return chance / chance.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def log_beta_binomial(covered, rows, a, b):
    """log P(covered of `rows` test rows), whose rate is Beta(a, b)."""
    def log_beta(u, v):
        return math.lgamma(u) + math.lgamma(v) - math.lgamma(u + v)

    choose = -math.log(rows + 1) - log_beta(rows - covered + 1, covered + 1)
    return choose + log_beta(covered + a, rows - covered + b) - log_beta(a, b)


def tail_probability(covered, rows, calibration_rows, alpha_percent):
    """Twice the smaller tail of what split conformal prediction covers: with n calibration rows and
    rank k, a share Beta(k, n + 1 - k) of all rows, if no scores are equal."""
    n = calibration_rows
    k = -(-(100 - alpha_percent) * (n + 1) // 100)
    chances = [math.exp(log_beta_binomial(i, rows, k, n + 1 - k)) for i in range(rows + 1)]
    return 2 * min(sum(chances[: covered + 1]), sum(chances[covered:]))


def coverage_p_value(regressor, x, y):
    inside = regressor.check(x, y, alpha=0.1).inside
    return tail_probability(int(inside.sum()), len(y), regressor.predictor_.rows, 10)


class Coverage(Case):
    """Each comparison fails by chance at most once in 10⁷ times; there are fewer than ten."""

    LEAST = 1e-7

    def test_the_law_itself(self):
        chances = [math.exp(log_beta_binomial(i, 40, 9, 2)) for i in range(41)]
        self.assertAlmostEqual(sum(chances), 1, places=9)
        self.assertAlmostEqual(sum(i * c for i, c in enumerate(chances)), 40 * 9 / 11, places=9)

    def test_learned_methods(self):
        x, y = rows_with_uneven_noise(9000)
        cases = [(method, "split") for method in ("spread", "quantiles", "density")]
        for method, calibration in [*cases, ("residual", "rectified")]:
            regressor = fcp.wrap(Slope(), method=method, calibration=calibration)
            regressor.conformalize(x[:1000], y[:1000])
            self.assertLess(regressor.predictor_.rows, 1000)
            chance = coverage_p_value(regressor, x[1000:], y[1000:])
            self.assertGreater(chance, self.LEAST, (method, calibration))

    def test_residual_over_many_calibrations(self):
        # 300 calibrations of 49 rows, k = 45: each covers a share Beta(45, 5), mean 0.9 and
        # deviation 0.042; their mean has the deviation 0.0024 and, of 500 rows for each, 0.0025.
        # Hoeffding's bound is too weak here; the bound below is by Bernstein's inequality.
        x, y = rows_with_uneven_noise(300 * 549, seed=1)
        covered = []
        for first in range(0, len(y), 549):
            regressor = fcp.wrap(Slope(), method="residual")
            regressor.conformalize(x[first : first + 49], y[first : first + 49])
            new = slice(first + 49, first + 549)
            covered.append(regressor.check(x[new], y[new], alpha=0.1).inside.mean())
        variance = 45 * 5 / (50**2 * 51) + 45 * 5 / (50 * 51) / 500
        log = math.log(2 / self.LEAST)
        margin = math.sqrt(2 * variance * log / 300) + 2 * log / (3 * 300)
        self.assertLess(margin, 0.06)
        self.assertLess(abs(np.mean(covered) - 0.9), margin)

    @needs_sklearn
    def test_forest_with_features_of_its_own(self):
        x, y = rows_with_uneven_noise(6000, seed=2)
        forest = sklearn.ensemble.RandomForestRegressor(30, min_samples_leaf=5, random_state=0)
        forest.fit(x[:800], y[:800])
        regressor = fcp.wrap(forest, method="spread", features=lambda X: np.abs(X[:, 1:2]))
        regressor.conformalize(x[800:1800], y[800:1800])
        self.assertGreater(coverage_p_value(regressor, x[1800:], y[1800:]), self.LEAST)
        # The noise is 0.2 to 3 wide: intervals that know that are shorter where it is small.
        length = np.diff(regressor.predict_interval(x[1800:])[1][:, :, 0], axis=1)[:, 0]
        small = np.abs(x[1800:, 1]) < 0.3
        self.assertLess(length[small].mean(), 0.6 * length[~small].mean())


def table_with_categories():
    """2,000 rows with a column of categories that tells how wide the noise is, and gaps."""
    import pandas

    random = np.random.default_rng(3)
    x = random.normal(size=(2000, 2))
    city = random.integers(3, size=2000)
    y = x[:, 0] + np.array([0.1, 0.5, 3.0])[city] * random.normal(size=2000)
    x[::7, 1] = np.nan
    table = pandas.DataFrame(x, columns=["a", "b"])
    table["city"] = pandas.Categorical(np.array(["Oslo", "Rome", "Bonn"])[city])
    return table, y


def check_table(case, estimator, table, y):
    """Under `auto` the intervals of calm and of noisy cities differ, and the law holds."""
    regressor = fcp.wrap(estimator).conformalize(table[500:1500], y[500:1500])
    case.assertIsInstance(regressor, fcp.FeatureConformalRegressor)
    case.assertNotEqual(regressor.predictor_.score, "residual")
    np.testing.assert_allclose(regressor.predict(table), estimator.predict(table), rtol=1e-5)
    case.assertGreater(coverage_p_value(regressor, table[1500:], y[1500:]), Coverage.LEAST)
    length = np.diff(regressor.predict_interval(table[1500:])[1][:, :, 0], axis=1)[:, 0]
    noisy = (table["city"][1500:].isin(["Bonn", 0])).to_numpy()
    case.assertLess(length[~noisy].mean(), 0.7 * length[noisy].mean())


class Wrapped(Case):
    def test_residual_is_prediction_and_quantile(self):
        x, y = rows_with_uneven_noise(150)
        regressor = fcp.wrap(Slope(), method="residual").conformalize(x[:99], y[:99])
        self.assertIsInstance(regressor, fcp.FeatureConformalRegressor)
        prediction, intervals = regressor.predict_interval(x[99:])
        np.testing.assert_allclose(prediction, 0.9 * x[99:, 0], rtol=1e-6)
        radius = np.sort(np.abs(y[:99] - 0.9 * x[:99, 0]))[89]
        np.testing.assert_allclose(intervals[:, 1, 0], prediction + radius, rtol=1e-5)
        self.assertEqual(regressor.n_features_in_, 3)
        self.assertIn("fcp.wrap(", repr(regressor))

    def test_functions_and_several_outputs(self):
        x, y = rows_with_uneven_noise(150)
        regressor = fcp.wrap(lambda X: X[:, :2], method="residual")
        regressor.conformalize(x[:99], np.stack([y, -y], axis=1)[:99])
        self.assertEqual(regressor.predict_interval(x[99:])[1].shape, (51, 2, 2, 1))

    def test_classifier(self):
        random = np.random.default_rng(0)
        x = random.normal(size=(500, 1))
        y = np.array(["low", "middle", "high"])[np.searchsorted([-0.4, 0.4], x[:, 0])]
        classifier = fcp.wrap(Sides(), method="lac").conformalize(x[:400], y[:400])
        self.assertIsInstance(classifier, fcp.FeatureConformalClassifier)
        labels, sets = classifier.predict_set(x[400:], alpha=0.2)
        self.assertEqual(classifier.classes_.tolist(), ["high", "low", "middle"])
        np.testing.assert_array_equal(labels, Sides().predict(x[400:]))
        chance = Sides().predict_proba(x)
        truth = np.searchsorted(Sides.classes_, y)
        radius = np.sort(1 - chance[np.arange(400), truth[:400]])[320]
        clear = np.abs(1 - chance[400:] - radius) > 1e-6
        np.testing.assert_array_equal(sets[:, :, 0][clear], (1 - chance[400:] <= radius)[clear])

    def test_pickle_and_files(self):
        x, y = rows_with_uneven_noise(150)
        regressor = fcp.wrap(Slope(), method="residual", calibration="split")
        regressor.conformalize(x[:99], y[:99])
        expected = regressor.predict_interval(x[99:])[1]
        again = pickle.loads(pickle.dumps(regressor))
        np.testing.assert_array_equal(again.predict_interval(x[99:])[1], expected)
        regressor.save(self.path("calibrated.onnx"))
        loaded = fcp.FeatureConformalRegressor.load(self.path("calibrated.onnx"))
        rows = regressor.model_.rows(x[99:])
        np.testing.assert_array_equal(loaded.predict_interval(rows)[1], expected)

    def test_refusals(self):
        x, y = rows_with_uneven_noise(60)
        with self.assertRaisesRegex(TypeError, "has no predict"):
            fcp.wrap(3)
        with self.assertRaisesRegex(TypeError, "has no predict_proba"):
            fcp.wrap(type("Hard", (), {"classes_": [0, 1], "predict": len})())
        regressor = fcp.wrap(
            Slope(), method="spread", features=lambda X: [object()] * len(X)
        )
        with self.assert_error(r"X: holds values that are not numbers; fcp.wrap\(…, features=…\)"):
            regressor.conformalize(x, y)
        regressor.set_params(method="residual").conformalize(x, y)  # looks at no features
        with self.assert_error("method: spread needs heads.*; 60 rows are too few.* or fit_data"):
            fcp.wrap(Slope(), method="spread").conformalize(x, y)

    def test_fit_data(self):
        x, y = rows_with_uneven_noise(600)
        regressor = fcp.wrap(Slope(), method="spread")
        regressor.conformalize(x[:100], y[:100], fit_data=(x[300:], y[300:]))
        alone = fcp.wrap(Slope(), method="residual").conformalize(x[:100], y[:100])
        # But for a fifth that choices look at, all rows calibrate.
        self.assertGreaterEqual(regressor.predictor_.rows, 80)
        self.assertEqual(alone.predictor_.rows, 100)

    @needs_sklearn
    def test_missing_values(self):
        x, y = rows_with_uneven_noise(800)
        x[::5, 2] = np.nan
        boosted = sklearn.ensemble.HistGradientBoostingRegressor(max_iter=10).fit(x, y)
        regressor = fcp.wrap(boosted, calibration="rectified", method="residual")
        regressor.conformalize(x, y)
        rows = regressor.model_.rows(x[:10])
        self.assertEqual(rows.shape, (10, 3 + 3 + 1))
        np.testing.assert_array_equal(rows[:, 5], np.isnan(x[:10, 2]))
        self.assertTrue(np.isfinite(regressor.predict_interval(x)[1]).all())

    def test_texts_are_features(self):
        x, y = rows_with_uneven_noise(800)
        texts = np.array(["Rome", "Oslo", None, 7.5] * 200, dtype=object)
        objects = np.column_stack([x.astype(object), texts])
        first = type("First", (), {"predict": lambda self, X: X[:, 0].astype(float)})()
        regressor = fcp.wrap(first).conformalize(objects, y)
        self.assertEqual(regressor.predict_interval(objects)[1].shape, (800, 2, 1))
        regressor = fcp.wrap(first, method="spread").conformalize(objects, y)
        rows = regressor.model_.rows(objects)
        # Of each of four columns a number and 16 indicators, and the answer.
        self.assertEqual(rows.shape, (800, 4 + 4 * 16 + 1))
        np.testing.assert_allclose(rows[:, :3], x, rtol=1e-6)
        np.testing.assert_array_equal(rows[:, 3], np.where(texts == 7.5, 7.5, 0).astype(float))
        indicators = rows[:, 52 : 52 + 16]
        np.testing.assert_array_equal(indicators.any(axis=1), texts != 7.5)
        self.assertEqual(len(np.unique(indicators, axis=0)), 4)
        # A row is the same beside any others.
        np.testing.assert_array_equal(regressor.model_.rows(objects[5:6]), rows[5:6])

    def test_regressors_with_an_empty_list_of_classes(self):
        x, y = rows_with_uneven_noise(150)
        kind = {"classes_": [], "_estimator_type": "regressor", "predict": Slope.predict}
        regressor = fcp.wrap(type("Like", (), kind)(), method="residual").conformalize(x, y)
        self.assertIsInstance(regressor, fcp.FeatureConformalRegressor)

    @needs_sklearn
    @unittest.skipIf(importlib.util.find_spec("pandas") is None, "pandas is not installed")
    def test_boosting_with_categories(self):
        table, y = table_with_categories()
        boosted = sklearn.ensemble.HistGradientBoostingRegressor(
            max_iter=20, categorical_features=[2]
        )
        codes = table.assign(city=table["city"].cat.codes)
        check_table(self, boosted.fit(codes[:500], y[:500]), codes, y)

    @unittest.skipIf(importlib.util.find_spec("lightgbm") is None, "lightgbm is not installed")
    @unittest.skipIf(importlib.util.find_spec("pandas") is None, "pandas is not installed")
    def test_lightgbm_with_categories(self):
        import lightgbm

        table, y = table_with_categories()
        boosted = lightgbm.LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1)
        check_table(self, boosted.fit(table[:500], y[:500]), table, y)

    @unittest.skipIf(importlib.util.find_spec("catboost") is None, "catboost is not installed")
    @unittest.skipIf(importlib.util.find_spec("pandas") is None, "pandas is not installed")
    def test_catboost_with_categories(self):
        import catboost

        table, y = table_with_categories()
        table["city"] = table["city"].astype(str)
        boosted = catboost.CatBoostRegressor(
            iterations=20, cat_features=["city"], verbose=False, allow_writing_files=False,
            thread_count=1,
        )  # fmt: skip
        check_table(self, boosted.fit(table[:500], y[:500]), table, y)

    @needs_sklearn
    def test_pipelines_and_searches(self):
        x, y = rows_with_uneven_noise(800)
        pipeline = sklearn.pipeline.make_pipeline(
            sklearn.preprocessing.PolynomialFeatures(2), sklearn.linear_model.Ridge()
        )
        search = sklearn.model_selection.GridSearchCV(
            pipeline, {"ridge__alpha": [0.1, 1.0]}, cv=3
        ).fit(x[:400], y[:400])
        regressor = fcp.wrap(search, calibration="rectified", method="residual")
        regressor.conformalize(x[400:], y[400:])
        expected = search.best_estimator_[:-1].transform(x[:5])
        np.testing.assert_allclose(regressor.model_.rows(x[:5])[:, :-1], expected, rtol=1e-6)
        np.testing.assert_allclose(regressor.predict(x), search.predict(x), rtol=1e-5, atol=1e-6)

    @needs_sklearn
    @unittest.skipIf(importlib.util.find_spec("pandas") is None, "pandas is not installed")
    def test_tables_with_text(self):
        import pandas
        from sklearn.compose import make_column_transformer

        x, y = rows_with_uneven_noise(800)
        table = pandas.DataFrame(x, columns=["a", "b", "c"])
        table["city"] = np.where(x[:, 2] > 0, "Rome", "Oslo")
        columns = make_column_transformer(
            (sklearn.preprocessing.OneHotEncoder(), ["city"]), remainder="passthrough"
        )
        pipeline = sklearn.pipeline.make_pipeline(columns, sklearn.linear_model.LinearRegression())
        pipeline.fit(table[:400], y[:400])
        regressor = fcp.wrap(pipeline, calibration="rectified", method="residual")
        regressor.conformalize(table[400:][["c", "city", "b", "a"]], y[400:])
        self.assertEqual(regressor.feature_names_in_.tolist(), ["a", "b", "c", "city"])
        found = regressor.predict_interval(table[["city", "c", "b", "a"]], as_frame=True)
        np.testing.assert_allclose(found["prediction"], pipeline.predict(table), rtol=1e-5)


if __name__ == "__main__":
    networks.main()
