"""Fitted estimators of scikit-learn, or anything with its `predict`, in place of networks.

The network is then a trivial one: its rows are the features and the estimator's answer, side by
side, and its output is the answer. Scores that learn where the estimator errs read the whole row."""

from __future__ import annotations

import zlib
from typing import Any, Callable, List, Optional, Protocol, Tuple, overload

import numpy as np
import torch

from . import _arrays, _fcp, _frames
from ._classifier import FeatureConformalClassifier
from ._model import Model, from_torch
from ._regressor import FeatureConformalRegressor

_LEAST = 1e-12  # probability that counts as 0
_BUCKETS = 16  # columns of indicators for the texts or categories of a column


class _GivesProbabilities(Protocol):
    def predict_proba(self, X: Any) -> Any: ...


@overload
def wrap(
    estimator: _GivesProbabilities, *, features: Any = None, **parameters: Any
) -> FeatureConformalClassifier: ...
@overload
def wrap(
    estimator: Any, *, features: Any = None, **parameters: Any
) -> FeatureConformalRegressor: ...


def wrap(estimator: Any, *, features: Any = None, **parameters: Any) -> Any:
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
    and localized, look at: a function of X, or a fitted transformer. None: X itself (missing values
    become 0 and a column that marks them, where the estimator allows them; a column of texts or
    categories becomes 16 columns of zeros and ones by hashes of the text); of a pipeline what its
    last step gets.
    parameters: those of FeatureConformalRegressor or FeatureConformalClassifier.
    """
    kind = FeatureConformalClassifier if _is_classifier(estimator) else FeatureConformalRegressor
    return kind(Wrapped(estimator, features), **parameters)


class Wrapped:
    """A fitted estimator, and what is known of its rows; the `model` of what `wrap` gives."""

    def __init__(self, estimator: Any, features: Any = None):
        self.estimator = estimator
        self.features = features
        if not callable(getattr(estimator, "predict", estimator)):
            raise TypeError(f"fcp.wrap: {estimator!r} has no predict")
        if _is_classifier(estimator) and not hasattr(estimator, "predict_proba"):
            raise TypeError(f"fcp.wrap: {estimator!r} has no predict_proba")

    def model_for(self, X: Any, with_features: bool) -> "WrappedModel":
        return WrappedModel(self, X, with_features)

    def answers(self, X: Any) -> np.ndarray:
        """The predictions [N, K], or log-probabilities [N, classes]."""
        if _is_classifier(self.estimator):
            found = np.asarray(self.estimator.predict_proba(X), dtype=np.float64)
            if found.ndim != 2:
                raise _fcp.Error("fcp.wrap: predict_proba does not give [rows, classes]")
            return np.log(np.maximum(found, _LEAST))
        found = np.asarray(getattr(self.estimator, "predict", self.estimator)(X), dtype=np.float64)
        return found.reshape(len(found), -1)

    def features_of(self, X: Any) -> np.ndarray:
        found = self._transformed(X)
        found = found.toarray() if hasattr(found, "toarray") else found
        numbers, indicators = _numbers_of(found)
        if self.features is None and _allows_missing(self._last_step()):
            marks = np.isnan(numbers)
            return np.hstack([np.where(marks, 0, numbers), marks, indicators])
        return np.hstack([numbers, indicators])

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
        labels = _is_classifier(source.estimator)
        classes = getattr(source.estimator, "classes_", None) if labels else None
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


def _is_classifier(estimator: Any) -> bool:
    # Regressors of CatBoost have classes_ too, an empty list.
    if getattr(estimator, "_estimator_type", None) == "regressor":
        return False
    return hasattr(estimator, "predict_proba") or len(getattr(estimator, "classes_", ())) > 0


def _numbers_of(X: Any) -> Tuple[np.ndarray, np.ndarray]:
    """The numbers of X [N, …], and indicators [N, …] of its texts and categories.

    Neither depends on other rows: categories that were learned here would be learned from the rows
    that calibrate. A column is one of texts by its type, and a cell of it that is a number, as in
    an array of objects, stays a number."""
    columns = _columns_of(X)
    if columns is None:
        plain = _float64(X)
        plain = plain.reshape(len(plain), -1)
        return plain, np.zeros((len(plain), 0))
    numbers, indicators = [], []
    for place, (column, is_text) in enumerate(columns):
        if not is_text:
            numbers.append(_float64(column))
            continue
        cells = np.asarray(column, dtype=object)
        is_number = np.array([_is_number(cell) for cell in cells], dtype=bool)
        if str(getattr(column, "dtype", "")) == "category":
            is_number[:] = False  # what its categories are called, not how large they are
        elif str(getattr(column, "dtype", "object")) == "object":
            numbers.append(np.where(is_number, cells, 0).astype(np.float64))
        found = np.zeros((len(cells), _BUCKETS))
        for row in np.flatnonzero(~is_number):
            text = "" if _is_missing(cells[row]) else str(cells[row])
            code = zlib.crc32(f"{place}={text}".encode())
            found[row, [code % _BUCKETS, code // _BUCKETS % _BUCKETS]] = 1  # two, to differ in most
        indicators.append(found)
    rows = len(columns[0][0])
    return np.column_stack(numbers or [np.zeros((rows, 0))]), np.hstack(indicators)


def _columns_of(X: Any) -> Optional[List[Tuple[Any, bool]]]:
    """The columns of X, and whether each may hold texts; None where all of it are numbers."""
    if hasattr(X, "columns") and hasattr(X, "dtypes"):  # of pandas
        columns = [X[name] for name in X.columns]
    else:
        plain = _arrays.plain(X, "X")
        if plain.ndim != 2:
            return None
        columns = list(plain.T)
    kinds = [getattr(column.dtype, "kind", "O") not in "biufcmM" for column in columns]
    return list(zip(columns, kinds)) if any(kinds) else None


def _float64(X: Any) -> np.ndarray:
    try:
        if hasattr(X, "iloc"):  # pandas has numbers of its own types, with gaps
            return X.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.asarray(_arrays.plain(X, "X"), dtype=np.float64)
    except (TypeError, ValueError):
        raise _fcp.Error(
            "X: holds values that are not numbers; fcp.wrap(…, features=…) takes a function of "
            "X or a fitted transformer that makes numbers of them"
        ) from None


def _is_number(cell: Any) -> bool:
    return isinstance(cell, (bool, int, float, np.number, np.bool_))


def _is_missing(cell: Any) -> bool:
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or cell != cell


def _is_pipeline(estimator: Any) -> bool:
    return hasattr(estimator, "named_steps") and len(estimator.steps) > 1


def _allows_missing(estimator: Any) -> bool:
    """What the estimator's tags say, in scikit-learn 1.6 and later or before."""
    if type(estimator).__module__.partition(".")[0] == "catboost":
        return True  # which its tags do not say
    try:
        return bool(estimator.__sklearn_tags__().input_tags.allow_nan)
    except (AttributeError, ImportError):  # ImportError: tags for another scikit-learn
        pass
    if hasattr(estimator, "_get_tags"):
        return bool(estimator._get_tags().get("allow_nan", False))
    return False
