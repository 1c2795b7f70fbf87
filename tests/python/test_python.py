"""The package fcp: what it computes, what it takes, what it refuses, and that the program reads and
writes the same files."""
import ast
import concurrent.futures
import copy
import doctest
import importlib.util
import inspect
import json
import math
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time
import unittest

try:
    import numpy as np
    import torch
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import fcp
from fcp import _estimators, _fcp, _model
import networks
from networks import Branches, Case, label_rows, perceptron, regression_rows

try:
    import sklearn.base
    import sklearn.pipeline
    import sklearn.preprocessing
except ImportError:
    sklearn = None


def model_for(network, inputs=3, **options):
    return fcp.from_torch(network, torch.zeros(1, inputs), **options)


def quantile(scores, alpha):
    """The conformal quantile, by hand; alpha is in percent."""
    n = len(scores)
    rank = -(-(100 - alpha) * (n + 1) // 100)
    return np.sort(scores)[rank - 1] if rank <= n else np.inf


class Regions(Case):
    """Small methods against their formulas in NumPy."""

    def test_residual_is_prediction_and_quantile(self):
        x, y = regression_rows(230)
        network = perceptron(3, 1)
        regressor = fcp.FeatureConformalRegressor(model_for(network), score="residual")
        prediction, intervals = regressor.conformalize(x[:99], y[:99]).predict_interval(
            x[99:], alpha=[0.1, "0.25"]
        )
        with torch.no_grad():
            answer = network(torch.from_numpy(x)).numpy()[:, 0].astype(np.float64)
        np.testing.assert_allclose(prediction, answer[99:], rtol=1e-6)
        for level, alpha in enumerate([10, 25]):
            radius = quantile(np.abs(y[:99] - answer[:99]), alpha)
            np.testing.assert_allclose(intervals[:, 0, level], answer[99:] - radius, atol=1e-5)
            np.testing.assert_allclose(intervals[:, 1, level], answer[99:] + radius, atol=1e-5)

    def test_cqr_moves_two_quantiles(self):
        x, y = regression_rows(230)
        network = Branches()
        regressor = fcp.FeatureConformalRegressor(model_for(network), score="cqr")
        _, intervals = regressor.conformalize(x[:99], y[:99]).predict_interval(x[99:])
        with torch.no_grad():
            low, high = (out.numpy()[:, 0] for out in network(torch.from_numpy(x)))
        radius = quantile(np.maximum(low[:99] - y[:99], y[:99] - high[:99]), 10)
        np.testing.assert_allclose(intervals[:, 0, 0], low[99:] - radius, atol=1e-5)
        np.testing.assert_allclose(intervals[:, 1, 0], high[99:] + radius, atol=1e-5)

    def test_lac_keeps_probable_labels(self):
        x, y = label_rows(300)
        network = perceptron(3, 4)
        classifier = fcp.FeatureConformalClassifier(model_for(network), score="lac")
        labels, sets = classifier.conformalize(x[:199], y[:199]).predict_set(x[199:], alpha=0.2)
        with torch.no_grad():
            chance = torch.softmax(network(torch.from_numpy(x)).double(), 1).numpy()
        radius = quantile(1 - chance[np.arange(199), y[:199]], 20)
        clear = np.abs(1 - chance[199:] - radius) > 1e-6
        self.assertGreater(clear.mean(), 0.99)
        np.testing.assert_array_equal(sets[:, :, 0][clear], (1 - chance[199:] <= radius)[clear])
        np.testing.assert_array_equal(labels, chance[199:].argmax(1))

    def test_shapes(self):
        x, y = regression_rows(60, outputs=2)
        regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 2)))
        prediction, intervals = regressor.conformalize(x[:40], y[:40]).predict_interval(
            x[40:], alpha=[0.1, 0.2, 0.3]
        )
        self.assertEqual(prediction.shape, (20, 2))
        self.assertEqual(intervals.shape, (20, 2, 2, 3))
        self.assertEqual(intervals.dtype, np.float64)
        self.assertTrue((intervals[:, :, 0] <= intervals[:, :, 1]).all())
        self.assertTrue((intervals[:, :, 1, 0] >= intervals[:, :, 1, 1]).all())
        np.testing.assert_array_equal(regressor.predict(x[40:]), prediction)

    def test_every_score_runs_and_check_agrees_with_its_region(self):
        x, y = regression_rows(200)
        pair = model_for(Branches())
        single = model_for(perceptron(3, 1))
        for score in ("nested", "residual", "linearized", "cqr", "feature_cqr"):
            model = pair if "cqr" in score else single
            regressor = fcp.FeatureConformalRegressor(model, score=score)
            regressor.conformalize(x[:120], y[:120])
            _, intervals = regressor.predict_interval(x[120:], alpha=0.2)
            checked = regressor.check(x[120:], y[120:], alpha=0.2)
            inside = (intervals[:, 0, 0] <= y[120:]) & (y[120:] <= intervals[:, 1, 0])
            np.testing.assert_array_equal(inside, checked.inside, err_msg=score)
            np.testing.assert_array_equal(checked.p_value > 0.2, checked.inside, err_msg=score)
            self.assertEqual(regressor.evaluate(x[120:], y[120:], 0.2)["coverage"], inside.mean())
        x, y = label_rows(300)
        for score in ("lac", "aps", "raps", "feature_margin"):
            classifier = fcp.FeatureConformalClassifier(model_for(perceptron(3, 4)), score=score)
            classifier.conformalize(x[:200], y[:200])
            _, sets = classifier.predict_set(x[200:], alpha=0.3)
            checked = classifier.check(x[200:], y[200:], alpha=0.3)
            inside = sets[np.arange(100), y[200:], 0]
            np.testing.assert_array_equal(inside, checked.inside, err_msg=score)
            self.assertEqual(classifier.evaluate(x[200:], y[200:], 0.3)["coverage"], inside.mean())

    def test_too_few_rows_are_infinite_and_said(self):
        x, y = regression_rows(20)
        regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 1))).conformalize(x, y)
        with self.assertWarnsRegex(UserWarning, "needs at least 99 calibration rows"):
            _, intervals = regressor.predict_interval(x, alpha=0.01)
        self.assertTrue((intervals[:, 0] == -math.inf).all() and (intervals[:, 1] == math.inf).all())


