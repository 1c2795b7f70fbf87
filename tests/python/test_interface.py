"""The package fcp as its users meet it: what it refuses, networks, files shared with the program,
parameters, types, and scikit-learn where that is installed."""

import ast
import copy
import doctest
import functools
import inspect
import io
import json
import math
import pathlib
import pickle
import unittest
import unittest.mock

import numpy as np
import torch

import fcp
import networks
from fcp import _classifier, _fcp, _model, _regressor, _wrap
from networks import Branches, Case, label_rows, model_for, perceptron, regression_rows

try:
    import sklearn.base
    import sklearn.pipeline
    import sklearn.preprocessing
except ImportError:
    sklearn = None


class Errors(Case):
    def setUp(self):
        super().setUp()
        self.x, self.y = regression_rows(50)
        self.model = model_for(perceptron(3, 1))
        self.regressor = fcp.FeatureConformalRegressor(self.model, method="nested")

    def test_error_is_a_value_error_of_the_package(self):
        self.assertTrue(issubclass(fcp.Error, ValueError))
        self.assertEqual(fcp.Error.__module__, "fcp")

    def test_data(self):
        with self.assert_error("X has 50 rows, y has 49"):
            self.regressor.conformalize(self.x, self.y[1:])
        with self.assert_error(r"input 'input': found shape \[\d+, 2\], expected \[\?, 3\]"):
            self.regressor.conformalize(self.x[:, :2], self.y)
        with self.assert_error("the target has 2 columns"):
            self.regressor.conformalize(self.x, np.stack([self.y, self.y], axis=1))
        self.x[7, 1] = np.nan
        with self.assert_error(r"X: row 7 \(from 0\) has NaN in column 1, expected a number"):
            self.regressor.conformalize(self.x, self.y)
        with self.assert_error("X: is a single number"):
            self.model(3.0)
        with self.assert_error("X: has no rows"):
            self.regressor.conformalize(self.x[8:], self.y[8:]).predict_interval(self.x[:0])

    def test_answers_that_are_no_numbers(self):
        classifier = fcp.FeatureConformalClassifier(model_for(perceptron(3, 4)), method="lac")
        classifier.conformalize(self.x, np.arange(50) % 4)
        self.regressor.conformalize(self.x, self.y)
        labels = np.arange(50) % 4
        asked = (self.regressor.predict_interval, classifier.predict_set,
                 lambda x: self.regressor.check(x, self.y), lambda x: classifier.check(x, labels),
                 lambda x: self.regressor.evaluate(x, self.y))
        self.x[9, 1] = np.nan
        for ask in asked:
            with self.assert_error(r"X: row 9 \(from 0\) has NaN in column 1, expected a number"):
                ask(self.x)
        self.x[9] = [3e38, -3e38, -3e38]  # ∞ − ∞ behind the first layer
        for ask in asked:
            with self.assert_error(r"X: row 9 \(from 0\).*the network's answer is NaN"):
                ask(self.x)

    def test_truths_that_are_no_numbers(self):
        self.regressor.conformalize(self.x, self.y)
        self.y[4] = np.nan
        for ask in (self.regressor.check, self.regressor.evaluate, self.regressor.conformalize):
            with self.assert_error(r"y: row 4 \(from 0\) has NaN in column 0, expected a number"):
                ask(self.x, self.y)

    def test_rows_of_training(self):
        """A network says which rows it has seen; calibration on them would promise too much."""
        rows = np.column_stack([self.x, self.y])
        np.savetxt(self.path("t.csv"), rows, "%.9g", ",", header="a,b,c,y", comments="")
        self.program("train", "t.csv", "--target", "y", "--recipe", "paper", "--epochs", 1,
                     "--out", "m.onnx")  # fmt: skip
        regressor = fcp.FeatureConformalRegressor(self.path("m.onnx"), method="residual")
        with self.assert_error("100 % of the rows that the network was trained on"):
            regressor.conformalize(self.x, self.y)
        regressor.conformalize(*regression_rows(50, seed=1))

    def test_labels(self):
        classifier = fcp.FeatureConformalClassifier(model_for(perceptron(3, 4)), method="lac")
        y = np.zeros(50)
        y[3] = 4
        with self.assert_error("row 3: found label 4, expected one of 0 to 3"):
            classifier.conformalize(self.x, y)
        with self.assert_error("'nested' is a score of intervals"):
            classifier.set_params(method="nested").conformalize(self.x, y)

    def test_parameters(self):
        with self.assert_error("method: found 'nice', expected aps, cqr"):
            fcp.FeatureConformalRegressor(self.model, method="nice").conformalize(self.x, self.y)
        with self.assert_error("floor: applies only to nested, .*; the score is residual"):
            self.regressor.set_params(method="residual", floor=1.0).conformalize(self.x, self.y)
        with self.assert_error("cut: applies only to nested, .*; the score is residual"):
            self.regressor.set_params(floor=0.0, cut="-1").conformalize(self.x, self.y)
        with self.assert_error("there is no parameter 'colour'"):
            self.regressor.set_params(colour="red")
        with self.assert_error("grouped' and groups go together"):
            self.regressor.set_params(cut=None, calibration="grouped").conformalize(self.x, self.y)
        for name, (value, words) in {
            "selection": (2.0, "a number from 0 to 0.9"),
            "floor": (-1.0, "a number of at least 0"),
            "bandwidth": (math.nan, "'auto' or a number above 0"),
            "steps": (1.5, "'auto' or a whole number from 1 to"),
            "seed": ("a", "a whole number of at least 0"),
            "adam": (1, "true or false"),
            "norm": (2, "inf, 2 or 1"),
            "low": (2, "text"),
            "loss_weights": ("1,2", "a list of numbers"),
        }.items():
            with self.assert_error(f"{name}: found {value!r}, expected {words}"):
                fcp.FeatureConformalRegressor(self.model, **{name: value}).conformalize(
                    self.x, self.y
                )
        with self.assert_error("cut: 'auto' compares lengths at equal coverage"):
            fcp.FeatureConformalRegressor(self.model, method="surrogate", cut="auto").conformalize(
                self.x, self.y
            )
        with self.assert_error("device: found 'tpu'"):
            fcp.FeatureConformalRegressor(self.model, device="tpu").conformalize(self.x, self.y)

    def test_levels(self):
        self.regressor.conformalize(self.x, self.y)
        with self.assert_error("alpha: found None, expected a number"):
            self.regressor.predict_interval(self.x, alpha=[None])
        with self.assert_error("alpha: is empty, expected a number"):
            self.regressor.predict_interval(self.x, alpha=[])
        with self.assertWarnsRegex(UserWarning, "at alpha 0.9 most regions may miss the truth"):
            self.regressor.predict_interval(self.x, alpha=0.9)
        for alpha in (0, 1, 1.5, "a tenth"):
            with self.assert_error('level alpha is ".*"; expected'):
                self.regressor.predict_interval(self.x, alpha=alpha)

    def test_order_and_facts(self):
        with self.assert_error("call conformalize first"):
            self.regressor.predict_interval(self.x)
        self.regressor.conformalize(self.x, self.y)
        with self.assert_error("groups: it was calibrated without groups"):
            self.regressor.predict_interval(self.x, groups=np.zeros(50))
        with self.assert_error("groups: names 3 rows, X has 50"):
            self.regressor.evaluate(self.x, self.y, groups=[1, 2, 3])

    def test_files(self):
        with self.assert_error("missing.onnx"):
            fcp.load(self.path("missing.onnx"))
        self.model.save(self.path("model.onnx"))
        with self.assert_error("model.onnx: is a network without calibration"):
            fcp.FeatureConformalRegressor.load(self.path("model.onnx"))
        self.regressor.conformalize(self.x, self.y).save(self.path("calibrated.onnx"))
        with self.assert_error("predicts intervals, not for a FeatureConformalClassifier"):
            fcp.FeatureConformalClassifier.load(self.path("calibrated.onnx"))
        with self.assert_error("cannot write: No such file"):
            self.regressor.save(self.path("nowhere/calibrated.onnx"))

    def test_torch(self):
        with self.assert_error("the module has no submodule 'layer9'"):
            model_for(Branches(), cut="layer9")
        twice = torch.nn.Linear(3, 3)
        with self.assert_error("submodule '0' does not give one tensor, once"):
            model_for(torch.nn.Sequential(twice, torch.nn.ReLU(), twice), cut="0")


