"""The estimators as users of scikit-learn and pandas know estimators: names of columns, classes,
errors, tags, cross-validation, searches, and scikit-learn's own checks.

What needs scikit-learn or pandas skips, saying so, where they are not installed."""

import importlib.util
import inspect
import io
import pickle
import unittest
import warnings

import numpy as np
import torch

import fcp
import networks
from networks import Case, label_rows, model_for, perceptron, regression_rows

if importlib.util.find_spec("sklearn") is not None:
    import sklearn
    import sklearn.base
    import sklearn.datasets
    import sklearn.exceptions
    import sklearn.model_selection
    import sklearn.pipeline
    import sklearn.preprocessing
    import sklearn.utils.estimator_checks as checks
else:
    sklearn = None
if importlib.util.find_spec("pandas") is not None:
    import pandas
else:
    pandas = None

needs_sklearn = unittest.skipIf(sklearn is None, "scikit-learn is not installed")
needs_pandas = unittest.skipIf(pandas is None, "pandas is not installed")


class Distributions(Case):
    def test_quantiles_and_probabilities_are_those_of_the_residuals(self):
        x, y = regression_rows(200)
        model = model_for(perceptron(3, 1))
        regressor = fcp.FeatureConformalRegressor(model, method="residual", side="upper")
        regressor.conformalize(x[:99], y[:99])
        scores = np.sort(y[:99] - regressor.predict(x[:99]))
        middle = regressor.predict(x[99:])
        found = regressor.predict_quantiles(x[99:], [0.05, "0.5", 0.95])
        for column, rank in enumerate((5, 50, 95)):
            np.testing.assert_allclose(found[:, column], middle + scores[rank - 1], atol=1e-5)
        upper = regressor.predict_interval(x[99:], alpha=0.05)[1][:, 1, 0]
        np.testing.assert_array_equal(found[:, 2], upper)
        band = regressor.probability(x[99:], above=0.25)
        above = (middle[:, None] + scores > 0.25).sum(1)
        np.testing.assert_allclose(band, np.stack([above, above + 1], 1) / 100, atol=1e-9)
        below = regressor.probability(x[99:], below=0.25)
        np.testing.assert_allclose(band + below[:, ::-1], 1, atol=1e-9)
        between = regressor.probability(x[99:], between=(-1, 0.25))
        self.assertTrue((between <= below + 1e-9).all())

    def test_what_cannot_be_asked_is_said(self):
        x, y = regression_rows(60)
        regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 1)), method="residual")
        regressor.conformalize(x, y)
        with self.assert_error("needs the scores of one end"):
            regressor.predict_quantiles(x, [0.5])
        with self.assert_error("probability takes one of above, below and between"):
            regressor.probability(x, above=1, below=2)


