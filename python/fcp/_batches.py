"""Rows that come in batches: a torch DataLoader, a generator, any iterator.

A batch is x, or a pair (x, y) as a DataLoader of a TensorDataset gives it. x is whatever may be
passed whole: an array, a tensor, a table, or a dict or tuple of them for a network with several
inputs."""

from __future__ import annotations

import collections.abc
from typing import Any, Iterator, List, Tuple

import numpy as np
import torch

from . import _arrays, _fcp


def is_batches(X: Any) -> bool:
    return isinstance(X, torch.utils.data.DataLoader) or hasattr(X, "__next__")


def pairs(X: Any, y: Any, owner: str) -> Iterator[Tuple[Any, Any]]:
    """(x, y) of each batch; of rows that come whole the only one."""
    if not is_batches(X):
        if y is None:
            raise _fcp.Error(f"{owner} requires y to be passed, but the target y is None")
        yield X, y
        return
    if y is not None:
        raise _fcp.Error("y: comes with X where X is batches: pass y=None")
    for number, batch in enumerate(X):
        if not isinstance(batch, (tuple, list)) or len(batch) != 2:
            raise _fcp.Error(f"X: batch {number} (from 0) is not a pair (x, y)")
        yield batch[0], batch[1]


def rows_alone(X: Any, several_inputs: bool) -> Iterator[Any]:
    """x of each batch, whether or not an answer comes with it; of rows that come whole the only
    one."""
    if not is_batches(X):
        yield X
        return
    for batch in X:
        is_pair = isinstance(batch, (tuple, list)) and len(batch) in (1, 2)
        if is_pair and several_inputs:  # the inputs may be a tuple themselves
            is_pair = isinstance(batch[0], (tuple, list, collections.abc.Mapping))
        yield batch[0] if is_pair else batch


def part(given: Any, first: int, count: int) -> Any:
    """What was given for these rows of all."""
    return None if given is None else given[first : first + count]


def joined(parts: List[Any]) -> Any:
    """Arrays of batches as one."""
    if not parts:
        raise _fcp.Error("X: has no batches")
    if len(parts) == 1:
        return parts[0]
    if all(map(torch.is_tensor, parts)):
        return torch.cat(parts)
    return np.concatenate([_arrays.plain(part, "X") for part in parts])
