"""Tables with named columns (pandas, or what works like it): columns matched by name, cells read as
the program reads them from a file, and regions as tables. pandas itself is imported only to make
tables."""

from __future__ import annotations

import warnings
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from . import _fcp
from ._errors import needs


def column_names(X: Any) -> Optional[List[str]]:
    """The names of the columns; None where X has none, or they are numbers."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    texts = [isinstance(name, str) for name in names]
    if any(texts) and not all(texts):
        raise TypeError(f"X: some names of columns are text and others are not: {names}")
    return names if all(texts) and names else None


def matched(X: Any, names: Sequence[str]) -> Any:
    """The columns of these names in this order; others are left out."""
    found = column_names(X)
    if found is None or found == list(names):
        return X
    missing = [name for name in names if name not in found]
    if missing:
        raise _fcp.Error(
            f"X: has no column {', '.join(map(repr, missing))}; "
            f"expected are the columns {', '.join(names)}"
        )
    return X[list(names)]


Novelties = List[Tuple[str, np.ndarray]]


def encoded(X: Any, network: _fcp.Network, columns: Sequence[Tuple[str, bool]]) -> np.ndarray:
    """The numbers that a network trained by fcp on a table reads from such a table. Warns of rows
    with what no training row had, as the program does."""
    numbers, found = _encoded(X, network, columns)
    _warn_of_novelties(found, len(numbers))
    return numbers


def flags(X: Any, network: _fcp.Network, columns: Sequence[Tuple[str, bool]]) -> np.ndarray:
    """Of each row what no training row had, with "|" between."""
    numbers, found = _encoded(X, network, columns)
    return np.array([_flags_of(found, row) for row in range(len(numbers))], dtype=object)


def _flags_of(found: Novelties, row: int) -> str:
    return "|".join(flag for flag, marked in found if marked[row])


def _encoded(
    X: Any, network: _fcp.Network, columns: Sequence[Tuple[str, bool]]
) -> Tuple[np.ndarray, Novelties]:
    X = matched(X, [name for name, _ in columns])
    parts: List[np.ndarray] = []
    found: Novelties = []
    for place, (name, is_number) in enumerate(columns):
        values = np.asarray(X[name])
        if is_number and values.dtype.kind in "fiu" and not np.isnan(values).any():
            parts.append(values.astype(np.float32)[:, None])
            least, most = _fcp.usual_range(network, place)
            found.append((f"range:{name}", (values < least) | (values > most)))
            continue
        unique, first, inverse = np.unique(texts(values), return_index=True, return_inverse=True)
        order = np.argsort(first)  # the first cell that cannot be read is the one to complain of
        cells, own = _fcp.encode_cells(
            network, place, unique[order].tolist(), first[order].tolist()
        )
        back = np.argsort(order)[inverse]
        parts.append(cells[back])
        for flag in set(own) - {""}:
            found.append((flag, np.array([one == flag for one in own])[back]))
    return np.concatenate(parts, axis=1), found


def _warn_of_novelties(found: Novelties, rows: int) -> None:
    found = [(flag, marked) for flag, marked in found if marked.any()]
    if not found:
        return
    counts: Dict[str, int] = {}
    for row in np.flatnonzero(np.logical_or.reduce([marked for _, marked in found])):
        text = _flags_of(found, row)
        counts[text] = counts.get(text, 0) + 1
    warnings.warn("X: " + _fcp.novelty_text(counts, rows), stacklevel=2)


def as_columns(frame: Any) -> List[Any]:
    """The names of the columns of a table or of a dict of them."""
    names = list(frame) if isinstance(frame, dict) else list(getattr(frame, "columns", []))
    if not names:
        kind = type(frame).__name__
        raise TypeError(f"frame: found a {kind}, expected a table, a dict of columns or a path")
    return names


def texts(values: Any) -> List[str]:
    """The cells of a column as they stand in a file."""
    values = np.asarray(values)
    if values.dtype.kind == "M":
        values = values.astype("datetime64[s]").astype(str)
    return [_text(value) for value in values.tolist()]


def _text(value: Any) -> str:
    """A cell as it stands in a file; of a missing value nothing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value == "NaT":
        return ""
    if isinstance(value, float):
        if value != value:
            return ""
        # A column of whole numbers with gaps is one of floats in pandas.
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value)


def index_of(batches: Sequence[Any]) -> Any:
    """The index of the rows of all batches; None where they have none."""
    found: List[Any] = [getattr(batch, "index", None) for batch in batches]
    if any(index is None or callable(index) for index in found):
        return None
    return found[0].append(found[1:]) if len(found) > 1 else found[0]


def _endings(alphas: Sequence[Any]) -> List[str]:
    """What columns of a level end in, as in the files of `fcp predict`: nothing for one level."""
    return [f"_{alpha}" for alpha in alphas] if len(alphas) > 1 else [""]


def interval_frame(
    prediction: np.ndarray, intervals: np.ndarray, alphas: Sequence[Any], index: Any
) -> Any:
    """prediction [N, K], intervals [N, K, 2, levels]: the columns that `fcp predict` writes."""
    columns = {}
    for k in range(prediction.shape[1]):
        name = f"_{k}" if prediction.shape[1] > 1 else ""
        columns["prediction" + name] = prediction[:, k]
        for level, ending in enumerate(_endings(alphas)):
            columns["lower" + name + ending] = intervals[:, k, 0, level]
            columns["upper" + name + ending] = intervals[:, k, 1, level]
    return _frame(columns, index)


def set_frame(
    labels: np.ndarray, sets: np.ndarray, classes: np.ndarray, alphas: Sequence[Any], index: Any
) -> Any:
    """labels [N], sets [N, classes, levels]; the column `labels` has a tuple for each row."""
    columns: Dict[str, Any] = {"prediction": labels}
    for level, ending in enumerate(_endings(alphas)):
        members = sets[:, :, level]
        columns["size" + ending] = members.sum(axis=1)
        columns["labels" + ending] = [tuple(classes[row].tolist()) for row in members]
    return _frame(columns, index)


def _frame(columns: Any, index: Any) -> Any:
    try:
        import pandas
    except ImportError:
        raise needs("pandas", "as_frame=True") from None
    return pandas.DataFrame(columns, index=index)