class Predictions(Case):
    """The prediction needs no level, no groups and no weights."""

    def test_of_every_method_and_calibration(self):
        x, y = regression_rows(400)
        model = model_for(perceptron(3, 1))
        facts = {
            "split": {},
            "grouped": {"groups": np.arange(400) % 2},
            "weighted": {"weights": np.ones(400)},
        }
        for method in ("residual", "nested", "linearized"):
            for calibration, given in facts.items():
                regressor = fcp.FeatureConformalRegressor(
                    model, method=method, calibration=calibration
                ).conformalize(x, y, **given)
                expected = regressor.predict_interval(x, **given)[0]
                np.testing.assert_array_equal(regressor.predict(x), expected)
                np.testing.assert_array_equal(regressor.predict(x, **given), expected)
                self.assertLess(regressor.score(x, y), 1)
        with self.assert_error("groups: it was calibrated without groups"):
            regressor.predict(x, groups=np.zeros(400))

    def test_of_labels_and_several_outputs(self):
        x, labels = label_rows(300)
        model = model_for(perceptron(3, 4))
        classifier = fcp.FeatureConformalClassifier(model, method="aps", calibration="grouped")
        classifier.conformalize(x, labels, groups=labels % 2)
        np.testing.assert_array_equal(classifier.predict(x), model(x).argmax(axis=1))
        x, y = regression_rows(100, outputs=2)
        model = model_for(perceptron(3, 2))
        regressor = fcp.FeatureConformalRegressor(model, method="residual").conformalize(x, y)
        np.testing.assert_array_equal(regressor.predict(x), model(x))


