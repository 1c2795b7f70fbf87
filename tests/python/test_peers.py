"""Predictive distributions beside those of crepes on the same rows: the same bounds of every
probability, and the same quantiles, to 1e-6. Skips where crepes is not installed."""

import importlib.util
import unittest

import numpy as np

import fcp
import networks
from networks import Case, model_for, perceptron, regression_rows

if importlib.util.find_spec("crepes") is not None:
    from crepes import ConformalPredictiveSystem
else:
    ConformalPredictiveSystem = None


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


if __name__ == "__main__":
    networks.main()