class Calibrations(Case):
    def test_grouped_has_a_radius_a_group(self):
        x, y = regression_rows(400)
        groups = np.where(x[:, 0] > 0, "right", "left")
        model = model_for(perceptron(3, 1))
        regressor = fcp.FeatureConformalRegressor(model, score="residual", calibration="grouped")
        regressor.conformalize(x[:300], y[:300], groups=groups[:300])
        _, intervals = regressor.predict_interval(x[300:], groups=groups[300:])
        miss = np.abs(y - model(x)[:, 0].astype(np.float64))
        for name in ("left", "right"):
            radius = quantile(miss[:300][groups[:300] == name], 10)
            length = np.diff(intervals[groups[300:] == name], axis=1)
            np.testing.assert_allclose(length, 2 * radius, rtol=1e-6)
        shown = regressor.evaluate(x[300:], y[300:], groups=groups[300:])["groups"]
        self.assertEqual({group["name"] for group in shown}, {"left", "right"})
        with self.assertWarnsRegex(UserWarning, "has not seen the group 'middle'"):
            _, intervals = regressor.predict_interval(x[300:301], groups=["middle"])
        self.assertTrue(np.isinf(intervals).all())

    def test_weighted_with_equal_weights_is_split(self):
        x, y = regression_rows(300)
        model = model_for(perceptron(3, 1))
        split = fcp.FeatureConformalRegressor(model).conformalize(x[:200], y[:200])
        weighted = fcp.FeatureConformalRegressor(model, calibration="weighted")
        weighted.conformalize(x[:200], y[:200], weights=np.ones(200))
        _, one = split.predict_interval(x[200:])
        _, other = weighted.predict_interval(x[200:], weights=np.ones(100))
        np.testing.assert_array_equal(one, other)

    def test_localized_and_shifted_run(self):
        x, y = regression_rows(300)
        model = model_for(perceptron(3, 1))
        local = fcp.FeatureConformalRegressor(model, calibration="localized", bandwidth=1.0)
        _, intervals = local.conformalize(x[:200], y[:200]).predict_interval(x[200:])
        self.assertEqual(intervals.shape, (100, 2, 1))
        shifted = fcp.FeatureConformalRegressor(model, score="residual", calibration="weighted")
        shifted.conformalize(x[:200], y[:200], shifted=x[200:250] + 0.2)
        _, intervals = shifted.predict_interval(x[250:])
        self.assertGreater(len(np.unique(intervals[:, 1] - intervals[:, 0])), 1)

    def test_class_by_class(self):
        x, y = label_rows(400)
        classifier = fcp.FeatureConformalClassifier(
            model_for(perceptron(3, 4)), score="lac", calibration="grouped", group="label"
        )
        _, sets = classifier.conformalize(x[:300], y[:300]).predict_set(x[300:], alpha=0.2)
        self.assertEqual(sets.shape, (100, 4, 1))

    def test_choices_leave_their_rows_out(self):
        x, y = regression_rows(300)
        regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 1)), cut="auto")
        regressor.conformalize(x, y)
        self.assertEqual(regressor.predictor_.rows, 240)
        self.assertEqual(regressor.predictor_.provenance["rows left out for choices"], "60")


