"""A number for searches and cross-validation of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np


def region_score(estimator: Any, X: Any, y: Any) -> float:
    """How tight the regions are at the estimator's `alpha`, for `scoring=`; greater is better.

    Of intervals minus the mean interval score: the length, and 2/alpha times the distance of a
    truth outside (Winkler). Of sets minus their mean size. `score` itself is R² or accuracy, which
    methods hardly change.

        >>> import fcp, sklearn.model_selection  # doctest: +SKIP
        >>> search = sklearn.model_selection.GridSearchCV(  # doctest: +SKIP
        ...     fcp.FeatureConformalRegressor(network), {"method": ["residual", "nested"]},
        ...     scoring=fcp.region_score)
    """
    if hasattr(estimator, "named_steps"):  # a pipeline
        X = estimator[:-1].transform(X) if len(estimator.steps) > 1 else X
        estimator = estimator[-1]
    alpha = estimator._own_alpha()
    if estimator._labels:
        return -float(estimator.predict_set(X, alpha)[1].sum(axis=1).mean())
    _, intervals = estimator.predict_interval(X, alpha)
    lower, upper = intervals[..., 0, 0], intervals[..., 1, 0]
    truth = np.asarray(y, dtype=np.float64).reshape(lower.shape)
    outside = np.maximum(lower - truth, 0) + np.maximum(truth - upper, 0)
    return -float(np.mean(upper - lower + 2 / float(alpha) * outside))
