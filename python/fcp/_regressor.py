"""Prediction intervals."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple, Union

import numpy as np

from ._estimator import Alpha, Estimator, Source


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

    model: an `fcp.Model`, the path of an ONNX file, or a `torch.nn.Module`.
    score: nested, residual, linearized, surrogate, cqr, feature_cqr.
    cut: where features are: a tensor, a node, a number of layers as text, a submodule of a torch
        module, or "auto" to try every cut and floor on a slice of the rows; by default that of the
        model, or two layers before the output.
    output: the network's output to calibrate, where it has several.
    norm, bound: of feature space: inf, 2 or 1; ibp, crown-ibp, crown or alpha-crown.
    floor: widens each band by this share of the mean band.
    normalize: for residual, the output that estimates the spread of the answer.
    low, high, asymmetric: for cqr and feature_cqr, the outputs that are the quantiles, and whether
        each side has a radius of its own.
    steps, rate, adam, loss_weights, paper: of the surrogate search; steps=0 chooses them.
    calibration: split, grouped, localized or weighted.
    group: what tells groups, as the name of a column for the program.
    bandwidth: for localized; 0 chooses it on a slice of the rows.
    selection: the share of the rows that choices look at and calibration does not.
    alpha: the level for which lengths are compared when choosing; any level can be asked for later.
    seed, device: of everything random; "cpu" or "cuda".
    verbose: tells what is chosen on standard error.
    """

    def __init__(
        self,
        model: Source,
        *,
        score: str = "nested",
        cut: Optional[str] = None,
        output: Optional[str] = None,
        norm: str = "inf",
        bound: str = "ibp",
        floor: float = 0.0,
        normalize: Optional[str] = None,
        low: Optional[str] = None,
        high: Optional[str] = None,
        asymmetric: bool = False,
        steps: int = 0,
        rate: float = 0.01,
        adam: bool = False,
        loss_weights: Sequence[float] = (),
        paper: bool = False,
        calibration: str = "split",
        group: Optional[str] = None,
        bandwidth: float = 0.0,
        selection: float = 0.2,
        alpha: Alpha = 0.1,
        seed: int = 0,
        device: str = "cpu",
        verbose: bool = False,
    ):
        self._keep(locals())

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
