"""Fitted estimators of scikit-learn, or anything with its `predict`, in place of networks.

The network is then a trivial one: its rows are the features and the estimator's answer, side by
side, and its output is the answer. Scores that learn where the estimator errs read the whole row."""

from __future__ import annotations

from typing import Any, Callable, List, Optional

import numpy as np
import torch

from . import _arrays, _fcp, _frames
from ._classifier import FeatureConformalClassifier
from ._estimator import Estimator
from ._model import Model, from_torch
from ._regressor import FeatureConformalRegressor

_LEAST = 1e-12  # probability that counts as 0


def wrap(estimator: Any, *, features: Any = None, **parameters: Any) -> Estimator:
    """A conformal regressor or classifier around a fitted estimator: a forest, boosted trees, a
    pipeline, or a function that gives predictions.

        >>> import fcp, numpy
        >>> random = numpy.random.default_rng(0)
        >>> x = random.normal(size=(600, 2))
        >>> y = x[:, 0] + numpy.abs(x[:, 1]) * random.normal(size=600)
        >>> class Fitted:
        ...     def predict(self, X):
        ...         return X[:, 0]
        >>> regressor = fcp.wrap(Fitted(), method="residual").conformalize(x[:500], y[:500])
        >>> regressor.predict_interval(x[500:])[1].shape
        (100, 2, 1)

    X is what the estimator takes. `conformalize` needs rows that it was not trained on; it is not
    trained again, and stays as it is when scikit-learn clones the result.

    features: what the methods spread, quantiles, density and auto, and the calibrations rectified
    and localized, look at: a function of X, or a fitted transformer. None: X itself where it is
    numbers (missing values become 0 and a column that marks them, where the estimator allows
    them); of a pipeline what its last step gets.
    parameters: those of FeatureConformalRegressor or FeatureConformalClassifier.
    """
    labels = hasattr(estimator, "predict_proba") or hasattr(estimator, "classes_")
    kind = FeatureConformalClassifier if labels else FeatureConformalRegressor
    return kind(Wrapped(estimator, features), **parameters)


class Wrapped:
    """A fitted estimator, and what is known of its rows; the `model` of what `wrap` gives."""

    def __init__(self, estimator: Any, features: Any = None):
        self.estimator = estimator
        self.features = features
        if not callable(getattr(estimator, "predict", estimator)):
            raise TypeError(f"fcp.wrap: {estimator!r} has no predict")
        if hasattr(estimator, "classes_") and not hasattr(estimator, "predict_proba"):
            raise TypeError(f"fcp.wrap: {estimator!r} has no predict_proba")

    def model_for(self, X: Any, with_features: bool) -> "WrappedModel":
        return WrappedModel(self, X, with_features)

    def answers(self, X: Any) -> np.ndarray:
        """The predictions [N, K], or log-probabilities [N, classes]."""
        if hasattr(self.estimator, "predict_proba"):
            found = np.asarray(self.estimator.predict_proba(X), dtype=np.float64)
            if found.ndim != 2:
                raise _fcp.Error("fcp.wrap: predict_proba does not give [rows, classes]")
            return np.log(np.maximum(found, _LEAST))
        found = np.asarray(getattr(self.estimator, "predict", self.estimator)(X), dtype=np.float64)
        return found.reshape(len(found), -1)

    def features_of(self, X: Any) -> np.ndarray:
        found = self._transformed(X)
        found = found.toarray() if hasattr(found, "toarray") else found
        try:
            found = np.asarray(_arrays.plain(found, "X"), dtype=np.float64)
        except (TypeError, ValueError):
            raise _fcp.Error(
                "X: holds values that are not numbers; fcp.wrap(…, features=…) takes a function of "
                "X or a fitted transformer that makes numbers of them"
            ) from None
        found = found.reshape(len(found), -1)
        if self.features is None and _allows_missing(self._last_step()):
            marks = np.isnan(found)
            return np.hstack([np.where(marks, 0, found), marks])
        return found

    def _transformed(self, X: Any) -> Any:
        if self.features is not None:
            return getattr(self.features, "transform", self.features)(X)
        fitted = self._fitted()
        return fitted[:-1].transform(X) if _is_pipeline(fitted) else X

    def _fitted(self) -> Any:
        return getattr(self.estimator, "best_estimator_", self.estimator)  # of a search

    def _last_step(self) -> Any:
        fitted = self._fitted()
        return fitted[-1] if _is_pipeline(fitted) else fitted

    def __repr__(self) -> str:
        return f"fcp.wrap({self.estimator!r})"

    def __deepcopy__(self, memo: Any) -> "Wrapped":
        return self


class WrappedModel(Model):
    """The trivial network over features and answers, which takes X as the estimator does."""

    def __init__(self, source: Wrapped, X: Any, with_features: bool):
        self._source = source
        self._features: Optional[Callable] = source.features_of if with_features else None
        first = self._matched(X[:1] if hasattr(X, "__getitem__") else X)
        answers = source.answers(first).shape[1]
        features = self._features(first).shape[1] if self._features else 0
        network = from_torch(_Answers(features), torch.zeros(1, features + answers))
        super().__init__(network._network)
        classes = getattr(source.estimator, "classes_", None)
        self._classes = None if classes is None else np.asarray(classes)

    @property
    def column_names(self) -> List[str]:
        return list(getattr(self._source.estimator, "feature_names_in_", []))

    def rows(self, X: Any) -> np.ndarray:
        """The features and the answer of each row, side by side: what files written from the model
        take."""
        X = self._matched(X)
        answers = self._source.answers(X)
        parts = [self._features(X), answers] if self._features else [answers]
        return np.hstack(parts).astype(np.float32)

    def _matched(self, X: Any) -> Any:
        return _frames.matched(X, self.column_names) if self.column_names else X


class _Answers(torch.nn.Module):
    """The columns behind the features."""

    def __init__(self, features: int):
        super().__init__()
        self.features = features

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return rows[:, self.features :]


def _is_pipeline(estimator: Any) -> bool:
    return hasattr(estimator, "named_steps") and len(estimator.steps) > 1


def _allows_missing(estimator: Any) -> bool:
    """What the estimator's tags say, in scikit-learn 1.6 and later or before."""
    if hasattr(estimator, "__sklearn_tags__"):
        return bool(estimator.__sklearn_tags__().input_tags.allow_nan)
    if hasattr(estimator, "_get_tags"):
        return bool(estimator._get_tags().get("allow_nan", False))
    return False
