"""Sets of labels."""

from __future__ import annotations

from typing import Any, Sequence, Tuple, Union

import numpy as np

from ._estimator import Alpha, Estimator


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
    """

    _labels = True

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