class Attributes(Case):
    def test_n_features(self):
        x, y = regression_rows(50)
        regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 1)), method="residual")
        self.assertFalse(hasattr(regressor, "n_features_in_"))
        regressor.conformalize(x, y)
        self.assertEqual(regressor.n_features_in_, 3)
        self.assertFalse(hasattr(regressor, "feature_names_in_"))
        with self.assert_error("X has 2 features, but FeatureConformalRegressor is expecting 3"):
            regressor.predict(x[:, :2])

    def test_not_fitted(self):
        regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 1)))
        with self.assertRaises(fcp.NotFittedError) as raised:
            regressor.predict(np.zeros((1, 3)))
        self.assertIsInstance(raised.exception, fcp.Error)
        self.assertIsInstance(raised.exception, AttributeError)
        again = pickle.loads(pickle.dumps(raised.exception))
        self.assertIsInstance(again, fcp.NotFittedError)
        self.assertEqual(str(again), str(raised.exception))
        if sklearn is not None:
            self.assertIsInstance(again, sklearn.exceptions.NotFittedError)

    def test_y_is_needed(self):
        regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 1)), method="residual")
        with self.assert_error("requires y to be passed, but the target y is None"):
            regressor.conformalize(np.zeros((3, 3)))

    def test_what_is_not_an_array_of_numbers(self):
        regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 1)), method="residual")
        x, y = regression_rows(50)
        with self.assert_error("X: Complex data not supported"):
            regressor.conformalize(x + 1j, y)
        with self.assert_error("X: holds 'red', expected numbers"):
            regressor.conformalize(np.array([[1, 2, "red"]] * 50, dtype=object), y)
        sparse = type("Sparse", (), {"toarray": None})()
        with self.assert_error("X: is sparse"):
            regressor.conformalize(sparse, y)

    def test_scores_are_r2_and_accuracy(self):
        x, y = regression_rows(200)
        regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 1)), method="residual")
        regressor.conformalize(x[:100], y[:100])
        answer, weights = regressor.predict(x[100:]), np.arange(100.0)
        for weight in (None, weights):
            mean = np.average(y[100:], weights=weight)
            error = np.average((y[100:] - answer) ** 2, weights=weight)
            r2 = 1 - error / np.average((y[100:] - mean) ** 2, weights=weight)
            self.assertAlmostEqual(regressor.score(x[100:], y[100:], weight), r2, places=6)
        x, y = label_rows(200)
        classifier = fcp.FeatureConformalClassifier(model_for(perceptron(3, 4)), method="lac")
        classifier.conformalize(x[:100], y[:100])
        accuracy = np.mean(classifier.predict(x[100:]) == y[100:])
        self.assertAlmostEqual(classifier.score(x[100:], y[100:]), accuracy)

    def test_region_score(self):
        x, y = regression_rows(200)
        regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 1)), method="residual")
        regressor.set_params(alpha=0.2).conformalize(x[:100], y[:100])
        evaluation = regressor.evaluate(x[100:], y[100:], alpha=0.2)
        found = fcp.region_score(regressor, x[100:], y[100:])
        self.assertAlmostEqual(found, -evaluation["interval_score"], places=5)
        x, y = label_rows(200)
        classifier = fcp.FeatureConformalClassifier(model_for(perceptron(3, 4)), method="lac")
        classifier.conformalize(x[:100], y[:100])
        size = classifier.evaluate(x[100:], y[100:])["size"]
        self.assertAlmostEqual(fcp.region_score(classifier, x[100:], y[100:]), -size, places=6)


class Labels(Case):
    """Classes by name."""

    NAMES = np.array(["north", "east", "south", "west"])

    def setUp(self):
        super().setUp()
        self.x, self.y = label_rows(300)
        self.model = model_for(perceptron(3, 4))
        self.numbers = fcp.FeatureConformalClassifier(self.model, method="lac")
        self.numbers.conformalize(self.x[:200], self.y[:200])

    def test_numbers_are_the_outputs(self):
        self.assertEqual(self.numbers.classes_.tolist(), [0, 1, 2, 3])

    def test_names_in_the_order_of_the_outputs(self):
        names = self.NAMES[self.y]
        named = fcp.FeatureConformalClassifier(self.model, method="lac", classes=self.NAMES)
        named.conformalize(self.x[:200], names[:200])
        self.assertEqual(named.classes_.tolist(), self.NAMES.tolist())
        labels, sets = named.predict_set(self.x[200:])
        expected_labels, expected_sets = self.numbers.predict_set(self.x[200:])
        np.testing.assert_array_equal(labels, self.NAMES[expected_labels])
        np.testing.assert_array_equal(sets, expected_sets)
        np.testing.assert_array_equal(
            named.check(self.x[200:], names[200:]).p_value,
            self.numbers.check(self.x[200:], self.y[200:]).p_value,
        )
        found = named.evaluate(self.x[200:], names[200:])
        self.assertEqual(found["class_names"], self.NAMES.tolist())
        # Files know the names, too.
        named.save(self.path("named.onnx"))
        again = fcp.FeatureConformalClassifier.load(self.path("named.onnx"))
        self.assertEqual(again.classes_.tolist(), self.NAMES.tolist())
        np.testing.assert_array_equal(again.predict(self.x[200:]), labels)
        self.assertEqual(again.score(self.x[200:], names[200:]), np.mean(labels == names[200:]))

    def test_names_without_an_order_are_ascending(self):
        names = self.NAMES[self.y]
        named = fcp.FeatureConformalClassifier(self.model, method="lac")
        named.conformalize(self.x[:200], names[:200].tolist())
        self.assertEqual(named.classes_.tolist(), sorted(self.NAMES))

    def test_wrong_labels(self):
        names = self.NAMES[self.y]
        named = fcp.FeatureConformalClassifier(self.model, method="lac")
        some = names != "west"
        with self.assert_error("y: has 3 classes, the network answers 4; name all of them"):
            named.conformalize(self.x[some], names[some])
        named.set_params(classes=self.NAMES.tolist()).conformalize(self.x[some], names[some])
        names[7] = "up"
        with self.assert_error(r"y: row 7 \(from 0\): found label 'up', expected one of 'north'"):
            named.evaluate(self.x, names)