class Arrays(Case):
    """What may be passed, and that it is read in place."""

    def setUp(self):
        super().setUp()
        self.x, self.y = regression_rows(80)
        self.regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 1)))
        self.regressor.conformalize(self.x, self.y)
        self.expected = self.regressor.predict_interval(self.x)[1]

    def assert_same(self, x, y=None):
        intervals = self.regressor.predict_interval(x)[1]
        np.testing.assert_array_equal(intervals, self.expected)
        again = fcp.FeatureConformalRegressor(self.regressor.model)
        again.conformalize(x, self.y if y is None else y)
        self.assertEqual(again.radius(0.1), self.regressor.radius(0.1))

    def test_types_and_layouts(self):
        x = self.x
        wide = np.zeros((80, 7), np.float32)
        wide[:, 1:7:2] = x
        frozen = x.copy()
        frozen.flags.writeable = False
        self.assert_same(x.astype(np.float64))
        self.assert_same(np.asfortranarray(x), self.y.astype(np.float64))
        self.assert_same(wide[:, 1:7:2], self.y[:, None])
        self.assert_same(x[::-1].copy()[::-1])
        self.assert_same(frozen)
        self.assert_same(x.astype(">f4"))
        self.assert_same(x.tolist(), self.y.tolist())
        self.assert_same(torch.from_numpy(x), torch.from_numpy(self.y))
        self.assert_same(torch.from_numpy(x).t().contiguous().t())
        self.assert_same(torch.from_numpy(x).requires_grad_())
        self.assert_same(torch.from_numpy(x).double())

    def test_integers_are_numbers(self):
        model = self.regressor.model
        whole = np.arange(12).reshape(4, 3)
        for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u8", "f2", "f4", "f8"):
            np.testing.assert_array_equal(model(whole.astype(kind)), model(whole.astype("f4")))

    def test_nothing_is_copied_on_the_way_in_and_out(self):
        same = model_for(torch.nn.Flatten())
        x = self.x.copy()
        out = same(x)
        np.testing.assert_array_equal(out, x)
        self.assertTrue(np.shares_memory(out, x))
        tensor = torch.from_numpy(x)
        self.assertTrue(np.shares_memory(same(tensor), x))
        del x, tensor  # the answer keeps the memory alive
        np.testing.assert_array_equal(out, self.x)

    def test_lock_is_released(self):
        network = torch.nn.Sequential(torch.nn.Linear(3, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
        regressor = fcp.FeatureConformalRegressor(model_for(network), cut="0")
        regressor.conformalize(self.x, self.y)
        ticks, stop = [], threading.Event()

        def tick():
            while not stop.wait(0.005):
                ticks.append(time.monotonic())

        ticking = threading.Thread(target=tick)
        ticking.start()
        try:
            rows, taken = 20000, 0.0
            while taken < 0.4:
                x = np.repeat(self.x, rows // 80, axis=0)
                start = time.monotonic()
                regressor.predict_interval(x)
                taken = time.monotonic() - start
                rows *= 2
        finally:
            stop.set()
            ticking.join()
        middle = [at for at in ticks if start + 0.2 * taken < at < start + 0.8 * taken]
        self.assertTrue(middle, "no other thread ran during the call")

    def test_threads_share_a_predictor(self):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for intervals in pool.map(lambda _: self.regressor.predict_interval(self.x)[1], range(40)):
                np.testing.assert_array_equal(intervals, self.expected)

    def test_a_signal_ends_the_call(self):
        class Alarm(Exception):
            pass

        def ring(*_):
            raise Alarm

        before = signal.signal(signal.SIGALRM, ring)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        x = np.repeat(self.x, 20000, axis=0)  # 400 batches
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with self.assertRaises(Alarm):
            self.regressor.predict_interval(x)


class Errors(Case):
    def setUp(self):
        super().setUp()
        self.x, self.y = regression_rows(50)
        self.model = model_for(perceptron(3, 1))
        self.regressor = fcp.FeatureConformalRegressor(self.model)

    def test_error_is_a_value_error_of_the_package(self):
        self.assertTrue(issubclass(fcp.Error, ValueError))
        self.assertEqual(fcp.Error.__module__, "fcp")

    def test_data(self):
        with self.assert_error("X has 50 rows, y has 49"):
            self.regressor.conformalize(self.x, self.y[1:])
        with self.assert_error(r"input 'input': found shape \[50, 2\], expected \[\?, 3\]"):
            self.regressor.conformalize(self.x[:, :2], self.y)
        with self.assert_error("the target has 2 columns"):
            self.regressor.conformalize(self.x, np.stack([self.y, self.y], axis=1))
        self.x[7, 1] = np.nan
        with self.assert_error(r"X: row 7 \(from 0\) has a score that is not a number"):
            self.regressor.conformalize(self.x, self.y)
        with self.assert_error("X: is a single number"):
            self.model(3.0)
        with self.assert_error("X: has no rows"):
            self.regressor.conformalize(self.x[8:], self.y[8:]).predict_interval(self.x[:0])

    def test_labels(self):
        classifier = fcp.FeatureConformalClassifier(model_for(perceptron(3, 4)), score="lac")
        y = np.zeros(50)
        y[3] = 4
        with self.assert_error("row 3: found label 4, expected one of 0 to 3"):
            classifier.conformalize(self.x, y)
        with self.assert_error("'nested' is a score of intervals"):
            classifier.set_params(score="nested").conformalize(self.x, y)

    def test_parameters(self):
        with self.assert_error("there is no score 'nice'; there are aps, cqr"):
            fcp.FeatureConformalRegressor(self.model, score="nice").conformalize(self.x, self.y)
        with self.assert_error("floor: is about the scores nested"):
            self.regressor.set_params(score="residual", floor=1.0).conformalize(self.x, self.y)
        with self.assert_error("cut: the score residual does not look at features"):
            self.regressor.set_params(floor=0.0, cut="-1").conformalize(self.x, self.y)
        with self.assert_error("there is no parameter 'colour'"):
            self.regressor.set_params(colour="red")
        with self.assert_error("grouped' and groups go together"):
            fcp.FeatureConformalRegressor(self.model, calibration="grouped").conformalize(
                self.x, self.y
            )
        with self.assert_error("device: found 'tpu'"):
            fcp.FeatureConformalRegressor(self.model, device="tpu").conformalize(self.x, self.y)

    def test_levels(self):
        self.regressor.conformalize(self.x, self.y)
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


class Models(Case):
    def test_from_torch_answers_as_torch(self):
        network = perceptron(3, 2).train()
        x, _ = regression_rows(20)
        model = model_for(network)
        with torch.no_grad():
            np.testing.assert_allclose(model(x), network(torch.from_numpy(x)).numpy(), atol=1e-5)
        self.assertTrue(network.training)
        self.assertEqual(model.inputs, [("input", [-1, 3])])
        self.assertEqual(model.outputs, [("output", [-1, 2])])

    def test_cut_by_submodule(self):
        network = Branches()
        model = model_for(network, cut="backbone")
        self.assertEqual(model.cut, "backbone")
        self.assertIn("backbone", model.cuts)
        self.assertEqual(len(model.outputs), 2)
        x, y = regression_rows(200)
        regressor = fcp.FeatureConformalRegressor(model, score="feature_cqr").conformalize(x, y)
        self.assertEqual(regressor.predictor_.cut, "backbone")
        same = fcp.FeatureConformalRegressor(network, score="feature_cqr", cut="backbone")
        self.assertEqual(same.conformalize(x, y).radius(0.1), regressor.radius(0.1))
        # The name stays in the file.
        regressor.save(self.path("calibrated.onnx"))
        again = fcp.FeatureConformalRegressor.load(self.path("calibrated.onnx"))
        self.assertEqual(again.cut, "backbone")

    def test_numbered_submodule_is_no_number_of_layers(self):
        model = model_for(perceptron(3, 1), cut="3")  # the second ReLU
        x, y = regression_rows(100)
        regressor = fcp.FeatureConformalRegressor(model).conformalize(x, y)
        self.assertEqual(regressor.predictor_.cut, "layer 3")
        same = fcp.FeatureConformalRegressor(model, cut="-1").conformalize(x, y)
        self.assertEqual(same.radius(0.1), regressor.radius(0.1))

    def test_modules_and_paths_are_models(self):
        network = perceptron(3, 1)
        x, y = regression_rows(100)
        model_for(network).save(self.path("model.onnx"))
        radii = [
            fcp.FeatureConformalRegressor(model).conformalize(x, y).radius(0.1)
            for model in (network, self.path("model.onnx"), pathlib.Path(self.path("model.onnx")))
        ]
        self.assertEqual(radii[0], radii[1])
        self.assertEqual(radii[1], radii[2])


def outward(intervals):
    """Interval ends as the program writes them: the nearest float32 that does not shrink."""
    lower, upper = intervals[:, 0].astype(np.float32), intervals[:, 1].astype(np.float32)
    lower = np.where(lower > intervals[:, 0], np.nextafter(lower, np.float32(-np.inf)), lower)
    upper = np.where(upper < intervals[:, 1], np.nextafter(upper, np.float32(np.inf)), upper)
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
        lower, upper = outward(intervals[:, :, 0])
        np.testing.assert_array_equal(program[:, 0, 0], prediction.astype(np.float32))
        np.testing.assert_array_equal(program[:, 0, 1], lower)
        np.testing.assert_array_equal(program[:, 0, 2], upper)

    def test_intervals_both_ways(self):
        x, y = regression_rows(600)
        model = model_for(perceptron(3, 1))
        model.save(self.path("model.onnx"))
        self.save_rows(x[:300], y[:300])
        for options in ({"score": "residual"}, {"score": "nested", "cut": "auto"}):
            flags = [text for name, value in options.items() for text in (f"--{name}", value)]
            regressor = fcp.FeatureConformalRegressor(model, **options)
            regressor.conformalize(x[:300], y[:300]).save(self.path("calibrated.onnx"))
            self.compare_intervals(regressor, x[300:])
            self.program("calibrate", "model.onnx", "--data", "x.npy", "--target", "y.npy",
                         "--out", "calibrated.onnx", *flags)  # fmt: skip
            loaded = fcp.FeatureConformalRegressor.load(self.path("calibrated.onnx"))
            self.compare_intervals(loaded, x[300:])
            for alpha in ("0.05", "0.1", "0.3", "0.5", "0.9"):
                self.assertEqual(loaded.radius(alpha), regressor.radius(alpha))

    def test_sets_both_ways(self):
        x, y = label_rows(600)
        model = model_for(perceptron(3, 4))
        model.save(self.path("model.onnx"))
        self.save_rows(x[:300], y[:300])
        np.save(self.path("new.npy"), x[300:])
        for score in ("aps", "feature_margin"):
            classifier = fcp.FeatureConformalClassifier(model, score=score)
            classifier.conformalize(x[:300], y[:300])
            self.program("calibrate", "model.onnx", "--data", "x.npy", "--target", "y.npy",
                         "--out", "calibrated.onnx", "--score", score)  # fmt: skip
            self.program("predict", "calibrated.onnx", "--data", "new.npy", "--out", "out.npy")
            program = np.load(self.path("out.npy"))
            np.testing.assert_array_equal(classifier.predict_set(x[300:])[1][:, :, 0], program)
            loaded = fcp.FeatureConformalClassifier.load(self.path("calibrated.onnx"))
            np.testing.assert_array_equal(loaded.predict_set(x[300:])[1][:, :, 0], program)

    def test_evaluation_and_report(self):
        x, y = regression_rows(500)
        regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 1)))
        regressor.conformalize(x[:300], y[:300]).save(self.path("calibrated.onnx"))
        self.save_rows(x[300:], y[300:])
        printed = json.loads(
            self.program("evaluate", "calibrated.onnx", "--data", "x.npy", "--target", "y.npy",
                         "--json")  # fmt: skip
        )
        found = regressor.evaluate(x[300:], y[300:], report=self.path("report.html"))
        for answer in (printed, found):
            answer.pop("provenance")
        self.assertEqual(found, printed)
        self.assertIn("<html", pathlib.Path(self.path("report.html")).read_text())

    def test_export(self):
        x, y = regression_rows(300)
        regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 1)))
        regressor.conformalize(x[:200], y[:200]).export(self.path("out.onnx"), alpha=[0.1, 0.2])
        exported = fcp.load(self.path("out.onnx"))
        names = [name for name, _ in exported.outputs]
        self.assertEqual(names, ["output", "lower_0.1", "upper_0.1", "lower_0.2", "upper_0.2"])
        _, intervals = regressor.predict_interval(x[200:], alpha=[0.1, 0.2])
        outputs = exported(x[200:])
        for i in range(4):
            np.testing.assert_allclose(outputs[1 + i][:, 0], intervals[:, i % 2, i // 2], atol=1e-5)

    def test_pickle_and_copy(self):
        x, y = regression_rows(150)
        regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 1), cut="1"))
        regressor.conformalize(x[:100], y[:100])
        expected = regressor.predict_interval(x[100:])[1]
        for other in (pickle.loads(pickle.dumps(regressor)), copy.deepcopy(regressor)):
            np.testing.assert_array_equal(other.predict_interval(x[100:])[1], expected)
            self.assertEqual(other.model.cut, "layer 1")