class Levels(Case):
    def test_confidence_level_is_one_minus_alpha(self):
        x, y = regression_rows(300)
        regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 1)), method="nested")
        regressor.conformalize(x, y)
        several = regressor.predict_interval(x, confidence_level=[0.9, "0.7"])[1]
        np.testing.assert_array_equal(several, regressor.predict_interval(x, alpha=[0.1, 0.3])[1])
        for confidence in (0.9, np.float32(0.9), "0.90"):
            self.assertEqual(regressor.radius(confidence_level=confidence), regressor.radius(0.1))
        self.assertEqual(
            regressor.evaluate(x, y, confidence_level=0.8), regressor.evaluate(x, y, alpha=0.2)
        )
        inside = regressor.check(x, y, confidence_level=0.8).inside
        np.testing.assert_array_equal(inside, regressor.check(x, y, alpha=0.2).inside)
        regressor.export(self.path("out.onnx"), confidence_level=[0.9, 0.95])
        names = [name for name, _ in fcp.load(self.path("out.onnx")).outputs]
        self.assertEqual(names[1:], ["lower_0.1", "upper_0.1", "lower_0.05", "upper_0.05"])
        with self.assert_error("alpha and confidence_level: found both"):
            regressor.predict_interval(x, alpha=0.1, confidence_level=0.9)
        for wrong in (0, 1, 90, "most"):
            with self.assert_error("confidence_level: found .*, expected a number such as 0.9"):
                regressor.predict_interval(x, confidence_level=wrong)

    def test_the_level_of_the_estimator(self):
        x, y = regression_rows(300)
        model = model_for(perceptron(3, 1))
        by_alpha = fcp.FeatureConformalRegressor(model, method="nested", alpha=0.2)
        by_level = fcp.FeatureConformalRegressor(model, method="nested", confidence_level=0.8)
        for regressor in (by_alpha.conformalize(x, y), by_level.conformalize(x, y)):
            _, expected = regressor.predict_interval(x, alpha=0.2)
            np.testing.assert_array_equal(regressor.predict_interval(x)[1], expected)
        self.assertEqual(fcp.region_score(by_alpha, x, y), fcp.region_score(by_level, x, y))
        self.assertEqual(by_level.get_params()["confidence_level"], 0.8)
        with self.assert_error("alpha and confidence_level: found both"):
            by_alpha.set_params(confidence_level=0.9).conformalize(x, y)
        x, labels = label_rows(200)
        classifier = fcp.FeatureConformalClassifier(model_for(perceptron(3, 4)), method="lac")
        classifier.conformalize(x, labels)
        np.testing.assert_array_equal(
            classifier.predict_set(x, confidence_level=0.7)[1], classifier.predict_set(x, 0.3)[1]
        )


class Proto:
    """What is used of an onnx.ModelProto, and of torch's ONNXProgram."""

    def __init__(self, written):
        self.SerializeToString = lambda: written


