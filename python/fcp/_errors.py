"""Errors that are those of scikit-learn too, where it is installed."""

from __future__ import annotations

from typing import Any, Tuple

from . import _fcp


class NotFittedError(_fcp.Error, AttributeError):
    """An estimator is asked before `conformalize`; scikit-learn's error of this name as well, where
    scikit-learn is installed."""


def not_fitted(message: str) -> NotFittedError:
    try:
        from sklearn.exceptions import NotFittedError as TheirError
    except ImportError:
        return NotFittedError(message)

    class BothErrors(NotFittedError, TheirError):
        def __reduce__(self) -> Tuple[Any, ...]:
            return not_fitted, self.args

    BothErrors.__name__ = BothErrors.__qualname__ = NotFittedError.__name__
    return BothErrors(message)


def needs(package: str, what: str) -> ImportError:
    """The error of an optional package that is not there."""
    return ImportError(f"fcp: {what} needs {package}: pip install {package}")
