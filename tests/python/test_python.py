"""What the package fcp computes, by formulas in NumPy, and what it takes for rows."""

import concurrent.futures
import math
import pickle
import signal
import threading
import time

import numpy as np
import torch

import fcp
import networks
from networks import Branches, Case, label_rows, model_for, perceptron, regression_rows


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
        regressor = fcp.FeatureConformalRegressor(model_for(network), method="residual")
        prediction, intervals = regressor.conformalize(x[:99], y[:99]).predict_interval(
            x[99:], alpha=[0.1, "0.25"]
        )
        with torch.no_grad():
            answer = network(torch.from_numpy(x)).numpy()[:, 0].astype(np.float64)
        np.testing.assert_allclose(prediction, answer[99:], rtol=1e-6, atol=1e-7)
        for level, alpha in enumerate([10, 25]):
            radius = quantile(np.abs(y[:99] - answer[:99]), alpha)
            np.testing.assert_allclose(intervals[:, 0, level], answer[99:] - radius, atol=1e-5)
            np.testing.assert_allclose(intervals[:, 1, level], answer[99:] + radius, atol=1e-5)

    def test_cqr_moves_two_quantiles(self):
        x, y = regression_rows(230)
        network = Branches()
        regressor = fcp.FeatureConformalRegressor(model_for(network), method="cqr")
        _, intervals = regressor.conformalize(x[:99], y[:99]).predict_interval(x[99:])
        with torch.no_grad():
            low, high = (out.numpy()[:, 0] for out in network(torch.from_numpy(x)))
        radius = quantile(np.maximum(low[:99] - y[:99], y[:99] - high[:99]), 10)
        np.testing.assert_allclose(intervals[:, 0, 0], low[99:] - radius, atol=1e-5)
        np.testing.assert_allclose(intervals[:, 1, 0], high[99:] + radius, atol=1e-5)

    def test_lac_keeps_probable_labels(self):
        x, y = label_rows(300)
        network = perceptron(3, 4)
        classifier = fcp.FeatureConformalClassifier(
            model_for(network), method="lac", allow_empty=True
        )
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
        regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 2)), method="nested")
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
            regressor = fcp.FeatureConformalRegressor(model, method=score)
            regressor.conformalize(x[:120], y[:120])
            _, intervals = regressor.predict_interval(x[120:], alpha=0.2)
            checked = regressor.check(x[120:], y[120:], alpha=0.2)
            inside = (intervals[:, 0, 0] <= y[120:]) & (y[120:] <= intervals[:, 1, 0])
            np.testing.assert_array_equal(inside, checked.inside, err_msg=score)
            np.testing.assert_array_equal(checked.p_value > 0.2, checked.inside, err_msg=score)
            self.assertEqual(regressor.evaluate(x[120:], y[120:], 0.2)["coverage"], inside.mean())
        x, y = label_rows(300)
        for score in ("lac", "aps", "raps", "saps", "feature_margin"):
            classifier = fcp.FeatureConformalClassifier(model_for(perceptron(3, 4)), method=score)
            classifier.conformalize(x[:200], y[:200])
            _, sets = classifier.predict_set(x[200:], alpha=0.3)
            checked = classifier.check(x[200:], y[200:], alpha=0.3)
            inside = sets[np.arange(100), y[200:], 0]
            np.testing.assert_array_equal(inside, checked.inside, err_msg=score)
            self.assertEqual(classifier.evaluate(x[200:], y[200:], 0.3)["coverage"], inside.mean())

    def test_too_few_rows_are_infinite_and_said(self):
        x, y = regression_rows(20)
        regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 1)), method="nested")
        regressor.conformalize(x, y)
        with self.assertWarnsRegex(UserWarning, "needs at least 99 calibration rows"):
            _, intervals = regressor.predict_interval(x, alpha=0.01)
        self.assertTrue(
            (intervals[:, 0] == -math.inf).all() and (intervals[:, 1] == math.inf).all()
        )


