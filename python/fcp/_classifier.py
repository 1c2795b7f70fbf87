"""Sets of labels."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple, Union

import numpy as np

from ._estimator import Alpha, Estimator, Source


class FeatureConformalClassifier(Estimator):
    """Sets of labels that hold the true one with probability at least 1 - alpha.

        >>> import fcp, numpy, torch
        >>> _ = torch.manual_seed(0)
        >>> from torch.nn import Linear, ReLU, Sequential
        >>> network = Sequential(Linear(2, 16), ReLU(), Linear(16, 3))
        >>> random = numpy.random.default_rng(0)
        >>> x = random.normal(size=(600, 2)).astype("float32")
        >>> y = random.integers(3, size=600)
        >>> classifier = fcp.FeatureConformalClassifier(fcp.from_torch(network, x[:1]), score="lac")
        >>> labels, sets = classifier.conformalize(x[:500], y[:500]).predict_set(x[500:], alpha=0.1)
        >>> labels.shape, sets.shape, sets.dtype  # rows; rows, classes, levels
        ((100,), (100, 3, 1), dtype('bool'))

    The network answers logits [N, classes]; y are labels 0, 1, … classes - 1.

    model, cut, output, norm, bound, calibration, bandwidth, selection, alpha, seed, device and
        verbose: as for `FeatureConformalRegressor`.
    score: feature_margin, lac, aps, raps, feature_sampled.
    temperature: lac, aps, raps: of the softmax, or "auto" to fit it on a slice of the rows.
    randomized: aps, raps: whether a label may be in by a share; without it sets are larger.
    rank_weight, rank_free: raps (its lambda and k_reg), feature_margin: what each rank beyond
        rank_free costs; "auto" chooses both on a slice.
    samples, steps, rate, adam: of feature_sampled.
    group: with calibration="grouped", "predicted" (by the network's answer) or "label" (class by
        class), or the name of a column.
    """

    _labels = True

    def __init__(
        self,
        model: Source,
        *,
        score: str = "feature_margin",
        cut: Optional[str] = None,
        output: Optional[str] = None,
        norm: str = "inf",
        bound: str = "ibp",
        temperature: Union[float, str] = 1.0,
        randomized: bool = True,
        rank_weight: Union[float, str] = "auto",
        rank_free: int = 0,
        samples: int = 1000,
        steps: int = 0,
        rate: float = 0.01,
        adam: bool = False,
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

    def predict_set(
        self,
        X: Any,
        alpha: Union[Alpha, Sequence[Alpha]] = 0.1,
        *,
        groups: Any = None,
        weights: Any = None,
    ) -> Tuple[np.ndarray, np.ndarray]:
        """The label [N] that the network answers, and the sets [N, classes, levels]: true for the
        labels in the set."""
        return self._regions(X, alpha, groups, weights)

    def predict(self, X: Any, **facts: Any) -> np.ndarray:
        """The label that the network answers."""
        return self.predict_set(X, 0.5, **facts)[0]
