"""What may be passed as rows: NumPy arrays and tensors as they are, and what NumPy makes an array
of: tables of pandas, lists."""

from __future__ import annotations

from typing import Any, Iterable, List, Sequence, Tuple

import numpy as np
import torch

from . import _fcp

_READABLE = "efdbhilq?B"  # NumPy's letters of the types that are read in place


def readable(array: Any, name: str = "X") -> Any:
    """The array in a form that the library reads in place; copied only where it cannot."""
    if torch.is_tensor(array):
        return array.detach()
    if hasattr(array, "__dlpack__") and not isinstance(array, np.ndarray):
        return array
    array = plain(array, name)
    forward = all(stride >= 0 for stride in array.strides)
    if forward and array.dtype.isnative and array.dtype.char in _READABLE:
        return array
    try:
        return np.ascontiguousarray(array, dtype=np.float64)
    except ValueError:
        raise _fcp.Error(f"{name}: holds {_first_text(array)!r}, expected numbers") from None


def answers(y: Any) -> Any:
    """Numbers to predict, readable; NaN the library finds itself."""
    y = readable(y, "y")
    if not isinstance(y, (np.ndarray, torch.Tensor)):
        return y  # of another library, maybe on another device
    if isinstance(y, np.ndarray) and np.isfinite(y.sum()):
        return y  # one look at each number; a sum that overflows is looked into
    infinite: Any = torch.isinf(y) if isinstance(y, torch.Tensor) else np.isinf(y)
    if infinite.any():
        row = int(np.argmax(plain(infinite, "y").reshape(len(y), -1).any(axis=1)))
        raise _fcp.Error(f"y: row {row} (from 0) is inf, expected a finite number")
    return y


def plain(array: Any, name: str) -> np.ndarray:
    """The array as NumPy's; tensors from any device."""
    if torch.is_tensor(array):
        return array.detach().cpu().numpy()
    if hasattr(array, "toarray"):
        raise _fcp.Error(f"{name}: is sparse, which is not supported; pass {name}.toarray()")
    array = np.asarray(array)
    if array.dtype.kind == "c":
        raise _fcp.Error(f"{name}: Complex data not supported")
    return array


def _first_text(array: np.ndarray) -> Any:
    for value in array.ravel().tolist():
        try:
            float(value)
        except (TypeError, ValueError):
            return value
    return array.dtype.name


def group_ids(groups: Any, known: Sequence[str]) -> Tuple[List[int], List[str]]:
    """The index of each row's group among `known`, followed by those that are not, in the order in
    which they come; and all the names."""
    names = {name: index for index, name in enumerate(known)}
    ids = [names.setdefault(_group_name(group), len(names)) for group in _items(groups)]
    return ids, list(names)


def _items(groups: Any) -> Iterable[Any]:
    return groups.tolist() if hasattr(groups, "tolist") else groups


def _group_name(group: Any) -> str:
    # As the program names the numbers of an .npy file.
    return f"{group:g}" if isinstance(group, float) else str(group)