class Program:
    def __init__(self, written):
        self.model_proto = Proto(written)


class Models(Case):
    def test_networks_in_memory(self):
        x, y = regression_rows(100)
        model_for(perceptron(3, 1)).save(self.path("model.onnx"))
        written = pathlib.Path(self.path("model.onnx")).read_bytes()
        expected = fcp.load(self.path("model.onnx"))(x)
        for source in (written, bytearray(written), Proto(written), Program(written)):
            np.testing.assert_array_equal(fcp.load(source, cut="-1")(x), expected)
            regressor = fcp.FeatureConformalRegressor(source, method="residual")
            np.testing.assert_array_equal(regressor.conformalize(x, y).predict(x), expected[:, 0])
        np.testing.assert_array_equal(fcp.from_torch(Program(written))(x), expected)
        with self.assert_error("bytes"):
            fcp.load(written[:50])
        with self.assert_error("found a int, expected the path of an ONNX file, its bytes"):
            fcp.load(3)
        with self.assert_error("found a function, expected a torch.nn.Module or an ONNXProgram"):
            fcp.from_torch(model_for, x[:1])
        with self.assert_error("example: there is none"):
            fcp.from_torch(perceptron(3, 1))

    def test_errors_of_torch(self):
        with self.assert_error("the module does not take the example: RuntimeError: .*mat1 and mat2"):
            fcp.from_torch(perceptron(3, 1), np.zeros((1, 5), np.float32))

        class Wrong(torch.nn.Module):
            def forward(self, x):
                if torch.jit.is_tracing():
                    raise KeyError("no such\nthing")
                return x

        with self.assert_error("torch cannot export the module: KeyError: 'no such.*thing'"):
            fcp.from_torch(Wrong(), np.zeros((1, 3), np.float32))

    def test_compiled_modules(self):
        network = perceptron(3, 1)
        compiled = torch.nn.Module()  # as torch.compile makes them, which not every torch has
        compiled._orig_mod = network
        x, _ = regression_rows(20)
        model = fcp.from_torch(compiled, x[:1], cut="1")
        self.assertEqual(model.cut, "layer 1")
        np.testing.assert_array_equal(model(x), model_for(network)(x))

    def test_the_exporter_of_dynamo_is_asked_first(self):
        x, _ = regression_rows(20)
        network = perceptron(3, 1)
        tracing = "dynamo" in inspect.signature(torch.onnx.export).parameters
        traced = functools.partial(torch.onnx.export, **({"dynamo": False} if tracing else {}))
        calls = []
        dim = ("torch.export.Dim", Dimensions.Dim) if tracing else ("torch.export", Dimensions)

        def export(module, args, f=None, *, dynamo=True, dynamic_shapes=None, **options):
            calls.append((dynamo, len(args[0])))
            if not dynamo:
                return traced(module, args, f, **options)
            if fails:
                raise RuntimeError("no such operator")
            written = io.BytesIO()
            axes = {name: {0: "batch"} for name in ("input", *options["output_names"])}
            options = {"opset_version": 16, "dynamic_axes": axes, **options}
            traced(module, args, written, **options)
            return Program(written.getvalue())

        with unittest.mock.patch("torch.onnx.export", export), \
                unittest.mock.patch("importlib.util.find_spec", lambda name: name), \
                unittest.mock.patch(*dim, create=True):  # fmt: skip
            for fails in (False, True):
                calls.clear()
                model = fcp.from_torch(network, x[:1], cut="3")
                self.assertEqual(calls, [(True, 2)] + fails * [(False, 1)])
                np.testing.assert_array_equal(model(x), model_for(network)(x))
                self.assertEqual(model.cut, "layer 3")

    def test_what_outputs_are_taken_for(self):
        x, y = regression_rows(200)
        regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 1)), method="nested")
        self.assertEqual(regressor.conformalize(x, y).outputs_, {"prediction": "output"})
        quantiles = fcp.FeatureConformalRegressor(
            model_for(Branches()), method="cqr", low="output1", high="output0"
        ).conformalize(x, y)
        self.assertEqual(quantiles.outputs_, {"low": "output1", "high": "output0"})

        class Spread(Branches):
            def forward(self, x):
                low, high = super().forward(x)
                return high - low, low

        regressor = fcp.FeatureConformalRegressor(
            model_for(Spread()), method="residual", output="output1", normalize="output0"
        ).conformalize(x, y)
        self.assertEqual(regressor.outputs_, {"prediction": "output1", "spread": "output0"})
        regressor.save(self.path("calibrated.onnx"))
        loaded = fcp.FeatureConformalRegressor.load(self.path("calibrated.onnx"))
        self.assertEqual(loaded.outputs_, regressor.outputs_)
        x, labels = label_rows(200)
        classifier = fcp.FeatureConformalClassifier(model_for(perceptron(3, 4)), method="lac")
        self.assertEqual(classifier.conformalize(x, labels).outputs_, {"classes": "output"})

    def test_from_torch_answers_as_torch(self):
        network = perceptron(3, 2).train()
        network[1].eval()
        x, _ = regression_rows(20)
        model = fcp.from_torch(network, x[:1].astype(np.float64))
        with torch.no_grad():
            np.testing.assert_allclose(model(x), network(torch.from_numpy(x)).numpy(), atol=1e-5)
        self.assertTrue(network.training and network[0].training)
        self.assertFalse(network[1].training)
        self.assertEqual(model.inputs, [("input", [-1, 3])])
        self.assertEqual(model.outputs, [("output", [-1, 2])])

    def test_cut_by_submodule(self):
        network = Branches()
        model = model_for(network, cut="backbone")
        self.assertEqual(model.cut, "backbone")
        self.assertIn("backbone", model.cuts)
        self.assertEqual(len(model.outputs), 2)
        x, y = regression_rows(200)
        regressor = fcp.FeatureConformalRegressor(model, method="feature_cqr").conformalize(x, y)
        self.assertEqual(regressor.predictor_.cut, "backbone")
        same = fcp.FeatureConformalRegressor(network, method="feature_cqr", cut="backbone")
        self.assertEqual(same.conformalize(x, y).radius(0.1), regressor.radius(0.1))
        # The name stays in the file.
        regressor.save(self.path("calibrated.onnx"))
        again = fcp.FeatureConformalRegressor.load(self.path("calibrated.onnx"))
        self.assertEqual(again.cut, "backbone")

    def test_numbered_submodule_is_no_number_of_layers(self):
        model = model_for(perceptron(3, 1), cut="3")  # the second ReLU
        x, y = regression_rows(100)
        regressor = fcp.FeatureConformalRegressor(model, method="nested").conformalize(x, y)
        self.assertEqual(regressor.predictor_.cut, "layer 3")
        same = fcp.FeatureConformalRegressor(model, cut="-1", method="nested").conformalize(x, y)
        self.assertEqual(same.radius(0.1), regressor.radius(0.1))

    def test_modules_and_paths_are_models(self):
        network = perceptron(3, 1)
        x, y = regression_rows(100)
        model_for(network).save(self.path("model.onnx"))
        radii = [
            fcp.FeatureConformalRegressor(model, method="nested").conformalize(x, y).radius(0.1)
            for model in (network, self.path("model.onnx"), pathlib.Path(self.path("model.onnx")))
        ]
        self.assertEqual(radii[0], radii[1])
        self.assertEqual(radii[1], radii[2])