class Words(Case):
    """Parameters, docstrings, types, and scikit-learn."""

    def test_parameters(self):
        model = model_for(perceptron(3, 1))
        regressor = fcp.FeatureConformalRegressor(model, score="residual", seed=3)
        self.assertEqual(regressor.get_params()["seed"], 3)
        self.assertIs(regressor.set_params(seed=4), regressor)
        self.assertEqual(regressor.seed, 4)
        self.assertIn("score='residual'", repr(regressor))

    def test_documented_examples(self):
        for module in (fcp, _estimators, _model):
            with self.subTest(module.__name__):
                found = doctest.testmod(module)
                self.assertGreater(found.attempted, 5)
                self.assertEqual(found.failed, 0)

    def test_stub_names_what_there_is(self):
        stub = ast.parse(pathlib.Path(_fcp.__file__).with_name("_fcp.pyi").read_text())
        self.assertEqual(public(vars(_fcp)), stubbed(stub.body))
        for node in stub.body:
            if isinstance(node, ast.ClassDef) and node.name in ("Network", "Predictor"):
                self.assertEqual(public(vars(getattr(_fcp, node.name))), stubbed(node.body))

    def test_package_is_typed(self):
        self.assertTrue(pathlib.Path(fcp.__file__).with_name("py.typed").exists())
        for name in fcp.__all__:
            self.assertTrue(inspect.getdoc(getattr(fcp, name)), name)

    @unittest.skipIf(importlib.util.find_spec("mypy") is None, "mypy is not installed")
    def test_types_hold(self):
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--cache-dir", self.folder,
             os.path.dirname(fcp.__file__)],
            capture_output=True, text=True, timeout=240,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout)

    @unittest.skipIf(sklearn is None, "scikit-learn is not installed")
    def test_clone(self):
        model = model_for(perceptron(3, 1))
        x, y = regression_rows(100)
        fitted = fcp.FeatureConformalRegressor(model, score="residual").conformalize(x, y)
        fresh = sklearn.base.clone(fitted)
        self.assertEqual(fresh.get_params(), fitted.get_params())
        self.assertFalse(hasattr(fresh, "predictor_"))
        self.assertEqual(fresh.conformalize(x, y).radius(0.1), fitted.radius(0.1))
        cloned = sklearn.base.clone(fcp.FeatureConformalRegressor(perceptron(3, 1)))
        self.assertTrue(cloned.conformalize(x, y).radius(0.1))

    @unittest.skipIf(sklearn is None, "scikit-learn is not installed")
    def test_pipeline(self):
        x, y = regression_rows(300)
        network = perceptron(3, 1)
        steps = [
            ("scale", sklearn.preprocessing.StandardScaler()),
            ("conformal", fcp.FeatureConformalRegressor(network)),
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
