"""X of an estimator: what its columns are called, how many there are, and X as its network takes
it."""

from __future__ import annotations

import warnings
from typing import Any, List, Optional, Tuple

import numpy as np

from . import _fcp, _frames
from ._model import Model


class Inputs:
    """Learned from the rows of `conformalize`; holds new rows to it. X = None: nothing is known
    but what the model says, as of a file."""

    def __init__(self, model: Model, X: Any, owner: str):
        self.model = model
        self.owner = owner
        self.names: Optional[List[str]] = None
        self.count: Optional[int] = None
        if X is None:
            return
        named = _frames.column_names(X) is not None
        own = model.column_names
        self.names = (own or _frames.column_names(X)) if named else None
        shape: Tuple[int, ...] = () if model.several_inputs else _shape(X)
        self.count = shape[1] if len(shape) == 2 else None
        if self.names is not None:
            self.count = len(self.names)

    def rows(self, X: Any) -> Any:
        """X as the network takes it, the columns of a table by name."""
        if self.names is not None:
            if _frames.column_names(X) is None:
                warnings.warn(
                    f"X does not have valid feature names, but {self.owner} was fitted with "
                    "feature names",
                    stacklevel=5,
                )
            X = _frames.matched(X, self.names)
        if self.count is not None and not self.model.column_names:
            self._check_count(X)
        return self.model.rows(X)

    def _check_count(self, X: Any) -> None:
        shape = _shape(X)
        if len(shape) == 2 and shape[1] != self.count:
            raise _fcp.Error(
                f"X has {shape[1]} features, but {self.owner} is expecting {self.count} features "
                "as input"
            )


def _shape(X: Any) -> Tuple[int, ...]:
    found = getattr(X, "shape", None)
    return np.asarray(X).shape if found is None else tuple(found)