class Dimensions:
    """In place of torch.export, which torch before 2.1 does not have."""

    Dim = str


def as_written(intervals):
    """Interval ends as the program writes them: the outermost float32 numbers that are inside."""
    lower, upper = intervals[:, 0].astype(np.float32), intervals[:, 1].astype(np.float32)
    lower = np.where(lower < intervals[:, 0], np.nextafter(lower, np.float32(np.inf)), lower)
    upper = np.where(upper > intervals[:, 1], np.nextafter(upper, np.float32(-np.inf)), upper)
    return lower, upper


class Files(Case):
    """The program and the package on the same files: the same bits."""

    def save_rows(self, x, y):
        np.save(self.path("x.npy"), x)
        np.save(self.path("y.npy"), y.astype(np.float32))

    def compare_intervals(self, regressor, x):
        """The program's intervals of calibrated.onnx are those of the regressor."""
        np.save(self.path("new.npy"), x)
        self.program("predict", "calibrated.onnx", "--data", "new.npy", "--out", "out.npy")
        program = np.load(self.path("out.npy"))
        prediction, intervals = regressor.predict_interval(x, alpha="0.1")
        lower, upper = as_written(intervals[:, :, 0])
        np.testing.assert_array_equal(program[:, 0, 0], prediction.astype(np.float32))
        np.testing.assert_array_equal(program[:, 0, 1], lower)
        np.testing.assert_array_equal(program[:, 0, 2], upper)

    def test_intervals_both_ways(self):
        x, y = regression_rows(600)
        model = model_for(perceptron(3, 1))
        model.save(self.path("model.onnx"))
        self.save_rows(x[:300], y[:300])
        for method, options in (("residual", {}), ("nested", {"cut": "auto"})):
            flags = [text for name, value in options.items() for text in (f"--{name}", value)]
            regressor = fcp.FeatureConformalRegressor(model, method=method, **options)
            regressor.conformalize(x[:300], y[:300]).save(self.path("calibrated.onnx"))
            self.compare_intervals(regressor, x[300:])
            self.program("calibrate", "model.onnx", "--data", "x.npy", "--target", "y.npy",
                         "--out", "calibrated.onnx", "--score", method, *flags)  # fmt: skip
            loaded = fcp.FeatureConformalRegressor.load(self.path("calibrated.onnx"))
            self.compare_intervals(loaded, x[300:])
            for alpha in ("0.05", "0.1", "0.3", "0.5", "0.9"):
                self.assertEqual(loaded.radius(alpha), regressor.radius(alpha))

    def test_a_file_with_the_radii_of_levels_alone(self):
        x, y = regression_rows(600)
        model = model_for(perceptron(3, 1))
        model.save(self.path("model.onnx"))
        self.save_rows(x[:300], y[:300])
        self.program("calibrate", "model.onnx", "--data", "x.npy", "--target", "y.npy",
                     "--score", "nested", "--levels", "0.05,0.1",
                     "--out", "calibrated.onnx")  # fmt: skip
        regressor = fcp.FeatureConformalRegressor(model, method="nested")
        regressor.conformalize(x[:300], y[:300])
        loaded = fcp.FeatureConformalRegressor.load(self.path("calibrated.onnx"))
        for same in (loaded, pickle.loads(pickle.dumps(loaded))):
            self.compare_intervals(same, x[300:])
            self.assertEqual(same.radius(0.05), regressor.radius(0.05))
        found = loaded.evaluate(x[300:], y[300:], alpha=0.1)
        self.assertEqual([point["alpha"] for point in found["curve"]], [0.05, 0.1])
        self.assertEqual(found["coverage"], regressor.evaluate(x[300:], y[300:])["coverage"])
        # The prediction needs no level.
        np.testing.assert_array_equal(loaded.predict(x[300:]), regressor.predict(x[300:]))
        self.assertEqual(loaded.score(x[300:], y[300:]), regressor.score(x[300:], y[300:]))
        with self.assert_error("keeps the radii for levels 0.05, 0.1 alone .*; found alpha 0.2"):
            loaded.predict_interval(x[300:], alpha=0.2)
        with self.assert_error("a p-value needs all scores"):
            loaded.check(x[300:], y[300:], alpha=0.1)

    def test_sets_both_ways(self):
        x, y = label_rows(600)
        model = model_for(perceptron(3, 4))
        model.save(self.path("model.onnx"))
        self.save_rows(x[:300], y[:300])
        np.save(self.path("new.npy"), x[300:])
        for score in ("aps", "feature_margin"):
            classifier = fcp.FeatureConformalClassifier(model, method=score)
            classifier.conformalize(x[:300], y[:300])
            self.program("calibrate", "model.onnx", "--data", "x.npy", "--target", "y.npy",
                         "--out", "calibrated.onnx", "--score", score)  # fmt: skip
            self.program("predict", "calibrated.onnx", "--data", "new.npy", "--out", "out.npy")
            program = np.load(self.path("out.npy"))
            np.testing.assert_array_equal(classifier.predict_set(x[300:])[1][:, :, 0], program)
            loaded = fcp.FeatureConformalClassifier.load(self.path("calibrated.onnx"))
            np.testing.assert_array_equal(loaded.predict_set(x[300:])[1][:, :, 0], program)

    def test_probabilities_both_ways(self):
        for classes in (2, 4):
            x, y = label_rows(600, classes)
            model = model_for(perceptron(3, classes))
            model.save(self.path("model.onnx"))
            self.save_rows(x[:400], y[:400])
            np.save(self.path("new.npy"), x[400:])
            options = dict(method="lac", probabilities="venn-abers")
            classifier = fcp.FeatureConformalClassifier(model, **options)
            classifier.conformalize(x[:400], y[:400])
            self.program("calibrate", "model.onnx", "--data", "x.npy", "--target", "y.npy",
                         "--out", "c.onnx", "--score", "lac",
                         "--probabilities", "venn-abers")  # fmt: skip
            self.program("predict", "c.onnx", "--data", "new.npy", "--probabilities",
                         "--out", "out.csv")  # fmt: skip
            table = np.genfromtxt(self.path("out.csv"), delimiter=",", skip_header=1)
            columns = table[:, -3 * classes :]
            p0, p1 = classifier.predict_venn_abers(x[400:])
            wanted = np.concatenate([classifier.predict_proba(x[400:]), p0, p1], axis=1)
            np.testing.assert_allclose(columns, wanted, atol=1e-6)
            loaded = fcp.FeatureConformalClassifier.load(self.path("c.onnx"))
            np.testing.assert_array_equal(loaded.predict_venn_abers(x[400:])[0], p0)
            found = classifier.evaluate(x[400:], y[400:])["probabilities"]
            self.assertEqual(found["method"], "venn-abers")
            plain = fcp.FeatureConformalClassifier(model, method="lac").conformalize(x, y)
            with self.assert_error('calibrate with probabilities="venn-abers"'):
                plain.predict_venn_abers(x)

    def test_outliers_both_ways(self):
        x, y = regression_rows(500)
        regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 1)), method="residual")
        regressor.conformalize(x[:200], y[:200]).save(self.path("c.onnx"))
        fresh = x[400:].copy()
        fresh[:8] += 25
        np.save(self.path("usual.npy"), x[200:400])
        np.save(self.path("new.npy"), fresh)
        for score in ("neighbours", "density"):
            found = regressor.outliers(fresh, x[200:400], 0.2, score=score, seed=3)
            self.assertTrue(found.outlier[:8].all())
            self.assertLess(found.outlier.sum(), 25)
            self.program("check", "c.onnx", "--data", "new.npy", "--outliers", "--fdr", "0.2",
                         "--reference", "usual.npy", "--outlier-score", score, "--seed", "3",
                         "--out", "out.csv")  # fmt: skip
            table = np.genfromtxt(self.path("out.csv"), delimiter=",", skip_header=1)
            np.testing.assert_allclose(table[:, 0], found.score, rtol=1e-6)
            np.testing.assert_allclose(table[:, 1], found.p_value, atol=1e-6)
            np.testing.assert_array_equal(table[:, 2] == 1, found.outlier)
        weighted = regressor.outliers(
            fresh, x[200:400], weights=np.ones(100), reference_weights=np.ones(200)
        )
        np.testing.assert_allclose(weighted.p_value, regressor.outliers(fresh, x[200:400]).p_value)
        self.assertLessEqual(weighted.outlier.sum(), found.outlier.sum())
        with self.assert_error("weights: expected with reference_weights"):
            regressor.outliers(fresh, x[200:400], weights=np.ones(100))
        with self.assert_error("at least 4 usual rows"):
            regressor.outliers(fresh, x[200:202])

    def test_evaluation_and_report(self):
        x, y = regression_rows(500)
        regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 1)), method="nested")
        regressor.conformalize(x[:300], y[:300]).save(self.path("calibrated.onnx"))
        self.save_rows(x[300:], y[300:])
        printed = json.loads(
            self.program("evaluate", "calibrated.onnx", "--data", "x.npy", "--target", "y.npy",
                         "--report", "printed.html", "--json")  # fmt: skip
        )
        found = regressor.evaluate(x[300:], y[300:], report=self.path("report.html"))
        for answer in (printed, found):
            answer.pop("provenance")
        self.assertEqual(found, printed)
        self.assertIn("<html", pathlib.Path(self.path("report.html")).read_text())

    def test_export(self):
        x, y = regression_rows(300)
        regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 1)), method="nested")
        regressor.conformalize(x[:200], y[:200]).export(self.path("out.onnx"), alpha=[0.1, 0.2])
        exported = fcp.load(self.path("out.onnx"))
        names = [name for name, _ in exported.outputs]
        self.assertEqual(names, ["output", "lower_0.1", "upper_0.1", "lower_0.2", "upper_0.2"])
        _, intervals = regressor.predict_interval(x[200:], alpha=[0.1, 0.2])
        outputs = exported(x[200:])
        for i in range(4):
            np.testing.assert_allclose(outputs[1 + i][:, 0], intervals[:, i % 2, i // 2], rtol=1e-4)

    def test_pickle_and_copy(self):
        x, y = regression_rows(150)
        model = model_for(perceptron(3, 1), cut="1")
        regressor = fcp.FeatureConformalRegressor(model, method="nested")
        regressor.conformalize(x[:100], y[:100])
        expected = regressor.predict_interval(x[100:])[1]
        for other in (pickle.loads(pickle.dumps(regressor)), copy.deepcopy(regressor)):
            np.testing.assert_array_equal(other.predict_interval(x[100:])[1], expected)
            self.assertEqual(other.model.cut, "layer 1")


class Words(Case):
    """Parameters, docstrings, types, and scikit-learn."""

    def test_parameters(self):
        model = model_for(perceptron(3, 1))
        regressor = fcp.FeatureConformalRegressor(model, method="residual", seed=3)
        self.assertEqual(regressor.get_params()["seed"], 3)
        self.assertIs(regressor.set_params(seed=4), regressor)
        self.assertEqual(regressor.seed, 4)
        self.assertIn("method='residual'", repr(regressor))
        with self.assertRaisesRegex(TypeError, "no parameter 'score'; it is called method"):
            fcp.FeatureConformalRegressor(model, score="residual")

    def test_documented_examples(self):
        for module in (fcp, _classifier, _model, _regressor, _wrap):
            with self.subTest(module.__name__):
                found = doctest.testmod(module)
                self.assertGreater(found.attempted, 5)
                self.assertEqual(found.failed, 0)

    def test_stub_names_what_there_is(self):
        stub = ast.parse(pathlib.Path(fcp.__file__).with_name("_fcp.pyi").read_text())
        self.assertEqual(public(vars(_fcp)), stubbed(stub.body))
        for node in stub.body:
            if isinstance(node, ast.ClassDef) and node.name in ("Network", "Predictor"):
                self.assertEqual(public(vars(getattr(_fcp, node.name))), stubbed(node.body))

    def test_package_is_typed(self):
        self.assertTrue(pathlib.Path(fcp.__file__).with_name("py.typed").exists())
        for name in fcp.__all__:
            self.assertTrue(inspect.getdoc(getattr(fcp, name)), name)

    @unittest.skipIf(sklearn is None, "scikit-learn is not installed")
    def test_clone(self):
        model = model_for(perceptron(3, 1))
        x, y = regression_rows(100)
        fitted = fcp.FeatureConformalRegressor(model, method="residual").conformalize(x, y)
        fresh = sklearn.base.clone(fitted)
        self.assertEqual(fresh.get_params(), fitted.get_params())
        self.assertFalse(hasattr(fresh, "predictor_"))
        self.assertEqual(fresh.conformalize(x, y).radius(0.1), fitted.radius(0.1))
        network = perceptron(3, 1)
        cloned = sklearn.base.clone(fcp.FeatureConformalRegressor(network, method="nested"))
        self.assertTrue(cloned.conformalize(x, y).radius(0.1))

    @unittest.skipIf(sklearn is None, "scikit-learn is not installed")
    def test_pipeline(self):
        x, y = regression_rows(300)
        network = perceptron(3, 1)
        steps = [
            ("scale", sklearn.preprocessing.StandardScaler()),
            ("conformal", fcp.FeatureConformalRegressor(network, method="nested")),
        ]
        pipeline = sklearn.pipeline.Pipeline(steps).fit(x[:200], y[:200])
        scaled = pipeline[:-1].transform(x[200:])
        prediction, intervals = pipeline[-1].predict_interval(scaled)
        np.testing.assert_array_equal(pipeline.predict(x[200:]), prediction)
        self.assertEqual(intervals.shape, (100, 2, 1))
        self.assertEqual(pipeline.set_params(conformal__seed=7)[-1].seed, 7)


def public(names):
    return {name for name in names if not name.startswith("_")}


def stubbed(body):
    found = set()
    for node in body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            found.add(node.target.id)
    return found


if __name__ == "__main__":
    networks.main()
