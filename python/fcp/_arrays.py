"""What may be passed as rows: NumPy arrays and tensors as they are, and what NumPy makes an array
of: tables of pandas, lists."""

from __future__ import annotations

from typing import Any, Iterable, List, Sequence, Tuple

import numpy as np
import torch

_READABLE = "efdbhilq?B"  # NumPy's letters of the types that are read in place


def readable(array: Any) -> Any:
    """The array in a form that the library reads in place; copied only where it cannot."""
    if torch.is_tensor(array):
        return array.detach()
    if hasattr(array, "__dlpack__") and not isinstance(array, np.ndarray):
        return array
    array = np.asarray(array)
    forward = all(stride >= 0 for stride in array.strides)
    if forward and array.dtype.isnative and array.dtype.char in _READABLE:
        return array
    return np.ascontiguousarray(array, dtype=np.float64)


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
