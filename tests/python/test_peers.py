"""Predictive distributions beside those of crepes, and calibrated probabilities beside those of
venn-abers, on the same rows: the same bounds of every probability, and the same quantiles, to 1e-6.
Skips where these are not installed."""

import importlib.util
import unittest

import numpy as np
import torch

import fcp
import networks
from networks import Case, label_rows, model_for, perceptron, regression_rows

if importlib.util.find_spec("crepes") is not None:
    from crepes import ConformalPredictiveSystem
else:
    ConformalPredictiveSystem = None

if importlib.util.find_spec("venn_abers") is not None:
    from venn_abers import VennAbers
else:
    VennAbers = None


@unittest.skipIf(ConformalPredictiveSystem is None, "crepes is not installed")
class Crepes(Case):
    def both(self, groups=None):
        """fcp's estimator and crepes' system of the same 150 rows, and 80 new ones."""
        x, y = regression_rows(230)
        options = {} if groups is None else {"calibration": "grouped", "group": "group"}
        own = fcp.FeatureConformalRegressor(
            model_for(perceptron(3, 1)), method="residual", side="upper", **options
        )
        named = {} if groups is None else {"groups": groups[:150]}
        own.conformalize(x[:150], y[:150], **named)
        residuals = y[:150].astype(float) - own.predict(x[:150])
        bins = None if groups is None else groups[:150]
        return own, ConformalPredictiveSystem().fit(residuals, bins=bins), x[150:]

    def assert_same_bands(self, own, theirs, x, **groups):
        """F at a threshold: theirs without smoothing is the upper bound."""
        bins = groups.get("groups")
        middle = own.predict(x)
        for threshold in (-2.0, -0.1, 0.3, 1.7):
            band = own.probability(x, below=threshold, **groups)
            at = np.full(len(x), threshold)
            upper = theirs.predict_p(middle, at, bins=bins, smoothing=False)
            np.testing.assert_allclose(band[:, 1], upper, atol=1e-6)
            each = own.probability(x, below=at, **groups)
            np.testing.assert_array_equal(each, band)
            above = own.probability(x, above=at, **groups)
            np.testing.assert_allclose(above, 1 - band[:, ::-1], atol=1e-12)
            rows = 1 / (band[:, 1] - band[:, 0]) - 1  # that calibrate, of the group
            np.testing.assert_allclose(rows, np.round(rows), atol=1e-6)
            self.assertTrue((rows > 20).all())

    def test_probabilities_and_quantiles(self):
        own, theirs, x = self.both()
        self.assert_same_bands(own, theirs, x)
        # Between two ranks, where both take the score of the larger one.
        shares = [(rank - 0.5) / 151 for rank in (8, 75, 143)]
        wanted = theirs.predict_percentiles(
            own.predict(x), higher_percentiles=[100 * share for share in shares]
        )
        np.testing.assert_allclose(own.predict_quantiles(x, shares), wanted, atol=1e-6)

    def test_groups(self):
        groups = np.random.default_rng(1).integers(0, 3, 230)
        own, theirs, x = self.both(groups)
        self.assert_same_bands(own, theirs, x, groups=groups[150:])


@unittest.skipIf(VennAbers is None, "venn-abers is not installed")
class VennAbersPeer(Case):
    def test_pairs_and_their_merge(self):
        for classes in (2, 4):
            x, y = label_rows(900, classes)
            y[::2] = np.argmax(perceptron_logits(x, classes), 1)[::2]  # half of the labels are right
            model = model_for(perceptron(3, classes))
            own = fcp.FeatureConformalClassifier(model, method="lac", probabilities="venn-abers")
            own.conformalize(x[:600], y[:600])
            plain = fcp.FeatureConformalClassifier(model, method="lac").conformalize(x[:600], y[:600])
            seen, fresh = plain.predict_proba(x[:600]), plain.predict_proba(x[600:])
            p0, p1 = own.predict_venn_abers(x[600:])
            merged = own.predict_proba(x[600:])
            for k in range(classes):
                peer = VennAbers()
                both = [np.stack([1 - p[:, k], p[:, k]], axis=1) for p in (seen, fresh)]
                peer.fit(both[0], (y[:600] == k).astype(int))
                theirs, pair = peer.predict_proba(both[1])
                np.testing.assert_allclose(p0[:, k], pair[:, 0], atol=1e-6)
                np.testing.assert_allclose(p1[:, k], pair[:, 1], atol=1e-6)
                if classes == 2:
                    np.testing.assert_allclose(merged[:, k], theirs[:, 1], atol=1e-6)


def perceptron_logits(x, classes):
    with torch.no_grad():
        return perceptron(3, classes)(torch.from_numpy(x)).numpy()


if __name__ == "__main__":
    networks.main()