class Table:
    """As much of a table as columns are matched by."""

    def __init__(self, columns):
        self.cells = columns
        self.columns = list(columns)

    @property
    def shape(self):
        return len(self.cells[self.columns[0]]), len(self.columns)

    def __getitem__(self, names):
        if isinstance(names, str):
            return self.cells[names]
        return Table({name: self.cells[name] for name in names})

    def __array__(self, dtype=None, copy=None):
        return np.stack([self.cells[name] for name in self.columns], axis=1).astype(dtype or float)


class Tables(Case):
    """Columns by name, in tables of whatever library."""

    def test_columns_are_matched_by_name(self):
        x, y = regression_rows(60)
        table = Table({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2]})
        regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 1)), method="residual")
        regressor.conformalize(table, y)
        self.assertEqual(regressor.feature_names_in_.tolist(), ["a", "b", "c"])
        expected = regressor.predict(table)
        np.testing.assert_array_equal(regressor.predict(table[["c", "a", "b"]]), expected)
        with self.assert_error("X: has no column 'b'; expected are the columns a, b, c"):
            regressor.predict(table[["a", "c"]])
        with self.assertWarnsRegex(UserWarning, "X does not have valid feature names"):
            np.testing.assert_array_equal(regressor.predict(x), expected)

    def test_cells_are_read_as_from_the_file(self):
        lines = ["city,rooms,price"]
        for row in range(200):
            city, rooms = ("Rome", "Oslo", "Lima", "")[row % 4], row % 5 or ""
            lines.append(f"{city},{rooms},{row % 7}")
        with open(self.path("rows.csv"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        self.program("train", "rows.csv", "--target", "price", "--recipe", "paper", "--epochs", 1,
                     "--categorical", "city", "--impute", "--out", "m.onnx")  # fmt: skip
        self.program("run", "m.onnx", "--data", "rows.csv", "--out", "y.npy")
        model = fcp.load(self.path("m.onnx"))
        self.assertEqual(model.column_names, ["city", "rooms"])
        cells = [line.split(",")[:2] for line in lines[1:]]
        rooms = np.array([float(cell[1] or "nan") for cell in cells])
        city = np.array([cell[0] or None for cell in cells], dtype=object)
        found = model(Table({"rooms": rooms, "city": city, "other": rooms}))
        np.testing.assert_allclose(found, np.load(self.path("y.npy")), rtol=1e-6)
        with self.assert_error(r"X: row 0 \(from 0\), column 'rooms': expected a number, found"):
            model(Table({"rooms": city, "city": city}))


@needs_pandas
class Frames(Case):
    """Tables of pandas, in and out."""

    def setUp(self):
        super().setUp()
        x, self.y = regression_rows(120)
        self.x = pandas.DataFrame(x, columns=["a", "b", "c"], index=[f"row{i}" for i in range(120)])
        self.regressor = fcp.FeatureConformalRegressor(
            model_for(perceptron(3, 1)), method="residual"
        )
        self.regressor.conformalize(self.x, self.y)
        self.expected = self.regressor.predict_interval(self.x)[1]

    def test_columns_are_matched_by_name(self):
        self.assertEqual(self.regressor.feature_names_in_.tolist(), ["a", "b", "c"])
        self.assertEqual(self.regressor.n_features_in_, 3)
        for columns in (["c", "a", "b"], ["b", "other", "c", "a"]):
            table = self.x.assign(other=5.0)[columns]
            np.testing.assert_array_equal(self.regressor.predict_interval(table)[1], self.expected)
            self.assertEqual(
                self.regressor.evaluate(table, self.y), self.regressor.evaluate(self.x, self.y)
            )
        with self.assert_error("X: has no column 'b'; expected are the columns a, b, c"):
            self.regressor.predict(self.x[["a", "c"]])
        with self.assertRaisesRegex(TypeError, "some names of columns are text"):
            self.regressor.predict(self.x.rename(columns={"b": 1}))

    def test_arrays_after_a_table_are_taken_with_a_warning(self):
        with self.assertWarnsRegex(UserWarning, "X does not have valid feature names"):
            found = self.regressor.predict_interval(self.x.to_numpy())[1]
        np.testing.assert_array_equal(found, self.expected)

    def test_a_new_calibration_forgets_the_names(self):
        self.regressor.conformalize(self.x.to_numpy(), self.y)
        self.assertFalse(hasattr(self.regressor, "feature_names_in_"))

    def test_tables_out(self):
        prediction, intervals = self.regressor.predict_interval(self.x, alpha=[0.1, "0.2"])
        one = self.regressor.predict_interval(self.x, as_frame=True)
        self.assertEqual(list(one), ["prediction", "lower", "upper"])
        self.assertEqual(one.index.tolist(), self.x.index.tolist())
        np.testing.assert_array_equal(one[["lower", "upper"]], intervals[:, :, 0])
        two = self.regressor.predict_interval(self.x, alpha=[0.1, "0.2"], as_frame=True)
        columns = ["prediction", "lower_0.1", "upper_0.1", "lower_0.2", "upper_0.2"]
        self.assertEqual(list(two), columns)
        np.testing.assert_array_equal(two["prediction"], prediction)
        np.testing.assert_array_equal(two["upper_0.2"], intervals[:, 1, 1])
        pairs = fcp.FeatureConformalRegressor(model_for(perceptron(3, 2)), method="residual")
        pairs.conformalize(self.x, np.stack([self.y, -self.y], axis=1))
        both = pairs.predict_interval(self.x, as_frame=True)
        self.assertEqual(list(both)[3:], ["prediction_1", "lower_1", "upper_1"])

    def test_tables_of_sets(self):
        x, y = label_rows(120)
        names = Labels.NAMES[y]
        classifier = fcp.FeatureConformalClassifier(model_for(perceptron(3, 4)), method="lac")
        classifier.conformalize(x, names)
        labels, sets = classifier.predict_set(x[:20])
        table = classifier.predict_set(x[:20], as_frame=True)
        self.assertEqual(list(table), ["prediction", "size", "labels"])
        np.testing.assert_array_equal(table["prediction"], labels)
        for row in range(20):
            expected = classifier.classes_[sets[row, :, 0]]
            self.assertEqual(table["labels"][row], tuple(expected))
            self.assertEqual(table["size"][row], len(expected))

    def test_series_and_whole_numbers(self):
        table = (self.x * 10).round().astype(int)
        regressor = fcp.FeatureConformalRegressor(self.regressor.model, method="residual")
        regressor.conformalize(table, pandas.Series(self.y, index=table.index))
        self.assertEqual(len(regressor.predict(table)), 120)


@needs_pandas
class TrainedTables(Case):
    """Networks of the program know their columns: tables come as they are in the file."""

    def test_cells_are_read_as_from_the_file(self):
        random = np.random.default_rng(0)
        rows = 400
        table = pandas.DataFrame(
            {
                "city": random.choice(["Rome", "Oslo", "Lima"], rows),
                "rooms": random.integers(1, 6, rows).astype(float),
                "built": pandas.Timestamp("2001-05-01")
                + pandas.to_timedelta(random.integers(0, 5000, rows), unit="D"),
                "garden": random.random(rows) < 0.5,
                "price": random.normal(size=rows),
            }
        )
        table.loc[::7, "rooms"] = np.nan
        table.loc[::11, "city"] = None
        table["price"] += table["rooms"].fillna(3)
        table[:300].to_csv(self.path("train.csv"), index=False)
        table[300:].to_csv(self.path("test.csv"), index=False)
        self.program("train", "train.csv", "--target", "price", "--epochs", 2, "--out", "m.onnx")
        self.program("calibrate", "m.onnx", "--data", "test.csv", "--target", "price", "--score",
                     "residual", "--out", "c.onnx")  # fmt: skip
        self.program("predict", "c.onnx", "--data", "test.csv", "--out", "out.csv")
        expected = pandas.read_csv(self.path("out.csv"))
        regressor = fcp.FeatureConformalRegressor.load(self.path("c.onnx"))
        self.assertEqual(regressor.feature_names_in_.tolist(), list(table)[:4])
        shuffled = table[300:][["garden", "price", "rooms", "built", "city"]]
        read = pandas.read_csv(self.path("test.csv"))
        for given in (shuffled, read):
            found = regressor.predict_interval(given, as_frame=True)
            self.assertEqual(found.index.tolist(), given.index.tolist())
            for column in ("prediction", "lower", "upper"):
                np.testing.assert_allclose(found[column], expected[column], rtol=1e-6)
        again = fcp.FeatureConformalRegressor(self.path("m.onnx"), method="residual")
        again.conformalize(read, read["price"])
        self.assertEqual(again.radius(0.1), regressor.radius(0.1))
        with self.assert_error("X: has no column 'city'; expected are the columns city, rooms"):
            regressor.predict(read.drop(columns="city"))
        read["rooms"] = "many"
        with self.assert_error(r"X: row 0 \(from 0\), column 'rooms': expected a number, found"):
            regressor.predict(read)


@needs_sklearn
class ScikitLearn(Case):
    """Tags, cross-validation and searches; scikit-learn before 1.6 and after."""

    def setUp(self):
        super().setUp()
        self.x, self.y = regression_rows(200)
        self.regressor = fcp.FeatureConformalRegressor(
            model_for(perceptron(3, 1)), method="residual"
        )

    def test_kinds(self):
        classifier = fcp.FeatureConformalClassifier(model_for(perceptron(3, 4)))
        self.assertTrue(sklearn.base.is_regressor(self.regressor))
        self.assertFalse(sklearn.base.is_classifier(self.regressor))
        self.assertTrue(sklearn.base.is_classifier(classifier))
        self.assertFalse(sklearn.base.is_regressor(classifier))
        pipeline = sklearn.pipeline.make_pipeline(
            sklearn.preprocessing.StandardScaler(), self.regressor
        )
        self.assertTrue(sklearn.base.is_regressor(pipeline))

    def test_check_is_fitted(self):
        from sklearn.utils.validation import check_is_fitted

        with self.assertRaises(sklearn.exceptions.NotFittedError):
            check_is_fitted(self.regressor)
        check_is_fitted(self.regressor.conformalize(self.x, self.y))

    def test_cross_validation(self):
        found = sklearn.model_selection.cross_val_score(self.regressor, self.x, self.y, cv=4)
        usual = sklearn.model_selection.cross_val_score(
            self.regressor, self.x, self.y, cv=4, scoring="r2"
        )
        np.testing.assert_allclose(found, usual, atol=1e-6)
        predicted = sklearn.model_selection.cross_val_predict(self.regressor, self.x, self.y, cv=4)
        self.assertEqual(predicted.shape, (200,))
        x, y = label_rows(200)
        classifier = fcp.FeatureConformalClassifier(model_for(perceptron(3, 4)), method="lac")
        found = sklearn.model_selection.cross_val_score(classifier, x, y, cv=4)
        usual = sklearn.model_selection.cross_val_score(
            classifier, x, y, cv=4, scoring="accuracy"
        )
        np.testing.assert_allclose(found, usual)

    def test_search_over_methods(self):
        grid = {"method": ["residual", "nested", "linearized"]}
        search = sklearn.model_selection.GridSearchCV(
            self.regressor, grid, scoring=fcp.region_score, cv=3
        ).fit(self.x, self.y)
        scores = search.cv_results_["mean_test_score"]
        self.assertEqual(search.best_params_["method"], grid["method"][int(np.argmax(scores))])
        self.assertEqual(search.best_estimator_.method, search.best_params_["method"])
        self.assertEqual(len(set(scores)), 3)
        pipeline = sklearn.pipeline.make_pipeline(
            sklearn.preprocessing.StandardScaler(), self.regressor
        )
        search = sklearn.model_selection.GridSearchCV(
            pipeline, {"featureconformalregressor__method": ["residual", "nested"]},
            scoring=fcp.region_score, cv=3,
        ).fit(self.x, self.y)  # fmt: skip
        self.assertTrue(np.isfinite(search.cv_results_["mean_test_score"]).all())

    def test_wrapped_estimators_stay_fitted_in_a_search(self):
        from sklearn.linear_model import LinearRegression

        fitted = LinearRegression().fit(self.x[:50], self.y[:50])
        search = sklearn.model_selection.GridSearchCV(
            fcp.wrap(fitted, method="residual"), {"alpha": [0.1, 0.2]}, cv=3
        ).fit(self.x[50:], self.y[50:])
        self.assertIs(search.best_estimator_.model.estimator, fitted)
        with self.assert_error("model: found a LinearRegression; fcp.wrap takes fitted"):
            fcp.FeatureConformalRegressor(fitted).conformalize(self.x, self.y)


class AnyColumns(torch.nn.Module):
    """Takes rows of any length, as scikit-learn's checks have them."""

    def __init__(self, outputs):
        super().__init__()
        self.register_buffer("weights", torch.linspace(-1.0, 1.0, outputs)[None] + 0.5)

    def forward(self, x):
        return x.mean(dim=1, keepdim=True) * self.weights


class Mean:
    """The same as an estimator."""

    def predict(self, X):
        return np.asarray(X, dtype=float).mean(axis=1)


def model_of_any_columns(outputs):
    written = io.BytesIO()
    options = {}
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        options["dynamo"] = False
    torch.onnx.export(
        AnyColumns(outputs), (torch.zeros(2, 3),), written, opset_version=17,
        input_names=["input"], output_names=["output"],
        dynamic_axes={"input": {0: "batch", 1: "columns"}, "output": {0: "batch"}}, **options,
    )  # fmt: skip
    return fcp.Model(fcp._fcp.Network.parse(written.getvalue(), "any", []))


# Checks of scikit-learn that do not apply, each with the reason; all others must pass.
NOT_OURS = {
    "check_parameters_default_constructible": "model has no default: there is no network as such",
    "check_fit1d": "rows of one number may come as one dimension",
    "check_fit2d_predict1d": "rows of one number may come as one dimension",
    "check_fit2d_1sample": "the message speaks of rows, not of samples",
    "check_estimators_empty_data_messages": "a network says itself that it needs columns",
    "check_supervised_y_2d": "a column of answers is taken without a warning",
    "check_estimators_nan_inf": "infinite numbers may be inputs of a network; NaN is tested here",
}
NOT_OURS_OF_LABELS = {
    "check_classifiers_one_label": "fit does not train: y does not change what the network answers",
    "check_classifiers_classes": "the network has its number of classes, whatever y holds",
    "check_classifiers_train": "predict_proba has the network's number of classes",
    "check_classifiers_regression_target": "the message names row and label instead of the type",
}
NOT_OURS_OF_WRAPPED = {
    name: "sparse rows go to the estimator as they are"
    for name in ("check_estimator_sparse_tag", "check_estimator_sparse_array",
                 "check_estimator_sparse_matrix", "check_estimator_sparse_data")
}  # fmt: skip


def estimator_checks(estimator):
    if hasattr(checks, "estimator_checks_generator"):  # from 1.6 on
        return checks.estimator_checks_generator(estimator)
    return checks.check_estimator(estimator, generate_only=True)


@needs_sklearn
class Checks(Case):
    """check_estimator's own checks, one by one."""

    maxDiff = None

    def run_checks(self, estimator, not_ours):
        ran, failed = set(), {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for case, check in estimator_checks(estimator):
                name = getattr(check, "func", check).__name__
                if name in not_ours:
                    continue
                try:
                    check(case)
                    ran.add(name)
                except unittest.SkipTest:
                    pass
                except Exception as error:
                    failed[name] = f"{type(error).__name__}: {error}"
        self.assertEqual(failed, {})
        self.assertGreater(len(ran), 20)
        self.assertLessEqual(
            {"check_estimators_dtypes", "check_estimators_pickle", "check_n_features_in",
             "check_estimators_unfitted", "check_get_params_invariance"}, ran,
        )  # fmt: skip

    def test_regressor(self):
        model = model_of_any_columns(1)
        self.run_checks(fcp.FeatureConformalRegressor(model, method="residual"), NOT_OURS)

    def test_classifier(self):
        model = model_of_any_columns(10)
        self.run_checks(
            fcp.FeatureConformalClassifier(model, method="lac"), {**NOT_OURS, **NOT_OURS_OF_LABELS}
        )

    def test_wrapped(self):
        self.run_checks(
            fcp.wrap(Mean(), method="residual"), {**NOT_OURS, **NOT_OURS_OF_WRAPPED}
        )


if __name__ == "__main__":
    networks.main()
