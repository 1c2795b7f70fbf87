"""Prediction intervals."""

from __future__ import annotations

from typing import Any, Sequence, Tuple, Union

import numpy as np

from ._estimator import Alpha, Estimator


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
        alpha: Union[Alpha, Sequence[Alpha]] = 0.1,
        *,
        groups: Any = None,
        weights: Any = None,
    ) -> Tuple[np.ndarray, np.ndarray]:
        """The prediction [N] and the intervals [N, 2, levels] of each row, in double precision.

        With K > 1 outputs they are [N, K] and [N, K, 2, levels]. Ends may be infinite: too few
        calibration rows for a level give infinite intervals and a warning.
        """
        prediction, intervals = self._regions(X, alpha, groups, weights)
        if prediction.shape[1] == 1:
            return prediction[:, 0], intervals[:, 0]
        return prediction, intervals

    def predict(self, X: Any, **facts: Any) -> np.ndarray:
        """The middle alone: what the network answers; for quantiles, the mean of the two."""
        return self.predict_interval(X, 0.5, **facts)[0]
