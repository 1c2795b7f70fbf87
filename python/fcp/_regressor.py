"""Prediction intervals."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from . import _fcp, _frames, _plots
from ._estimator import Alpha, Alphas, Estimator, levels


class FeatureConformalRegressor(Estimator):
    """Prediction intervals that hold the truth with probability at least 1 - alpha.

        >>> import fcp, numpy, torch
        >>> _ = torch.manual_seed(0)
        >>> from torch.nn import Linear, ReLU, Sequential
        >>> network = Sequential(Linear(2, 16), ReLU(), Linear(16, 1))
        >>> random = numpy.random.default_rng(0)
        >>> x = random.normal(size=(600, 2)).astype("float32")
        >>> y = x[:, 0] + numpy.abs(x[:, 1]) * random.normal(size=600)
        >>> model = fcp.from_torch(network, x[:1])
        >>> regressor = fcp.FeatureConformalRegressor(model).conformalize(x[:500], y[:500])
        >>> prediction, intervals = regressor.predict_interval(x[500:], alpha=[0.1, 0.2])
        >>> prediction.shape, intervals.shape  # rows; rows, lower and upper, levels
        ((100,), (100, 2, 2))
        >>> regressor.evaluate(x[500:], y[500:], alpha=0.1)["rows"]
        100
    """

    def predict_interval(
        self,
        X: Any,
        alpha: Optional[Alphas] = None,
        *,
        confidence_level: Optional[Alphas] = None,
        groups: Any = None,
        weights: Any = None,
        as_frame: bool = False,
    ) -> Any:
        """The prediction [N] and the intervals [N, 2, levels] of each row, in double precision.

        With K > 1 outputs they are [N, K] and [N, K, 2, levels]. Ends may be infinite: too few
        calibration rows for a level give infinite intervals and a warning. X may be batches, with
        or without answers, which are looked at one by one.
        confidence_level: 1 - alpha, in place of alpha; the estimator's level where neither is given.
        as_frame: a table of pandas instead, with the index of X and the columns that `fcp predict`
        writes: prediction, lower, upper; of several levels lower_0.1, …
        """
        alphas = levels(self._alpha(alpha, confidence_level))
        prediction, intervals, index = self._regions(X, alphas, groups, weights)
        if as_frame:
            return _frames.interval_frame(prediction, intervals, alphas, index)
        if prediction.shape[1] == 1:
            return prediction[:, 0], intervals[:, 0]
        return prediction, intervals

    def predict_quantiles(
        self, X: Any, probabilities: Sequence[Alpha], *, groups: Any = None, weights: Any = None
    ) -> np.ndarray:
        """The quantiles of each row's predictive distribution, [N, probabilities].

        Of estimators with side "upper" or "lower", or with asymmetric; of one output.
        """
        return self._distribution(X, list(probabilities), [], groups, weights)[0]

    def probability(
        self, X: Any, *, above: Any = None, below: Any = None,
        between: Optional[Tuple[float, float]] = None, groups: Any = None, weights: Any = None,
    ) -> np.ndarray:  # fmt: skip
        """Between which numbers the probability of an event lies, [N, 2]: the answer is above a
        number, at most a number (below), or above the first of two and at most the second. above and
        below may be arrays: a number for each row.

        The band is 1 / (n + 1) wide: n calibration rows cannot say more. Of estimators as in
        `predict_quantiles`.
        """
        if sum(event is not None for event in (above, below, between)) != 1:
            raise _fcp.Error("probability takes one of above, below and between")
        thresholds = below if above is None else above
        if thresholds is not None and np.ndim(thresholds) > 0:
            rows = self.inputs_.rows(X)
            facts = self._facts_of_new(len(rows), groups, weights, shows=False)
            band = self._fitted().below(rows, np.asarray(thresholds, dtype=np.float64), facts)
            return band if above is None else 1 - band[:, ::-1]
        events: List[Tuple[float, float]] = []
        if above is not None:
            events.append((float(above), np.inf))
        if below is not None:
            events.append((-np.inf, float(below)))
        if between is not None:
            events.append((float(between[0]), float(between[1])))
        return self._distribution(X, [], events, groups, weights)[1][:, 0]

    def _distribution(
        self, X: Any, probabilities: Sequence[Alpha], events: Sequence[Tuple[float, float]],
        groups: Any, weights: Any,
    ) -> Tuple[np.ndarray, np.ndarray]:  # fmt: skip
        predictor = self._fitted()
        rows = self.inputs_.rows(X)
        facts = self._facts_of_new(len(rows), groups, weights, shows=False)
        return predictor.distribution(rows, probabilities, events, facts)

    def predict(self, X: Any, *, groups: Any = None, weights: Any = None) -> np.ndarray:
        """The middle alone: what the network answers; for quantiles, the mean of the two. It is
        the same for all levels, groups and weights, which need not be given."""
        prediction = self._regions(X, [], groups, weights)[0]
        return prediction[:, 0] if prediction.shape[1] == 1 else prediction

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions, as of every regressor of scikit-learn. It is the same for most
        methods; `fcp.region_score` compares intervals."""
        answer = self.predict(X)
        truth = np.asarray(y, dtype=np.float64).reshape(len(answer), -1)
        answer = answer.reshape(len(answer), -1)
        mean = np.average(truth, 0, sample_weight)
        error = np.average((truth - answer) ** 2, 0, sample_weight)
        spread = np.average((truth - mean) ** 2, 0, sample_weight)
        explained = 1 - error / np.where(spread > 0, spread, 1)
        return float(np.mean(np.where(spread > 0, explained, error == 0)))

    def plot(
        self, X: Any, y: Any = None, alpha: Optional[Alpha] = None, *,
        confidence_level: Optional[Alpha] = None, output: int = 0, ax: Any = None, **facts: Any,
    ) -> Any:  # fmt: skip
        """Draws the intervals, and the truths where they are given, by matplotlib; the Axes.

        Over X where it has one column, elsewhere in the order of the predictions.
        """
        alpha = self._alpha(alpha, confidence_level)
        prediction, intervals = self.predict_interval(X, alpha, **facts)
        if prediction.ndim == 2:
            prediction, intervals = prediction[:, output], intervals[:, output]
        truth = None if y is None else np.asarray(y, float).reshape(len(prediction), -1)[:, output]
        return _plots.plot_intervals(X, prediction, intervals[..., 0], truth, alpha, ax)