class Calibrations(Case):
    def test_grouped_has_a_radius_a_group(self):
        x, y = regression_rows(400)
        groups = np.where(x[:, 0] > 0, "right", "left")
        model = model_for(perceptron(3, 1))
        regressor = fcp.FeatureConformalRegressor(model, method="residual", calibration="grouped")
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
        split = fcp.FeatureConformalRegressor(model, method="nested").conformalize(x[:200], y[:200])
        weighted = fcp.FeatureConformalRegressor(model, calibration="weighted", method="nested")
        weighted.conformalize(x[:200], y[:200], weights=np.ones(200))
        _, one = split.predict_interval(x[200:])
        _, other = weighted.predict_interval(x[200:], weights=np.ones(100))
        np.testing.assert_array_equal(one, other)

    def test_localized_and_shifted_run(self):
        x, y = regression_rows(300)
        model = model_for(perceptron(3, 1))
        local = fcp.FeatureConformalRegressor(
            model, method="nested", calibration="localized", bandwidth=1.0
        )
        _, intervals = local.conformalize(x[:200], y[:200]).predict_interval(x[200:])
        self.assertEqual(intervals.shape, (100, 2, 1))
        shifted = fcp.FeatureConformalRegressor(model, method="residual", calibration="weighted")
        shifted.conformalize(x[:200], y[:200], shifted=x[200:250] + 0.2)
        _, intervals = shifted.predict_interval(x[250:])
        self.assertGreater(len(np.unique(intervals[:, 1] - intervals[:, 0])), 1)

    def test_class_by_class(self):
        x, y = label_rows(400)
        classifier = fcp.FeatureConformalClassifier(
            model_for(perceptron(3, 4)), method="lac", calibration="grouped", group="label"
        )
        _, sets = classifier.conformalize(x[:300], y[:300]).predict_set(x[300:], alpha=0.2)
        self.assertEqual(sets.shape, (100, 4, 1))

    def test_choices_leave_their_rows_out(self):
        x, y = regression_rows(300)
        model = model_for(perceptron(3, 1))
        regressor = fcp.FeatureConformalRegressor(model, method="nested", cut="auto")
        regressor.conformalize(x, y)
        self.assertEqual(regressor.predictor_.rows, 240)
        self.assertEqual(regressor.predictor_.provenance["rows left out for choices"], "60")

    def test_scores_are_sorted_when_somebody_needs_them_sorted(self):
        """Radii of a few levels, of many, after a copy: always those of the sorted scores."""
        x, y = regression_rows(700)
        alphas = [0.1, 0.2, 0.3, 0.05, 0.15, 0.25]
        for asymmetric in (False, True):
            model = model_for(Branches())
            regressor = fcp.FeatureConformalRegressor(model, method="cqr", asymmetric=asymmetric)
            regressor.conformalize(x[:600], y[:600])
            one_by_one = [regressor.predict_interval(x[600:], alpha)[1] for alpha in alphas]
            copy = pickle.loads(pickle.dumps(regressor))
            for found in (regressor, copy):
                _, intervals = found.predict_interval(x[600:], alphas)
                np.testing.assert_array_equal(intervals, np.concatenate(one_by_one, axis=2))
                p_values = found.check(x[600:], y[600:]).p_value
                inside = (intervals[:, 0, 0] <= y[600:]) & (y[600:] <= intervals[:, 1, 0])
                np.testing.assert_array_equal(p_values > 0.1, inside)

    def test_the_hash_is_that_of_the_rows_at_calibration(self):
        """It is made when somebody asks for it; the arrays may have changed since."""
        x, y = regression_rows(1300000)
        regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 1)), method="residual")
        regressor.conformalize(x.astype(np.float64), y)  # too many bytes to keep: hashed at once
        expected = regressor.predictor_.provenance
        self.assertRegex(expected["calibration data sha256"], "^[0-9a-f]{64}$")
        self.assertRegex(expected["network sha256"], "^[0-9a-f]{64}$")
        regressor.conformalize(x, y)
        regressor.predict_interval(x)
        x[:] = 0
        y[:] = 0
        again = pickle.loads(pickle.dumps(regressor))
        self.assertEqual(regressor.predictor_.provenance, expected)
        self.assertEqual(again.predictor_.provenance, expected)
        regressor.conformalize(x[:100], y[:100])
        self.assertNotEqual(regressor.predictor_.provenance, expected)


class Arrays(Case):
    """What may be passed, and that it is read in place."""

    def setUp(self):
        super().setUp()
        self.x, self.y = regression_rows(80)
        self.regressor = fcp.FeatureConformalRegressor(model_for(perceptron(3, 1)), method="nested")
        self.regressor.conformalize(self.x, self.y)
        self.expected = self.regressor.predict_interval(self.x)[1]

    def assert_same(self, x, y=None):
        intervals = self.regressor.predict_interval(x)[1]
        np.testing.assert_array_equal(intervals, self.expected)
        again = fcp.FeatureConformalRegressor(self.regressor.model, method="nested")
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
        network = torch.nn.Sequential(
            torch.nn.Linear(3, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)
        )
        regressor = fcp.FeatureConformalRegressor(model_for(network), cut="0", method="nested")
        regressor.conformalize(self.x, self.y)
        ticks, stop = [], threading.Event()

        def tick():
            while not stop.wait(0.005):
                ticks.append(time.monotonic())

        ticking = threading.Thread(target=tick)
        ticking.start()
        # A tick in the middle of a call is proof, however long it takes to get one: with the lock
        # held no other thread runs there at all.
        rows, middle, deadline = 20000, [], time.monotonic() + 60
        try:
            while not middle and time.monotonic() < deadline:
                x = np.repeat(self.x, rows // 80, axis=0)
                start = time.monotonic()
                regressor.predict_interval(x)
                taken = time.monotonic() - start
                middle = [at for at in ticks if start + 0.2 * taken < at < start + 0.8 * taken]
                rows = min(2 * rows, 640000)
        finally:
            stop.set()
            ticking.join()
        self.assertTrue(middle, "no other thread ran during the call")

    def test_threads_share_a_predictor(self):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for intervals in pool.map(
                lambda _: self.regressor.predict_interval(self.x)[1], range(40)
            ):
                np.testing.assert_array_equal(intervals, self.expected)

    def test_a_signal_ends_the_call(self):
        class Alarm(Exception):
            pass

        def ring(*_):
            raise Alarm

        before = signal.signal(signal.SIGALRM, ring)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        x = np.repeat(self.x, 20000, axis=0)  # 400 batches
        with self.assertRaises(Alarm):
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            self.regressor.predict_interval(x)


if __name__ == "__main__":
    networks.main()
